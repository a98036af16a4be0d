"""Content blocks of Anthropic's Messages API: text, tool calls and their results in the content of one message.

A result stands in a message of the role `user`, though no person wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convoscope.conversation import Text, Time
from convoscope.ingest.call_exports import error_of, set_tool_outcome
from convoscope.ingest.control_text import without_control
from convoscope.ingest.record import JsonObject, answer_of, filled, take, take_text, without_payload
from convoscope.ingest.timeline_builder import TimelineBuilder

_THOUGHTS = ("thinking", "redacted_thinking")
_PICTURES = ("image", "document")
_USUAL_IN_BLOCK = frozenset({"caller", "cache_control", "citations", "server_name", "content"})


def has_blocks(content: Any) -> bool:
    """Whether a content holds more than parts of one text: calls, results, thoughts."""
    return isinstance(content, list) and any(isinstance(part, dict) and _is_block(part.get("type")) for part in content)


def _is_block(kind: Any) -> bool:
    return isinstance(kind, str) and (kind.endswith(("tool_use", "tool_result")) or kind in _THOUGHTS)


class MessageBlocks:
    """Puts the blocks of one message into a timeline, in their order."""

    def __init__(
        self, timeline: TimelineBuilder, role: str, name: str, time: Time | None, id: str, extras: JsonObject
    ) -> None:
        self.timeline, self.role, self.name = timeline, role, name
        self.time, self.id, self.extras = time, id, extras
        self.texts: list[str] = []
        self.parts: list[Any] = []

    def add(self, content: Sequence[Any]) -> None:
        for part in content:
            block = dict(part) if isinstance(part, dict) else {"type": "text", "text": part}
            kind = block.get("type")
            if not _is_block(kind):
                self._text(block)
                continue
            self.say()
            if kind in _THOUGHTS:
                self._think(block)
            elif str(kind).endswith("tool_use"):
                self._call(block)
            else:
                self._result(block)
        self.say()
        if self.extras:
            self.timeline.mark("message", self._take_extras(), self.time, self._take_id())

    def say(self) -> None:
        """What was written since the last block of another kind is one utterance."""
        words, control = without_control("\n".join(self.texts), self.role)
        if words.strip() or self.parts:
            intended = Text(words, "message.content") if words else None
            extras = self._take_extras() | ({"content": self.parts} if self.parts else {})
            # Somebody takes part who says something: results alone are nobody's words.
            speaker = self.timeline.participant(self.role, self.name)
            self.timeline.say(speaker, intended=intended, time=self.time, id=self._take_id(), extras=extras)
        if control:
            self.timeline.control(self.timeline.participant(self.role, self.name), control, self.time)
        self.texts, self.parts = [], []

    def _text(self, block: JsonObject) -> None:
        timeline = self.timeline
        if block.get("type") in _PICTURES:
            timeline.notes.ignored(f"{block['type']}_not_read", "", timeline.seq)
        text = take(block, "text")
        if text is not None:
            self.texts.append(text)
            del block["type"]
        if filled(block):
            self.parts.append(without_payload(block, timeline.notes, timeline.seq))

    def _think(self, block: JsonObject) -> None:
        timeline = self.timeline
        timeline.notes.ignored("thinking", "", timeline.seq)
        timeline.mark("reasoning", without_payload(block, timeline.notes, timeline.seq), self.time, self._take_id())

    def _call(self, block: JsonObject) -> None:
        kind = block.pop("type")
        arguments, call_id, name = block.pop("input", None), take_text(block, "id"), take_text(block, "name")
        extras = self._left_over(block) | ({} if kind == "tool_use" else {"type": kind})
        self.timeline.call(name, arguments, call_id=call_id, time=self.time, id=self._take_id(), extras=extras)

    def _result(self, block: JsonObject) -> None:
        timeline = self.timeline
        kind = block.pop("type")
        answer = answer_of(block.pop("content", None), timeline.notes, timeline.seq)
        call_id, failed = take_text(block, "tool_use_id"), take(block, "is_error", kind=bool)
        extras = self._left_over(block) | ({} if kind == "tool_result" else {"type": kind})
        timeline.result(answer, call_id=call_id, time=self.time, id=self._take_id(), extras=extras)
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if failed is not None or code:
            error = error_of(timeline) or (code if isinstance(code, str) else str(answer)[:500])
            set_tool_outcome(timeline, worked=not (failed or code), error=error)

    def _left_over(self, block: JsonObject) -> JsonObject:
        facts = filled(block)
        self.timeline.unknown("block", facts, _USUAL_IN_BLOCK)
        return self._take_extras() | facts

    def _take_id(self) -> str:
        id, self.id = self.id, ""
        return id

    def _take_extras(self) -> JsonObject:
        extras, self.extras = self.extras, {}
        return extras
