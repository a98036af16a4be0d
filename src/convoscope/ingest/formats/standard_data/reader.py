"""Evaluation items of the StandardData schema: one by one, wrapped in a document, or as rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from convoscope.conversation import Conversation, Source
from convoscope.conversation.events import moment
from convoscope.errors import InputError
from convoscope.ingest.reader import Detection, Grouping, RawRecord, Reader, Record, RecordGroup, Sample
from convoscope.ingest.record import as_list
from convoscope.ingest.report import Notes
from convoscope.views.standard_data.canonical import to_conversation
from convoscope.views.standard_data.schema import METRICS, STT, TTS
from convoscope.views.standard_data.tidy import Tidied, tidy, unknown_names
from convoscope.views.standard_data.values import id_text

_JOINED_BY = ("conversation_id", "session_id", "task_id", "source_trace_id")
"""The first of these that an item has says which conversation it belongs to."""
_WRAPPERS = ("items", "data", "dataset_items")
_WRAPS = frozenset(_WRAPPERS)

# One of these names is enough: no other format uses them.
_DECISIVE = frozenset(
    {"novaeval_item_type", "agent_task", "agent_response", "expected_tool_call", "parameters_passed"}
    | {"retrieved_context", "retrieval_query", "conversation_context", "tool_call_results", "tools_available"}
    | {"metrics_collected", "raw_complete_audio", "stt_data", "tts_data", "agent_exit", "expected_format"}
    | set(METRICS)
)
_FLATTENED = ("metrics_collected.", "stt.", "tts.", "full_conversation.")
# Other formats use these names too: it takes two that go together.
_ASKS = ("question", "query", "input_text", "agent_role", "system_prompt")
_ANSWERS = ("answer", "output_text")
_TRUTHS = ("ground_truth", "expected_output")
_SURE, _LESS_SURE = 0.55, 0.45

_NESTED = frozenset(
    {"tools_available", "tool_calls", "tool_call_results", "expected_tool_call", "conversation_context"}
    | {"stt_data", "tts_data", "raw_complete_audio", "metrics_collected"}
)
"""Fields whose objects may have names that the schema does not know."""
_KEPT = frozenset({"json_repaired", "kept_as_json", "kept_as_text", "kept_words", "twins_differ"})
"""Warnings about values that are still there, if in another form."""
_NOTHING_MISSING = frozenset(
    {"empty_metric", "empty_text", "no_metric", "null_element"}
    | {"repeated_metric", "unknown_metric", "unknown_processor"}
)
"""Warnings about what said nothing, or nothing new, or is kept and of an unknown kind."""
_FEW, _MANY = 8, 20
_HINT = "an item has fields such as agent_task, agent_response and ground_truth"


class StandardDataReader(Reader):
    """Items to evaluate; those with the same id are one conversation."""

    name = "standard-data"
    title = "Evaluation items (StandardData)"
    unkeyed_record_is_conversation = True
    typed = dict[str, Any]

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if isinstance(value, dict):
                if (detection := _looks_like_an_item(value)) is not None:
                    return detection
                if wrapped := _wrapped(value):
                    grouping: Grouping = "file" if sample.container == "document" else "record"
                    return Detection(_SURE, f'evaluation items in "{wrapped}"', grouping)
        return None

    def key(self, value: Any) -> str | None:
        return _key(value) if isinstance(value, dict) else None

    def quick_key(self, text: bytes) -> str | None:
        try:
            ids = _decode_ids(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return super().quick_key(text)
        for name in _JOINED_BY:
            id = getattr(ids, name)
            if id is not None and (type(id) is str or (id := id_text(id))) and id:
                turn = ids.speaker is not None and ids.message is not None
                return _joint(name, id, None if turn else ids.agent_name)
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        if len(group.records) == 1:
            value = group.records[0].value
            if type(value) is dict and not _WRAPS.isdisjoint(value) and (wrapped := _wrapped(value)):
                return _unwrapped(wrapped, value, group, notes)
        return iter((_built(group.records, group, group.name, notes),))

    def build_typed(self, record: dict[str, Any], raw: RawRecord, notes: Notes) -> Conversation | None:
        if not _WRAPS.isdisjoint(record):
            return None
        tidied = tidy(record)
        if not tidied.fields:
            return None
        _note(tidied, notes, "")
        source = Source(format="standard-data", files=raw.files, record=str(raw.number))
        return to_conversation((tidied,), id=_id(record) or raw.name, source=source)


class _Ids(msgspec.Struct, gc=False):
    """What of a record says where it belongs; first what it is joined by."""

    conversation_id: Any = None
    session_id: Any = None
    task_id: Any = None
    source_trace_id: Any = None
    agent_name: Any = None
    speaker: Any = None
    message: Any = None


_decode_ids = msgspec.json.Decoder(_Ids).decode


def _key(value: Mapping[str, Any]) -> str | None:
    """The id that joins an item to others, with its kind, since two kinds may use the same; None without one.

    Runs of one task by two agents are two conversations. Single turns are not all the agent's.
    """
    for name in _JOINED_BY:
        if id := _text(value.get(name)):
            turn = value.get("speaker") is not None and value.get("message") is not None
            return _joint(name, id, None if turn else value.get("agent_name"))
    return None


def _joint(name: str, id: str, agent: Any) -> str:
    if type(agent) is not str:
        agent = agent if isinstance(agent, str | int | float) else ""
    return f"{name}\x1f{id}\x1f{agent}"


def _text(id: Any) -> str:
    """An id as text; "" for what is not an id."""
    return id if type(id) is str else id_text(id) or ""


def _looks_like_an_item(value: Mapping[str, Any]) -> Detection | None:
    attributes = value.get("attributes")
    names = [*value, *(attributes if isinstance(attributes, dict) else ())]
    decisive = [name for name in names if name in _DECISIVE or name.startswith(_FLATTENED)]
    if decisive:
        return Detection(_SURE, f'"{decisive[0]}" is a field of an evaluation item', "key")
    asks, answers, truths = (
        next((name for name in names if name in value), "") for names in (_ASKS, _ANSWERS, _TRUTHS)
    )
    pair = [name for name in (asks, answers, truths) if name]
    if len(pair) > 1:
        return Detection(_SURE, f'"{pair[0]}" with "{pair[1]}" is an evaluation item', "key")
    if _is_history(value.get("conversation")):
        return Detection(_SURE, 'a "conversation" of turns is a field of an evaluation item', "key")
    if "speaker" in value and "message" in value:
        return Detection(_LESS_SURE, '"speaker" with "message" is one turn of a conversation', "key")
    return None


def _is_history(value: Any) -> bool:
    if isinstance(value, dict):
        value = value.get("turns", value.get("messages"))
    return any(isinstance(one, dict) and ("speaker" in one or "role" in one) for one in as_list(value))


def _wrapped(value: Mapping[str, Any]) -> str:
    """The name under which a document holds items; "" for anything else."""
    for name in _WRAPPERS:
        if any(isinstance(one, dict) and _looks_like_an_item(one) for one in as_list(value.get(name))):
            return name
    return ""


def _unwrapped(wrapped: str, document: dict[str, Any], group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
    """The conversations of a document; what else the document says is in each of them."""
    together: dict[str, list[Record]] = {}
    items = document[wrapped]
    for number, value in enumerate(items, start=1):
        key = _key(value) if isinstance(value, dict) else None
        together.setdefault(f"{number}" if key is None else key, []).append(Record(value, number))
    others = {name: value for name, value in document.items() if name != wrapped and value is not None}
    for name in others:
        notes.unknown(f"document.{name}")
    bad: list[str] = []
    for records in together.values():
        name = f"{group.name}#{records[0].number}" if len(together) > 1 else group.name
        try:
            conversation = _built(records, group, name, notes, wrapped)
        except InputError as error:
            bad.append(f"item {records[0].number} {error.message}")
            continue
        yield (msgspec.structs.replace(conversation, extras={"document": others}) if others else conversation)
    if bad:
        message = f"{len(bad)} of {len(items)} items cannot be used: {bad[0]}"
        raise InputError(message, hint=_HINT, count=len(bad))


def _built(records: Sequence[Record], group: RecordGroup, name: str, notes: Notes, inside: str = "") -> Conversation:
    """One conversation of records that belong together; those of a document are named by their index `inside` of it.

    Of several records, what is not an item is left out, and noted.
    """
    items: list[Tidied] = []
    used: list[Record] = []

    def at(record: Record) -> AbstractContextManager[None]:
        """What is noted meanwhile is of this record; that of a document is of the document."""
        return nullcontext() if inside or len(records) == 1 else notes.at_line(record.file, record.number)

    for record in records:
        tidied = tidy(record.value) if isinstance(record.value, dict) else _NOTHING
        if tidied.fields:
            with at(record):
                _note(tidied, notes, _path(record, inside))
            items.append(tidied)
            used.append(record)
        elif len(records) > 1:
            with at(record):
                notes.set_aside("not_an_item", f"{_path(record, inside)}{repr(record.value)[:80]}")
            notes.unused.append(record)
    if not items:
        raise _no_item(records[0].value)
    numbers = [str(record.number) for record in records]
    listed = ", ".join(numbers[:_MANY]) + (" …" if len(numbers) > _MANY else "")
    source = Source(format=StandardDataReader.name, files=group.file_names, record=listed)
    conversation = to_conversation(items, id=_id(used[0].value) or name, source=source)
    for item, record in zip(conversation.items, used, strict=True):
        # Only an item that got another id still has its own.
        if turn_id := item.extras.get("turn_id"):
            with at(record):
                notes.repaired("turn_id_twice", f"{_path(record, inside)}turn_id {turn_id}, now {item.id}")
    return conversation


def _path(record: Record, inside: str) -> str:
    """What comes before the name of a field, to say where it is."""
    return f"{inside}[{record.number - 1}]." if inside else ""


_NOTHING = Tidied({}, {}, [])


def _no_item(value: Any) -> InputError:
    if not isinstance(value, dict):
        kinds = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
        return InputError(f"is not an object but {kinds.get(type(value), 'null')}", hint=_HINT)
    filled = [str(name) for name, one in value.items() if one is not None]
    content = f"its fields are {', '.join(filled[:_FEW])}" if filled else "it is empty"
    return InputError(f"has no field of an evaluation item: {content}", hint=_HINT)


def _id(value: Mapping[str, Any]) -> str:
    """The id of a conversation: the id that joins its items, else that of its only turn."""
    for name in (*_JOINED_BY, "turn_id"):
        id = value.get(name)
        if id is not None and (text := _text(id)):
            return text
    return ""


_READ_FROM_EXTRAS = frozenset(f"raw_complete_audio.audio_channel_{side}" for side in ("left", "right"))
"""They are kept in extras, and decide who is heard on which channel (`convoscope.audio.sides`)."""


def _note(tidied: Tidied, notes: Notes, path: str) -> None:
    """Say what is not of the schema, what had to be concluded, and what had to be set aside."""
    for name, value in tidied.unknown.items():
        # A table has a null wherever others have something.
        if value is None:
            continue
        if name not in _JOINED_BY:
            notes.unknown(f"item.{name}")
        elif id_text(value) is None:
            notes.set_aside("not_an_id", path + name)
    fields = tidied.fields
    if not _NESTED.isdisjoint(fields):
        nested = {name: value for name, value in fields.items() if name in _NESTED and value}
        for name in unknown_names(Tidied(nested, {}, [])):
            if tidied.unknown.get(name) is None and name not in _READ_FROM_EXTRAS:
                notes.unknown(f"item.{name}")
    if not _TIMED.isdisjoint(fields):
        for time in _times(tidied):
            read = moment(time)
            if read is not None and read.inferred and all(note.code != read.inferred for note in notes.taken):
                notes.inferred(read.inferred, repr(time)[:80])
    for warned in tidied.warnings:
        note: Callable[[str, str], None] = notes.inferred
        if not warned.code.startswith("inferred"):
            kept = warned.code in _KEPT
            note = notes.repaired if kept else notes.ignored if warned.code in _NOTHING_MISSING else notes.set_aside
        note(warned.code, path + warned.path)


_TIMED = frozenset(("conversation_context", "stt_data", "tts_data", "message"))


def _times(tidied: Tidied) -> Iterator[Any]:
    """The times of turns and spans as they were written. Those of metrics are seconds, by the schema."""
    for turn in tidied.fields.get("conversation_context", {}).get("turns") or ():
        yield turn.get("timestamp")
    for kind, name in ((STT, "stt_data"), (TTS, "tts_data")):
        if given := tidied.fields.get(name):
            for span in (given,) if kind.is_single(given) else given.values():
                yield span.get("span_start_time")
    if "message" in tidied.fields:
        yield tidied.unknown.get("timestamp")


READER = StandardDataReader()
