"""Messages of the Claude Agent SDK, and transcripts of its sessions: one JSON object for each message."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from convoscope.conversation import Outcome
from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader, oldest_first
from convoscope.ingest.kits.trace_timeline import SUBAGENT
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text
from convoscope.ingest.report import Notes

_USAGE = {"prompt_tokens": ("input_tokens",), "completion_tokens": ("output_tokens",)}
_SPEAKERS = ("user", "assistant")
_KINDS = frozenset({"user", "assistant", "system", "result", "control_request", "control_response", "stream_event"})


_WRAPPED = ("<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>")
"""How the program writes a command of the terminal, and what it printed."""


class ClaudeAgentReader(TalkReader):
    """Messages with a type, each around a message of the Messages API."""

    name = "claude-agent-sdk"
    title = "Claude Agent SDK messages"
    joins_files = True
    known = frozenset({"uuid", "parentUuid", "timestamp"})

    def detect(self, sample: Sample) -> Detection | None:
        messages = [message for value in sample.values for message in _messages(value)]
        around = [
            entry
            for entry in messages
            if entry.get("type") in ("user", "assistant") and "role" in as_object(entry.get("message"))
        ]
        has_session = any(
            "session_id" in entry or "sessionId" in entry or "parent_tool_use_id" in entry for entry in around
        )
        return Detection(0.94, "messages of the Claude Agent SDK", "file") if around and has_session else None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for id, messages in _by_session(group).items():
            if id in group.apart:
                continue
            talk = LoggedTalk(raw=messages)
            in_order = [message for _, message in oldest_first(messages, "timestamp")] if group.files else messages
            for message in _counted_once(_once(in_order, notes)):
                _take(message, talk, notes)
            yield talk

    def part_keys(self, group: RecordGroup) -> Iterator[list[str]]:
        yield from ([id] for id in _by_session(group) if id)

    def parts(self, group: RecordGroup, keys: Collection[str]) -> Iterator[tuple[str, Any]]:
        yield from ((id, {"messages": held}) for id, held in _by_session(group).items() if id in keys)


def _once(messages: Iterable[JsonObject], notes: Notes) -> Iterator[JsonObject]:
    """Messages without those that are there twice: a session that is resumed repeats what was said in it."""
    seen: set[str] = set()
    for message in messages:
        id = as_text(message.get("uuid"))
        if id and id in seen:
            notes.ignored("message_twice", id[:80])
        else:
            seen.add(id)
            yield message


def _by_session(group: RecordGroup) -> dict[str, list[JsonObject]]:
    """The messages of each session; one that names no session belongs to the session before it, the first to the next.

    Clients send `default` for a session that has no id yet.
    """
    sessions: dict[str, list[JsonObject]] = {}
    unnamed: list[JsonObject] = []
    latest = ""
    for record in group.records:
        whole = as_object(record.value)
        around = [{name: value for name, value in whole.items() if name != "messages"}] if "messages" in whole else []
        for message in [*around, *_messages(record.value)] or [whole]:
            id = _session(message)
            latest = id if id not in ("", "default") else latest
            if latest:
                sessions.setdefault(latest, []).extend([*unnamed, message])
                unnamed = []
            else:
                unnamed.append(message)
    return sessions or {"": unnamed}


def _counted_once(messages: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Messages; of an answer only the last line keeps its tokens: each block is a line, and counts the whole answer."""
    kept = list(messages)
    ids = [as_text(as_object(message.get("message")).get("id")) for message in kept]
    last = {id: index for index, id in enumerate(ids) if id}
    for index, (id, message) in enumerate(zip(ids, kept, strict=True)):
        is_last = not id or last[id] == index
        yield message if is_last else {**message, "message": {**message["message"], "usage": None}}


def _session(message: JsonObject) -> str:
    return as_text(message.get("session_id", message.get("sessionId")))


def _take(message: JsonObject, talk: LoggedTalk, notes: Notes) -> None:
    kind, inner = as_text(message.get("type")), as_object(message.get("message"))
    if kind == "system" and message.get("subtype") == "init":
        talk.id, talk.model = as_text(message.get("session_id")), as_text(message.get("model"))
        talk.tools = as_list(message.get("tools")) or None
    elif kind in ("user", "assistant") and "role" in inner:
        is_inside = bool(message.get("parent_tool_use_id") or message.get("isSidechain"))
        talk.id = talk.id if talk.id not in ("", "default") else _session(message)
        talk.model = talk.model or as_text(inner.get("model")).removeprefix("<synthetic>")
        usage = numbers_in(as_object(inner.get("usage")), _USAGE)
        for plain in plain_messages(inner):
            role = "" if not is_inside else SUBAGENT if kind == "assistant" else "orchestrator"
            caller = SUBAGENT if is_inside else ""
            at = seconds(message, ("timestamp",))
            marker = _marker(message, plain)
            entry = TalkMessage(plain=plain, at=at, role=role, usage=usage, caller=caller, marker=marker)
            talk.messages.append(entry)
    elif kind == "result":
        talk.outcome = _outcome(message)
        talk.extras = talk.extras | {"cost": message.get("total_cost_usd"), "turns": message.get("num_turns")}
    elif "type" in message and kind not in _KINDS:
        notes.ignored(f"message_{kind or 'without_type'}")


def _marker(message: JsonObject, plain: JsonObject) -> str:
    """What a message is that neither the user nor the agent said: the program wrote it for one of them."""
    text = "\n".join(as_text(block.get("text")) for block in plain["content"] if block["type"] == "text").strip()
    if message.get("isCompactSummary") is True:
        return "summary_of_before"
    if message.get("isApiErrorMessage") is True:
        return "error_of_the_service"
    if text.startswith("[Request interrupted by user"):
        return "interrupt"
    is_program = message.get("isMeta") is True or (plain["role"] == "user" and text.startswith(_WRAPPED))
    return "message_of_the_program" if is_program else ""


def _messages(value: Any) -> Iterator[JsonObject]:
    record = as_object(value)
    if isinstance(record.get("messages"), list):
        for member in record["messages"]:
            yield from _messages(member)
    elif isinstance(record.get("message"), dict) and "direction" in record:
        yield record["message"]
    elif isinstance(record.get("type"), str):
        yield record


def _outcome(result: JsonObject) -> Outcome:
    subtype, duration = as_text(result.get("subtype")), as_number(result.get("duration_ms"))
    failed = result.get("is_error") is True or subtype.startswith("error_during")
    return Outcome(
        finished=subtype == "success" if subtype else None,
        ended_reason=subtype,
        error=as_text(result.get("result")) or subtype if failed else "",
        duration=None if duration is None else duration / 1000,
    )


READER = ClaudeAgentReader()
