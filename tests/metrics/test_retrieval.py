"""retrieval.*: the truth's words in the chunks, and the ranks of documents whose relevance is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Conversation, Expected, Item, Retrieval
from convoscope.metrics import Metric, Observation
from convoscope.metrics.retrieval import (
    average_precision,
    content_words,
    contextual_precision,
    contextual_recall,
    mrr,
    ndcg,
    recall_at_1,
    recall_at_3,
    recall_at_5,
    recall_at_10,
)
from convoscope.scoring.evaluate import observe
from support.chats import UNPLACED, chat, told, user
from support.strategies import json_values

LEXICAL = (contextual_precision, contextual_recall)
RECALLS = (recall_at_1, recall_at_3, recall_at_5, recall_at_10)
RANKING = (mrr, average_precision, ndcg, *RECALLS)


def one_of(metric: Metric, conversation: Conversation) -> Observation:
    (one,) = observe(metric, conversation)
    return one


def value(metric: Metric, conversation: Conversation) -> Any:
    ((_, value),) = told([one_of(metric, conversation)])
    return value


# By the truth's words

TRUTH = "Refunds take 14 days by bank transfer"  # content words: refunds, take, 14, days, bank, transfer


def searched(*lists: Sequence[str], truth: str | None = TRUTH, query: str | None = "refund time") -> Conversation:
    """One item with a query for each list of chunks."""
    events = [Retrieval(seq=UNPLACED, query=query, chunks=tuple(chunks)) for chunks in lists]
    one = Item(id="1", events=tuple(range(len(events))), expected=Expected(ground_truth=truth))
    return chat(*events, items=(one,))


FULL = "A refund: refunds take 14 days, by bank transfer."  # 6 of 6
HALF = "Refunds take 14 months."  # refunds, take, 14: 3 of 6
LESS = "A bank transfer is free."  # bank, transfer: 2 of 6
NONE = "We open at nine."


class TestContentWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (TRUTH, ["refunds", "take", "14", "days", "bank", "transfer"]),
            ("The bank and the Bank", ["bank"]),  # distinct, in small letters
            ("To be or not to be", ["not"]),
            ("It is", ["it", "is"]),  # where there is nothing else
            ("A", ["a"]),
            ("The customer's plan", ["customer", "plan"]),
            ("...", []),
            ("", []),
        ],
    )
    def test_distinct_words_that_say_something(self, text: str, words: list[str]) -> None:
        assert content_words(text) == words


class TestPrecisionByWords:
    @pytest.mark.parametrize(
        ("chunks", "score"),
        [
            ([FULL], 1.0),
            ([HALF], 1.0),  # half of the words is enough
            ([LESS], 0.0),
            ([NONE, NONE], 0.0),
            ([FULL, NONE, HALF], (1 / 1 + 2 / 3) / 2),  # relevant at ranks 1 and 3
            ([NONE, FULL], 1 / 2),  # the same chunk one rank lower
            ([FULL, NONE, NONE, NONE], 1.0),  # what comes after costs nothing
            ([NONE, LESS, FULL, HALF], (1 / 3 + 2 / 4) / 2),
        ],
    )
    def test_the_average_precision_of_the_ranked_chunks(self, chunks: list[str], score: float) -> None:
        assert value(contextual_precision, searched(chunks)) == pytest.approx(score)

    def test_the_mean_of_the_queries(self) -> None:
        # 1, 1/2 and 0
        assert value(contextual_precision, searched([FULL], [NONE, FULL], [NONE])) == pytest.approx(1 / 2)

    def test_a_query_that_gave_nothing_has_no_precision(self) -> None:
        assert value(contextual_precision, searched([NONE, FULL], [])) == pytest.approx(1 / 2)
        assert value(contextual_precision, searched([], [])) == "not_applicable: nothing_retrieved"

    def test_it_shows_which_chunks_were_relevant(self) -> None:
        one = one_of(contextual_precision, searched([FULL, NONE, HALF]))
        assert one.details == {"queries": [{"query": "refund time", "chunks": 3, "relevant": [1, 3]}]}


class TestRecallByWords:
    @pytest.mark.parametrize(
        ("lists", "score"),
        [
            ([[FULL]], 1.0),
            ([[HALF]], 3 / 6),
            ([[LESS]], 2 / 6),
            ([[HALF, LESS]], 5 / 6),  # only days is nowhere
            ([[HALF], [LESS]], 5 / 6),  # whichever query found it
            ([[NONE]], 0.0),
        ],
    )
    def test_the_share_of_the_words_that_stand_in_any_chunk(self, lists: list[list[str]], score: float) -> None:
        assert value(contextual_recall, searched(*lists)) == pytest.approx(score)

    def test_nothing_retrieved_is_nothing_found(self) -> None:
        assert value(contextual_recall, searched([])) == 0.0

    def test_it_shows_which_words_are_missing(self) -> None:
        one = one_of(contextual_recall, searched([HALF, LESS]))
        assert one.details == {"found": 5, "of": 6, "missing": ["days"]}

    def test_the_example_of_the_schema(self) -> None:
        chunk = "To cancel, go to Settings > Billing and click Cancel plan."
        conversation = searched([chunk], truth="Settings > Billing > Cancel plan", query="cancel subscription")
        assert value(contextual_recall, conversation) == 1.0  # settings, billing, cancel, plan
        assert value(contextual_precision, conversation) == 1.0


@pytest.mark.parametrize("metric", LEXICAL, ids=lambda metric: metric.key)
class TestWordsThatCannotBeCompared:
    def test_an_empty_truth_is_not_applicable(self, metric: Metric) -> None:
        for truth in ("", "  ", "!?"):
            assert value(metric, searched([FULL], truth=truth)) == "not_applicable: empty_ground_truth"

    def test_a_missing_field_is_named(self, metric: Metric) -> None:
        assert value(metric, searched([FULL], truth=None)) == "unmeasured: no_ground_truth"
        assert value(metric, searched([FULL], query=None)) == "unmeasured: no_retrieval_query"
        assert value(metric, chat(user("hi"), expected=Expected(ground_truth="x"))) == "unmeasured: no_retrieval_query"

    def test_a_query_of_which_nobody_told_what_it_gave(self, metric: Metric) -> None:
        one = Item(id="1", expected=Expected(ground_truth="bank"), extras={"retrieved_context": None})
        asked = Retrieval(seq=UNPLACED, query="q")
        assert value(metric, chat(asked, items=(one,))) == "unmeasured: no_retrieved_context"

    def test_of_one_item_among_others(self, metric: Metric) -> None:
        items = (
            Item(id="a", events=(0,), expected=Expected(ground_truth="bank")),
            Item(id="b", events=(0,)),
            Item(id="c", expected=Expected(ground_truth="bank")),
        )
        events = (Retrieval(seq=UNPLACED, query="q", chunks=("the bank",)),)
        assert told(observe(metric, chat(*events, items=items))) == [
            ("item a", 1.0),
            ("item b", "unmeasured: no_ground_truth"),
            ("item c", "unmeasured: no_retrieval_query"),
        ]

    def test_it_is_named_as_lexical_and_has_ten_points(self, metric: Metric) -> None:
        assert metric.key.endswith("@lexical")
        assert metric.ten is not None
        assert metric.ten.score(0.7) == pytest.approx(7.0)


WORD = st.sampled_from(["bank", "transfer", "refund", "the", "of", "14"])
TEXTS = st.lists(WORD, max_size=6).map(" ".join)


class TestWordsInGeneral:
    @given(st.lists(st.lists(TEXTS, max_size=5), min_size=1, max_size=3), TEXTS)
    def test_between_0_and_1(self, lists: list[list[str]], truth: str) -> None:
        for metric in LEXICAL:
            one = one_of(metric, searched(*lists, truth=truth))
            assert one.status != "error"
            assert one.value is None or 0 <= one.value <= 1

    @given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS, st.randoms())
    def test_recall_does_not_know_an_order(self, chunks: list[str], truth: str, random: Any) -> None:
        shuffled = [*chunks]
        random.shuffle(shuffled)
        before = value(contextual_recall, searched(chunks, truth=truth))
        assert value(contextual_recall, searched(shuffled, truth=truth)) == before
        assert value(contextual_recall, searched(*([chunk] for chunk in chunks), truth=truth)) == before

    @given(st.integers(0, 4), st.integers(0, 4))
    def test_relevant_chunks_first_is_full_marks_and_last_is_least(self, relevant: int, others: int) -> None:
        best = [FULL] * relevant + [NONE] * others
        if best:
            assert value(contextual_precision, searched(best)) == (1.0 if relevant else 0.0)
            assert value(contextual_precision, searched(best[::-1])) <= value(contextual_precision, searched(best))

    @given(st.text(), st.lists(st.text(), max_size=3))
    def test_whatever_the_texts_are(self, truth: str, chunks: list[str]) -> None:
        for metric in LEXICAL:
            assert one_of(metric, searched(chunks, truth=truth)).status in ("measured", "not_applicable")


# By ranks


def ranked(**context: Any) -> Conversation:
    return chat(user("?"), items=(Item(id="1", asked=0, extras={"context": context}),))


def labelled(*relevance: float, **context: Any) -> Conversation:
    """Documents in the order of their ranks, with their relevance."""
    return ranked(rankings=list(range(1, len(relevance) + 1)), relevance_scores=list(relevance), **context)


def all_of(conversation: Conversation) -> dict[str, Any]:
    return {metric.key.removeprefix("retrieval."): value(metric, conversation) for metric in RANKING}


def log2(number: float) -> float:
    return math.log2(number)


def whole(*relevance: float) -> Conversation:
    """A list of which it is known that it holds all that is relevant."""
    return labelled(*relevance, relevant_total=sum(one > 0 for one in relevance))


class TestListsThatCannotMissAny:
    def test_scores_alone_of_at_most_k_documents_say_nothing_of_recall(self) -> None:
        """It was 1 by construction, and "passes"."""
        # Three documents: what is relevant beside them, nobody tells.
        found = [value(metric, labelled(1, 0, 1)) for metric in RECALLS]
        assert found == [0.5, *["not_applicable: nothing_to_miss"] * 3]  # at 1: one of two

    def test_what_else_is_relevant_makes_it_a_recall(self) -> None:
        for more in ({"relevant_total": 4}, {"relevant_total": 2}):
            assert value(recall_at_3, labelled(1, 0, 1, **more)) == 2 / more["relevant_total"]
        by_ids = ranked(retrieved_ids=["a", "b"], relevant_ids=["a", "c"])
        assert value(recall_at_3, by_ids) == 0.5

    def test_a_longer_list_can_miss_some(self) -> None:
        assert value(recall_at_3, labelled(1, 0, 0, 1)) == 0.5


class TestTheStandardDefinitions:
    @pytest.mark.parametrize(
        ("relevance", "reciprocal", "precision", "gain", "recalls"),
        [
            ([1], 1.0, 1.0, 1.0, (1.0, 1.0, 1.0, 1.0)),
            # ranks 1 and 3: AP = (1/1 + 2/3) ÷ 2; DCG = 1 + 1/2, ideal 1 + 1/log2 3
            ([1, 0, 1], 1.0, 5 / 6, 1.5 / (1 + 1 / log2(3)), (1 / 2, 1.0, 1.0, 1.0)),
            ([0, 1], 1 / 2, 1 / 2, 1 / log2(3), (0.0, 1.0, 1.0, 1.0)),
            # ranks 2, 4, 6: AP = (1/2 + 2/4 + 3/6) ÷ 3
            (
                [0, 1, 0, 1, 0, 1],
                1 / 2,
                1 / 2,
                (1 / log2(3) + 1 / log2(5) + 1 / log2(7)) / (1 + 1 / log2(3) + 1 / 2),
                (0.0, 1 / 3, 2 / 3, 1.0),
            ),
            # graded: DCG = 1 + 3/log2 3, ideal 3 + 1/log2 3; graded or not, both are relevant
            ([1, 3], 1.0, 1.0, (1 + 3 / log2(3)) / (3 + 1 / log2(3)), (1 / 2, 1.0, 1.0, 1.0)),
        ],
    )
    def test_by_hand(
        self,
        relevance: list[float],
        reciprocal: float,
        precision: float,
        gain: float,
        recalls: tuple[float, ...],
    ) -> None:
        conversation = whole(*relevance)
        assert value(mrr, conversation) == pytest.approx(reciprocal)
        assert value(average_precision, conversation) == pytest.approx(precision)
        assert value(ndcg, conversation) == pytest.approx(gain)
        assert [value(metric, conversation) for metric in RECALLS] == pytest.approx(list(recalls))

    def test_ranks_may_come_in_any_order(self) -> None:
        turned = ranked(rankings=[3, 1, 2], relevance_scores=[1, 1, 0])
        assert all_of(turned) == all_of(labelled(1, 0, 1))

    def test_ranks_that_are_not_listed_count_as_places(self) -> None:
        conversation = ranked(rankings=[6, 7], relevance_scores=[1, 0], relevant_total=1)
        assert value(mrr, conversation) == pytest.approx(1 / 6)
        assert value(average_precision, conversation) == pytest.approx(1 / 6)
        assert value(ndcg, conversation) == pytest.approx(1 / log2(7))
        assert [value(metric, conversation) for metric in RECALLS] == [0.0, 0.0, 0.0, 1.0]

    def test_whole_floats_are_ranks_and_truth_values_are_labels(self) -> None:
        assert all_of(ranked(rankings=[1.0, 2.0], relevance_scores=[False, True])) == all_of(labelled(0, 1))

    def test_numbers_may_be_written_as_text(self) -> None:
        written = ranked(rankings=["2", " 1.0 "], relevance_scores=["1", "0.0"], relevant_total="1")
        assert all_of(written) == all_of(whole(0, 1))
        assert value(ndcg, ranked(retrieved_ids=["a", "b"], relevant_ids={"a": "1"})) == 1.0

    def test_it_shows_where_the_relevant_ones_stand(self) -> None:
        assert one_of(mrr, labelled(0, 1, 1)).details == {"relevant_ranks": [2, 3], "relevant": 2, "depth": 3}


class TestRelevantDocumentsThatWereNotRanked:
    def test_their_number_counts(self) -> None:
        conversation = labelled(1, 0, 1, relevant_total=4)
        assert value(mrr, conversation) == 1.0  # only the first matters
        assert value(average_precision, conversation) == pytest.approx((1 / 1 + 2 / 3) / 4)
        assert value(recall_at_3, conversation) == 2 / 4
        # A list of three places could have held three of the four: ideal 1 + 1/log2 3 + 1/2
        assert value(ndcg, conversation) == pytest.approx(1.5 / (1 + 1 / log2(3) + 1 / 2))

    def test_where_all_are_missing_it_is_a_measured_0(self) -> None:
        assert set(all_of(labelled(0, 0, relevant_total=2)).values()) == {0.0}
        assert set(all_of(ranked(rankings=[], relevant_total=2)).values()) == {0.0}

    def test_grades_that_nobody_told_are_not_made_up(self) -> None:
        conversation = labelled(1, 3, relevant_total=3)
        assert value(ndcg, conversation) == "unmeasured: no_grades"
        assert value(average_precision, conversation) == pytest.approx(2 / 3)
        # Where all that are known have one grade, the others have it too
        assert value(ndcg, labelled(2, 0, relevant_total=2)) == pytest.approx(1 / (1 + 1 / log2(3)))


class TestLabelsByIds:
    def test_what_is_relevant_and_what_was_retrieved(self) -> None:
        conversation = ranked(retrieved_ids=["a", "b", "c"], relevant_ids=["c", "a", "z"])
        assert value(mrr, conversation) == 1.0
        assert value(average_precision, conversation) == pytest.approx((1 / 1 + 2 / 3) / 3)
        assert value(recall_at_1, conversation) == pytest.approx(1 / 3)
        assert value(recall_at_10, conversation) == pytest.approx(2 / 3)
        assert value(ndcg, conversation) == pytest.approx(1.5 / (1 + 1 / log2(3) + 1 / 2))

    def test_with_grades(self) -> None:
        conversation = ranked(retrieved_ids=["a", "b"], relevant_ids={"a": 1, "z": 3, "y": 0})
        # ideal: z then a, 3 + 1/log2 3
        assert value(ndcg, conversation) == pytest.approx(1 / (3 + 1 / log2(3)))
        assert value(average_precision, conversation) == pytest.approx(1 / 2)

    def test_with_ranks(self) -> None:
        conversation = ranked(rankings=[2, 1], retrieved_ids=["a", "b"], relevant_ids=["a"])
        assert value(mrr, conversation) == 1 / 2

    def test_ids_are_texts_however_they_were_written(self) -> None:
        assert value(mrr, ranked(retrieved_ids=[7, "8"], relevant_ids=["7"])) == 1.0
        assert value(mrr, ranked(retrieved_ids=["007", "7"], relevant_ids=[7])) == 1 / 2

    def test_a_document_that_comes_again_is_no_second_find(self) -> None:
        conversation = ranked(retrieved_ids=["a", "a", "b"], relevant_ids=["a", "b", "b"])
        assert value(average_precision, conversation) == pytest.approx((1 / 1 + 2 / 3) / 2)

    def test_nothing_found_is_a_0_and_nothing_to_find_is_not_applicable(self) -> None:
        assert set(all_of(ranked(retrieved_ids=["a"], relevant_ids=["b"])).values()) == {0.0}
        assert set(all_of(ranked(retrieved_ids=[], relevant_ids=["b"])).values()) == {0.0}
        assert set(all_of(ranked(retrieved_ids=["a"], relevant_ids=[])).values()) == {
            "not_applicable: nothing_relevant"
        }


class TestRanksThatSayNothing:
    @pytest.mark.parametrize(
        ("context", "why"),
        [
            ({"rankings": [1, 2, 3]}, "unmeasured: no_relevance"),  # labels are not made up
            ({"retrieved_ids": ["a"]}, "unmeasured: no_relevance"),
            ({"rankings": [1], "relevant_total": 1}, "unmeasured: no_relevance"),
            ({"rankings": []}, "not_applicable: nothing_retrieved"),
            ({"rankings": [], "relevance_scores": []}, "not_applicable: nothing_retrieved"),
            ({"rankings": [1, 2], "relevance_scores": [0, 0]}, "not_applicable: nothing_relevant"),
            ({"rankings": [1], "relevance_scores": [0], "relevant_total": 0}, "not_applicable: nothing_relevant"),
            ({"relevance_scores": [1]}, "unmeasured: no_rankings"),
            ({"choices": ["A"]}, "unmeasured: no_rankings"),
            ({}, "unmeasured: no_rankings"),
        ],
    )
    def test_null_and_why(self, context: dict[str, Any], why: str) -> None:
        assert set(all_of(ranked(**context)).values()) == {why}

    @pytest.mark.parametrize(
        ("context", "detail"),
        [
            ({"rankings": [1, 2], "relevance_scores": [1]}, "ranks: 2, documents: 1"),
            ({"rankings": [0], "relevance_scores": [1]}, "a rank lies between 1 and 1000000, not at 0"),
            ({"rankings": [-1], "relevance_scores": [1]}, "a rank lies between 1 and 1000000, not at -1"),
            ({"rankings": [1.5], "relevance_scores": [1]}, "a rank is a whole number, not 1.5"),
            ({"rankings": ["first"], "relevance_scores": [1]}, "a rank is a whole number, not 'first'"),
            ({"rankings": ["1.5"], "relevance_scores": [1]}, "a rank is a whole number, not '1.5'"),
            ({"rankings": [1], "relevance_scores": ["high"]}, "a relevance is a number from 0 on, not 'high'"),
            ({"rankings": [True], "relevance_scores": [1]}, "a rank is a whole number, not True"),
            ({"rankings": [math.nan], "relevance_scores": [1]}, "a rank is a whole number, not nan"),
            ({"rankings": [math.inf], "relevance_scores": [1]}, "a rank is a whole number, not inf"),
            ({"rankings": [[1]], "relevance_scores": [1]}, "a rank is a whole number, not [1]"),
            ({"rankings": [1, 1], "relevance_scores": [1, 0]}, "documents: 2, different ranks: 1"),
            ({"rankings": [1], "relevance_scores": [-1]}, "a relevance is a number from 0 on, not -1"),
            ({"rankings": [1], "relevance_scores": [None]}, "a relevance is a number from 0 on, not None"),
            ({"rankings": [1], "relevance_scores": [math.nan]}, "a relevance is a number from 0 on, not nan"),
            ({"rankings": 3, "relevance_scores": [1]}, "rankings is a list, not 3"),
            ({"rankings": [1], "relevance_scores": "high"}, "relevance_scores is a list, not 'high'"),
            (
                {"rankings": [1], "relevance_scores": [1], "relevant_total": 1.5},
                "relevant_total is a whole number, not 1.5",
            ),
            (
                {"rankings": [1, 2], "relevance_scores": [1, 1], "relevant_total": 1},
                "relevant_total is 1, but 2 documents are relevant",
            ),
            ({"retrieved_ids": ["a"], "relevant_ids": "a"}, "relevant_ids is a list, not 'a'"),
            ({"retrieved_ids": [None], "relevant_ids": ["a"]}, "an id is a text, not None"),
        ],
    )
    def test_a_bad_ranking_is_unmeasured_and_told(self, context: dict[str, Any], detail: str) -> None:
        for metric in RANKING:
            one = one_of(metric, ranked(**context))
            assert (one.status, one.reason, one.detail) == ("unmeasured", "bad_ranking", detail)

    @pytest.mark.parametrize("context", ["some words", [1, 2], 7])
    def test_a_context_of_another_kind(self, context: Any) -> None:
        items = (Item(id="1", extras={"context": context}),)
        assert value(mrr, chat(user("?"), items=items)) == "unmeasured: no_rankings"

    def test_no_context_at_all(self) -> None:
        assert value(mrr, chat(user("?"))) == "unmeasured: no_context"
        items = (Item(id="a"), Item(id="b", extras={"context": {"rankings": [1], "relevance_scores": [1]}}))
        assert told(observe(mrr, chat(user("?"), items=items))) == [
            ("item a", "unmeasured: no_context"),
            ("item b", 1.0),
        ]

    def test_ten_points(self) -> None:
        for metric in RANKING:
            assert metric.ten is not None
            assert (metric.ten.score(0.0), metric.ten.score(1.0), metric.ten.passes_at) == (0.0, 10.0, 7.0)


RELEVANCE = st.lists(st.sampled_from([0, 0, 1, 2, 0.5]), min_size=1, max_size=12).filter(any)


class TestRanksInGeneral:
    @given(RELEVANCE, st.integers(0, 5))
    def test_between_0_and_1(self, relevance: list[float], more: int) -> None:
        total = sum(one > 0 for one in relevance) + more
        for metric in RANKING:
            one = one_of(metric, labelled(*relevance, relevant_total=total))
            assert one.reason in ("", "no_grades")
            assert one.value is None or 0 <= one.value <= 1

    @given(RELEVANCE)
    def test_the_best_order_is_1_and_no_other_is_better(self, relevance: list[float]) -> None:
        best = whole(*sorted(relevance, reverse=True))
        for metric in (mrr, average_precision, ndcg):
            assert value(metric, best) == pytest.approx(1.0)
        for metric in RANKING:
            assert value(metric, whole(*relevance)) <= value(metric, best) + 1e-12

    @given(RELEVANCE, st.randoms())
    def test_the_order_in_which_documents_are_listed_does_not_matter(self, relevance: list[float], random: Any) -> None:
        pairs = list(enumerate(relevance, 1))
        random.shuffle(pairs)
        turned = ranked(rankings=[rank for rank, _ in pairs], relevance_scores=[gain for _, gain in pairs])
        assert all_of(turned) == pytest.approx(all_of(labelled(*relevance)))

    @given(RELEVANCE, st.data())
    def test_a_relevant_document_that_moves_up_never_costs(self, relevance: list[float], data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(relevance) - 1))
        if place and relevance[place] > relevance[place - 1]:
            swapped = [*relevance]
            swapped[place - 1], swapped[place] = swapped[place], swapped[place - 1]
            for metric in RANKING:
                assert value(metric, whole(*swapped)) >= value(metric, whole(*relevance)) - 1e-12

    @given(RELEVANCE, st.integers(1, 1000))
    def test_the_scale_of_grades_does_not_matter(self, relevance: list[float], factor: int) -> None:
        scaled = labelled(*(one * factor for one in relevance))
        assert all_of(scaled) == pytest.approx(all_of(labelled(*relevance)))

    @given(
        st.lists(st.sampled_from("abcdefg"), max_size=7, unique=True), st.sets(st.sampled_from("abcdefg"), min_size=1)
    )
    def test_ids_and_labels_say_the_same(self, retrieved: list[str], relevant: set[str]) -> None:
        by_labels = labelled(*(one in relevant for one in retrieved), relevant_total=len(relevant))
        by_ids = ranked(retrieved_ids=retrieved, relevant_ids=sorted(relevant))
        assert all_of(by_ids) == pytest.approx(all_of(by_labels))

    @given(RELEVANCE)
    def test_more_places_never_recall_less(self, relevance: list[float]) -> None:
        values = [value(metric, whole(*relevance)) for metric in RECALLS]
        assert values == sorted(values)

    @given(
        st.fixed_dictionaries(
            {},
            optional={
                "rankings": json_values() | st.lists(json_values() | st.integers(-1, 9)),
                "relevance_scores": json_values() | st.lists(json_values() | st.floats()),
                "retrieved_ids": json_values(),
                "relevant_ids": json_values(),
                "relevant_total": json_values(),
            },
        )
    )
    def test_whatever_the_context_holds(self, context: dict[str, Any]) -> None:
        for metric in RANKING:
            one = one_of(metric, ranked(**context))
            assert one.status != "error", one.detail
            assert one.value is None or 0 <= one.value <= 1

    @pytest.mark.parametrize("relevance", [[10**400, 1], [1e308, 1e308], [5e-324, 5e-324]])
    def test_numbers_at_the_edge(self, relevance: list[float]) -> None:
        assert value(ndcg, labelled(*relevance)) == pytest.approx(1.0)

    def test_numbers_of_thousands_of_digits(self) -> None:
        conversation = ranked(rankings=[10**9999], relevance_scores=[1])
        assert one_of(mrr, conversation).detail == "a rank lies between 1 and 1000000, not at that int"

    def test_the_longest_list(self) -> None:
        conversation = ranked(rankings=[1_000_000], relevance_scores=[1], relevant_total=1_000_000)
        assert 0 < value(ndcg, conversation) < 1e-5
