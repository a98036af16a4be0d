"""A flow definition from plain values, in whatever shape its authors wrote it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.conversation.flow import ESCALATIONS, Flow, FlowSegment, FlowState, TargetSlot, Terminal
from convoscope.errors import InputError

_NAMES = ("flow", "name", "id")
_STATE_NAMES = ("name", "id", "state")
_SEGMENT_NAMES = ("name", "id", "segment")
_SLOT_NAMES = ("name", "slot")
_BUDGETS = ("latency_budget_ms", "latency_budget_s")
_SORTS = ("terminal_type", "sort", "outcome")
_CONTRACTS = ("contract", "allowed", "expected")
_STATE_FIELDS = ("required_slots", "speech_act", "lifecycle_phase", "segment", "terminal", "terminal_type", *_BUDGETS)
_STATE_KEYS = (*_STATE_NAMES, *_STATE_FIELDS, "sort", "outcome", "rank", "order")
_SEGMENT_KEYS = (*_SEGMENT_NAMES, "kind", "purpose", "members", "states", "target_slots", "exit_guard")
_SLOT_KEYS = (*_SLOT_NAMES, "required", "validator", "confirmation")
_FLOW_FIELDS = ("segments", "order", "terminals", "completion_slots", "final_status", *_BUDGETS)
_ONLY_OF_FLOWS = frozenset(("segments", "terminals", "completion_slots"))
"""What is said of nothing but flows."""
_FLOW_KEYS = (*_NAMES, "states", *_FLOW_FIELDS)
_OF_CONVERSATIONS = frozenset(
    {"messages", "events", "timeline", "turns", "transcript", "schema", "text"}
    | {"conversation_id", "session_id", "call_id"}
)
"""What a log says and a declaration does not."""

_TERMINALS: dict[str, Terminal] = {
    **dict.fromkeys(("success", "succeeded"), "success"),
    **dict.fromkeys(("failure", "failed"), "failure"),
    **dict.fromkeys(("escalation", "escalated", "escalate"), "escalation"),
    "unknown": "unknown",
}
_WRAPPED = 3
"""How deep a flow may be nested in what declares it."""
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
SEE_FLOWS = "docs/guides/flow-definitions.md shows what can be declared"


class FlowFile(NamedTuple):
    """The flows that a file declares, and what looked odd in it."""

    flows: tuple[Flow, ...]
    warnings: tuple[str, ...] = ()


def declares_flow(value: Any, depth: int = 0) -> bool:
    """Whether a value is a flow definition, though it was not given as one."""
    if depth > _WRAPPED or not value:
        return False
    if isinstance(value, list):
        return all(declares_flow(one, depth + 1) for one in value)
    if not isinstance(value, dict) or not _OF_CONVERSATIONS.isdisjoint(value):
        return False
    inside = value.get("flows", value.get("flow"))
    if "flows" in value and isinstance(inside, dict | list):
        listed = inside.values() if isinstance(inside, dict) else inside
        return all(isinstance(one, dict) and ("states" in one or declares_flow(one, depth + 1)) for one in listed)
    if isinstance(inside, dict | list):
        return declares_flow(inside, depth + 1)
    if "flow" in value:
        return "states" in value or not _ONLY_OF_FLOWS.isdisjoint(value)
    states = value.get("states")
    if isinstance(states, dict | list) and not set(_FLOW_FIELDS).isdisjoint(value):
        return True
    fields = states.values() if isinstance(states, dict) else states if isinstance(states, list) else ()
    return any(isinstance(one, dict) and not one.keys().isdisjoint(_STATE_FIELDS) for one in fields)


class _At(NamedTuple):
    """Where something is in a file, for errors and warnings about it."""

    file: str
    warnings: list[str]
    path: str = ""

    def __truediv__(self, key: object) -> _At:
        return self._replace(path=f"{self.path}.{key}" if self.path else str(key))

    def error(self, message: str, hint: str = SEE_FLOWS) -> InputError:
        return InputError(message, file=self.file, field=self.path, hint=hint)

    def warn(self, message: str) -> None:
        where = f"{self.file} {self.path}" if self.path else self.file
        self.warnings.append(f"{where}: {message}")


def flows_of(documents: Sequence[Any], *, file: str, stem: str) -> FlowFile:
    """The flows in the documents of a file; `stem` is the name of one that brings none."""
    at = _At(file, [])
    if not documents:
        raise at.error("is empty")
    many = len(documents) > 1
    flows: dict[str, Flow] = {}
    for number, document in enumerate(documents, 1):
        where = at / "documents" / number if many else at
        for declared in _apart(document, where, "" if many else stem):
            flow = _flow(declared)
            if flow.name in flows:
                raise declared.at.error(
                    f"flow {flow.name!r} is declared twice in this file", "give each flow its own name"
                )
            flows[flow.name] = flow
    return FlowFile(tuple(flows.values()), tuple(at.warnings))


class _Declared(NamedTuple):
    """One flow of a document."""

    fields: dict[str, Any]
    at: _At
    name: str = ""
    """Where it is outside of what the flow declares."""
    default: str = ""
    """The name of a flow that has none."""


def _apart(value: Any, at: _At, stem: str) -> Iterator[_Declared]:
    if isinstance(value, dict) and "flows" in value:
        if "states" in value:
            raise (at / "flows").error(
                "is given together with states", "a file declares one flow, or several below flows"
            )
        yield from _listed_flows(value["flows"], at / "flows")
    elif isinstance(value, list):
        yield from _listed_flows(value, at)
    elif isinstance(value, dict) and isinstance(value.get("flow"), dict):
        if "states" in value:
            raise (at / "flow").error("is given together with states", "write `flow: NAME`, or all of it below flow")
        yield _Declared(value["flow"], at / "flow", default=stem)
    elif isinstance(value, dict):
        if set(value).isdisjoint(_FLOW_KEYS) and declares_flow(list(value.values())):
            yield from _listed_flows(value, at)
        else:
            yield _Declared(value, at, default=stem)
    else:
        raise at.error(
            f"is {_described(value)}, and a flow definition is a mapping", "write `flow: NAME` and `states:`"
        )


def _listed_flows(value: Any, at: _At) -> Iterator[_Declared]:
    if not isinstance(value, dict | list) or not value:
        raise at.error(f"is {_described(value)}", "list the flows, or write each below its name")
    named = value.items() if isinstance(value, dict) else [("", fields) for fields in value]
    for number, (name, fields) in enumerate(named, 1):
        where = at / (name or number)
        if not isinstance(fields, dict):
            raise where.error(f"is {_described(fields)}, and a flow is a mapping", "write `flow: NAME` and `states:`")
        yield _Declared(fields, where, name=name.strip())


def _flow(declared: _Declared) -> Flow:
    fields, at = declared.fields, declared.at
    key = "" if declared.name else next((key for key in _NAMES if fields.get(key) is not None), "")
    name = _name(fields[key], at / key) if key else declared.name or declared.default
    if not name:
        raise at.error("has no name", "add `flow: NAME`")
    if set(fields).isdisjoint(("states", *_FLOW_FIELDS)):
        slips = ((key, near) for key in fields if (near := _nearest(key, ("states", *_FLOW_FIELDS))))
        hint = next((f"did you mean {near} by {key}?" for key, near in slips), SEE_FLOWS)
        raise at.error("declares nothing about a flow", hint)
    extras = _extras(fields, {key, "states", *_FLOW_FIELDS}, _FLOW_KEYS, at)
    if _says_more(fields.get("completion_slots"), (*_SLOT_NAMES, "required")):
        extras["completion_slots"] = fields["completion_slots"]
    if _says_more([fields.get("final_status")], _CONTRACTS):
        extras["final_status"] = fields["final_status"]
    entries = _entries(fields.get("states"), at / "states", _STATE_NAMES, "state")
    states = {entry.name: _state(*entry) for entry in entries}
    entries = _entries(fields.get("segments"), at / "segments", _SEGMENT_NAMES, "segment")
    segments = [_segment(*entry) for entry in entries]
    if fields.get("states") is None:
        states = {one: {"name": one} for one in _named_elsewhere(fields, segments)}
    _add_order(fields.get("order"), states, at / "order")
    _add_terminals(fields.get("terminals"), states, at / "terminals")
    _check_segments(segments, states, at)
    return Flow(
        name=name,
        states=tuple(FlowState(**state) for state in states.values()),
        segments=tuple(segments),
        completion_slots=_optional_names(fields.get("completion_slots"), at / "completion_slots"),
        final_status=_final_status(fields.get("final_status"), at / "final_status"),
        latency_budget_ms=_budget(fields, at),
        extras=extras,
    )


def _named_elsewhere(fields: dict[str, Any], segments: Sequence[FlowSegment]) -> Sequence[str]:
    """Without a list of states, those that the order, the segments and the ends name are its states."""
    order, ends = fields.get("order"), fields.get("terminals")
    listed = [*(order if isinstance(order, list) else ()), *(list(segment.members) for segment in segments)]
    listed += ends.values() if isinstance(ends, dict) else (ends,)
    named = [name for entry in listed for name in (entry if isinstance(entry, list) else [entry])]
    return list(dict.fromkeys(str(entry).strip() for entry in named if _is_name(entry)))


class _Entry(NamedTuple):
    """A named thing: what is declared of it, where, and the key inside of that which its name came from."""

    name: str
    fields: Any
    at: _At
    key: str = ""


def _entries(value: Any, at: _At, keys: Sequence[str], noun: str = "") -> Iterator[_Entry]:
    """Named things in any shape. Things of a `noun` must have different names."""
    seen = set[str]()
    for entry in _named_entries(value, at, keys) if value is not None else ():
        if noun and entry.name in seen:
            raise entry.at.error("is declared twice", f"give each {noun} its own name, or remove one")
        seen.add(entry.name)
        yield entry


def _named_entries(value: Any, at: _At, keys: Sequence[str]) -> Iterator[_Entry]:
    if isinstance(value, dict):
        for name, fields in value.items():
            yield _Entry(_name(name, at), fields, at / name)
        return
    if not isinstance(value, list):
        raise at.error(f"is {_described(value)}", "write a mapping of names, or a list")
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, dict):
            yield _Entry(_name(entry, at / number), None, at / entry)
            continue
        key = next((key for key in keys if entry.get(key) is not None), "")
        if key:
            name = _name(entry[key], at / number / key)
            yield _Entry(name, entry, at / name, key)
        elif len(entry) == 1 and isinstance(next(iter(entry.values())), dict | None):
            name, fields = next(iter(entry.items()))
            yield _Entry(_name(name, at / number), fields, at / name)
        else:
            raise (at / number).error("has no name", f"add `{keys[0]}: NAME`")


def _state(name: str, fields: Any, at: _At, key: str) -> dict[str, Any]:
    fields = _mapping(fields, at, "state", "terminal: success")
    state: dict[str, Any] = {"name": name, "latency_budget_ms": _budget(fields, at)}
    for text in ("speech_act", "lifecycle_phase", "segment"):
        if fields.get(text) is not None:
            state[text] = _name(fields[text], at / text)
    expected = {key, *_STATE_FIELDS, *_SORTS, "rank", "order"}
    state["terminal"] = _terminal(name, fields, at)
    if not state["terminal"]:
        for sort in ("sort", "outcome"):
            if fields.get(sort) is not None:
                expected.discard(sort)
                (at / sort).warn("says nothing, since the state is not declared as terminal; add `terminal: true`")
    slots = fields.get("required_slots")
    state["required_slots"] = _optional_names(slots, at / "required_slots") or ()
    if rank := _one_of(fields, at, "rank", "order"):
        state["rank"] = _number(fields[rank], at / rank)
    state["extras"] = _extras(fields, expected, _STATE_KEYS, at)
    if _says_more(slots, (*_SLOT_NAMES, "required")):
        state["extras"]["required_slots"] = slots
    return state


def _terminal(name: str, fields: Mapping[str, Any], at: _At) -> Terminal:
    declared = {sort: fields[sort] for sort in _SORTS if fields.get(sort) is not None}
    flag = fields.get("terminal")
    flag = _FLAGS.get(flag.strip().lower(), flag) if isinstance(flag, str) else flag
    if flag is None and "terminal_type" not in declared:
        return ""
    if flag is False:
        if "terminal_type" in declared:
            raise (at / "terminal").error("is false together with a terminal_type", "remove one of them")
        return ""
    sorts = {sort: _sort(value, at / sort) for sort, value in declared.items()}
    if flag is not None and flag is not True:
        sorts["terminal"] = _sort(flag, at / "terminal")
    if len(set(sorts.values())) > 1:
        listing = " and ".join(f"{sort} {value}" for sort, value in sorts.items())
        raise (at / next(iter(sorts))).error(f"contradicts itself: {listing}", "keep one of them")
    return next(iter(sorts.values()), "escalation" if name in ESCALATIONS else "unknown")


def _sort(value: Any, at: _At) -> Terminal:
    terminal = _TERMINALS.get(value.strip().lower()) if isinstance(value, str) else None
    if terminal is None:
        shown = repr(value) if isinstance(value, str) else _described(value)
        raise at.error(f"is {shown}, which is not a kind of end", "an end is success, failure or escalation")
    return terminal


def _add_terminals(value: Any, states: dict[str, dict[str, Any]], at: _At) -> None:
    """The ends that a flow lists by their sort."""
    if value is None:
        return
    by_sort = value if isinstance(value, dict) else {"unknown": value}
    for key, listed in by_sort.items():
        where = at / key if isinstance(value, dict) else at
        sort = _sort(key, where)
        for name in _optional_names(listed, where) or ():
            state = states.get(name)
            if state is None:
                where.warn(f"{name!r} is no state of the flow")
                continue
            declared = state.get("terminal", "")
            if declared not in ("", "unknown", sort) and sort != "unknown":
                raise where.error(f"lists {name!r}, which is declared as {declared}", "keep one of them")
            is_escalation = sort == "unknown" and name in ESCALATIONS
            state["terminal"] = "escalation" if is_escalation else sort if declared in ("", "unknown") else declared


def _add_order(value: Any, states: dict[str, dict[str, Any]], at: _At) -> None:
    """The order that a flow declares; states in a list of their own have one position."""
    if value is None:
        return
    if not isinstance(value, list):
        raise at.error(
            f"is {_described(value)}, and the order is a list of states", "for example `order: [greet, ask]`"
        )
    seen = set[str]()
    for number, entry in enumerate(value):
        for member in entry if isinstance(entry, list) else [entry]:
            name = _name(member, at / (number + 1))
            if name in seen:
                raise at.error(f"names {name!r} twice", "a state has one position in the order")
            seen.add(name)
            state = states.get(name)
            if state is None:
                at.warn(f"{name!r} is no state of the flow")
            elif state.get("rank") is not None:
                raise at.error(f"names {name!r}, which has a rank of its own", "keep the order, or the ranks")
            else:
                state["rank"] = float(number)


def _segment(name: str, fields: Any, at: _At, key: str) -> FlowSegment:
    if fields is None or isinstance(fields, list):
        fields = {"members": fields}
    fields = _mapping(fields, at, "segment", "members: [greet]")
    listed = _one_of(fields, at, "members", "states")
    members = _optional_names(fields[listed], at / listed) if listed else None
    extras = _extras(fields, {key, *_SEGMENT_KEYS} - ({*_SEGMENT_NAMES} - {key}), _SEGMENT_KEYS, at)
    slots, more = _target_slots(fields.get("target_slots"), at / "target_slots")
    if more:
        extras["target_slots"] = more
    texts = {one: _name(fields[one], at / one) for one in ("kind", "purpose") if fields.get(one) is not None}
    return FlowSegment(
        name=name,
        members=members or (),
        target_slots=slots,
        exit_guard=fields.get("exit_guard"),
        extras=extras,
        **texts,
    )


def _target_slots(value: Any, at: _At) -> tuple[tuple[TargetSlot, ...] | None, dict[str, Any]]:
    """The slots, and what is declared of each that has no field here."""
    if value is None:
        return None, {}
    slots: dict[str, TargetSlot] = {}
    more: dict[str, Any] = {}
    for name, given, where, key in _entries([value] if isinstance(value, str) else value, at, _SLOT_NAMES, "slot"):
        fields = _mapping(given, where, "slot", "required: true")
        required = fields.get("required")
        slots[name] = TargetSlot(
            name=name,
            required=True if required is None else _flag(required, where / "required"),
            validator=fields.get("validator"),
            confirmation=fields.get("confirmation"),
        )
        if extras := _extras(fields, {key, "required", "validator", "confirmation"}, _SLOT_KEYS, where):
            more[name] = extras
    return tuple(slots.values()), more


def _check_segments(segments: Sequence[FlowSegment], states: Mapping[str, dict[str, Any]], at: _At) -> None:
    """What does not fit together gives a warning, and is no reason to stop."""
    declared = {segment.name for segment in segments}
    listed: dict[str, str] = {}
    for segment in segments:
        where = at / "segments" / segment.name / "members"
        for member in segment.members:
            if member not in states:
                where.warn(f"{member!r} is no state of the flow")
            elif member in listed:
                where.warn(f"{member!r} is a member of {listed[member]}, too; the last one counts")
            listed[member] = segment.name
    for name, state in states.items():
        own = state.get("segment")
        where = at / "states" / name / "segment"
        if own and declared and own not in declared:
            where.warn(f"{own!r} is no segment of the flow")
        elif own and listed.get(name, own) != own:
            where.warn(f"says {own!r}, and {listed[name]} lists the state as its member; what the state says counts")


def _final_status(value: Any, at: _At) -> tuple[str, ...] | None:
    if isinstance(value, dict):
        key = next((key for key in _CONTRACTS if value.get(key) is not None), None)
        if key is None:
            raise at.error("does not say what the final status may be", f"add `{_CONTRACTS[0]}: [..]`")
        if isinstance(value[key], dict):
            raise (at / key).error("is a mapping", "list what the final status may be")
        return _final_status(value[key], at / key)
    return _optional_names(value, at)


def _optional_names(value: Any, at: _At) -> tuple[str, ...] | None:
    """Names in any shape: one, a list of them, things with a name, or a mapping. None where nothing is said.

    A thing that says it is not required is left out.
    """
    if value is None:
        return None
    if not isinstance(value, list | dict):
        return (_name(value, at),)
    names: dict[str, None] = {}
    for name, fields, where, _ in _entries(value, at, (*_SLOT_NAMES, "id", "state")):
        required = fields.get("required") if isinstance(fields, dict) else None
        if required is None or _flag(required, where / "required"):
            names[name] = None
    return tuple(names)


def _says_more(value: Any, keys: Sequence[str]) -> bool:
    things = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(one, dict) and not set(one) <= set(keys) for one in things)


def _budget(fields: Mapping[str, Any], at: _At) -> float | None:
    key = _one_of(fields, at, *_BUDGETS)
    if not key:
        return None
    value = _number(fields[key], at / key)
    if value <= 0:
        raise (at / key).error(f"is {value:g}", "a budget is more than 0")
    return value if key == "latency_budget_ms" else 1000 * value


def _one_of(fields: Mapping[str, Any], at: _At, *keys: str) -> str:
    """The key of these that is declared; "" without one. Two of them are an error."""
    declared = [key for key in keys if fields.get(key) is not None]
    if len(declared) > 1:
        raise (at / declared[1]).error(f"is given together with {declared[0]}", "keep one of them")
    return declared[0] if declared else ""


def _number(value: Any, at: _At) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise at.error(f"is {_described(value)}", "write a number, without quotes and unit")
    return float(value)


def _flag(value: Any, at: _At) -> bool:
    flag = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(flag, bool):
        raise at.error(f"is {_described(value)}", "write true or false")
    return flag


def _mapping(value: Any, at: _At, noun: str, example: str) -> dict[str, Any]:
    """What a thing declares; nothing is an empty mapping."""
    if value is not None and not isinstance(value, dict):
        message = f"is {_described(value)}, and what a {noun} declares is a mapping"
        raise at.error(message, f"for example `{example}`")
    return value or {}


def _is_name(value: Any) -> bool:
    return (isinstance(value, str) and bool(value.strip())) or (isinstance(value, int) and not isinstance(value, bool))


def _name(value: Any, at: _At) -> str:
    if not _is_name(value):
        hint = "write a text; one that looks like something else needs quotes"
        raise at.error(f"is {_described(value)}, and should be a text", hint)
    return str(value).strip()


def _extras(fields: Mapping[str, Any], expected: set[str], all_keys: Sequence[str], at: _At) -> dict[str, Any]:
    """What is declared under unknown keys; a key that may be a slip gives a warning."""
    extras = {key: value for key, value in fields.items() if key not in expected}
    for key in extras:
        if key not in all_keys and (near := _nearest(key, all_keys)):
            (at / key).warn(f"is no known key, and was kept as it is; did you mean {near}?")
    return extras


def _nearest(key: str, known: Sequence[str]) -> str:
    """The known key that a key may have been meant to be; "" where none is near."""
    folded = key.strip().casefold().replace("-", "_").replace(" ", "_")
    return next(iter(difflib.get_close_matches(folded[:100], known, n=1, cutoff=0.8)), "")


def _described(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value[:40]!r}" if value.strip() else "an empty text"
    if isinstance(value, dict | list):
        kind = "mapping" if isinstance(value, dict) else "list"
        return f"a {kind}" if value else f"an empty {kind}"
    return f"the number {value}"
