"""The views `state_scores` and `aspect_scores`: their columns as the specification lists them, and their rows."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.conversation import Label
from convoscope.conversation.flow import Flow, FlowState
from convoscope.runs.run import Run
from convoscope.runs.sql import query
from support.flow_conversations import call, entered, exited, filled, guard, path, scored, turn

VET = Flow(
    name="vet",
    states=(
        FlowState(name="collect", speech_act="ask", required_slots=("pet", "day")),
        FlowState(name="done", terminal="success"),
    ),
)
DONE = call(
    *(
        entered("collect"),
        turn(100),
        turn(200),
        filled("pet"),
        guard("boom"),
        exited("collect", "done"),
        entered("done"),
    ),
    id="done",
    flow=VET,
    agent="ann",
    completed=True,
    stop="terminal",
    dimensions={"persona": "hasty"},
    labels=(Label(name="humanness", value=0.7, rater="eve"), Label(name="humanness", value=0.4, rater="joe")),
)
BROKEN = call(*path("collect", "done"), id="broken", flow=VET, agent="ann", error="no backend")
UNDECLARED = call(*path("a", "b"), id="undeclared", flow="pizza", dimensions={"model": "small"})

WHO = ("done", "vet", "ann", None, "hasty")
STATE_SCORES = ["run", "conversation", "flow", "agent", "model", "persona", "state", "segment", "visits"]
METRICS = [
    "progress",
    "stall",
    "escalation",
    "revisit",
    "dwell_turns",
    "latency_p95_ms",
    "guard_error",
    "slot_fill_rate",
    "slot_ready_rate",
    "to_states",
]
ASPECT_SCORES = [
    "run",
    "conversation",
    "flow",
    "agent",
    "persona",
    "aspect",
    "judge",
    "score",
    "value",
    "unit",
    "reason",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scored([DONE, BROKEN, UNDECLARED], tmp_path_factory.mktemp("sql"))


def ask(run: Run, sql: str) -> list[tuple[Any, ...]]:
    return query([run], sql).rows


class TestStateScores:
    def test_the_columns_and_the_metrics_of_the_seed(self, run: Run) -> None:
        assert query([run], "SELECT * FROM state_scores").columns == STATE_SCORES + METRICS

    def test_a_row_per_conversation_and_state(self, run: Run) -> None:
        columns = ", ".join([*STATE_SCORES[1:], *METRICS])
        assert ask(run, f"SELECT {columns} FROM state_scores WHERE flow = 'vet' ORDER BY state") == [
            # p95 of 100, 200 is 195; one of two slots; one guard error; two turns ÷ one visit
            (*WHO, "collect", "collect", 1, 1, 0, 0, 0, 2.0, pytest.approx(195.0), 1, 0.5, 0.5, ["done"]),
            (*WHO, "done", None, 1, 0, 0, 0, 0, 0.0, None, 0, None, None, []),
        ]

    def test_who_took_part_is_in_each_row(self, run: Run) -> None:
        rows = ask(run, "SELECT DISTINCT conversation, agent, model, persona FROM state_scores ORDER BY 1")
        assert rows == [("done", "ann", None, "hasty"), ("undeclared", "small", "small", None)]

    def test_the_broken_have_none(self, run: Run) -> None:
        assert ask(run, "SELECT DISTINCT conversation FROM state_scores ORDER BY 1") == [("done",), ("undeclared",)]

    def test_null_with_a_reason(self, run: Run) -> None:
        reasons = ask(
            run,
            "SELECT stall, reasons->>'stall', reasons->>'slot_fill_rate', agent FROM states WHERE state = 'b'",
        )
        assert reasons == [(None, "outcome_unknown", "no_flow_definition", "small")]

    def test_the_states_it_led_to_are_a_list(self, run: Run) -> None:
        assert ask(run, "SELECT unnest(to_states) FROM state_scores WHERE conversation = 'undeclared'") == [("b",)]


class TestAspectScores:
    def test_the_columns(self, run: Run) -> None:
        assert query([run], "SELECT * FROM aspect_scores").columns == ASPECT_SCORES

    def test_a_row_per_conversation_aspect_and_judge(self, run: Run) -> None:
        rows = ask(
            run,
            "SELECT flow, agent, persona, aspect, judge, score, value, unit FROM aspect_scores"
            " WHERE conversation = 'done' ORDER BY aspect, judge",
        )
        facts = ("vet", "ann", "hasty")
        *computed, eve, joe, panel = sorted(rows, key=lambda row: (row[3] == "humanness", row[3], row[4]))
        assert computed == [
            (*facts, "completion", "(computed)", 10.0, 1.0, "share"),
            # It reached the success terminal; day was not filled; there is no contract: 1 of 2.
            (*facts, "correctness", "(computed)", 5.0, 0.5, "ratio"),
            (*facts, "errors", "(computed)", 9.0, 1.0, "count"),
            # 100 and 200 ms: the mean is 0.15 s, the percentile 0.195 s. Seconds are no points.
            (*facts, "latency_mean", "(computed)", None, pytest.approx(0.15), "s"),
            (*facts, "latency_p95", "(computed)", None, pytest.approx(0.195), "s"),
        ]
        assert eve[4:6] == ("human:eve", pytest.approx(7.0))
        assert joe[4:6] == ("human:joe", pytest.approx(4.0))
        assert panel[5] == pytest.approx(5.5)
        assert panel[4].startswith("panel:")

    def test_the_broken_have_no_score(self, run: Run) -> None:
        rows = ask(run, "SELECT DISTINCT score, value, reason FROM aspect_scores WHERE conversation = 'broken'")
        assert rows == [(None, None, "conversation_errored")]

    def test_null_with_a_reason(self, run: Run) -> None:
        rows = ask(
            run,
            "SELECT aspect, score, reason FROM aspect_scores"
            " WHERE conversation = 'undeclared' AND score IS NULL ORDER BY aspect",
        )
        assert rows == [
            ("completion", None, "outcome_unknown"),
            ("correctness", None, "no_flow_definition"),
            ("humanness", None, "no_judge"),
            ("latency_mean", None, "no_latency_logged"),
            ("latency_p95", None, "no_latency_logged"),
        ]
