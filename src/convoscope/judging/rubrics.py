"""Rubrics: what a judge is asked, as Markdown files with front matter that a user can copy and change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.errors import InputError, UsageError, nearest_names

_FRONT = re.compile(r"---\r?\n(.*?)\r?\n---\r?\n(.*)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_REQUIRED = ("name", "version", "measures", "scale", "passes_at", "fields", "schema")
FIELDS = (
    "trace",
    "agent_turns",
    "user_turns",
    "instructions",
    "role",
    "tools",
    "date",
    "pipeline",
    "language",
    "goal",
    "persona",
    "end",
)
"""What of a conversation a rubric can show."""
ALWAYS = ("turns", "heard")
"""What is filled in for every rubric that has a place for it."""


class Rubric(NamedTuple):
    """One question to a judge: its text, the shape of the answer, the scale."""

    name: str
    version: int
    measures: str
    """The metric that it serves."""
    title: str
    """In a few plain words, for a table."""
    low: int
    high: int
    passes_at: float
    required: tuple[str, ...]
    optional: tuple[str, ...]
    schema: Mapping[str, Any]
    text: str
    hash: str
    source: str
    """The file as it was written."""

    def value(self, rating: float) -> float:
        """A rating from 0 to 1."""
        return (rating - self.low) / (self.high - self.low)

    def judge(self, identity: str) -> str:
        """Who answers this rubric: `provider/model@hash`, of the rubric and of the judge's parameters."""
        model, _, parameters = identity.rpartition("@")
        both = hashlib.sha256(f"{parameters}\n{self.hash}".encode()).hexdigest()
        return f"{model or identity}@{both[:8]}"

    def filled(self, values: Mapping[str, str]) -> str:
        """The text with values in its places. What a value holds is not looked at for placeholders."""
        return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), self.text)


def read_rubric(text: str, source: str) -> Rubric:
    """A rubric as it was written. Raises `InputError` that says what is wrong where."""
    # Only a run with a judge needs it.
    import yaml

    match = _FRONT.fullmatch(text)
    if match is None:
        raise InputError("has no front matter", file=source, hint="a rubric begins with ---, YAML, ---")
    try:
        front = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 2
        raise InputError("the front matter is not YAML", file=source, line=line) from None
    absent = [name for name in _REQUIRED if not isinstance(front, dict) or name not in front]
    if absent:
        raise InputError(f"has no {absent[0]}", file=source, field="front matter")
    low_high = front["scale"]
    is_scale = isinstance(low_high, list) and len(low_high) == 2 and all(isinstance(end, int) for end in low_high)
    if not is_scale or low_high[0] >= low_high[1]:
        raise InputError("is not a scale", file=source, field="scale", hint="for example [1, 3]")
    if not isinstance(front["schema"], dict) or not isinstance(front["version"], int):
        raise InputError("schema is an object, version a whole number", file=source, field="front matter")
    names = [name.strip() for name in str(front["fields"]).split(",")]
    required = tuple(name for name in names if not name.endswith("?"))
    optional = tuple(name[:-1] for name in names if name.endswith("?"))
    used = set(_PLACEHOLDER.findall(match[2]))
    for name in (*required, *optional, *sorted(used)):
        if name not in FIELDS and name not in ALWAYS:
            raise InputError(
                f"unknown field {name!r}", file=source, field="fields", hint=f"there is {', '.join((*FIELDS, *ALWAYS))}"
            )
    if unlisted := sorted(used - {*required, *optional, *ALWAYS}):
        raise InputError(f"{{{unlisted[0]}}} is not among its fields", file=source, field="fields")
    digest = hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:12]
    return Rubric(
        name=str(front["name"]),
        version=front["version"],
        measures=str(front["measures"]),
        title=str(front.get("title") or front["name"]),
        low=low_high[0],
        high=low_high[1],
        passes_at=float(front["passes_at"]),
        required=required,
        optional=optional,
        schema=front["schema"],
        text=match[2].strip() + "\n",
        hash=digest,
        source=text,
    )


@lru_cache(8)
def rubrics(folders: tuple[str, ...] = ()) -> dict[str, Rubric]:
    """All rubrics by name: ours, and those of the user's folders, which replace ours of the same name."""
    by_name: dict[str, Rubric] = {}
    for entry in sorted(files("convoscope.judging").joinpath("rubrics").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".md"):
            rubric = read_rubric(entry.read_text(encoding="utf-8"), entry.name)
            by_name[rubric.name] = rubric
    for folder in folders:
        by_name |= {rubric.name: rubric for rubric in _of_folder(Path(folder))}
    return by_name


def _of_folder(folder: Path) -> Iterable[Rubric]:
    paths = sorted(folder.glob("*.md")) if folder.is_dir() else []
    if not paths:
        raise UsageError(f"--rubrics {folder}: no rubric in it", hint="a rubric is a Markdown file with front matter")
    return [read_rubric(path.read_text(encoding="utf-8"), str(path)) for path in paths]


def rubric_named(name: str, folders: tuple[str, ...] = ()) -> Rubric:
    known = rubrics(folders)
    if name not in known:
        near = nearest_names(name, known)
        raise UsageError(f"unknown rubric {name!r}", hint=f"did you mean {near[0]}?" if near else ", ".join(known))
    return known[name]
