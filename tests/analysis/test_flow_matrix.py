"""The flow matrix: flow × agent, aspects in points of ten, parts and judges told (flow-states, tier 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import convoscope
from convoscope.analysis.flows.flow_matrix import FlowFigures, JudgeVerdict
from convoscope.conversation import Conversation, Label
from convoscope.conversation.flow import Flow, FlowState
from convoscope.metrics.flow.aspects import completion, correctness, errors, final_status
from convoscope.runs.run import Run
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import observe
from support.flow_conversations import answered, call, called, entered, exited, filled, guard, path, scored, turn

BOOKING = Flow(
    name="booking",
    states=(
        FlowState(name="ask", required_slots=("name",)),
        FlowState(name="upsell", required_slots=("extra",)),
        FlowState(name="done", terminal="success"),
        FlowState(name="lost", terminal="failure"),
    ),
    completion_slots=("ref",),
    final_status=("booked",),
)


def judged(**values: float) -> tuple[Label, ...]:
    kinds = {"bot": "external"}
    return tuple(
        Label(name="humanness", value=value, rater=rater, rater_kind=kinds.get(rater, "human"))
        for rater, value in values.items()
    )


BOOKED = call(
    *(entered("ask"), turn(1000), filled("name"), turn(2000), filled("ref"), exited("ask", "done"), entered("done")),
    flow=BOOKING,
    agent="ann",
    completed=True,
    stop="terminal",
    status="booked",
    labels=judged(eve=0.8, joe=0.6, bot=0.9),
)
CUT = call(
    *(entered("ask"), filled("name"), filled("ref"), called(), answered(False), guard("boom"), turn(3000)),
    flow=BOOKING,
    agent="ann",
    completed=False,
    stop="max_turns",
    status="abandoned",
    labels=judged(eve=0.4, joe=0.6, bot=0.5),
)
TWELVE_ERRORS = call(
    *(entered("ask"), *[guard("boom") for _ in range(12)]),
    flow=BOOKING,
    agent="bob",
    completed=False,
    status="abandoned",
)
BROKEN = call(entered("ask"), turn(9), flow=BOOKING, agent="ann", error="no backend", labels=judged(eve=0.0, joe=1.0))
UNDECLARED = call(*path("a", "b"), flow="pizza", agent="ann", completed=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scored([BOOKED, CUT, TWELVE_ERRORS, BROKEN, UNDECLARED], tmp_path_factory.mktemp("flows"))


def row(run: Run, flow: str, agent: str) -> FlowFigures:
    (one,) = [one for one in convoscope.states(run).flows().rows if (one.flow, one.agent) == (flow, agent)]
    return one


def only(metric: Any, conversation: Conversation) -> Observation:
    (one,) = observe(metric, conversation)
    return one


class TestCorrectness:
    def test_three_equal_parts(self, run: Run) -> None:
        ann = row(run, "booking", "ann")
        # Booked: success terminal, slots, status: 3/3. Cut: slots only: 1/3. 10 × (1 + 1/3) ÷ 2 = 6.667.
        assert ann.correctness.score == pytest.approx(20 / 3)
        assert ann.correctness.n == 2
        assert {name: part.score for name, part in ann.parts.items()} == {
            "success_terminal": 0.5,
            "slots_filled": 1.0,
            "final_status": 0.5,
        }

    def test_an_end_that_was_left_for_was_reached(self) -> None:
        one = call(entered("ask"), exited("ask", "done"), flow=BOOKING, completed=True, status="booked")
        assert only(correctness, one).value == pytest.approx(2 / 3)  # slots are missing

    def test_a_part_that_the_flow_does_not_declare_is_no_part(self) -> None:
        flow = Flow(name="f", states=(FlowState(name="ok", terminal="success"),))
        assert only(correctness, call(*path("a", "ok"), flow=flow)).value == 1.0
        assert only(correctness, call(*path("a", "b"), flow=flow)).value == 0.0

    def test_slots_of_a_state_that_did_not_run_are_not_required(self) -> None:
        slots = Flow(
            name="f", states=(FlowState(name="a", required_slots=("x",)), FlowState(name="b", required_slots=("y",)))
        )
        assert only(correctness, call(entered("a"), filled("x", 0), flow=slots)).value == 1.0
        assert only(correctness, call(*path("a", "b"), filled("x", False), flow=slots)).value == 0.0

    def test_nothing_declared_is_not_applicable(self) -> None:
        one = only(correctness, call(entered("a"), flow=Flow(name="f")))
        assert (one.status, one.reason) == ("not_applicable", "nothing_declared")

    def test_no_definition_is_unmeasured(self, run: Run) -> None:
        pizza = row(run, "pizza", "ann").correctness
        assert (pizza.score, pizza.reason, pizza.unmeasured) == (None, "no_flow_definition", 1)

    def test_without_a_status_both_ends_are_measured_by_the_other_parts(self) -> None:
        """Completed was unmeasured and not completed was 0, so that the figure could only be 0."""
        # Completed: the end, but no slots: 1 of 2. Not completed: neither, and no contract kept: 0 of 3.
        assert only(correctness, call(*path("ask", "done"), flow=BOOKING, completed=True)).value == 0.5
        assert only(correctness, call(*path("ask"), flow=BOOKING, completed=False)).value == 0.0

    @pytest.mark.parametrize("completed", [True, False, None])
    def test_without_a_status_a_contract_alone_is_unmeasured_however_it_ended(self, completed: bool | None) -> None:
        contract = Flow(name="f", states=(FlowState(name="a"),), final_status=("booked",))
        one = only(correctness, call(entered("a"), flow=contract, completed=completed))
        assert (one.status, one.reason) == ("unmeasured", "final_status_unknown")
        one = only(final_status, call(*path("ask", "done"), flow=BOOKING, completed=completed))
        assert (one.status, one.reason) == ("unmeasured", "final_status_unknown")


class TestCompletion:
    def test_flag_and_stop_reason(self, run: Run) -> None:
        assert row(run, "booking", "ann").completion.score == 5.0  # 1 of 2
        assert row(run, "pizza", "ann").completion.score == 10.0

    @pytest.mark.parametrize(
        ("completed", "stop", "expected"),
        [
            (True, "terminal", 1.0),
            (True, "max_turns", 0.0),
            (True, "hangup", 0.0),
            (False, "terminal", 0.0),
            (True, "", 1.0),
            (None, "terminal", None),
        ],
    )
    def test_both_have_to_hold(self, completed: bool | None, stop: str, expected: float | None) -> None:
        assert only(completion, call(entered("a"), completed=completed, stop=stop)).value == expected


class TestErrors:
    def test_ten_less_what_went_wrong(self, run: Run) -> None:
        # Booked: none, 10. Cut: a failed tool, a failed guard, the limit of turns: 10 − 3 = 7.
        assert row(run, "booking", "ann").errors.score == 8.5

    def test_never_below_0(self, run: Run) -> None:
        assert row(run, "booking", "bob").errors.score == 0.0  # 10 − 12

    def test_each_kind_counts(self) -> None:
        loops = path("a", "b", "a", "b", "a", "b", "a")  # a entered again three times, b twice
        assert only(errors, call(*loops)).value == 1.0
        assert only(errors, call(*loops, stop="loop_detected")).value == 2.0
        assert only(errors, call(entered("a"), stop="unsafe")).value == 1.0
        assert only(errors, call(entered("a"), called(), answered(None, error="down"))).value == 1.0
        assert only(errors, call(entered("a"), called(), answered())).value == 0.0


class TestLatency:
    def test_over_all_turns_in_seconds(self, run: Run) -> None:
        ann = row(run, "booking", "ann")
        # 1000 2000 3000: mean 2 s; place 0.95 · 2 = 1.9 → 2000 + 0.9 · 1000 = 2.9 s. The broken one's 9 ms are not in.
        assert (ann.latency_mean, ann.latency_n) == (2.0, 3)
        assert ann.latency_p95 == pytest.approx(2.9)

    def test_none(self, run: Run) -> None:
        bob = row(run, "booking", "bob")
        assert (bob.latency_mean, bob.latency_p95, bob.latency_n) == (None, None, 0)


class TestHumanness:
    def test_one_row_per_judge_and_the_panel_last(self, run: Run) -> None:
        *judges, panel = row(run, "booking", "ann").humanness
        assert judges == [
            JudgeVerdict(judge="external:bot", score=pytest.approx(7.0), n=2),  # (9 + 5) ÷ 2
            JudgeVerdict(judge="human:eve", score=pytest.approx(6.0), n=2),  # (8 + 4) ÷ 2
            JudgeVerdict(judge="human:joe", score=pytest.approx(6.0), n=2),
        ]
        # Of people alone: 8 and 6, 4 and 6. Medians 7 and 5: 6. Spreads 2 and 2. The broken one counts for nobody.
        assert panel.judge.startswith("panel:human:")
        assert (panel.score, panel.n, panel.spread) == (pytest.approx(6.0), 2, pytest.approx(2.0))

    def test_by_the_state_in_which_conversations_ended(self, run: Run) -> None:
        found = [
            one
            for one in convoscope.states(run).flows().humanness_by_ending
            if (one.flow, one.agent) == ("booking", "ann")
        ]
        said = [(one.ended_in, one.judge.partition(":")[0], one.score, one.n, one.spread) for one in found]
        # BOOKED ends in `done`, CUT in `ask`. The panel is of people: 8 and 6 there, 4 and 6 here. Each lies 2 apart.
        assert said == [
            ("ask", "external", pytest.approx(5.0), 1, None),
            ("ask", "human", pytest.approx(4.0), 1, None),
            ("ask", "human", pytest.approx(6.0), 1, None),
            ("ask", "panel", pytest.approx(5.0), 1, pytest.approx(2.0)),
            ("done", "external", pytest.approx(9.0), 1, None),
            ("done", "human", pytest.approx(8.0), 1, None),
            ("done", "human", pytest.approx(6.0), 1, None),
            ("done", "panel", pytest.approx(7.0), 1, pytest.approx(2.0)),
        ]

    def test_nobody_judged(self, run: Run) -> None:
        assert row(run, "booking", "bob").humanness == ()


class TestRows:
    def test_two_agents_never_collapse(self, run: Run) -> None:
        found = convoscope.states(run).flows()
        assert [(one.flow, one.agent, one.n, one.excluded) for one in found.rows] == [
            ("booking", "bob", 1, 0),  # correctness 0 of 3
            ("booking", "ann", 2, 1),
            ("pizza", "ann", 1, 0),  # no correctness: last
        ]
        assert sum(one.n for one in found.excluded) == 1

    def test_two_models_of_one_agent_never_collapse(self, tmp_path: Path) -> None:
        def on(model: str, *, completed: bool, agent: str = "ann") -> Conversation:
            return call(entered("a"), turn(5), flow="f", agent=agent, dimensions={"model": model}, completed=completed)

        run = scored(
            [on("small", completed=False), on("large", completed=True), on("small", completed=True, agent="bob")],
            tmp_path,
        )
        assert {one.agent: one.completion.score for one in convoscope.states(run).flows().rows} == {
            "ann on small": 0.0,
            "ann on large": 10.0,
            "bob": 10.0,
        }
        # The agent's name asks for both, the row's name for one.
        assert [one.n for one in convoscope.states(run, agent="ann").matrix().rows] == [2]
        assert [one.n for one in convoscope.states(run, agent="ann on small").matrix().rows] == [1]

    def test_a_model_stands_in_for_an_agent_without_a_name(self, tmp_path: Path) -> None:
        run = scored([call(entered("a"), flow="f", dimensions={"model": "small"}), call(entered("a"))], tmp_path)
        assert {(one.flow, one.agent) for one in convoscope.states(run).flows().rows} == {
            ("f", "small"),
            ("(no flow)", "(no agent)"),
        }

    def test_one_agent_asked_for(self, run: Run) -> None:
        assert [one.agent for one in convoscope.states(run, agent="bob").flows().rows] == ["bob"]


def test_one_figure_has_one_interval_wherever_it_is_shown(tmp_path: Path) -> None:
    """`score` and `states flows` told two, of which one took each conversation for independent."""
    conversations = [
        msgspec.structs.replace(one, id=f"{place}", dimensions={**one.dimensions, "scenario_id": f"{place % 4}"})
        for place, one in enumerate([BOOKED, CUT, BOOKED, CUT, BOOKED, BOOKED, CUT, CUT, BOOKED])
    ]
    run = scored(conversations, tmp_path)
    (row,) = convoscope.states(run).flows().rows
    figure = next(one for one in run.summary.figures if one.key == "flow.correctness")
    assert figure.interval is not None
    assert figure.interval.clusters == 4
    assert (row.correctness.low, row.correctness.high) == pytest.approx(
        (10 * figure.interval.lowest, 10 * figure.interval.highest)
    )
