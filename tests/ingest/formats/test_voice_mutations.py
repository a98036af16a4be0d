"""Logs of calls made wrong at random: each call is read, or refused in words."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from convoscope.ingest.formats.voice_logs.logs import read_framework
from convoscope.ingest.report import Notes
from support.voice_calls import calls
from support.voice_mutations import mutate, outcome

_CALLS = 7
"""One of each variant."""
_MUTATIONS = 30


@pytest.mark.parametrize("seed", range(_CALLS))
def test_a_mutated_call_is_read_or_refused(seed: int, tmp_path: Path) -> None:
    (call,) = calls(1, first=40_000 + seed)
    for number in range(_MUTATIONS):
        folder = call.write(tmp_path / str(number))
        done = mutate(folder, random.Random(f"{seed} {number}"))
        error = outcome(folder).error
        assert not error or error.startswith("InputError"), f"{done}: {error}"


def test_mutations_do_harm(tmp_path: Path) -> None:
    """Else the test above would say nothing: most of them change what is read, and many leave a note."""
    (call,) = calls(1, first=40_000)
    whole = outcome(call.write(tmp_path / "call"))
    found = []
    for number in range(60):
        folder = call.write(tmp_path / "call")
        mutate(folder, random.Random(number))
        found.append(outcome(folder))
        for path in folder.iterdir():
            path.unlink()
    assert not whole.error
    assert sum(one.conversation != whole.conversation for one in found) > 30
    assert sum(one.notes != whole.notes for one in found) > 20


def word(text: str, ms: int = 0) -> dict[str, Any]:
    return {"type": "tts_text", "timestamp": 1_700_000_000_000 + ms, "data": {"frame": text}}


def boundary(kind: str, ms: int, **data: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1_700_000_000_000 + ms, "data": {"frame": f"{kind}#0", **data}}


def test_a_clean_log(tmp_path: Path) -> None:
    lines = [
        boundary("turn_start", 0),
        {"type": "llm_response", "timestamp": 1_700_000_000_010, "data": {"frame": "Hello there."}},
        word("Hello", 20),
        word("there.", 20),
        boundary("turn_end", 900, was_interrupted=False),
        {"type": "user_started_speaking", "timestamp": None, "data": {}},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = read_framework(path, Notes()).runs
    # What the model wrote goes, since something was sent to the speech engine; other lines are none of it.
    assert [run.kind for run in found] == ["turn_start", "tts_text", "turn_end"]
    assert [run.text for run in found] == ["turn_start#0", "Hello there.", "turn_end#0"]
    parts = [part for run in found for part in run.parts]
    assert [text for _, text in parts] == ["turn_start#0", "Hello", "there.", "turn_end#0"]
    assert [(ms or 0) - 1_700_000_000_000 for ms, _ in parts] == [0, 20, 20, 900]
    assert [run.interrupted for run in found] == [None, None, False]
