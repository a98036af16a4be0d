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
    """What one metric observed in a batch, and what that comes to. `place` is the metric's among those of the run."""

    place: int
    declared: Declared
    observed: Observed
    reduced: Reduced


AT_ONCE = 512
"""Conversations whose observations become columns together, at most."""
BYTES_AT_ONCE = 2_000_000
"""And no more than this of their text, so that what is held of them stays small, and near the processor."""


STRETCHES_AHEAD = 2
"""How many of these stretches may wait for answers while the next is read."""


class Answers(Protocol):
    """What metrics that wait have been told so far, so that nobody is asked the same twice."""

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


class _Stretch(NamedTuple):
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
        self._stretches: deque[_Stretch] = deque()
        self._done: list[MetricColumns] = []

    def __len__(self) -> int:
        return len(self._profile_of)

    def add(self, conversation: Conversation, size: int = 0) -> Profile:
        """Measure a conversation, whose text has so many bytes; it gets the next row."""
        if len(self._waiting) >= AT_ONCE or self._bytes > BYTES_AT_ONCE:
            self._flush()
        profile = self._profiles.of(conversation)
        row = len(self._profile_of)
        self._waiting.append(conversation)
        self._bytes += size
        self._profile_of.append(profile)
        for place, declared in profile.waiting:
            self._asked.setdefault(place, []).append((row, self._ask(row, declared, conversation)))
        return profile

    def _measure(self, first: int) -> dict[int, RowBuffer]:
        """Let each metric look at the conversations that wait, one metric after the other."""
        ready: dict[int, list[list[tuple[int, Conversation]]]] = {}
        held: dict[int, RowBuffer] = {}
        waiting = zip(self._profile_of[first:], enumerate(self._waiting, first), strict=True)
        for profile, same in groupby(waiting, key=itemgetter(0)):
            numbered = [row_and_conversation for _, row_and_conversation in same]
            for place, _ in profile.speaking:
                ready.setdefault(place, []).append(numbered)
            for place, need in profile.broken:
                # In the order of the rows.
                self._observe(held, place, ready.pop(place, ()))
                for row, conversation in numbered:
                    held[place].add(row, (raised(need, conversation, self._session.names),))
        for place, conversations in ready.items():
            self._observe(held, place, conversations)
        return held

    def _observe(
        self, held: dict[int, RowBuffer], place: int, conversations: Iterable[Sequence[tuple[int, Conversation]]]
    ) -> None:
        declared = self._metrics[place]
        if isinstance(declared, Metric):
            buffer, given = held.setdefault(place, RowBuffer()), self._session.given(declared)
            buffer.observe(declared, chain.from_iterable(conversations), given)

    def columns(self) -> list[MetricColumns]:
        """The columns of every metric that observed anything, in the order of the metrics, some rows at a time."""
        self._flush()
        while self._stretches:
            self._finish(self._stretches.popleft())
        return sorted(self._done, key=lambda one: one.place)

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
        done = {place: _columns(place, self._metrics[place], buffer) for place, buffer in self._measure(first).items()}
        self._stretches.append(_Stretch(first, self._waiting, self._asked, done))
        self._waiting, self._bytes, self._asked = [], 0, {}
        while self._stretches and (
            len(self._stretches) > STRETCHES_AHEAD or all(one.done() for one in self._stretches[0].answers)
        ):
            self._finish(self._stretches.popleft())

    def _finish(self, stretch: _Stretch) -> None:
        """Wait for the answers of a stretch, and derive what depends on them. Stretches are finished in order."""
        wait(stretch.answers)  # for all at once: to be woken by each would hold up those who answer
        for place, question in stretch.asked.items():
            buffer = RowBuffer()
            for row, answer in question:
                buffer.add(row, answer.result() if isinstance(answer, Future) else answer)
            stretch.done[place] = _columns(place, self._metrics[place], buffer)
        self._derive(range(stretch.first, stretch.first + len(stretch.conversations)), stretch.done)
        self._done += stretch.done.values()
        for conversation in stretch.conversations:
            forget(conversation)

    def _derive(self, rows: range, done: dict[int, MetricColumns]) -> None:
        """Figures of one conversation from others of it."""
        wanted: dict[int, list[int]] = {}
        for row in rows:
            for place, _ in self._profile_of[row].derived:
                wanted.setdefault(place, []).append(row)
        if not wanted:
            return
        voices = _Voices(self._metrics, self._profile_of, done)
        for place, declared in in_order(self._metrics):
            if place in wanted:
                buffer = RowBuffer()
                buffer.rows = wanted[place]
                buffer.observations = [
                    derive(declared, {key: voices.of(key, row) for key in declared.inputs}) for row in buffer.rows
                ]
                done[place] = _columns(place, declared, buffer)


def _columns(place: int, declared: Declared, held: RowBuffer) -> MetricColumns:
    with suppress(Exception):  # what a metric gave is no observation, or does not fit; `reduce_one` says so
        columns = observed(held.rows, held.observations)
        if columns.judge.count(COMPUTED) == len(columns.judge):
            return MetricColumns(place, declared, columns, reduced(declared, columns, held.observations))
    fitting = RowBuffer()
    for row, observations_of_row in _by_row(held):
        fitting.add(row, reduce_one(declared, observations_of_row).observations)
    columns = observed(fitting.rows, fitting.observations)
    return MetricColumns(place, declared, columns, reduced(declared, columns, fitting.observations))


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
        self._places = {declared.key: place for place, declared in enumerate(metrics)}
        self._profiles = profiles
        self._done = done
        self._by_row: dict[str, dict[int, list[ConversationScore]]] = {}

    def of(self, key: str, row: int) -> Sequence[ConversationScore]:
        place = self._places.get(key)
        if place is None:
            return ()
        if (absence := self._profiles[row].absent.get(place)) is not None:
            return (
                ConversationScore(judge=COMPUTED, status=absence.status, reason=absence.reason, detail=absence.detail),
            )
        if key not in self._by_row:
            self._by_row[key] = self._read(place)
        return self._by_row[key].get(row, ())

    def _read(self, place: int) -> dict[int, list[ConversationScore]]:
        by_row: dict[int, list[ConversationScore]] = {}
        if place in self._done:
            columns = self._done[place].reduced
            for row, score in zip(columns.row.tolist(), conversation_scores(columns), strict=True):
                by_row.setdefault(row, []).append(score)
        return by_row
