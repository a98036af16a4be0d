"""One conversation through all metrics: whatever a metric does, the others go on."""

from collections.abc import Iterator
from typing import Any

import pytest

from convoscope.conversation import Conversation
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    Derived,
    Metric,
    Need,
    Observation,
    Reduce,
    TenPoints,
    counted,
    derived,
    measured,
    metric,
    not_applicable,
    ratio,
    unmeasured,
)
from convoscope.metrics.needs import JUDGE
from convoscope.metrics.registry import Declared
from convoscope.scores.reducers import ACROSS, COUNTS, MEAN, POOLED_COUNTS, RATIO, RATIO_OF_SUMS, WITHIN
from convoscope.scoring.evaluate import Evaluated, evaluate, observe
from support.chats import agent, chat, user
from support.tables import turn

HELLO = chat(user("hi"), agent("hello"), user("bye"), agent("bye"))


def made(name: str, function: Any, **facts: Any) -> Metric:
    """A metric that does what the function does."""
    function.__doc__ = "What the test says."
    facts = {"version": 1, "observes": CONVERSATION, "unit": "x", "better": HIGHER} | facts
    return metric(name, **facts)(function)


def figure(name: str, *inputs: str, function: Any = lambda *values: sum(values)) -> Derived:
    function.__doc__ = "What the test says."
    return derived(name, version=1, over="conversation", unit="x", better=HIGHER, inputs=inputs)(function)


def run(*metrics: Declared, conversation: Conversation = HELLO, **facts: Any) -> dict[str, Evaluated]:
    return {one.declared.key: one for one in evaluate(conversation, metrics, **facts)}


def only(evaluated: Evaluated) -> Observation:
    (one,) = evaluated.observations
    return one


def two(conversation: Conversation) -> Observation:
    """Two."""
    return measured(conversation, 2)


TWO = made("test.two", two)


class TestOneMetric:
    def test_its_observations_and_what_they_come_to(self) -> None:
        def lengths(conversation: Conversation) -> Iterator[Observation]:
            for each in conversation.turns:
                yield measured(each, len(each.user_text))

        (evaluated,) = evaluate(HELLO, [made("test.lengths", lengths, ten=TenPoints(0, 5))])
        assert [one.value for one in evaluated.observations] == [2.0, 3.0]  # hi, bye
        (score,) = evaluated.scores
        assert (score.status, score.value, score.n, score.ten) == ("measured", 2.5, 2, 5.0)  # (2 + 3) ÷ 2, of 5

    def test_one_that_yields_nothing_had_nothing_to_observe(self) -> None:
        evaluated = run(made("test.silent", lambda conversation: []))["test.silent"]
        assert (only(evaluated).status, only(evaluated).reason) == ("not_applicable", "nothing_to_observe")
        assert [(one.status, one.value, one.reason) for one in evaluated.scores] == [
            ("not_applicable", None, "nothing_to_observe")
        ]


class TestErrors:
    def test_a_metric_that_raises_is_an_error_and_the_others_go_on(self) -> None:
        def broken(conversation: Conversation) -> Observation:
            raise KeyError("slots")

        evaluated = run(made("test.broken", broken), TWO)
        one = only(evaluated["test.broken"])
        assert (one.status, one.value, one.reason) == ("error", None, "metric_raised")
        assert one.detail == "KeyError: 'slots'"
        (score,) = evaluated["test.broken"].scores
        assert (score.status, score.value, score.reason, score.errors) == ("error", None, "metric_raised", 1)
        assert score.detail == "KeyError: 'slots'"
        assert only(evaluated["test.two"]).value == 2.0

    def test_also_half_way(self) -> None:
        def halfway(conversation: Conversation) -> Iterator[Observation]:
            yield measured(turn(1), 1)
            raise RuntimeError("turn 2 is too much")

        # What it had said by then is not kept: half a metric is none.
        one = only(run(made("test.halfway", halfway))["test.halfway"])
        assert (one.status, one.detail) == ("error", "RuntimeError: turn 2 is too much")

    @pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "1"])
    def test_a_number_that_is_none_is_an_error(self, value: Any) -> None:
        one = only(run(made("test.none", lambda conversation: measured(conversation, value)))["test.none"])
        assert (one.status, one.value, one.reason) == ("error", None, "metric_raised")
        assert one.detail.startswith("ValueError: a measured score needs a finite value")

    @pytest.mark.parametrize("given", [None, 0.5, [0.5], "ab", [measured(turn(1), 1), 0.5]])
    def test_what_is_not_an_observation_is_an_error(self, given: Any) -> None:
        evaluated = run(made("test.bare", lambda conversation: given), TWO)
        assert only(evaluated["test.bare"]).status == "error"
        assert [one.status for one in evaluated["test.bare"].scores] == ["error"]
        assert only(evaluated["test.two"]).value == 2.0

    def test_two_scores_for_one_subject_are_an_error(self) -> None:
        twice = made("test.twice", lambda conversation: [measured(turn(1), 1), measured(turn(1), 0)])
        assert only(run(twice)["test.twice"]).detail == "ValueError: test.twice gave two scores for one subject"

    @pytest.mark.parametrize(
        ("within", "observations"),
        [
            ("ratio", [measured(turn(1), 1), measured(turn(2), 0)]),
            ("ratio", [ratio(turn(1), 1, 2, empty="none"), measured(turn(2), 0)]),
            ("counts", [measured(turn(1), 1), measured(turn(2), 0)]),
            ("counts", [counted(turn(1), tp=1, fp=0, fn=0), ratio(turn(2), 1, 2, empty="none")]),
        ],
        ids=[
            "values for ratio",
            "a value among ratios",
            "values for counts",
            "a ratio among counts",
        ],
    )
    def test_a_reducer_that_does_not_fit_is_an_error_and_not_a_crash(
        self, within: str, observations: list[Observation]
    ) -> None:
        misfit = made("test.misfit", lambda conversation: observations, reduce=Reduce(WITHIN[within]))
        evaluated = run(misfit, TWO)
        assert (only(evaluated["test.misfit"]).status, only(evaluated["test.misfit"]).reason) == (
            "error",
            "reduction_failed",
        )
        assert [(one.status, one.value) for one in evaluated["test.misfit"].scores] == [("error", None)]
        assert only(evaluated["test.two"]).value == 2.0

    @pytest.mark.parametrize("within", ["mean", "ratio", "counts"])
    @pytest.mark.parametrize("across", ["mean_of_conversations", "ratio_of_sums", "pooled_counts"])
    def test_also_with_a_single_subject(self, within: str, across: str) -> None:
        lonely = made(
            "test.lonely", lambda conversation: measured(turn(1), 1), reduce=Reduce(WITHIN[within], ACROSS[across])
        )
        one = only(run(lonely)["test.lonely"])
        if (within, across) == ("mean", "mean_of_conversations"):
            assert one.value == 1.0
        else:
            # A plain value has nothing to divide by, and was not found, missed or made up.
            assert (one.status, one.value, one.reason) == ("error", None, "reduction_failed")

    @pytest.mark.parametrize(
        ("reduce", "observation"),
        [
            (Reduce(RATIO, RATIO_OF_SUMS), counted(turn(1), tp=1, fp=0, fn=0)),
            (Reduce(MEAN, RATIO_OF_SUMS), counted(turn(1), tp=1, fp=0, fn=0)),
            (Reduce(COUNTS, POOLED_COUNTS), ratio(turn(1), 1, 2, empty="none")),
            (Reduce(MEAN, POOLED_COUNTS), ratio(turn(1), 1, 2, empty="none")),
        ],
    )
    def test_a_single_ratio_has_no_counts_and_counts_are_no_ratio(
        self, reduce: Reduce, observation: Observation
    ) -> None:
        one = only(run(made("test.misfit", lambda conversation: observation, reduce=reduce))["test.misfit"])
        assert (one.status, one.reason) == ("error", "reduction_failed")

    def test_what_has_no_value_fits_every_reducer(self) -> None:
        silent = made("test.silent", lambda conversation: not_applicable(turn(1), "none"), reduce=Reduce(RATIO))
        assert only(run(silent)["test.silent"]).status == "not_applicable"


class TestNeeds:
    @staticmethod
    def never_called(conversation: Conversation) -> Observation:
        pytest.fail("a metric whose need is not met must not be called")

    @pytest.mark.parametrize("otherwise", ["unmeasured", "not_applicable"])
    def test_an_unmet_need_gives_its_status_and_code(self, otherwise: Any) -> None:
        need = Need(
            code="no_gold",
            field="gold",
            unlock="gold labels",
            present=lambda conversation: False,
            status_if_missing=otherwise,
        )
        evaluated = run(made("test.gold", self.never_called, needs=(need,)))
        one = only(evaluated["test.gold"])
        assert (one.status, one.value, one.reason) == (otherwise, None, "no_gold")
        assert str(one.subject) == "conversation"

    def test_the_first_unmet_one_is_named(self) -> None:
        needs = tuple(
            Need(code=code, field="f", unlock="u", present=lambda conversation, met=met: met)
            for code, met in [("met", True), ("first", False), ("second", False)]
        )
        assert only(run(made("test.two_needs", two, needs=needs))["test.two_needs"]).reason == "first"

    def test_a_predicate_that_raises_is_an_error(self) -> None:
        def asks(conversation: Conversation) -> bool:
            raise KeyError("gold")

        need = Need(code="no_gold", field="gold", unlock="gold labels", present=asks)
        evaluated = run(made("test.gold", self.never_called, needs=(need,)), TWO)
        one = only(evaluated["test.gold"])
        assert (one.status, one.reason, one.detail) == ("error", "metric_raised", "KeyError: 'gold'")
        assert only(evaluated["test.two"]).value == 2.0

    def test_metrics_share_what_is_known_of_a_need(self) -> None:
        asked: list[str] = []

        def asks(conversation: Conversation) -> bool:
            asked.append(conversation.id)
            return conversation.id == "a"

        need = Need(code="no_gold", field="gold", unlock="gold labels", present=asks)
        both = (made("test.one", two, needs=(need,)), made("test.two", two, needs=(need,)))
        for id, found in (("a", 2.0), ("b", None)):
            evaluated = run(*both, conversation=chat(user("hi"), id=id))
            assert [only(one).value for one in evaluated.values()] == [found, found]
        # Once for each conversation: what is known of one says nothing of another.
        assert asked == ["a", "b"]

    def test_a_shared_predicate_that_raises_is_an_error_of_each(self) -> None:
        need = Need(code="no_gold", field="gold", unlock="gold labels", present=lambda conversation: bool(1 / 0))
        names = ("test.one", "test.two")
        evaluated = run(*(made(name, self.never_called, needs=(need,)) for name in names))
        assert [(only(evaluated[name]).status, only(evaluated[name]).reason) for name in names] == [
            ("error", "metric_raised")
        ] * 2

    def test_needs_that_are_equal_are_not_the_same(self) -> None:
        """Two conditions of one code are asked each: what is kept goes by the need, not by its name."""
        needs = [Need(code="no", field="f", unlock="u", present=lambda _, met=met: met) for met in (True, False)]
        first, second = (made(f"test.n{place}", two, needs=(need,)) for place, need in enumerate(needs))
        evaluated = run(first, second)
        assert [only(one).value for one in evaluated.values()] == [2.0, None]

    def test_a_met_need_changes_nothing(self) -> None:
        need = Need(code="no_turns", field="timeline", unlock="turns", present=lambda conversation: True)
        assert only(run(made("test.met", two, needs=(need,)))["test.met"]).value == 2.0

    def test_a_judge_is_brought_by_the_run(self) -> None:
        asks = made("test.asks", two, needs=(JUDGE,))
        (without,) = observe(asks, HELLO)
        assert (without.status, without.reason) == ("unmeasured", "no_judge")
        (with_judge,) = observe(asks, HELLO, {JUDGE.resource: None})
        assert with_judge.value == 2.0
        assert only(run(asks, resources={JUDGE.resource: None})["test.asks"]).value == 2.0


class TestDerived:
    def test_it_gets_the_values_in_the_order_of_its_inputs(self) -> None:
        three = made("test.three", lambda conversation: measured(conversation, 3))
        minus = figure("test.minus", "test.three", "test.two", function=lambda first, second: first - second)
        assert only(run(TWO, three, minus)["test.minus"]).value == 1.0  # 3 − 2

    def test_it_gets_what_the_turns_come_to(self) -> None:
        each = made("test.each", lambda conversation: [measured(turn(1), 1), measured(turn(2), 4)])
        assert only(run(each, figure("test.same", "test.each"))["test.same"]).value == 2.5  # (1 + 4) ÷ 2

    def test_one_may_rest_on_another_whatever_their_names(self) -> None:
        evaluated = run(figure("test.a", "test.b"), figure("test.b", "test.two", "test.two"), TWO)
        assert only(evaluated["test.b"]).value == 4.0  # 2 + 2
        assert only(evaluated["test.a"]).value == 4.0

    @pytest.mark.parametrize(
        ("given", "status", "reason"),
        [
            (unmeasured(turn(1), "no_clock"), "unmeasured", "input_no_clock"),
            (not_applicable(turn(1), "no_reply"), "not_applicable", "input_no_reply"),
        ],
    )
    def test_null_when_an_input_is(self, given: Observation, status: str, reason: str) -> None:
        empty = made("test.empty", lambda conversation: given)
        evaluated = run(TWO, empty, figure("test.sum", "test.two", "test.empty"), figure("test.next", "test.sum"))
        one = only(evaluated["test.sum"])
        assert (one.status, one.value, one.reason, one.detail) == (status, None, reason, "test.empty")
        # Further down, the reason is still what is missing at the start.
        onward = only(evaluated["test.next"])
        assert (onward.status, onward.reason, onward.detail) == (status, reason, "test.sum")

    def test_an_input_that_failed_leaves_it_unmeasured(self) -> None:
        broken = made("test.broken", lambda conversation: 1 / 0)
        one = only(run(broken, figure("test.sum", "test.broken"))["test.sum"])
        assert (one.status, one.reason, one.detail) == ("unmeasured", "input_metric_raised", "test.broken")

    def test_an_input_that_nobody_scored(self) -> None:
        one = only(run(figure("test.sum", "test.absent"))["test.sum"])
        assert (one.status, one.reason, one.detail) == ("unmeasured", "input_not_scored", "test.absent")

    def test_none_is_unscored(self) -> None:
        one = only(run(TWO, figure("test.none", "test.two", function=lambda value: None))["test.none"])
        assert (one.status, one.value, one.reason) == ("unmeasured", None, "not_enough")

    def test_one_that_raises_is_an_error(self) -> None:
        evaluated = run(
            TWO, figure("test.bad", "test.two", function=lambda value: value / 0), figure("test.ok", "test.two")
        )
        one = only(evaluated["test.bad"])
        assert (one.status, one.reason) == ("error", "metric_raised")
        assert one.detail.startswith("ZeroDivisionError: ")
        assert only(evaluated["test.ok"]).value == 2.0

    @pytest.mark.parametrize("circle", [[("test.a", "test.b"), ("test.b", "test.a")], [("test.a", "test.a")]])
    def test_what_rests_on_itself_is_an_error(self, circle: list[tuple[str, str]]) -> None:
        evaluated = run(*(figure(*names) for names in circle), TWO, figure("test.ok", "test.two"))
        for name, needs in circle:
            one = only(evaluated[name])
            assert (one.status, one.reason, one.detail) == ("error", "circular_inputs", needs)
        assert only(evaluated["test.ok"]).value == 2.0

    def test_figures_over_groups_wait_for_the_group(self) -> None:
        grouped = derived("test.group", version=1, over="group", unit="x", better=HIGHER, inputs=("test.two",))(two)
        assert set(run(TWO, grouped)) == {"test.two"}
