"""Rubrics: what a judge is asked, as Markdown files with front matter that a user can copy and change."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from convoscope.errors import InputError, UsageError, nearest_names

_FRONT = re.compile(r"---\r?\n(.*?)\r?\n---\r?\n(.*)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_REQUIRED = ("name", "version", "measures", "scale", "passes_at", "fields")
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
    "sound",
    "spoken_text",
    "sources",
)
"""What of a conversation a rubric can show; the last three of the sound of a turn, the eight before of one reply, or of
a summary."""
ALWAYS = ("turns", "heard", "spoken", "marks")
"""What is filled in for every rubric that has a place for it."""
ITEM_FIELDS = (
    "agent_task",
    "agent_response",
    "ground_truth",
    "agent_role",
    "system_prompt",
    "retrieval_query",
    "retrieved_context",
    "conversation_context",
    "tools_available",
    "tool_calls",
    "tool_call_results",
    "trace",
    "agent_exit",
    "exit_status",
    "context",
    "earlier_turns",
    "turns_before",
    "user_turns",
)
"""What of an evaluation item a rubric can show, in `{item}`."""
EARLIER_TURNS, TURNS_BEFORE, USER_TURNS = "earlier_turns", "turns_before", "user_turns"
PARTS_OF_TALK = dict.fromkeys((EARLIER_TURNS, TURNS_BEFORE, USER_TURNS), "conversation_context")
"""Parts of a field: the last five turns before the answer, all turns before it, and those of the user."""
ITEM_ALWAYS = ("item", "anchors", "criteria", "low", "high", "passes_at")
_TEXT = {"type": "string"}


NONSENSE = {
    "parrot": "the agent repeats the user's last words",
    "random_words": "the words are random letters",
    "other_answer": "the answer, or the summary, is that of another question",
}
"""What a rubric can be tried with, besides the pairs that were written for it."""


class YesNoQuestions(NamedTuple):
    """A rubric as questions that one word answers."""

    flags: Mapping[str, str]
    """By the dimension that a yes flags; of a rubric by turn, one question with a place for `{turn}`.

    About items: by the verdict that a yes gives, or `score`, with a place for `{number}` where numbers are rated.
    """
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
    low: float
    high: float
    passes_at: float
    required: tuple[str, ...]
    optional: tuple[str, ...]
    schema: Mapping[str, Any]
    text: str
    hash: str
    source: str
    """The file as it was written."""
    yes_no: YesNoQuestions | None = None
    shape: str = ""
    """Of a rubric about evaluation items: what its answer is, one of `SHAPES`."""
    values: tuple[float, float] = (0, 1)
    """What the lowest and the highest rating are worth as the value of a score."""
    is_lower_better: bool = False
    sensitive_to: tuple[str, ...] = ()
    """Kinds of nonsense that a judge who can do the job rates lower: `convoscope judge check` tries them."""

    @property
    def is_raw(self) -> bool:
        """The value of a score is the rating itself."""
        return self.values == (self.low, self.high)

    @property
    def ratings(self) -> list[int]:
        """The whole numbers of its scale: what a person can give."""
        return list(range(math.ceil(self.low), math.floor(self.high) + 1))

    @property
    def marks(self) -> dict[str, str]:
        """The ends of its scale and its mark, for its text."""
        return {"low": str(self.low), "high": str(self.high), "passes_at": f"{self.passes_at:g}"}

    def passes(self, rating: float) -> bool:
        return rating <= self.passes_at if self.is_lower_better else rating >= self.passes_at

    def value(self, rating: float) -> float:
        """A rating as the value of a score."""
        if self.is_raw:
            return float(rating)
        worst, best = self.values
        return worst + (rating - self.low) / (self.high - self.low) * (best - worst)

    def rating(self, value: float) -> float:
        """The rating that has this value."""
        worst, best = self.values
        return value if self.is_raw else self.low + (value - worst) / (best - worst) * (self.high - self.low)

    @property
    def shows(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What a judge sees: required and optional fields."""
        return self.required, self.optional

    @property
    def is_main(self) -> bool:
        """It is the rubric that its metric asks first: of two for one metric, the one with its name."""
        return self.measures in (self.name, f"judged.{self.name}")

    def judge(self, identity: str) -> str:
        """Who answers this rubric: `provider/model@hash`, of the rubric and of the judge's parameters."""
        model, _, parameters = identity.rpartition("@")
        both = hashlib.sha256(f"{parameters}\n{self.hash}".encode()).hexdigest()
        return f"{model or identity}@{both[:8]}"

    @property
    def is_heard(self) -> bool:
        """It is about a sound, which goes with each question."""
        return "sound" in self.required

    @property
    def is_by_turn(self) -> bool:
        """It rates turns, not the whole conversation."""
        return "turns" in self.schema.get("required", ())

    @property
    def is_by_number(self) -> bool:
        """It rates what it is given by number: turns, chunks, tool calls."""
        return self.is_by_turn or self.shape in BY_NUMBER

    def filled(self, values: Mapping[str, str]) -> tuple[str, str]:
        """What it asks and what it shows, from its first heading on, with values in their places.

        What a value holds is not looked at for placeholders.
        """
        asks, heading, shows = self.text.partition("\n## ")
        filled = [_PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), part) for part in (asks, shows)]
        return f"{filled[0]}\n" if heading else filled[0], f"## {filled[1]}" if heading else ""


def own_rubric(
    name: str,
    scale: tuple[float, float],
    passes_at: float,
    *,
    version: int = 1,
    text: str,
    required: tuple[str, ...] = (),
    is_raw: bool = True,
    is_lower_better: bool = False,
) -> Rubric:
    """The rubric of a scorer of the user's own: it asks for a score, and for no quote."""
    low, high = (int(end) if end == int(end) else end for end in scale)
    score = {"type": "number", "minimum": low, "maximum": high}
    return Rubric(
        name=name,
        version=version,
        measures=name,
        title=name,
        low=low,
        high=high,
        passes_at=passes_at,
        required=required,
        optional=(),
        schema={"type": "object", "required": ["score"], "properties": {"reasoning": _TEXT, "score": score}},
        text=text,
        hash=hashlib.sha256(f"{text}\n{low:g} {high:g}".encode()).hexdigest()[:12],
        source=text,
        shape="score",
        values=(low, high) if is_raw else (0, 1),
        is_lower_better=is_lower_better,
    )


def read_rubric(text: str, source: str, installed: Mapping[str, Rubric] = MappingProxyType({})) -> Rubric:
    """A rubric as it was written. Raises `InputError` that says what is wrong where.

    One with the name of an `installed` rubric replaces that. Its ratings become values on the scale of the metric, so
    the mark stays at the same point of the scale; `passes_at` may be left out.
    """
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
    replaced = installed.get(str(front.get("name"))) if isinstance(front, dict) else None
    required_keys = [name for name in _REQUIRED if replaced is None or name != "passes_at"]
    absent = [name for name in required_keys if not isinstance(front, dict) or name not in front]
    if absent:
        raise InputError(f"has no {absent[0]}", file=source, field="front matter")
    if "shape" not in front and "schema" not in front:
        raise InputError("has no schema", file=source, field="front matter")
    low_high = front["scale"]
    is_scale = isinstance(low_high, list) and len(low_high) == 2 and all(isinstance(end, int) for end in low_high)
    if not is_scale or low_high[0] >= low_high[1]:
        raise InputError("is not a scale", file=source, field="scale", hint="for example [1, 3]")
    if "shape" in front and "schema" not in front:
        front["schema"] = _schema(front, source)
    if not isinstance(front["schema"], dict) or not isinstance(front["version"], int):
        raise InputError("schema is an object, version a whole number", file=source, field="front matter")
    if front.get("value") not in (None, "rating"):
        hint = "value: rating, or no value: then the scale becomes 0 to 1"
        raise InputError(f"{front['value']!r} is not a value", file=source, field="value", hint=hint)
    _check_ratings(front, source)
    if replaced is not None:
        _check_replacement(front, replaced, source)
    names = [name.strip() for name in str(front["fields"]).split(",")]
    required = tuple(name for name in names if not name.endswith("?"))
    optional = tuple(name[:-1] for name in names if name.endswith("?"))
    used = set(_PLACEHOLDER.findall(match[2]))
    fields, always = (ITEM_FIELDS, ITEM_ALWAYS) if "shape" in front else (FIELDS, ALWAYS)
    for name in (*required, *optional, *sorted(used)):
        if name not in fields and name not in always:
            raise InputError(
                f"unknown field {name!r}", file=source, field="fields", hint=f"there is {', '.join((*fields, *always))}"
            )
    if unlisted := sorted(used - {*required, *optional, *always}):
        raise InputError(f"{{{unlisted[0]}}} is not among its fields", file=source, field="fields")
    yes_no = _yes_no(front, match[2], source)
    digest = hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:12]
    low, high = low_high
    values = (low, high) if front.get("value") == "rating" else (0, 1)
    return Rubric(
        name=str(front["name"]),
        version=front["version"],
        measures=str(front["measures"]),
        title=str(front.get("title") or front["name"]),
        low=low,
        high=high,
        passes_at=float(front["passes_at"]) if replaced is None else _same_mark(replaced, low, high),
        required=required,
        optional=optional,
        schema=front["schema"],
        text=match[2].strip() + "\n",
        hash=digest,
        source=text,
        yes_no=yes_no,
        shape=str(front.get("shape", "")),
        sensitive_to=_nonsense(front, replaced, source),
        values=values if replaced is None else replaced.values,
    )


def _nonsense(front: Mapping[str, Any], replaced: Rubric | None, source: str) -> tuple[str, ...]:
    """The kinds of nonsense that a rubric names; of one that names none, those of the rubric that it replaces."""
    if "sensitive_to" not in front:
        return () if replaced is None else replaced.sensitive_to
    names = tuple(name.strip() for name in str(front["sensitive_to"]).split(","))
    if wrong := [name for name in names if name not in NONSENSE]:
        hint = f"there is {', '.join(NONSENSE)}"
        raise InputError(f"unknown nonsense {wrong[0]!r}", file=source, field="sensitive_to", hint=hint)
    return names


def _ratings(schema: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The ratings that an answer holds, each with its place. Of dimensions, any names will do."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, member in (properties or {}).items() if isinstance(properties or {}, dict) else ():
        where = f"{at}.{'*' if at == 'dimensions' else name}".lstrip(".")
        if isinstance(member, dict) and (name in ("score", "rating") or at == "ratings"):
            yield where, member
        elif isinstance(member, dict):
            yield from _ratings(member.get("items", member), where)


def _check_ratings(front: Mapping[str, Any], source: str) -> None:
    """Each rating of the schema is a number of the scale. Ends that the schema leaves out are those of the scale."""
    low, high = front["scale"]
    for where, rating in _ratings(front["schema"]):
        if rating.get("type") not in ("integer", "number"):
            hint = "type: integer, or type: number"
            raise InputError("a rating is a number", file=source, field=f"schema: {where}", hint=hint)
        least, most = rating.setdefault("minimum", low), rating.setdefault("maximum", high)
        if not all(isinstance(end, int | float) for end in (least, most)) or least < low or most > high:
            hint = f"minimum: {low}, maximum: {high}; or another `scale`"
            problem = f"allows {least} to {most}, and the scale is {low} to {high}"
            raise InputError(problem, file=source, field=f"schema: {where}", hint=hint)


def _check_replacement(front: Mapping[str, Any], replaced: Rubric, source: str) -> None:
    """A rubric that replaces ours is read as ours is, so its answer has the same shape.

    A single rating may have another scale. What is computed by a rule of the metric's own has the scale of that rule.
    """

    def refuse(field: str, problem: str, hint: str) -> NoReturn:
        raise InputError(problem, file=source, field=field, hint=f"{hint}; convoscope judge rubrics {replaced.name}")

    if front["measures"] != replaced.measures:
        refuse("measures", f"the rubric {replaced.name} measures {replaced.measures}", f"measures: {replaced.measures}")
    if str(front.get("shape", "")) != replaced.shape:
        was = f"has the shape {replaced.shape}" if replaced.shape else "has a schema, and no shape"
        refuse(
            "shape",
            f"the rubric that it replaces {was}",
            f"shape: {replaced.shape}" if replaced.shape else "leave it out",
        )
    rated, wanted = ({where for where, _ in _ratings(schema)} for schema in (front["schema"], replaced.schema))
    if rated != wanted:
        problem = f"has a rating at {', '.join(sorted(rated)) or 'no place'}"
        refuse("schema", problem, f"the metric reads {', '.join(sorted(wanted)) or 'none'}")
    low, high = front["scale"]
    is_plain = len(wanted) == 1 and not wanted & _RATED_BY_RULE and "{criteria}" not in replaced.text
    if (low, high) != (replaced.low, replaced.high) and not is_plain:
        hint = f"scale: [{replaced.low}, {replaced.high}]"
        refuse("scale", f"{replaced.measures} is not a single rating, so it cannot have another scale", hint)
    if front.get("value") == "rating" and not replaced.is_raw:
        refuse("value", f"the value of {replaced.measures} is from 0 to 1", "leave it out")
    mark, given = _same_mark(replaced, low, high), front.get("passes_at", None)
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if given is not None and not (is_number and abs(given - mark) <= _ROUNDED * (high - low)):
        hint = "leave it out: the mark stays where the metric has it. A target asks for more"
        problem = f"{replaced.measures} passes at {replaced.passes_at:g} on {replaced.low} to {replaced.high}"
        refuse("passes_at", f"{problem}: here {mark:.3g}, not {given}", hint)


def _same_mark(replaced: Rubric, low: float, high: float) -> float:
    """The mark of a rubric on another scale."""
    if (low, high) == (replaced.low, replaced.high):
        return replaced.passes_at
    return low + (replaced.passes_at - replaced.low) / (replaced.high - replaced.low) * (high - low)


_RATED_BY_RULE = frozenset({"dimensions.*.rating"})
"""The rating of the whole is computed from these."""
_ROUNDED = 0.01
"""Of a scale: a mark that is no further from the mark of the metric is the same, and was rounded."""


def _schema(front: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The schema of an answer of one of our shapes: reasons before the rating."""
    make = SHAPES.get(str(front["shape"]))
    if make is None:
        raise InputError("is no shape", file=source, field="shape", hint=f"there is {', '.join(SHAPES)}")
    verdicts = front.get("verdicts")
    are_words = isinstance(verdicts, list) and len(verdicts) > 1 and all(isinstance(one, str) for one in verdicts)
    if (front["shape"] in _WITH_VERDICTS) != are_words:
        # In YAML, a bare yes is no word.
        hint = f"a list of words, in quotes if they are yes or no: {' and '.join(_WITH_VERDICTS)} have it"
        raise InputError("does not fit the shape", file=source, field="verdicts", hint=hint)
    return make(front)


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(**properties: Any) -> dict[str, Any]:
    return _object(items={"type": "array", "items": _object(**properties)})


def _verdict(front: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "string", "enum": front["verdicts"]}


def _rating(front: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "integer", "minimum": front["scale"][0], "maximum": front["scale"][1]}


_NUMBER, _FLAG = {"type": "integer"}, {"type": "boolean"}
SHAPES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "score": lambda front: _object(reasoning=_TEXT, quote=_TEXT, score=_rating(front)),
    "csat": lambda front: _object(
        reasoning=_TEXT, quote=_TEXT, sentiment={"type": "number", "minimum": -1, "maximum": 1}, score=_rating(front)
    ),
    "panel": lambda front: _object(
        reasoning=_TEXT,
        strengths=_TEXT,
        weaknesses=_TEXT,
        quote=_TEXT,
        confidence={"type": "number", "minimum": 0, "maximum": 1},
        score=_rating(front),
    ),
    "list": lambda front: _list(text=_TEXT, quote=_TEXT, verdict=_verdict(front)),
    "traced": lambda front: _list(text=_TEXT, words=_TEXT, quote=_TEXT, verdict=_verdict(front)),
    "claims": lambda front: _list(
        text=_TEXT, words=_TEXT, common_knowledge=_FLAG, quote=_TEXT, verdict=_verdict(front)
    ),
    "instructions": lambda front: _list(
        text=_TEXT, words=_TEXT, prohibition=_FLAG, quote=_TEXT, verdict=_verdict(front)
    ),
    "numbered": lambda front: _list(id=_NUMBER, explanation=_TEXT, quote=_TEXT, verdict=_verdict(front)),
    "rated": lambda front: _list(id=_NUMBER, explanation=_TEXT, quote=_TEXT, score=_rating(front)),
}
"""The shapes of an answer about an evaluation item: one score, a list of what the judge finds, or what it is given.

What is `traced` has both the words that it is listed from and a quote of something else that its verdict rests on. Of
`claims` and `instructions` the judge also says why there may be no such quote.
"""
_LISTED = ("list", "traced", "claims", "instructions")
_WITH_VERDICTS = (*_LISTED, "numbered")
BY_NUMBER = ("numbered", "rated")
"""What is rated is given to the judge by number."""


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
    inner: Mapping[str, Any] = next(
        (one["properties"] for one in shape.values() if isinstance(one, dict) and "properties" in one), {}
    )
    by_turn = "turns" in front["schema"].get("required", ())
    if "shape" in front:
        _check_flags(front, flags, source)
    elif by_turn and list(flags) != ["turn"]:
        raise InputError("asks one question of each turn: `turn`", file=source, field="yes_no.flags")
    elif not by_turn and set(flags) != set(inner):
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


def _check_flags(front: Mapping[str, Any], flags: Mapping[str, str], source: str) -> None:
    """Of a rubric about items: a question for a score, or for each verdict but the first, which no yes means."""
    shape = front["shape"]
    if shape in _LISTED:
        hint = "what a judge would list is not known before it is asked"
        raise InputError("has no yes/no form", file=source, field="yes_no", hint=hint)
    wanted = front["verdicts"][1:] if shape in _WITH_VERDICTS else ["score"]
    if sorted(flags) != sorted(wanted):
        raise InputError(f"asks about {', '.join(wanted)}, each once", file=source, field="yes_no.flags")
    if shape in BY_NUMBER and not all("{number}" in text for text in flags.values()):
        raise InputError("has no {number} in a question", file=source, field="yes_no.flags")


@lru_cache(8)
def rubrics(folders: tuple[str, ...] = ()) -> dict[str, Rubric]:
    """All rubrics by name: ours, and those of the user's folders, which replace ours of the same name."""
    by_name: dict[str, Rubric] = {}
    folder_of_package = files("convoscope.judging").joinpath("rubrics")
    for entry in (*_in_order(folder_of_package), *_in_order(folder_of_package.joinpath("items"))):
        if entry.name.endswith(".md"):
            rubric = read_rubric(entry.read_text(encoding="utf-8"), entry.name)
            by_name[rubric.name] = rubric
    installed = dict(by_name)
    for folder in folders:
        by_name |= {rubric.name: rubric for rubric in _of_folder(Path(folder), installed)}
    return by_name


def judged_nonsense(metric: str) -> list[str] | None:
    """The nonsense that a judge of a metric is tried with; None of a metric that no rubric measures."""
    asked = [one for one in rubrics().values() if one.measures == metric]
    return list(dict.fromkeys(kind for one in asked for kind in one.sensitive_to)) if asked else None


def _in_order(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda entry: entry.name)


def _of_folder(folder: Path, installed: Mapping[str, Rubric]) -> Iterable[Rubric]:
    paths = sorted(folder.glob("*.md")) if folder.is_dir() else []
    if not paths:
        raise UsageError(f"--rubrics {folder}: no rubric in it", hint="a rubric is a Markdown file with front matter")
    return [read_rubric(path.read_text(encoding="utf-8"), str(path), installed) for path in paths]


def rubric_named(name: str, folders: tuple[str, ...] = ()) -> Rubric:
    """A rubric by its name; of one about items, without its family if no other ends so."""
    return rubric_among(rubrics(folders), name)


def rubric_among(known: Mapping[str, Rubric], name: str) -> Rubric:
    """The same among some rubrics."""
    if name not in known and len(bare := [one for one in known if one.endswith(f".{name}")]) == 1:
        name = bare[0]
    if name not in known:
        near = nearest_names(name, known)
        own = "a scorer of your own is known to its runs: convoscope judge label RUN, judge calibrate RUN --labels"
        raise UsageError(f"unknown rubric {name!r}", hint=f"did you mean {near[0]}?" if near else own)
    return known[name]
