"""The lines of an event stream: what their fields are called, when they happened, and in which order.

Lines of one producer have few shapes. What a shape means is concluded once from the names of its fields, as a
`LinePlan`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from convoscope.conversation import DIMENSIONS, Time
from convoscope.conversation.events import moment
from convoscope.ingest.reader import Record
from convoscope.ingest.record import ROLES, JsonObject, as_number
from convoscope.ingest.report import Notes

ENTERED, EXITED, TURN, GUARD = "state_entered", "state_exited", "turn_complete", "guard_evaluated"
SLOT, CALL, RESULT, ENDED, ERROR = "slot_filled", "tool_called", "tool_result", "conversation_ended", "error"
TEXT, OTHER, NOT_AN_EVENT = "text", "other", "not_an_event"

KINDS = {kind: kind for kind in (ENTERED, EXITED, TURN, GUARD, SLOT, CALL, RESULT, ENDED, ERROR)}
KINDS["turn_completed"] = TURN
FLOW_EVENTS = frozenset({ENTERED, EXITED, TURN, GUARD, SLOT, ENDED})
"""Names that no other format uses: a line with one is of this format."""

IDS = ("conversation_id", "session_id", "call_id")
EVENT_NAMES = ("event", "type", "event_type", "name")
TIMES = ("timestamp", "ts", "time")
TEXT_TIMES = (*TIMES, "created_at", "created")
SEQUENCES = ("seq", "sequence", "sequence_number")
PAYLOADS = ("data", "payload")
EVENTS, TEXT_LISTS = "events", ("messages", "transcript", "turns")
SHARED = frozenset({*IDS, *DIMENSIONS, "agent_name", "persona"})
"""What lines say of the whole conversation."""
SPEAKERS = {**ROLES, "caller": "user", "client": "user", "guest": "user", "visitor": "user"}
ROLE_NAMES, TEXT_NAMES = ("role", "speaker", "participant"), ("content", "text", "message", "transcript")

_STATE = ("state", "state_name", "state_id")
_TOOL = ("name", "tool", "tool_name", "function")
_TOOL_IDS = ("tool_call_id", "call_id")
_FIELDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    ENTERED: ((*_STATE, "name"),),
    EXITED: (
        (*_STATE, "from_state", "from", "name"),
        ("to_state", "to", "next_state", "target_state", "target"),
        ("reason", "trigger", "cause"),
    ),
    TURN: (_STATE, ("latency_ms", "latencyMs"), ("latency_s", "latency_seconds"), ("speech_id",)),
    GUARD: (("guard", "guard_name", "name", "condition"), ("result", "passed"), ("error", "exception"), _STATE),
    SLOT: (("slot", "slot_name", "name", "key"), ("value", "slot_value"), _STATE),
    CALL: (_TOOL, ("arguments", "args", "parameters", "input"), _TOOL_IDS),
    RESULT: (_TOOL, ("result", "output", "response", "content"), _TOOL_IDS),
    ENDED: (
        ("completed",),
        ("stop_reason", "ended_reason", "end_reason", "reason"),
        ("final_status", "status"),
        ("error",),
        ("errored", "is_error"),
        ("duration_s", "duration_seconds"),
    ),
    ERROR: (("error", "message", "detail"), ("fatal",), ("severity", "level"), ("recoverable",)),
}
_VERDICTS = frozenset({"success", "ok", "is_error", "error", "error_message", "error_type", "status"})
_USUAL = frozenset({*_STATE, *_VERDICTS, "turn", "turn_index", "turn_id", "id", "event_id"})
_OF_TURN = re.compile(
    r"model|.*tokens?(_.*)?|.*_(ms|s|secs|seconds|usd)|cost|ttft|ttfb|duration|latency|turn(_index|_id)?",
    re.DOTALL,
)
_META = frozenset({*EVENT_NAMES, *TIMES, *SEQUENCES, *IDS}) - {"name"}

_OWN = {CALL: "call_id", RESULT: "call_id", TURN: "model"}
_NEAR = 8
_NEVER = float("-inf")
TRUE, FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
DAY_MS = 86_400_000.0


@dataclass(frozen=True, slots=True)
class LinePlan:
    """What the fields of a shape of line are."""

    kind: str
    name: str
    """The event, as the line calls it."""
    time: str = ""
    seq: str = ""
    id: str = ""
    shared: tuple[str, ...] = ()
    """What it says of the whole conversation."""
    names: tuple[str, ...] = ()
    """The fields of its kind, in the order of the table; "" where the line has none."""
    values: tuple[str, ...] = ()
    """Figures of a turn."""
    extra: tuple[str, ...] = ()
    """All that is left."""
    unknown: tuple[str, ...] = ()
    """Those of them whose names are unknown."""


class EventLine(NamedTuple):
    """A line, and its position in the order: by time, number and index."""

    at: float
    seq: float
    anchor: int
    time: Time | None
    plan: LinePlan
    fields: JsonObject
    record: Record

    @property
    def own(self) -> list[Any]:
        """The values of the fields of its kind, in the order of the table; None where the line has none."""
        fields = self.fields
        return [fields[name] if name else None for name in self.plan.names]

    @property
    def id(self) -> str:
        return text_of(self.fields[self.plan.id]) if self.plan.id else ""


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """The event that a name means, in whatever way it is written; "" for none."""
    return KINDS.get(folded(name), "")


def folded(name: str) -> str:
    """`StateEntered`, `state-entered` and `STATE ENTERED` are `state_entered`."""
    apart = name.strip() if name.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s\-.:_]+", "_", apart).lower()


def event_name(fields: JsonObject) -> tuple[str, str]:
    """The field that says which event this is, and what it says; ("", "") where none does."""
    first = "", ""
    for field in EVENT_NAMES:
        name = fields.get(field)
        if type(name) is str and name:
            if kind_of(name):
                return field, name
            if not first[0] and field != "name":
                first = field, name
    return first


def is_text(fields: JsonObject) -> bool:
    """Whether a line is a message."""
    role = next((fields[name] for name in ROLE_NAMES if name in fields), None)
    text = next((fields[name] for name in TEXT_NAMES if name in fields), None)
    return type(role) is str and (role.lower() in SPEAKERS or isinstance(text, str)) and text is not None


def flattened(fields: JsonObject, payload: str) -> JsonObject:
    """The fields of a line and of what it nests, in one object."""
    inner = fields[payload]
    flat = {**fields, **inner}
    if payload not in inner:
        del flat[payload]
    for name in sorted(inner.keys() & _META & fields.keys()):
        flat[name] = fields[name]
        if inner[name] != fields[name]:
            flat[f"{payload}.{name}"] = inner[name]
    return flat


def payload_of(fields: JsonObject) -> str:
    """The field that the event is nested in; "" where it is the line itself."""
    for name in PAYLOADS:
        if type(fields.get(name)) is dict:
            return name
    return ""


def may_hold(value: Any) -> bool:
    """A list, or a record that has one of events or texts."""
    return type(value) is list or (
        type(value) is dict and any(type(value.get(name)) is list for name in (EVENTS, *TEXT_LISTS))
    )


class HoldsEvents(Exception):
    """A line is a record with a list of events, and has to be taken apart first."""


def planned(fields: JsonObject, *, taken_apart: bool) -> tuple[LinePlan, JsonObject]:
    """The plan of a line, and its fields, flat.

    `taken_apart`: lists of events were taken out of their records, so that what looks like one now is not read.
    """
    field, name = event_name(fields)
    payload = payload_of(fields)
    kind = kind_of(name)
    if not kind and not taken_apart and may_hold(fields):
        raise HoldsEvents
    flat = fields
    if payload:
        flat = flattened(fields, payload)
        if not kind:
            field, name = event_name(flat)
            kind = kind_of(name)
        elif field == "name" and "name" in fields[payload]:
            # What is nested has another use for the field.
            field = ""
    if not kind and is_text(flat):
        return LinePlan(TEXT, name, time=_first(TEXT_TIMES, flat), seq=_first(SEQUENCES, flat)), flat
    return _plan(kind or (OTHER if name else NOT_AN_EVENT), field, name, tuple(flat)), flat


def _first(names: Iterable[str], fields: Iterable[str]) -> str:
    return next((name for name in names if name in fields), "")


@lru_cache(maxsize=4096)
def _plan(kind: str, event: str, name: str, fields: tuple[str, ...]) -> LinePlan:
    """Which field is what, by their names alone."""
    left = [field for field in fields if field != event]
    time, seq = _first(TIMES, left), _first(SEQUENCES, left)
    left = [field for field in left if field not in (time, seq)]
    # In the line of a tool, a call is one of the tool; in that of a turn, the model is the turn's.
    own = _OWN.get(kind, "")
    shared = tuple(field for field in left if field in SHARED and field != own)
    own_names: list[str] = []
    for names in _FIELDS.get(kind, ()):
        own_names.append(_first(names, [field for field in left if field not in (*shared, *own_names)]))
    id = _first(("event_id", "id"), [field for field in left if field not in own_names])
    used = {*shared, *own_names, id}
    values: tuple[str, ...] = ()
    if kind == TURN:
        values = tuple(field for field in left if field not in used and _OF_TURN.fullmatch(field))
    extra = tuple(field for field in left if field not in used and field not in values)
    unknown = () if kind in (OTHER, NOT_AN_EVENT) else tuple(field for field in extra if field not in _USUAL)
    return LinePlan(kind, name, time, seq, id, shared, tuple(own_names), values, extra, unknown)


class Ordered(NamedTuple):
    """The lines as they happened, and the clocks of their times."""

    lines: list[EventLine]
    clocks: Collection[str]


def in_order(records: Sequence[Record], notes: Notes, *, taken_apart: bool, second: int = 0) -> Ordered:
    """Every line with its plan and time, sorted by time, number and index.

    A line without a time stays after the line before it, and so does one whose time is by a rarer clock, since times of
    two clocks cannot be compared. Lines that are the same in everything are one. `second` is the index at which
    another list begins: merging the two is not reported.
    """
    timed = list(_timed(records, notes, taken_apart=taken_apart))
    clocks = Counter(time.clock for time, _, _ in timed if time is not None)
    usual = max(clocks, key=lambda clock: (clocks[clock], clock), default="")
    if len(clocks) > 1:
        rare = clocks.total() - clocks[usual]
        notes.repaired("mixed_clocks", f"{rare} of {len(timed)} events are not by the {usual} clock")
    lines: list[EventLine] = []
    at, seq, anchor = _NEVER, 0.0, 0
    high, disordered = (at, seq), 0
    for index, (record, (time, plan, fields)) in enumerate(zip(records, timed, strict=True)):
        is_placed = time is not None and time.clock == usual
        if is_placed or at == _NEVER:
            if plan.seq and (is_placed or len(clocks) < 2):
                seq = _number(fields[plan.seq], seq)
            if time is not None and is_placed:
                at, anchor = time.at, index
            if (at, seq) >= high or index == second:
                high = at, seq
            else:
                disordered += 1
        lines.append(EventLine(at, seq, anchor, time, plan, fields, record))
    if disordered or second:
        lines.sort(key=itemgetter(0, 1, 2))
    if disordered:
        notes.repaired("events_out_of_order", f"{disordered} of {len(lines)} events")
    return Ordered(_once(lines, notes), clocks)


def _timed(
    records: Sequence[Record], notes: Notes, *, taken_apart: bool
) -> Iterator[tuple[Time | None, LinePlan, JsonObject]]:
    """The time, plan and fields of each line. What had to be concluded is noted once; seconds are what is usual."""
    noted = {"time_in_epoch_s"}
    last: Any = None
    same: Time | None = None
    for record in records:
        plan, fields = _NO_OBJECT, {"value": record.value}
        if type(record.value) is dict:
            plan, fields = planned(record.value, taken_apart=taken_apart)
        stamp = fields[plan.time] if plan.time else None
        if type(stamp) is float and 1e8 <= stamp < 1e11:
            last, same = stamp, Time(stamp)  # What most lines have, without a call.
        elif stamp is not None and stamp != last:
            last, read = stamp, moment(stamp)
            same = None if read is None else Time(read.at, read.kind)
            if read is None or (read.inferred and read.inferred not in noted):
                with notes.at_line(record.file, record.number):
                    if read is None:
                        notes.set_aside("unreadable_time", repr(stamp)[:80])
                    else:
                        noted.add(read.inferred)
                        notes.inferred(read.inferred, repr(stamp)[:80])
        yield None if stamp is None else same, plan, fields


_NO_OBJECT = LinePlan(NOT_AN_EVENT, "", extra=("value",))


def _number(value: Any, default: float) -> float:
    """A number in the order, also of its text."""
    try:
        number = default if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return number if math.isfinite(number) else default


def _once(lines: list[EventLine], notes: Notes) -> list[EventLine]:
    """Without lines that repeat another in everything, their time or number included."""
    distinct: list[EventLine] = []
    same_moment: list[JsonObject] = []
    texts: set[str] = set()
    for line in lines:
        if distinct and (line.at, line.seq) != (distinct[-1].at, distinct[-1].seq):
            same_moment, texts = [], set()
        is_repeated = False
        if line.time is not None or line.plan.seq:
            # One by one where there are few of a moment, by their text where there are many.
            if len(same_moment) <= _NEAR:
                is_repeated = line.fields in same_moment
            else:
                texts = texts or set(map(repr, same_moment))
                is_repeated = repr(line.fields) in texts
        same_moment.append(line.fields)
        if texts:
            texts.add(repr(line.fields))
        if is_repeated:
            with notes.at_line(line.record.file, line.record.number):
                notes.repaired("duplicate_event", line.plan.name)
        else:
            distinct.append(line)
    return distinct


# Values, however they are written.


def text_of(value: Any) -> str:
    """A name, also where it is a number, or an object with a name."""
    if type(value) is str:
        return value
    if value is None or isinstance(value, bool | list):
        return ""
    if isinstance(value, dict):
        return next((str(value[name]) for name in ("name", "id") if isinstance(value.get(name), str | int)), "")
    return str(value)


def truth(value: Any) -> bool | None:
    """True or false, also as text or as 1 and 0."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, int | float | str) else ""
    text = text.removesuffix(".0")
    return True if text in TRUE else False if text in FALSE else None


def error_of(value: Any) -> str:
    """What went wrong; "" where nothing did."""
    if not value:
        return ""
    if isinstance(value, str):
        return value if value.strip() else ""
    if isinstance(value, dict):
        message = next((value[name] for name in ("message", "error", "type") if isinstance(value.get(name), str)), "")
        return message or repr(value)[:500]
    return "failed" if value is True else repr(value)[:500]


def milliseconds(value: Any, times: float) -> float | None:
    """A latency, also of its text; None where it cannot be one."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    number = as_number(value)
    return number * times if number is not None and 0 <= number * times <= DAY_MS else None
