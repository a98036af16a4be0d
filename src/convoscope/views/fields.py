"""Any field of a conversation by its name, and which of them says how conversations ended: a proposal for `--label`.

What a reader has no use for it keeps, so that a user can group by it or name it as a label."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from convoscope.conversation import Conversation, Json
from convoscope.text.folding import name_words, snake_case
from convoscope.text.lexicon import word_lists
from convoscope.text.patterns import lazy_pattern
from convoscope.views.flow.endings import passed_in_words, shown_value

MAX_FIELDS = 200
"""So many fields of one conversation are listed."""
_DEEPEST = 6
_LONGEST_NAME = 40
_OF_OUTCOME = ("completed", "finished", "ended_reason", "final_status", "error", "duration")


def field_value(conversation: Conversation, name: str) -> str | float | bool | None:
    """The value of a field; None where the conversation has none, or one that is a list or an object.

    Dots lead into objects: `metadata.team`. Where several sources have the name, the first of `_sources` counts.
    """
    sources = _sources(conversation)
    for source in (*sources.values(), sources):
        value = _at(source, name)
        if isinstance(value, str | int | float) and value != "":
            return value
    return None


def field_names(conversation: Conversation) -> list[str]:
    """The fields that a conversation has, as `field_value` knows them."""
    sources = _sources(conversation)
    names = (name for source in sources.values() for name in _value_names(source, _DEEPEST))
    return list(dict.fromkeys(islice(names, MAX_FIELDS)))


def _sources(conversation: Conversation) -> dict[str, Mapping[str, Json]]:
    """Where fields are, the likeliest to be meant first."""
    outcome, extras = conversation.outcome, conversation.extras
    flow = {"flow": conversation.flow.name} if conversation.flow is not None else {}
    # Verdicts on the whole conversation: a person's before a vendor's, the first of several.
    labels: dict[str, Json] = {}
    for label in sorted(conversation.labels, key=lambda label: label.rater_kind != "human"):
        if label.subject_kind == "conversation":
            labels.setdefault(label.name, label.value)
    stated = {name: value for name in _OF_OUTCOME if (value := getattr(outcome, name)) not in (None, "")}
    sources: dict[str, Mapping[str, Json]] = {
        "dimensions": {**flow, **conversation.dimensions},
        "labels": labels,
        "extras": extras,
        "metadata": metadata if isinstance(metadata := extras.get("metadata"), dict) else {},
        "header": header_fields(extras.get("header")),
        "outcome": {**outcome.extras, **stated},
        "agent": conversation.agent.extras,
        "scenario": conversation.scenario.extras if conversation.scenario is not None else {},
    }
    if len(conversation.items) == 1:
        (item,) = conversation.items
        sources["item"] = item.extras
        sources["expected"] = item.expected.extras
    # What messages have, as a column of a table with one row a message: of several values the last.
    sources["messages"] = {name: value for event in conversation.timeline for name, value in event.extras.items()}
    return sources


def header_fields(lines: Json) -> dict[str, Json]:
    """The fields of a header of plain text: lines such as `Outcome: resolved`."""
    fields: dict[str, Json] = {}
    for line in lines if isinstance(lines, list) else ():
        name, colon, value = str(line).partition(":")
        if colon and 0 < len(name.strip()) <= _LONGEST_NAME and value.strip():
            fields.setdefault(name.strip(" \t#*-").lower(), value.strip())
    return fields


def _at(source: Mapping[str, Json], name: str) -> Json:
    """What is at a name. A key may hold dots itself: the longest that is there leads on."""
    if name in source:
        return source[name]
    end = name.rfind(".")
    while end >= 0:
        inner = source.get(name[:end])
        if isinstance(inner, Mapping) and (value := _at(inner, name[end + 1 :])) is not None:
            return value
        end = name.rfind(".", 0, end) if end else -1
    return None


def _value_names(source: Mapping[str, Json], depth: int) -> Iterator[str]:
    """The names of all values that are neither lists nor objects."""
    for name, value in source.items():
        if isinstance(value, dict):
            if depth > 1:
                yield from (f"{name}.{inner}" for inner in _value_names(value, depth - 1))
        elif isinstance(value, str | int | float) and value != "":
            yield name


Polarity = Literal["good", "bad", "rating", "unclear"]
_MOST_VALUES = 12
"""Distinct values of a field that are counted; a field with more is no verdict, unless they are numbers."""
_MOST_SHOWN = 4
_LONGEST = 30
LEAST_SHARE = 0.1
"""A field that fewer conversations have is not proposed."""
_FLAGS = frozenset(("true", "false", "yes", "no", "y", "n", "0", "1"))
LETTERS = frozenset("cipn")
"""Correct, incorrect, partial, no answer: the grades of Inspect."""


@lru_cache(maxsize=4096)
def polarity(name: str) -> Polarity:
    """What true, 1 and higher are worth in a field of this name."""
    words = frozenset(name_words(name.rpartition(".")[2]))
    table = _table()
    if words & table["bad"]:
        return "bad"
    if words & table["good"]:
        return "good"
    return "rating" if words & table["rating"] else "unclear"


def is_flag(value: str | float | bool) -> bool:
    """Whether a value is true or false in some spelling, so that only the name of its field can say what is good."""
    return isinstance(value, bool) or snake_case(shown_value(value)) in _FLAGS


def values_text(values: Mapping[str, int]) -> str:
    """`true in 25 and false in 75`."""
    most = sorted(values.items(), key=lambda one: (-one[1], one[0]))
    shown = ((value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…", count) for value, count in most)
    parts = [f"{value} in {count:,}" for value, count in islice(shown, _MOST_SHOWN)]
    if len(most) > _MOST_SHOWN:
        parts.append(f"other values in {sum(count for _, count in most[_MOST_SHOWN:]):,}")
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


class Proposal(NamedTuple):
    """A field that may be the outcome."""

    field: str
    rank: int
    """Lower is likelier."""
    words: str
    """What it holds."""
    labels: tuple[str, ...]
    """The options to choose from."""

    @property
    def text(self) -> str:
        options = " or ".join(f"--label {shlex.quote(one)}" for one in self.labels)
        return f"{self.words}: {options}" if len(self.labels) == 1 else f"{self.words}. Which is good? {options}"


class LabelSearch:
    """Looks at conversations one by one for a field that says how they ended."""

    def __init__(self) -> None:
        self._seen = 0
        self._values: dict[str, Counter[str]] = {}
        self._numbers: dict[str, bool] = {}

    def see(self, conversation: Conversation) -> None:
        self._seen += 1
        for name in field_names(conversation):
            if not _kind_of_name(name):
                continue
            value = field_value(conversation, name)
            if value is not None:
                self._values.setdefault(name, Counter())[shown_value(value)] += 1
                number = isinstance(value, int | float) and not isinstance(value, bool)
                self._numbers[name] = self._numbers.get(name, True) and number

    def proposals(self, noun: str = "conversation", *, first: bool = False) -> list[Proposal]:
        """The fields that may be the outcome, likeliest first. `first`: only the first conversations were seen."""
        of = f"of {'the first ' if first else ''}{self._seen:,} {noun}{'s' if self._seen != 1 else ''}"
        made = [
            proposal
            for name, values in self._values.items()
            if values.total() >= (LEAST_SHARE if len(values) > 1 or _are_flags(values) else 1) * self._seen
            and (proposal := _proposal(name, values, of, is_number=self._numbers[name])) is not None
        ]
        made.sort(key=lambda one: (one.rank, -self._values[one.field].total(), len(one.field), one.field))
        proposals: dict[tuple[str, frozenset[tuple[str, int]]], Proposal] = {}
        for proposal in made:
            # A field may be the copy of another under a longer path.
            copied = proposal.field.rpartition(".")[2], frozenset(self._values[proposal.field].items())
            proposals.setdefault(copied, proposal)
        return list(proposals.values())


def _proposal(name: str, values: Counter[str], of: str, *, is_number: bool) -> Proposal | None:
    kind = _kind_of_name(name)
    if is_number and not set(values) <= {"0", "1"}:
        if kind not in ("good", "rating") or len(values) == 1:
            return None
        numbers, mark = sorted(map(float, values)), _mark(name, values)
        reached = sum(count for value, count in values.items() if float(value) >= mark)
        span = f"numbers from {numbers[0]:g} to {numbers[-1]:g}, {mark:g} or more in {reached:,}"
        return Proposal(name, 3, f"`{name}` has {span} {of}", (f"{name} >= {mark:g}",))
    if len(values) > _MOST_VALUES or (len(values) == 1 and kind != "good"):
        return None
    words = f"`{name}` has {values_text(values)} {of}"
    if _are_flags(values):  # only its name says what is good
        yes = next((value for value in values if snake_case(value) in ("true", "yes", "y", "1")), "true")
        no = next((value for value in values if value != yes), "false")
        by_kind = {
            "good": Proposal(name, 0 if len(values) > 1 else 6, words, (name,)),
            "rating": Proposal(name, 4, words, (f"{name} = {yes}",)),
            "bad": Proposal(name, 5, words, (f"{name} = {no}", f"{name} = {yes}")),
        }
        return by_kind.get(kind)
    is_grade = are_letters(values)
    verdicts = {passed_in_words(value) for value in values}
    is_verdict = kind != "verdict" or any(snake_case(value) in _table()["verdicts"] for value in values)
    if is_grade or ({True, False} <= verdicts and is_verdict):
        return Proposal(name, 1 if is_grade else 2, words, (name,))
    if kind in ("good", "bad", "rating") and (proposal := _of_other_words(name, kind, values, words)) is not None:
        return proposal
    last, table = frozenset(name_words(name.rpartition(".")[2])), _table()
    is_plain = bool(last & (table["good"] | table["rating"]) - table["weak"])
    if not last & table["asks"] and not (is_plain and max(map(len, values)) <= _LONGEST):
        return None
    return Proposal(name, 7, words, tuple(f"{name} = {value}" for value, _ in values.most_common(2)))


def _are_flags(values: Iterable[str]) -> bool:
    return all(snake_case(value) in _FLAGS for value in values)


def _of_other_words(name: str, kind: str, values: Counter[str], words: str) -> Proposal | None:
    """A field of ratings in words, `4/5`, ja and nein, or of which only some values say pass or fail."""
    table = _table()
    folded = {value: value.strip().casefold().replace(" ", "_") for value in values}
    yes, no = ([value for value in values if folded[value] in table[name]] for name in ("yes", "no"))
    if yes and len(yes) + len(no) == len(values):
        labels = (f"{name} = {no[0] if no else 'nein'}", f"{name} = {yes[0]}")
        return Proposal(name, 5, words, labels if kind == "bad" else labels[1:])
    if kind == "bad":
        return None
    if all(_FRACTION.fullmatch(value) for value in values):
        # A rating such as `4/5` is good in the upper quarter.
        matches = {value: _FRACTION.fullmatch(value) for value in values}
        high = [value for value, match in matches.items() if match and float(match[1]) >= 0.75 * float(match[2])]
        return _named(name, high, words)
    if kind == "rating":
        return _named(name, [value for value in values if folded[value] in table["praise"]], words)
    # `resolved` is true or "partially": what says neither is counted as such.
    is_read = any(snake_case(value) in _FLAGS or passed_in_words(value) is not None for value in values)
    return Proposal(name, 6, words, (name,)) if is_read else None


_FRACTION = lazy_pattern(r"\s*(\d{1,4}(?:\.\d{1,3})?)\s*/\s*([1-9]\d{0,3})\s*")


def _named(name: str, good: Sequence[str], words: str) -> Proposal | None:
    """A proposal that names the good values; nothing without a good value."""
    sign = "=" if len(good) == 1 else "in"
    return Proposal(name, 4, words, (f"{name} {sign} {', '.join(sorted(good))}",)) if good else None


def are_letters(values: Iterable[str]) -> bool:
    """Whether these are the grades C, I, P and N, and no choices A, B, C."""
    letters = {value.strip().casefold() for value in values}
    return {"c", "i"} <= letters <= LETTERS


def _mark(name: str, values: Mapping[str, int]) -> float:
    """From where on a number is good: the most there is where many have it, else some way up the scale."""
    most = max(map(float, values))
    has_most = sum(count for value, count in values.items() if float(value) == most)
    is_rating = polarity(name) != "good" and most > 1
    if not is_rating and has_most >= LEAST_SHARE * sum(values.values()):
        return most
    return next((mark for top, mark in _SCALES if most <= top), most)


_SCALES = ((1.0, 0.5), (5.0, 4.0), (10.0, 7.0), (100.0, 70.0))
"""The ends of usual scales, and from where on they are good."""


@lru_cache(maxsize=4096)
def _kind_of_name(name: str) -> str:
    """What a field of this name may be: a polarity, `status`, `verdict` for any other name, nothing for a setting."""
    parts = name.split(".")
    words = frozenset(name_words(name))
    last, table = frozenset(name_words(parts[-1])), _table()
    if not last or words & table["expected"] or words & table["settings"] or snake_case(parts[-1]) in table["names"]:
        return ""
    kind = polarity(name)
    if kind != "unclear":
        return kind
    if last & table["status"]:
        return "status"
    # `scores.match.value`: the path names it.
    return "rating" if words & table["rating"] and last <= {"value", "score", "result"} else "verdict"


def is_outcome_name(name: str) -> bool:
    """Whether a field of this name says how conversations ended, or what one thinks of them."""
    return (
        _kind_of_name(name) in ("good", "bad", "rating", "status")
        or snake_case(name.rpartition(".")[2]) in _table()["names"]
    )


@cache
def _table() -> Mapping[str, frozenset[str]]:
    return word_lists(Path(__file__).with_name("outcome_fields.toml"))


def best_proposal(proposals: Sequence[Proposal]) -> str:
    """The likeliest field with its counts, and the names of the next ones."""
    if not proposals:
        return ""
    others = [f"`{proposal.field}`" for proposal in proposals[1:3]]
    return proposals[0].text + (f" (also: {', '.join(others)})" if others else "")
