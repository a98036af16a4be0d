"""ElevenLabs conversations: what the API and the post-call webhook tell of a call of an agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from convoscope.conversation import Agent, Conversation, Label, Outcome, Source
from convoscope.errors import InputError
from convoscope.ingest.call_exports import ExportedCall, RecordPlace, readable_conversations
from convoscope.ingest.formats.elevenlabs.transcript import CLOCK, ROLES, Rows
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, leftovers, take_text
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

VENDOR = "elevenlabs"

_LISTED = "conversations"
_HOOK, _HOOKS = "data", "post_call"
_LOOKED_AT = 20
_EXPECTED = 'expected {"conversation_id": …, "agent_id": …, "transcript": [{"role": …, "message": …}]}'
_SUMMARY = "fetch each conversation by its id: the list of conversations tells no words"

# A reason is a sentence, so a part of it tells. The first that is found counts.
_ENDS: tuple[tuple[str, bool], ...] = (
    ("max duration", False),
    ("maximum duration", False),
    ("max_duration", False),
    ("exceeded", False),
    ("timeout", False),
    ("timed out", False),
    ("silence", False),
    ("error", False),
    ("end_call", True),
    ("ended by remote party", True),
    ("remote party", True),
    ("ended by user", True),
    ("client ended", True),
    ("transfer", True),
    ("voicemail", True),
    ("client disconnected: 1000", True),
    ("client disconnected: 1001", True),
)
_BROKEN = "failed"
_ONE_BY_ONE = {
    "evaluation_criteria_results": ("evaluation_criteria_results_list", "criteria_id"),
    "data_collection_results": ("data_collection_results_list", "data_collection_id"),
}
"""Results by id, the list that says the same, and what an entry of the list calls its id."""
_FEEDBACK = ("overall_score", "rating")
# What the API tells beside the transcript and what is read from it: kept in extras, and no surprise.
_USUAL = frozenset(
    {"agent_id", "user_id", "status", "branch_id", "version_id", "metadata", "analysis", "visited_agents", "tag_ids"}
    | {"has_audio", "has_user_audio", "has_response_audio", "has_auxiliary_audio", "conversation_product"}
    | {"user_message_count", "agent_message_count", "conversation_initiation_client_data", "environment"}
    | {"otlp_traces", "webhook"}
)


class ElevenLabsReader(Reader):
    """Conversations: one, several in an array, lines or the envelope of a list, or in a webhook."""

    name = VENDOR
    title = "ElevenLabs conversations"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if not isinstance(value, dict):
                continue
            if sure := _looks_like_a_call(value):
                return Detection(sure, "a conversation with a transcript of agent and user")
            if _is_hook(value):
                return Detection(0.95, "a post-call webhook with a conversation")
            listed = value.get(_LISTED)
            if isinstance(listed, list) and any(_looks_like_a_call(one) or _is_summary(one) for one in listed[:5]):
                return Detection(0.9, 'its "conversations" are conversations of an agent')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            value = record.value
            if not isinstance(value, dict):
                raise InputError("is not a conversation", field="transcript", hint=_EXPECTED)
            if isinstance(value.get(_LISTED), list) and "transcript" not in value:
                yield from _listed_conversations(value[_LISTED], group, notes)
            elif _is_hook(value):
                beside = {name: one for name, one in value.items() if name != _HOOK}
                yield _conversation({**value[_HOOK], "webhook": beside}, RecordPlace(group, group.name), notes)
            else:
                yield _conversation(value, RecordPlace(group, group.name), notes)


def _looks_like_a_call(value: Any) -> float:
    """How sure it is that this is a conversation; 0 for not at all."""
    rows = value.get("transcript") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return 0.0
    if any(isinstance(row, dict) and as_text(row.get("role")) in ROLES and "time_in_call_secs" in row for row in rows):
        return 0.95
    return 0.8 if {"conversation_id", "agent_id"} <= value.keys() else 0.0


def _is_summary(value: Any) -> bool:
    return isinstance(value, dict) and {"conversation_id", "agent_id", "call_successful"} <= value.keys()


def _is_hook(value: JsonObject) -> bool:
    return as_text(value.get("type")).startswith(_HOOKS) and bool(_looks_like_a_call(value.get(_HOOK)))


def _listed_conversations(listed: Sequence[Any], group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
    """The conversations of a list. One that cannot be read does not stop the others."""
    if not listed:
        raise InputError("is an empty list of conversations", field=_LISTED, hint=_SUMMARY)

    def build(call: ExportedCall) -> Conversation:
        if not isinstance(call.call, dict):
            raise InputError("is not an object")
        return _conversation(call.call, RecordPlace(group, f"{group.name}#{call.kind}", call.place), notes)

    calls = [ExportedCall(value, f"{_LISTED}[{number}]", f"{number + 1}") for number, value in enumerate(listed)]
    yield from readable_conversations(calls, build, "conversations", _LISTED, _SUMMARY)


def _conversation(value: JsonObject, place: RecordPlace, notes: Notes) -> Conversation:
    facts = dict(value)
    rows = facts.pop("transcript", None)
    if not isinstance(rows, list) or not any(isinstance(row, dict) for row in rows):
        hint = _SUMMARY if _is_summary(value) else _EXPECTED
        raise InputError("has no transcript", field="transcript", hint=hint)
    metadata, analysis = dict(as_object(facts.get("metadata"))), dict(as_object(facts.get("analysis")))
    timeline = TimelineBuilder(notes)
    read = Rows(timeline, is_text=metadata.get("text_only") is True)
    read.read(rows)
    labels = (*_verdicts(analysis), *_feedback(metadata))
    _collect(analysis, read)
    outcome = _outcome(as_text(facts.get("status")), metadata)
    id, agent = take_text(facts, "conversation_id"), take_text(facts, "agent_name")
    called = agent or as_text(facts.get("agent_id"))
    dims = {"agent": called, "model": read.model, "flow": called if read.states.seen else ""}
    for name, held in (("metadata", metadata), ("analysis", analysis)):
        if isinstance(facts.get(name), dict):
            facts[name] = filled(held)
    extras = leftovers(facts, _USUAL, "conversation", notes)
    return Conversation(
        id=id or place.name,
        dimensions=filled(dims),
        source=Source(format=VENDOR, files=place.group.file_names, record=place.record),
        pipeline="text" if read.is_text else "cascade" if read.models.keys() & {"tts", "stt"} else None,
        participants=timeline.participants,
        clocks=(CLOCK,) if read.has_times else (),
        agent=Agent(name=called, models=read.models),
        timeline=tuple(timeline.events),
        labels=labels,
        outcome=outcome,
        extras=extras,
    )


def _outcome(status: str, metadata: JsonObject) -> Outcome:
    """How it ended. A status of `done` says that the recording was worked up, and nothing of the caller's task."""
    reason = take_text(metadata, "termination_reason")
    reason_lower = reason.lower()
    error = as_object(metadata.get("error"))
    broke = as_text(error.get("reason")) or (f"error {as_text(error.get('code'))}" if filled(error) else "")
    if status == _BROKEN and not broke:
        broke = reason or _BROKEN
    # `call_successful` is what a model thinks of the call: a label, and no fact about its end.
    return Outcome(
        finished=False if broke else next((natural for part, natural in _ENDS if part in reason_lower), None),
        ended_reason=reason,
        error=broke,
        duration=as_number(metadata.get("call_duration_secs")),
    )


def _by_id(analysis: JsonObject, name: str) -> dict[str, JsonObject]:
    """Results by their id; the list is used where there is nothing else, and not kept where it says the same."""
    listed_as, id_name = _ONE_BY_ONE[name]
    from_list = {
        id: one
        for one in as_list(analysis.get(listed_as))
        if isinstance(one, dict) and (id := as_text(one.get(id_name)))
    }
    results = {str(id): one for id, one in as_object(analysis.get(name)).items() if isinstance(one, dict)}
    if not results or from_list == results:
        analysis.pop(listed_as, None)
        analysis[name] = analysis.get(name) or from_list
    return results or from_list


def _verdicts(analysis: JsonObject) -> Iterator[Label]:
    """What the vendor's own judge says of the call."""
    for name in ("call_successful", "call_success_score"):
        if analysis.get(name) not in (None, ""):
            yield Label(name=name, value=analysis[name], rater=VENDOR, rater_kind="external")
    for id, verdict in _by_id(analysis, "evaluation_criteria_results").items():
        why = as_text(verdict.get("rationale"))
        if verdict.get("result") is not None:
            yield Label(name=id, value=verdict["result"], rater=VENDOR, rater_kind="external", notes=why)
        if verdict.get("score") is not None:
            most = as_number(verdict.get("max_score"))
            scale = "" if most is None else f"0 to {most:g}"
            yield Label(name=f"{id}.score", value=verdict["score"], rater=VENDOR, rater_kind="external", scale=scale)


def _feedback(metadata: JsonObject) -> Iterator[Label]:
    """What the caller said of the call."""
    feedback = as_object(metadata.get("feedback"))
    for name in _FEEDBACK:
        if feedback.get(name) is not None:
            comment = as_text(feedback.get("comment"))
            yield Label(name=f"feedback.{name}", value=feedback[name], rater="user", rater_kind="human", notes=comment)


def _collect(analysis: JsonObject, read: Rows) -> None:
    """Values that were read out of the transcript after the call. Which state collected them is not told."""
    timeline = read.timeline
    for id, result in _by_id(analysis, "data_collection_results").items():
        if read.states.fill_somewhere(id, result.get("value"), {"source": "analysis.data_collection_results"}):
            timeline.notes.inferred("slot_from_analysis", id, timeline.seq - 1)


READER = ElevenLabsReader()
