"""What an agent writes with `convoscope.emit` is what is read back, whatever happens to the agent."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convoscope.emit
from convoscope.conversation import (
    ComponentMetric,
    GuardEvaluated,
    Marker,
    SlotFilled,
    StateEntered,
    StateExited,
    ToolCall,
    ToolResult,
)
from convoscope.emit import EventLog
from support.logs import read

SOURCE = Path(convoscope.emit.__file__)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestReadBack:
    def test_every_event_to_the_same_facts(self, tmp_path: Path) -> None:
        path = tmp_path / "logs" / "events.jsonl"
        with EventLog(path, conversation_id="c17", flow="viewing", agent="gemini", trial=2) as log:
            log.state_entered("collect")
            log.turn_complete(latency_ms=812.5, tokens_in=200, model="m-1")
            log.guard_evaluated("complete", result=False)
            log.guard_evaluated("complete", error=KeyError("budget"))
            assert log.slot_filled("pets", 0)
            assert log.slot_filled("note", "", state="greet")
            log.tool_called("book", {"day": 5}, call_id="t1")
            log.tool_result("book", error="full", call_id="t1")
            log.error("a hiccup")
            log.event("transfer", queue="desk")
            log.state_exited("collect", "booked", reason="done")
            log.state_entered("booked")
            log.conversation_ended(True, stop_reason="terminal", final_status="booked")
        outcome = read(path)
        assert outcome.report.problems == []
        assert outcome.report.unknown == {"event=transfer": 1}
        assert not any((outcome.report.repaired, outcome.report.inferred, outcome.report.set_aside))
        call = outcome.only
        assert call.id == "c17"
        assert call.dimensions == {"flow": "viewing", "agent": "gemini", "trial": "2", "model": "m-1"}
        assert [type(one) for one in call.timeline] == [
            *(StateEntered, ComponentMetric, GuardEvaluated, GuardEvaluated, SlotFilled, SlotFilled),
            *(ToolCall, ToolResult, Marker, Marker, StateExited, StateEntered, Marker),
        ]
        _, turn, held, failed, pets, note, called, answered, *_, left, _, _ = call.timeline
        assert isinstance(turn, ComponentMetric)
        assert (turn.values, turn.state) == ({"tokens_in": 200, "model": "m-1", "latency_ms": 812.5}, "collect")
        assert isinstance(held, GuardEvaluated)
        assert (held.result, held.error, held.state) == (False, "", "collect")
        assert isinstance(failed, GuardEvaluated)
        assert failed.error == "KeyError: 'budget'"
        assert isinstance(pets, SlotFilled)
        assert (pets.value, pets.state) == (0, "collect")
        assert isinstance(note, SlotFilled)
        assert (note.value, note.state) == ("", "greet")
        assert isinstance(called, ToolCall)
        assert isinstance(answered, ToolResult)
        assert (called.arguments, called.call_id) == ({"day": 5}, "t1")
        assert (answered.success, answered.error, answered.call_id) == (False, "full", "t1")
        assert isinstance(left, StateExited)
        assert (left.state, left.to_state, left.reason) == ("collect", "booked", "done")
        ended = call.outcome
        assert (ended.completed, ended.ended_reason, ended.final_status, ended.error) == (
            True,
            "terminal",
            "booked",
            "",
        )
        assert all(one.extras == {} for one in call.timeline)

    def test_a_fatal_error(self, tmp_path: Path) -> None:
        with EventLog(tmp_path / "e.jsonl", conversation_id=17) as log:
            log.state_entered("a")
            log.error(ConnectionError("gone"), fatal=True)
        assert read(tmp_path / "e.jsonl").only.outcome.error == "ConnectionError: gone"

    def test_each_line_stands_for_itself(self, tmp_path: Path) -> None:
        before = time.time()
        with EventLog(tmp_path / "e.jsonl", conversation_id="c", flow="f") as log:
            log.state_entered("a")
            log.turn_complete()
            log.state_entered("b")
        told = lines(tmp_path / "e.jsonl")
        assert [(one["conversation_id"], one["flow"], one["seq"]) for one in told] == [("c", "f", n) for n in (1, 2, 3)]
        times = [one["timestamp"] for one in told]
        assert before <= times[0] <= times[1] <= times[2] <= time.time()


class TestSlots:
    def test_once(self, tmp_path: Path) -> None:
        with EventLog(tmp_path / "e.jsonl", conversation_id="c") as log:
            log.state_entered("a")
            assert log.slot_filled("name", "Ada") is True
            log.state_entered("b")
            assert log.slot_filled("name", "Bo") is False
            assert log.slot_filled("agrees", False) is True
        filled = [one for one in lines(tmp_path / "e.jsonl") if one["event"] == "slot_filled"]
        assert [(one["slot"], one["value"], one["state"]) for one in filled] == [
            ("name", "Ada", "a"),
            ("agrees", False, "b"),
        ]

    def test_none_is_not_committed(self, tmp_path: Path) -> None:
        with EventLog(tmp_path / "e.jsonl", conversation_id="c") as log:
            with pytest.raises(ValueError, match="not committed"):
                log.slot_filled("name", None)
            assert log.slot_filled("name", "Ada")

    def test_another_conversation_has_slots_of_its_own(self, tmp_path: Path) -> None:
        path = tmp_path / "e.jsonl"
        with EventLog(path, conversation_id="c") as one, EventLog(path, conversation_id="d") as other:
            assert one.slot_filled("name", "Ada")
            assert other.slot_filled("name", "Bo")
        assert [one["conversation_id"] for one in lines(path)] == ["c", "d"]


class TestWrongUse:
    @pytest.mark.parametrize("id", ["", "  ", None, True])
    def test_no_conversation(self, tmp_path: Path, id: Any) -> None:
        with pytest.raises(ValueError, match="id of its conversation"):
            EventLog(tmp_path / "e.jsonl", conversation_id=id)

    def test_every_mistake_is_told_and_writes_nothing(self, tmp_path: Path) -> None:
        log = EventLog(tmp_path / "e.jsonl", conversation_id="c")
        wrong: list[tuple[str, Any, Any]] = [
            ("state must be a name", log.state_entered, ("",)),
            ("state must be a name", log.state_entered, (None,)),
            ("to_state must be a name", log.state_exited, ("a", "")),
            ("number of milliseconds", log.turn_complete, ("fast",)),
            ("number of milliseconds", log.turn_complete, (float("nan"),)),
            ("number of milliseconds", log.turn_complete, (-1,)),
            ("guard must be a name", log.guard_evaluated, ("",)),
            ("slot must be a name", log.slot_filled, (7, 1)),
            ("True or False", log.conversation_ended, ("yes",)),
        ]
        for message, method, given_ in wrong:
            with pytest.raises(ValueError, match=message):
                method(*given_)
        with pytest.raises(ValueError, match="reserved for state_entered: seq"):
            log.state_entered("a", seq=4)
        with pytest.raises(ValueError, match="reserved for the log: event"):
            EventLog(tmp_path / "e.jsonl", conversation_id="c", event="x")
        log.close()
        log.close()
        with pytest.raises(ValueError, match="is closed"):
            log.state_entered("a")
        assert (tmp_path / "e.jsonl").read_bytes() == b""


class Hostile:
    """An object that nothing can be done with."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


class TestValuesThatAreNoJson:
    def test_they_become_text(self, tmp_path: Path) -> None:
        circle: list[Any] = []
        circle.append(circle)
        values = [{1, 2}, b"raw", float("nan"), Path("x"), Hostile(), circle, {(1, 2): 3}, 10**5000, "\ud800", 1 + 2j]
        with EventLog(tmp_path / "e.jsonl", conversation_id="c") as log:
            for number, value in enumerate(values):
                assert log.slot_filled(f"s{number}", value)
                log.guard_evaluated("g", result=value)
            log.tool_called("t", {"deep": Hostile()})
            log.error(Hostile())
            assert log.lost == 0
        told = lines(tmp_path / "e.jsonl")
        assert len(told) == 2 * len(values) + 2
        slots = [one["value"] for one in told if one["event"] == "slot_filled"]
        assert slots[0] == [1, 2]
        assert slots[1:5] == ["b'raw'", "nan", "PosixPath('x')", "<Hostile>"]
        assert slots[6:8] == [{"(1, 2)": 3}, "<int>"]
        outcome = read(tmp_path / "e.jsonl")
        assert outcome.report.problems == []

    @given(
        value=st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
            max_leaves=8,
        )
    )
    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    def test_any_value_is_one_line(self, tmp_path: Path, value: Any) -> None:
        path = tmp_path / "e.jsonl"
        path.unlink(missing_ok=True)
        with EventLog(path, conversation_id="c") as log:
            log.guard_evaluated("g", result=value)
            log.tool_called("t", value, note=value)
        assert [one["event"] for one in lines(path)] == ["guard_evaluated", "tool_called"]


AGENT = """
import sys, time
from {module} import EventLog
log = EventLog(sys.argv[1], conversation_id=sys.argv[2], flow="f")
for number in range(int(sys.argv[3])):
    log.state_entered(f"s{{number}}")
    log.turn_complete(latency_ms=number, note="x" * (number % 700))
print("done", flush=True)
"""


def agent(*arguments: object, module: str = "convoscope.emit", **more: Any) -> subprocess.Popen[str]:
    code = AGENT.format(module=module)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)


class TestProcesses:
    def test_a_process_that_is_killed_leaves_a_readable_log(self, tmp_path: Path) -> None:
        path = tmp_path / "e.jsonl"
        with agent(path, "c", 10_000_000) as running:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and not (path.exists() and path.stat().st_size > 100_000):
                time.sleep(0.005)
            os.kill(running.pid, signal.SIGKILL)
        assert running.returncode == -signal.SIGKILL
        told = lines(path)
        assert [one["seq"] for one in told] == list(range(1, len(told) + 1))
        outcome = read(path)
        assert outcome.report.problems == []
        assert len(outcome.only.timeline) == len(told)
        assert outcome.only.outcome.completed is None

    def test_two_processes_and_one_file_lose_nothing(self, tmp_path: Path) -> None:
        path, count = tmp_path / "e.jsonl", 1500
        with agent(path, "c1", count) as one, agent(path, "c2", count) as other:
            assert (one.wait(60), other.wait(60)) == (0, 0)
        outcome = read(path)
        assert outcome.report.problems == []
        assert {call.id: len(call.timeline) for call in outcome.conversations} == {"c1": 2 * count, "c2": 2 * count}

    def test_threads_that_share_a_log(self, tmp_path: Path) -> None:
        with EventLog(tmp_path / "e.jsonl", conversation_id="c") as log:
            wins: list[bool] = []

            def work() -> None:
                wins.extend([log.slot_filled(f"s{number}", number) for number in range(200)])

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        told = lines(tmp_path / "e.jsonl")
        assert sum(wins) == len(told) == 200
        assert [one["seq"] for one in told] == list(range(1, 201))

    def test_a_full_disk_does_not_stop_the_agent(self) -> None:
        if not Path("/dev/full").exists():
            pytest.skip("needs /dev/full")
        with EventLog("/dev/full", conversation_id="c") as log:
            log.state_entered("a")
            log.turn_complete(5)
            assert log.lost == 2


class TestItStandsAlone:
    def test_copied_into_another_project(self, tmp_path: Path) -> None:
        shutil.copy(SOURCE, tmp_path / "my_events.py")
        with agent("out.jsonl", "c", 3, module="my_events", cwd=tmp_path) as running:
            assert running.wait(30) == 0
        assert len(lines(tmp_path / "out.jsonl")) == 6

    def test_it_imports_nothing_but_python(self) -> None:
        tree = ast.parse(SOURCE.read_text())
        names = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
        names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names

    def test_importing_it_imports_nothing_else(self) -> None:
        code = (
            "import sys, convoscope.emit\n"
            "tops = {name.partition('.')[0] for name in sys.modules if getattr(sys.modules[name], '__file__', None)}\n"
            "print(sorted(name for name in sys.modules if name.startswith('convoscope')))\n"
            "print([name for name in ('msgspec', 'numpy', 'duckdb', 'rich') if name in tops])\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == ["['convoscope', 'convoscope.emit']", "[]"]
