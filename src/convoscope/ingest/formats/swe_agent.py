"""SWE-agent trajectories: the history of messages between an agent and its environment."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.conversation import Outcome
from convoscope.ingest.kits.shapes import joined_text, plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader, empty_message
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_WITHIN = {"assistant": "subagent", "user": "orchestrator"}
"""Roles in the talk with another agent than that of the first message: a subroutine, a reviewer."""


class SWEAgentReader(TalkReader):
    """A trajectory with its history."""

    name = "swe-agent"
    title = "SWE-agent trajectories"
    shown = frozenset({"is_demo", "message_type"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            history, steps = as_list(value.get("history")), value.get("trajectory")
            if isinstance(steps, list) and any("role" in as_object(entry) for entry in history):
                return Detection(0.96, '"trajectory" and "history" of messages', "record")
            if any({"action", "observation", "response"} <= as_object(step).keys() for step in as_list(steps)):
                return Detection(0.96, '"trajectory" of actions and observations', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            value = as_object(record.value)
            info = as_object(value.get("info"))
            messages: list[TalkMessage] = []
            history = [as_object(entry) for entry in as_list(value.get("history"))]
            if not history:
                notes.inferred("messages_of_steps", "the trajectory has no history")
                history = [entry for step in as_list(value.get("trajectory")) for entry in _of_step(as_object(step))]
            main = next((as_text(entry.get("agent")) for entry in history), "")
            for entry in history:
                demo = "demonstration" if entry.get("is_demo") is True else ""
                agent = as_text(entry.get("agent"))
                role = _WITHIN.get(as_text(entry.get("role")), "") if agent not in ("", main) else ""
                plain = plain_messages(_with_call_id(entry))
                name = agent if role else ""
                messages += [TalkMessage(plain=each, marker=demo, role=role, name=name) for each in plain]
                if not plain:
                    messages.append(empty_message(entry))
            status = as_text(info.get("exit_status"))
            yield LoggedTalk(
                id=as_text(value.get("instance_id")),
                messages=messages,
                agent="SWE-agent",
                outcome=Outcome(
                    finished=status.startswith("submitted") if status else None,
                    ended_reason=status,
                    extras=filled({"submission": info.get("submission")}),
                ),
                extras=filled({"environment": value.get("environment"), "model_stats": info.get("model_stats")}),
                raw=value,
            )


def _of_step(step: JsonObject) -> list[JsonObject]:
    """The answer of the model, and what its action gave, as a history has them."""
    return [
        {"role": "assistant", "content": as_text(step.get("response")) or as_text(step.get("thought"))},
        {"role": "user", "content": as_text(step.get("observation"))},
    ]


def _with_call_id(entry: JsonObject) -> JsonObject:
    thoughts = as_list(entry.get("thinking_blocks"))
    if thoughts:
        content = entry.get("content")
        entry = {**entry, "content": [*thoughts, *(content if isinstance(content, list) else [content])]}
    ids = as_list(entry.get("tool_call_ids"))
    if entry.get("role") != "tool":
        return entry
    return {**entry, "content": joined_text(entry.get("content"))} | ({"tool_call_id": ids[0]} if ids else {})


READER = SWEAgentReader()
