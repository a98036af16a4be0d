"""Vapi calls: GET /call, end-of-call reports and lists, with nodes, assistants, tools, latencies and verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Agent,
    AudioFile,
    Conversation,
    Label,
    Outcome,
    Segment,
    Source,
    Text,
    Time,
    Tool,
    Track,
)
from convoscope.conversation.events import moment
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.call_exports import (
    LOOKED_AT,
    CallReader,
    EndReasons,
    ExportedCall,
    StateTrack,
    add_call_latency,
    overlapping_utterances,
    spoken_lines,
    verdicts,
)
from convoscope.ingest.reader import Detection, RecordGroup, Sample
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
from convoscope.ingest.timeline_builder import TimelineBuilder, dimensions
from convoscope.views.end_reasons import passes_on

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
        # Nobody took the call over: an error by its name, but the call was held.
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
    # Hundreds of codes name the provider that failed; they are told by how they are built.
    broken_by_name=re.compile(r"(^|[.-])(error|pipeline|providerfault|vapifault)([.-]|$)|-failed$"),
)

_TEMPLATE = frozenset({"now", "date", "time", "month", "day", "year", "customer", "phoneNumber", "transport", "call"})
"""Variables that every prompt may use; nobody collected them."""
_USUAL = frozenset(
    {"orgId", "type", "status", "createdAt", "updatedAt", "startedAt", "endedAt", "endedMessage", "cost", "costs"}
    | {"costBreakdown", "assistant", "assistantId", "assistantOverrides", "assistantVersion", "squad", "squadId"}
    | {"squadOverrides", "squadVersion", "workflow", "workflowId", "workflowOverrides", "phoneNumber", "compliance"}
    | {"phoneNumberId", "customer", "customerId", "destination", "transport", "monitor", "artifactPlan", "name"}
    | {"phoneCallProvider", "phoneCallProviderId", "phoneCallTransport", "campaignId", "schedulePlan", "chat"}
    | {"durationMs", "durationSeconds", "durationMinutes", "summary", "timestamp", "metadata", "webCallUrl"}
    | {"artifact", "analysis"}
)


_SPEAKERS = {"user": USER, "bot": ASSISTANT, "assistant": ASSISTANT, "system": SYSTEM}
_IN_MILLISECONDS = 100
"""A length from here on counts milliseconds: nobody speaks for a hundred seconds, or for a tenth of one."""

_CALLS = frozenset({"tool_calls", "tool-calls", "function_call"})
_RESULTS = frozenset({"tool_call_result", "tool-call-result", "tool", "function_result"})
_TEXTS = ("message", "content")
_CALL_LISTS = ("toolCalls", "tool_calls", "toolCallList")
_CALL_IDS = ("toolCallId", "tool_call_id")
_ANSWERS = ("result", "content")
_LINE = re.compile(r"^\s*(ai|user|assistant|bot)\s*:\s?", re.IGNORECASE)
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


class _Visit(NamedTuple):
    """A node or an assistant that the call was in, and what is known of that time."""

    state: str
    extras: JsonObject = {}
    variables: JsonObject = {}
    messages: Sequence[Any] = ()


class _Step(NamedTuple):
    """A message, and the number of the visit that it happened in."""

    message: Any
    visit: int


def _each_once(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """All messages of some lists; a list may repeat what the ones before it hold."""
    distinct: list[Any] = []
    before: set[str] = set()
    for messages in lists:
        distinct += [one for one in messages if _identity(one) not in before]
        before.update(map(_identity, messages))
    return distinct


def _by_nodes(messages: Sequence[Any], visits: Sequence[_Visit]) -> list[_Step]:
    """Each message in the node that lists it. What only a node lists comes at the end of its visit."""
    listed = [{_identity(one) for one in visit.messages} for visit in visits]
    steps: list[_Step] = []
    here = 0
    for message in messages:
        identity = _identity(message)
        here = next((visit for visit in range(here, len(visits)) if identity in listed[visit]), here)
        steps.append(_Step(message, here))
    placed = {_identity(message) for message in messages}
    for number, visit in enumerate(visits):
        for message in visit.messages:
            if _identity(message) not in placed:
                placed.add(_identity(message))
                steps.append(_Step(message, number))
    return sorted(steps, key=lambda step: step.visit)


def _by_speakers(messages: Sequence[Any], activated: Sequence[_Visit]) -> _Talk:
    """Each message with the assistant that was active: it changes before the first text of the next."""
    visits = list(activated)
    steps: list[_Step] = []
    here = 0
    for message in messages:
        speaker = _assistant_of(message) if isinstance(message, dict) else None
        if speaker is not None and visits and not _is_same(visits[here], speaker):
            ahead = (visit for visit in range(here + 1, len(visits)) if _is_same(visits[visit], speaker))
            coming = next(ahead, None)
            here = here + 1 if coming is None else coming
            if coming is None:
                visits.insert(here, speaker)
        elif speaker is not None and not visits:
            visits.append(speaker)
        steps.append(_Step(message, here))
    return _Talk(steps, visits)


def _by_hand_overs(messages: Sequence[Any], visits: Sequence[_Visit]) -> list[_Step] | None:
    """Each message with the assistant that was active, where there is one hand-over for each that followed."""
    over = [
        index
        for index, one in enumerate(messages)
        if isinstance(one, dict) and as_text(one.get("role")) in _RESULTS and passes_on(as_text(one.get("name")))
    ]
    if len(over) != len(visits) - 1:
        return None
    return [_Step(message, sum(index > done for done in over)) for index, message in enumerate(messages)]


def _assistant_of(message: JsonObject) -> _Visit | None:
    """The assistant that a message says it comes from."""
    name, id = as_text(message.get("assistantName")), as_text(message.get("assistantId"))
    return _Visit(name or id, filled({"assistantId": id})) if name or id else None


def _is_same(first: _Visit, second: _Visit) -> bool:
    ids = first.extras.get("assistantId"), second.extras.get("assistantId")
    return ids[0] == ids[1] if all(ids) else first.state == second.state


def _identity(message: Any) -> str:
    """What distinguishes a message from others, where it is written twice."""
    if not isinstance(message, dict):
        return repr(message)
    names = ("role", "time", "secondsFromStart", *_TEXTS, *_CALL_LISTS, *_CALL_IDS, "result")
    return repr([message.get(name) for name in names])


def _said_in(message: JsonObject) -> str:
    return next((text for name in _TEXTS if (text := as_text(message.get(name)))), "")


class _Messages:
    """Reads the messages one after the other, and knows which visit the call is in."""

    def __init__(self, notes: Notes, source: str, visits: Sequence[_Visit], given: JsonObject) -> None:
        self.notes = notes
        self.timeline = TimelineBuilder(notes, f"{source}.time")
        self.visits = visits
        self._source = source
        self._given = given
        """Variables that the call began with: they were not collected in it."""
        self._states = StateTrack(self.timeline)
        self._here = -1

    def read(self, steps: Sequence[_Step], latencies: dict[int, JsonObject]) -> None:
        """Put all messages on the timeline; `latencies` has those of turns by the index of their reply."""
        if self.visits:
            self._move_to(0)
        for index, step in enumerate(steps):
            self._move_to(step.visit)
            self._read(step.message, f"turn-{index}", latencies.get(index))
        self._move_to(len(self.visits) - 1)
        self._fill_here()

    def fill(self, variables: JsonObject, *, here: bool = False) -> None:
        """Variables become slots, each once; where they were collected is unknown, unless it was here."""
        for slot, value in variables.items():
            if slot in self._given and self._given[slot] == value:
                continue
            if here:
                self._states.fill(slot, value)
            elif self._states.fill_somewhere(slot, value):
                self.notes.inferred("slot_place_not_told", slot, self.timeline.seq - 1)

    def _fill_here(self) -> None:
        if self._states.current:
            self.fill(self.visits[self._here].variables, here=True)

    def _move_to(self, visit: int) -> None:
        while self._here < min(visit, len(self.visits) - 1):
            self._fill_here()
            self._here += 1
            coming = self.visits[self._here]
            self._states.move(coming.state, extras=coming.extras)

    def _read(self, message: Any, speech_id: str, latency: JsonObject | None) -> None:
        if not isinstance(message, dict):
            self.notes.ignored("not_a_message", repr(message)[:80], self.timeline.seq)
            self.timeline.mark("not_a_message", message)
            return
        fields = Fields(message, "message", self.notes, _USUAL_IN_MESSAGE)
        role = as_text(fields.pop("role", ""))
        if role in _RESULTS:
            self._result(fields)
        elif role in _SPEAKERS or role in _CALLS or role == "unknown":
            calls: Sequence[Any] = fields.take(*_CALL_LISTS, kind=list) or ()
            if role in _CALLS:
                self._calls(calls, self._time(fields), fields)
            else:
                time = fields.get("time")
                self._say(role, fields, speech_id, latency, alone=not calls)
                if calls:
                    self._calls(calls, self.timeline.time(time), {})
        else:
            self.notes.unknown(f"role={role or '(none)'}", self.timeline.seq)
            self.timeline.mark(role or "not_a_message", filled(fields), self._time(fields))

    def _say(self, role: str, fields: Fields, speech_id: str, latency: JsonObject | None, *, alone: bool) -> None:
        speech = fields.text(*_TEXTS)
        if not speech:
            if alone:
                self.notes.ignored("empty_utterance", role, self.timeline.seq)
            return
        speaker = self.timeline.participant(_SPEAKERS.get(role, role))
        time = self._span(fields)
        for component, measured in _parts_of(latency or {}).items():
            self._states.measure(component, measured, speech_id)
        text = Text(speech, f"{self._source}.message", fields.number("confidence"))
        # A transcript holds what the recogniser made of a caller, and what the assistant said.
        is_heard, is_intended = speaker in (USER, "unknown"), speaker == SYSTEM
        self.timeline.say(
            speaker,
            time=time,
            spoken=None if is_heard or is_intended else text,
            heard=text if is_heard else None,
            intended=text if is_intended else None,
            segments=[Segment(time.at, time.until, time.clock)] if time and time.until is not None else (),
            extras=fields.rest(self.timeline.seq),
        )

    def _time(self, fields: Fields) -> Time | None:
        """When a message was sent, else how far into the call."""
        for name in ("time", "secondsFromStart"):
            if fields.get(name) is not None and (time := self.timeline.time(fields[name])) is not None:
                del fields[name]
                return time
        return None

    def _span(self, fields: Fields) -> Time | None:
        """From when to when something was said: by its end, else by its length."""
        start = self._time(fields)
        if start is None:
            return None
        if fields.get("endTime") is not None:
            end = self.timeline.time(fields["endTime"])
            if end is not None and end.clock == start.clock and end.at >= start.at:
                del fields["endTime"]
                return Time(start.at, start.clock, end.at)
            self.notes.set_aside("end_before_start", repr(fields["endTime"])[:80], self.timeline.seq)
        length = as_number(fields.get("duration"))
        if length is None or length < 0:
            return start
        unit = "ms" if length >= _IN_MILLISECONDS else "s"
        self.notes.inferred(f"duration_in_{unit}", f"{length:g}", self.timeline.seq)
        return Time(start.at, start.clock, start.at + (length / 1000 if unit == "ms" else length))

    def set_cut_offs(self, speaker: str, count: Any) -> None:
        """Who was cut off, where as many overlap as the call says were cut off."""
        overlaps = [one for one in overlapping_utterances(self.timeline.events) if one.first.speaker == speaker]
        if not overlaps or as_number(count) != len(overlaps):
            return
        for position, first, second in overlaps:
            self.notes.inferred("cut_off_by_times", f"{speaker} by {second.speaker}", first.seq)
            self.timeline.events[position] = msgspec.structs.replace(first, cut_off_by=second.speaker)

    def _calls(self, calls: Sequence[Any], time: Time | None, message: JsonObject) -> None:
        for call in calls:
            if not isinstance(call, dict):
                self.notes.ignored("not_a_tool_call", repr(call)[:80], self.timeline.seq)
                self.timeline.mark("not_a_tool_call", call, time)
                continue
            fields = Fields(call, "tool_call", self.notes, _USUAL_IN_MESSAGE)
            fields |= fields.take("function", kind=dict) or {}
            name, id = fields.text("name"), fields.text("id")
            arguments = fields.pop("arguments", fields.pop("parameters", None))
            if fields.get("type") == "function":
                del fields["type"]
            for inherited in message.keys() - fields.keys():
                fields[inherited] = message[inherited]
            self.timeline.call(name, arguments, call_id=id, time=time, extras=fields.rest(self.timeline.seq))
        if not calls and message:
            self.timeline.mark("tool_calls", filled(message), time)

    def _result(self, fields: Fields) -> None:
        fields.of = "tool_result"
        time, call_id, name = self._time(fields), fields.text(*_CALL_IDS), as_text(fields.pop("name", ""))
        answer = next((fields.pop(field) for field in _ANSWERS if fields.get(field) is not None), None)
        error = fields.pop("error", None)
        extras = fields.rest(self.timeline.seq)
        self.timeline.result(error if answer is None else answer, call_id=call_id, name=name, time=time, extras=extras)
        if error:
            self.timeline.set_outcome(False, error=error if isinstance(error, str) else repr(error)[:500])


def _parts_of(latency: JsonObject) -> dict[str, JsonObject]:
    """The latencies of one turn, by the part of the stack that each belongs to."""
    values: dict[str, JsonObject] = {}
    for name, (component, plain_name) in _PARTS.items():
        if (seconds := from_milliseconds(latency.get(name))) is not None:
            values.setdefault(component, {})[plain_name] = seconds
    return values


class _Talk(NamedTuple):
    """The messages of a call, in order and each in its visit."""

    steps: Sequence[_Step]
    visits: Sequence[_Visit] = ()
    unplaced: Sequence[_Visit] = ()
    """Assistants that were active at an unknown time."""


class VapiReader(CallReader):
    """Calls of Vapi. The webhooks of one call are brought together."""

    name = "vapi"
    title = "Vapi calls and end-of-call reports"
    lists = ("results", "items", "calls")
    id_field = "id"
    expected = f'expected a call with {{"artifact": {{"messages": […]}}}}, or {{"message": {{"type": "{_REPORT}", …}}}}'

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            for source in self.calls(value, limit=LOOKED_AT):
                fields = as_object(source.call).keys()
                if not _looks_like_a_call(source.call) and not (source.kind and {"id", "orgId"} <= fields):
                    continue
                if source.kind:
                    return Detection(1.0, f'a message "{source.kind}" with a call', "key")
                why = "a list of calls with an artifact" if source.path else "a call with an artifact or endedReason"
                return Detection(1.0, why)
        return None

    def is_call(self, value: JsonObject) -> bool:
        return _looks_like_a_call(value)

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
        reason = as_text(call.get("endedReason"))
        if not messages and not reason:
            hint = f"a call that has not ended has none; a message of type {_REPORT} brings them"
            raise InputError("has no messages and no end", field="artifact.messages", hint=hint)
        if not messages:
            notes.set_aside("no_messages", reason)
        if messages and field == "transcript":
            notes.inferred("turns_from_text", "speakers are told by the lines of the transcript")
        talk = _placed(messages, artifact, call, notes)
        instructions, steps = _instructions(talk.steps)
        reading = _Messages(notes, field, talk.visits, _given(call))
        figures = as_object(artifact.get("performanceMetrics"))
        per_turn = as_list(figures.get("turnLatencies"))
        joined = _joined(steps, per_turn, notes)
        reading.read(steps, joined)
        variables = as_object(artifact.get("variableValues"))
        reading.fill({name: value for name, value in variables.items() if name not in _TEMPLATE})
        reading.set_cut_offs(ASSISTANT, figures.get("numAssistantInterrupted"))
        reading.set_cut_offs(USER, figures.get("numUserInterrupted"))
        timeline = reading.timeline
        _add_unplaced(timeline, talk.unplaced, as_list(artifact.get("transfers")), () if joined else per_turn)
        agent = _agent(call, artifact, instructions)
        squad, workflow = (_name_of(call, kind) for kind in ("squad", "workflow"))
        # The workflow or squad whose states the call went through.
        owners = (workflow, squad) if as_list(artifact.get("nodes")) else (squad, workflow)
        owner = next(filter(None, (*owners, _name_of(call, "assistant"))), "")
        dims = {"agent": squad or agent.name or workflow, "model": agent.models.get("llm", "")}
        dims["flow"] = owner if talk.visits else ""
        finished = _ENDS.finished(reason)
        if reason and finished is None:
            notes.unknown(f"endedReason={reason}")
        assistant = as_object(call.get("assistant"))
        metadata = call.get("metadata") or assistant.get("metadata")
        has_parts = any(as_object(one).get("voiceLatency") is not None for one in per_turn)
        is_cascade = has_parts or bool(assistant.get("transcriber") and assistant.get("voice"))
        is_s2s = "realtime" in as_text(as_object(assistant.get("model")).get("model"))
        pipeline: Pipeline | None = "s2s" if is_s2s else "cascade" if is_cascade else None
        return Conversation(
            id=as_text(call.get("id")) or source.id_in(group),
            dimensions=dimensions(metadata) | filled(dims),
            source=Source(format=self.name, files=group.file_names, record=source.path),
            pipeline=pipeline,
            participants=timeline.participants,
            clocks=timeline.clocks,
            agent=agent,
            timeline=tuple(timeline.events),
            labels=_labels(as_object(call.get("analysis")), artifact),
            # `successEvaluation` is what a model thinks of the call: a label, and no fact about its end.
            outcome=Outcome(
                finished=finished,
                ended_reason=reason,
                error=reason if _ENDS.is_error(reason) else "",
                duration=_duration(call, notes),
            ),
            recording=_recording(call, artifact, {one.id for one in timeline.participants}),
            extras=_extras(call, field, notes),
        )


def _looks_like_a_call(call: Any) -> bool:
    if not isinstance(call, dict):
        return False
    has_fields = not _OF_A_CALL.isdisjoint(call)
    artifact = call.get("artifact")
    if isinstance(artifact, dict) and not _OF_AN_ARTIFACT.isdisjoint(artifact):
        return has_fields or bool(call.get("id"))
    if has_fields and "endedReason" in call and as_text(call.get("id")):
        return True
    listed = as_list(call.get("messages"))[:LOOKED_AT]
    return any(isinstance(one, dict) and "secondsFromStart" in one and "role" in one for one in listed) or (
        {"orgId", "assistantId"} <= call.keys()
    )


def _messages(call: JsonObject) -> tuple[Sequence[Any], str]:
    """The messages of a call and their field, the fullest first."""
    artifact = as_object(call.get("artifact"))
    nodes = _each_once([as_list(as_object(node).get("messages")) for node in as_list(artifact.get("nodes"))])
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


def _instructions(steps: Sequence[_Step]) -> tuple[str, Sequence[_Step]]:
    """The prompt that a call begins with, and what comes behind it."""
    for count, (message, _) in enumerate(steps):
        if not isinstance(message, dict) or _SPEAKERS.get(as_text(message.get("role"))) != SYSTEM:
            return "\n\n".join(_said_in(prompt) for prompt, _ in steps[:count]), steps[count:]
    return "", steps


def _placed(messages: Sequence[Any], artifact: JsonObject, call: JsonObject, notes: Notes) -> _Talk:
    """Which node, else which assistant of a squad, each message belongs to."""
    visits = [_node(one) for one in as_list(artifact.get("nodes")) if isinstance(one, dict)]
    if visits:
        return _Talk(_by_nodes(messages, visits), visits)
    activated = _with_distinct_names(_activations(artifact))
    speakers = {speaker.state for one in messages if isinstance(one, dict) and (speaker := _assistant_of(one))}
    if len(activated) < 2 and len(speakers) < 2 and not (call.get("squad") or call.get("squadId")):
        return _Talk([_Step(one, 0) for one in messages])
    if speakers:
        return _by_speakers(messages, activated)
    if len(activated) == 1:
        return _Talk([_Step(one, 0) for one in messages], activated)
    handed = _by_hand_overs(messages, activated) if activated else None
    if handed is not None:
        notes.inferred("assistant_from_hand_over", f"{len(activated)} assistants")
        return _Talk(handed, activated)
    return _Talk([_Step(one, 0) for one in messages], (), activated)


def _node(node: JsonObject) -> _Visit:
    name = next(filter(None, (as_text(node.get(name)) for name in ("nodeName", "name", "nodeId"))), "(unnamed)")
    unread = {key: value for key, value in node.items() if key not in ("nodeName", "messages", "variableValues")}
    return _Visit(name, filled(unread), as_object(node.get("variableValues")), as_list(node.get("messages")))


def _activations(artifact: JsonObject) -> list[_Visit]:
    """The assistants that were activated, in order."""
    return [
        visit._replace(extras=filled({**entry, "assistantName": None}))
        for entry in as_list(artifact.get("assistantActivations"))
        if isinstance(entry, dict) and (visit := _assistant_of(entry))
    ]


def _with_distinct_names(visits: Sequence[_Visit]) -> list[_Visit]:
    """Two assistants of one name are distinguished by their ids."""
    ids: dict[str, set[str]] = {}
    for visit in visits:
        ids.setdefault(visit.state, set()).add(as_text(visit.extras.get("assistantId")))
    return [
        visit._replace(state=f"{visit.state} ({id})")
        if len(ids[visit.state]) > 1 and (id := as_text(visit.extras.get("assistantId")))
        else visit
        for visit in visits
    ]


def _joined(steps: Sequence[_Step], latencies: Sequence[Any], notes: Notes) -> dict[int, JsonObject]:
    """The latencies of turns by the index of their reply, where there are as many of the one as of the other."""
    replies: list[int] = []
    user_spoke = False
    for index, (message, _) in enumerate(steps):
        role = _SPEAKERS.get(as_text(message.get("role"))) if isinstance(message, dict) else None
        if role in (USER, ASSISTANT) and _said_in(message).strip():
            if role == ASSISTANT and user_spoke:
                replies.append(index)
            user_spoke = role == USER
    if not latencies or len(replies) != len(latencies):
        return {}
    notes.inferred("turn_latencies_by_number", f"{len(replies)} replies")
    return {index: as_object(latency) for index, latency in zip(replies, latencies, strict=True)}


def _add_unplaced(
    timeline: TimelineBuilder, visits: Sequence[_Visit], transfers: Sequence[Any], latencies: Sequence[Any]
) -> None:
    """What has no position in the order goes to the end: assistants, transfers, latencies of an unknown turn."""
    for visit in visits:
        timeline.notes.set_aside("activation_place_not_told", visit.state, timeline.seq)
        timeline.mark("assistant_activation", {"assistantName": visit.state, **visit.extras})
    for transfer in transfers:
        timeline.mark("transfer", transfer)
    for latency in latencies:
        for name, value in as_object(latency).items():
            component, plain_name = _PARTS.get(name, ("", name))
            add_call_latency(timeline, name, value, plain_name if component == "turn" else name)


def _given(call: JsonObject) -> JsonObject:
    """Variables that the call was started with."""
    return {
        name: value
        for overrides in ("squadOverrides", "workflowOverrides", "assistantOverrides")
        for name, value in as_object(as_object(call.get(overrides)).get("variableValues")).items()
    }


def _name_of(call: JsonObject, kind: str) -> str:
    return as_text(as_object(call.get(kind)).get("name")) or as_text(call.get(f"{kind}Id"))


def _agent(call: JsonObject, artifact: JsonObject, instructions: str) -> Agent:
    assistant = as_object(call.get("assistant"))
    model = as_object(assistant.get("model"))
    activated = _activations(artifact)
    names = (as_text(assistant.get("name")), activated[0].state if activated else "", as_text(call.get("assistantId")))
    parts = {
        "llm": as_text(model.get("model")),
        "stt": as_text(as_object(assistant.get("transcriber")).get("model")),
        "tts": as_text(as_object(assistant.get("voice")).get("model")),
    }
    prompts = [one for one in as_list(model.get("messages")) if isinstance(one, dict) and one.get("role") == SYSTEM]
    tools = model.get("tools")
    return Agent(
        name=next(filter(None, names), ""),
        instructions=instructions or "\n\n".join(_said_in(one) for one in prompts),
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
    for name in ("id", "messages", "transcript", "endedReason", "recordingUrl", "stereoRecordingUrl"):
        left.pop(name, None)
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


READER = VapiReader()
