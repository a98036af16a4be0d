"""Faults in the logs of generated calls: nothing breaks, nothing goes unsaid, and the conversation is recovered."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import pytest

from convoscope.ingest.formats.voice_logs.reader import read_call
from convoscope.ingest.report import Notes
from support.voice_calls import Call, calls, expected, make_call
from support.voice_faults import LOGS
from support.voice_file_faults import FAULTS
from support.voice_recovery import Trial, attempt, differences

_CALLS = calls(14)
_PAIRS = [pair for pair in combinations(FAULTS, 2) if len(FAULTS[pair[0]].removes | FAULTS[pair[1]].removes) < 3]
_STEP, _PARTS = 3, 2
"""Every third pair, in two halves: `make bench` tries them all."""
_FLOOR = 0.95
"""Share of calls of which every field that a fault leaves knowable is read as it was; measured at 0.98 and more."""
_FLOORS: dict[str, float] = {}
"""Where a fault leaves less, by what was measured."""


def test_a_call_without_faults_is_read_as_it_happened(tmp_path: Path) -> None:
    trials = [attempt(call, (), seed, tmp_path / str(seed)) for seed, call in enumerate(_CALLS)]
    assert [trial.differs for trial in trials if trial is not None] == [[]] * len(_CALLS)


def test_a_clean_call_needs_no_repair(tmp_path: Path) -> None:
    notes = Notes()
    read_call(make_call(3).write(tmp_path), notes)
    assert {note.code for note in notes.taken if note.kind == "repaired"} == set()


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_is_recovered_from_and_named(fault: str, tmp_path: Path) -> None:
    trials = _trials(_CALLS, (fault,), tmp_path)
    assert trials, "no call that this fault could befall"
    _nothing_breaks((fault,), trials)
    share = sum(not trial.differs for trial in trials) / len(trials)
    sys.stdout.write(f"{fault}: {share:.0%} of {len(trials)}\n")
    assert share >= _FLOORS.get(fault, _FLOOR), [trial.differs for trial in trials if trial.differs]


@pytest.mark.parametrize("stamp", ["0", "-5", None, "garbage", "4102444800000"])
@pytest.mark.parametrize("log", LOGS)
def test_one_time_that_cannot_be_changes_nothing(log: str, stamp: str | None, tmp_path: Path) -> None:
    """Order and likeness place what has no time; everything else keeps its own."""
    recovered: list[bool] = []
    for seed, clean in enumerate(_CALLS):
        call: Call = pickle.loads(pickle.dumps(clean))
        if not call.log(log):
            continue
        random.Random(f"{seed} {log}").choice(call.log(log))["timestamp"] = stamp
        notes = Notes()
        conversation = read_call(call.write(tmp_path / str(seed)), notes)
        recovered.append(not differences(call, conversation))
        named = {note.code for note in notes.taken} & {"implausible_time", "unreadable_time"}
        assert named == {"implausible_time" if stamp and stamp != "garbage" else "unreadable_time"}
    assert sum(recovered) / len(recovered) >= _FLOOR


@pytest.mark.parametrize("part", range(_PARTS))
def test_no_two_faults_break_anything(part: int, tmp_path: Path) -> None:
    short = [make_call(seed, kind) for seed, kind in _SHORT]
    recovered: list[bool] = []
    for number, pair in enumerate(_PAIRS[::_STEP][part::_PARTS]):
        call = short[number % len(short)]
        trials = _trials([call], pair, tmp_path)
        _nothing_breaks(pair, trials)
        recovered += [not trial.differs for trial in trials]
    sys.stdout.write(f"pairs: {sum(recovered) / len(recovered):.0%} of {len(recovered)}\n")


_SHORT = ((2, "cascade"), (11, "audio_llm"), (17, "s2s"))


def _trials(among: Iterable[Call], faults: tuple[str, ...], folder: Path) -> list[Trial]:
    tried = []
    for seed, call in enumerate(among):
        place = folder / str(len(list(folder.iterdir())))
        tried.append(attempt(call, faults, seed, place))
    return [trial for trial in tried if trial is not None]


def _nothing_breaks(faults: tuple[str, ...], trials: list[Trial]) -> None:
    for trial in trials:
        assert not trial.error, faults
        assert not trial.negative, faults
        assert not trial.unnamed, faults


def test_truth_is_told_by_the_acts() -> None:
    """The oracle itself, on a call small enough to check by eye."""
    call = make_call(0)
    truth = expected(call)
    assert truth["intended_assistant_turns"][0] == "Hello! How can I help you today?"
    assert truth["num_user_turns"] == len(call.of("user"))
    assert [one["tool_name"] for one in truth["tool_params"]] == [act.tool for act in call.acts if act.tool]
