"""Logs of calls made wrong at random: what is told at a glance is told as the repair tells it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.ingest.formats.voice_logs import logs
from convoscope.ingest.formats.voice_logs.lines import read_lines
from convoscope.ingest.report import Notes
from support.voice_calls import calls
from support.voice_mutations import mutate, outcome

Lines = list[dict[str, Any]]
_CALLS = 7
"""One of each variant."""
_MUTATIONS = 30


@pytest.mark.parametrize("seed", range(_CALLS))
def test_what_is_told_at_a_glance_is_what_the_repair_tells(seed: int, tmp_path: Path) -> None:
    (call,) = calls(1, first=40_000 + seed)
    for number in range(_MUTATIONS):
        folder = call.write(tmp_path / str(number))
        done = mutate(folder, random.Random(f"{seed} {number}"))
        quick, slow = outcome(folder, at_a_glance=True), outcome(folder, at_a_glance=False)
        assert quick == slow, f"{done}: {quick.error or slow.error}"


def test_mutations_do_harm(tmp_path: Path) -> None:
    """Else the test above would say nothing: most of them change what is read, and many leave a note."""
    (call,) = calls(1, first=40_000)
    whole = outcome(call.write(tmp_path / "call"), at_a_glance=True)
    found = []
    for number in range(60):
        folder = call.write(tmp_path / "call")
        mutate(folder, random.Random(number))
        found.append(outcome(folder, at_a_glance=True))
        for path in folder.iterdir():
            path.unlink()
    assert not whole.error
    assert sum(one.conversation != whole.conversation for one in found) > 30
    assert sum(one.notes != whole.notes for one in found) > 20


def word(text: str, ms: int = 0) -> dict[str, Any]:
    return {"type": "tts_text", "timestamp": 1_700_000_000_000 + ms, "data": {"frame": text}}


def boundary(kind: str, ms: int, **data: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1_700_000_000_000 + ms, "data": {"frame": f"{kind}#0", **data}}


CLEAN: Lines = [
    boundary("turn_start", 0),
    {"type": "llm_response", "timestamp": 1_700_000_000_010, "data": {"frame": "Hello there."}},
    word("Hello", 20),
    word("there.", 20),
    boundary("turn_end", 900, was_interrupted=False),
    {"type": "user_started_speaking", "timestamp": None, "data": {}},
]


def clean(lines: Lines, tmp_path: Path) -> Any:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return logs._clean(read_lines(path, logs._framework_line, Notes()))


def test_a_clean_log_is_told_at_a_glance(tmp_path: Path) -> None:
    found = clean(CLEAN, tmp_path)
    # What the model wrote goes, since something was sent to the speech engine; other lines are none of it.
    assert list(found.kinds) == ["turn_start", "tts_text", "tts_text", "turn_end"]
    assert list(found.texts) == ["turn_start#0", "Hello", "there.", "turn_end#0"]
    assert [ms - 1_700_000_000_000 for ms in found.times] == [0, 20, 20, 900]
    assert list(found.interrupted) == [None, None, None, False]


def _changed(place: int, **fields: Any) -> Callable[[Lines], Lines]:
    return lambda lines: [{**line, **fields} if at == place else line for at, line in enumerate(lines)]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(_changed(2, timestamp=1_700_000_000_950), id="a word later than what follows it"),
        pytest.param(_changed(2, timestamp="1700000000020"), id="a time as text"),
        pytest.param(_changed(2, timestamp=1_700_000_000.02), id="a time in seconds"),
        pytest.param(_changed(2, timestamp=None), id="a word without a time"),
        pytest.param(_changed(0, timestamp=5), id="a time that is none of the clock"),
        pytest.param(_changed(4, timestamp=1_700_100_000_000), id="a time that is hours away"),
        pytest.param(_changed(2, data={"frame": "Hello there."}), id="a phrase, which may be a preview"),
        pytest.param(_changed(2, data={"frame": " Hello"}), id="a word with a blank"),
        pytest.param(_changed(2, data={"frame": None}), id="a word that is not told"),
        pytest.param(_changed(2, data={"frame": 5}), id="a number for a word"),
        pytest.param(_changed(2, data=None), id="nothing told"),
        pytest.param(_changed(2, data={"text": "Hello"}), id="the word under another name"),
        pytest.param(_changed(4, data={"frame": "x", "was_interrupted": "yes"}), id="a text for a truth value"),
        pytest.param(lambda lines: [lines[0], *lines], id="a boundary twice"),
        pytest.param(lambda lines: [*lines[:2], lines[1], *lines[2:]], id="a text of the model twice"),
        pytest.param(lambda lines: [lines[0], lines[4]], id="no word at all"),
        pytest.param(lambda lines: lines[-1:], id="nothing sent"),
    ],
)
def test_what_may_need_repair_is_not_told_at_a_glance(fault: Callable[[Lines], Lines], tmp_path: Path) -> None:
    assert clean(CLEAN, tmp_path) is not None
    assert clean(fault(CLEAN), tmp_path) is None
