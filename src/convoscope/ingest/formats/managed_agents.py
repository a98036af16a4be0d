"""Sessions of Anthropic's managed agents: the events of a session, sent and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.conversation import Outcome
from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.kits.trace_timeline import SUBAGENT
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text
from convoscope.ingest.report import Notes

_USAGE = {"prompt_tokens": ("input_tokens",), "completion_tokens": ("output_tokens",)}
_USUAL = ("session.", "span.", "user.tool_confirmation", "agent.thread_", "user.define_outcome")


class ManagedAgentsReader(TalkReader):
    """Events with types such as `user.message` and `agent.tool_use`."""

    name = "anthropic-managed-agents"
    title = "Anthropic managed agents"
    known = frozenset({"id", "processed_at"})

    def detect(self, sample: Sample) -> Detection | None:
        kinds = {as_text(event.get("type")) for value in sample.values for event in _events(value)}
        if any(kind.startswith(("session.status", "session.thread_status")) for kind in kinds) or (
            "user.message" in kinds and any(kind.startswith("agent.") for kind in kinds)
        ):
            return Detection(0.96, "events of a session of a managed agent", "file")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        talk = LoggedTalk(raw=[record.value for record in group.records])
        seen, threads = set[str](), set[str]()
        events = [event for record in group.records for event in _events(record.value)]
        streamed = any(event.get("id") for event in events if event.get("type") == "user.message")
        for event in events:
            kind, id = as_text(event.get("type")), as_text(event.get("id"))
            if kind == "session":
                agent = as_object(event.get("agent"))
                talk.id, talk.agent = as_text(event.get("id")), as_text(agent.get("name"))
                talk.model = as_text(as_object(agent.get("model")).get("id"))
                talk.instructions, talk.tools = as_text(agent.get("system")), as_list(agent.get("tools"))
            elif kind == "session.error":
                talk.outcome = Outcome(
                    error=as_text(as_object(event.get("error")).get("message")) or "the session failed"
                )
            elif streamed and not id:
                continue  # what was sent comes back in the stream, with an id
            elif id and id in seen:
                notes.ignored("event_twice", f"{kind} {id}"[:80])
            elif (plain := _message(kind, event)) is not None:
                seen.add(id)
                # The threads of a session beyond the first are those of agents that work for the agent.
                is_inside = bool(event.get("session_thread_id")) and event["session_thread_id"] in threads
                role = {"user": "orchestrator", "assistant": SUBAGENT} if is_inside else {}
                talk.messages += [
                    TalkMessage(
                        plain=message,
                        at=seconds(event, ("processed_at",)),
                        role=role.get(as_text(message["role"]), ""),
                        caller=SUBAGENT if is_inside else "",
                    )
                    for message in plain
                ]
            elif kind == "user.interrupt":
                talk.messages.append(TalkMessage(plain=event, at=seconds(event, ("processed_at",)), marker="interrupt"))
            elif kind == "session.thread_created":
                threads.add(as_text(event.get("session_thread_id")) or as_text(event.get("thread_id")))
            elif kind == "span.model_request_end" and talk.messages:
                talk.messages[-1].usage = numbers_in(as_object(event.get("model_usage")), _USAGE)
            elif not kind.startswith(_USUAL):
                notes.unknown(f"event.type={kind}")
        yield talk


def _events(value: Any) -> Iterator[JsonObject]:
    """The events of a record: one event, or what a client sent or received, behind the name of its method."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        held = value[1][-1] if isinstance(value[1], list) and value[1] else value[1]
        inner = as_object(held).get("events")
        for member in as_list(inner) if isinstance(inner, list) else [held]:
            yield as_object(member)
    elif isinstance(value, dict) and isinstance(value.get("data"), list) and "type" not in value:
        yield from map(as_object, value["data"])  # a page of the list of events
    elif isinstance(value, dict):
        yield value


def _message(kind: str, event: JsonObject) -> list[JsonObject] | None:
    speaker, _, what = kind.partition(".")
    if what == "message" and speaker in ("user", "agent"):
        return plain_messages({"role": "user" if speaker == "user" else "assistant", "content": event.get("content")})
    if what == "thinking":
        return plain_messages(
            {"role": "assistant", "content": [{"type": "thinking", "thinking": event.get("content") or "(hidden)"}]}
        )
    if what.endswith("tool_use"):
        call = {"type": "tool_use", "id": event.get("id"), "name": event.get("name"), "input": event.get("input")}
        return plain_messages({"role": "assistant", "content": [call]})
    if what.endswith("tool_result"):
        ids = ("custom_tool_use_id", "mcp_tool_use_id", "tool_use_id")
        id = next((event[name] for name in ids if event.get(name)), "")
        block = {"type": "tool_result", "tool_use_id": id, "content": event.get("content")}
        if isinstance(event.get("is_error"), bool):
            block["is_error"] = event["is_error"]
        return plain_messages({"role": "user", "content": [block]})
    return None


READER = ManagedAgentsReader()
