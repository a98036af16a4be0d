"""Figures that need other figures, and groups over dimensions, from conversations to the summary (design, idea 5)."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation, Expected
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    SHARE,
    Derived,
    GroupSample,
    Observation,
    derived,
    measured,
    metric,
    unmeasured,
)
from convoscope.metrics.composites import by_scenario, pass_at_k, pass_hat_k, pass_hat_k_theoretical
from convoscope.metrics.registry import Declared
from convoscope.runs import make as making
from convoscope.runs.run import Run
from convoscope.scores.observation import ERROR, MEASURED, NOT_APPLICABLE, UNMEASURED
from convoscope.statistics.panels import panel_name
from convoscope.statistics.summary import Figure, derived_figure
from support.chats import agent, call, chat, result, user
from support.tables import headline, reduced_by, values

Score = Callable[..., Run]


@pytest.fixture
def score(tmp_path: Path) -> Score:
    """Scores conversations with these metrics, as a user would."""

    def run(conversations: list[Conversation], *metrics: str | Declared, **options: Any) -> Run:
        return making.make_run(conversations, metrics=metrics, out=tmp_path / "run", workers=1, **options)

    return run


def figures(metrics: list[Figure], name: str) -> list[Figure]:
    return [one for one in metrics if one.metric == name and not one.reduction]


def headline_of(run: Run, name: str) -> Figure:
    (one,) = figures(run.summary.figures, name)
    return one


class TestGroups:
    """Flow and agent are dimensions that a conversation carries."""

    @staticmethod
    def talk(id: str, turns: int, **dimensions: str) -> Conversation:
        said = [each for number in range(turns) for each in (user(f"question {number}"), agent("yes"))]
        return chat(*said, id=id, dimensions=dimensions)

    @pytest.fixture
    def conversations(self) -> list[Conversation]:
        return [
            self.talk("a", 1, flow="book", agent="ada"),
            self.talk("b", 4, flow="book", agent="ada"),
            self.talk("c", 6, flow="book", agent="bob"),
            self.talk("d", 2, flow="cancel", agent="ada"),
            self.talk("e", 9, flow="cancel"),  # nobody knows which agent
        ]

    def test_each_cell_of_flow_and_agent(self, score: Score, conversations: list[Conversation]) -> None:
        run = score(conversations, "conversation.turns", by=[("flow", "agent")])
        cells = {
            (one.by["flow"], one.by["agent"]): (one.conversations, one.metrics[0].value) for one in run.summary.groups
        }
        # (1 + 4) ÷ 2; 6; 2. Nobody cancelled with Bob, so there is no such cell.
        assert cells == {("book", "ada"): (2, 2.5), ("book", "bob"): (1, 6.0), ("cancel", "ada"): (1, 2.0)}

    def test_and_the_whole_beside_them(self, score: Score, conversations: list[Conversation]) -> None:
        run = score(conversations, "conversation.turns", by=[("flow",), ("flow", "agent")])
        assert headline_of(run, "conversation.turns").value == 4.4  # (1 + 4 + 6 + 2 + 9) ÷ 5
        flows = {one.by["flow"]: one.metrics[0].value for one in run.summary.groups if list(one.by) == ["flow"]}
        assert flows == {"book": pytest.approx(11 / 3), "cancel": 5.5}  # (1 + 4 + 6) ÷ 3, (2 + 9) ÷ 2

    def test_each_cell_has_its_own_coverage(self, score: Score) -> None:
        booked = chat(user("hi"), call("book"), result("book", success=True), id="a", dimensions={"flow": "book"})
        failed = chat(user("hi"), call("book"), result("book", success=False), id="b", dimensions={"flow": "book"})
        talked = chat(user("hi"), agent("hello"), id="c", dimensions={"flow": "chat"})
        run = score([booked, failed, talked], "tools.success", by=[("flow",)])
        booking, talking = run.summary.groups
        (book,) = booking.metrics
        assert (book.value, book.coverage, book.n) == (0.5, 1.0, 2)  # 1 of 2 calls
        assert (booking.not_measured, talking.metrics) == ([], [])
        (talk,) = talking.not_measured
        assert (talk.metrics, talk.status, talk.reason) == (["tools.success"], "not_applicable", "no_tool_calls")
        assert (talk.samples_total, talk.samples_not_applicable, talk.skipped_reasons) == (1, 1, {"no_tool_calls": 1})


@derived(
    "test.correct",
    version=1,
    over="conversation",
    unit=SHARE,
    better=HIGHER,
    inputs=("answer.exact_match", "conversation.turns"),
)
def correct(exact: float, turns: float) -> float:
    """Was the right answer given within two turns?"""
    return float(exact >= 1 and turns <= 2)


class TestComposite:
    def answered(self, id: str, answer: str, turns: int, truth: str | None = "Paris") -> Conversation:
        said = [each for _ in range(turns) for each in (user("?"), agent(answer))]
        return chat(*said, id=id, expected=Expected(ground_truth=truth))

    @pytest.fixture
    def run(self, score: Score) -> Run:
        conversations = [
            self.answered("a", "Paris", 1),  # both met: 1
            self.answered("b", "Paris", 3),  # too long: 0
            self.answered("c", "London", 1),  # wrong: 0
            self.answered("d", "Paris", 1, truth=None),  # one of them unmeasured
            self.answered("e", "Paris", 1, truth=""),  # one of them without an opportunity
            self.answered("f", "Paris", 2),  # both met: 1
        ]
        return score(conversations, correct)

    def test_all_thresholds_met_or_not(self, run: Run) -> None:
        scores = {one.conversation: one.value for one in run.scores("test.correct", all=True)}
        assert scores == {"a": 1.0, "b": 0.0, "c": 0.0, "d": None, "e": None, "f": 1.0}

    def test_null_while_a_component_is_and_the_component_is_named(self, run: Run) -> None:
        missing = {
            one.conversation: one.observation for one in run.scores("test.correct", all=True) if one.value is None
        }
        unknown, empty = missing["d"], missing["e"]
        assert (unknown.status, unknown.reason, unknown.detail) == (
            "unmeasured",
            "input_no_ground_truth",
            "answer.exact_match",
        )
        assert (empty.status, empty.reason, empty.detail) == (
            "not_applicable",
            "input_empty_ground_truth",
            "answer.exact_match",
        )

    def test_it_is_reduced_like_any_other(self, run: Run) -> None:
        one = headline_of(run, "test.correct")
        assert one.value == 0.5  # 2 of 4
        assert one.coverage == 0.8  # 4 ÷ (6 − 1)
        assert one.skipped_reasons == {"input_empty_ground_truth": 1, "input_no_ground_truth": 1}

    def test_its_inputs_came_along(self, run: Run) -> None:
        assert {one.metric for one in run.summary.figures} == {
            "answer.exact_match",
            "conversation.turns",
            "test.correct",
        }


class TestPassK:
    @pytest.mark.parametrize(
        ("trials", "passed", "k", "at_k", "hat_k", "theoretical"),
        [
            # 10 pairs of 5: 3 of them hold no pass, 1 holds two passes; (2/5)²
            (5, 2, 2, 1 - 3 / 10, 1 / 10, 0.16),
            (5, 2, 1, 2 / 5, 2 / 5, 2 / 5),
            # 10 triples of 5: 1 without a pass, none of passes alone; (2/5)³
            (5, 2, 3, 1 - 1 / 10, 0.0, 0.064),
            (5, 2, 4, 1.0, 0.0, 0.0256),  # any four hold a pass
            (4, 4, 2, 1.0, 1.0, 1.0),
            (4, 0, 2, 0.0, 0.0, 0.0),
            (3, 2, 3, 1.0, 0.0, 8 / 27),
        ],
    )
    def test_by_counting_the_draws(
        self, trials: int, passed: int, k: int, at_k: float, hat_k: float, theoretical: float
    ) -> None:
        assert pass_at_k(trials, passed, k) == pytest.approx(at_k)
        assert pass_hat_k(trials, passed, k) == pytest.approx(hat_k)
        assert pass_hat_k_theoretical(trials, passed, k) == pytest.approx(theoretical)

    @pytest.mark.parametrize("figure", [pass_at_k, pass_hat_k, pass_hat_k_theoretical])
    def test_fewer_trials_than_k_say_nothing(self, figure: Callable[[int, int, int], float | None]) -> None:
        assert figure(2, 2, 3) is None
        assert figure(0, 0, 1) is None

    def test_trials_are_grouped_by_scenario(self) -> None:
        samples = [
            GroupSample("a", {"scenario_id": "s1"}, MEASURED, 1.0),
            GroupSample("b", {"scenario_id": "s2"}, MEASURED, 0.0),
            GroupSample("c", {"scenario_id": "s1"}, MEASURED, 0.6),
            GroupSample("d", {}, MEASURED, 0.9),
        ]
        assert by_scenario(samples, passes_at=0.9) == {"s1": (2, 1), "s2": (1, 0), "d": (1, 1)}

    def test_a_trial_without_a_value_is_none_and_one_without_an_opportunity_is_not_there(self) -> None:
        samples = [
            GroupSample("a", {"scenario_id": "s1"}, MEASURED, 1.0),
            GroupSample("b", {"scenario_id": "s1"}, UNMEASURED, None),
            GroupSample("c", {"scenario_id": "s1"}, NOT_APPLICABLE, None),
            GroupSample("d", {"scenario_id": "s2"}, ERROR, None),
            GroupSample("e", {"scenario_id": "s3"}, NOT_APPLICABLE, None),
        ]
        assert by_scenario(samples, passes_at=1.0) == {"s1": (1, 1), "s2": (0, 0)}


PassK = Callable[[int, int, int], float | None]


def over_trials(name: str, figure: PassK, k: int = 2) -> Derived:
    @derived(
        name,
        version=1,
        over="group",
        unit=SHARE,
        better=HIGHER,
        inputs=("answer.exact_match",),
        unscored="too_few_trials",
    )
    def per_scenario(samples: list[GroupSample]) -> Mapping[str, float | None]:
        """Do trials of one scenario pass?"""
        return {name: figure(*tally, k) for name, tally in by_scenario(samples, passes_at=1.0).items()}

    return per_scenario


class TestTrials:
    """s1 passes 2 of 5 trials, s2 passes 3 of 3, s3 was tried once."""

    @pytest.fixture
    def conversations(self) -> list[Conversation]:
        tries = {"s1": "10010", "s2": "111", "s3": "1"}
        return [
            chat(
                user("?"),
                agent("Paris" if passed == "1" else "London"),
                id=f"{scenario}-{number}",
                expected=Expected(ground_truth="Paris"),
                dimensions={"scenario_id": scenario, "agent": "ada" if scenario == "s1" else "bob"},
            )
            for scenario, results in tries.items()
            for number, passed in enumerate(results)
        ]

    @pytest.mark.parametrize(
        ("name", "figure", "value"),
        [
            ("test.pass_at_2", pass_at_k, (0.7 + 1) / 2),  # s1: 1 − 3/10
            ("test.pass_hat_2", pass_hat_k, (0.1 + 1) / 2),  # s1: 1/10
            ("test.pass_hat_2_theoretical", pass_hat_k_theoretical, (0.16 + 1) / 2),  # s1: (2/5)²
        ],
    )
    def test_the_mean_over_scenarios(
        self, score: Score, conversations: list[Conversation], name: str, figure: PassK, value: float
    ) -> None:
        one = headline_of(score(conversations, over_trials(name, figure)), name)
        assert one.value == pytest.approx(value)
        # Scenarios are the samples; s3 has fewer trials than 2.
        assert (one.samples_total, one.samples_measured, one.samples_skipped) == (3, 2, 1)
        assert one.skipped_reasons == {"too_few_trials": 1}
        assert one.coverage == pytest.approx(2 / 3)

    def test_within_each_group(self, score: Score, conversations: list[Conversation]) -> None:
        run = score(conversations, over_trials("test.pass_at_2", pass_at_k), by=[("agent",)])
        groups = {one.by["agent"]: figures(one.metrics, "test.pass_at_2")[0] for one in run.summary.groups}
        assert groups["ada"].value == pytest.approx(0.7)  # s1 alone
        assert (groups["bob"].value, groups["bob"].samples_skipped) == (1.0, 1)  # s2; s3 was tried once

    def test_without_enough_trials_anywhere_there_is_no_figure(
        self, score: Score, conversations: list[Conversation]
    ) -> None:
        one = headline_of(score(conversations, over_trials("test.pass_at_9", pass_at_k, k=9)), "test.pass_at_9")
        assert (one.value, one.status, one.reason) == (None, "unmeasured", "too_few_trials")
        assert one.skipped_reasons == {"too_few_trials": 3}

    def test_a_scenario_that_nobody_could_measure_is_skipped_and_not_lost(
        self, score: Score, conversations: list[Conversation]
    ) -> None:
        for scenario, truth in (("untold", None), ("untold", None), ("empty", ""), ("empty", "")):
            conversations.append(
                chat(
                    user("?"),
                    agent("Paris"),
                    id=f"{scenario}-{len(conversations)}",
                    expected=Expected(ground_truth=truth),
                    dimensions={"scenario_id": scenario},
                )
            )
        one = headline_of(score(conversations, over_trials("test.pass_at_2", pass_at_k)), "test.pass_at_2")
        # s1, s2, s3 and untold; s3 was tried once, untold has no trial, and empty had no opportunity.
        assert (one.samples_total, one.samples_measured, one.samples_skipped) == (4, 2, 2)
        assert one.skipped_reasons == {"too_few_trials": 2}
        assert one.value == pytest.approx((0.7 + 1) / 2)
        assert one.coverage == 0.5

    def test_null_while_its_input_is(self, score: Score) -> None:
        untold = chat(user("?"), agent("Paris"), dimensions={"scenario_id": "s1"})
        one = headline_of(score([untold], over_trials("test.pass_at_2", pass_at_k)), "test.pass_at_2")
        assert (one.value, one.status, one.reason) == (None, "unmeasured", "input_no_ground_truth")


class TestOneNumberOverAGroup:
    SAMPLES = [
        GroupSample("a", {}, MEASURED, 3.0),
        GroupSample("b", {}, MEASURED, 1.0),
        GroupSample("c", {}, MEASURED, 2.0),
    ]

    def spread(self, result: float | None) -> Derived:
        @derived("test.spread", version=1, over="group", unit="x", better=HIGHER, inputs=("test.metric",))
        def one(samples: list[GroupSample]) -> float | None:
            """Largest minus smallest."""
            assert samples == self.SAMPLES
            return result

        return one

    def test_it_is_the_figure(self) -> None:
        known = headline(reduced_by("mean"), values(3), values(1), values(2))
        one = derived_figure(self.spread(2.0), [(known, self.SAMPLES)])
        assert (one.value, one.status, one.samples_total, one.judge) == (2.0, "measured", 1, "(derived)")

    def test_none_is_unscored(self) -> None:
        known = headline(reduced_by("mean"), values(3), values(1), values(2))
        one = derived_figure(self.spread(None), [(known, self.SAMPLES)])
        assert (one.value, one.status, one.reason) == (None, "unmeasured", "not_enough")

    def test_it_is_not_asked_while_an_input_is_null(self) -> None:
        unknown = headline(reduced_by("mean"), [unmeasured(values(1)[0].subject, "no_clock")])
        one = derived_figure(self.spread(2.0), [(unknown, [])])
        assert (one.value, one.reason) == (None, "input_no_clock")


VERDICTS = {"a": {"p/x": 1, "p/y": 5, "p/z": 3}, "b": {"p/x": 2, "p/y": 2, "p/z": 9}}


@metric("test.judged", version=1, observes=CONVERSATION, unit="points", better=HIGHER)
def judged(conversation: Conversation) -> Iterator[Observation]:
    """How good is it, as three judges see it?"""
    for judge, points in VERDICTS[conversation.id].items():
        yield measured(conversation, points, judge=judge)


@derived("test.good", version=1, over="conversation", unit=SHARE, better=HIGHER, inputs=("test.judged",))
def good(points: float) -> float:
    """Is it worth three points or more?"""
    return float(points >= 3)


class TestJudges:
    @pytest.fixture
    def run(self, score: Score) -> Run:
        return score([chat(user("hi"), id="a"), chat(user("hi"), id="b")], judged, good)

    def test_each_judge_and_the_panel_have_a_figure(self, run: Run) -> None:
        found = {one.judge: one.value for one in figures(run.summary.figures, "test.judged")}
        assert found == {
            "p/x": 1.5,  # (1 + 2) ÷ 2
            "p/y": 3.5,  # (5 + 2) ÷ 2
            "p/z": 6.0,  # (3 + 9) ÷ 2
            panel_name(["p/x", "p/y", "p/z"]): 2.5,  # medians 3 and 2
        }

    def test_what_derives_from_them_takes_the_panels_word(self, run: Run) -> None:
        assert {one.conversation: one.value for one in run.scores("test.good")} == {"a": 1.0, "b": 0.0}
