"""How well tool results are read: precision and recall on results of real logs that were labelled by hand.

`python -m benchmarks.tool_results` prints them for both halves of the labels. The labels were made before the rule. The
rule was tuned on the errors with an even hash; those with an odd hash were looked at once, at the end. The author of
the rule labelled both. The labels name
file, path and hash; the texts are looked up in the shared data, and a text that is not there is left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from convoscope.conversation import ToolResult
from convoscope.statistics.intervals import wilson
from convoscope.views.result_fields import FAILED, NOT_STATED, SUCCEEDED, ToolOutcome
from convoscope.views.tool_outcomes import tool_outcome

LABELS = Path(__file__).parents[1] / "tests/conformance/labels/tool-results.jsonl"
SHARED = Path(os.environ.get("CONVOSCOPE_SHARED") or Path(__file__).parents[2] / "shared")
_MEASUREMENT = re.compile(r"(?ms)^MEASUREMENT: (.*?)(?=^(?:DOCTOR|PATIENT): |\Z)")


class Label(NamedTuple):
    """A result of a real log, and what a reader says of it."""

    file: str
    path: list[Any]
    tool: str
    sha256: str
    label: str

    @property
    def is_even(self) -> bool:
        return int(self.sha256[-1], 16) % 2 == 0


class Read(NamedTuple):
    """A label, the text that it is of, and what is read from it."""

    label: Label
    text: str
    outcome: ToolOutcome


class Share(NamedTuple):
    """So many of so many."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        return self.hits / self.of

    def __str__(self) -> str:
        low, high = wilson(self.hits, self.of)
        return f"{self.value:.3f} ({self.hits} of {self.of}; 95 % {low:.3f} to {high:.3f})"


class Quality(NamedTuple):
    """How well a set of results is read."""

    failure_precision: Share
    failure_recall: Share
    success_precision: Share
    success_recall: Share
    unmeasured: Share


def labels() -> list[Label]:
    return [Label(**json.loads(line)) for line in LABELS.read_text(encoding="utf-8").splitlines()]


def read_results(data: Path = SHARED / "data") -> Iterator[Read]:
    """The labelled results that the shared data have."""
    for label in labels():
        text = _text(data / label.file, label.path)
        if text is not None and hashlib.sha256(text.encode()).hexdigest() == label.sha256:
            yield Read(label, text, tool_outcome(ToolResult(seq=0, result=text), label.tool))


def quality(results: list[Read]) -> Quality:
    counts: Counter[tuple[str, str]] = Counter((each.label.label, each.outcome.status) for each in results)

    def precision(status: str) -> Share:
        return Share(counts[status, status], sum(count for (_, read), count in counts.items() if read == status))

    def recall(status: str) -> Share:
        return Share(counts[status, status], sum(count for (label, _), count in counts.items() if label == status))

    unmeasured = sum(count for (_, read), count in counts.items() if read == NOT_STATED)
    return Quality(
        precision(FAILED), recall(FAILED), precision(SUCCEEDED), recall(SUCCEEDED), Share(unmeasured, len(results))
    )


def _text(path: Path, steps: list[Any]) -> str | None:
    """The text at a path inside of a file: keys and indexes, `@json` for JSON in a text, `@zip:` for a member."""
    if not path.exists():
        return None
    steps = list(steps)
    try:
        value = _loaded(path, str(steps.pop(0)) if steps and str(steps[0]).startswith("@zip:") else "")
        if steps and steps[0] == "@measurement":
            return str(_MEASUREMENT.findall(value)[steps[1]]).strip()
        for step in steps:
            value = json.loads(value) if step == "@json" else value[step]
    except (KeyError, IndexError, TypeError, ValueError, OSError, zipfile.BadZipFile):
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


@cache
def _loaded(path: Path, member: str) -> Any:
    if member:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(member.removeprefix("@zip:")))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) if line.strip() else None for line in text.split("\n")]
    if path.suffix == ".txt":
        return text
    return yaml.safe_load(text) if path.suffix == ".yaml" else json.loads(text)


def run() -> None:
    results = list(read_results())
    print(f"{len(results)} of {len(labels())} labelled tool results are in {SHARED}")
    halves = {"even hash, in view": True, "odd hash, left aside": False}
    for name, is_even in halves.items():
        for figure, share in quality([each for each in results if each.label.is_even is is_even])._asdict().items():
            print(f"{name:<22} {figure:<20} {share}")


if __name__ == "__main__":
    run()
