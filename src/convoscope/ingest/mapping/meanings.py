"""What fields of a log may mean: ids, times, their unit and order, dialogue state, labels, ends, notes to leave out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from convoscope.conversation.events import moment
from convoscope.ingest.control_text import TOKEN
from convoscope.ingest.io.json import parsed
from convoscope.ingest.mapping.declaration import value_at
from convoscope.ingest.mapping.fields import RecordField, words_of
from convoscope.ingest.mapping.reader import seconds
from convoscope.ingest.mapping.role_words import is_no_speech, role_of
from convoscope.ingest.record import TIMES, as_number, as_text, number_in

_ID_NAMES = (
    *("conversation_id", "session_id", "thread_id", "chat_id", "dialogue_id", "call_id", "conversation", "dialogue"),
    *("dialog", "dlg", "session", "thread", "chat", "call", "ticket", "case", "id", "no", "number"),
)
_NUMBERED = re.compile(
    r"(conversation|conv|session|thread|chat|dialogue|dialog|call|ticket|case)_(no|nr|num|number|ref|reference|key|code)"
)
"""Names of conversations that no list has."""
_OF_OTHERS = re.compile(
    r"account|user|customer|tenant|project|agent|inbox|org|model|parent|sender|author", re.IGNORECASE
)
"""Ids of what has many conversations."""
_PREDICTED = re.compile(r"^(pred|predicted|model|hyp|system|agent|bot)[_A-Z]")
"""What the agent concluded, by the name of the field: `pred_state`."""
LABELS = re.compile(r"csat|nps|stars|rating|score|resolved|solved|label|verdict|outcome|satisf", re.IGNORECASE)
_MEANINGS = {
    "intent": re.compile(r"(^|_)intents?$"),
    "requested": re.compile(r"(^|_)requested(_slots?)?$"),
    "state": re.compile(r"(^|_)(belief|state|slots?|slot_values)$"),
    "act": re.compile(r"(^|_)acts?$|act_types?$"),
    "domain": re.compile(r"(^|_)(domain|service)$"),
}
_IS_TIME = re.compile(
    r"time|date|stamp|clock|offset|(^|_)(at|ts|when|start|begin|ms|millis)(_|$)|zeit|hora|heure|fecha|datum"
)
_LATER = re.compile(r"(^|_)(end|ended|until|updated|modified|edited|deleted|read|seen|delivered|closed|expires)(_|$)")
"""Times of what happened after a message was sent."""
_UNITS = {
    "ms": re.compile(r"(^|_)(ms|msec|millis|milliseconds?)(_|$)|millis"),
    "us": re.compile(r"(^|_)(us|usec|micros|microseconds?)(_|$)"),
    "ns": re.compile(r"(^|_)(ns|nsec|nanos|nanoseconds?|nano)(_|$)"),
    "s": re.compile(r"(^|_)(s|sec|secs|seconds?)(_|$)"),
}
_NUMBER = re.compile(
    r"seq(uence)?(_(no|nr|num|number))?|(turn|message|msg)_?(no|nr|num|number|index)|index|position|step|turn"
)
_SINCE_1970 = 1e8
_LONG_GAP = 300.0
_SHORT_GAP = 0.3
"""Between two messages that are read in seconds. Outside of it the unit of a number is not clear."""
_SWAPPED = 0.1
KINDS = frozenset(
    {"type", "kind", "event", "event_type", "message_type", "visibility", "category", "entry", "channel", "subtype"}
    | {"action", "role", "entry_type", "step_type", "record_type", "item_type"}
)
"""Names of fields that say what an entry is."""
_SAID = re.compile(r"messages?|msg|utter(ance)?|says?|said|chat|reply|text|comment|question|answer|speech|public")
"""Words for entries that are said."""
_PRIVATE = frozenset(
    {"private", "internal", "note", "hidden", "whisper", "draft", "deleted", "partial", "interim", "demo"}
    | {"demonstration", "copied"}
)
_PUBLIC = frozenset({"public", "visible", "final"})
_NO = frozenset({"false", "no", "n", "0"})
_YES = frozenset({"true", "yes", "y", "1"})
_MAX_KINDS = 30
_OUTCOMES = {
    "completed": re.compile(r"(is_)?(completed|finished)"),
    "ended_reason": re.compile(
        r"(end|ended|ending|close|closed|termination|disconnect|disconnected|disconnection|hangup|hang_up|stop|exit)"
        r"_(reason|cause|status)"
    ),
    "error": re.compile(r"error|error_message|failure|failure_reason"),
    "duration": re.compile(r"(\w{1,40}_)?duration(_in)?_(s|sec|secs|seconds)|(\w{1,40}_)?seconds"),
}
_CONTROL = re.compile(
    r"\[[A-Z][A-Z_ -]{1,30}\]|<[|/]?[a-z][\w|-]{1,30}>|__\w{2,30}__|\{\{?\w{2,30}\}?\}|#{2,3}[A-Z_-]{2,30}#{0,3}"
)
"""Texts that are a mark and no words: `[END]`, `<hangup>`, `__start__`."""


Paths = list[tuple[str, str]]
"""Keys of a mapping, each with a path."""


class TimeGuess(NamedTuple):
    """Where the times of messages are, and how they are to be read."""

    path: str
    unit: str = ""
    order: str = ""
    unsure: str = ""
    """Why it is left to a person to say; the key is then a comment."""
    remark: str = ""


class Condition(NamedTuple):
    """Which messages are read, by a value."""

    path: str
    wanted: list[str | int | float | bool]
    left_out: list[str]


def id_path(fields: Sequence[RecordField], messages: int, *, is_exchange: bool = False) -> str:
    """The field that names a conversation. Of messages, which are so many, it is one that several of them share.

    A record with a question and its answer may be a conversation by itself.
    """
    named = [one for one in fields if names_something(one) and not _OF_OTHERS.search(one.name)]
    plain = [one for one in named if all(isinstance(value, str | int) for value in one.values)]
    if messages:
        repeated = [one for one in plain if len(set(one.values)) < len(one.values) and len(one.values) > 0.5 * messages]
        plain = repeated or (plain[:1] if is_exchange or messages == 1 else [])
    ranks = {name: rank for rank, name in enumerate(_ID_NAMES)}
    own = ranks["conversation"]  # the number of a ticket says as much as its id

    def rank(field: RecordField) -> tuple[int, int]:
        is_numbered = _NUMBERED.fullmatch(field.name) is not None
        return own if is_numbered else ranks.get(field.name, len(ranks)), field.path.count(".")

    best = min(plain, key=rank, default=None)
    return best.path if best else ""


def grouping_path(fields: Sequence[RecordField], role: RecordField | None) -> str:
    """A field of messages that may name the conversation, whatever its name: ids that both sides share, in a row."""
    if role is None:
        return ""
    count = len(role.values)
    for field in fields:
        values = [str(value) for value in field.values if isinstance(value, str | int) and not isinstance(value, bool)]
        is_id = len(values) == count and all(any(map(str.isdigit, value)) for value in values)
        if not is_id or not 1 < len(set(values)) <= count / 2 or is_time(field) or as_number(field.values[0]) == 0:
            continue
        sides: dict[str, set[str]] = {}
        for value, word in zip(values, role.values, strict=True):
            sides.setdefault(value, set()).add(role_of(str(word)))
        changes = sum(one != other for one, other in pairwise(values))
        if all({"user", "assistant"} <= both for both in sides.values()) and changes == len(sides) - 1:
            return field.path
    return ""


def names_something(field: RecordField) -> bool:
    return field.name in _ID_NAMES or field.name.endswith("id") or _NUMBERED.fullmatch(field.name) is not None


def means_something(field: RecordField) -> bool:
    """Whether its name has a meaning that a key of a mapping has, too."""
    return any(pattern.search(field.name) for pattern in (*_MEANINGS.values(), LABELS))


def meanings(fields: Sequence[RecordField], usual: Sequence[RecordField], id: str) -> tuple[Paths, Paths]:
    """Id and dialogue state of a message, by their names; what the agent concluded apart.

    The id is among the fields that most messages have. A domain alone says nothing of a state.
    """
    ids = ("id", "uuid", "message_id", "turn_id", "msg_id")
    true = [("id", one.path) for one in usual if one.name in ids and one.path != id][:1]
    predicted: Paths = []
    for key, pattern in _MEANINGS.items():
        named = [one for one in fields if pattern.search(one.name) and not is_time(one)]
        if key == "state":  # slots and values, and not the state of a machine
            named = [one for one in named if all(isinstance(parsed(value), dict | list) for value in one.values)]
        if key == "domain" and not any(other != "id" for other, _ in (*true, *predicted)):
            continue
        named = [one for one in named if not _is_of_model(one, fields)]
        concluded = [one for one in named if _PREDICTED.match(one.path.rpartition(".")[2])]
        true += [(key, one.path) for one in named if one not in concluded][:1]
        predicted += [(key, one.path) for one in concluded][:1]
    return true, predicted


def _is_of_model(field: RecordField, fields: Sequence[RecordField]) -> bool:
    """Whether a model gave its confidence with it: then it is not what an annotator says."""
    above = field.path.rpartition(".")[0]
    paths = {f"{above}.confidence".lstrip("."), f"{field.path}.confidence", f"{field.path}_confidence"}
    return any(one.path in paths for one in fields)


def is_time(field: RecordField) -> bool:
    is_named = field.name in TIMES or _IS_TIME.search(field.name) is not None
    return is_named and all(moment(seconds(value)) is not None for value in field.values)


def time_guess(fields: Sequence[RecordField], conversations: Sequence[Sequence[Any]]) -> TimeGuess | None:
    """When messages were said: by name and values; the unit and the order as far as they are clear."""
    named = [one for one in fields if is_time(one)]
    first = [one for one in named if not _LATER.search(one.name)]
    most = max((len(one.values) for one in first), default=0)
    best = min(
        (one for one in first if len(one.values) >= 0.5 * most),
        key=lambda one: (one.name not in TIMES, -len(one.values)),
        default=None,
    )
    if best is None:
        return TimeGuess(named[0].path, unsure="it may be when the message was changed or read") if named else None
    numbers = [as_number(value) if not isinstance(value, str) else number_in(value) for value in best.values]
    if any(number is None for number in numbers):
        return _with_order(TimeGuess(best.path), conversations)
    unit = next((unit for unit, pattern in _UNITS.items() if pattern.search(best.name)), "")
    if unit or max(number or 0.0 for number in numbers) > _SINCE_1970:
        return _with_order(TimeGuess(best.path, unit), conversations)
    guess = _with_order(TimeGuess(best.path), conversations)
    gaps = [abs(later - earlier) for earlier, later in _neighbours(guess, conversations)]
    gap = median(gaps) if gaps else 0.0
    if _SHORT_GAP <= gap <= _LONG_GAP:
        return guess._replace(remark="a number without a unit: read as seconds from the start")
    return guess._replace(unsure="a number without a unit: add time_unit")


def _stamps(guess: TimeGuess, messages: Sequence[Any]) -> list[float]:
    read = (moment(seconds(value_at(one, guess.path), guess.unit or None)) for one in messages)
    return [one.at for one in read if one is not None]


def _neighbours(guess: TimeGuess, conversations: Sequence[Sequence[Any]]) -> list[tuple[float, float]]:
    """Times that follow each other."""
    stamps = [_stamps(guess, messages) for messages in conversations]
    return [pair for some in stamps for pair in pairwise(some)]


def _with_order(guess: TimeGuess, conversations: Sequence[Sequence[Any]]) -> TimeGuess:
    """The order of messages by their times: as they are, newest first, or neither."""
    pairs = _neighbours(guess, conversations)
    falling, rising = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    if falling and not rising:
        return guess._replace(order="newest_first")
    if falling > _SWAPPED * len(pairs):
        return guess._replace(order="time", remark="the times are not in order: sorted by them")
    return guess._replace(remark=f"{falling:,} messages are earlier than the one before them") if falling else guess


def is_newest_first(fields: Sequence[RecordField], conversations: Sequence[Sequence[Any]]) -> bool:
    """Whether messages that are numbered begin with the last; for messages without times."""
    for field in fields:
        if _NUMBER.fullmatch(field.name) and all(as_number(value) is not None for value in field.values):
            numbers = [[as_number(value_at(one, field.path)) or 0.0 for one in some] for some in conversations]
            pairs = [pair for some in numbers for pair in pairwise(some)]
            return bool(pairs) and all(earlier > later for earlier, later in pairs)
    return False


def conditions(fields: Sequence[RecordField], messages: Sequence[Any], text: str, role: str) -> Iterator[Condition]:
    """Which messages are notes, drafts and events, by flags and kinds: those are not read."""
    for field in fields:
        words = set(words_of(field.name))
        is_private, is_public = not _PRIVATE.isdisjoint(words), not _PUBLIC.isdisjoint(words)
        condition: Condition | None = None
        if is_private != is_public and all(_flag(value) is not None for value in field.values):
            # A missing value counts as false: where only some messages say that they are public, no condition fits.
            is_whole = is_private or len(field.values) == len(messages)
            condition = _flag_condition(field, is_private=is_private) if is_whole else None
        elif field.name in KINDS and all(isinstance(value, str) for value in field.values):
            condition = _kind_condition(field, messages, text, role)
        if condition is not None:
            yield condition


def _flag(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold()
    return True if word in _YES else False if word in _NO else None


def _flag_condition(field: RecordField, *, is_private: bool) -> Condition | None:
    read = [value for value in field.values if _flag(value) is not is_private]
    if len(read) == len(field.values):
        return None
    wanted = list(dict.fromkeys(read)) or [not is_private]
    return Condition(field.path, wanted, [f"{field.path} {'true' if is_private else 'false'}"])


def _kind_condition(field: RecordField, messages: Sequence[Any], text: str, role: str) -> Condition | None:
    """Kinds of entries that are said, where a word says so; else all but notes and events."""
    kinds = list(dict.fromkeys(field.values))
    if len(kinds) > _MAX_KINDS:
        return None
    by_kind: dict[str, set[str]] = {}
    for message in messages:
        if value_at(message, text) is not None:
            speakers_of = by_kind.setdefault(as_text(value_at(message, field.path)), set())
            speakers_of.add(as_text(value_at(message, role or None)))
    left_out = [kind for kind in kinds if is_no_speech(kind)]
    spoken = {kind for kind in by_kind if kind not in left_out and any(map(_SAID.fullmatch, words_of(kind)))}
    speakers = {word for kind in spoken for word in by_kind[kind]}
    # Where only one side has entries of such a kind, it tells nothing of the other.
    if spoken and all(by_kind[kind] <= speakers for kind in by_kind):
        left_out += [kind for kind in kinds if kind in by_kind.keys() - spoken and kind not in left_out]
        others_said = "" not in by_kind
    else:
        others_said = True
    wanted: list[str | int | float | bool] = [kind for kind in kinds if kind not in left_out]
    if len(field.values) < len(messages) and others_said:
        wanted.append(False)  # messages without the field
    elif len(field.values) < len(messages):
        left_out.append(f"what has no {field.path}")
    return Condition(field.path, wanted, left_out) if left_out and wanted else None


def outcome_paths(fields: Iterable[RecordField]) -> Paths:
    """How a conversation ended, by names that say it: a flag, a word, an error, seconds."""
    paths: Paths = []
    kinds: dict[str, type | tuple[type, ...]] = {
        "completed": bool,
        "ended_reason": str,
        "error": str,
        "duration": (int, float),
    }
    for key, pattern in _OUTCOMES.items():
        named = [one for one in fields if pattern.fullmatch(one.name) and one.path.count(".") <= 1]
        fits = [one for one in named if all(isinstance(value, kinds[key]) for value in one.values)]
        flags = [one for one in fits if key != "duration" or not any(isinstance(value, bool) for value in one.values)]
        paths += [(key, one.path) for one in flags][:1]
    return paths


def others(fields: Iterable[RecordField]) -> Iterator[tuple[str, dict[str, str]]]:
    """Labels and dimensions that might be meant."""
    scalars = [one for one in fields if all(isinstance(value, str | int | float | bool) for value in one.values)]
    labels = [one for one in scalars if LABELS.search(one.name)]
    short = [one for one in scalars if one not in labels and all(len(str(value)) < 60 for value in one.values)]
    for table, chosen in (("labels", labels), ("dimensions", short[:12])):
        if chosen:
            firsts = {one.name: one for one in reversed(chosen)}
            yield table, {one.name: one.path for one in reversed(firsts.values())}


def shared(fields: Sequence[RecordField], id: str) -> list[RecordField]:
    """The fields of messages that have one value in all messages of a conversation: they may say something of it."""
    names = next((one.values for one in fields if one.path == id), [])
    return [
        one
        for one in fields
        if len(one.values) == len(names)
        and len({(name, str(value)) for name, value in zip(names, one.values, strict=True)}) == len(set(names))
    ]


def control_texts(texts: Iterable[str]) -> list[str]:
    """Texts that are a mark for a program; those of simulated users are recognised without a key."""
    marks = dict.fromkeys(one.strip() for one in texts if _CONTROL.fullmatch(one.strip()))
    return [text for text in marks if not TOKEN.fullmatch(text)][:10]
