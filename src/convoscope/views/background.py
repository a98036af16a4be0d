"""Background beside a conversation: of which kind it is, whose it is, of which version. What may explain a difference.

What comes of a conversation (labels, ratings, how it ended, how long it was) is no such fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from pathlib import Path, PurePath
from typing import NamedTuple

from convoscope.conversation import Conversation, Json
from convoscope.text.folding import name_words, snake_case
from convoscope.text.lexicon import word_lists
from convoscope.text.patterns import lazy_pattern
from convoscope.views.fields import header_fields, is_flag, is_outcome_name
from convoscope.views.flow.endings import passed_in_words

MAX_FIELDS = 60
MAX_LISTED = 20
_MOST_VALUES = 4 * MAX_FIELDS
_LONGEST = 60
_LONGEST_NUMBER = 5
_DEEPEST = 4
FOLDERS = ("file", "folder", "folder above", "folder two above")
YES, NO = "yes", "no"
"""Whether a list has a word; where it has not, the record does not say so."""


class Background(NamedTuple):
    """What is known of a conversation beforehand."""

    kinds: dict[str, str]
    """Few or many values: that only the whole run can say."""
    versions: dict[str, str]
    user: str
    """The id of the user; "" without one."""


def background_of(conversation: Conversation) -> Background:
    """The background by the record, its metadata, header, scenario and messages, and the names of its folders."""
    kinds: dict[str, str] = {}
    versions: dict[str, str] = {}
    user = ""
    for field, name, value in _values(conversation)[:_MOST_VALUES]:
        what = _what(field)
        if what == "version":
            versions.setdefault(snake_case(name.rpartition(".")[2]), value)
        elif what == "user":
            user = user or ("" if snake_case(value) in _words()["nobody"] else value)
        if what and name not in conversation.dimensions and len(kinds) < MAX_FIELDS:
            kinds.setdefault(name, value)
    kinds.update(_folders(conversation))
    kinds.update(_when(conversation))
    return Background(kinds, versions, user)


def is_version(name: str) -> bool:
    """Whether a field of this name holds the version of the agent: `version`, `promptVersion`, `release`."""
    words = name_words(name)
    table = _words()
    return bool(words) and words[-1] in table["versions"] and table["not_versions"].isdisjoint(words)


@lru_cache(maxsize=4096)
def is_kind(name: str) -> bool:
    """Whether the name itself says that a field is a kind of conversations: `intent`, `customer_tier`."""
    return not _words()["kinds"].isdisjoint(name_words(name.rpartition(".")[2]))


@lru_cache(maxsize=4096)
def _what(name: str) -> str:
    """`version`, `user`, `kind`; nothing for what comes of a conversation."""
    last = name.rpartition(".")[2]
    if is_version(last):
        return "version"
    if _is_user(name):
        return "user"
    words = frozenset(name_words(last))
    is_goal = "goal" in words  # its values say whether it is a task or an outcome
    if not words or words & _words()["consequences"] or (is_outcome_name(name) and not is_goal):
        return ""
    return "goal" if is_goal else "kind"


def _is_user(name: str) -> bool:
    """`user_id`, `customer.id`, `phoneNumber`."""
    table = _words()
    *before, last = name.split(".")
    if snake_case(last) in table["numbers"]:
        return True
    words = [*name_words(before[-1] if before and len(name_words(last)) == 1 else ""), *name_words(last)]
    is_person = bool(words) and (words[0] in table["people"] or "_".join(words[:2]) in table["people"])
    return is_person and (len(words) == 1 or words[-1] in table["ids"])


_Value = tuple[str, str, str]
"""A field, its name and its value; the name of a list is the field and one of its words."""


def _values(conversation: Conversation) -> list[_Value]:
    extras = conversation.extras
    sources: list[Mapping[str, Json]] = [extras, header_fields(extras.get("header"))]
    if conversation.scenario is not None:
        sources.append(conversation.scenario.extras)
    if len(conversation.items) == 1:
        sources.append(conversation.items[0].extras)
    # What all messages have with one value, as a column of a table with one row a message.
    constant: dict[str, Json] = {}
    varied: set[str] = set()
    for event in conversation.timeline:
        if event.extras:
            varied.update(name for name, value in event.extras.items() if constant.setdefault(name, value) != value)
    sources.append({name: value for name, value in constant.items() if name not in varied})
    values: list[_Value] = []
    for fields in sources:
        if fields:
            _flatten(fields, "", _DEEPEST, values)
    return values


def _flatten(fields: Mapping[str, Json], path: str, depth: int, values: list[_Value]) -> None:
    for name, value in fields.items():
        if len(values) >= _MOST_VALUES:
            return
        if isinstance(value, dict):
            if depth > 1:
                inner = "" if name == "metadata" and not path else f"{path}{name}."
                _flatten(value, inner, depth - 1, values)
        elif isinstance(value, list):
            for member in value if len(value) <= MAX_LISTED and name != "header" else ():
                word = _text("", member) if isinstance(member, str) else ""
                # Words that say how it ended are left out.
                if word and passed_in_words(word) is None and _words()["consequences"].isdisjoint(name_words(word)):
                    values.append((path + name, f"{path}{name} {word}", YES))
        elif value is not None and (text := _text(path + name, value)):
            values.append((path + name, path + name, text))


def _text(name: str, value: Json) -> str:
    """A value that may be one of few, as text; "" for any other."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        text = str(int(value))
    elif isinstance(value, float):
        text = f"{value:g}" if len(f"{value:g}") <= _LONGEST_NUMBER else ""
    else:
        text = " ".join(value.split()) if isinstance(value, str) and len(value) <= _LONGEST else ""
    if text and _what(name) == "goal" and (is_flag(text) or passed_in_words(text) is not None):
        return ""
    return text if len(text) <= _LONGEST else ""


def _folders(conversation: Conversation) -> dict[str, str]:
    """The file of a conversation and the folders that it lies in, which its record or its own name begins with."""
    source = conversation.source
    if not source.files:
        return {}
    file = source.files[0]
    inside = _inside(file)
    whole = source.record if inside in source.record else conversation.id if inside in conversation.id else ""
    if not whole:
        return {FOLDERS[0]: file[:_LONGEST]} if file else {}
    above = whole[: whole.rfind(inside)].split("/")[::-1]
    return {name: part[:_LONGEST] for name, part in zip(FOLDERS, (file, *above), strict=False) if part}


@lru_cache(maxsize=4096)
def _inside(file: str) -> str:
    """What the name of a conversation of this file contains, where it names its folders."""
    return f"/{PurePath(file).stem}"


def _when(conversation: Conversation) -> dict[str, str]:
    """The day (UTC), week and month that a conversation began in, by its own times or a field of its record."""
    began = next((conversation.common(event.time) for event in conversation.timeline if event.time is not None), 0.0)
    try:
        if began >= _EPOCH:
            return _calendar(datetime.fromtimestamp(began, UTC).date())
        day = _dated(conversation.extras)
    except (ValueError, OverflowError, OSError):
        return {}
    return {} if day is None else _calendar(day)


@lru_cache(maxsize=4096)
def _calendar(day: date) -> dict[str, str]:
    year, week, _ = day.isocalendar()
    return dict(zip(WHEN, (day.isoformat(), f"{year}-W{week:02d}", day.isoformat()[:7]), strict=True))


def _dated(extras: Mapping[str, Json]) -> date | None:
    """The first date in a field whose name says that it is the beginning."""
    metadata = extras.get("metadata")
    for fields in (extras, metadata if isinstance(metadata, dict) else {}):
        for name, value in fields.items():
            if (
                isinstance(value, str)
                and _DATE.match(value)
                and not _words()["beginnings"].isdisjoint(name_words(name))
            ):
                return _utc_day(value)
    return None


def _utc_day(text: str) -> date:
    """The day of a text that begins with one: in UTC, as those of times are, where it says how far it is from there."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return date.fromisoformat(text[:10])
    return (moment if moment.tzinfo is None else moment.astimezone(UTC)).date()


_DATE = lazy_pattern(r"\d{4}-\d\d-\d\d")
_EPOCH = 1e9
"""Times since 1970 in seconds; smaller ones are relative."""
WHEN = ("day", "week", "month")


@cache
def _words() -> Mapping[str, frozenset[str]]:
    return word_lists(Path(__file__).with_name("background.toml"))
