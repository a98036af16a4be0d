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
    Outcome,
    Source,
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
    add_call_latency,
    spoken_lines,
    verdicts,
)
from convoscope.ingest.formats.vapi_messages import (
    PARTS,
    SPEAKERS,
    CallMessages,
    MessageReader,
    MessageStep,
    NodeVisit,
    assistant_of,
    by_hand_overs,
    by_nodes,
    by_speakers,
    each_once,
    text_in,
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
            notes.inferred("turns_from_text", "speakers are known by the lines of the transcript")
        talk = _placed(messages, artifact, call, notes)
        instructions, steps = _instructions(talk.steps)
        reading = MessageReader(notes, field, talk.visits, _given(call))
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
        if not isinstance(message, dict) or SPEAKERS.get(as_text(message.get("role"))) != SYSTEM:
            return "\n\n".join(text_in(prompt) for prompt, _ in steps[:count]), steps[count:]
    return "", steps


def _placed(messages: Sequence[Any], artifact: JsonObject, call: JsonObject, notes: Notes) -> CallMessages:
    """Which node, else which assistant of a squad, each message belongs to."""
    visits = [_node(one) for one in as_list(artifact.get("nodes")) if isinstance(one, dict)]
    if visits:
        return CallMessages(by_nodes(messages, visits), visits)
    activated = _with_distinct_names(_activations(artifact))
    speakers = {speaker.state for one in messages if isinstance(one, dict) and (speaker := assistant_of(one))}
    if len(activated) < 2 and len(speakers) < 2 and not (call.get("squad") or call.get("squadId")):
        return CallMessages([MessageStep(one, 0) for one in messages])
    if speakers:
        return by_speakers(messages, activated)
    if len(activated) == 1:
        return CallMessages([MessageStep(one, 0) for one in messages], activated)
    handed = by_hand_overs(messages, activated) if activated else None
    if handed is not None:
        notes.inferred("assistant_from_hand_over", f"{len(activated)} assistants")
        return CallMessages(handed, activated)
    return CallMessages([MessageStep(one, 0) for one in messages], (), activated)


def _node(node: JsonObject) -> NodeVisit:
    name = next(filter(None, (as_text(node.get(name)) for name in ("nodeName", "name", "nodeId"))), "(unnamed)")
    unread = {key: value for key, value in node.items() if key not in ("nodeName", "messages", "variableValues")}
    return NodeVisit(name, filled(unread), as_object(node.get("variableValues")), as_list(node.get("messages")))


def _activations(artifact: JsonObject) -> list[NodeVisit]:
    """The assistants that were activated, in order."""
    return [
        visit._replace(extras=filled({**entry, "assistantName": None}))
        for entry in as_list(artifact.get("assistantActivations"))
        if isinstance(entry, dict) and (visit := assistant_of(entry))
    ]


def _with_distinct_names(visits: Sequence[NodeVisit]) -> list[NodeVisit]:
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


def _joined(steps: Sequence[MessageStep], latencies: Sequence[Any], notes: Notes) -> dict[int, JsonObject]:
    """The latencies of turns by the index of their reply, where there are as many of the one as of the other."""
    replies: list[int] = []
    user_spoke = False
    for index, (message, _) in enumerate(steps):
        role = SPEAKERS.get(as_text(message.get("role"))) if isinstance(message, dict) else None
        if role in (USER, ASSISTANT) and text_in(message).strip():
            if role == ASSISTANT and user_spoke:
                replies.append(index)
            user_spoke = role == USER
    if not latencies or len(replies) != len(latencies):
        return {}
    notes.inferred("turn_latencies_by_number", f"{len(replies)} replies")
    return {index: as_object(latency) for index, latency in zip(replies, latencies, strict=True)}


def _add_unplaced(
    timeline: TimelineBuilder, visits: Sequence[NodeVisit], transfers: Sequence[Any], latencies: Sequence[Any]
) -> None:
    """What has no position in the order goes to the end: assistants, transfers, latencies of an unknown turn."""
    for visit in visits:
        timeline.notes.set_aside("activation_place_not_told", visit.state, timeline.seq)
        timeline.mark("assistant_activation", {"assistantName": visit.state, **visit.extras})
    for transfer in transfers:
        timeline.mark("transfer", transfer)
    for latency in latencies:
        for name, value in as_object(latency).items():
            component, plain_name = PARTS.get(name, ("", name))
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
