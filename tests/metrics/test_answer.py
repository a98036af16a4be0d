"""answer.*: an answer against the truth."""

from typing import Any

import pytest

from convoscope.conversation import Conversation, Expected, Item
from convoscope.metrics import Metric
from convoscope.metrics.answer import exact_match, f1
from convoscope.scoring.evaluate import observe
from metrics.chats import agent, chat, told, user

BOTH = pytest.mark.parametrize("metric", [exact_match, f1], ids=lambda metric: metric.name)


def answered(answer: str, truth: str) -> Conversation:
    return chat(user("?"), agent(answer), expected=Expected(ground_truth=truth))


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


@BOTH
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
        for nobody in (
            chat(user("?"), expected=Expected(ground_truth="Paris")),
            chat(expected=Expected(ground_truth="Paris")),
        ):
            assert told(observe(metric, nobody)) == [("conversation", "unmeasured: no_answer")]


@BOTH
class TestEmptyCases:
    @pytest.mark.parametrize("truth", ["", "   "])
    @pytest.mark.parametrize("answer", ["", "Paris"])
    def test_an_empty_truth_is_not_applicable(self, metric: Metric, answer: str, truth: str) -> None:
        assert value(metric, answered(answer, truth)) == "not_applicable: empty_ground_truth"

    def test_without_a_truth_it_is_unmeasured(self, metric: Metric) -> None:
        assert value(metric, chat(user("?"), agent("Paris"))) == "unmeasured: no_ground_truth"
        assert value(metric, chat()) == "unmeasured: no_ground_truth"


@BOTH
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
        item = Item(id="a", asked=0, expected=Expected(ground_truth="Paris"))
        assert told(observe(metric, chat(user("?"), items=(item,)))) == [("item a", "unmeasured: no_answer")]

    def test_two_items_with_one_id_are_two_subjects(self, metric: Metric) -> None:
        item = Item(id="a", answered=1, expected=Expected(ground_truth="Paris"))
        observations = observe(metric, chat(user("?"), agent("Paris"), items=(item, item)))
        assert [one.subject.position for one in observations] == [0, 1]
        assert [one.value for one in observations] == [1.0, 1.0]
