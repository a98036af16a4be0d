"""Conversations through all metrics, and what these observe as columns: the work of one part of a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple, Protocol

from convoscope.conversation import Conversation
from convoscope.conversation.lazy import forget
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import Declared
from convoscope.scores.observation import COMPUTED, Observation
from convoscope.scoring.evaluate import RowBuffer, derive, raised, reduce_one
from convoscope.scoring.profiles import Profile, Profiles, in_order
from convoscope.scoring.session import Session
from convoscope.statistics.within import ConversationScore, Observed, Reduced, conversation_scores, observed, reduced


class MetricColumns(NamedTuple):
    """What one metric observed in a batch, and what that comes to. `metric_index` is its index in the run."""

    metric_index: int
    declared: Declared
    observed: Observed
    reduced: Reduced


CHUNK_SIZE = 512
"""Conversations whose observations become columns together, at most."""
CHUNK_BYTES = 2_000_000
"""And no more than this of their text, so that what is held of them stays small, and near the processor."""


CHUNKS_AHEAD = 2
"""How many of these chunks may wait for answers while the next is read."""


class Answers(Protocol):
    """The answers that metrics that wait have so far, so that no question is asked twice."""

    def get(self, row: int, metric: str) -> Sequence[Observation] | None:
        """What was kept of a metric and the conversation of this row."""

    def keep(self, row: int, metric: str, observations: Sequence[Observation]) -> None:
        """Keep it, so that a kill cannot take it away. Called in the event loop, which runs in a thread of its own."""


class _NoAnswers:
    """Nothing is kept."""

    def get(self, row: int, metric: str) -> None:
        del row, metric

    def keep(self, row: int, metric: str, observations: Sequence[Observation]) -> None:
        del row, metric, observations


Asked = list[tuple[int, Sequence[Observation] | Future[Sequence[Observation]]]]
"""Rows, and what a metric that waits says of each, or will say."""


class _Chunk(NamedTuple):
    """Some rows in a row, whose columns are whole but for what is waited for."""

    first: int
    conversations: list[Conversation]
    asked: dict[int, Asked]
    done: dict[int, MetricColumns]

    @property
    def answers(self) -> list[Future[Sequence[Observation]]]:
        """What was asked in this attempt."""
        return [one for asked in self.asked.values() for _, one in asked if isinstance(one, Future)]


class Batch:
    """Scores conversations one after the other, and gives the columns of all of them in the end."""

    def __init__(
        self, metrics: Sequence[Declared], session: Session | None = None, answers: Answers | None = None
    ) -> None:
        self._metrics = metrics
        self._session = session or Session()
        self._answers = answers or _NoAnswers()
        self._profiles = Profiles(metrics, self._session.names)
        self._profile_of: list[Profile] = []
        self._waiting: list[Conversation] = []
        """The conversations of the last rows, whose observations are no columns yet."""
        self._bytes = 0
        self._asked: dict[int, Asked] = {}
        self._chunks: deque[_Chunk] = deque()
        self._done: list[MetricColumns] = []

    def __len__(self) -> int:
        return len(self._profile_of)

    def add(self, conversation: Conversation, size: int = 0) -> Profile:
        """Measure a conversation, whose text has so many bytes; it gets the next row."""
        if len(self._waiting) >= CHUNK_SIZE or self._bytes > CHUNK_BYTES:
            self._flush()
        profile = self._profiles.of(conversation)
        row = len(self._profile_of)
        self._waiting.append(conversation)
        self._bytes += size
        self._profile_of.append(profile)
        for index, declared in profile.waiting:
            self._asked.setdefault(index, []).append((row, self._ask(row, declared, conversation)))
        return profile

    def _measure(self, first: int) -> dict[int, RowBuffer]:
        """Let each metric look at the conversations that wait, one metric after the other."""
        ready: dict[int, list[list[tuple[int, Conversation]]]] = {}
        held: dict[int, RowBuffer] = {}
        waiting = zip(self._profile_of[first:], enumerate(self._waiting, first), strict=True)
        for profile, same in groupby(waiting, key=itemgetter(0)):
            numbered = [row_and_conversation for _, row_and_conversation in same]
            for index, _ in profile.speaking:
                ready.setdefault(index, []).append(numbered)
            for index, need in profile.broken:
                # In the order of the rows.
                self._observe(held, index, ready.pop(index, ()))
                for row, conversation in numbered:
                    held[index].add(row, (raised(need, conversation, self._session.names),))
        for index, conversations in ready.items():
            self._observe(held, index, conversations)
        return held

    def _observe(
        self, held: dict[int, RowBuffer], index: int, conversations: Iterable[Sequence[tuple[int, Conversation]]]
    ) -> None:
        declared = self._metrics[index]
        if isinstance(declared, Metric):
            buffer, given = held.setdefault(index, RowBuffer()), self._session.given(declared)
            buffer.observe(declared, chain.from_iterable(conversations), given)

    def columns(self) -> list[MetricColumns]:
        """The columns of every metric that observed anything, in the order of the metrics, some rows at a time."""
        self._flush()
        while self._chunks:
            self._finish(self._chunks.popleft())
        return sorted(self._done, key=lambda one: one.metric_index)

    def _ask(
        self, row: int, declared: Metric, conversation: Conversation
    ) -> Sequence[Observation] | Future[Sequence[Observation]]:
        answer = self._answers.get(row, declared.key)
        if answer is not None:
            return answer
        return self._session.ask(declared, conversation, partial(self._answers.keep, row, declared.key))

    def _flush(self) -> None:
        """Make columns of all observations of the conversations that wait."""
        if not self._waiting:
            return
        first = len(self._profile_of) - len(self._waiting)
        done = {index: self._columns(index, buffer) for index, buffer in self._measure(first).items()}
        self._chunks.append(_Chunk(first, self._waiting, self._asked, done))
        self._waiting, self._bytes, self._asked = [], 0, {}
        while self._chunks and (len(self._chunks) > CHUNKS_AHEAD or all(one.done() for one in self._chunks[0].answers)):
            self._finish(self._chunks.popleft())

    def _finish(self, chunk: _Chunk) -> None:
        """Wait for the answers of a chunk, and derive what depends on them. Chunks are finished in order."""
        wait(chunk.answers)  # for all at once: to be woken by each would hold up those who answer
        for index, question in chunk.asked.items():
            buffer = RowBuffer()
            for row, answer in question:
                buffer.add(row, answer.result() if isinstance(answer, Future) else answer)
            chunk.done[index] = self._columns(index, buffer)
        self._derive(range(chunk.first, chunk.first + len(chunk.conversations)), chunk.done)
        self._done += chunk.done.values()
        for conversation in chunk.conversations:
            forget(conversation)

    def _derive(self, rows: range, done: dict[int, MetricColumns]) -> None:
        """Figures of one conversation from others of it."""
        wanted: dict[int, list[int]] = {}
        for row in rows:
            for index, _ in self._profile_of[row].derived:
                wanted.setdefault(index, []).append(row)
        if not wanted:
            return
        voices = _Voices(self._metrics, self._profile_of, done)
        for index, declared in in_order(self._metrics):
            if index in wanted:
                buffer = RowBuffer()
                buffer.rows = wanted[index]
                keys = (*declared.inputs, *declared.instead.values())
                buffer.observations = [
                    derive(declared, {key: voices.of(key, row) for key in keys}) for row in buffer.rows
                ]
                done[index] = self._columns(index, buffer)

    def _columns(self, index: int, held: RowBuffer) -> MetricColumns:
        declared = self._metrics[index]
        with suppress(Exception):  # what a metric gave is no observation, or does not fit; `reduce_one` says so
            columns = observed(held.rows, held.observations)
            if columns.judge.count(COMPUTED) == len(columns.judge):
                return MetricColumns(index, declared, columns, reduced(declared, columns, held.observations))
        fitting = RowBuffer()
        for row, observations_of_row in _by_row(held):
            fitting.add(row, reduce_one(declared, observations_of_row, self._session.panel).observations)
        columns = observed(fitting.rows, fitting.observations)
        return MetricColumns(index, declared, columns, reduced(declared, columns, fitting.observations))


def _by_row(held: RowBuffer) -> Iterator[tuple[int, tuple[Observation, ...]]]:
    start = 0
    observations = held.observations
    for end in range(1, len(held.rows) + 1):
        if end == len(held.rows) or held.rows[end] != held.rows[start]:
            yield held.rows[start], tuple(observations[start:end])
            start = end


class _Voices:
    """What a metric says of one conversation, for figures that are derived from it."""

    def __init__(
        self, metrics: Sequence[Declared], profiles: Sequence[Profile], done: dict[int, MetricColumns]
    ) -> None:
        self._index_of = {declared.key: index for index, declared in enumerate(metrics)}
        self._profiles = profiles
        self._done = done
        self._by_row: dict[str, dict[int, list[ConversationScore]]] = {}

    def of(self, key: str, row: int) -> Sequence[ConversationScore]:
        index = self._index_of.get(key)
        if index is None:
            return ()
        if (absence := self._profiles[row].absent.get(index)) is not None:
            return (
                ConversationScore(judge=COMPUTED, status=absence.status, reason=absence.reason, detail=absence.detail),
            )
        if key not in self._by_row:
            self._by_row[key] = self._read(index)
        return self._by_row[key].get(row, ())

    def _read(self, index: int) -> dict[int, list[ConversationScore]]:
        by_row: dict[int, list[ConversationScore]] = {}
        if index in self._done:
            columns = self._done[index].reduced
            for row, score in zip(columns.row.tolist(), conversation_scores(columns), strict=True):
                by_row.setdefault(row, []).append(score)
        return by_row
