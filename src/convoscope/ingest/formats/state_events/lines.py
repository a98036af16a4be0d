"""The lines of an event stream: what their fields are called, when they happened, and in which order.

Lines of one producer have few shapes. What a shape means is concluded once, as a `LinePlan`, and looked up by
the names of its fields, so that a line costs a few lookups.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from convoscope.conversation import DIMENSIONS, Time
from convoscope.conversation.events import moment
from convoscope.ingest.reader import Record
from convoscope.ingest.record import ROLES, JsonObject
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
_MANY_PLANS = 4096
_NEAR = 8


@dataclass(frozen=True, slots=True)
class LinePlan:
    """What the fields of a shape of line are."""

    kind: str
    name: str
    """The event, as the line calls it."""
    payload: str = ""
    """The field that the event is nested in."""
    time: str = ""
    seq: str = ""
    id: str = ""
    shared: tuple[str, ...] = ()
    """What it says of the whole conversation; lines that say the same have the same tuple."""
    pick: Callable[[JsonObject], Any] | None = None
    """Gives what it says of that."""
    names: tuple[str, ...] = ()
    """The fields of its kind, in the order of the table; "" where the line has none."""
    values: tuple[str, ...] = ()
    """Figures of a turn."""
    extra: tuple[str, ...] = ()
    """All that is left."""
    unknown: tuple[str, ...] = ()
    """Those of them whose names are unknown."""


# Sorted by time, number and index; then its time, plan, fields and record. A plain tuple, since there are millions.
Line = tuple[float, float, int, Time | None, LinePlan, JsonObject, Record]
_ORDER = itemgetter(0, 1, 2)


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
    for name in inner.keys() & _META & fields.keys():
        flat[name] = fields[name]
        if inner[name] != fields[name]:
            flat[f"{payload}.{name}"] = inner[name]
    return flat


def payload_of(fields: JsonObject) -> str:
    """The field that the event is nested in; "" where it is the line itself."""
    return next((name for name in PAYLOADS if type(fields.get(name)) is dict), "")


def may_hold(value: Any) -> bool:
    """A list, or a record that has one of events or texts."""
    return type(value) is list or (
        type(value) is dict and any(type(value.get(name)) is list for name in (EVENTS, *TEXT_LISTS))
    )


class HoldsEvents(Exception):
    """A line is a record with a list of events, and has to be taken apart first."""


class LinePlanner:
    """Finds the plan of a line. Plans are kept: there are few shapes, but an odd log may have any number."""

    def __init__(self) -> None:
        self.plans: dict[tuple[str, ...], LinePlan] = {}
        """By the field that names the event, the event, and the names of all fields; only where they need no copy."""
        self.nested: dict[tuple[str, ...], LinePlan] = {}
        self.taken_apart = False
        """Lists of events were taken out of their records: what looks like one now is not read."""
        self.usual = EVENT_NAMES[0]
        """The field that named the event of the line before."""

    def look(self, fields: JsonObject) -> tuple[LinePlan, JsonObject]:
        """The plan of a line, and its fields, flat."""
        usual = self.usual
        name = fields.get(usual)
        if type(name) is not str:
            return self._look_closer(fields)
        key = (usual, name, *fields)
        plan = self.plans.get(key)
        if plan is not None:
            return plan, fields
        outer = self.nested.get(key)
        if outer is None or type(fields.get(outer.payload)) is not dict:
            return self._look_closer(fields)
        flat = flattened(fields, outer.payload)
        field = _outside(usual, fields[outer.payload])
        inner = self.nested.get(("", field, name, *flat))
        if inner is None:
            inner = _kept(self.nested, ("", field, name, *flat), _plan(outer.kind, field, name, flat))
        return inner, flat

    def _look_closer(self, fields: JsonObject) -> tuple[LinePlan, JsonObject]:
        field, name = event_name(fields)
        payload = payload_of(fields)
        kind = kind_of(name)
        if not kind and not self.taken_apart and may_hold(fields):
            raise HoldsEvents
        flat = fields
        if payload:
            flat = flattened(fields, payload)
            if kind and field == _first(EVENT_NAMES, fields):
                _kept(self.nested, (field, name, *fields), LinePlan(kind, name, payload))
                self.usual = field
            if kind:
                field = _outside(field, fields[payload])
            else:
                field, name = event_name(flat)
                kind = kind_of(name)
        if not kind and is_text(flat):
            return LinePlan(TEXT, name, time=_first(TEXT_TIMES, flat), seq=_first(SEQUENCES, flat)), flat
        plan = _plan(kind or (OTHER if name else NOT_AN_EVENT), field, name, flat)
        if _depends_on_names(field, kind, fields):
            self.usual = field
            _kept(self.plans, (field, name, *fields), plan)
        return plan, flat


def _depends_on_names(field: str, kind: str, fields: JsonObject) -> bool:
    """Whether every line with these fields, and this event in this field, has the same plan."""
    if not field or any(name in fields for name in PAYLOADS):
        return False
    if kind:
        return field == _first(EVENT_NAMES, fields)
    others = (*EVENT_NAMES, *ROLE_NAMES, EVENTS, *TEXT_LISTS)
    return not any(name in fields for name in others if name != field)


def _kept(plans: dict[tuple[str, ...], LinePlan], key: tuple[str, ...], plan: LinePlan) -> LinePlan:
    if len(plans) >= _MANY_PLANS:
        plans.clear()
    plans[key] = plan
    return plan


def _outside(field: str, inner: JsonObject) -> str:
    """The field that names the event, except where what is nested has another use for it."""
    return "" if field == "name" and "name" in inner else field


def _first(names: Iterable[str], fields: Iterable[str]) -> str:
    return next((name for name in names if name in fields), "")


def _plan(kind: str, event: str, name: str, fields: JsonObject) -> LinePlan:
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
    pick = itemgetter(*shared) if shared else None
    return LinePlan(kind, name, "", time, seq, id, _interned(shared), pick, tuple(own_names), values, extra, unknown)


@lru_cache(maxsize=4096)
def _interned(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


class Ordered(NamedTuple):
    """The lines as they happened, and the clocks of their times."""

    lines: list[Line]
    clocks: Collection[str]


def in_order(records: Sequence[Record], planner: LinePlanner, notes: Notes, second: int = 0) -> Ordered:
    """Every line with its plan and time, sorted by time, number and index.

    A line without a time stays after the line before it. Lines that are the same in everything
    are one. `second` is the index at which another list begins: merging the two is not reported.
    """
    clocked = _Clocked(notes)
    lines, disordered, ties = _placed(records, planner, clocked, second)
    if len(clocked.clocks) > 1:
        lines, disordered = _by_one_clock(lines, notes, second)
    if disordered or second:
        lines.sort(key=_ORDER)
    if disordered:
        notes.repaired("events_out_of_order", f"{disordered} of {len(lines)} events")
    if ties or disordered or second or len(clocked.clocks) > 1:
        lines = _once(lines, notes)
    return Ordered(lines, clocked.clocks)


class _Placed(NamedTuple):
    lines: list[Line]
    disordered: int
    """Lines that come after one that happened later."""
    ties: int
    """Lines that may repeat another, because they are of its moment."""


def _placed(records: Sequence[Record], planner: LinePlanner, clocked: _Clocked, second: int) -> _Placed:
    """Every line with its position in the order. Written for speed: a stream has millions of lines."""
    lines: list[Line] = []
    append, plans, usual = lines.append, planner.plans, planner.usual
    time: Time | None
    same: Time | None = None
    at, seq, anchor, wall = _NEVER, 0.0, 0, False
    last: Any = None
    high, high_seq, disordered, ties = at, seq, 0, 0
    for index, record in enumerate(records):
        fields = record.value
        try:
            plan = plans[usual, fields[usual], *fields]
        except (KeyError, TypeError, IndexError):
            plan, fields = planner.look(fields) if type(fields) is dict else (_NO_OBJECT, {"value": fields})
            usual = planner.usual
        time = None
        if plan.time:
            stamp = fields[plan.time]
            if stamp == last:
                time = same
            elif type(stamp) is float and 1e8 <= stamp < 1e11:
                # What most lines have, without a call.
                wall, last = True, stamp
                time = same = Time(stamp)
            elif stamp is not None:
                last = stamp
                time = same = clocked.time(stamp, record)
        if time is not None or at == _NEVER:
            if time is not None:
                at, anchor = time.at, index
            if plan.seq:
                number = fields[plan.seq]
                seq = number if type(number) is int else _number(number, seq)
            if at > high or (at == high and seq > high_seq) or index == second:
                high, high_seq = at, seq
            elif at == high and seq == high_seq:
                ties += 1
            else:
                disordered += 1
        elif plan.seq:
            ties += 1
        append((at, seq, anchor, time, plan, fields, record))
    if wall:
        clocked.clocks.add("wall")
    return _Placed(lines, disordered, ties)


_NEVER = float("-inf")
_NO_OBJECT = LinePlan(NOT_AN_EVENT, "", extra=("value",))


def _number(value: Any, default: float) -> float:
    """A number in the order, also of its text."""
    try:
        number = default if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return number if math.isfinite(number) else default


class _Clocked:
    """Reads times, and notes once what had to be concluded. Seconds are what the format asks for."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.clocks: set[str] = set()
        self._noted: set[str] = {"time_in_epoch_s"}

    def time(self, value: Any, record: Record) -> Time | None:
        if type(value) is float and 1e8 <= value < 1e11:
            self.clocks.add("wall")
            return Time(value)
        read = moment(value)
        if read is None:
            with self.notes.standing_at(record.file, record.number):
                self.notes.set_aside("unreadable_time", repr(value)[:80])
            return None
        if read.inferred and read.inferred not in self._noted:
            self._noted.add(read.inferred)
            with self.notes.standing_at(record.file, record.number):
                self.notes.inferred(read.inferred, repr(value)[:80])
        self.clocks.add(read.kind)
        return Time(read.at, read.kind)


def _by_one_clock(lines: Sequence[Line], notes: Notes, second: int) -> tuple[list[Line], int]:
    """Times of two clocks cannot be compared: lines of the rarer one stay where they are in the file."""
    clocks = Counter(time.clock for _, _, _, time, _, _, _ in lines if time is not None)
    usual = max(clocks, key=lambda clock: (clocks[clock], clock))
    notes.repaired(
        "mixed_clocks", f"{clocks.total() - clocks[usual]} of {len(lines)} events are not by the {usual} clock"
    )
    placed: list[Line] = []
    at, seq_here, anchor = _NEVER, 0.0, 0
    high, disordered = (at, seq_here), 0
    for index, (_, seq, _, time, plan, fields, record) in enumerate(lines):
        if time is not None and time.clock == usual:
            at, seq_here, anchor = time.at, seq, index
            if (at, seq_here) >= high or index == second:
                high = at, seq_here
            else:
                disordered += 1
        placed.append((at, seq_here, anchor, time, plan, fields, record))
    return placed, disordered


def _once(lines: list[Line], notes: Notes) -> list[Line]:
    """Without lines that repeat another in everything, their time or number included."""
    again: list[int] = []
    begun, seen = 0, set[str]()
    before: Line | None = None
    for index, line in enumerate(lines):
        if before is None or line[0] != before[0] or line[1] != before[1]:
            begun = index
            seen.clear()
        elif (line[3] is not None or line[4].seq) and _is_repeated(lines, begun, index, seen):
            again.append(index)
        before = line
    if not again:
        return lines
    for index in again:
        record = lines[index][6]
        with notes.standing_at(record.file, record.number):
            notes.repaired("duplicate_event", lines[index][4].name)
    left_out = set(again)
    return [line for index, line in enumerate(lines) if index not in left_out]


def _is_repeated(lines: Sequence[Line], begun: int, index: int, seen: set[str]) -> bool:
    """Compared with the others of its moment: one by one where there are few, by their text where there are many."""
    fields = lines[index][5]
    if index - begun <= _NEAR:
        return any(lines[other][5] == fields for other in range(begun, index))
    if not seen:
        seen.update(repr(lines[other][5]) for other in range(begun, index))
    text = repr(fields)
    if text in seen:
        return True
    seen.add(text)
    return False


# Values, however they are written.

TRUE, FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
DAY_MS = 86_400_000.0


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
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    took = value * times
    return took if math.isfinite(took) and 0 <= took <= DAY_MS else None
