"""What was said, over the items of one conversation: their histories, questions and answers, each thing once.

Items of one conversation tell the same history again and again. A turn that stands at the same place of it, by
the same role and in the same words, is one line; a question and its answer that are in the item's own history
are these very lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from convoscope.conversation.model import ASSISTANT, SYSTEM, USER
from convoscope.views.standard_data.events import Fields, identical, keep

ROLES = {
    **dict.fromkeys(("user", "human", "customer", "caller", "client", "end_user", "enduser"), USER),
    **dict.fromkeys(("assistant", "agent", "ai", "bot", "model", "ai_agent", "voice_agent", "chatbot"), ASSISTANT),
    **dict.fromkeys(("system", "developer"), SYSTEM),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""Roles by what logs call the speaker."""
NOBODY = "unknown"
_FEWEST_SHARED = 2


class HistoryLine:
    """One thing that was said."""

    __slots__ = ("bare", "extras", "role", "source", "speaker", "text", "when")

    def __init__(self, speaker: str, role: str, text: str | None, source: str) -> None:
        self.speaker = speaker
        self.role = role
        self.text = text
        self.source = source
        self.extras: Fields = {}
        self.when: Any = None
        self.bare = True
        """Nothing is known of it but the words: it is a question or an answer."""


class HistoryEntry:
    """What one item tells of the talk: the lines of its history, its question, its answer, or its own turn."""

    __slots__ = ("after", "answered", "asked", "history", "turn")

    def __init__(self) -> None:
        self.history: list[HistoryLine] = []
        self.asked: HistoryLine | None = None
        self.answered: HistoryLine | None = None
        self.turn: HistoryLine | None = None
        self.after: HistoryLine | None = None
        """What happened for the item comes after this line; at the very start for None."""


class Talk:
    """The lines of a conversation, put together item by item."""

    def __init__(self, agent: str = "") -> None:
        self.lines: list[HistoryLine] = []
        self._agent = agent.strip().casefold()
        self._speakers: dict[str, str] = {}
        self._taken: set[HistoryLine] = set()
        """Questions and answers of items."""

    def tell(self, fields: Fields, when: Any) -> HistoryEntry:
        """Take what an item says was said out of its fields, and add what is new to the lines."""
        entry = HistoryEntry()
        context = fields.get("conversation_context")
        if context is not None and isinstance(context.get("turns"), list):
            entry.history = self._remember(context["turns"], fields)
        task, answer = fields.pop("agent_task", None), fields.pop("agent_response", None)
        if task is not None or answer is not None:
            self._ask(entry, task, answer)
        elif context is None and "message" in fields and "speaker" in fields:
            entry.turn = self._said_by(fields["speaker"], fields["message"], "message")
            entry.turn.when = when
            entry.turn.bare = True
            self.lines.append(entry.turn)
        last = [*self.lines[-1:], *entry.history[-1:], *([entry.asked] if entry.asked else [])]
        entry.after = last[-1] if last else None
        return entry

    def role(self, speaker: str) -> str:
        """The role of a speaker. One who is called like the agent is the agent; others are what they are called."""
        name = speaker.strip().casefold()
        role = ROLES.get(name.replace(" ", "_").replace("-", "_"))
        return role or (ASSISTANT if name and name == self._agent else name or NOBODY)

    def _said_by(self, speaker: str, text: str | None, source: str) -> HistoryLine:
        line = HistoryLine(speaker, self.role(speaker), text, source)
        line.bare = False
        self._speakers.setdefault(line.role, speaker)
        return line

    def _bare(self, role: str, text: str, source: str) -> HistoryLine:
        return HistoryLine(self._speakers.setdefault(role, role), role, text, source)

    def _remember(self, turns: list[Fields], fields: Fields) -> list[HistoryLine]:
        """The lines of a history; those that were told before are the same ones."""
        history = [self._line(turn) for turn in turns]
        start, shared = self._overlap(history)
        odd = False
        for place in range(shared):
            earlier = self.lines[start + place]
            if earlier.bare:
                _learn(earlier, history[place])
            odd = odd or not _equal(earlier, history[place])
            history[place] = earlier
        self.lines += history[shared:]
        if odd:
            keep(fields, "conversation_context", fields["conversation_context"])
        return history

    def _line(self, turn: Fields) -> HistoryLine:
        remaining = dict(turn)
        speaker = remaining.pop("speaker") if remaining.get("speaker") else ""
        text = remaining.pop("message") if remaining.get("message") is not None else None
        line = self._said_by(speaker, text, "conversation_context")
        line.extras = remaining
        line.when = remaining.get("timestamp")
        return line

    def _overlap(self, history: Sequence[HistoryLine]) -> tuple[int, int]:
        """Where a history begins among the lines, and how many of them it repeats.

        It begins with them, or, being a window onto the talk, at a later line: then all that follows must agree.
        """
        lines = self.lines
        shared = 0
        for earlier, line in zip(lines, history, strict=False):
            if not _agree(earlier, line):
                break
            shared += 1
        if shared or not history:
            return 0, shared
        if len(history) >= _FEWEST_SHARED:
            first = history[0].text
            for start in [place for place, line in enumerate(lines[: 1 - _FEWEST_SHARED]) if line.text == first]:
                length = min(len(lines) - start, len(history))
                if all(_agree(lines[start + i], history[i]) for i in range(length)):
                    return start, length
        return 0, 0

    def _ask(self, entry: HistoryEntry, task: str | None, answer: str | None) -> None:
        """Find the question and the answer in the item's own history; what is not there is said after it."""
        entry.asked, entry.answered = self._exchange(entry.history, task, answer)
        if entry.asked is None and task is not None:
            entry.asked = self._bare(USER, task, "agent_task")
            place = len(self.lines) if entry.answered is None else self.lines.index(entry.answered)
            self.lines.insert(place, entry.asked)
        if entry.answered is None and answer is not None:
            entry.answered = self._bare(ASSISTANT, answer, "agent_response")
            self.lines.append(entry.answered)
        self._taken.update(line for line in (entry.asked, entry.answered) if line is not None)

    def _exchange(self, history: Sequence[HistoryLine], task: str | None, answer: str | None) -> _Exchange:
        """The last exchange of a history with these words that is no other item's.

        A question alone must be the last thing that the user said, an answer alone the last that the agent said.
        """
        users = [line for line in history if line.role == USER]
        replies = [line for line in history if line.role == ASSISTANT]
        reply: HistoryLine | None = None
        for line in reversed(history):
            if line.role == ASSISTANT:
                reply = line
            elif task is not None and line.role == USER and line.text == task and line not in self._taken:
                if reply is not None and answer is not None and reply.text == answer:
                    return _Exchange(line, reply)
                if reply is None or (answer is None and line is users[-1]):
                    return _Exchange(line, None)
        if answer is not None and replies and replies[-1].text == answer and replies[-1] not in self._taken:
            return _Exchange(None, replies[-1])
        return _Exchange(None, None)


class _Exchange(NamedTuple):
    """A question and its answer, as far as they were found."""

    asked: HistoryLine | None
    answered: HistoryLine | None


def _agree(earlier: HistoryLine, line: HistoryLine) -> bool:
    if earlier.role != line.role or earlier.text != line.text:
        return False
    return earlier.when is None or line.when is None or earlier.when == line.when


def _learn(earlier: HistoryLine, line: HistoryLine) -> None:
    """A question or an answer is told again as a turn of a history, which knows more of it."""
    earlier.speaker, earlier.extras, earlier.bare = line.speaker, line.extras, False
    earlier.when = earlier.when if line.when is None else line.when


def _equal(earlier: HistoryLine, line: HistoryLine) -> bool:
    return earlier.speaker == line.speaker and identical(earlier.extras, line.extras)


__all__ = ["NOBODY", "ROLES", "HistoryEntry", "HistoryLine", "Talk"]
