"""Pipecat: the records of its observers, the messages of its aggregators, and its log with that of Pipecat Flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.errors import InputError
from convoscope.ingest.formats.pipecat.call import SILENT, Kind, LogLine, conversation
from convoscope.ingest.formats.pipecat.log import PIPECAT, TAG, as_logged, is_of_pipecat, joined_lines, line_of
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Detection, Reader, Record, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_object, as_text
from convoscope.ingest.report import Notes

_IDS = ("conversation_id", "session_id", "call_id")
_EXPECTED = 'expected lines such as {"record": "SpeechEvent", "kind": …, "timestamp": …}'

# The name of a record, without case and underscores, and what it tells.
_TAGS: dict[str, Kind] = {
    "speechevent": "speech",
    "functioncallevent": "function",
    "servicelatencyrecord": "latency",
    "serviceusagerecord": "usage",
    "errorevent": "error",
    "latencybreakdown": "breakdown",
    "userbotlatency": "e2e",
    "userturnstoppedmessage": "user",
    "userturnmessageaddedmessage": "user",
    "userbackchannelmessage": "user_backchannel",
    "assistantturnstoppedmessage": "assistant",
    "assistantbackchannelmessage": "assistant_backchannel",
    "assistantthoughtmessage": "thought",
    "nodetransition": "node",
    "flowtransition": "node",
    "flownode": "node",
    "flownodechanged": "node",
    "nodechanged": "node",
    "flowstate": "slots",
    "conversationended": "end",
    "sessionended": "end",
}
# A record that was written without its name is told by the fields that only it has.
_SHAPES: tuple[tuple[frozenset[str], Kind], ...] = (
    (frozenset({"kind", "function_name", "tool_call_id"}), "function"),
    (frozenset({"kind", "processor", "seconds"}), "latency"),
    (frozenset({"message", "category", "processor_usable"}), "error"),
    (frozenset({"contributions", "total_secs"}), "breakdown"),
    (frozenset({"content", "interrupted", "timestamp"}), "assistant"),
    (frozenset({"content", "user_id", "timestamp"}), "user"),
    (frozenset({"kind", "processor", "timestamp"}), "usage"),
    (frozenset({"kind", "timestamp", "started_at"}), "speech"),
)


class PipecatReader(Reader):
    """Lines of records: those with one id, or all of a file, are a conversation."""

    name = "pipecat"
    title = "Pipecat observer records and Flows logs"

    def detect(self, sample: Sample) -> Detection | None:
        if sample.container == "text":
            ours = any(is_of_pipecat(value) for value in sample.values)
            return Detection(0.9, "a log of Pipecat, in plain text", "file") if ours else None
        objects = [value for value in sample.values if isinstance(value, dict)]
        tagged = [value for value in objects if _tag(value)]
        logged = [value for value in objects if _is_logged(value)]
        if tagged:
            sure, why = 0.95, f'lines with "record": "{tagged[0][TAG]}"'
        elif any(as_text(value[TAG].get("name")).startswith(PIPECAT) for value in logged):
            sure, why = 0.9, "a log of Pipecat, written as JSON"
        elif logged and any(_from_log(value, 0).kind != "noise" for value in logged):
            sure, why = 0.7, "a log that holds records of Pipecat"
        else:
            return None
        has_ids = all(self.key(value) is not None for value in objects)
        return Detection(sure, why, "key" if has_ids else "file")

    def key(self, value: Any) -> str | None:
        return _id(value) or None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        parts = list(_by_conversation(list(as_logged(group.records)), notes))
        readable = [part for part in parts if any(line.kind not in SILENT for line in part.lines)]
        if not readable:
            raise InputError("holds no record of Pipecat", field=TAG, hint=_EXPECTED)
        has_distinct_ids = len({part.id for part in readable}) == len(readable)
        for number, part in enumerate(readable, 1):
            id = part.id or group.name
            yield conversation(
                id if has_distinct_ids else f"{id}#{number}", _call_lines(part.lines, notes), group, notes
            )


class _Part(NamedTuple):
    id: str
    lines: list[LogLine]


def _by_conversation(records: Sequence[Record], notes: Notes) -> Iterator[_Part]:
    """The lines of each conversation; one without an id belongs to the conversation that was told last."""
    parts: dict[str, list[LogLine]] = {}
    current = next((id for record in records if (id := _id(record.value))), "")
    for record in records:
        line = _line(record)
        if line.kind == "stranger":
            notes.set_aside("line_of_no_known_record", repr(record.value)[:80])
        current = _id(record.value) or current
        parts.setdefault(current, []).append(line._replace(file=record.file))
    for id, lines in parts.items():
        for call in _calls(lines):
            yield _Part(id, call)


def _calls(lines: Sequence[LogLine]) -> Iterator[list[LogLine]]:
    """The lines of each call, where a log goes on after one: by the messages that a call begins with."""
    call: list[LogLine] = []
    spoken = False
    for line in lines:
        if line.kind == "begins" and spoken:
            yield call
            call, spoken = [], False
        call.append(line)
        spoken = spoken or line.kind not in SILENT
    yield call


def _call_lines(lines: Sequence[LogLine], notes: Notes) -> list[LogLine]:
    """The lines of a call; those of its log that tell nothing are counted by who logged them."""
    joined = joined_lines(lines)
    left_out = Counter(f"log.{line.logger}" for line in joined if line.kind == "noise")
    left_out["told_by_a_record"] = sum(line.kind == "again" for line in joined)
    for what, count in left_out.items():
        if count:
            notes.ignored(what, f"{count} lines" if count > 1 else "", count=count)
    return joined


def _id(value: Any) -> str:
    """The conversation that a line says it belongs to; in a log it stands in what was bound to the logger."""
    places = (value, as_object(as_object(value).get(TAG)).get("extra"))
    return next((as_text(as_object(place).get(name)) for place in places for name in _IDS if _has(place, name)), "")


def _has(place: Any, name: str) -> bool:
    return bool(as_text(as_object(place).get(name)))


def _tag(value: JsonObject) -> Kind | None:
    tag = value.get(TAG)
    return _TAGS.get(tag.replace("_", "").replace(" ", "").lower()) if isinstance(tag, str) else None


def _is_logged(value: JsonObject) -> bool:
    """A line that loguru wrote with `serialize=True`."""
    inner = value.get(TAG)
    return isinstance(inner, dict) and "message" in inner and ("time" in inner or "level" in inner)


def _line(record: Record) -> LogLine:
    value = record.value
    if not isinstance(value, dict):
        return LogLine("stranger", {}, record.number)
    if _is_logged(value):
        return _from_log(value, record.number)
    facts = {name: one for name, one in value.items() if name not in (TAG, *_IDS)}
    kind = _tag(value) or (_shape(value) if TAG not in value else None)
    if kind is None:
        return LogLine("stranger" if TAG not in value else "other", dict(value), record.number)
    return LogLine(kind, facts, record.number)


def _shape(value: JsonObject) -> Kind | None:
    return next((kind for fields, kind in _SHAPES if fields <= value.keys()), None)


def _from_log(value: JsonObject, number: int) -> LogLine:
    """A line of a log: a record that was logged as JSON, or a message of Pipecat Flows."""
    inner = value[TAG]
    message = as_text(inner.get("message")).strip()
    if message.startswith("{"):
        try:
            record = decode(message.encode("utf-8", "replace")).value
        except BadJson:
            record = None
        if isinstance(record, dict) and (kind := _tag(record) or _shape(record)) is not None:
            return LogLine(kind, {name: one for name, one in record.items() if name not in (TAG, *_IDS)}, number)
    return line_of(inner, number)


READER = PipecatReader()
