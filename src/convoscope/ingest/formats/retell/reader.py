"""Retell calls: webhooks, lists and single calls, with their nodes, tools, latencies and verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from convoscope.conversation import (
    Agent,
    AudioFile,
    Conversation,
    Label,
    Outcome,
    Source,
    Track,
)
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.call_exports import CallReader, EndReasons, ExportedCall, add_call_latency, verdicts
from convoscope.ingest.formats.retell.transcript import Transcript, is_speech, lines_of
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, leftovers
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder, dimensions

RATER = "retell"

_LOOKED_AT = 20
_EVENTS = ("call_started", "call_ended", "call_analyzed")
"""Webhooks of a call, each of which tells more than the one before."""
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
_ASIDE = ("pre_session", "post_session")
_RECORDINGS = ("recording_multi_channel_url", "recording_url")
_NO_SLOTS = frozenset({"current_node", "previous_node"})
_CASCADE = ("asr", "llm", "tts")
_USED = frozenset(
    {"call_id", "agent_name", "disconnection_reason", "duration_ms", "collected_dynamic_variables", *_TRANSCRIPTS}
    | {f"{scrubbed}{when}_transcript_with_tool_calls" for when in _ASIDE for scrubbed in ("", "scrubbed_")}
    | {f"{scrubbed}{name}" for name in _RECORDINGS for scrubbed in ("", "scrubbed_")}
    | {"access_token"}
)
_USUAL = frozenset(
    {"agent_id", "agent_version", "agent_tag", "call_status", "call_type", "direction", "from_number", "to_number"}
    | {"start_timestamp", "end_timestamp", "transfer_end_timestamp", "transfer_destination", "telephony_identifier"}
    | {"call_cost", "call_analysis", "latency", "llm_token_usage", "metadata", "custom_sip_headers"}
    | {"retell_llm_dynamic_variables", "data_storage_setting", "opt_in_signed_url", "opt_out_sensitive_data_storage"}
    | {"public_log_url", "knowledge_base_retrieved_contents_url", "event", "event_timestamp", "collected_variables"}
)


class _Read(NamedTuple):
    """The entries that are read, the field that they stand in, and what another field holds that it does not."""

    entries: Sequence[Any]
    source: str
    beside: JsonObject = {}


class RetellReader(CallReader):
    """Calls of Retell. The webhooks of one call are brought together."""

    name = "retell"
    title = "Retell calls"
    lists = ("items", "calls")
    id_field = "call_id"
    expected = 'expected {"call_id": …, "transcript_with_tool_calls": […]}'

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            calls = [one for one in self.calls(value, limit=_LOOKED_AT) if _looks_like_a_call(one.call)]
            if not calls:
                continue
            sure = max(_looks_like_a_call(one.call) for one in calls)
            if calls[0].kind:
                return Detection(sure, f'a webhook "{calls[0].kind}" with a call', "key")
            if calls[0].place:
                return Detection(sure, "a list of calls with call_id")
            return Detection(sure, "a call with call_id and what Retell tells of one")
        return None

    def is_call(self, value: JsonObject) -> bool:
        return bool(value.get("call_id"))

    def unwrapped(self, value: JsonObject) -> ExportedCall | None:
        if self.is_call(value) or not isinstance(value.get("call"), dict):
            return None
        return ExportedCall(value["call"], kind=as_text(value.get("event")) or "call")

    def merged(self, webhooks: Sequence[ExportedCall], notes: Notes) -> ExportedCall:
        """The latest word counts."""
        rank = {event: place for place, event in enumerate(_EVENTS)}
        calls = sorted(webhooks, key=lambda call: rank.get(call.kind, 1))
        whole: JsonObject = {}
        for call in calls:
            whole |= filled(call.call)
        for call in calls[:-1]:
            notes.ignored("earlier_webhook", call.kind)
        return ExportedCall(whole, "", calls[-1].kind)

    def conversation(self, source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
        return _conversation(source, group, notes)


def _looks_like_a_call(call: Any) -> float:
    """How sure it is that this is a call of Retell; 0 for not at all."""
    if not isinstance(call, dict) or not _id(call):
        return 0.0
    if not _SURE.isdisjoint(call):
        return 1.0
    return 0.95 if not _LIKELY.isdisjoint(call) or {"agent_id", "transcript"} <= call.keys() else 0.0


def _id(call: JsonObject) -> str:
    return as_text(call.get("call_id"))


def _conversation(source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
    call: JsonObject = source.call
    place = source.place
    entries, field, beside = _transcript(call, notes)
    reason = as_text(call.get("disconnection_reason"))
    if not entries and not reason and call.get("call_status") != "error":
        hint = "a call that has not ended has none yet; `call_ended` and `call_analyzed` bring it"
        raise InputError("has no transcript and no end", field="transcript_with_tool_calls", hint=hint)
    collected = call.get("collected_dynamic_variables")
    transcript = Transcript(notes, field, _slots(collected, call.get("retell_llm_dynamic_variables")))
    transcript.aside("pre_session", _scrubbed(call, "pre_session_transcript_with_tool_calls"))
    transcript.read(entries, _only_node(field, entries, collected, notes))
    for slot, value in transcript.slots.items():
        notes.inferred("slot_place_not_told", slot, transcript.timeline.seq)
        transcript.states.fill_somewhere(slot, value)
    transcript.aside("post_session", _scrubbed(call, "post_session_transcript_with_tool_calls"))
    _latencies(call.get("latency"), transcript.timeline)
    agent = as_text(call.get("agent_name")) or as_text(call.get("agent_id"))
    return Conversation(
        id=_id(call) or (f"{group.name} {place}" if place else group.name),
        dimensions=_dimensions(call, agent, has_nodes=transcript.states.seen),
        source=Source(format=RetellReader.name, files=group.file_names, record=place),
        pipeline=_pipeline(call.get("latency")),
        participants=transcript.timeline.participants,
        clocks=transcript.clocks,
        agent=Agent(name=agent),
        timeline=tuple(transcript.timeline.events),
        labels=_labels(call.get("call_analysis")),
        outcome=_outcome(call, reason, notes),
        recording=_recording(call, notes),
        extras=_extras(call, source.kind, notes) | beside,
    )


def _transcript(call: JsonObject, notes: Notes) -> _Read:
    """The best transcript in which anybody speaks; one without personal data is read whatever it holds."""
    held: dict[str, Sequence[Any]] = {}
    beside: JsonObject = {}
    for name in _TRANSCRIPTS:
        value = call.get(name)
        if isinstance(value, list) and value:
            held[name] = value
        elif name == "transcript" and isinstance(value, str) and value.strip():
            held[name] = list(lines_of(value))
        elif value not in (None, [], ""):
            notes.set_aside("transcript_of_another_kind", f"{name} is a {type(value).__name__}")
            beside[name] = value
    if not held:
        notes.set_aside("no_transcript", as_text(call.get("disconnection_reason")))
        return _Read((), _TRANSCRIPTS[1], beside)
    spoken = (name for name, listed in held.items() if name == _SCRUBBED or any(map(is_speech, listed)))
    chosen = next(spoken, next(iter(held)))
    for name in held:
        # A better one in which nobody speaks may still hold tools.
        if _TRANSCRIPTS.index(name) < _TRANSCRIPTS.index(chosen):
            beside[name] = call[name]
        elif name != chosen:
            notes.ignored(name, f"{chosen} is read")
    if chosen == "transcript":
        notes.inferred("turns_from_text", "speakers are told by the lines of the transcript")
    return _Read(held[chosen], chosen, beside)


def _slots(collected: Any, given: Any) -> JsonObject:
    """The variables that the call collected: not the nodes among them, nor what it was started with."""
    given = as_object(given)
    return {
        name: value
        for name, value in as_object(collected).items()
        if value is not None and name not in _NO_SLOTS and not (name in given and given[name] == value)
    }


def _only_node(field: str, entries: Sequence[Any], collected: Any, notes: Notes) -> str:
    """The node of a call that never moved. Only a transcript with nodes can tell that it did not."""
    variables = as_object(collected)
    node = as_text(variables.get("current_node"))
    moved = any(isinstance(one, dict) and one.get("role") == "node_transition" for one in entries)
    if not node or moved or variables.get("previous_node") or field not in _TRANSCRIPTS[:2]:
        return ""
    notes.inferred("state_from_current_node", node)
    return node


def _scrubbed(call: JsonObject, name: str) -> Any:
    return call.get(f"scrubbed_{name}") or call.get(name)


def _latencies(latency: Any, timeline: TimelineBuilder) -> None:
    """One event for each value. They are numbered by nothing, so none belongs to a turn."""
    for name, facts in as_object(latency).items():
        for value in as_list(as_object(facts).get("values")):
            add_call_latency(timeline, name, value, f"{name}_latency")


def _pipeline(latency: Any) -> Pipeline | None:
    parts = filled(as_object(latency)).keys()
    if "s2s" in parts:
        return "s2s"
    return "cascade" if parts & set(_CASCADE) else None


def _dimensions(call: JsonObject, agent: str, *, has_nodes: bool) -> dict[str, str]:
    named = {
        "agent": agent,
        "agent_version": as_text(call.get("agent_version")),
        "flow": agent if has_nodes else "",
    }
    return dimensions(call.get("metadata")) | filled(named)


def _labels(analysis: Any) -> tuple[Label, ...]:
    facts = dict(as_object(analysis))
    facts.pop("call_summary", None)
    custom = as_object(facts.pop("custom_analysis_data", None))
    facts |= {f"custom_analysis_data.{name}": value for name, value in custom.items()}
    return verdicts(RATER, facts)


def _outcome(call: JsonObject, reason: str, notes: Notes) -> Outcome:
    status = "call_status error" if not reason and call.get("call_status") == "error" else ""
    error = reason if _ENDS.is_error(reason) else status
    finished = False if error else _ENDS.finished(reason)
    if reason and finished is None:
        notes.unknown(f"disconnection_reason={reason}")
    # `call_successful` is what a model thinks of the call: a label, and no fact about its end.
    return Outcome(finished=finished, ended_reason=reason, error=error, duration=_duration(call, notes))


def _duration(call: JsonObject, notes: Notes) -> float | None:
    milliseconds = as_number(call.get("duration_ms"))
    if milliseconds is None:
        start, end = as_number(call.get("start_timestamp")), as_number(call.get("end_timestamp"))
        milliseconds = None if start is None or end is None else end - start
    if milliseconds is not None and milliseconds < 0:
        notes.set_aside("duration", f"{milliseconds:g} ms")
        return None
    return None if milliseconds is None else round(milliseconds / 1000, 6)


def _recording(call: JsonObject, notes: Notes) -> AudioFile | None:
    """The sound without personal data where there is such."""
    scrubbed = [f"scrubbed_{name}" for name in _RECORDINGS if as_text(call.get(f"scrubbed_{name}"))]
    plain = [name for name in _RECORDINGS if as_text(call.get(name))]
    if scrubbed and plain:
        notes.ignored("unscrubbed_recording", "the scrubbed one is taken")
    tracks = tuple(Track(id=name, url=as_text(call[name])) for name in scrubbed or plain)
    return AudioFile(tracks=tracks) if tracks else None


def _extras(call: JsonObject, event: str, notes: Notes) -> JsonObject:
    unread = {name: value for name, value in call.items() if name not in _USED or _is_odd(name, value)}
    extras = leftovers(unread, _USUAL | _USED, "call", notes)
    if "access_token" in call:
        notes.ignored("access_token", "a key, and no part of the conversation")
    latency = extras.get("latency")
    if isinstance(latency, dict):
        extras["latency"] = {
            name: {key: value for key, value in facts.items() if key != "values"} if isinstance(facts, dict) else facts
            for name, facts in latency.items()
        }
    collected = as_object(call.get("collected_dynamic_variables"))
    nodes = {name: collected[name] for name in sorted(_NO_SLOTS & collected.keys())}
    return extras | filled({"collected_dynamic_variables": nodes, "event": event})


def _is_odd(name: str, value: Any) -> bool:
    """Whether a field that is read holds what nobody can read."""
    if name == "collected_dynamic_variables":
        return not isinstance(value, dict)
    if name == "duration_ms":
        return as_number(value) is None
    return not name.endswith(_TRANSCRIPTS) and not as_text(value)


READER = RetellReader()
