"""Vapi calls: GET /call, end-of-call reports and lists, with nodes, assistants, tools, latencies and verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Agent,
    AudioFile,
    Conversation,
    Label,
    Segment,
    Text,
    Time,
    Tool,
    Track,
)
from convoscope.conversation.events import moment
from convoscope.errors import InputError
from convoscope.ingest.call_exports import (
    LOOKED_AT,
    CallReader,
    CallTimeline,
    EndReasons,
    ExportedCall,
    end_reason,
    spoken_lines,
    verdicts,
)
from convoscope.ingest.formats.vapi_visits import (
    CALL_IDS,
    CALL_LISTS,
    RESULTS,
    TEXTS,
    CallVisit,
    MessageStep,
    assistant_of,
    each_once,
    placed_messages,
    text_in,
)
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import (
    Fields,
    JsonObject,
    as_list,
    as_number,
    as_object,
    as_text,
    filled,
    from_milliseconds,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import dimensions

_REPORT = "end-of-call-report"

_OF_AN_ARTIFACT = frozenset(
    {"messages", "messagesOpenAIFormatted", "nodes", "assistantActivations", "performanceMetrics", "variableValues"}
    | {"recordingUrl", "stereoRecordingUrl", "recording", "transcript", "structuredOutputs", "scorecards", "transfers"}
)
_OF_A_CALL = frozenset(
    {"endedReason", "orgId", "assistantId", "squadId", "workflowId", "startedAt", "createdAt", "phoneNumberId"}
)

_ENDS = EndReasons(
    natural=frozenset(
        {"assistant-ended-call", "assistant-said-end-call-phrase", "assistant-ended-call-with-hangup-task"}
        | {"assistant-ended-call-after-message-spoken", "assistant-forwarded-call", "customer-ended-call"}
        | {
            "customer-ended-call-after-warm-transfer-attempt",
            "vonage-completed",
            "call.in-progress.twilio-completed-call",
        }
        | {"call.in-progress.sip-completed-call", "call.ending.hook-executed-say", "call.ending.hook-executed-transfer"}
    ),
    forced=frozenset(
        {"exceeded-max-duration", "silence-timed-out", "manually-canceled", "scheduled-call-deleted", "call-deleted"}
        | {"voicemail", "customer-busy", "customer-did-not-answer", "customer-did-not-give-microphone-permission"}
        | {"customer-ended-call-before-warm-transfer", "customer-ended-call-during-transfer"}
        | {"call.forwarding.operator-busy", "call.forwarding.no-answer", "call.ringing.hook-executed-say"}
        | {"call.ringing.hook-executed-transfer", "call.ringing.sip-inbound-caller-hungup-before-call-connect"}
        | {"assistant-request-returned-forwarding-phone-number"}
        # No person took the call over: an error by its name, but the call was held.
        | {f"call.in-progress.error-warm-transfer-{why}" for why in ("max-duration", "assistant-cancelled")}
        | {f"call.in-progress.error-warm-transfer-{why}" for why in ("silence-timeout", "microphone-timeout")}
    ),
    broken=frozenset(
        {"assistant-request-failed", "assistant-request-returned-invalid-assistant", "assistant-not-valid"}
        | {"assistant-request-returned-no-assistant", "assistant-not-found", "assistant-join-timed-out"}
        | {"worker-shutdown", "vonage-disconnected", "vonage-failed-to-connect-call", "vonage-rejected"}
        | {"phone-call-provider-bypass-enabled-but-no-call-received", "phone-call-provider-closed-websocket"}
        | {"sip-outbound-unallocated-number", "sip-outbound-carrier-released-call", "twilio-failed-to-connect-call"}
        | {"twilio-reported-customer-misdialed"}
    ),
    # Hundreds of codes name the provider that failed; they are known by how they are built.
    broken_by_name=re.compile(r"(^|[.-])(error|pipeline|providerfault|vapifault)([.-]|$)|-failed$"),
)

_TEMPLATE = frozenset({"now", "date", "time", "month", "day", "year", "customer", "phoneNumber", "transport", "call"})
"""Variables that every prompt may use; they are not collected."""
_USUAL = frozenset(
    {"orgId", "type", "status", "createdAt", "updatedAt", "startedAt", "endedAt", "endedMessage", "cost", "costs"}
    | {"costBreakdown", "assistant", "assistantId", "assistantOverrides", "assistantVersion", "squad", "squadId"}
    | {"squadOverrides", "squadVersion", "workflow", "workflowId", "workflowOverrides", "phoneNumber", "compliance"}
    | {"phoneNumberId", "customer", "customerId", "destination", "transport", "monitor", "artifactPlan", "name"}
    | {"phoneCallProvider", "phoneCallProviderId", "phoneCallTransport", "campaignId", "schedulePlan", "chat"}
    | {"durationMs", "durationSeconds", "durationMinutes", "summary", "timestamp", "metadata", "webCallUrl"}
    | {"artifact", "analysis"}
)
_LINE = re.compile(r"^\s*(ai|user|assistant|bot)\s*:\s?", re.IGNORECASE)
_SPEAKERS = {"user": USER, "bot": ASSISTANT, "assistant": ASSISTANT, "system": SYSTEM}
_IN_MILLISECONDS = 100
"""A length from here on counts milliseconds: no one speaks for a hundred seconds, or for a tenth of one."""

_CALLS = frozenset({"tool_calls", "tool-calls", "function_call"})
_ANSWERS = ("result", "content")
_USUAL_IN_MESSAGE = frozenset(
    {"secondsFromStart", "endTime", "duration", "source", "assistantName", "assistantId", "isFiltered", "metadata"}
    | {"detectedThreats", "originalMessage", "confidence", "confidenceSource", "speakerLabel", "warnings"}
    | {"time", "message", "type", "toolCallId"}
)
# What a turn's latency is made of: the part of the stack that it belongs to, and our name for it there.
_PARTS = {
    "turnLatency": ("turn", "e2e_latency"),
    "modelLatency": ("llm", "ttft"),
    "voiceLatency": ("tts", "ttfb"),
    "endpointingLatency": ("eou", "end_of_utterance_delay"),
    "transcriberLatency": ("eou", "transcription_delay"),
}


class VapiReader(CallReader):
    """Calls of Vapi. The webhooks of one call are brought together."""

    name = "vapi"
    title = "Vapi calls and end-of-call reports"
    lists = ("results", "items", "calls")
    id_field = "id"
    expected = f'expected a call with {{"artifact": {{"messages": […]}}}}, or {{"message": {{"type": "{_REPORT}", …}}}}'

    webhook = 'a message "{}" with a call'
    listed = "a list of calls with an artifact"
    single = "a call with an artifact or endedReason"

    def likelihood(self, source: ExportedCall) -> float:
        call = as_object(source.call)
        return float(self.is_call(call) or (bool(source.kind) and {"id", "orgId"} <= call.keys()))

    def is_call(self, value: JsonObject) -> bool:
        has_fields = not _OF_A_CALL.isdisjoint(value)
        artifact = value.get("artifact")
        if isinstance(artifact, dict) and not _OF_AN_ARTIFACT.isdisjoint(artifact):
            return has_fields or bool(value.get("id"))
        if has_fields and "endedReason" in value and as_text(value.get("id")):
            return True
        listed = as_list(value.get("messages"))[:LOOKED_AT]
        return any(isinstance(one, dict) and "secondsFromStart" in one and "role" in one for one in listed) or (
            {"orgId", "assistantId"} <= value.keys()
        )

    def unwrapped(self, value: JsonObject) -> ExportedCall | None:
        """A call, with the fields of its report. The report's own type is not the call's."""
        message = value.get("message") if isinstance(value.get("message"), dict) else value
        if not isinstance(message, dict) or (message is value and not isinstance(value.get("call"), dict)):
            return None
        call = as_object(message.get("call"))
        both = {**call, **filled({name: one for name, one in message.items() if name not in ("call", "type")})}
        if call.get("artifact") and isinstance(message.get("artifact"), dict):
            both["artifact"] = {**as_object(call["artifact"]), **filled(message["artifact"])}
        return ExportedCall(both, kind=as_text(message.get("type")) or "message")

    def merged(self, webhooks: Sequence[ExportedCall], notes: Notes) -> ExportedCall:
        """The report holds all; without one, the message with the most in it."""
        best = max(
            webhooks, key=lambda webhook: (webhook.kind == _REPORT, webhook.kind == "", len(_messages(webhook.call)[0]))
        )
        for webhook in webhooks:
            if webhook is not best:
                notes.ignored(f"message.type={webhook.kind or 'call'}")
        return best

    def conversation(self, source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
        call, artifact = source.call, as_object(source.call.get("artifact"))
        messages, field = _messages(call)
        reason = end_reason(Fields(call, "call", notes), "endedReason")
        if not messages and not reason:
            hint = f"a call that has not ended has none; a message of type {_REPORT} brings them"
            raise InputError("has no messages and no end", field="artifact.messages", hint=hint)
        if not messages:
            notes.set_aside("no_messages", reason)
        if messages and field == "transcript":
            notes.inferred("turns_from_text", "speakers are known by the lines of the transcript")
        placed = placed_messages(messages, artifact, call, notes)
        instructions, steps = _instructions(placed.steps)
        figures = as_object(artifact.get("performanceMetrics"))
        per_turn = as_list(figures.get("turnLatencies"))
        joined = _joined(steps, per_turn, notes)
        timeline = _MessageTimeline(notes, field, placed.visits, call)
        timeline.read(steps, joined)
        variables = as_object(artifact.get("variableValues"))
        timeline.fill_all({name: value for name, value in variables.items() if name not in _TEMPLATE})
        timeline.set_cut_offs(ASSISTANT, figures.get("numAssistantInterrupted"))
        timeline.set_cut_offs(USER, figures.get("numUserInterrupted"))
        # What has no position in the order goes to the end: assistants, transfers, latencies of an unknown turn.
        for visit in placed.unplaced:
            notes.set_aside("activation_place_not_told", visit.state, timeline.seq)
            timeline.mark("assistant_activation", {"assistantName": visit.state, **visit.extras})
        for transfer in as_list(artifact.get("transfers")):
            timeline.mark("transfer", transfer)
        for latency in () if joined else per_turn:
            for name, value in as_object(latency).items():
                component, plain_name = _PARTS.get(name, ("", name))
                timeline.measure_call(name, value, plain_name if component == "turn" else name)
        agent = _agent(call, artifact, instructions)
        named = {
            kind: as_text(as_object(call.get(kind)).get("name")) or as_text(call.get(f"{kind}Id"))
            for kind in ("squad", "workflow", "assistant")
        }
        dims = {"agent": named["squad"] or agent.name or named["workflow"], "model": agent.models.get("llm", "")}
        if placed.visits:
            # The workflow or squad whose states the call went through.
            owners = ("workflow", "squad") if as_list(artifact.get("nodes")) else ("squad", "workflow")
            dims["flow"] = next(filter(None, (named[kind] for kind in (*owners, "assistant"))), "")
        assistant = as_object(call.get("assistant"))
        is_s2s = "realtime" in as_text(as_object(assistant.get("model")).get("model"))
        has_parts = any(as_object(one).get("voiceLatency") is not None for one in per_turn)
        is_cascade = has_parts or bool(assistant.get("transcriber") and assistant.get("voice"))
        return timeline.conversation(
            self,
            group,
            as_text(call.get("id")) or source.id_in(group),
            source.path,
            dimensions=dimensions(call.get("metadata") or assistant.get("metadata")) | filled(dims),
            pipeline="s2s" if is_s2s else "cascade" if is_cascade else None,
            agent=agent,
            labels=_labels(as_object(call.get("analysis")), artifact),
            # `successEvaluation` is what a model thinks of the call: a label, and no fact about its end.
            outcome=_ENDS.outcome(reason, "endedReason", _duration(call, notes), notes),
            recording=_recording(call, artifact, {one.id for one in timeline.participants}),
            extras=_extras(call, field, notes),
        )


def _messages(call: JsonObject) -> tuple[Sequence[Any], str]:
    """The messages of a call and their field, the fullest first."""
    artifact = as_object(call.get("artifact"))
    nodes = each_once([as_list(as_object(node).get("messages")) for node in as_list(artifact.get("nodes"))])
    lists = {
        "artifact.messages": as_list(artifact.get("messages")),
        "messages": as_list(call.get("messages")),
        "artifact.nodes.messages": nodes,
        "artifact.messagesOpenAIFormatted": as_list(artifact.get("messagesOpenAIFormatted")),
    }
    for field, listed in lists.items():
        if listed:
            return listed, field
    lines = spoken_lines(as_text(artifact.get("transcript")) or as_text(call.get("transcript")), _LINE)
    roles = {"user": "user", "unknown": "unknown"}
    return [{"role": roles.get(speaker, "bot"), "message": text} for speaker, text in lines], "transcript"


def _instructions(steps: Sequence[MessageStep]) -> tuple[str, Sequence[MessageStep]]:
    """The prompt that a call begins with, and what comes behind it."""
    for count, (message, _) in enumerate(steps):
        if not isinstance(message, dict) or _SPEAKERS.get(as_text(message.get("role"))) != SYSTEM:
            return "\n\n".join(text_in(prompt) for prompt, _ in steps[:count]), steps[count:]
    return "", steps


def _joined(steps: Sequence[MessageStep], latencies: Sequence[Any], notes: Notes) -> dict[int, JsonObject]:
    """The latencies of turns by the index of their reply, where there are as many of the one as of the other."""
    replies: list[int] = []
    user_spoke = False
    for index, (message, _) in enumerate(steps):
        role = _SPEAKERS.get(as_text(message.get("role"))) if isinstance(message, dict) else None
        if role in (USER, ASSISTANT) and text_in(message).strip():
            if role == ASSISTANT and user_spoke:
                replies.append(index)
            user_spoke = role == USER
    if not latencies or len(replies) != len(latencies):
        return {}
    notes.inferred("turn_latencies_by_number", f"{len(replies)} replies")
    return {index: as_object(latency) for index, latency in zip(replies, latencies, strict=True)}


def _agent(call: JsonObject, artifact: JsonObject, instructions: str) -> Agent:
    assistant = as_object(call.get("assistant"))
    model = as_object(assistant.get("model"))
    entries = map(as_object, as_list(artifact.get("assistantActivations")))
    activated = next((visit.state for entry in entries if (visit := assistant_of(entry))), "")
    names = (as_text(assistant.get("name")), activated, as_text(call.get("assistantId")))
    parts = {
        "llm": as_text(model.get("model")),
        "stt": as_text(as_object(assistant.get("transcriber")).get("model")),
        "tts": as_text(as_object(assistant.get("voice")).get("model")),
    }
    prompts = [one for one in as_list(model.get("messages")) if isinstance(one, dict) and one.get("role") == SYSTEM]
    tools = model.get("tools")
    return Agent(
        name=next(filter(None, names), ""),
        instructions=instructions or "\n\n".join(text_in(one) for one in prompts),
        tools=tuple(_tool(one) for one in tools if isinstance(one, dict)) if isinstance(tools, list) else None,
        models=filled(parts),
    )


def _tool(fields: JsonObject) -> Tool:
    function = as_object(fields.get("function"))
    kind = as_text(fields.get("type"))
    return Tool(
        name=as_text(function.get("name")) or kind,
        description=as_text(function.get("description")),
        arguments_schema=function.get("parameters"),
        kind="" if kind == "function" else kind,
    )


def _labels(analysis: JsonObject, artifact: JsonObject) -> tuple[Label, ...]:
    values: JsonObject = {"successEvaluation": analysis.get("successEvaluation")}
    data = analysis.get("structuredData")
    values |= {f"structuredData.{name}": value for name, value in as_object(data).items()}
    for kind, field in (("structuredOutputs", "result"), ("scorecards", "score")):
        for id, entry in as_object(artifact.get(kind)).items():
            output = as_object(entry)
            values[f"{kind}.{as_text(output.get('name')) or id}"] = output.get(field) if output else entry
    return verdicts(VapiReader.name, values)


def _duration(call: JsonObject, notes: Notes) -> float | None:
    start, end = moment(call.get("startedAt")), moment(call.get("endedAt"))
    if start is not None and end is not None and start.kind == end.kind:
        if end.at >= start.at:
            return round(end.at - start.at, 6)
        notes.set_aside("duration", f"{end.at - start.at:g} s")
    seconds = as_number(call.get("durationSeconds"))
    seconds = from_milliseconds(call.get("durationMs")) if seconds is None else seconds
    return seconds if seconds is None or seconds >= 0 else None


def _recording(call: JsonObject, artifact: JsonObject, speakers: set[str]) -> AudioFile | None:
    recording = as_object(artifact.get("recording"))
    mono = as_object(recording.get("mono"))
    urls = (
        ("stereo", recording.get("stereoUrl") or artifact.get("stereoRecordingUrl") or call.get("stereoRecordingUrl")),
        ("mono", mono.get("combinedUrl") or artifact.get("recordingUrl") or call.get("recordingUrl")),
        (ASSISTANT, mono.get("assistantUrl")),
        (USER, mono.get("customerUrl")),
        ("video", recording.get("videoUrl") or artifact.get("videoRecordingUrl")),
    )
    tracks = tuple(
        Track(id=id, url=as_text(url), channels=(id,) if id in speakers else ()) for id, url in urls if as_text(url)
    )
    return AudioFile(tracks=tracks) if tracks else None


def _extras(call: JsonObject, source: str, notes: Notes) -> JsonObject:
    """What was not read; of messages that are written several times, those that were read are enough."""
    left = Fields(call, "call", notes, _USUAL)
    for name in ("id", "messages", "transcript", "recordingUrl", "stereoRecordingUrl"):
        left.pop(name, None)
    left.text("endedReason")
    if isinstance(call.get("artifact"), dict):
        artifact = dict(call["artifact"])
        for name in ("messages", "messagesOpenAIFormatted", "transcript"):
            if artifact.pop(name, None) and source not in (name, f"artifact.{name}"):
                notes.ignored(name, f"{source} is read")
        for name in ("nodes", "assistantActivations", "transfers", "recording"):
            artifact.pop(name, None)
        figures = as_object(artifact.get("performanceMetrics"))
        artifact["performanceMetrics"] = {name: one for name, one in figures.items() if name != "turnLatencies"}
        left["artifact"] = filled(artifact)
    return left.rest()


class _MessageTimeline(CallTimeline):
    """Reads the messages one after the other, and knows which visit the call is in."""

    def __init__(self, notes: Notes, source: str, visits: Sequence[CallVisit], call: JsonObject) -> None:
        super().__init__(notes, f"{source}.time")
        self._visits, self._source = visits, source
        self._given: JsonObject = {}
        """Variables that the call began with: they were not collected in it."""
        for overrides in ("squadOverrides", "workflowOverrides", "assistantOverrides"):
            self._given |= as_object(as_object(call.get(overrides)).get("variableValues"))
        self._here = -1

    def read(self, steps: Sequence[MessageStep], latencies: dict[int, JsonObject]) -> None:
        """Put all messages on the timeline; `latencies` has those of turns by the index of their reply."""
        if self._visits:
            self._move_to(0)
        for index, step in enumerate(steps):
            self._move_to(step.visit)
            self._read(step.message, f"turn-{index}", latencies.get(index))
        self._move_to(len(self._visits) - 1)
        self._fill_here()

    def fill_all(self, variables: JsonObject, *, here: bool = False) -> None:
        """Variables become slots, each once; where they were collected is unknown, unless it was here."""
        for slot, value in variables.items():
            if slot in self._given and self._given[slot] == value:
                continue
            if here:
                self.fill(slot, value)
            elif self.fill_somewhere(slot, value):
                self.notes.inferred("slot_place_not_told", slot, self.seq - 1)

    def _fill_here(self) -> None:
        if self.current:
            self.fill_all(self._visits[self._here].variables, here=True)

    def _move_to(self, visit: int) -> None:
        while self._here < min(visit, len(self._visits) - 1):
            self._fill_here()
            self._here += 1
            coming = self._visits[self._here]
            self.move(coming.state, extras=coming.extras)

    def _read(self, message: Any, speech_id: str, latency: JsonObject | None) -> None:
        if not isinstance(message, dict):
            self.notes.ignored("not_a_message", repr(message)[:80], self.seq)
            self.mark("not_a_message", message)
            return
        fields = Fields(message, "message", self.notes, _USUAL_IN_MESSAGE)
        role = as_text(fields.pop("role", ""))
        if role in RESULTS:
            self._result(fields)
        elif role in _SPEAKERS or role in _CALLS or role == "unknown":
            calls: Sequence[Any] = fields.take(*CALL_LISTS, kind=list) or ()
            if role in _CALLS:
                self._calls(calls, self._sent(fields), fields)
            else:
                time = fields.get("time")
                self._say(role, fields, speech_id, latency, alone=not calls)
                if calls:
                    self._calls(calls, self.time(time), {})
        else:
            self.notes.unknown(f"role={role or '(none)'}", self.seq)
            self.mark(role or "not_a_message", filled(fields), self._sent(fields))

    def _say(self, role: str, fields: Fields, speech_id: str, latency: JsonObject | None, *, alone: bool) -> None:
        speech = fields.text(*TEXTS)
        if not speech:
            if alone:
                self.notes.ignored("empty_utterance", role, self.seq)
            return
        speaker = self.participant(_SPEAKERS.get(role, role))
        time = self._span(fields)
        parts: dict[str, JsonObject] = {}
        for name, (component, plain_name) in _PARTS.items():
            if (seconds := from_milliseconds((latency or {}).get(name))) is not None:
                parts.setdefault(component, {})[plain_name] = seconds
        for component, measured in parts.items():
            self.measure(component, measured, speech_id)
        text = Text(speech, f"{self._source}.message", fields.number("confidence"))
        # A transcript holds what the recogniser made of a caller, and what the assistant said.
        is_heard, is_intended = speaker in (USER, "unknown"), speaker == SYSTEM
        self.say(
            speaker,
            time=time,
            spoken=None if is_heard or is_intended else text,
            heard=text if is_heard else None,
            intended=text if is_intended else None,
            segments=[Segment(time.at, time.until, time.clock)] if time and time.until is not None else (),
            extras=fields.rest(self.seq),
        )

    def _sent(self, fields: Fields) -> Time | None:
        """When a message was sent, else how far into the call."""
        for name in ("time", "secondsFromStart"):
            if fields.get(name) is not None and (time := self.time(fields[name])) is not None:
                del fields[name]
                return time
        return None

    def _span(self, fields: Fields) -> Time | None:
        """From when to when something was said: by its end, else by its length."""
        start = self._sent(fields)
        if start is None:
            return None
        if fields.get("endTime") is not None:
            end = self.time(fields["endTime"])
            if end is not None and end.clock == start.clock and end.at >= start.at:
                del fields["endTime"]
                return Time(start.at, start.clock, end.at)
            self.notes.set_aside("end_before_start", repr(fields["endTime"])[:80], self.seq)
        length = as_number(fields.get("duration"))
        if length is None or length < 0:
            return start
        unit = "ms" if length >= _IN_MILLISECONDS else "s"
        self.notes.inferred(f"duration_in_{unit}", f"{length:g}", self.seq)
        return Time(start.at, start.clock, start.at + (length / 1000 if unit == "ms" else length))

    def set_cut_offs(self, speaker: str, count: Any) -> None:
        """Who was cut off, where as many overlap as the call says were cut off."""
        overlaps = [overlap for overlap in self.overlaps() if overlap.first.speaker == speaker]
        if as_number(count) == len(overlaps):
            for overlap in overlaps:
                self.cut_off(overlap, f"{speaker} by {overlap.second.speaker}")

    def _calls(self, calls: Sequence[Any], time: Time | None, message: JsonObject) -> None:
        for call in calls:
            if not isinstance(call, dict):
                self.notes.ignored("not_a_tool_call", repr(call)[:80], self.seq)
                self.mark("not_a_tool_call", call, time)
                continue
            fields = Fields(call, "tool_call", self.notes, _USUAL_IN_MESSAGE)
            fields |= fields.take("function", kind=dict) or {}
            name, id = fields.text("name"), fields.text("id")
            arguments = fields.pop("arguments", fields.pop("parameters", None))
            if fields.get("type") == "function":
                del fields["type"]
            fields |= {name: value for name, value in message.items() if name not in fields}
            self.call(name, arguments, call_id=id, time=time, extras=fields.rest(self.seq))
        if not calls and message:
            self.mark("tool_calls", filled(message), time)

    def _result(self, fields: Fields) -> None:
        fields.of = "tool_result"
        time, call_id, name = self._sent(fields), fields.text(*CALL_IDS), as_text(fields.pop("name", ""))
        answer = next((fields.pop(field) for field in _ANSWERS if fields.get(field) is not None), None)
        error = fields.pop("error", None)
        extras = fields.rest(self.seq)
        self.result(error if answer is None else answer, call_id=call_id, name=name, time=time, extras=extras)
        if error:
            self.set_outcome(False, error=error if isinstance(error, str) else repr(error)[:500])


READER = VapiReader()
