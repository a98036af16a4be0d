"""The conversations that came to a run as it grew: what became of each, and what went wrong first."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Literal

import msgspec

from convoscope.analysis.answer.causes import cause_of
from convoscope.analysis.answer.make import lost_in
from convoscope.conversation import Conversation, from_json
from convoscope.runs.database import CONVERSATIONS, connect
from convoscope.runs.lost import CONTENT
from convoscope.runs.run import Run
from convoscope.views.end_reasons import handed_over_by
from convoscope.views.flow.endings import DONE, LOST, ending_of, outcome_of, shown_value, terminal_of

Became = Literal["done", "lost", "person", "unknown"]


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that ended."""

    id: str
    outcome: Became
    reached: bool | None = None
    """Whether it reached its goal, as the figures of the run count it."""
    text: str
    """What went wrong first, or how it ended."""
    agent: str = ""
    seconds: float | None = None
    """How long it was, by its own times."""
    again: bool = False
    """It was there before, and went on, or got its verdict."""


class Arrivals:
    """Which conversations of a run were not there before.

    By what they say, wherever their record is: a log that is renamed, copied or packed brings nothing new.
    """

    def __init__(self) -> None:
        self._rows: dict[int, list[tuple[str, str]]] = {}
        """By part, the id and the content of each conversation."""

    def pass_over(self, run: Run) -> int:
        """What is in the run by now is no news. Gives how many conversations that are."""
        self._rows = {part: self._read(run, part) for part in run.tables.order}
        return sum(map(len, self._rows.values()))

    def of(self, run: Run) -> list[Arrival]:
        """The conversations that came since the last time, or went on, in the order of the input."""
        order = run.tables.order
        before = Counter(chain.from_iterable(rows for part, rows in self._rows.items() if part not in order))
        came = {part: self._read(run, part) for part in order if part not in self._rows}
        new: list[tuple[int, int, str]] = []
        for part, rows in came.items():
            for number, row in enumerate(rows):
                if before[row] > 0:
                    before[row] -= 1
                else:
                    new.append((part, number, row[0]))
        # Records without ids of their own are called by their file, which may have another name now.
        contents = Counter(content for _, content in before.elements())
        ids = Counter(id for id, _ in before.elements())
        arrivals: list[Arrival] = []
        for part, number, id in new:
            content = came[part][number][1]
            if contents[content] > 0:
                contents[content] -= 1
                continue
            arrivals.append(arrival_of(id, self._conversation(run, part, number), again=ids[id] > 0))
            ids[id] -= 1
        self._rows = {part: came[part] if part in came else self._rows[part] for part in order}
        return arrivals

    @staticmethod
    def _read(run: Run, part: int) -> list[tuple[str, str]]:
        source = run.tables.table(CONVERSATIONS, run.tables.of_part(CONVERSATIONS, part))
        with connect(run.folder) as connection:
            return connection.execute(f"SELECT conversation, {CONTENT} FROM {source} ORDER BY number").fetchall()

    @staticmethod
    def _conversation(run: Run, part: int, number: int) -> Conversation:
        source = run.tables.table(CONVERSATIONS, run.tables.of_part(CONVERSATIONS, part))
        with connect(run.folder) as connection:
            query = f"SELECT body FROM {source} ORDER BY number LIMIT 1 OFFSET {number}"
            ((body,),) = connection.execute(query).fetchall()
        return from_json(body)


class Recent:
    """The conversations that ended within the last hour: each once, as it ended last."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ended: list[tuple[float, Arrival]] = []

    def add(self, at: float, arrival: Arrival) -> None:
        """One that went on replaces what it was before."""
        if arrival.again:
            same = [index for index, (_, one) in enumerate(self._ended) if one.id == arrival.id]
            for index in same[-1:]:
                del self._ended[index]
        self._ended.append((at, arrival))

    def at(self, now: float) -> list[tuple[float, Arrival]]:
        """Those of the hour before, the oldest first."""
        self._ended = [one for one in self._ended if now - one[0] <= self._seconds]
        return self._ended


def arrival_of(id: str, conversation: Conversation, *, again: bool = False) -> Arrival:
    """What became of a conversation."""
    outcome = outcome_of(conversation)
    became: Became = "done" if outcome.name == DONE else "lost" if outcome.name == LOST else "unknown"
    text = ending_of(conversation).replace("_", " ")
    if terminal_of(conversation) == "escalation" or handed_over_by(conversation):
        became = "person"
        state = lost_in(conversation) if conversation.contents.has_states else ""
        text = f"handed over in {state}" if state else "handed over"
    elif became == "lost":
        finding = cause_of(conversation)
        words = finding.words if finding.subject in finding.words else f"{finding.subject} {finding.words}"
        text = words or text or _verdict(conversation) or "no single cause"
    dimensions = conversation.dimensions
    return Arrival(
        id=id,
        outcome=became,
        reached={DONE: True, LOST: False}.get(outcome.name),
        text=text or _verdict(conversation) or "how it ended is not in the log",
        agent=dimensions.get("agent") or dimensions.get("model") or "",
        seconds=_seconds(conversation),
        again=again,
    )


def _verdict(conversation: Conversation) -> str:
    """`resolved: false`."""
    label = conversation.outcome.label
    return "" if label is None else f"{label.field}: {shown_value(label.value)}"


def _seconds(conversation: Conversation) -> float | None:
    moments = [conversation.common(event.time) for event in conversation.timeline if event.time is not None]
    moments += [moment for one in conversation.utterances for span in conversation.sounds(one) for moment in span]
    return round(max(moments) - min(moments), 3) if len(moments) > 1 else None
