"""SQL over runs: the views, their columns, several runs at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import convoscope
from convoscope.conversation import Conversation, Flow, FlowState, Outcome, Participant, StateEntered, Text, Utterance
from convoscope.errors import UsageError
from convoscope.metrics import CONVERSATION, HIGHER, SHARE, TenPoints, measured, metric
from convoscope.metrics.score import Observation as Seen
from convoscope.runs.sql import query
from generated import FEW, write_lines

STATE_COLUMNS = [
    "run",
    "conversation",
    "flow",
    "agent",
    "state",
    "segment",
    "visits",
    "progress",
    "stall",
    "escalation",
    "revisit",
    "dwell_turns",
    "latency_p95_ms",
    "guard_error",
    "slot_fill_rate",
    "to_states",
]
ASPECT_COLUMNS = [
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
def run(tmp_path_factory: pytest.TempPathFactory) -> convoscope.Run:
    folder = tmp_path_factory.mktemp("sql")
    logs = write_lines(folder / "chats.jsonl", range(20))
    return convoscope.score(logs, metrics=FEW, out=folder / "one", workers=1)


def test_scores_and_conversations(run: convoscope.Run) -> None:
    answer = query([run], "SELECT count(DISTINCT conversation) AS n FROM scores")
    assert answer == (["n"], [(20,)])
    answer = query([run], "SELECT model, count(*) FROM conversations GROUP BY 1 ORDER BY 1")
    assert answer.rows == [("model-0", 10), ("model-1", 10)]


def test_an_unmeasured_score_is_null_and_never_nan(run: convoscope.Run) -> None:
    answer = query([run], "SELECT count(*) FROM scores WHERE (status = 'measured') <> (value IS NOT NULL)")
    assert answer.rows == [(0,)]
    assert query([run], "SELECT count(*) FROM scores WHERE isnan(value)").rows == [(0,)]
    assert query([run], "SELECT count(*) FROM scores WHERE status <> 'measured' AND reason IS NULL").rows == [(0,)]


def test_several_runs_are_told_apart(run: convoscope.Run, tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "more.jsonl", range(5))
    other = convoscope.score(logs, metrics=["turns"], out=tmp_path / "two", workers=1)
    answer = query([run, other], "SELECT run, count(*) FROM conversations GROUP BY 1 ORDER BY 1")
    assert answer.rows == [("one", 20), ("two", 5)]
    assert query([run, other], "SELECT run, valid FROM runs ORDER BY 1").rows == [("one", True), ("two", True)]


def test_the_state_and_aspect_views_have_their_columns_even_when_empty(run: convoscope.Run) -> None:
    assert query([run], "SELECT * FROM state_scores") == (STATE_COLUMNS, [])
    assert query([run], "SELECT * FROM aspect_scores") == (ASPECT_COLUMNS, [])


def test_states_and_aspects_fill_the_views(tmp_path: Path) -> None:
    talk = Conversation(
        id="c1",
        dimensions={"flow": "viewing", "agent": "alpha", "persona": "hurried"},
        participants=(Participant("assistant", "assistant"),),
        flow=Flow(name="viewing", states=(FlowState(name="greet", segment="opening"),)),
        timeline=(
            StateEntered(seq=0, state="greet"),
            Utterance(seq=1, speaker="assistant", intended=Text("Hello.")),
            StateEntered(seq=2, state="collect"),
        ),
        outcome=Outcome(completed=False),
    )

    @metric(
        "mine.correctness",
        version=1,
        observes=CONVERSATION,
        unit=SHARE,
        better=HIGHER,
        aspect="correctness",
        ten=TenPoints(zero=0, ten=1),
    )
    def correctness(conversation: Conversation) -> Seen:
        """Three parts of four were right."""
        return measured(conversation, 0.75)

    run = convoscope.score([talk], metrics=[correctness], out=tmp_path / "run", workers=1)
    answer = query([run], "SELECT state, flow, segment, progress, stall, to_states FROM state_scores ORDER BY state")
    # It went from greet to collect, and no further, unfinished.
    assert answer.rows == [
        ("collect", "viewing", None, 0, 1, []),
        ("greet", "viewing", "opening", 1, 0, ["collect"]),
    ]
    answer = query([run], "SELECT aspect, agent, persona, judge, score, value, unit FROM aspect_scores")
    assert answer.rows == [("correctness", "alpha", "hurried", "(computed)", 7.5, 0.75, "share")]


def test_a_bad_query_is_a_clear_error(run: convoscope.Run) -> None:
    with pytest.raises(UsageError, match="nonsense"):
        query([run], "SELECT nonsense FROM scores")


def test_no_run_to_ask_is_a_clear_error() -> None:
    with pytest.raises(UsageError, match="no run"):
        query([], "SELECT 1")
