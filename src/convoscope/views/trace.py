"""`conversation_trace`: one list of what was said and done, in the order in which the agent met it."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import ASSISTANT, USER, Conversation, ToolCall, ToolResult, Utterance

INTENDED = "intended"
TRANSCRIBED = "transcribed"


class TraceEntry(dict[str, Any]):
    """One entry; a key that this kind of entry does not have reads as None, so that `entry["role"]` is safe."""

    def __missing__(self, key: str) -> None:
        return None


def conversation_trace(conversation: Conversation) -> list[TraceEntry]:
    """Speech of user and assistant, grouped by speaker, with tool calls and responses between.

    The assistant's words are as intended. The user's are as the model received them: transcribed in
    a cascade, intended where the model hears the sound. Where one is missing the other stands in,
    and `type` says so; but a greeting is always intended.
    """
    trace: list[TraceEntry] = []
    answers = {id(result): call for call, result in _answered(conversation)}
    for turn in conversation.turns:
        for event in turn.events:
            match event:
                case Utterance():
                    _say(trace, conversation, event, turn.id)
                case ToolCall():
                    entry = TraceEntry(tool_name=event.name, parameters=event.arguments, type="tool_call")
                    trace.append(TraceEntry(entry, turn_id=turn.id))
                case ToolResult():
                    call = answers.get(id(event))
                    name = event.name or (call.name if call else "")
                    entry = TraceEntry(tool_name=name, tool_response=event.result, type="tool_response")
                    trace.append(TraceEntry(entry, turn_id=turn.id))
                case _:
                    pass
    return trace


def _answered(conversation: Conversation) -> list[tuple[ToolCall, ToolResult]]:
    results = conversation.tool_results
    return [(call, results[call.seq]) for call in conversation.tool_calls if call.seq in results]


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
            _add(trace, TraceEntry(role=role, content=text.text, type=INTENDED if greets else kind, turn_id=turn))
            return


def _add(trace: list[TraceEntry], entry: TraceEntry) -> None:
    """Consecutive words of one speaker are one entry."""
    if trace and trace[-1]["role"] == entry["role"]:
        trace[-1]["content"] += " " + entry["content"]
    else:
        trace.append(entry)
