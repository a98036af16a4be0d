"""Which fields of an evaluation item each scorer reads: the table that decides what can run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from convoscope.conversation import Conversation, Outcome
from convoscope.conversation.events import ComponentMetric
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.needs import GROUND_TRUTH, Fact, Need, knows_tools
from convoscope.scores.observation import Observation, unmeasured
from convoscope.views.items import Case, cases


class Reads(NamedTuple):
    """What a scorer reads: it cannot do without the required fields, and uses the others where they are.

    Where the published schema lists the fields of one scorer twice and differently, the shorter list
    is required and the rest is optional.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_ANSWER = ("agent_response", "ground_truth")
_RETRIEVED = Reads(("retrieval_query", "retrieved_context", "ground_truth"))
_EXCHANGE = ("agent_task", "agent_response")
_SOURCES = ("retrieved_context", "tool_call_results", "ground_truth", "conversation_context", "system_prompt")
_TALK = Reads(("conversation_context",))
_TRACED = Reads(("agent_exit", "trace"), ("exit_status", "agent_task"))
_TIMED = Reads(("metrics_collected",), ("latency",))
_TIMED_SCORERS = (
    "assistant_latency",
    "llm_ttft",
    "llm_latency",
    "e2e_latency",
    "stt_latency",
    "stt_audio_duration",
    "stt_processing_duration",
    "tts_latency",
    "tts_ttfb",
    "tts_duration",
    "tts_audio_duration",
    "end_of_turn_delay",
    "on_user_turn_completed_delay",
)

SCORERS: Mapping[str, Reads] = {
    "accuracy": Reads(_ANSWER, ("context",)),
    "exact_match": Reads(_ANSWER),
    "f1": Reads(_ANSWER),
    "multi_pattern_accuracy": Reads(_ANSWER, ("context",)),
    "format_validity": Reads(("agent_response", "expected_format"), ("extracted_content",)),
    "contextual_precision@lexical": _RETRIEVED,
    "contextual_recall@lexical": _RETRIEVED,
    "retrieval_ranking": Reads(("context",)),
    "answer_relevancy": Reads(_EXCHANGE),
    **dict.fromkeys(("factual_accuracy", "claim_verification", "hallucination_detection"), Reads(_EXCHANGE, _SOURCES)),
    **dict.fromkeys(("g_eval", "panel_judge"), Reads(_EXCHANGE, ("context", "ground_truth"))),
    "faithfulness": Reads(("retrieved_context", "agent_response"), ("agent_task",)),
    "contextual_precision": _RETRIEVED,
    "contextual_recall": _RETRIEVED,
    "task_progression": Reads(("agent_task", "agent_role", "system_prompt", "agent_response")),
    "context_relevancy": Reads(("agent_task", "agent_role", "agent_response")),
    "agent_role_adherence": Reads(("agent_role", "agent_task", "agent_response", "tool_calls")),
    **dict.fromkeys(("goal_achievement", "conversation_coherence"), _TRACED),
    "tool_relevancy": Reads(("tools_available", "tool_calls"), ("agent_task", "conversation_context")),
    "conversation_relevancy": Reads(("conversation_context", "agent_response")),
    "intention_fulfillment": Reads(("conversation_context", "agent_task", "agent_response")),
    "knowledge_retention": _TALK,
    "role_adherence": Reads(("agent_role", "conversation_context", "agent_response"), ("system_prompt",)),
    **dict.fromkeys(("instruction_adherence", "drop_off_node"), Reads(("conversation_context", "system_prompt"))),
    **dict.fromkeys(("sentiment_csat", "conversation_context_coherence", "appropriate_call_termination"), _TALK),
    "tool_correctness": Reads(("expected_tool_call", "tool_calls")),
    "parameter_correctness": Reads(("tool_calls", "parameters_passed", "tool_call_results"), ("tools_available",)),
    "word_accuracy": Reads(("tts_data", "raw_complete_audio")),
    **dict.fromkeys(_TIMED_SCORERS, _TIMED),
}


def _carries(case: Case, field: str) -> bool:
    return case.extras.get(field) is not None


def _own(case: Case, field: str, shared: object) -> object:
    """What an item says itself, also where that is nothing; else what its conversation says for all."""
    return case.extras.get(field, shared)


def _called_nothing(case: Case) -> bool:
    """Outside of items: the log would show a call, and shows none."""
    return case.item is None and not case.tool_calls and knows_tools(case.conversation)


def _has_parameters(case: Case) -> bool:
    # Outside of items it is what the last call was made with.
    if case.item is None:
        return bool(case.tool_calls) or _called_nothing(case)
    return _carries(case, "parameters_passed")


def _has_chunks(case: Case) -> bool:
    # A search that found nothing is known too: its list of chunks is empty.
    if "retrieved_context" in case.extras:
        return case.extras["retrieved_context"] is not None
    return bool(case.retrievals)


def _has_component(case: Case, component: str) -> bool:
    return any(type(event) is ComponentMetric and event.component == component for event in case.events)


def _has_metrics(case: Case) -> bool:
    """Of whatever component: what none of ours measured is still there, and each scorer says what it lacks."""
    return any(event.component not in ("stt_span", "tts_span") for event in case.metrics)


def _has_id(case: Case) -> bool:
    # An item without an id is called after its position, and says so.
    return case.item is not None and case.extras.get("turn_id", case.item.id) is not None


def _has_dimension(case: Case, field: str) -> bool:
    return _own(case, field, case.conversation.dimensions.get(field)) is not None


def _has_text(case: Case, field: str, shared: object) -> bool:
    """Whether a text says something: blanks do not."""
    return bool(str(_own(case, field, shared) or "").strip())


def _outcome(case: Case) -> Outcome:
    return (case.conversation.outcome if case.item is None else case.item.outcome) or Outcome()


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
    **dict.fromkeys(("agent_task", "input_text"), lambda case: case.question is not None),
    **dict.fromkeys(("agent_response", "output_text"), lambda case: case.answer is not None),
    "ground_truth": lambda case: case.expected.ground_truth is not None,
    "expected_format": lambda case: case.expected.format is not None,
    "expected_tool_call": lambda case: bool(case.expected.tool_calls),
    "novaeval_item_type": lambda case: case.item is not None and bool(case.item.kind),
    "agent_name": lambda case: _has_text(case, "agent_name", case.conversation.agent.name),
    "agent_role": lambda case: _has_text(case, "agent_role", case.conversation.agent.role),
    "system_prompt": lambda case: _has_text(case, "system_prompt", case.conversation.agent.instructions),
    "tools_available": lambda case: _own(case, "tools_available", case.conversation.agent.tools) is not None,
    # An empty list says that the agent called nothing, which is worth knowing.
    "tool_calls": lambda case: bool(case.tool_calls) or _carries(case, "tool_calls") or _called_nothing(case),
    "parameters_passed": _has_parameters,
    "tool_call_results": lambda case: (
        bool(case.tool_results) or _carries(case, "tool_call_results") or _called_nothing(case)
    ),
    "retrieval_query": lambda case: any(one.query is not None for one in case.retrievals),
    "retrieved_context": _has_chunks,
    "conversation_context": lambda case: (
        bool(case.conversation.utterances) if case.item is None else _carries(case, "conversation_context")
    ),
    "agent_exit": lambda case: _outcome(case).finished is not None,
    "exit_status": lambda case: bool((_outcome(case).final_status or "").strip()),
    "trace": lambda case: bool(case.extras.get("trace")),
    "raw_complete_audio": lambda case: _own(case, "raw_complete_audio", case.conversation.recording) is not None,
    "stt_data": lambda case: _has_component(case, "stt_span"),
    "tts_data": lambda case: _has_component(case, "tts_span"),
    "metrics_collected": lambda case: _has_metrics(case) or _carries(case, "latency"),
    **{field: partial(_carries, field=field) for field in _ON_THE_ITEM},
}
"""Whether a case has a field of the item schema, wherever the model keeps it."""


_OF_NO_PART = frozenset(("stt_span", "tts_span", "turn", "call"))
"""Component metrics that no part of the stack reports of itself; those of a turn or a call are of all parts at once."""


def _has_parts(case: Case) -> bool:
    return any(event.component not in _OF_NO_PART for event in case.metrics) or _carries(case, "latency")


def _has_waits(case: Case) -> bool:
    """As above; but the whole wait for a reply may be reported for a turn or a call."""
    return _has_parts(case) or any(event.values.get("e2e_latency") is not None for event in case.metrics)


class CaseFields(msgspec.Struct, frozen=True, gc=False):
    """What metrics ask of the only case of a conversation, found out at once: as `PRESENT` has it, and `_ALSO`."""

    expected_format: bool
    expected_tool_call: bool
    tool_calls: bool
    parameters_passed: bool
    tool_call_results: bool
    retrieval_query: bool
    retrieved_context: bool
    raw_complete_audio: bool
    tts_data: bool
    context: bool
    parts: bool
    waits: bool


_ALSO: Mapping[str, Callable[[Case], bool]] = {"parts": _has_parts, "waits": _has_waits}


class _FieldsOfCases:
    """The same of several cases: true where it holds for any of them, and found out when it is first asked for."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases

    def __getattr__(self, field: str) -> bool:
        has = _ALSO.get(field) or PRESENT.get(field)
        if has is None:
            raise AttributeError(field)
        is_present = any(has(case) for case in self._cases)
        setattr(self, field, is_present)
        return is_present


@cached_on_argument
def case_fields(conversation: Conversation) -> CaseFields | _FieldsOfCases:
    """What the cases of a conversation have."""
    all_cases = cases(conversation)
    return _fields_of(all_cases[0]) if len(all_cases) == 1 else _FieldsOfCases(all_cases)


def _fields_of(case: Case) -> CaseFields:
    conversation, item, expected, extra = case.conversation, case.item, case.expected, case.extras.get
    contents = conversation.contents
    reports = contents.reports  # of the whole timeline, as is everything that happened for the only case
    parts = extra("latency") is not None or bool(reports and reports.keys() - _OF_NO_PART)
    # Where nothing was called, the log would show it: there is nothing else to be known.
    nothing = item is None and not contents.has_tool_calls and knows_tools(conversation)
    called = contents.has_tool_calls or nothing
    return CaseFields(
        expected_format=expected.format is not None,
        expected_tool_call=bool(expected.tool_calls),
        tool_calls=called or extra("tool_calls") is not None,
        parameters_passed=called if item is None else extra("parameters_passed") is not None,
        tool_call_results=contents.has_tool_results or nothing or extra("tool_call_results") is not None,
        retrieval_query=contents.has_queries,
        retrieved_context=extra("retrieved_context", contents.has_retrievals or None) is not None,
        raw_complete_audio=extra("raw_complete_audio", conversation.recording) is not None,
        tts_data="tts_span" in reports,
        context=extra("context") is not None,
        parts=parts,
        waits=parts or bool(reports and _has_waits(case)),
    )


def _present(field: str) -> Callable[[Conversation], bool]:
    """Whether some case of a conversation has a field."""
    if field == "agent_response":
        return _has_answer
    if field in CaseFields.__struct_fields__:
        return Fact(case_fields, field)
    present = PRESENT[field]
    return lambda conversation: any(present(case) for case in cases(conversation))


def _has_answer(conversation: Conversation) -> bool:
    # A metric that asks for an answer compares it: it is read for that anyway, and nothing else need be.
    all_cases = cases(conversation)
    return all_cases[0].answer is not None or any(case.answer is not None for case in all_cases[1:])


_CODES = {"tool_calls": "tool_calls_unknown"}
"""Reason codes of fields whose absence does not say that there was nothing."""


FIELDS: Mapping[str, Need] = {
    field: Need(_CODES.get(field, f"no_{field}"), field, f"`{field}` in the items", _present(field))
    for field in PRESENT
} | {"ground_truth": GROUND_TRUTH}
PARTS = msgspec.structs.replace(FIELDS["metrics_collected"], present=Fact(case_fields, "parts"))
WAITS = msgspec.structs.replace(FIELDS["metrics_collected"], present=Fact(case_fields, "waits"))


def needs_of(scorer: str) -> tuple[Need, ...]:
    """The needs that follow from the table: the required fields, in its order."""
    reads = SCORERS[scorer]
    if reads is _TIMED:
        return (WAITS if scorer == "e2e_latency" else PARTS,)
    return tuple(FIELDS[field] for field in reads.required)


def first_absent(case: Case, fields: Iterable[str]) -> str | None:
    """The first of these fields that a case does not have."""
    return next((field for field in fields if not PRESENT[field](case)), None)


def missing(case: Case, scorer: str) -> str | None:
    """The first required field that a case does not have: the others of its conversation may."""
    return first_absent(case, SCORERS[scorer].required)


def each_case(conversation: Conversation, scorer: str, observe: Callable[[Case], Observation]) -> Iterator[Observation]:
    """One observation for each case that has the fields of a scorer; of the others, the missing field is named."""
    for case in cases(conversation):
        field = missing(case, scorer)
        yield observe(case) if field is None else unmeasured(case.subject, FIELDS[field].code, field)


__all__ = ["FIELDS", "PRESENT", "SCORERS", "Reads", "each_case", "first_absent", "missing", "needs_of"]
