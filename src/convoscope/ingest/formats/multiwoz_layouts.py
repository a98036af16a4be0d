"""MultiWOZ 2.2 as data loaders write it: turns or frames in columns, slots as lists of names and values, acts inside.

Each layout is brought into that of version 2.2, with the acts and spans of its turns by their ids.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled

_SPEAKERS = ("USER", "SYSTEM")
_ACTS = ("dialogue_acts", "dialog_act")


class DialogueLayout(NamedTuple):
    """A dialogue in the layout of version 2.2, and what that has in a file of its own."""

    dialogue: JsonObject
    acts: dict[str, JsonObject]
    """By turn: `{"Hotel-Inform": [["area", "north"]]}`."""
    spans: dict[str, list[Any]]
    """By turn: `["Hotel-Inform", "area", "north", 3, 8]`."""


def rows_of(value: Any) -> list[Any]:
    """The dialogues of an answer of a dataset server, `{"rows": [{"row": …}]}`; else the value alone."""
    rows = [as_object(row).get("row") for row in as_list(as_object(value).get("rows"))]
    return [row for row in rows if isinstance(row, dict)] or [value]


def is_other_layout(value: Any) -> bool:
    """Whether a dialogue has turns in columns, or turns with frames in columns, slots by lists, or their acts."""
    turns = as_object(value).get("turns")
    if isinstance(turns, dict):
        return isinstance(turns.get("utterance"), list) and isinstance(turns.get("speaker"), list)
    return any(_is_other_turn(as_object(turn)) for turn in as_list(turns))


def _is_other_turn(turn: JsonObject) -> bool:
    if "utterance" not in turn or "speaker" not in turn:
        return False
    states = [as_object(as_object(frame).get("state")) for frame in as_list(turn.get("frames"))]
    has_columns = isinstance(turn.get("frames"), dict) or any("slots_values" in state for state in states)
    return has_columns or any(name in turn for name in _ACTS) or turn["speaker"] in (0, 1)


def in_version_22(dialogue: JsonObject) -> DialogueLayout:
    turns: list[JsonObject] = []
    acts: dict[str, JsonObject] = {}
    spans: dict[str, list[Any]] = {}
    held = dialogue["turns"]
    for index, turn in enumerate(_rows(held) if isinstance(held, dict) else map(as_object, held)):
        speaker, id = turn.get("speaker"), as_text(turn.get("turn_id")) or str(index)
        name = _SPEAKERS[speaker] if speaker in (0, 1) and not isinstance(speaker, bool) else speaker
        written, marked = _acts(turn), _spans(turn)
        # What could not be used stays in the turn: slots of which act is not known, spans without positions.
        used = (
            {*_ACTS} | ({"dialogue_act_slots"} if len(written) == 1 else set()) | ({"span_info"} if marked else set())
        )
        kept = {key: value for key, value in turn.items() if key not in used}
        turns.append({**kept, "turn_id": id, "speaker": name, "frames": _frames(turn.get("frames"))})
        if written:
            acts[id] = written
        if marked:
            spans[id] = marked
    return DialogueLayout({**dialogue, "turns": turns}, acts, spans)


def _rows(columns: JsonObject) -> list[JsonObject]:
    """Columns of equal length as rows; what is no list is not a column."""
    lists = {name: value for name, value in columns.items() if isinstance(value, list)}
    length = max(map(len, lists.values()), default=0)
    return [{name: value[at] for name, value in lists.items() if at < len(value)} for at in range(length)]


def _frames(held: Any) -> list[Any]:
    """Frames as a list, in columns, or by service."""
    if isinstance(held, list):
        return [_frame(frame) if isinstance(frame, dict) else frame for frame in held]
    if isinstance(as_object(held).get("service"), list):
        return [_frame(frame) for frame in _rows(as_object(held))]
    return [_frame({"service": service, "state": state}) for service, state in as_object(held).items()]


def _frame(frame: JsonObject) -> JsonObject:
    """A frame with the slots of its state by name. Spans in columns are kept in the acts."""
    state = as_object(frame.get("state"))
    rest = {name: value for name, value in frame.items() if name not in ("state", "slots", "actions")}
    listed = {name: frame[name] for name in ("slots", "actions") if isinstance(frame.get(name), list)}
    intent, wanted = as_text(state.get("active_intent")) or "NONE", list(as_list(state.get("requested_slots")))
    values = _slot_values(state.get("slots_values", state.get("slot_values")))
    if not isinstance(frame.get("state"), dict):
        return filled({**rest, **listed})
    return filled({**rest, **listed}) | {
        "state": {"active_intent": intent, "requested_slots": wanted, "slot_values": values}
    }


def _slot_values(held: Any) -> dict[str, list[str]]:
    slots = as_object(held)
    names = slots.get("slots_values_name")
    if isinstance(names, list):
        listed = as_list(slots.get("slots_values_list"))
        return {as_text(name): _texts(values) for name, values in zip(names, listed, strict=False)}
    return {name: _texts(values) for name, values in slots.items()}


def _texts(values: Any) -> list[str]:
    return [as_text(one) for one in (values if isinstance(values, list) else [values])]


def _acts(turn: JsonObject) -> JsonObject:
    """The acts of a turn: in columns, by type, or as a list of types with the slots of all of them."""
    held = next((turn[name] for name in _ACTS if turn.get(name)), None)
    acts = as_object(as_object(held).get("dialog_act")) or as_object(held)
    types = acts.get("act_type")
    if isinstance(types, list):
        slots = [as_object(one) for one in as_list(acts.get("act_slots"))]
        return {as_text(type): _pairs(slots[at] if at < len(slots) else {}) for at, type in enumerate(types)}
    if isinstance(held, list):
        # Which act a slot belongs to is not written: of one act alone it is known.
        every = [
            [as_object(one).get("slot"), as_object(one).get("value")] for one in as_list(turn.get("dialogue_act_slots"))
        ]
        return {as_text(type): every if len(held) == 1 else [] for type in held}
    return {name: pairs for name, pairs in acts.items() if isinstance(pairs, list) and name != "span_info"}


def _pairs(held: JsonObject) -> list[list[str]]:
    pairs = zip(as_list(held.get("slot_name")), as_list(held.get("slot_value")), strict=False)
    return [[as_text(name), as_text(value)] for name, value in pairs]


def _spans(turn: JsonObject) -> list[Any]:
    held = turn.get(
        "span_info", next((as_object(turn.get(name)).get("span_info") for name in _ACTS if name in turn), None)
    )
    if isinstance(held, list):
        return [span for span in held if isinstance(span, list)]
    names = ("act_type", "act_slot_name", "act_slot_value", "span_start", "span_end")
    return [[row.get(name) for name in names] for row in _rows(as_object(held))]
