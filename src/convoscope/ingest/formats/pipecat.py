"""Pipecat: the records of its observers, the messages of its aggregators, and its log with that of Pipecat Flows."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.errors import InputError
from convoscope.ingest.formats.pipecat_call import SILENT, Kind, LogLine, conversation
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Detection, Reader, Record, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_object, as_text, number_in
from convoscope.ingest.report import Notes
from convoscope.text.patterns import lazy_pattern

TAG = "record"
PIPECAT = "pipecat"

_FLOWS = ("pipecat_flows", "pipecat.flows")
_ANY = ("",)
_LONGEST = 20_000
"""A message of more characters is a dump of something."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# The default format of loguru; a line may have something before it, and one more column.
_LINE = lazy_pattern(
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?) *\| *(?P<level>[A-Z]+) *\|"
    r"(?:[^|]*\|)? *(?P<name>[\w.]+):[\w<>.]+:\d+ +- (?P<message>.*)"
)
_ERRORS = frozenset({"ERROR", "CRITICAL"})


class _Message(NamedTuple):
    """A message that is read: its loggers, its form, and what it becomes."""

    loggers: tuple[str, ...]
    form: re.Pattern[str]
    kind: Kind
    fields: JsonObject = {}


def _message(loggers: tuple[str, ...], form: str, of: Kind, /, **fields: Any) -> _Message:
    return _Message(loggers, lazy_pattern(form, re.DOTALL), of, fields)


_ONE = (PIPECAT,)
_CALL = r"\[(?P<function_name>[^\]:]+):(?P<tool_call_id>[^\]]+)\]"
_PART = r"(?P<processor>\S+)"
_SECONDS = r"(?P<seconds>[\d.]+)"
# Services log what they heard in their own words.
_HEARD = (
    r"(?:Final )?[Tt]ranscription(?: \(from: [^)]*\))?: \[(?P<content>.*)\]",
    r"\[Transcription:user\] \[(?P<content>.*)\]",
    r"Committed transcript(?: with timestamps)?: \[(?P<content>.*)\]",
    r"Smallest final transcript: \[(?P<content>.*)\]",
    r"\S+ Transcript: \"(?P<content>.*)\"",
    r"\S+: received final transcription: (?P<content>.*)",
    r"\S+ finalized transcript: (?P<literal>.*)",
    r"Cartesia Ink-2 ASR turn\.end: (?P<content>.*)",
)
# The first that fits counts.
_MESSAGES: tuple[_Message, ...] = (
    _message(_FLOWS, r"Setting node: (?P<node>.+)", "node"),
    _message(_FLOWS, r"Successfully set node: (?P<node>.+)", "node_set"),
    _message(_FLOWS, r"Error setting node (?P<node>.+?): (?P<error>.*)", "node_failed"),
    _message(_FLOWS, r"Transition to function-returned node: (?P<node>.+)", "transition"),
    _message(_FLOWS, r"Function called: (?P<function>.+)", "called"),
    _message(_FLOWS, r"Function handler completed for (?P<function>.+)", "returned"),
    _message(_FLOWS, r"Transition-only function called for (?P<function>.+)", "returned"),
    _message(_FLOWS, r"Error in transition function (?P<function>.+?): (?P<error>.*)", "raised"),
    _message(_FLOWS, r"Initialized \w*FlowManager", "begins"),
    _message(_ONE, r"Bot(?: \[[^\]]*\])? started speaking", "speech", kind="bot_speech_started"),
    _message(_ONE, r"Bot(?: \[[^\]]*\])? stopped speaking", "speech", kind="bot_speech_stopped"),
    # Of a turn it is logged when it was taken to have ended, not when the sound did.
    _message(_ONE, r"\S+: User started speaking .*", "speech", kind="user_turn_started"),
    _message(_ONE, r"\S+: User stopped speaking .*", "speech", kind="user_turn_stopped"),
    _message(_ONE, r"User started speaking", "speech", kind="user_speech_started"),
    _message(_ONE, r"User stopped speaking", "speech", kind="user_speech_stopped"),
    _message(_ONE, r"\S+: broadcasting interruption", "speech", kind="interruption"),
    _message(
        _ONE, r"💬 \S+ → TRANSCRIPTION: (?P<literal>.*) from (?:'.*'|\".*\"|None) at [\d.]+s", "user", by="frames"
    ),
    *(_message(_ONE, form, "user") for form in _HEARD),
    _message(_ONE, r"\S+: Generating TTS:? \[(?P<content>.*)\]", "assistant"),
    _message(
        _ONE,
        rf"\S+ Calling function {_CALL} with arguments (?P<arguments>.*)",
        "function",
        kind="function_call_started",
    ),
    _message(_ONE, rf"\S+ FunctionCallResultFrame: {_CALL}", "function", kind="function_call_completed"),
    _message(_ONE, rf"\S+ Function call {_CALL} timed out .*", "function", kind="function_call_timed_out"),
    _message(_ONE, rf"\S+ Function call {_CALL} has been cancelled", "function", kind="function_call_cancelled"),
    _message(_ONE, rf"{_PART} TTFB: {_SECONDS}s?", "latency", kind="ttfb"),
    _message(
        _ONE,
        rf"{_PART} TTFA: {_SECONDS}s \((?P<leading_silence_secs>[\d.]+)s leading silence\)",
        "latency",
        kind="ttfa",
    ),
    _message(
        _ONE, rf"{_PART} TTFAT: {_SECONDS}s \((?P<thinking_time_secs>[\d.]+)s thinking\)", "latency", kind="ttfat"
    ),
    _message(_ONE, rf"{_PART} processing time: {_SECONDS}s?", "latency", kind="duration"),
    _message(
        _ONE,
        rf"{_PART} prompt tokens: (?P<prompt_tokens>\d+), completion tokens: (?P<completion_tokens>\d+).*",
        "usage",
        kind="llm",
    ),
    _message(_ONE, rf"{_PART} usage characters: (?P<characters>\d+)", "usage", kind="tts"),
    _message(_ONE, rf"{_PART} usage audio seconds: (?P<audio_seconds>[\d.]+)", "usage", kind="stt"),
    _message(_ANY, rf"\W*LATENCY FROM USER STOPPED SPEAKING TO BOT STARTED SPEAKING: {_SECONDS}s", "e2e"),
    _message(_ANY, rf"(?i)\W*user[- ](?:to[- ])?bot latency:? {_SECONDS} ?s", "e2e"),
    _message(_ANY, rf"\s*{_SECONDS}s +TOTAL", "e2e"),
    _message(_ANY, r"(?i)(?:the )?client connected\b(?! in ).*", "begins"),
    _message(_ANY, r"(?i)(?:the )?client disconnected\b.*", "end", reason="client_disconnected"),
)
_NUMBERS = frozenset(
    {"seconds", "leading_silence_secs", "thinking_time_secs", "prompt_tokens", "completion_tokens"}
    | {"characters", "audio_seconds"}
)
_AGAIN = frozenset({"speech", "user", "assistant", "function", "latency", "usage", "error", "e2e"})
"""What a record has in more detail, where there are records of it."""
_ENDS_SPEECH = frozenset({"node", "called", "function", "user"})


def as_logged(records: Sequence[Record]) -> Iterator[Record]:
    """Lines of plain text in the shape that loguru gives them in JSON; a message may go on in the next line."""
    open_entry: JsonObject | None = None
    number = 0
    for record in records:
        if not isinstance(record.value, str):
            yield record
            continue
        plain = _COLOUR.sub("", record.value)
        match = _LINE.search(plain)
        if match is None and open_entry is not None:
            if len(open_entry["message"]) < _LONGEST:
                open_entry["message"] += f"\n{plain}"
            continue
        if open_entry is not None:
            yield Record({TAG: open_entry}, number)
        groups = match.groupdict() if match else {"message": plain, "name": "", "level": "", "time": None}
        open_entry, number = {**groups, "level": {"name": groups["level"]}}, record.number
    if open_entry is not None:
        yield Record({TAG: open_entry}, number)


def _from_log(inner: JsonObject, number: int) -> LogLine:
    """A line of a log: a record that was logged as JSON, or a message of Pipecat or Pipecat Flows."""
    message, logger = as_text(inner.get("message")).strip(), as_text(inner.get("name"))
    if message.startswith("{"):
        try:
            record = decode(message.encode("utf-8", "replace")).value
        except BadJson:
            record = None
        if isinstance(record, dict) and (kind := _tag(record) or _shape(record)) is not None:
            return LogLine(kind, {name: one for name, one in record.items() if name not in (TAG, *_IDS)}, number)
    time = inner.get("time")
    timed: JsonObject = {"timestamp": time.get("timestamp") or time.get("repr") if isinstance(time, dict) else time}
    for pattern in _MESSAGES if len(message) < _LONGEST else ():
        # Without the name of a logger, the log has the messages alone.
        if (not logger or logger.startswith(pattern.loggers)) and (hit := pattern.form.fullmatch(message)):
            return LogLine(
                pattern.kind, {**timed, **pattern.fields, **_values(hit.groupdict())}, number, logger=logger or "log"
            )
    level = as_text(as_object(inner.get("level")).get("name"))
    if level in _ERRORS and logger.startswith(PIPECAT) and message:
        return LogLine("error", {**timed, "message": message.partition("\n")[0][:500]}, number, logger=logger)
    return LogLine("noise", {}, number, logger=logger or "log")


def _values(groups: dict[str, str | None]) -> JsonObject:
    values: JsonObject = {}
    for name, value in groups.items():
        if value is None:
            continue
        if name == "literal":
            values["content"] = as_text(_literal(value))
        elif name == "arguments":
            values[name] = _literal(value)
        else:
            values[name] = number_in(value) if name in _NUMBERS else value.strip()
    return values


def _literal(value: str) -> Any:
    """A value as Python writes it; else the text."""
    try:
        literal = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return literal if isinstance(literal, str | dict | list) else value


def _call_lines(lines: Sequence[LogLine], notes: Notes) -> list[LogLine]:
    """The lines of a call, where messages of a log belong together. What a record has is not taken from the log.

    Lines of the log that are not read are counted by their logger.
    """
    recorded = {line.kind for line in lines if not line.logger} & _AGAIN
    by_frames = any(line.logger and line.fields.get("by") == "frames" for line in lines)
    joined = _JoinedLines()
    for line in lines:
        if not line.logger:
            joined.lines.append(line)
        elif line.kind in recorded or (line.kind == "user" and by_frames and "by" not in line.fields):
            joined.lines.append(LogLine("repeated", {}, line.number, line.file, line.logger))
        else:
            joined.add(line._replace(fields={name: one for name, one in line.fields.items() if name != "by"}))
    left_out = Counter(f"log.{line.logger}" for line in joined.lines if line.kind == "noise")
    left_out["told_by_a_record"] = sum(line.kind == "repeated" for line in joined.lines)
    for what, count in left_out.items():
        if count:
            notes.ignored(what, f"{count} lines" if count > 1 else "", count=count)
    return joined.lines


class _JoinedLines:
    """Goes through the messages of a log in the order in which they were written."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.opened: dict[str, int] = {}
        """Who is speaking, and the index of the line that says since when."""
        self.speech: JsonObject | None = None
        """What the bot is about to say, or says."""
        self.spoken: JsonObject | None = None
        self.raised: dict[str, str] = {}

    def add(self, line: LogLine) -> None:
        fields = line.fields
        if line.kind in _ENDS_SPEECH:
            self.speech = None
        if line.kind == "speech":
            self._sound(line, as_text(fields.get("kind")))
            return
        if line.kind == "assistant":
            # A sentence at a time is made into sound.
            if self.speech is not None:
                self.speech["content"] = f"{self.speech['content']} {fields.get('content')}"
                return
            self.speech = self.spoken = fields
            fields["as_intended"] = True
        elif line.kind == "raised":
            self.raised[as_text(fields.get("function"))] = as_text(fields.get("error"))
        elif line.kind == "function" and fields.get("kind") == "function_call_completed":
            error = self.raised.pop(as_text(fields.get("function_name")), None)
            if error is not None:
                fields |= {"kind": "function_call_failed", "error": error}
        self.lines.append(line)

    def _sound(self, line: LogLine, kind: str) -> None:
        who, _, what = kind.rpartition("_")
        if what == "started" and who.endswith("speech"):
            self.opened[who] = len(self.lines)
        elif what == "stopped" and who in self.opened:
            begun = self.opened.pop(who)
            line.fields["started_at"] = self.lines[begun].fields.get("timestamp")
            self.lines[begun] = self.lines[begun]._replace(kind="joined")
            if who == "bot_speech":
                self.speech = None
        elif kind == "interruption":
            if "bot_speech" in self.opened and self.spoken is not None:
                self.spoken["interrupted"] = True
            self.speech = None
        elif kind == "user_turn_started":
            self.speech = None
        self.lines.append(line)


_IDS = ("conversation_id", "session_id", "call_id")
_EXPECTED = 'expected lines such as {"record": "SpeechEvent", "kind": …, "timestamp": …}'

# The name of a record, without case and underscores, and its kind.
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
# A record that was written without its name is known by the fields that only it has.
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
            lines = (_LINE.search(_COLOUR.sub("", value)) for value in sample.values if isinstance(value, str))
            is_log = any(match is not None and match["name"].startswith(PIPECAT) for match in lines)
            return Detection(0.9, "a log of Pipecat, in plain text", "file") if is_log else None
        objects = [value for value in sample.values if isinstance(value, dict)]
        tagged = [value for value in objects if _tag(value)]
        logged = [value for value in objects if _is_logged(value)]
        if tagged:
            sure, why = 0.95, f'lines with "record": "{tagged[0][TAG]}"'
        elif any(as_text(value[TAG].get("name")).startswith(PIPECAT) for value in logged):
            sure, why = 0.9, "a log of Pipecat, written as JSON"
        elif logged and any(_from_log(value[TAG], 0).kind != "noise" for value in logged):
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
            id = id if has_distinct_ids else f"{id}#{number}"
            yield conversation(self, id, _call_lines(part.lines, notes), group, notes)


class _Part(NamedTuple):
    id: str
    lines: list[LogLine]


def _by_conversation(records: Sequence[Record], notes: Notes) -> Iterator[_Part]:
    """The lines of each conversation; one without an id belongs to the conversation of the line before."""
    parts: dict[str, list[LogLine]] = {}
    current = next((id for record in records if (id := _id(record.value))), "")
    for record in records:
        line = _line(record)
        if line.kind == "unknown":
            notes.set_aside("line_of_no_known_record", repr(record.value)[:80])
        current = _id(record.value) or current
        parts.setdefault(current, []).append(line._replace(file=record.file))
    for id, lines in parts.items():
        # A log may go on after a call: the messages that a call begins with part them.
        call: list[LogLine] = []
        spoken = False
        for line in lines:
            if line.kind == "begins" and spoken:
                yield _Part(id, call)
                call, spoken = [], False
            call.append(line)
            spoken = spoken or line.kind not in SILENT
        yield _Part(id, call)


def _id(value: Any) -> str:
    """The conversation that a line says it belongs to; in a log the id is in what was bound to the logger."""
    holders = (as_object(value), as_object(as_object(as_object(value).get(TAG)).get("extra")))
    return next(filter(None, (as_text(holder.get(name)) for holder in holders for name in _IDS)), "")


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
        return LogLine("unknown", {}, record.number)
    if _is_logged(value):
        return _from_log(value[TAG], record.number)
    fields = {name: one for name, one in value.items() if name not in (TAG, *_IDS)}
    kind = _tag(value) or (_shape(value) if TAG not in value else None)
    if kind is None:
        return LogLine("unknown" if TAG not in value else "other", dict(value), record.number)
    return LogLine(kind, fields, record.number)


def _shape(value: JsonObject) -> Kind | None:
    return next((kind for fields, kind in _SHAPES if fields <= value.keys()), None)


READER = PipecatReader()
