"""Which fields of an evaluation item each scorer reads: the table that decides what can run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.conversation.events import ComponentMetric, Json
from convoscope.metrics.needs import GROUND_TRUTH, JUDGE, RECORDING, Fact, Need
from convoscope.scores.observation import NOT_APPLICABLE, Observation, not_applicable, unmeasured
from convoscope.views.items import Case, cases

ItemType = Literal["agent", "conversational"]


class Reads(NamedTuple):
    """What a scorer reads: it cannot do without the required fields, and uses the others where they are.

    Where the published schema lists the fields of one scorer twice and differently, the shorter list
    is required and the rest is optional.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    only: ItemType | None = None
    """The kind of item (`novaeval_item_type`) that it is planned for; both, or none stated, for None."""
    by: Literal["rule", "judge", "sound"] = "rule"


_ANSWER = ("agent_response", "ground_truth")
_ASKED = ("agent_task", "agent_response")
_RETRIEVED = ("retrieval_query", "retrieved_context", "ground_truth")
_SOUND = Reads(("raw_complete_audio",), by="sound")
_TIMED = Reads(("metrics_collected",), ("latency",))

SCORERS: Mapping[str, Reads] = {
    "accuracy": Reads(_ANSWER, ("context",)),
    "exact_match": Reads(_ANSWER),
    "f1": Reads(_ANSWER),
    "multi_pattern_accuracy": Reads(_ANSWER, ("context",)),
    "format_validity": Reads(("agent_response", "expected_format"), ("extracted_content",)),
    "answer_relevancy": Reads(_ASKED, by="judge"),
    "faithfulness": Reads(("retrieved_context", "agent_response"), by="judge"),
    "contextual_precision": Reads(_RETRIEVED, by="judge"),
    "contextual_recall": Reads(_RETRIEVED, by="judge"),
    "contextual_precision@lexical": Reads(_RETRIEVED),
    "contextual_recall@lexical": Reads(_RETRIEVED),
    "retrieval_ranking": Reads(("context",)),
    "hallucination_detection": Reads(_ASKED, by="judge"),
    "claim_verification": Reads(_ASKED, by="judge"),
    "factual_accuracy": Reads(_ASKED, by="judge"),
    "tool_correctness": Reads(("expected_tool_call", "tool_calls")),
    "parameter_correctness": Reads(("tool_calls", "parameters_passed", "tool_call_results"), ("tools_available",)),
    "tool_relevancy": Reads(("tools_available", "tool_calls"), only="agent", by="judge"),
    "task_progression": Reads(
        ("agent_task", "agent_role", "system_prompt", "agent_response"), only="agent", by="judge"
    ),
    "context_relevancy": Reads(("agent_task", "agent_role", "agent_response"), only="agent", by="judge"),
    "agent_role_adherence": Reads(
        ("agent_role", "agent_task", "agent_response", "tool_calls"), only="agent", by="judge"
    ),
    "goal_achievement": Reads(("agent_exit", "trace"), only="agent", by="judge"),
    "conversation_coherence": Reads(("agent_exit", "trace"), only="agent", by="judge"),
    "conversation_relevancy": Reads(
        ("conversation_context", "agent_response"), ("agent_task",), only="conversational", by="judge"
    ),
    "intention_fulfillment": Reads(
        ("conversation_context", "agent_task", "agent_response"), only="conversational", by="judge"
    ),
    "knowledge_retention": Reads(
        ("conversation_context",), ("agent_role", "agent_response"), only="conversational", by="judge"
    ),
    "role_adherence": Reads(
        ("agent_role", "conversation_context", "agent_response"), only="conversational", by="judge"
    ),
    "mos": _SOUND,
    "tone_clarity": _SOUND,
    "pronunciation_audio": _SOUND,
    "gibberish": _SOUND,
    "audio_breakage": _SOUND,
    "assistant_average_pitch_hz": _SOUND,
    "assistant_volume_rms": _SOUND,
    "word_accuracy": Reads(("tts_data", "raw_complete_audio")),
    "assistant_latency": _TIMED,
    "llm_ttft": _TIMED,
    "llm_latency": _TIMED,
    "e2e_latency": _TIMED,
    "stt_latency": _TIMED,
    "stt_audio_duration": _TIMED,
    "stt_processing_duration": _TIMED,
    "tts_latency": _TIMED,
    "tts_ttfb": _TIMED,
    "tts_duration": _TIMED,
    "tts_audio_duration": _TIMED,
    "end_of_turn_delay": _TIMED,
    "on_user_turn_completed_delay": _TIMED,
    "instruction_adherence": Reads(("conversation_context", "system_prompt"), only="conversational", by="judge"),
    "sentiment_csat": Reads(("conversation_context",), ("system_prompt",), only="conversational", by="judge"),
    "drop_off_node": Reads(("conversation_context", "system_prompt"), only="conversational", by="judge"),
    "conversation_context_coherence": Reads(("conversation_context",), only="conversational", by="judge"),
    "appropriate_call_termination": Reads(("conversation_context",), only="conversational", by="judge"),
    "g_eval": Reads(_ASKED, ("context",), by="judge"),
    "panel_judge": Reads(_ASKED, ("context",), by="judge"),
}


def _carries(case: Case, field: str) -> bool:
    return case.extras.get(field) is not None


def _own(case: Case, field: str, shared: object) -> object:
    """What an item says itself, also where that is nothing; else what its conversation says for all."""
    return case.extras.get(field, shared)


def _has_task(case: Case) -> bool:
    return case.question is not None


def _has_response(case: Case) -> bool:
    return case.answer is not None


def _has_calls(case: Case) -> bool:
    # An empty list says that the agent called nothing, which is worth knowing.
    return bool(case.tool_calls) or _carries(case, "tool_calls")


def _has_parameters(case: Case) -> bool:
    # Outside of items it is what the last call was made with.
    if case.item is None:
        return bool(case.tool_calls)
    return _carries(case, "parameters_passed")


def _has_chunks(case: Case) -> bool:
    # A search that found nothing is known too: its list of chunks is empty.
    if "retrieved_context" in case.extras:
        return case.extras["retrieved_context"] is not None
    return bool(case.retrievals)


def _has_context(case: Case) -> bool:
    if case.item is None:
        return bool(case.conversation.utterances)
    return _carries(case, "conversation_context")


def _has_component(case: Case, components: tuple[str, ...]) -> bool:
    return any(type(event) is ComponentMetric and event.component in components for event in case.events)


def _has_metrics(case: Case) -> bool:
    """Of whatever component: what none of ours measured is still there, and each scorer says what it lacks."""
    return any(event.component not in ("stt_span", "tts_span") for event in case.metrics)


def _has_id(case: Case) -> bool:
    # An item without an id is called after its place, and says so.
    return case.item is not None and case.extras.get("turn_id", case.item.id) is not None


def _has_dimension(case: Case, field: str) -> bool:
    return _own(case, field, case.conversation.dimensions.get(field)) is not None


def _finished(case: Case) -> bool | None:
    outcome = case.conversation.outcome if case.item is None else case.item.outcome
    return None if outcome is None else outcome.finished


def _has_status(case: Case) -> bool:
    outcome = case.conversation.outcome if case.item is None else case.item.outcome
    return outcome is not None and bool(outcome.final_status)


_ON_THE_ITEM = (
    "source_trace_id",
    "turn_position",
    "speaker",
    "message",
    "context",
    "extracted_content",
    "latency",
    "metadata",
)

PRESENT: Mapping[str, Callable[[Case], bool]] = {
    "user_id": lambda case: _has_dimension(case, "user_id"),
    "task_id": lambda case: _has_dimension(case, "task_id"),
    "turn_id": _has_id,
    "agent_task": _has_task,
    "input_text": _has_task,
    "agent_response": _has_response,
    "output_text": _has_response,
    "ground_truth": lambda case: case.expected.ground_truth is not None,
    "expected_format": lambda case: case.expected.format is not None,
    "expected_tool_call": lambda case: bool(case.expected.tool_calls),
    "novaeval_item_type": lambda case: case.item is not None and bool(case.item.kind),
    "agent_name": lambda case: bool(_own(case, "agent_name", case.conversation.agent.name)),
    "agent_role": lambda case: bool(_own(case, "agent_role", case.conversation.agent.role)),
    "system_prompt": lambda case: bool(_own(case, "system_prompt", case.conversation.agent.instructions)),
    "tools_available": lambda case: _own(case, "tools_available", case.conversation.agent.tools) is not None,
    "tool_calls": _has_calls,
    "parameters_passed": _has_parameters,
    "tool_call_results": lambda case: bool(case.tool_results) or _carries(case, "tool_call_results"),
    "retrieval_query": lambda case: any(one.query is not None for one in case.retrievals),
    "retrieved_context": _has_chunks,
    "conversation_context": _has_context,
    "agent_exit": lambda case: _finished(case) is not None,
    "exit_status": _has_status,
    "trace": lambda case: bool(case.extras.get("trace")),
    "raw_complete_audio": lambda case: _own(case, "raw_complete_audio", case.conversation.recording) is not None,
    "stt_data": lambda case: _has_component(case, ("stt_span",)),
    "tts_data": lambda case: _has_component(case, ("tts_span",)),
    "metrics_collected": lambda case: _has_metrics(case) or _carries(case, "latency"),
    **{field: partial(_carries, field=field) for field in _ON_THE_ITEM},
}
"""Whether a case has a field of the item schema, wherever the model keeps it."""


def _exited(case: Case) -> bool:
    return _finished(case) is True


_OF_NO_PART = frozenset(("stt_span", "tts_span", "turn", "call"))
"""Component metrics that no part of the stack reports of itself; those of a turn or a call are of all parts at once."""


def _has_parts(case: Case) -> bool:
    return any(event.component not in _OF_NO_PART for event in case.metrics) or _carries(case, "latency")


def _has_waits(case: Case) -> bool:
    """As above; but the whole wait for a reply may be told of a turn or a call."""
    return _has_parts(case) or any(event.values.get("e2e_latency") is not None for event in case.metrics)


class CaseFacts(msgspec.Struct, frozen=True, gc=False):
    """What metrics ask of the only case of a conversation, found out at once: as `PRESENT` has it, and `_BESIDE`."""

    agent_task: bool
    agent_role: bool
    system_prompt: bool
    expected_format: bool
    expected_tool_call: bool
    tools_available: bool
    tool_calls: bool
    parameters_passed: bool
    tool_call_results: bool
    retrieval_query: bool
    retrieved_context: bool
    conversation_context: bool
    agent_exit: bool
    exited: bool
    trace: bool
    raw_complete_audio: bool
    tts_data: bool
    context: bool
    parts: bool
    waits: bool


_BESIDE: Mapping[str, Callable[[Case], bool]] = {"exited": _exited, "parts": _has_parts, "waits": _has_waits}


class _FactsOfCases:
    """The same of several cases: true where one of them is so, and found out when it is first asked for."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases

    def __getattr__(self, field: str) -> bool:
        has = _BESIDE.get(field) or PRESENT.get(field)
        if has is None:
            raise AttributeError(field)
        found = any(has(case) for case in self._cases)
        setattr(self, field, found)
        return found


def case_facts(conversation: Conversation) -> CaseFacts | _FactsOfCases:
    """What the cases of a conversation have; found out once."""
    held = conversation.__dict__
    found: CaseFacts | _FactsOfCases | None = held.get("_case_facts")
    if found is None:
        mine = cases(conversation)
        found = held["_case_facts"] = _facts_of(mine[0]) if len(mine) == 1 else _FactsOfCases(mine)
    return found


def _facts_of(case: Case) -> CaseFacts:
    conversation, item, expected, carried = case.conversation, case.item, case.expected, case.extras.get
    facts, agent = conversation.facts, conversation.agent
    outcome = conversation.outcome if item is None else item.outcome
    finished = None if outcome is None else outcome.finished
    reports = facts.reports  # of the whole timeline, as is everything that happened for the only case
    parts = carried("latency") is not None or bool(reports and reports.keys() - _OF_NO_PART)
    return CaseFacts(
        facts.has_user_speech if item is None else case.question is not None,
        bool(carried("agent_role", agent.role)),
        bool(carried("system_prompt", agent.instructions)),
        expected.format is not None,
        bool(expected.tool_calls),
        carried("tools_available", agent.tools) is not None,
        facts.has_tool_calls or carried("tool_calls") is not None,
        facts.has_tool_calls if item is None else carried("parameters_passed") is not None,
        facts.has_tool_results or carried("tool_call_results") is not None,
        facts.has_queries,
        carried("retrieved_context", facts.has_retrievals or None) is not None,
        facts.has_utterances if item is None else carried("conversation_context") is not None,
        finished is not None,
        finished is True,
        bool(carried("trace")),
        carried("raw_complete_audio", conversation.recording) is not None,
        "tts_span" in reports,
        carried("context") is not None,
        parts,
        parts or bool(reports and _has_waits(case)),
    )


def _present(field: str) -> Callable[[Conversation], bool]:
    """Whether some case of a conversation has a field."""
    if field == "agent_response":
        return _has_answer
    if field in CaseFacts.__struct_fields__:
        return Fact(case_facts, field)
    present = PRESENT[field]
    return lambda conversation: any(present(case) for case in cases(conversation))


def _has_answer(conversation: Conversation) -> bool:
    # Whoever asks for an answer compares it: it is read for that anyway, and nothing else need be.
    mine = cases(conversation)
    return mine[0].answer is not None or any(case.answer is not None for case in mine[1:])


def _need(field: str) -> Need:
    return Need(
        code=f"no_{field}",
        field=field,
        unlock=f"`{field}` in the items",
        present=_present(field),
    )


def _is_for(kind: ItemType, conversation: Conversation) -> bool:
    items = conversation.items
    if not items or items[0].kind in ("", kind):
        return True
    return len(items) > 1 and any(item.kind in ("", kind) for item in items)


FIELDS: Mapping[str, Need] = {**{field: _need(field) for field in PRESENT}, "ground_truth": GROUND_TRUTH}
EXITED = Need(
    code="agent_not_exited",
    field="agent_exit",
    unlock="items with `agent_exit` true: the agent has not finished in these",
    present=Fact(case_facts, "exited"),
    otherwise=NOT_APPLICABLE,
)
AGENT_ITEM = Need(
    code="not_an_agent_item",
    field="novaeval_item_type",
    unlock="items whose `novaeval_item_type` is agent",
    present=lambda conversation: _is_for("agent", conversation),
    otherwise=NOT_APPLICABLE,
)
CONVERSATIONAL_ITEM = Need(
    code="not_a_conversational_item",
    field="novaeval_item_type",
    unlock="items whose `novaeval_item_type` is conversational",
    present=lambda conversation: _is_for("conversational", conversation),
    otherwise=NOT_APPLICABLE,
)


def _has_sound(conversation: Conversation) -> bool:
    """A recording is named, so that somebody could hear it; what was said in it, or how long it is, is no sound."""
    if conversation.recording is not None and any(
        track.path or track.url or track.id for track in conversation.recording.tracks
    ):
        return True
    items = conversation.items
    return bool(items) and any(_names_sound(item.extras) for item in items)


def _names_sound(extras: Mapping[str, Json]) -> bool:
    audio, metadata = extras.get("raw_complete_audio"), extras.get("metadata")
    named = isinstance(audio, dict) and (audio.get("audio_url") or audio.get("audio_uuid"))
    return bool(named or (isinstance(metadata, dict) and metadata.get("local_audio_path")))


SOUND = msgspec.structs.replace(RECORDING, present=_has_sound)
AUDIO_ANALYSIS = Need(
    code="no_audio_analysis",
    field="",
    unlock="a version of Convoscope that listens to recordings: this one does not",
    resource="audio_analysis",
)


PARTS = msgspec.structs.replace(FIELDS["metrics_collected"], present=Fact(case_facts, "parts"))
WAITS = msgspec.structs.replace(FIELDS["metrics_collected"], present=Fact(case_facts, "waits"))


def needs_of(scorer: str) -> tuple[Need, ...]:
    """The needs that follow from the table: the kind of item, its required fields, then a judge or a recording."""
    reads = SCORERS[scorer]
    needs = [FIELDS[field] for field in reads.required]
    if reads.only is not None:
        needs.insert(0, AGENT_ITEM if reads.only == "agent" else CONVERSATIONAL_ITEM)
    if "agent_exit" in reads.required:
        needs.insert(needs.index(FIELDS["agent_exit"]) + 1, EXITED)
    if reads is _TIMED:
        needs = [WAITS if scorer == "e2e_latency" else PARTS]
    if reads.by == "judge":
        needs.append(JUDGE)
    if reads.by == "sound":
        needs = [*(SOUND if need is FIELDS["raw_complete_audio"] else need for need in needs), AUDIO_ANALYSIS]
    return tuple(needs)


def first_absent(case: Case, fields: Iterable[str]) -> str | None:
    """The first of these fields that a case does not have."""
    return next((field for field in fields if not PRESENT[field](case)), None)


def missing(case: Case, scorer: str) -> str | None:
    """The first required field that a case does not have: the others of its conversation may."""
    return first_absent(case, SCORERS[scorer].required)


def silence(case: Case, scorer: str) -> Observation | None:
    """Why a scorer says nothing of this case, where the others of its conversation meet its needs."""
    only = SCORERS[scorer].only
    if only is not None and case.item is not None and case.item.kind not in ("", only):
        return not_applicable(case.subject, (AGENT_ITEM if only == "agent" else CONVERSATIONAL_ITEM).code)
    if field := missing(case, scorer):
        return unmeasured(case.subject, FIELDS[field].code, field)
    if "agent_exit" in SCORERS[scorer].required and not _finished(case):
        return not_applicable(case.subject, EXITED.code)
    return None


__all__ = ["FIELDS", "PRESENT", "SCORERS", "Reads", "first_absent", "missing", "needs_of", "silence"]
