"""Vapi calls: GET /call, end-of-call reports and lists, with nodes, assistants, tools, latencies and verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

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
from convoscope.ingest.call_exports import CallReader, EndReasons, ExportedCall, add_call_latency, verdicts
from convoscope.ingest.formats.vapi.messages import (
    PARTS,
    SPEAKERS,
    Messages,
    MessageStep,
    NodeVisit,
    assistant_of,
    by_hand_overs,
    by_nodes,
    by_speakers,
    each_once,
    lines_of,
    replies,
    said_in,
)
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import (
    JsonObject,
    as_list,
    as_number,
    as_object,
    as_text,
    filled,
    from_milliseconds,
    leftovers,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder, dimensions

RATER = "vapi"
REPORT = "end-of-call-report"

_LOOKED_AT = 20
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

_BESIDE_MESSAGES = frozenset({"messages", "nodes", "assistantActivations", "transfers", "recording", "variableValues"})
_USED_OF_AN_ARTIFACT = _BESIDE_MESSAGES | {"messagesOpenAIFormatted", "transcript", "performanceMetrics"}
_URLS = ("recordingUrl", "stereoRecordingUrl")
_TEMPLATE = frozenset({"now", "date", "time", "month", "day", "year", "customer", "phoneNumber", "transport", "call"})
"""Variables that every prompt may use; nobody collected them."""
_USED = frozenset({"id", "artifact", "messages", "transcript", "endedReason", "analysis", *_URLS})
_USUAL = frozenset(
    {"orgId", "type", "status", "createdAt", "updatedAt", "startedAt", "endedAt", "endedMessage", "cost", "costs"}
    | {"costBreakdown", "assistant", "assistantId", "assistantOverrides", "assistantVersion", "squad", "squadId"}
    | {"squadOverrides", "squadVersion", "workflow", "workflowId", "workflowOverrides", "phoneNumber", "compliance"}
    | {"phoneNumberId", "customer", "customerId", "destination", "transport", "monitor", "artifactPlan", "name"}
    | {"phoneCallProvider", "phoneCallProviderId", "phoneCallTransport", "campaignId", "schedulePlan", "chat"}
    | {"durationMs", "durationSeconds", "durationMinutes", "summary", "timestamp", "metadata", "webCallUrl"}
    | {"artifact", "analysis"}
)


class _Talk(NamedTuple):
    """The messages of a call, in order and each in its visit."""

    steps: Sequence[MessageStep]
    visits: Sequence[NodeVisit] = ()
    unplaced: Sequence[NodeVisit] = ()
    """Assistants of which nothing says when they were active."""


class VapiReader(CallReader):
    """Calls of Vapi. The webhooks of one call are brought together."""

    name = "vapi"
    title = "Vapi calls and end-of-call reports"
    lists = ("results", "items", "calls")
    id_field = "id"
    expected = f'expected a call with {{"artifact": {{"messages": […]}}}}, or {{"message": {{"type": "{REPORT}", …}}}}'

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            call = next((one for one in self.calls(value, limit=_LOOKED_AT) if _is_ours(one)), None)
            if call is not None and call.kind:
                return Detection(1.0, f'a message "{call.kind}" with a call', "key")
            if call is not None:
                why = "a list of calls with an artifact" if call.place else "a call with an artifact or endedReason"
                return Detection(1.0, why)
        return None

    def is_call(self, value: JsonObject) -> bool:
        return _looks_like_a_call(value)

    def unwrapped(self, value: JsonObject) -> ExportedCall | None:
        message = value.get("message") if isinstance(value.get("message"), dict) else value
        if not isinstance(message, dict) or (message is value and not isinstance(value.get("call"), dict)):
            return None
        return ExportedCall(_unwrapped(message), kind=as_text(message.get("type")) or "message")

    def merged(self, webhooks: Sequence[ExportedCall], notes: Notes) -> ExportedCall:
        """The report tells all; without one, the message with the most in it."""
        best = max(
            webhooks, key=lambda webhook: (webhook.kind == REPORT, webhook.kind == "", len(_messages(webhook.call)[0]))
        )
        for webhook in webhooks:
            if webhook is not best:
                notes.ignored(f"message.type={webhook.kind or 'call'}")
        return best

    def conversation(self, source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
        return _conversation(source, group, notes)


def _unwrapped(message: JsonObject) -> JsonObject:
    """A call, with what the report tells beside it. The report's own type is not the call's."""
    call = as_object(message.get("call"))
    report = {name: value for name, value in message.items() if name not in ("call", "type")}
    both = {**call, **filled(report)}
    if call.get("artifact") and isinstance(message.get("artifact"), dict):
        both["artifact"] = {**as_object(call["artifact"]), **filled(message["artifact"])}
    return both


def _is_ours(source: ExportedCall) -> bool:
    fields = source.call.keys() if isinstance(source.call, dict) else set()
    return _looks_like_a_call(source.call) or (bool(source.kind) and {"id", "orgId"} <= fields)


def _looks_like_a_call(call: Any) -> bool:
    if not isinstance(call, dict):
        return False
    has_fields = not _OF_A_CALL.isdisjoint(call)
    artifact = call.get("artifact")
    if isinstance(artifact, dict) and not _OF_AN_ARTIFACT.isdisjoint(artifact):
        return has_fields or bool(call.get("id"))
    if has_fields and "endedReason" in call and as_text(call.get("id")):
        return True
    messages = call.get("messages")
    listed = messages[:_LOOKED_AT] if isinstance(messages, list) else []
    return any(isinstance(one, dict) and "secondsFromStart" in one and "role" in one for one in listed) or (
        {"orgId", "assistantId"} <= call.keys()
    )


def _conversation(exported: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
    call: JsonObject = exported.call
    artifact = as_object(call.get("artifact"))
    messages, source = _messages(call)
    reason = as_text(call.get("endedReason"))
    if not messages and not reason:
        hint = f"a call that has not ended has none; a message of type {REPORT} brings them"
        raise InputError("has no messages and no end", field="artifact.messages", hint=hint)
    if not messages:
        notes.set_aside("no_messages", reason)
    if messages and source == "transcript":
        notes.inferred("turns_from_text", "speakers are told by the lines of the transcript")
    talk = _placed(messages, artifact, call, notes)
    instructions, steps = _instructions(talk.steps)
    reading = Messages(notes, source, talk.visits, _given(call))
    per_turn = _turn_latencies(artifact)
    joined = _joined(steps, per_turn, notes)
    reading.read(steps, joined)
    reading.fill(
        {name: value for name, value in as_object(artifact.get("variableValues")).items() if name not in _TEMPLATE}
    )
    figures = as_object(artifact.get("performanceMetrics"))
    reading.tell_cut_offs(ASSISTANT, figures.get("numAssistantInterrupted"))
    reading.tell_cut_offs(USER, figures.get("numUserInterrupted"))
    _put_at_the_end(reading.timeline, artifact, talk.unplaced, () if joined else per_turn, notes)
    owner = _owner(call, nodes=bool(as_list(artifact.get("nodes"))))
    agent = _agent(call, artifact, instructions)
    place = exported.place
    return Conversation(
        id=as_text(call.get("id")) or (f"{group.name} {place}" if place else group.name),
        dimensions=_dimensions(call, agent, owner if talk.visits else ""),
        source=Source(format=VapiReader.name, files=group.file_names, record=place),
        pipeline=_pipeline(call, per_turn),
        participants=reading.timeline.participants,
        clocks=reading.timeline.clocks,
        agent=agent,
        timeline=tuple(reading.timeline.events),
        labels=_labels(call, artifact),
        outcome=_outcome(call, reason, notes),
        recording=_recording(call, artifact, {one.id for one in reading.timeline.participants}),
        extras=_extras(call, artifact, source, notes),
    )


def _messages(call: JsonObject) -> tuple[Sequence[Any], str]:
    """The messages of a call and the field that they stand in, the fullest first."""
    artifact = as_object(call.get("artifact"))
    nodes = each_once([as_list(as_object(node).get("messages")) for node in as_list(artifact.get("nodes"))])
    lists = (
        ("artifact.messages", as_list(artifact.get("messages"))),
        ("messages", as_list(call.get("messages"))),
        ("artifact.nodes.messages", nodes),
        ("artifact.messagesOpenAIFormatted", as_list(artifact.get("messagesOpenAIFormatted"))),
    )
    for source, listed in lists:
        if listed:
            return listed, source
    plain = as_text(artifact.get("transcript")) or as_text(call.get("transcript"))
    return list(lines_of(plain)), "transcript"


def _instructions(steps: Sequence[MessageStep]) -> tuple[str, Sequence[MessageStep]]:
    """The prompt that a call begins with, and what comes behind it."""
    for count, (message, _) in enumerate(steps):
        if not isinstance(message, dict) or SPEAKERS.get(as_text(message.get("role"))) != SYSTEM:
            return "\n\n".join(said_in(prompt) for prompt, _ in steps[:count]), steps[count:]
    return "", steps


def _placed(messages: Sequence[Any], artifact: JsonObject, call: JsonObject, notes: Notes) -> _Talk:
    """Which node, else which assistant of a squad, each message belongs to."""
    visits = [_node(one) for one in as_list(artifact.get("nodes")) if isinstance(one, dict)]
    if visits:
        return _Talk(by_nodes(messages, visits), visits)
    activated = [one for entry in as_list(artifact.get("assistantActivations")) if (one := _activation(entry))]
    activated = _with_distinct_names(activated)
    speakers = {said.state for one in messages if isinstance(one, dict) and (said := assistant_of(one))}
    if len(activated) < 2 and len(speakers) < 2 and not (call.get("squad") or call.get("squadId")):
        return _Talk([MessageStep(one, 0) for one in messages])
    if speakers:
        steps, visits = by_speakers(messages, activated)
        return _Talk(steps, visits)
    if len(activated) == 1:
        return _Talk([MessageStep(one, 0) for one in messages], activated)
    handed = by_hand_overs(messages, activated) if activated else None
    if handed is not None:
        notes.inferred("assistant_from_hand_over", f"{len(activated)} assistants")
        return _Talk(handed, activated)
    return _Talk([MessageStep(one, 0) for one in messages], (), activated)


def _node(facts: JsonObject) -> NodeVisit:
    name = as_text(facts.get("nodeName")) or as_text(facts.get("name")) or as_text(facts.get("nodeId")) or "(unnamed)"
    unread = {key: value for key, value in facts.items() if key not in ("nodeName", "messages", "variableValues")}
    return NodeVisit(name, filled(unread), as_object(facts.get("variableValues")), as_list(facts.get("messages")))


def _activation(facts: Any) -> NodeVisit | None:
    visit = assistant_of(facts) if isinstance(facts, dict) else None
    return visit._replace(extras=filled({**facts, "assistantName": None})) if visit else None


def _with_distinct_names(visits: Sequence[NodeVisit]) -> list[NodeVisit]:
    """Two assistants of one name are told apart by their ids."""
    ids: dict[str, set[str]] = {}
    for visit in visits:
        ids.setdefault(visit.state, set()).add(as_text(visit.extras.get("assistantId")))
    return [
        visit._replace(state=f"{visit.state} ({id})")
        if len(ids[visit.state]) > 1 and (id := as_text(visit.extras.get("assistantId")))
        else visit
        for visit in visits
    ]


def _turn_latencies(artifact: JsonObject) -> Sequence[Any]:
    return as_list(as_object(artifact.get("performanceMetrics")).get("turnLatencies"))


def _joined(steps: Sequence[MessageStep], latencies: Sequence[Any], notes: Notes) -> dict[int, JsonObject]:
    """The latencies of turns by the place of their reply, where there are as many of the one as of the other."""
    answers = replies([step.message for step in steps])
    if not latencies or len(answers) != len(latencies):
        return {}
    notes.inferred("turn_latencies_by_number", f"{len(answers)} replies")
    return {place: as_object(latency) for place, latency in zip(answers, latencies, strict=True)}


def _put_at_the_end(
    timeline: TimelineBuilder,
    artifact: JsonObject,
    unplaced: Sequence[NodeVisit],
    latencies: Sequence[Any],
    notes: Notes,
) -> None:
    """What has no place in the order: assistants, transfers, and latencies of nobody knows which turn."""
    for visit in unplaced:
        notes.set_aside("activation_place_not_told", visit.state, timeline.seq)
        timeline.mark("assistant_activation", {"assistantName": visit.state, **visit.extras})
    for transfer in as_list(artifact.get("transfers")):
        timeline.mark("transfer", transfer)
    for latency in latencies:
        for name, value in as_object(latency).items():
            ours = PARTS[name][1] if PARTS.get(name, ("",))[0] == "turn" else name
            add_call_latency(timeline, name, value, ours)


def _given(call: JsonObject) -> JsonObject:
    """Variables that the call was started with."""
    return {
        name: value
        for overrides in ("squadOverrides", "workflowOverrides", "assistantOverrides")
        for name, value in as_object(as_object(call.get(overrides)).get("variableValues")).items()
    }


def _owner(call: JsonObject, *, nodes: bool) -> str:
    """The workflow or squad whose states the call went through."""
    kinds = ("workflow", "squad", "assistant") if nodes else ("squad", "workflow", "assistant")
    named = (as_text(as_object(call.get(kind)).get("name")) or as_text(call.get(f"{kind}Id")) for kind in kinds)
    return next((name for name in named if name), "")


def _agent(call: JsonObject, artifact: JsonObject, instructions: str) -> Agent:
    assistant = as_object(call.get("assistant"))
    model = as_object(assistant.get("model"))
    activated = [one for entry in as_list(artifact.get("assistantActivations")) if (one := _activation(entry))]
    names = (as_text(assistant.get("name")), activated[0].state if activated else "", as_text(call.get("assistantId")))
    parts = {
        "llm": as_text(model.get("model")),
        "stt": as_text(as_object(assistant.get("transcriber")).get("model")),
        "tts": as_text(as_object(assistant.get("voice")).get("model")),
    }
    prompts = [one for one in as_list(model.get("messages")) if isinstance(one, dict) and one.get("role") == SYSTEM]
    tools = model.get("tools")
    return Agent(
        name=next((name for name in names if name), ""),
        instructions=instructions or "\n\n".join(said_in(one) for one in prompts),
        tools=tuple(_tool(one) for one in tools if isinstance(one, dict)) if isinstance(tools, list) else None,
        models=filled(parts),
    )


def _tool(facts: JsonObject) -> Tool:
    function = as_object(facts.get("function"))
    kind = as_text(facts.get("type"))
    return Tool(
        name=as_text(function.get("name")) or kind,
        description=as_text(function.get("description")),
        arguments_schema=function.get("parameters"),
        kind="" if kind == "function" else kind,
    )


def _dimensions(call: JsonObject, agent: Agent, flow: str) -> dict[str, str]:
    squad = as_text(as_object(call.get("squad")).get("name")) or as_text(call.get("squadId"))
    workflow = as_text(as_object(call.get("workflow")).get("name")) or as_text(call.get("workflowId"))
    named = {"agent": squad or agent.name or workflow, "model": agent.models.get("llm", ""), "flow": flow}
    metadata = call.get("metadata") or as_object(call.get("assistant")).get("metadata")
    return dimensions(metadata) | filled(named)


def _pipeline(call: JsonObject, latencies: Sequence[Any]) -> Pipeline | None:
    assistant = as_object(call.get("assistant"))
    if "realtime" in as_text(as_object(assistant.get("model")).get("model")):
        return "s2s"
    parts = any(as_object(one).get("voiceLatency") is not None for one in latencies)
    return "cascade" if parts or (assistant.get("transcriber") and assistant.get("voice")) else None


def _labels(call: JsonObject, artifact: JsonObject) -> tuple[Label, ...]:
    analysis = as_object(call.get("analysis"))
    values: JsonObject = {"successEvaluation": analysis.get("successEvaluation")}
    data = analysis.get("structuredData")
    values |= {f"structuredData.{name}": value for name, value in as_object(data).items()}
    for kind, field in (("structuredOutputs", "result"), ("scorecards", "score")):
        for id, facts in as_object(artifact.get(kind)).items():
            output = as_object(facts)
            values[f"{kind}.{as_text(output.get('name')) or id}"] = output.get(field) if output else facts
    return verdicts(RATER, values)


def _outcome(call: JsonObject, reason: str, notes: Notes) -> Outcome:
    finished, error = _ENDS.finished(reason), reason if _ENDS.is_error(reason) else ""
    if reason and finished is None:
        notes.unknown(f"endedReason={reason}")
    # `successEvaluation` is what a model thinks of the call: a label, and no fact about its end.
    return Outcome(finished=finished, ended_reason=reason, error=error, duration=_duration(call, notes))


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


def _extras(call: JsonObject, artifact: JsonObject, source: str, notes: Notes) -> JsonObject:
    """What nobody took; of messages that are written several times, those that were read are enough."""
    unread = {name: value for name, value in call.items() if name not in _USED}
    extras = leftovers(unread, _USUAL, "call", notes)
    for name in ("messages", "messagesOpenAIFormatted", "transcript"):
        if artifact.get(name) and source not in (name, f"artifact.{name}"):
            notes.ignored(name, f"{source} is read")
    artifact_extras = filled({name: value for name, value in artifact.items() if name not in _USED_OF_AN_ARTIFACT})
    figures = as_object(artifact.get("performanceMetrics"))
    artifact_extras |= filled(
        {"performanceMetrics": {key: one for key, one in figures.items() if key != "turnLatencies"}}
    )
    artifact_extras |= filled({"variableValues": artifact.get("variableValues")})
    analysis = call.get("analysis")
    odd = filled({"artifact": call.get("artifact")}) if not isinstance(call.get("artifact"), dict) else {}
    return extras | filled({"artifact": artifact_extras, "analysis": analysis}) | odd


READER = VapiReader()
