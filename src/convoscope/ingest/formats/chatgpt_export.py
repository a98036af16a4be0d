"""The export of ChatGPT: trees of messages, of which the last branch is the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from convoscope.ingest.io.json import parsed
from convoscope.ingest.kits.shapes import UNKNOWN_ROLE, plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_DEEPEST = 100_000
_SPEECH = "audio_transcription"
_CITED = re.compile("[ ]?\ue200[^\ue200\ue201]{0,2000}\ue201")
"""Where the page shows a source: `cite`, `turn0search1`, between signs of its own."""


class ChatGPTReader(TalkReader):
    """Conversations with a mapping of nodes."""

    name = "chatgpt-export"
    title = "ChatGPT export"
    shown = frozenset({"current_node", "weight", "is_visually_hidden_from_conversation"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            first = as_object(next(iter(as_object(value.get("mapping")).values()), None))
            if "message" in first and ("parent" in first or "children" in first):
                return Detection(0.96, '"mapping" of nodes with messages', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            value = as_object(record.value)
            nodes = {name: as_object(node) for name, node in as_object(value.get("mapping")).items()}
            path = _branch(nodes, as_text(value.get("current_node")))
            if path and nodes[path[0]].get("parent") is not None:
                notes.set_aside("parent_not_found", path[0][:80])
            on_path = frozenset(path)
            others = [node["message"] for name, node in nodes.items() if name not in on_path and node.get("message")]
            if others:
                notes.ignored("message_of_another_branch", count=len(others))
            messages = [message for name in path for message in _messages(as_object(nodes[name].get("message")), notes)]
            models = [as_text(_metadata(nodes[name]).get("model_slug")) for name in path]
            yield LoggedTalk(
                id=as_text(value.get("conversation_id")) or as_text(value.get("id")),
                messages=messages,
                agent=as_text(value.get("gizmo_id")),
                model=next(filter(None, reversed(models)), "") or as_text(value.get("default_model_slug")),
                extras=filled({"title": value.get("title"), "gizmo": value.get("gizmo_id"), "other_branches": others}),
                raw={**value, "mapping": list(as_object(value.get("mapping")).values())},
            )


def _branch(nodes: dict[str, JsonObject], leaf: str) -> list[str]:
    """The names of the nodes from the root to the current one; without one, to the newest leaf."""
    if leaf not in nodes:
        leaves = [name for name, node in nodes.items() if not as_list(node.get("children"))]
        leaf = max(
            leaves, key=lambda name: seconds(as_object(nodes[name].get("message")), ("create_time",)) or 0.0, default=""
        )
    path: list[str] = []
    while leaf in nodes and leaf not in path and len(path) < _DEEPEST:
        path.append(leaf)
        leaf = as_text(nodes[leaf].get("parent"))
    return path[::-1]


def _metadata(node: JsonObject) -> JsonObject:
    return as_object(as_object(node.get("message")).get("metadata"))


def _messages(message: JsonObject, notes: Notes) -> Iterator[TalkMessage]:
    at = seconds(message, ("create_time",))
    if as_object(message.get("metadata")).get("is_visually_hidden_from_conversation") is True:
        yield TalkMessage(plain={"role": "", **message}, at=at, marker="hidden_message")
        return
    author, content = as_object(message.get("author")), as_object(message.get("content"))
    role, kind = as_text(author.get("role")) or UNKNOWN_ROLE, as_text(content.get("content_type"))
    parts: list[Any] = [part for part in as_list(content.get("parts")) if part not in ("", None)]
    is_spoken = any(as_object(part).get("content_type") == _SPEECH for part in parts)
    text = next((as_text(content[name]) for name in ("text", "result") if content.get(name)), "")
    body: Any = [_plain_part(part, notes) for part in parts] or ([_plain_part(text, notes)] if text else [])
    if kind == "thoughts":
        body = [{"type": "thinking", "thinking": thought} for thought in as_list(content.get("thoughts"))]
    elif kind == "reasoning_recap":
        body = [{"type": "thinking", "thinking": content.get("content")}]
    elif role == "tool":
        seen = "\n".join(body) if all(isinstance(part, str) for part in body) else body
        answer = {"type": "tool_result", "name": as_text(author.get("name")), "content": seen}
        body = [{**answer, "is_error": True} if kind == "system_error" else answer]
    elif role == "assistant" and as_text(message.get("recipient")) not in ("", "all"):
        asked = "\n".join(map(str, body))
        # Code and queries are no JSON, and need not be.
        given = parsed(asked) if isinstance(parsed(asked), dict) else {"input": asked}
        body = [{"type": "tool_use", "name": as_text(message["recipient"]), "input": given}]
    plain = plain_messages({"role": role, "content": body, "id": message.get("id")})
    extras = {"content": parts} if any(_CITED.search(part) for part in parts if isinstance(part, str)) else {}
    yield from (TalkMessage(plain=entry, at=at, is_spoken=is_spoken, extras=extras) for entry in plain)
    if not plain and message and role != "system":
        # Memories and what the user said of themselves have no words of the talk.
        marker = "message_without_text" if kind in ("", "text", "multimodal_text") else f"content_{kind}"[:80]
        yield TalkMessage(plain={"role": "", **message}, at=at, marker=marker)


def _plain_part(part: Any, notes: Notes) -> Any:
    """A part of a message: of one that was spoken, its words; of a text, without the marks of sources."""
    if as_object(part).get("content_type") == _SPEECH:
        return as_text(as_object(part).get("text"))
    if not isinstance(part, str):
        return part
    text, count = _CITED.subn("", part)
    if count:
        notes.ignored("mark_of_a_source", count=count)
    return text


READER = ChatGPTReader()
