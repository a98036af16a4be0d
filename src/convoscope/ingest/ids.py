"""Which conversation a record is of, by the names of its fields: ids, sessions, calls, labels, times.

The rules are in docs/guides/one-conversation.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

from convoscope.conversation.model import DIMENSIONS

CONVERSATION_FIELDS = ("conversation_id", "conversationId", "thread_id", "threadId", "ticket_id", "ticketId")
"""Hold the id of a conversation."""
SESSION_FIELDS = ("session_id", "sessionId", "chat_id", "chatId")
"""Hold the id of a session: a user who comes back days later may have the same."""
_USER_FIELDS = frozenset({"user_id", "userId", "user", "customer_id", "phone", "phone_number", "sender_id", "session"})
CONVERSATION_IDS = CONVERSATION_FIELDS + SESSION_FIELDS
RECORD_IDS = (*CONVERSATION_IDS, "custom_id", "id", "uuid")
"""Where a record with a list of messages has its id, the surest first."""
_OWN_IDS = frozenset(
    {*RECORD_IDS, "_id", "trial", "call_id", "call_sid", "request_id", "response_id", "message_id", "event_id"}
    | {"span_id", "interaction_id", "convo_id", "dialogue_id"}
)
"""Two records that say the same and have the same value in one of these are copies. Ids of a batch, a trace, a room or
a customer are not among them: these hold several conversations, which may say the same."""
_MESSAGE_IDS = ("message_id", "messageId", "msg_id", "event_id", "id", "_id", "uuid", "seq", "sequence")
_ID_OF_CALL = re.compile(r"(?:chatcmpl|cmpl|msg|resp|req|gen|batch_req)[-_].|run--?[0-9a-f]{8}")
_CALL_FIELDS = frozenset({"request", "response", "choices", "request_id", "response_id", "completion_id"})
_EMPTY_IDS = frozenset({"", "null", "none", "undefined", "nan", "n/a", "-"})
_TALKS = frozenset(
    {"conversation", "convo", "conv", "dialogue", "dialog", "thread", "ticket", "session", "chat", "call"}
    | {"interaction"}
)
_SESSIONS = frozenset({"session", "chat"})
_ID_WORDS = frozenset(
    {"id", "sid", "uuid", "guid", "uid", "key", "ref", "reference", "no", "nr", "number", "num", "hash"}
)
_JOINED_NAMES = frozenset(talk + word for talk in _TALKS for word in _ID_WORDS)
"""Names in one word: `callsid`, `sessionid`."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# fmt: off
_LABELS = frozenset(
    {
        "resolved", "solved", "success", "successful", "reward", "outcome", "label", "labels", "rating", "csat", "nps",
        "score", "passed", "failed", "escalated", "verdict", "grade", "correct", "completed", "converted", "satisfied",
        "feedback", "thumbs", "disposition", "goal",
    }
)
_OWNERS = {
    "trial", "attempt", "seed", "epoch", "rollout", "replica", "episode", "repeat", "experiment", "variant", "arm",
    "user", "customer", "tenant", "account", "org", "organization", "workspace", "scenario", "task", "version",
}
# fmt: on
"""Words in the names of fields whose values keep records apart: trials, and whose conversation it is."""
_TIME = re.compile(r"@?(?:.*_)?(?:time|timestamp|ts|date|datetime|at|created|updated|received|ingested|logged)", re.I)

_UPDATED = re.compile(r".*(?:updated|modified|rated|closed|resolved|ended|logged|written).*", re.I)
_STORED = re.compile(
    r"@timestamp|_time|(?:.*_)?(?:ingested|ingestion|received|logged|indexed|exported|stored)(?:_.*)?", re.I
)


def conversation_id(record: Mapping[str, Any]) -> str | None:
    """The conversation, or the session, that a record says it belongs to."""
    return record_id(record, CONVERSATION_IDS)


def record_id(record: Mapping[str, Any], names: Sequence[str] = RECORD_IDS) -> str | None:
    """The id of a record, by the first field that has one."""
    return next((id for name in names if (id := _id(record.get(name))) is not None), None)


def row_id(record: Mapping[str, Any]) -> str | None:
    """The conversation that a single message says it belongs to: by a usual field, else by a name that says so."""
    id = conversation_id(record)
    if id is None and (field := _row_field(record)):
        id = _id(record[field])
    if id is None and isinstance(metadata := record.get("metadata"), dict):
        id = row_id({name: value for name, value in metadata.items() if name != "metadata"})
    return id


def is_session_row(record: Mapping[str, Any]) -> bool:
    """Whether the id of a single message's conversation is that of a session."""
    if conversation_id(record) is not None:
        return is_session(record)
    return not _SESSIONS.isdisjoint(_words(_row_field(record)))


def _row_field(record: Mapping[str, Any]) -> str:
    """The field whose name says that it holds the id of a conversation: `call_sid`, `dialogueId`, `session`."""
    for name, value in record.items():
        if _names_talk(name) and _is_key(value):
            # The `call_id` of a tool call or its result is not the id of a phone call.
            is_tool = record.get("role") in ("tool", "function") or str(record.get("type")).endswith(("call", "output"))
            if name not in ("call_id", "callId") or not is_tool:
                return name
    return ""


@lru_cache(1024)
def _names_talk(name: str) -> bool:
    """Whether a name is that of a conversation, or of its id; not of a tool call, nor of how long a call took."""
    if len(name) > 40:
        return False
    first, *others = list(_words(name)) or [""]
    if first in _TALKS:
        return not others or (len(others) == 1 and others[0] in _ID_WORDS)
    return first in _JOINED_NAMES and not others


def _is_key(value: Any) -> bool:
    """Whether a value can be an id: a number, or a short text without blanks."""
    return _id(value) is not None and (
        isinstance(value, int) or (len(value) <= 200 and not any(map(str.isspace, value)))
    )


def unread_ids(records: Sequence[Any]) -> str:
    """A field that cuts single messages into several runs in which both sides speak; "" without one.

    Such a field is probably the id of a conversation, by a name that is not known.
    """
    rows: list[Mapping[str, Any]] = [one for one in records if isinstance(one, dict)]
    for name, value in rows[0].items() if len(rows) > _FEW_ROWS else ():
        if _is_key(value) and not is_time_field(name) and _INSIDE.isdisjoint(_words(name)) and _cuts(name, rows):
            return name
    return ""


# fmt: off
_INSIDE = frozenset(
    {
        "turn", "round", "exchange", "step", "page", "pair", "index", "idx", "seq", "position", "segment", "part",
        "state", "stage", "phase", "topic", "intent", "domain", "language", "lang", "model", "version", "day", "node",
        "flow", "section", "task", "agent", "content", "text", "message", "role",
    }
)
# fmt: on
"""Words in the names of fields that change within one conversation."""
_FEW_ROWS, _LONGEST_COUNTER = 3, 3


def _cuts(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each value of a field is in one run of at least two rows that do not all have the same speaker."""
    seen: set[str] = set()
    for value, run in groupby(rows, key=lambda row: row.get(name)):
        if not _is_key(value) or str(value) in seen:
            return False
        seen.add(str(value))
        if len({str(row.get("role") or row.get("speaker") or row.get("sender")) for row in run}) < 2:
            return False
    return len(seen) > 1


def is_session(record: Mapping[str, Any]) -> bool:
    """Whether the id of its conversation is that of a session."""
    field = next((name for name in CONVERSATION_IDS if _id(record.get(name)) is not None), "")
    return field in SESSION_FIELDS


def is_session_field(name: str) -> bool:
    """Whether a field of this name, as a user's mapping has it, holds the id of a session or of a user."""
    return name in SESSION_FIELDS or name in _USER_FIELDS


def names_conversation(record: Mapping[str, Any]) -> bool:
    """Whether a record has a field for the id of a conversation, be it empty."""
    return any(name in record for name in CONVERSATION_IDS) or row_id(record) is not None


def _id(value: Any) -> str | None:
    if isinstance(value, str):
        return None if len(value) < 10 and value.strip().casefold() in _EMPTY_IDS else value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def is_counter(id: str) -> bool:
    """Whether an id is a small number, which several files may use for several conversations."""
    return len(id) <= _LONGEST_COUNTER and id.isdecimal()


def is_id_of_call(id: str) -> bool:
    """Whether an id is that of one response, request or message of an API: `chatcmpl-…`, `msg_…`, `resp_…`."""
    return _ID_OF_CALL.match(id) is not None


def is_call(record: Any) -> bool:
    """Whether a record says itself that it is one call of a model: it holds a request, a response or choices."""
    if not isinstance(record, dict):
        return False
    return not _CALL_FIELDS.isdisjoint(record) or record.get("object") in ("chat.completion", "response")


class Apart(NamedTuple):
    """What keeps records apart."""

    owners: tuple[tuple[str, str], ...]
    """Trials, and whose conversation it is: records in which they differ are never one."""
    labels: tuple[tuple[str, str], ...]
    """How it went. That is known late, so that two records of one conversation may differ in it."""


def kept_apart(*records: Any) -> Apart:
    """The labels, trials and owners that some mappings name."""
    owners: list[tuple[str, str]] = []
    labels: list[tuple[str, str]] = []
    for mapping in records:
        for path, name, value in islice(_scalars(mapping), _MOST_FIELDS):
            if name == "model":
                continue
            words = set(_words(path))
            if path not in DIMENSIONS and words & _LABELS:
                labels.append((path, str(value)))
            elif path in DIMENSIONS or words & _OWNERS:
                owners.append((path, str(value)))
    return Apart(tuple(sorted(owners)), tuple(sorted(labels)))


def times_of(*records: Any, of_talk: bool = False) -> Iterator[Any]:
    """The times that records have themselves; `of_talk` leaves out when they were written, rated or stored."""
    for mapping in records:
        for name, value in mapping.items() if isinstance(mapping, dict) else ():
            is_other = of_talk and (is_storage_time(name) or _UPDATED.fullmatch(name))
            if value not in (None, "") and is_time_field(name) and not is_other:
                yield value


_MOST_FIELDS, _DEPTH = 500, 4
_TALK = frozenset({"messages", "request", "response", "choices", "tools", "usage", "input", "output"})
"""Fields that hold the talk itself, or what it cost: they differ between the calls of one conversation."""


def _scalars(mapping: Any, above: str = "", depth: int = 0) -> Iterator[tuple[str, str, Any]]:
    """The single values of a mapping and of what it holds, with their path and their name.

    An entry `{"name": …, "value": …}` of a list is a field of that name.
    """
    for name, value in mapping.items() if isinstance(mapping, dict) else ():
        path = f"{above}{name}"
        if _is_scalar(value):
            yield path, name, value
        elif isinstance(value, dict | list) and depth < _DEPTH and name not in _TALK:
            for entry in [value] if isinstance(value, dict) else islice(value, _MOST_FIELDS):
                if isinstance(entry, dict):
                    named = entry.get("name") if {"name", "value"} <= entry.keys() else None
                    inner = {named: entry["value"]} if isinstance(named, str) else entry
                    yield from _scalars(inner, f"{path}.", depth + 1)


def has_label(record: Mapping[str, Any]) -> bool:
    """Whether a field says how a conversation went."""
    return any(_is_scalar(value) and not _LABELS.isdisjoint(_words(name)) for name, value in record.items())


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and value != ""


def _words(name: str) -> Iterator[str]:
    return (word.lower() for word in _WORD.findall(name))


def has_own_id(record: Any) -> bool:
    """Whether a record, or what it wraps, has an id of its own."""
    return any(_id(one[name]) is not None for one in _wrapped(record) for name in _OWN_IDS.intersection(one))


def has_trial(record: Any) -> bool:
    return any(_id(one.get("trial")) is not None for one in _wrapped(record))


def message_id(record: Mapping[str, Any]) -> str | None:
    """The id of a single message."""
    return next((id for name in _MESSAGE_IDS if (id := _id(record.get(name))) is not None), None)


def has_time(record: Any) -> bool:
    """Whether a record, or an entry of a list in it, has a time."""
    if isinstance(record, list):
        return any(_has_time_field(one) for one in record if isinstance(one, dict))
    if not isinstance(record, dict):
        return False
    lists = [value for one in _wrapped(record) for value in one.values() if isinstance(value, list)]
    return any(map(_has_time_field, _wrapped(record))) or any(map(has_time, lists))


def _has_time_field(record: Mapping[str, Any]) -> bool:
    return any(value not in (None, "") and is_time_field(name) for name, value in record.items())


def is_time_field(name: str) -> bool:
    """Whether the name of a field says that it holds a time: `timestamp`, `ingested_at`, `@timestamp`."""
    return len(name) < 40 and _TIME.fullmatch(name) is not None


def is_storage_time(name: str) -> bool:
    """Whether a field says when a record was stored or sent on."""
    return len(name) < 40 and _STORED.fullmatch(name) is not None


def comparable(record: Any) -> Any:
    """A record with an id as its copies have it: when it was written does not matter.

    In a session the same may be said again at another time; only when it was stored does not matter there.
    """
    if not isinstance(record, dict):
        return record
    left_out = is_storage_time if is_session(record) else is_time_field
    fields: dict[str, Any] = {
        name: str(value) if name in RECORD_IDS and isinstance(value, int) else value
        for name, value in record.items()
        if not left_out(name)
    }
    if isinstance(fields.get("metadata"), dict):
        fields["metadata"] = {name: value for name, value in fields["metadata"].items() if not left_out(name)}
    return fields


def _wrapped(record: Any) -> Iterator[Mapping[str, Any]]:
    """A record, and the mappings that it wraps where ids are looked for."""
    if isinstance(record, dict):
        yield record
        for name in ("metadata", "request", "response", "body"):
            if isinstance(record.get(name), dict):
                yield record[name]
