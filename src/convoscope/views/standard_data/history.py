"""What was said, over the items of one conversation: their histories, questions and answers, each utterance once.

Items of one conversation repeat the same history again and again. A turn at the same position, by the same role and
with the same text is one line; a question and its answer that are in the item's own history are these very lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from convoscope.conversation.model import ASSISTANT, SYSTEM, USER
from convoscope.views.standard_data.events import Fields, identical, keep

ROLES = {
    **dict.fromkeys(("user", "human", "customer", "caller", "client", "end_user", "enduser"), USER),
    **dict.fromkeys(("assistant", "agent", "ai", "bot", "model", "ai_agent", "voice_agent", "chatbot"), ASSISTANT),
    **dict.fromkeys(("system", "developer"), SYSTEM),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""Roles by what logs call the speaker."""
UNKNOWN_SPEAKER = "unknown"
_FEWEST_SHARED = 2


class HistoryLine:
    """One thing that was said. Of a `bare` line only the text is known: it is a question or an answer."""

    __slots__ = ("bare", "extras", "role", "source", "speaker", "text", "when")

    def __init__(self, speaker: str, role: str, text: str | None, source: str, *, bare: bool = True) -> None:
        self.speaker, self.role, self.text, self.source, self.bare = speaker, role, text, source, bare
        self.extras: Fields = {}
        self.when: Any = None

    def agrees(self, other: HistoryLine) -> bool:
        if self.role != other.role or self.text != other.text:
            return False
        return self.when is None or other.when is None or self.when == other.when


class HistoryEntry:
    """What one item says of the talk: the lines of its history, its question, its answer, or its own turn."""

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

    def add(self, fields: Fields, when: Any) -> HistoryEntry:
        """Take what was said out of the fields of an item, and add what is new to the lines."""
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

    def _said_by(self, speaker: str, text: str | None, source: str) -> HistoryLine:
        """A speaker with the name of the agent is the agent; others have the role that their name says."""
        name = speaker.strip().casefold()
        known = ROLES.get(name.replace(" ", "_").replace("-", "_"))
        role = known or (ASSISTANT if name and name == self._agent else name or UNKNOWN_SPEAKER)
        self._speakers.setdefault(role, speaker)
        return HistoryLine(speaker, role, text, source, bare=False)

    def _remember(self, turns: list[Fields], fields: Fields) -> list[HistoryLine]:
        """The lines of a history; those that are known already are the same ones."""
        history: list[HistoryLine] = []
        for turn in turns:
            extras = dict(turn)
            speaker = extras.pop("speaker") if extras.get("speaker") else ""
            text = extras.pop("message") if extras.get("message") is not None else None
            history.append(self._said_by(speaker, text, "conversation_context"))
            history[-1].extras, history[-1].when = extras, extras.get("timestamp")
        start, shared = self._overlap(history)
        is_odd = False
        for index, line in enumerate(history[:shared]):
            earlier = self.lines[start + index]
            if earlier.bare:
                # A turn of a history knows more than a question or an answer.
                earlier.speaker, earlier.extras, earlier.bare = line.speaker, line.extras, False
                earlier.when = earlier.when if line.when is None else line.when
            is_odd = is_odd or earlier.speaker != line.speaker or not identical(earlier.extras, line.extras)
            history[index] = earlier
        self.lines += history[shared:]
        if is_odd:
            keep(fields, "conversation_context", fields["conversation_context"])
        return history

    def _overlap(self, history: Sequence[HistoryLine]) -> tuple[int, int]:
        """Where a history begins among the lines, and how many of them it repeats.

        It begins with them, or, being a window onto the talk, at a later line: then all that follows must agree.
        """
        lines = self.lines
        pairs = zip(lines, history, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0].agrees(pair[1]), pairs))
        if shared or len(history) < _FEWEST_SHARED:
            return 0, shared
        first = history[0].text
        for start in [index for index, line in enumerate(lines[: 1 - _FEWEST_SHARED]) if line.text == first]:
            length = min(len(lines) - start, len(history))
            if all(lines[start + index].agrees(history[index]) for index in range(length)):
                return start, length
        return 0, 0

    def _ask(self, entry: HistoryEntry, task: str | None, answer: str | None) -> None:
        """Find the question and the answer in the item's own history; what is not there is said after it."""
        self._find_exchange(entry, task, answer)
        if entry.asked is None and task is not None:
            entry.asked = HistoryLine(self._speakers.setdefault(USER, USER), USER, task, "agent_task")
            position = len(self.lines) if entry.answered is None else self.lines.index(entry.answered)
            self.lines.insert(position, entry.asked)
        if entry.answered is None and answer is not None:
            speaker = self._speakers.setdefault(ASSISTANT, ASSISTANT)
            entry.answered = HistoryLine(speaker, ASSISTANT, answer, "agent_response")
            self.lines.append(entry.answered)
        self._taken.update(line for line in (entry.asked, entry.answered) if line is not None)

    def _find_exchange(self, entry: HistoryEntry, task: str | None, answer: str | None) -> None:
        """The last exchange of a history with these texts that belongs to no other item.

        A question alone must be the last thing that the user said, an answer alone the last that the agent said.
        """
        users = [line for line in entry.history if line.role == USER]
        replies = [line for line in entry.history if line.role == ASSISTANT]
        reply: HistoryLine | None = None
        for line in reversed(entry.history):
            if line.role == ASSISTANT:
                reply = line
            elif task is not None and line.role == USER and line.text == task and line not in self._taken:
                if reply is not None and answer is not None and reply.text == answer:
                    entry.asked, entry.answered = line, reply
                    return
                if reply is None or (answer is None and line is users[-1]):
                    entry.asked = line
                    return
        if answer is not None and replies and replies[-1].text == answer and replies[-1] not in self._taken:
            entry.answered = replies[-1]
