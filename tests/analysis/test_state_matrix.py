"""The state matrix: means over conversations, worst first, and what is not among them (flow-states, tier 1 matrix)."""

from __future__ import annotations

from pathlib import Path

import pytest

import convoscope
from convoscope.analysis.flows.state_table import Excluded, Neighbour, StateFigures
from convoscope.conversation.flow import Flow, FlowState
from convoscope.errors import RunError, UsageError
from convoscope.runs.run import Run
from support.flow_conversations import call, entered, exited, filled, guard, path, says, scored, states, turn

VET = Flow(
    name="vet",
    states=(
        FlowState(name="greet", lifecycle_phase="greeting"),
        FlowState(name="collect", speech_act="ask", required_slots=("pet", "day")),
        FlowState(name="done", terminal="success"),
        FlowState(name="voicemail", speech_act="static"),
    ),
)

SMOOTH = call(
    *(entered("greet"), exited("greet", "collect")),
    *(
        entered("collect"),
        turn(100),
        filled("pet"),
        turn(200),
        filled("day"),
        exited("collect", "done"),
        entered("done"),
    ),
    flow=VET,
    agent="ann",
    completed=True,
)
STUCK = call(
    *(entered("greet"), filled("pet"), exited("greet", "collect")),
    *(entered("collect"), turn(1000), guard("timeout")),
    flow=VET,
    agent="ann",
    completed=False,
)
HANDED_OVER = call(
    *path("greet", "collect"),
    *(turn(300), exited("collect", "greet"), *path("greet", "collect"), turn(400), exited("collect", "escalated")),
    entered("escalated"),
    flow=VET,
    agent="ann",
    completed=False,
)
BROKEN = call(*path("greet", "collect"), turn(9999), flow=VET, agent="ann", error="backend absent")
CHAT = call(says("Hello."), flow=VET, agent="ann")
PIZZA = call(*path("ask", "pay"), flow="pizza", agent="ann", completed=True)
BOBS = call(*path("greet", "collect"), turn(2000), flow=VET, agent="bob", completed=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scored([SMOOTH, STUCK, HANDED_OVER, BROKEN, CHAT, PIZZA], tmp_path_factory.mktemp("matrix"))


@pytest.fixture(scope="module")
def bobs(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scored([BOBS, BROKEN], tmp_path_factory.mktemp("bobs"), "bobs")


def figures(run: Run, state: str) -> StateFigures:
    return next(row for row in convoscope.states(run).matrix().rows if row.state == state)


class TestMeans:
    def test_of_conversations_and_visits(self, run: Run) -> None:
        collect = figures(run, "collect")
        # Three conversations were in it; the third twice. The broken one is in no figure.
        assert (collect.flow, collect.segment, collect.n, collect.visits) == ("vet", "collect", 3, 4)

    def test_rates_with_their_wilson_intervals(self, run: Run) -> None:
        collect, greet = figures(run, "collect"), figures(run, "greet")
        # Only the first got on (→ done); collect → greet goes back, collect → escalated is an escalation: 1 of 3.
        assert collect.progress.value == pytest.approx(1 / 3)
        # Wilson, z = 1.959964, z² = 3.841459, n = 3: the middle is (1/3 + z²/6) ÷ (1 + z²/3) = 0.973576 ÷ 2.280486
        # = 0.426916; half of it z · √(2/27 + z²/36) ÷ 2.280486 = 1.959964 · 0.425184 ÷ 2.280486 = 0.365424.
        assert (collect.progress.low, collect.progress.high) == pytest.approx((0.061492, 0.792340), abs=1e-5)
        # The second is stuck in it; the third ended in escalated: 1 of 3.
        assert collect.stall.value == pytest.approx(1 / 3)
        assert collect.escalation.value == pytest.approx(1 / 3)
        # 3 of 3: from n ÷ (n + z²) = 3 ÷ 6.841459 = 0.438503 to 1; 0 of 3: up to z² ÷ (n + z²) = 0.561497.
        assert greet.progress.value == 1.0
        assert (greet.progress.low, greet.progress.high) == pytest.approx((0.438503, 1.0), abs=1e-5)
        assert (greet.stall.low, greet.stall.high) == pytest.approx((0.0, 0.561497), abs=1e-5)

    def test_counts_with_their_intervals(self, run: Run) -> None:
        collect = figures(run, "collect")
        # 0, 0, 1: mean 1/3, standard error 1/3, skewness 0.70711 ÷ √3 = 0.408248, t of 2 degrees 4.30265. Hall's
        # inverse of −t: 3/0.408248 · (∛(1 − 0.408248 · (4.30265 + 0.068041)) − 1) = −14.1255; 1/3 + 14.1255/3 = 5.0418
        assert collect.revisit.value == pytest.approx(1 / 3)
        assert (collect.revisit.low, collect.revisit.high) == (0.0, pytest.approx(5.0418, abs=1e-4))
        # 2 turns ÷ 1, 1 ÷ 1, 2 ÷ 2 visits: (2 + 1 + 1) ÷ 3.
        assert collect.dwell_turns.value == pytest.approx(4 / 3)
        # One guard error in three conversations.
        assert (collect.guard_error.value, collect.guard_errors) == (pytest.approx(1 / 3), 1)

    def test_latency_is_over_all_turns_not_a_mean_of_percentiles(self, run: Run) -> None:
        collect = figures(run, "collect")
        # 100 200 300 400 1000: place 0.95 · 4 = 3.8 → 400 + 0.8 · 600 = 880. The mean of 195, 1000, 395 were 530.
        assert collect.latency_p95_ms == pytest.approx(880.0)
        assert collect.latency_n == 5
        assert figures(run, "greet").latency_p95_ms is None

    def test_slots(self, run: Run) -> None:
        collect, greet = figures(run, "collect"), figures(run, "greet")
        # 2 of 2, 0 of 2 (pet came before), 0 of 2.
        assert collect.slot_fill_rate.value == pytest.approx(1 / 3)
        assert collect.slot_ready_rate.value == pytest.approx(0.5)  # (1 + ½ + 0) ÷ 3
        assert collect.front_loaded == 1
        assert (greet.slot_fill_rate.value, greet.slot_fill_rate.reason) == (None, "nothing_required")
        assert figures(run, "ask").slot_fill_rate.reason == "no_flow_definition"
        assert figures(run, "escalated").slot_fill_rate.reason == "state_not_declared"

    def test_what_nobody_measured_is_null_with_a_reason(self, run: Run) -> None:
        pay = figures(run, "pay")
        assert (pay.dwell_turns.value, pay.dwell_turns.reason) == (None, "no_turns_logged")

    def test_few_are_said(self, run: Run) -> None:
        assert figures(run, "collect").caution == "n=3: too few to conclude"

    def test_an_unknown_outcome_is_no_stall(self, tmp_path: Path) -> None:
        one = call(*path("a", "b"), flow="f")
        b = figures(scored([one], tmp_path), "b")
        assert (b.stall.value, b.stall.n, b.stall.reason) == (None, 0, "outcome_unknown")


class TestOrder:
    def test_stall_falls_progress_rises_n_falls(self, run: Run) -> None:
        rows = convoscope.states(run).matrix().rows
        assert [(row.state, row.stall.value, row.progress.value, row.n) for row in rows] == [
            ("escalated", 1.0, 0.0, 1),
            ("collect", pytest.approx(1 / 3), pytest.approx(1 / 3), 3),
            ("pay", 0.0, 0.0, 1),
            ("done", 0.0, 0.0, 1),
            ("greet", 0.0, 1.0, 3),
            ("ask", 0.0, 1.0, 1),
        ]


class TestAround:
    def test_neighbours_with_counts_where_a_flow_is_asked_for(self, run: Run) -> None:
        rows = {row.state: row for row in convoscope.states(run, flow="vet").matrix().rows}
        assert set(rows) == {"greet", "collect", "done", "escalated"}
        assert rows["greet"].led_to == (Neighbour(state="collect", transitions=4, conversations=3),)  # 1 + 1 + 2
        assert rows["greet"].came_from == (Neighbour(state="collect", transitions=1, conversations=1),)
        assert rows["collect"].led_to == tuple(
            Neighbour(state=state, transitions=1, conversations=1) for state in ("done", "escalated", "greet")
        )
        assert rows["collect"].came_from == (Neighbour(state="greet", transitions=4, conversations=3),)
        assert rows["done"].led_to == ()

    def test_else_only_where_they_are_asked_for(self, run: Run) -> None:
        states = convoscope.states(run)
        assert states.matrix().rows[0].led_to is None
        assert states.matrix(neighbours=True).rows[0].led_to == ()


class TestBeside:
    def test_a_state_that_nobody_was_in_is_untested_not_failed(self, run: Run) -> None:
        found = convoscope.states(run).matrix()
        assert [(one.flow, one.state, one.segment) for one in found.untested] == [("vet", "voicemail", "collect")]
        assert "voicemail" not in {row.state for row in found.rows}

    def test_the_broken_are_counted_with_their_reason(self, run: Run) -> None:
        found = convoscope.states(run).matrix()
        assert found.excluded == (Excluded(flow="vet", reason="backend absent", n=1),)
        assert found.conversations == 4
        assert found.without_states == 1

    def test_a_state_that_only_the_broken_were_in_is_untested(self, tmp_path: Path) -> None:
        found = convoscope.states(scored([BROKEN], tmp_path)).matrix()
        assert found.rows == ()
        assert [one.state for one in found.untested] == ["greet", "collect", "done", "voicemail"]


class TestSeveralRuns:
    def test_their_conversations_are_put_together(self, run: Run, bobs: Run) -> None:
        found = convoscope.states([run, bobs]).matrix()
        collect = next(row for row in found.rows if row.state == "collect")
        assert (collect.n, collect.stall.value) == (4, 0.5)  # 1 of 3 and 1 of 1
        # 100 200 300 400 1000 2000: place 4.75 → 1000 + 0.75 · 1000 = 1750.
        assert collect.latency_p95_ms == pytest.approx(1750.0)
        assert found.excluded == (Excluded(flow="vet", reason="backend absent", n=2),)

    def test_one_agent(self, run: Run, bobs: Run) -> None:
        found = convoscope.states([run, bobs], agent="bob").matrix()
        assert {row.state: row.n for row in found.rows} == {"collect": 1, "greet": 1}
        assert found.excluded == ()

    def test_one_flow(self, run: Run, bobs: Run) -> None:
        found = convoscope.states([run, bobs], flow="pizza").matrix()
        assert [row.state for row in found.rows] == ["pay", "ask"]
        assert (found.untested, found.excluded, found.without_states) == ((), (), 0)

    def test_nobody_has_that_name(self, run: Run) -> None:
        with pytest.raises(UsageError, match="no conversation has the flow 'vett'"):
            convoscope.states(run, flow="vett").matrix()
        with pytest.raises(UsageError, match="no conversation has the agent 'eve'"):
            convoscope.states(run, agent="eve").matrix()

    def test_two_runs_of_one_name(self, run: Run) -> None:
        with pytest.raises(RunError, match="the same name"):
            convoscope.states([run, run])


def test_what_another_agent_was_in_is_not_untested(tmp_path: Path) -> None:
    flow = Flow(name="f", states=states("greet", "ask", "never"))
    run = scored(
        [
            call(*path("greet"), id="a", flow=flow, agent="ann", completed=True),
            call(*path("greet", "ask"), id="b", flow=flow, agent="bob", completed=True),
        ],
        tmp_path,
    )
    # ann was never in ask, but bob was.
    assert [one.state for one in convoscope.states(run, agent="ann").matrix().untested] == ["never"]


class TestClusters:
    def test_conversations_of_one_scenario_are_not_independent(self, tmp_path: Path) -> None:
        # Four scenarios of five calls; in two of them all calls are stuck, in two none is.
        calls = [
            call(*path("ask"), flow="pizza", completed=number >= 10, dimensions={"scenario_id": f"s{number // 5}"})
            for number in range(20)
        ]
        (row,) = convoscope.states(scored(calls, tmp_path)).matrix().rows
        assert (row.stall.value, row.stall.n) == (0.5, 20)
        # By cluster a = 5, 5, 0, 0 of b = 5: Σ(a − b/2)² = 25; variance 4/3 · 25 / 20² = 1/12, 6.6667 times ¼ ÷ 20;
        # (3 · 6.6667 + 2 · 5) ÷ 5 = 6; 20 ÷ 6 = 3.3333. Wilson at ½: ½ ± 1.959964 ÷ (2 √(3.3333 + 3.8415))
        assert row.stall.low == pytest.approx(0.1341, abs=1e-4)
        assert row.stall.high == pytest.approx(0.8659, abs=1e-4)

    def test_without_scenarios_each_conversation_counts(self, tmp_path: Path) -> None:
        calls = [call(*path("ask"), flow="pizza", completed=number >= 10) for number in range(20)]
        (row,) = convoscope.states(scored(calls, tmp_path)).matrix().rows
        # Wilson of 10 of 20: 0.5 ± 1.96 / (1 + 3.8415/20) · √(1/80 + 3.8415/1600) = 0.5 ± 0.2007.
        assert row.stall.low == pytest.approx(0.2993, abs=1e-4)
        assert row.stall.high == pytest.approx(0.7007, abs=1e-4)

    def test_a_mean_over_one_scenario_has_no_interval(self, tmp_path: Path) -> None:
        calls = [
            call(*path("ask"), turn(), flow="pizza", completed=True, dimensions={"scenario_id": "s"}) for _ in range(3)
        ]
        (row,) = convoscope.states(scored(calls, tmp_path)).matrix().rows
        assert (row.dwell_turns.value, row.dwell_turns.low, row.dwell_turns.high) == (1.0, None, None)
