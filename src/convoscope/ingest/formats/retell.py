"""Retell calls: webhooks, lists and single calls, with their nodes, tools, latencies and verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from convoscope.conversation import (
    ASSISTANT,
    USER,
    Agent,
    AudioFile,
    Clock,
    Conversation,
    Segment,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Track,
)
from convoscope.errors import InputError
from convoscope.ingest.call_exports import (
    CallReader,
    CallTimeline,
    EndReasons,
    ExportedCall,
    end_reason,
    spoken_lines,
    verdicts,
)
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import Fields, JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import dimensions
from convoscope.views.tool_outcomes import tool_outcome

_EVENTS = ("call_started", "call_ended", "call_analyzed")
"""Webhooks of a call, each with more than the one before."""
_SURE = frozenset({"transcript_with_tool_calls", "scrubbed_transcript_with_tool_calls", "disconnection_reason"})
_LIKELY = frozenset({"call_status", "call_type", "transcript_object", "retell_llm_dynamic_variables", "call_analysis"})
_ENDS = EndReasons(
    natural=frozenset(
        {"user_hangup", "agent_hangup", "user_requested_dnc", "user_requested_callback", "call_transfer"}
        | {"transfer_bridged", "transfer_cancelled"}
    ),
    forced=frozenset(
        {"inactivity", "max_duration_reached", "manual_stopped", "call_take_over", "scam_detected", "user_declined"}
        | {"voicemail_reached", "ivr_reached", "dial_busy", "dial_no_answer", "registered_call_timeout"}
    ),
    broken=frozenset(
        {"dial_failed", "invalid_destination", "telephony_provider_permission_denied", "sip_routing_error"}
        | {"telephony_provider_unavailable", "marked_as_spam", "network_blocked", "concurrency_limit_reached"}
        | {"no_concurrency_fallback", "no_valid_payment", "credit_exhausted", "budget_reached"}
    ),
    broken_by_name=re.compile("^error_"),
)
_SCRUBBED = "scrubbed_transcript_with_tool_calls"
_TRANSCRIPTS = (_SCRUBBED, "transcript_with_tool_calls", "transcript_object", "transcript")
"""Where a transcript is looked for, the best first."""
_RECORDINGS = ("recording_multi_channel_url", "recording_url")
_NO_SLOTS = frozenset({"current_node", "previous_node"})
_USUAL = frozenset(
    {"agent_id", "agent_version", "agent_tag", "call_status", "call_type", "direction", "from_number", "to_number"}
    | {"start_timestamp", "end_timestamp", "transfer_end_timestamp", "transfer_destination", "telephony_identifier"}
    | {"call_cost", "call_analysis", "latency", "llm_token_usage", "metadata", "custom_sip_headers"}
    | {"retell_llm_dynamic_variables", "data_storage_setting", "opt_in_signed_url", "opt_out_sensitive_data_storage"}
    | {"public_log_url", "knowledge_base_retrieved_contents_url", "event", "event_timestamp", "collected_variables"}
    | {"call_id", "agent_name", "disconnection_reason", "duration_ms", "collected_dynamic_variables", *_TRANSCRIPTS}
    | {f"{scrubbed}{name}" for name in _RECORDINGS for scrubbed in ("", "scrubbed_")}
)
_USUAL_IN_UTTERANCE = frozenset({"response_id", "interrupt_id", "is_backchannel", "backup_model_used"})
_USUAL_IN_TOOL = frozenset({"type", "metadata", "thought_signature"})

_AUDIO, _CALL = "audio", "call"
_CLOCKS = (Clock(id=_AUDIO, kind="audio", source="words"), Clock(id=_CALL, kind="relative", source="time_sec"))
_PAUSE = 1.0
"""Seconds between two words from which on they are two spans of sound."""
_EXTRACTING = "extract_dynamic_variable"
_SPEAKERS = {"agent": ASSISTANT, "user": USER, "transfer_target": "transfer_target"}
_MARKERS = {"dtmf": USER, "sms": USER, "injected": ""}
"""Entries that are neither speech nor tools, and whose they are."""
_LINE = re.compile(r"^\s*(agent|user|transfer[ _]target)\s*:\s?", re.IGNORECASE)


class RetellReader(CallReader):
    """Calls of Retell. The webhooks of one call are brought together."""

    name = "retell"
    title = "Retell calls"
    lists = ("items", "calls")
    id_field = "call_id"
    expected = 'expected {"call_id": …, "transcript_with_tool_calls": […]}'

    webhook = 'a webhook "{}" with a call'
    listed = "a list of calls with call_id"
    single = "a call with call_id and other fields of Retell"

    def likelihood(self, source: ExportedCall) -> float:
        call = source.call
        if not isinstance(call, dict) or not as_text(call.get("call_id")):
            return 0.0
        if not _SURE.isdisjoint(call):
            return 1.0
        return 0.95 if not _LIKELY.isdisjoint(call) or {"agent_id", "transcript"} <= call.keys() else 0.0

    def is_call(self, value: JsonObject) -> bool:
        return bool(value.get("call_id"))

    def unwrapped(self, value: JsonObject) -> ExportedCall | None:
        if self.is_call(value) or not isinstance(value.get("call"), dict):
            return None
        return ExportedCall(value["call"], kind=as_text(value.get("event")) or "call")

    def merged(self, webhooks: Sequence[ExportedCall], notes: Notes) -> ExportedCall:
        """The latest webhook counts."""
        calls = sorted(webhooks, key=lambda call: _EVENTS.index(call.kind) if call.kind in _EVENTS else 1)
        whole: JsonObject = {}
        for call in calls:
            whole |= filled(call.call)
        for call in calls[:-1]:
            notes.ignored("earlier_webhook", call.kind)
        return ExportedCall(whole, "", calls[-1].kind)

    def conversation(self, source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
        call = Fields(source.call, "call", notes, _USUAL)
        reason, status_is_error = end_reason(call, "disconnection_reason"), call.get("call_status") == "error"
        entries, field = _take_transcript(call, reason)
        if not entries and not reason and not status_is_error:
            hint = "a call that has not ended has none yet; `call_ended` and `call_analyzed` bring it"
            raise InputError("has no transcript and no end", field="transcript_with_tool_calls", hint=hint)
        collected = call.take("collected_dynamic_variables", kind=dict) or {}
        given = as_object(call.get("retell_llm_dynamic_variables"))
        # The variables that the call collected: not the nodes among them, nor what it was started with.
        slots = {
            name: value
            for name, value in collected.items()
            if value is not None and name not in _NO_SLOTS and not (name in given and given[name] == value)
        }
        timeline = _Transcript(notes, field, slots)
        timeline.aside("pre_session", call)
        timeline.read(entries, _only_node(field, entries, collected, notes))
        for slot, value in timeline.collected.items():
            notes.inferred("slot_place_not_told", slot, timeline.seq)
            timeline.fill_somewhere(slot, value)
        timeline.aside("post_session", call)
        latency = filled(as_object(call.get("latency")))
        # The values are numbered by nothing, so none belongs to a turn.
        for name, figures in latency.items():
            for value in as_list(as_object(figures).get("values")):
                timeline.measure_call(name, value, f"{name}_latency")
        if latency:
            call["latency"] = {
                name: {key: value for key, value in figures.items() if key != "values"}
                if isinstance(figures, dict)
                else figures
                for name, figures in call["latency"].items()
            }
        if call.pop("access_token", None) is not None:
            notes.ignored("access_token", "a key, and no part of the conversation")
        agent = call.text("agent_name") or as_text(call.get("agent_id"))
        dims = {"agent": agent, "agent_version": as_text(call.get("agent_version"))}
        dims["flow"] = agent if timeline.current else ""
        analysis = {**as_object(call.get("call_analysis")), "call_summary": None}
        custom = as_object(analysis.pop("custom_analysis_data", None))
        analysis |= {f"custom_analysis_data.{name}": value for name, value in custom.items()}
        nodes = {name: collected[name] for name in sorted(_NO_SLOTS & collected.keys())}
        error = "call_status error" if status_is_error else ""
        return timeline.conversation(
            self,
            group,
            call.text("call_id") or source.id_in(group),
            source.path,
            dimensions=dimensions(call.get("metadata")) | filled(dims),
            pipeline="s2s" if "s2s" in latency else "cascade" if latency.keys() & {"asr", "llm", "tts"} else None,
            clocks=tuple(clock for clock in _CLOCKS if clock.id in timeline.used),
            agent=Agent(name=agent),
            labels=verdicts(self.name, analysis),
            # `call_successful` is what a model thinks of the call: a label, and no fact about its end.
            outcome=_ENDS.outcome(reason, "disconnection_reason", _duration(call), notes, error),
            recording=_recording(call),
            extras=call.rest() | filled({"collected_dynamic_variables": nodes, "event": source.kind}),
        )


def _take_transcript(call: Fields, reason: str) -> tuple[Sequence[Any], str]:
    """The best transcript in which anybody speaks, and its field; one without personal data is read in any case.

    What another field holds that this one does not stays in the call.
    """
    notes = call.notes
    held: dict[str, Sequence[Any]] = {}
    for name in _TRANSCRIPTS:
        value = call.get(name)
        if isinstance(value, list) and value:
            held[name] = value
        elif name == "transcript" and isinstance(value, str) and value.strip():
            lines = spoken_lines(value, _LINE)
            held[name] = [{"role": speaker.replace(" ", "_"), "content": text} for speaker, text in lines]
        elif value not in (None, [], ""):
            notes.set_aside("transcript_of_another_kind", f"{name} is a {type(value).__name__}")
    if not held:
        notes.set_aside("no_transcript", reason)
        return (), _TRANSCRIPTS[1]
    spoken = (name for name, listed in held.items() if name == _SCRUBBED or any(map(_is_speech, listed)))
    chosen = next(spoken, next(iter(held)))
    for name in held:
        # A better one in which no one speaks may still hold tools.
        if _TRANSCRIPTS.index(name) >= _TRANSCRIPTS.index(chosen):
            del call[name]
            if name != chosen:
                notes.ignored(name, f"{chosen} is read")
    if chosen == "transcript":
        notes.inferred("turns_from_text", "speakers are known by the lines of the transcript")
    return held[chosen], chosen


def _only_node(field: str, entries: Sequence[Any], collected: JsonObject, notes: Notes) -> str:
    """The node of a call that never moved. Only a transcript with nodes shows that it did not."""
    node = as_text(collected.get("current_node"))
    moved = any(isinstance(one, dict) and one.get("role") == "node_transition" for one in entries)
    if not node or moved or collected.get("previous_node") or field not in _TRANSCRIPTS[:2]:
        return ""
    notes.inferred("state_from_current_node", node)
    return node


def _duration(call: Fields) -> float | None:
    milliseconds = call.number("duration_ms")
    if milliseconds is None:
        start, end = as_number(call.get("start_timestamp")), as_number(call.get("end_timestamp"))
        milliseconds = None if start is None or end is None else end - start
    if milliseconds is not None and milliseconds < 0:
        call.notes.set_aside("duration", f"{milliseconds:g} ms")
        return None
    return None if milliseconds is None else round(milliseconds / 1000, 6)


def _recording(call: Fields) -> AudioFile | None:
    """The recording without personal data where there is one."""
    scrubbed, plain = (
        [Track(id=name, url=url) for name in names if (url := call.text(name))]
        for names in ([f"scrubbed_{name}" for name in _RECORDINGS], _RECORDINGS)
    )
    if scrubbed and plain:
        call.notes.ignored("unscrubbed_recording", "the scrubbed one is taken")
    tracks = tuple(scrubbed or plain)
    return AudioFile(tracks=tracks) if tracks else None


class _Node(NamedTuple):
    """One end of a transition."""

    id: str
    name: str


class _Transcript(CallTimeline):
    """Reads the entries one after the other, and knows which node the call is in."""

    def __init__(self, notes: Notes, source: str, collected: JsonObject) -> None:
        super().__init__(notes)
        self.collected = collected
        """Variables that were collected and are not on the timeline yet."""
        self.used: set[str] = set()
        """The clocks of the times."""
        self._source = source
        self._calls: dict[str, ToolCall] = {}
        self._ids: dict[str, dict[str, None]] = {}
        self._names: dict[str, str] = {}

    def read(self, entries: Sequence[Any], start: str = "") -> None:
        """Put all entries on the timeline; `start` is the node of a call that was never in another."""
        moves = [move for move in entries if isinstance(move, dict) and move.get("role") == "node_transition"]
        for move in moves:
            for node in (_node(move, "former"), _node(move, "new")):
                if node.id:
                    self._names[node.id] = self._names.get(node.id) or node.name
                    self._ids.setdefault(node.name, {})[node.id] = None
        first = self._name(_node(moves[0], "former")) if moves else start
        if first:
            self.enter(first, None, {"node_id": _node(moves[0], "former").id} if moves else {})
        for entry in entries:
            self._read(entry)
        # An `interrupt_id` says that a speaker was interrupted; the times say by whom.
        for overlap in self.overlaps():
            both = overlap.first, overlap.second
            if any(one.extras.get("interrupt_id") is not None for one in both) and not overlap.second.manner:
                self.cut_off(overlap, f"interrupt_id of {overlap.first.speaker}")

    def aside(self, when: str, call: Fields) -> None:
        """Entries of before or after the call. The platform made them, so they are no acts of the agent."""
        name = f"{when}_transcript_with_tool_calls"
        plain, scrubbed = call.pop(name, None), call.pop(f"scrubbed_{name}", None)
        entries = scrubbed or plain
        for entry in entries if isinstance(entries, list) else [entries] if entries else ():
            self.mark(when, entry)

    def _read(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            self.notes.ignored("not_an_entry", repr(entry)[:80], self.seq)
            self.mark("not_an_entry", entry)
            return
        fields = Fields(entry, "utterance", self.notes, _USUAL_IN_UTTERANCE)
        role = as_text(fields.pop("role", ""))
        at = fields.number("time_sec")
        time = None if at is None else Time(at, _CALL)
        if time is not None:
            self.used.add(_CALL)
        if role in _SPEAKERS or role == "unknown":
            self._say(role, fields, time)
        elif role == "tool_call_invocation":
            self._call(fields, time)
        elif role == "tool_call_result":
            self._result(fields, time)
        elif role == "node_transition":
            self._move(fields, time)
        else:
            if role not in _MARKERS:
                self.notes.unknown(f"role={role or '(none)'}", self.seq)
            owner = self.participant(_MARKERS[role]) if _MARKERS.get(role) else ""
            value = fields.get("digit") if role == "dtmf" and set(fields) == {"digit"} else filled(fields)
            self.mark(role or "not_an_entry", value, time, participant=owner)

    def _say(self, role: str, fields: Fields, time: Time | None) -> None:
        speech, content = _said_in(fields), fields.get("content")
        if speech and content in (None, ""):
            self.notes.repaired("text_from_words", speech[:80], self.seq)
        if isinstance(content, str | int | float) or content is None:
            fields.pop("content", None)
        segments = self._segments(fields.take("words", kind=list) or ())
        metadata = fields.take("metadata", kind=dict) or {}
        backchannel = metadata.get("is_backchannel") is True
        if not speech and not segments:
            self.notes.ignored("empty_utterance", role, self.seq)
            return
        fields |= {name: value for name, value in metadata.items() if not (name == "is_backchannel" and backchannel)}
        text = Text(speech, f"{self._source}.content") if speech else None
        self.say(
            self.participant(_SPEAKERS.get(role, role)),
            # A transcript holds what the recogniser made of a caller, and what was really played of the agent.
            spoken=text if role == "agent" else None,
            heard=None if role == "agent" else text,
            time=time,
            segments=segments,
            manner="backchannel" if backchannel else "",
            extras=fields.rest(self.seq),
        )

    def _segments(self, words: Sequence[Any]) -> list[Segment]:
        """The words' times, brought together where there is no pause between."""
        times: list[tuple[float, float]] = []
        for word in words:
            start, end = (as_number(as_object(word).get(name)) for name in ("start", "end"))
            if start is not None and end is not None and 0 <= start <= end:
                times.append((start, end))
            elif not isinstance(word, dict) or not (word.get("start") is None and word.get("end") is None):
                self.notes.set_aside("word_times", repr(word)[:80], self.seq)
        segments: list[Segment] = []
        for start, end in sorted(times):
            if segments and start - segments[-1].end < _PAUSE:
                segments[-1] = Segment(segments[-1].start, max(segments[-1].end, end), _AUDIO)
            else:
                segments.append(Segment(start, end, _AUDIO))
        if segments:
            self.used.add(_AUDIO)
        return segments

    def _call(self, fields: Fields, time: Time | None) -> None:
        fields.of, fields.usual = "tool_call", _USUAL_IN_TOOL
        name, call_id = fields.text("name"), fields.text("tool_call_id")
        arguments = fields.pop("arguments", None)
        self.call(name, arguments, call_id=call_id, time=time, extras=fields.rest(self.seq))
        event = self.events[-1]
        if isinstance(event, ToolCall):
            self._calls[call_id] = event

    def _result(self, fields: Fields, time: Time | None) -> None:
        """A tool's result, and the variables that it brought: by name if it extracts them, else by their very value."""
        fields.of, fields.usual = "tool_result", _USUAL_IN_TOOL
        call_id, worked, content = fields.text("tool_call_id"), fields.flag("successful"), fields.pop("content", None)
        call = self._calls.get(call_id)
        where: JsonObject = {
            "call_id": call_id,
            "name": call.name if call else "",
            "time": time,
            "extras": fields.rest(self.seq),
        }
        self.answer(content, worked, error_if_unstated=str(content)[:500], **where)
        result = self.events[-1]
        if not isinstance(result, ToolResult) or tool_outcome(result).failed:
            return
        extracts = call is not None and call.extras.get("type") == _EXTRACTING
        brought = as_object(call.arguments) if call is not None and extracts else {}
        brought = brought | {name: value for name, value in as_object(result.result).items() if value is not None}
        for slot, value in list(self.collected.items()):
            # Variables are kept as text, whatever they were.
            is_same = str(brought.get(slot)).strip().casefold() == str(value).strip().casefold()
            if brought.get(slot) is not None and (extracts or is_same):
                if not extracts:
                    self.notes.inferred("slot_from_tool_result", f"{slot} from {result.name}", self.seq)
                self.fill(slot, self.collected.pop(slot), result.time)

    def _move(self, fields: Fields, time: Time | None) -> None:
        fields.of, fields.usual = "node_transition", frozenset()
        old, new = _node(fields, "former"), _node(fields, "new")
        former, coming, here = self._name(old), self._name(new), self.current
        if not coming:
            self.notes.set_aside("transition_without_node", repr(dict(fields))[:80], self.seq)
            self.mark("node_transition", dict(fields), time)
            return
        if former and here and former != here:
            self.notes.inferred("transition_not_logged", f"{here} → {former}", self.seq)
            self.leave(former, time)
        if former and former != here:
            self.enter(former, time, {"node_id": old.id})
        reason = as_text(fields.pop("transition_type", None))
        for side in ("former", "new"):
            fields.pop(f"{side}_node_id", None)
            fields.pop(f"{side}_node_name", None)
        self.leave(coming, time, reason)
        self.enter(coming, time, {"node_id": new.id, "transition_type": reason, **fields.rest(self.seq)})

    def _name(self, node: _Node) -> str:
        name = node.name or self._names.get(node.id, "")
        if not name:
            return node.id
        return f"{name} ({node.id})" if node.id and len(self._ids.get(name, ())) > 1 else name


def _said_in(entry: JsonObject) -> str:
    """The text of an entry, else its words."""
    content = as_text(entry.get("content"))
    if content.strip():
        return content
    texts = [as_text(as_object(word).get("word")).strip() for word in as_list(entry.get("words"))]
    return " ".join(filter(None, texts))


def _is_speech(entry: Any) -> bool:
    return isinstance(entry, dict) and as_text(entry.get("role")) in _SPEAKERS and bool(_said_in(entry))


def _node(fields: JsonObject, side: str) -> _Node:
    return _Node(as_text(fields.get(f"{side}_node_id")), as_text(fields.get(f"{side}_node_name")))


READER = RetellReader()
