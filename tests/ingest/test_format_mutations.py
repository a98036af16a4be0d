"""Examples of each format made wrong: no reader fails, and no text is lost in silence. `make bench` does more of it."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks import format_mutations
from benchmarks.format_mutations import JsonLog, Wrong, findings

from convoscope.ingest.kits.leftovers import Leftovers
from convoscope.ingest.reader import installed
from support.logs import EXAMPLES

NOT_TRIED = {
    "tau-voice": "its words come in pieces, which another order makes others",
    "voice-logs": "a call is a folder of files; `support.voice_mutations` makes those wrong",
}
LOGS = (".json", ".jsonl", ".txt", ".srt", ".vtt", ".yaml", ".eval", ".traj")


def logs_of(reader: str) -> list[Path]:
    return sorted(path for path in (EXAMPLES / reader).rglob("*") if path.suffix in LOGS)


@pytest.mark.parametrize("reader", sorted(set(installed().by_name) - set(NOT_TRIED)))
def test_examples_that_are_made_wrong(reader: str) -> None:
    counts: Counter[str] = Counter()
    wrong = [f"{path.name} with {one.wrong.done}: {one.what}" for path in logs_of(reader) for one in some(path, counts)]
    assert wrong == []
    assert counts["files"] >= 3 or not logs_of(reader)


def some(path: Path, counts: Counter[str]) -> list[format_mutations.Finding]:
    return list(findings(path, range(3), counts))


class OneLineWrapped(JsonLog):
    """A log in which the last line is inside of an object that no reader knows."""

    def wrong(self, draw: random.Random) -> Wrong:
        del draw
        value = [*self.value[:-1], {"wrapped": self.value[-1]}]
        return Wrong(self.bytes(value), "a wrapped line", frozenset(self.texts(value)))


def test_a_text_that_is_lost_in_silence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    path = EXAMPLES / "openinference" / "club.jsonl"
    lines: list[Any] = [json.loads(line) for line in path.read_text().splitlines()]
    monkeypatch.setattr(format_mutations, "log_of", lambda _: OneLineWrapped(lines, has_lines=True))
    assert some(path, Counter()) == []
    monkeypatch.setattr(Leftovers, "note_rest", lambda *_: None)
    counts: Counter[str] = Counter()
    assert len(some(path, counts)) == counts["lost"] == 3
