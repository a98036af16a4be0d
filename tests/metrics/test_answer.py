"""answer.*: an answer against the truth."""

from typing import Any

import pytest

from convoscope.conversation import Conversation, Expected, Item
from convoscope.errors import DeclarationError
from convoscope.metrics import Metric
from convoscope.metrics.answer.text import (
    accuracy,
    accuracy_choice,
    accuracy_metric,
    choice_accuracy_metric,
    exact_match,
    exact_match_metric,
    f1,
    f1_metric,
    multi_pattern_accuracy,
    multi_pattern_accuracy_metric,
)
from convoscope.metrics.registry import collect
from convoscope.scoring.evaluate import observe
from convoscope.scoring.profiles import plan
from support.chats import agent, chat, told, user

FOUR = [exact_match, accuracy, multi_pattern_accuracy, f1]
EACH = pytest.mark.parametrize("metric", FOUR, ids=lambda metric: metric.key)


def answered(answer: str, truth: str) -> Conversation:
    return chat(user("?"), agent(answer), expected=Expected(ground_truth=truth))


def item(answer: str, truth: str, **context: Any) -> Conversation:
    """A conversation of one item, whose context may hold choices and patterns."""
    expected = Expected(ground_truth=truth)
    return chat(
        user("?"), agent(answer), items=(Item(id="a", answered=1, expected=expected, extras={"context": context}),)
    )


def value(metric: Metric, conversation: Conversation) -> Any:
    ((_, value),) = told(observe(metric, conversation))
    return value


class TestExactMatch:
    @pytest.mark.parametrize(
        ("answer", "truth", "score"),
        [
            ("Paris", "Paris", 1.0),
            ("  Paris\n", "Paris", 1.0),
            ("Paris", " Paris ", 1.0),
            ("paris", "Paris", 0.0),  # case counts
            ("Paris.", "Paris", 0.0),
            ("in  Paris", "in Paris", 0.0),  # blanks inside count
            ("It is Paris", "Paris", 0.0),
            ("", "Paris", 0.0),
            ("42", "42", 1.0),
        ],
    )
    def test_to_the_letter_but_for_blanks_at_both_ends(self, answer: str, truth: str, score: float) -> None:
        assert value(exact_match, answered(answer, truth)) == score


class TestF1:
    @pytest.mark.parametrize(
        ("answer", "truth", "score"),
        [
            ("the cat sat", "the cat sat", 1.0),
            ("The CAT, sat!", "the cat sat", 1.0),  # small letters, words only
            # the, cat shared; the second "the" has no partner. P = 2/3, R = 2/3
            ("the the cat", "the cat sat", 2 / 3),
            # one "the" shared. P = 1/1, R = 1/3; F1 = 2·(1/3) ÷ (4/3) = 1/2
            ("the", "the cat sat", 1 / 2),
            # both "very" shared. P = 2/2, R = 2/3; F1 = 2·(2/3) ÷ (5/3) = 4/5
            ("very very", "very very good", 4 / 5),
            # P = 1/6, R = 1/1; F1 = 2·(1/6) ÷ (7/6) = 2/7
            ("well I think it is Paris", "Paris", 2 / 7),
            ("dogs", "the cat sat", 0.0),
            ("", "the cat sat", 0.0),
            ("...", "the cat sat", 0.0),
            ("cats", "cat", 0.0),  # no stems
        ],
    )
    def test_shared_words_with_repeats_counted(self, answer: str, truth: str, score: float) -> None:
        assert value(f1, answered(answer, truth)) == pytest.approx(score)

    def test_precision_and_recall_stand_in_the_details(self) -> None:
        (observation,) = f1(answered("well I think it is Paris", "Paris"))
        assert observation.details == {"precision": 1 / 6, "recall": 1.0}

    def test_without_words_there_is_no_precision(self) -> None:
        (observation,) = f1(answered("...", "Paris"))
        assert observation.details == {"precision": None, "recall": 0.0}


class TestAccuracy:
    def test_the_answer_contains_the_truth(self) -> None:
        said = "You can cancel your subscription from Settings > Billing > Cancel plan."
        assert value(accuracy, answered(said, "Settings > Billing > Cancel plan")) == 1.0

    def test_else_the_share_of_its_words(self) -> None:
        # settings, billing, cancel, plan: two of four
        assert value(accuracy, answered("Look at plan and billing.", "Settings > Billing > Cancel plan")) == 0.5

    def test_a_pattern_of_the_item_says_where_the_answer_is(self) -> None:
        assert value(accuracy, item("Result=7, not 8", "7", answer_pattern=r"Result=(\d+)")) == 1.0
        assert value(accuracy, item("Result=7, not 8", "8", answer_pattern=r"Result=(\d+)")) == 0.0
        assert value(accuracy, item("It is 7", "7", answer_pattern=r"Result=(\d+)")) == 0.0

    @pytest.mark.parametrize("pattern", ["(", "a" * 1001, 7])
    def test_a_pattern_that_cannot_be_used_is_an_error_of_the_item_alone(self, pattern: object) -> None:
        (observation,) = observe(accuracy, item("x", "1", answer_pattern=pattern))
        assert (observation.status, observation.reason) == ("error", "bad_pattern")
        assert observation.detail.startswith("answer_pattern: ")

    def test_an_answer_that_is_too_long_for_a_pattern_is_unmeasured(self) -> None:
        conversation = item("x" * 10_001, "1", answer_pattern="x+")
        assert value(accuracy, conversation) == "unmeasured: answer_too_long"

    def test_a_pattern_that_cannot_be_tried_is_unmeasured(self) -> None:
        ahead = item("7 crowns", "7", answer_pattern=r"\d+(?= crowns)")
        assert value(accuracy, ahead) == "unmeasured: pattern_not_supported"
        beyond = item("à 7", "7", answer_pattern=r"\b\d+")
        assert value(accuracy, beyond) == "unmeasured: answer_not_ascii"


class TestChoice:
    CAPITALS = ("London", "Paris", "Rome", "Oslo")

    def test_a_letter_against_a_letter(self) -> None:
        (observation,) = observe(accuracy_choice, item("It is not A but B", "B"))
        assert observation.value == 1.0
        assert observation.details == {"chosen": "B", "right": "B"}

    def test_a_letter_against_the_text_of_its_choice(self) -> None:
        assert value(accuracy_choice, item("Answer: B", "Paris", choices=self.CAPITALS)) == 1.0
        assert value(accuracy_choice, item("Answer: C", "Paris", choices=self.CAPITALS)) == 0.0

    def test_an_answer_that_picks_nothing_is_wrong(self) -> None:
        (observation,) = observe(accuracy_choice, item("I cannot say.", "B"))
        assert observation.value == 0.0
        assert observation.details == {"chosen": None, "right": "B"}

    def test_a_truth_that_is_none_of_the_choices_contradicts_itself(self) -> None:
        """It was not applicable, as if there had been nothing to choose."""
        expected, context = Expected(ground_truth="Madrid"), {"context": {"choices": self.CAPITALS}}
        items = (Item(id="a", answered=1, expected=expected, extras=context),)
        conversation = chat(user("?"), agent("B"), items=items)
        assert value(accuracy_choice, conversation) == "unmeasured: truth_not_a_choice"

    @pytest.mark.parametrize(
        ("truth", "context", "reason"),
        [
            ("Paris", {}, "not_multiple_choice"),
            ("Paris", "a text", "not_multiple_choice"),
            ("", {"choices": CAPITALS}, "empty_ground_truth"),
            (" ", {}, "empty_ground_truth"),
        ],
    )
    def test_what_is_no_multiple_choice_is_not_applicable(self, truth: str, context: Any, reason: str) -> None:
        conversation = chat(
            user("?"),
            agent("B"),
            items=(Item(id="a", answered=1, expected=Expected(ground_truth=truth), extras={"context": context}),),
        )
        assert value(accuracy_choice, conversation) == f"not_applicable: {reason}"

    @pytest.mark.parametrize(
        ("truth", "context", "applies"),
        [("Paris", {}, 0), ("B", {}, 1), ("(b)", {}, 1), ("K", {}, 0), ("Paris", {"choices": CAPITALS}, 1)],
    )
    def test_the_plan_knows_what_is_multiple_choice(self, truth: str, context: Any, applies: int) -> None:
        (one,) = plan([accuracy_choice], [item("B", truth, **context)]).metrics
        assert one.applies_to == applies
        # Declared choices are enough.
        (one,) = plan([choice_accuracy_metric("mine", choices=["yes", "no"])], [item("B", truth, **context)]).metrics
        assert one.applies_to == 1

    def test_one_item_of_a_conversation_is_enough(self) -> None:
        items = tuple(Item(id=truth, answered=1, expected=Expected(ground_truth=truth)) for truth in ("Paris", "B"))
        assert told(observe(accuracy_choice, chat(user("?"), agent("B"), items=items))) == [
            ("item Paris", "not_applicable: not_multiple_choice"),
            ("item B", 1.0),
        ]

    def test_in_a_chat_without_items_the_truth_must_be_a_letter(self) -> None:
        assert value(accuracy_choice, answered("(C)", "C")) == 1.0


class TestMultiPattern:
    def test_any_candidate_will_do(self) -> None:
        assert value(multi_pattern_accuracy, answered("It is not A but B", "B")) == 1.0
        assert value(multi_pattern_accuracy, answered("Answer: Rome. Answer: Paris", "Paris")) == 1.0
        assert value(multi_pattern_accuracy, answered("Paris is nice", "Paris")) == 0.0

    def test_patterns_of_the_item(self) -> None:
        assert value(multi_pattern_accuracy, item("total=12; total=15", "15", patterns=[r"total=(\d+)"])) == 1.0
        assert value(multi_pattern_accuracy, item("x 12", "12", patterns=r"\d+")) == 1.0
        assert value(multi_pattern_accuracy, item("Answer: 12", "12", patterns=[r"total=(\d+)"])) == 0.0

    def test_a_pattern_that_cannot_be_used_is_an_error_of_the_item_alone(self) -> None:
        assert value(multi_pattern_accuracy, item("x", "1", patterns=["x", "("])) == "error: bad_pattern"

    def test_an_answer_that_is_too_long_for_a_pattern_is_unmeasured(self) -> None:
        conversation = item("x" * 10_001, "1", patterns=["x+"])
        assert value(multi_pattern_accuracy, conversation) == "unmeasured: answer_too_long"

    def test_a_pattern_that_cannot_be_tried_is_unmeasured(self) -> None:
        conversation = item("7 crowns", "7", patterns=[r"\d+(?= crowns)"])
        assert value(multi_pattern_accuracy, conversation) == "unmeasured: pattern_not_supported"

    def test_choices_of_the_item(self) -> None:
        context = {"choices": ["London", "Paris"], "answer_index": 1}
        assert value(multi_pattern_accuracy, item("Answer: B", "Paris", **context)) == 1.0
        assert value(multi_pattern_accuracy, item("Answer: A", "Paris", **context)) == 0.0


class TestVariants:
    """A user's own module declares a variant with one line, and it is collected like any metric."""

    def test_it_has_a_name_and_says_its_options(self) -> None:
        loose = exact_match_metric("loose", case_sensitive=False, collapse=True)
        assert loose.key == "answer.exact_match@loose"
        assert loose.question == exact_match.question
        assert loose.description.endswith("Here with collapse = True, case_sensitive = False.")
        assert set(collect([exact_match, loose])) == {"answer.exact_match", "answer.exact_match@loose"}

    def test_exact_match(self) -> None:
        loose = exact_match_metric("loose", case_sensitive=False, collapse=True)
        assert value(loose, answered("in  PARIS", "in Paris")) == 1.0
        strict = exact_match_metric("strict", strip=False)
        assert value(strict, answered("Paris ", "Paris")) == 0.0
        assert strict.description.endswith("Here with strip = False.")

    def test_accuracy(self) -> None:
        tagged = accuracy_metric("tagged", answer_pattern="<answer>(.*?)</answer>")
        assert value(tagged, answered("Not Rome: <answer>Paris</answer>", "Paris")) == 1.0
        assert value(tagged, answered("Not Rome: <answer>Paris</answer>", "Rome")) == 0.0

    def test_choice(self) -> None:
        capitals = choice_accuracy_metric("capitals", choices=["London", "Paris"])
        assert capitals.key == "answer.accuracy@capitals"
        assert value(capitals, answered("Answer: B", "Paris")) == 1.0

    def test_multi_pattern(self) -> None:
        totals = multi_pattern_accuracy_metric("totals", patterns=[r"total=(\d+)"])
        assert value(totals, answered("total=12; total=15", "15")) == 1.0
        capitals = multi_pattern_accuracy_metric("capitals", choices=["London", "Paris"])
        assert value(capitals, answered("Answer: B", "Paris")) == 1.0

    def test_f1(self) -> None:
        assert value(f1_metric("cased", case_sensitive=True), answered("The CAT", "the cat")) == 0.0

    def test_a_pattern_that_cannot_be_used_is_refused_when_it_is_declared(self) -> None:
        with pytest.raises(DeclarationError, match="unterminated"):
            multi_pattern_accuracy_metric("bad", patterns=["("])
        with pytest.raises(DeclarationError, match="a back reference"):
            accuracy_metric("bad", answer_pattern=r"(a)\1")


@pytest.mark.parametrize("metric", [*FOUR, accuracy_choice], ids=lambda metric: metric.key)
def test_the_whole_range_is_worth_0_to_10(metric: Metric) -> None:
    assert metric.ten is not None
    assert (metric.ten.score(0.0), metric.ten.score(1.0)) == (0.0, 10.0)


@EACH
class TestWhichAnswer:
    def test_the_last_thing_that_the_agent_says(self, metric: Metric) -> None:
        said = (user("?"), agent("London"), user("sure?"), agent("Paris"), user("thanks"))
        assert value(metric, chat(*said, expected=Expected(ground_truth="Paris"))) == 1.0
        assert value(metric, chat(*said, expected=Expected(ground_truth="London"))) == 0.0

    def test_never_what_another_says(self, metric: Metric) -> None:
        conversation = chat(agent("London"), user("Paris"), expected=Expected(ground_truth="Paris"))
        assert value(metric, conversation) == 0.0

    def test_an_answer_without_words_scores_0(self, metric: Metric) -> None:
        assert value(metric, chat(user("?"), agent(" "), expected=Expected(ground_truth="Paris"))) == 0.0

    def test_a_log_that_holds_no_answer_is_unmeasured(self, metric: Metric) -> None:
        nobody = chat(expected=Expected(ground_truth="Paris"))
        assert told(observe(metric, nobody)) == [("conversation", "unmeasured: no_agent_response")]

    def test_a_user_who_gets_no_reply_is_answered_wrongly(self, metric: Metric) -> None:
        assert value(metric, chat(user("?"), expected=Expected(ground_truth="Paris"))) == 0.0


@EACH
class TestEmptyCases:
    @pytest.mark.parametrize("truth", ["", "   "])
    @pytest.mark.parametrize("answer", ["", "Paris"])
    def test_an_empty_truth_is_not_applicable(self, metric: Metric, answer: str, truth: str) -> None:
        assert value(metric, answered(answer, truth)) == "not_applicable: empty_ground_truth"

    def test_without_a_truth_it_is_unmeasured(self, metric: Metric) -> None:
        assert value(metric, chat(user("?"), agent("Paris"))) == "unmeasured: no_ground_truth"

    def test_of_two_missing_fields_the_first_is_named(self, metric: Metric) -> None:
        assert value(metric, chat()) == "unmeasured: no_agent_response"


@EACH
class TestItems:
    def test_each_item_has_its_own_answer_and_truth(self, metric: Metric) -> None:
        conversation = chat(
            user("capital of France?"),
            agent("Paris"),
            user("and of Spain?"),
            agent("Lisbon"),
            items=(
                Item(id="spain", asked=2, answered=3, expected=Expected(ground_truth="Madrid")),
                Item(id="france", asked=0, answered=1, expected=Expected(ground_truth="Paris")),
            ),
        )
        assert told(observe(metric, conversation)) == [("item spain", 0.0), ("item france", 1.0)]

    def test_beside_the_conversations_own(self, metric: Metric) -> None:
        conversation = chat(
            user("?"),
            agent("Paris"),
            agent("Madrid"),
            expected=Expected(ground_truth="Madrid"),
            items=(Item(id="a", answered=1, expected=Expected(ground_truth="Paris")),),
        )
        assert told(observe(metric, conversation)) == [("conversation", 1.0), ("item a", 1.0)]

    def test_an_item_without_a_truth_is_unmeasured_and_one_with_an_empty_truth_not_applicable(
        self, metric: Metric
    ) -> None:
        conversation = chat(
            user("?"),
            agent("Paris"),
            items=(
                Item(id="a", answered=1),
                Item(id="b", answered=1, expected=Expected(ground_truth="")),
                Item(id="c", answered=1, expected=Expected(ground_truth="Paris")),
            ),
        )
        assert told(observe(metric, conversation)) == [
            ("item a", "unmeasured: no_ground_truth"),
            ("item b", "not_applicable: empty_ground_truth"),
            ("item c", 1.0),
        ]

    def test_an_item_whose_answer_the_log_does_not_hold_is_unmeasured(self, metric: Metric) -> None:
        conversation = chat(
            user("?"),
            agent("Paris"),
            items=(
                Item(id="a", asked=0, expected=Expected(ground_truth="Paris")),
                Item(id="b", asked=0, answered=1, expected=Expected(ground_truth="Paris")),
            ),
        )
        assert told(observe(metric, conversation)) == [("item a", "unmeasured: no_agent_response"), ("item b", 1.0)]
        assert observe(metric, conversation)[0].detail == "agent_response"

    def test_two_items_with_one_id_are_two_subjects(self, metric: Metric) -> None:
        item = Item(id="a", answered=1, expected=Expected(ground_truth="Paris"))
        observations = observe(metric, chat(user("?"), agent("Paris"), items=(item, item)))
        assert [one.subject.position for one in observations] == [0, 1]
        assert [one.value for one in observations] == [1.0, 1.0]


@pytest.mark.parametrize("tokenize", [False, True, None, "tokens", 3])
def test_a_way_to_cut_texts_that_there_is_not_is_refused(tokenize: Any) -> None:
    with pytest.raises(DeclarationError, match="tokenize cannot be"):
        f1_metric("cut", tokenize=tokenize)
