"""The audit: visits counted again from the events; every row that disagrees is flagged (flow-states, Audit)."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

import convoscope
from convoscope.conversation.flow import Flow, FlowState
from convoscope.runs.audit import Audit
from convoscope.runs.run import Run
from support.flow_conversations import call, entered, exited, path, says, scored

FLOW = Flow(name="vet", states=(FlowState(name="greet"), FlowState(name="collect"), FlowState(name="voicemail")))
CONVERSATIONS = [
    call(*path("greet", "collect", "greet"), flow=FLOW, id="back", completed=False),
    call(*path("greet", "collect"), flow=FLOW, id="broken", error="no backend"),
    call(says(), flow=FLOW, id="chat"),
    call(entered("greet"), exited("greet", "voicemail"), flow=FLOW, id="left", completed=False),
    call(exited("a", "b"), exited("b", "c"), id="exits"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scored(CONVERSATIONS, tmp_path_factory.mktemp("audit"))


@pytest.fixture
def run(made: Run, tmp_path: Path) -> Run:
    shutil.copytree(made.folder, tmp_path / "run")
    return Run.open(tmp_path / "run")


def audited(run: Run) -> Audit:
    return convoscope.states(run).audit()["run"]


def tamper(run: Run, rows: str) -> None:
    """Write other rows of states into the run: a query over the table `t` of those that it has."""
    (file,) = (run.folder / "states.parquet").iterdir()
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM read_parquet('{file}')")
        connection.execute(f"COPY ({rows}) TO '{file}' (FORMAT parquet)")


def stray(conversation: str, number: int) -> str:
    """The row of `left`, in the name of another conversation."""
    name = f"'{conversation}' AS conversation, {number} AS row"
    return f"SELECT * REPLACE ({name}) FROM t WHERE conversation = 'left'"


def told(found: Audit) -> list[tuple[str, str, str, int | None, int | None]]:
    assert found.disagreements == len(found.examples)
    return [(one.conversation, one.subject, one.fault, one.stored, one.counted) for one in found.examples]


def test_a_run_holds_as_it_was_made(run: Run) -> None:
    found = audited(run)
    assert (found.holds, found.disagreements) == (True, 0)
    # back: greet, collect; left: greet; exits: a, b, c. The broken one and the chat have none.
    assert (found.conversations, found.rows) == (5, 6)


def test_a_row_for_a_state_that_never_ran(run: Run) -> None:
    tamper(run, "SELECT * FROM t UNION ALL SELECT * REPLACE ('voicemail' AS state) FROM t WHERE conversation = 'left'")
    found = audited(run)
    assert told(found) == [("left", "voicemail", "never_ran", 1, None)]
    assert not found.holds
    assert str(found.examples[0]) == "vet / voicemail in left: has a row with 1 visits, and never ran"


def test_a_row_for_a_conversation_without_states(run: Run) -> None:
    tamper(run, f"SELECT * FROM t UNION ALL {stray('chat', 2)}")
    assert told(audited(run)) == [("chat", "greet", "never_ran", 1, None)]


def test_a_row_that_is_missing(run: Run) -> None:
    tamper(run, "SELECT * FROM t WHERE NOT (conversation = 'back' AND state = 'greet')")
    assert told(audited(run)) == [("back", "greet", "no_row", None, 2)]


def test_a_state_is_marked_as_untested_and_ran(run: Run) -> None:
    tamper(run, "SELECT * FROM t WHERE state <> 'collect'")
    assert told(audited(run)) == [("back", "collect", "no_row", None, 1), ("", "collect", "not_untested", None, 1)]


def test_wrong_visits(run: Run) -> None:
    tamper(run, "SELECT * REPLACE (visits + (conversation = 'back' AND state = 'greet')::INTEGER AS visits) FROM t")
    assert told(audited(run)) == [("back", "greet", "visits_differ", 3, 2)]


def test_two_rows_of_one_state(run: Run) -> None:
    tamper(run, "SELECT * FROM t UNION ALL SELECT * FROM t WHERE conversation = 'left'")
    assert told(audited(run)) == [("left", "greet", "visits_differ", 2, 1)]


def test_a_row_of_an_excluded_conversation(run: Run) -> None:
    tamper(run, f"SELECT * FROM t UNION ALL {stray('broken', 1)}")
    assert told(audited(run)) == [("broken", "greet", "excluded", 1, None)]


@pytest.mark.parametrize("number", [-1, 99])
def test_a_row_of_a_conversation_that_the_run_does_not_have(run: Run, number: int) -> None:
    tamper(run, f"SELECT * FROM t UNION ALL {stray('who', number)}")
    # And no other row is blamed for it.
    assert told(audited(run)) == [("who", "greet", "never_ran", 1, None)]


def test_no_rows_at_all(run: Run) -> None:
    tamper(run, "SELECT * FROM t WHERE false")
    faults = [one.fault for one in audited(run).examples]
    assert (faults.count("no_row"), faults.count("not_untested")) == (6, 2)


@pytest.mark.parametrize(
    ("forged", "field"),
    [("1 - progress AS progress", "progress"), ("'other' AS flow", "flow"), ("['x'] AS to_states", "to_states")],
)
def test_forged_values_are_told_when_asked_for(run: Run, forged: str, field: str) -> None:
    tamper(run, f"SELECT * REPLACE ({forged}) FROM t")
    assert {one.field for one in audited(run).examples if one.fault == "value_differs"} == {field}


def test_an_untouched_run_bears_out_every_value(run: Run) -> None:
    assert audited(run).holds
