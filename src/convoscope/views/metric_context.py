"""`MetricContext`: a voice call as the data that a metric receives, turn by turn."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    EVA_TURN_RULE,
    USER,
    Conversation,
    Database,
    Scenario,
    Time,
    Tool,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.databases import database_hash
from convoscope.conversation.lazy import cached_on_argument
from convoscope.views.eva import eva_reading
from convoscope.views.timing import interruptions, sounds_of

INTENDED = "intended"
TRANSCRIBED = "transcribed"


class TraceEntry(dict[str, Any]):
    """One entry; a key that this kind of entry does not have reads as None, so that `entry["role"]` is safe."""

    def __missing__(self, key: str) -> None:
        return None


def conversation_trace(conversation: Conversation) -> list[TraceEntry]:
    """Speech of user and assistant, grouped by speaker, with tool calls and responses between.

    The assistant's words are as intended. The user's are as the model received them: transcribed in
    a cascade, intended where the model hears the sound. Where one is missing the other is in,
    and `type` says so; but a greeting is always intended.
    """
    trace: list[TraceEntry] = []
    results = conversation.tool_results
    calls = {call.seq: call for call in conversation.tool_calls}
    names = {id(results[seq]): call.name for seq, call in calls.items() if seq in results}
    # The agent does not see what tools of the user do.
    of_user = {id(result) for seq, result in results.items() if seq not in calls}
    for turn in conversation.turns:
        for event in turn.events:
            if isinstance(event, Utterance):
                _say(trace, conversation, event, turn.id)
            elif isinstance(event, ToolCall) and event.seq in calls:
                call = {"tool_name": event.name, "parameters": event.arguments, "type": "tool_call"}
                trace.append(TraceEntry(call, turn_id=turn.id))
            elif isinstance(event, ToolResult) and id(event) not in of_user:
                name = event.name or names.get(id(event), "")
                result = {"tool_name": name, "tool_response": event.result, "type": "tool_response"}
                trace.append(TraceEntry(result, turn_id=turn.id))
    return trace


def _say(trace: list[TraceEntry], conversation: Conversation, utterance: Utterance, turn: int) -> None:
    role = conversation.roles[utterance.speaker]
    if role not in (USER, ASSISTANT):
        return
    meant, heard = utterance.intended or utterance.spoken, utterance.heard
    order = [(heard, TRANSCRIBED), (meant, INTENDED)]
    if role == ASSISTANT or conversation.is_audio_native:
        order.reverse()
    for text, kind in order:
        if text is not None and text.text.strip():
            greets = role == ASSISTANT and turn == 0 and not any(entry["role"] == ASSISTANT for entry in trace)
            if trace and trace[-1]["role"] == role:  # consecutive texts of one speaker are one entry
                trace[-1]["content"] += " " + text.text
            else:
                type_ = INTENDED if greets else kind
                trace.append(TraceEntry(role=role, content=text.text, type=type_, turn_id=turn))
            return


Intervals = list[tuple[float, float]]
"""Spans of sound, each from its start to its end."""


class PipelineType(StrEnum):
    """How the agent hears and speaks."""

    CASCADE = "cascade"
    AUDIO_LLM = "audio_llm"
    S2S = "s2s"


class MetricContext(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a metric may want to know of one call. Turn ids are integers, from 0, the greeting.

    Intended is what a speaker meant to say, transcribed what the other side's recogniser made of it.
    """

    # The record and its ground truth.
    record_id: str
    user_goal: dict[str, Any] = {}
    user_persona: str = ""

    # The scenario's database.
    initial_scenario_db: dict[str, Any] | None = None
    initial_scenario_db_hash: str | None = None
    final_scenario_db: dict[str, Any] | None = None
    final_scenario_db_hash: str | None = None
    expected_scenario_db: dict[str, Any] | None = None

    # The agent as it was configured.
    agent_role: str = ""
    agent_instructions: str = ""
    agent_tools: list[dict[str, Any]] = []
    current_date_time: str = ""

    # What was said, by turn.
    transcribed_assistant_turns: dict[int, str] = {}
    transcribed_user_turns: dict[int, str] = {}
    intended_assistant_turns: dict[int, str] = {}
    intended_user_turns: dict[int, str] = {}
    audio_timestamps_assistant_turns: dict[int, Intervals] = {}
    """Seconds from the start of the conversation; `--turns eva` keeps them as they were logged."""
    audio_timestamps_user_turns: dict[int, Intervals] = {}
    assistant_interrupted_turns: set[int] = set()
    """Turns in which the assistant began while the user was speaking."""
    user_interrupted_turns: set[int] = set()
    """Turns that the user opened while the assistant was speaking."""
    conversation_trace: list[TraceEntry] = []

    # What the tools did.
    tools_called: list[str] = []
    tool_params: list[dict[str, Any]] = []
    tool_responses: list[dict[str, Any]] = []

    # The conversation as a whole.
    num_turns: int = 0
    num_assistant_turns: int = 0
    num_user_turns: int = 0
    num_tool_calls: int = 0
    conversation_finished: bool | None = None
    """Ended with a goodbye; None where the log gives no reason for the end."""
    conversation_ended_reason: str | None = None
    duration_seconds: float | None = None
    pipeline_type: PipelineType | None = None
    latency_assistant_turns: dict[int, float] = {}
    """From the end of the user's speech to the start of the reply, as logged, else from the sound."""

    # Files.
    output_dir: str = ""
    audio_assistant_path: str | None = None
    audio_user_path: str | None = None
    audio_mixed_path: str | None = None

    # Beyond the seed; `to_dict` has them with `--turns eva`.
    turn_rule: str = ""
    tool_called: list[str] = []
    agent_id: str = ""
    language: str = ""
    language_display_name: str = ""
    fallback_turn_ids: set[int] = set()
    sound_latency_assistant_turns: dict[int, float] = {}
    """The same from the sound alone, beside what was logged. One end of each sound is enough."""
    backfilled_user_turns: set[int] = set()
    """Turns in which the user spoke and nothing was transcribed: only the intended text is known."""

    @property
    def is_audio_native(self) -> bool:
        """The model hears the sound itself: what a recogniser wrote beside it was not used."""
        return self.pipeline_type in (PipelineType.AUDIO_LLM, PipelineType.S2S)

    @property
    def is_s2s(self) -> bool:
        return self.pipeline_type is PipelineType.S2S

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: turn ids as text, sets as ascending lists, intervals as pairs."""
        names = self.__struct_fields__[: self.__struct_fields__.index("turn_rule")]
        plain = {name: _plain(getattr(self, name)) for name in names}
        if self.turn_rule == EVA_TURN_RULE:
            plain |= {name: _plain(getattr(self, name)) for name in _EVA_FIELDS}
        return plain


_EVA_FIELDS = ("tool_called", "agent_id", "language", "language_display_name", "fallback_turn_ids", "is_s2s")


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, StrEnum) else value


@cached_on_argument
def metric_context(conversation: Conversation) -> MetricContext:
    """The context of a conversation, by its turn rule."""
    # Without logs there is nothing that the rule could count by.
    by_logs = conversation.turn_rule == EVA_TURN_RULE and conversation.log
    turns = _by_eva_turns(conversation) if by_logs else _by_own_turns(conversation)
    return MetricContext(**_constants(conversation), **turns)


def _constants(conversation: Conversation) -> dict[str, Any]:
    """What does not depend on how the conversation is cut into turns."""
    scenario, agent, outcome = conversation.scenario or Scenario(), conversation.agent, conversation.outcome
    goal, persona = scenario.goal, scenario.persona
    if isinstance(persona, dict):
        persona = persona.get("user_persona") or persona.get("description") or persona.get("name") or ""
    reason = outcome.ended_reason or None
    paths: dict[str, str] = {}
    for track in conversation.recording.tracks if conversation.recording else ():
        if track.path:
            side = conversation.roles.get(track.channels[0], "") if len(track.channels) == 1 else "mixed"
            paths.setdefault(side, str(Path(conversation.source.folder, track.path)))
    return {
        "record_id": str(conversation.dimensions.get("scenario_id") or conversation.id),
        "user_goal": goal if isinstance(goal, dict) else {} if goal is None else {"high_level_user_goal": goal},
        "user_persona": "" if persona is None else str(persona),
        "initial_scenario_db": _content(scenario.before),
        "initial_scenario_db_hash": _hash(scenario.before),
        "final_scenario_db": _content(scenario.after),
        "final_scenario_db_hash": _hash(scenario.after),
        "expected_scenario_db": _content(scenario.expected),
        "agent_role": agent.role,
        "agent_instructions": agent.instructions,
        "agent_tools": [_tool(tool) for tool in agent.tools or ()],
        "current_date_time": scenario.clock,
        "conversation_finished": None if reason is None else reason.strip().casefold() == "goodbye",
        "conversation_ended_reason": reason,
        "duration_seconds": outcome.duration,
        "pipeline_type": None if conversation.pipeline in (None, "text") else PipelineType(conversation.pipeline),
        "output_dir": conversation.source.folder,
        "audio_assistant_path": paths.get(ASSISTANT),
        "audio_user_path": paths.get(USER),
        "audio_mixed_path": paths.get("mixed"),
        "turn_rule": conversation.turn_rule,
        "agent_id": str(agent.extras.get("id") or ""),
        "language": str(conversation.extras.get("language") or ""),
        "language_display_name": str(conversation.extras.get("language_display_name") or ""),
    }


def _content(database: Database | None) -> dict[str, Any] | None:
    return database.content if database is not None and isinstance(database.content, dict) else None


def _hash(database: Database | None) -> str | None:
    """The hash that the log claims, right or wrong; where it claims none, the one of the content."""
    if database is None:
        return None
    return database.hash or (None if database.content is None else database_hash(database.content))


def _tool(tool: Tool) -> dict[str, Any]:
    fields = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.arguments_schema,
        "tool_type": tool.kind,
    }
    return {**tool.extras, **{key: value for key, value in fields.items() if value}}


def _by_own_turns(conversation: Conversation) -> dict[str, Any]:
    """Turn by turn, by the conversation's own turns."""
    texts_of: dict[str, dict[int, Any]] = {
        name: {} for name in ("transcribed_assistant", "transcribed_user", "intended_assistant", "intended_user")
    }
    audio: dict[str, dict[int, Intervals]] = {ASSISTANT: {}, USER: {}}
    fallbacks: set[int] = set()
    start = conversation.started
    sounds = sounds_of(conversation)
    for turn in conversation.turns:
        for role, utterances in ((USER, turn.user), (ASSISTANT, turn.assistant)):
            for name, texts in (
                ("transcribed", [utterance.heard for utterance in utterances]),
                ("intended", [utterance.intended or utterance.spoken for utterance in utterances]),
            ):
                if words := [text.text for text in texts if text is not None and text.text]:
                    texts_of[f"{name}_{role}"][turn.id] = " ".join(words)
            spans = [(round(at - start, 6), round(end - start, 6)) for one in utterances for at, end in sounds[one.seq]]
            if spans:
                audio[role][turn.id] = sorted(spans)
        if any(one.manner == "fallback" for one in turn.assistant):
            fallbacks.add(turn.id)
    interrupted = interruptions(conversation)
    computed = _latencies(conversation, interrupted.by_assistant)
    calls, trace = conversation.tool_calls, conversation_trace(conversation)
    return {
        **{f"{name}_turns": texts for name, texts in texts_of.items()},
        "audio_timestamps_assistant_turns": audio[ASSISTANT],
        "audio_timestamps_user_turns": audio[USER],
        "assistant_interrupted_turns": interrupted.by_assistant,
        "user_interrupted_turns": interrupted.by_user,
        "conversation_trace": trace,
        "tools_called": list(dict.fromkeys(call.name for call in calls)),
        "tool_called": [call.name.lower() for call in calls],
        "tool_params": [{"tool_name": call.name, "tool_parameters": call.arguments} for call in calls],
        "tool_responses": [
            {"tool_name": entry["tool_name"], "tool_response": entry["tool_response"]}
            for entry in trace
            if entry["type"] == "tool_response"
        ],
        "num_turns": len(conversation.turns),
        "num_assistant_turns": sum(1 for turn in conversation.turns if turn.assistant),
        "num_user_turns": sum(1 for turn in conversation.turns if turn.user),
        "num_tool_calls": len(calls),
        "latency_assistant_turns": _logged_latencies(conversation) or computed,
        "sound_latency_assistant_turns": computed,
        "fallback_turn_ids": fallbacks,
        "backfilled_user_turns": {
            turn.id
            for turn in conversation.turns
            if turn.user and turn.id not in texts_of["transcribed_user"] and turn.id in texts_of["intended_user"]
        },
    }


def _latencies(conversation: Conversation, interrupted: set[int]) -> dict[int, float]:
    """From the end of the user's last sound to the start of the reply. Who was interrupted waited for nothing.

    What a log says of the time of an utterance is when it sounded only by the clock of the sound.
    """
    waits: dict[int, float] = {}
    start = conversation.started
    audible = {clock.id for clock in conversation.clocks if clock.kind == "audio"}
    for turn in conversation.turns:
        if turn.id in interrupted:
            continue
        # When the first sound of the reply began, be its end known or not.
        starts = [at for utterance in turn.assistant for at, _ in sounds_of(conversation)[utterance.seq]]
        times = (utterance.time for utterance in turn.assistant)
        starts += [conversation.common(time) for time in times if time is not None and time.clock in audible]
        ended = _ended(conversation, turn.user, audible)
        if ended is not None and starts:
            wait = round(round(min(starts) - start, 6) - round(ended - start, 6), 6)
            if wait >= 0:
                waits[turn.id] = wait
    return waits


def _ended(conversation: Conversation, utterances: Sequence[Utterance], audible: set[str]) -> float | None:
    """When the last sound ended, be its start known or not; None also where just that end was lost."""
    ends: list[float] = []
    for number, utterance in enumerate(utterances, 1):
        own_ends = [end for _, end in sounds_of(conversation)[utterance.seq]]
        time = utterance.time if utterance.time is not None and utterance.time.clock in audible else None
        if time is not None and time.until is not None:
            own_ends.append(conversation.common(Time(time.until, time.clock)))
        elif time is not None and not own_ends and number == len(utterances):
            return None
        ends += own_ends
    return max(ends, default=None)


def _logged_latencies(conversation: Conversation) -> dict[int, float]:
    """The waits that the log lists, one per reply in their order; none where the counts differ."""
    listed = conversation.extras.get("response_latencies")
    if not isinstance(listed, list) or not all(isinstance(one, int | float) for one in listed):
        return {}
    replied = [turn.id for turn in conversation.turns if turn.user and turn.assistant]
    return dict(zip(replied, map(float, listed), strict=True)) if len(replied) == len(listed) else {}


def _by_eva_turns(conversation: Conversation) -> dict[str, Any]:
    """Turn by turn as the published fixtures have it, labels included."""
    reading = eva_reading(conversation)
    names = [name for name in reading.__struct_fields__ if name not in ("turn_of", "log")]
    values = {name: getattr(reading, name) for name in names}
    users = [record for record in conversation.log if record.source == "audit" and record.kind == "user"]
    return {
        **values,
        "conversation_trace": [TraceEntry(entry) for entry in reading.conversation_trace],
        "tools_called": list(dict.fromkeys(one["tool_name"] for one in reading.tool_params)),
        "num_turns": len(users),
        "sound_latency_assistant_turns": reading.latency_assistant_turns,
    }
