"""OpenHands events: messages, actions of the agent, and what it observed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.conversation import Outcome
from convoscope.ingest.call_exports import verdicts
from convoscope.ingest.kits.exchanges import TOKENS, numbers_in
from convoscope.ingest.kits.shapes import joined_text, plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, Grouping, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_SPEECH = ("message", "start", "finish")
_QUIET = ("initialize", "change_agent_state", "agent_state_changed", "null", "recall", "system", "condensation")


class OpenHandsReader(TalkReader):
    """Events with a source, and an action or an observation."""

    name = "openhands"
    title = "OpenHands events"
    shown = frozenset({"id", "cause", "source", "action", "observation"})

    def detect(self, sample: Sample) -> Detection | None:
        events = [event for value in sample.values for event in _events(value)]
        fits = sum(
            "source" in event and ("action" in event or "observation" in event or _is_sdk(event)) for event in events
        )
        if not fits or 2 * fits < len(events):
            return None
        # Evaluations write a line for each task, with its history; else the events are one conversation.
        grouping: Grouping = "record" if any(map(_holds_events, sample.values)) else "file"
        return Detection(0.94, "events with a source, actions and observations", grouping)

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        del notes
        values = [record.value for record in group.records]
        for held in [[value] for value in values] if any(map(_holds_events, values)) else [values]:
            yield _talk(held)


def _talk(values: list[Any]) -> LoggedTalk:
    record = as_object(values[0]) if len(values) == 1 and _holds_events(values[0]) else {}
    settings, result = as_object(record.get("metadata")), as_object(record.get("test_result"))
    error = as_text(record.get("error"))
    talk = LoggedTalk(
        id=as_text(record.get("instance_id")),
        agent="OpenHands",
        model=as_text(as_object(settings.get("llm_config")).get("model")),
        labels=verdicts("openhands", {"resolved": as_object(result.get("report")).get("resolved")}),
        outcome=Outcome(error=error),
        extras=filled({"metrics": record.get("metrics"), "instruction": record.get("instruction")}),
        raw=values,
    )
    counted: set[str] = set()
    for event in (event for value in values for event in _events(value)):
        at = seconds(event, ("timestamp",))
        plain = _sdk_message(event) if _is_sdk(event) else _message(event)
        # A user may run commands, too.
        caller = "user" if event.get("source") == "user" and event.get("action") else ""
        written = [TalkMessage(plain=entry, at=at, caller=caller) for entry in plain]
        kind = as_text(event.get("action")) or as_text(event.get("observation")) or as_text(event.get("kind"))
        talk.messages += written or [TalkMessage(plain={"role": "", **event}, at=at, marker=f"event_{kind}")]
        if event.get("action") == "finish" or as_object(event.get("action")).get("kind") == "FinishAction":
            talk.outcome = Outcome(finished=True, ended_reason="finish", error=error)
        talk.tools = talk.tools or as_list(event.get("tools", as_object(event.get("args")).get("tools"))) or None
        response = as_object(as_object(event.get("tool_call_metadata")).get("model_response"))
        talk.model = talk.model or as_text(response.get("model"))
        # The observation of a call, and other calls of one response, repeat its usage.
        if written and event.get("action") and (id := as_text(response.get("id"))) not in counted:
            written[-1].usage = numbers_in(as_object(response.get("usage")), TOKENS)
            counted.update({id} if id else ())
    return talk


def _holds_events(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), list) for name in ("history", "trajectory"))


def _events(value: Any) -> list[JsonObject]:
    """The events of a list, of a record of an evaluation, or one alone. The oldest logs pair actions and results."""
    record = as_object(value)
    listed = value if isinstance(value, list) else record.get("history", record.get("trajectory", [record]))
    return [as_object(event) for member in as_list(listed) for event in (as_list(member) or [member])]


def _message(event: JsonObject) -> list[JsonObject]:
    action, observation = as_text(event.get("action")), as_text(event.get("observation"))
    fields = as_object(event.get("args"))
    is_user = event.get("source") == "user"
    role = "user" if is_user else "assistant"
    if action == "system":
        return plain_messages({"role": "system", "content": as_text(fields.get("content"))})
    if action in _QUIET or observation in _QUIET:
        return []
    if action in _SPEECH:
        texts = (fields.get("content"), fields.get("task"), event.get("message"), fields.get("final_thought"))
        text = next((as_text(text) for text in texts if as_text(text)), "")
        return plain_messages({"role": role, "content": text})
    metadata = as_object(event.get("tool_call_metadata"))
    id = as_text(metadata.get("tool_call_id"))
    if action:
        # What is thought is said with an action, but for the action that is nothing but a thought.
        thought = as_text(fields.get("thought")) if action != "think" else ""
        given = filled({name: held for name, held in fields.items() if name != "thought" or action == "think"})
        name = as_text(metadata.get("function_name")) or action
        call = {"type": "tool_use", "id": id or as_text(event.get("id")), "name": name, "input": given}
        return plain_messages({"role": role, "content": [*([thought] if thought else []), call]})
    if observation:
        cause = id or as_text(event.get("cause"))
        block: JsonObject = {"type": "tool_result", "tool_use_id": cause, "content": event.get("content")}
        if observation == "error":
            block["is_error"] = True
        elif isinstance(event.get("success"), bool):
            block["is_error"] = not event["success"]
        return plain_messages({"role": "tool", "content": [block]})
    return []


def _is_sdk(event: JsonObject) -> bool:
    """Whether an event is of the agent SDK (version 1), which names its kind."""
    return "source" in event and as_text(event.get("kind")).endswith("Event")


def _sdk_message(event: JsonObject) -> list[JsonObject]:
    kind, id = as_text(event.get("kind")), as_text(event.get("tool_call_id"))
    if kind == "MessageEvent":
        return plain_messages(event.get("llm_message"))
    if kind == "SystemPromptEvent":
        return plain_messages({"role": "system", "content": [event.get("system_prompt")]})
    name = as_text(event.get("tool_name"))
    if kind == "ActionEvent":
        call = as_object(event.get("tool_call"))
        given = call.get("arguments", as_object(call.get("function")).get("arguments", event.get("action")))
        use: JsonObject = {"type": "tool_use", "id": id, "name": name, "input": given}
        if as_object(event.get("action")).get("kind") == "FinishAction":
            use = {"type": "text", "text": as_text(as_object(event["action"]).get("message"))}
        thoughts = [{"type": "thinking", "thinking": event.get("reasoning_content")}]
        blocks = [*(thoughts if event.get("reasoning_content") else ()), *as_list(event.get("thought")), use]
        return plain_messages({"role": "assistant", "content": blocks})
    if kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
        seen = as_object(event.get("observation"))
        if seen.get("kind") == "FinishObservation":  # the last message again
            return []
        content = joined_text(event.get("error", seen.get("content", event.get("rejection_reason", seen))))
        failed = kind == "AgentErrorEvent" or seen.get("is_error")
        answer = {"type": "tool_result", "tool_use_id": id, "name": name, "content": content}
        return plain_messages({"role": "tool", "content": [{**answer, **filled({"is_error": failed})}]})
    return []


READER = OpenHandsReader()
