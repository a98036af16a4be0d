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
    "user_said",
    "user_and_calls",
    "instructions",
    "role",
    "tools",
    "write_tools",
    "date",
    "pipeline",
    "language",
    "goal",
    "persona",
    "end",
    "history",
    "user",
    "reply",
    "state",
    "rules",
    "transcript",
    "summary",
    "reference",
)
"""What of a conversation a rubric can show; the last eight of one reply, or of a summary."""
ALWAYS = ("turns", "heard", "spoken", "marks")
"""What is filled in for every rubric that has a place for it."""


class YesNoQuestions(NamedTuple):
    """A rubric as questions that one word answers."""

    flags: Mapping[str, str]
    """By the dimension that a yes flags; of a rubric by turn, one question with a place for `{turn}`."""
    severe: str
    """Whether what is flagged gets the lowest rating, and not only a lower one; empty where there is no between."""


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
    yes_no: YesNoQuestions | None = None

    def value(self, rating: float) -> float:
        """A rating from 0 to 1."""
        return (rating - self.low) / (self.high - self.low)

    def judge(self, identity: str) -> str:
        """Who answers this rubric: `provider/model@hash`, of the rubric and of the judge's parameters."""
        model, _, parameters = identity.rpartition("@")
        both = hashlib.sha256(f"{parameters}\n{self.hash}".encode()).hexdigest()
        return f"{model or identity}@{both[:8]}"

    @property
    def is_by_turn(self) -> bool:
        """It rates turns, not the whole conversation."""
        return "turns" in self.schema.get("required", ())

    def filled(self, values: Mapping[str, str]) -> tuple[str, str]:
        """What it asks and what it shows, from its first heading on, with values in their places.

        What a value holds is not looked at for placeholders.
        """
        asks, heading, shows = self.text.partition("\n## ")
        filled = [_PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), part) for part in (asks, shows)]
        return f"{filled[0]}\n" if heading else filled[0], f"## {filled[1]}" if heading else ""


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
    yes_no = _yes_no(front, match[2], source)
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
        yes_no=yes_no,
    )


def _yes_no(front: Mapping[str, Any], text: str, source: str) -> YesNoQuestions | None:
    """The questions of the yes/no form, where a rubric has it."""
    written = front.get("yes_no")
    if written is None:
        return None
    flags = written.get("flags") if isinstance(written, dict) else None
    if not isinstance(flags, dict) or not flags or not all(isinstance(one, str) for one in flags.values()):
        hint = "yes_no: {flags: {DIMENSION: A question that yes answers where it is bad?}, severe: …}"
        raise InputError("has no questions", file=source, field="yes_no.flags", hint=hint)
    shape = front["schema"].get("properties", {})
    by_turn = "turns" in front["schema"].get("required", ())
    if by_turn and list(flags) != ["turn"]:
        raise InputError("asks one question of each turn: `turn`", file=source, field="yes_no.flags")
    inner: Mapping[str, Any] = next(
        (one["properties"] for one in shape.values() if isinstance(one, dict) and "properties" in one), {}
    )
    if not by_turn and set(flags) != set(inner):
        raise InputError(f"asks about {', '.join(inner)}, each once", file=source, field="yes_no.flags")
    if "\n## " not in text:
        hint = "the yes/no form shows what follows the first heading"
        raise InputError("has no heading", file=source, field="yes_no", hint=hint)
    low, high = front["scale"]
    severe = str(written.get("severe") or "")
    if bool(severe) != (high - low > 1):
        hint = "a scale of more than two ratings needs it, one of two has none"
        raise InputError("does not fit the scale", file=source, field="yes_no.severe", hint=hint)
    return YesNoQuestions({str(name): one.strip() for name, one in flags.items()}, severe.strip())


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
