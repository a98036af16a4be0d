"""Conversations through all metrics, and what these observe as columns: the work of one part of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.metrics.registry import Declared
from convoscope.metrics.score import COMPUTED, MEASURED, STATUSES, Observation
from convoscope.scoring.evaluate import derive, observations_of, raised, reduce_one
from convoscope.scoring.profiles import Profile, Profiles, in_order
from convoscope.statistics.columns import Observed, Reduced, from_scores, observed, reduced
from convoscope.statistics.within import ConversationScore


class MetricColumns(NamedTuple):
    """What one metric observed in a batch, and what that comes to. `place` is the metric's among those of the run."""

    place: int
    declared: Declared
    observed: Observed
    reduced: Reduced


class _Held:
    """What one metric observed so far, each with the row of its conversation."""

    __slots__ = ("observations", "rows")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.observations: list[Observation] = []


class Batch:
    """Scores conversations one after the other, and gives the columns of all of them in the end."""

    def __init__(self, metrics: Sequence[Declared], resources: frozenset[str] = frozenset()) -> None:
        self._metrics = metrics
        self._resources = resources
        self._profiles = Profiles(metrics, resources)
        self._held: dict[int, _Held] = {}
        self._profile_of: list[Profile] = []

    def __len__(self) -> int:
        return len(self._profile_of)

    def add(self, conversation: Conversation) -> Profile:
        """Measure a conversation; it gets the next row."""
        profile = self._profiles.of(conversation)
        row = len(self._profile_of)
        self._profile_of.append(profile)
        held = self._held
        for place, declared in profile.ready:
            observations = observations_of(declared, conversation)
            mine = held.get(place)
            if mine is None:
                mine = held[place] = _Held()
            mine.observations += observations
            mine.rows += (row,) if len(observations) == 1 else [row] * len(observations)
        for place, need in profile.broken:
            mine = held.setdefault(place, _Held())
            mine.rows.append(row)
            mine.observations.append(raised(need, conversation, self._resources))
        return profile

    def take_back(self) -> None:
        """Forget the conversation that was added last."""
        row = len(self._profile_of) - 1
        del self._profile_of[row]
        for mine in self._held.values():
            while mine.rows and mine.rows[-1] == row:
                mine.rows.pop()
                mine.observations.pop()

    def columns(self) -> list[MetricColumns]:
        """The columns of every metric that observed anything, in the order of the metrics."""
        done: dict[int, MetricColumns] = {}
        for place, mine in self._held.items():
            if mine.rows:
                done[place] = _columns(place, self._metrics[place], mine)
        self._derive(done)
        return [done[place] for place in sorted(done)]

    def _derive(self, done: dict[int, MetricColumns]) -> None:
        """Figures of one conversation from others of it."""
        wanted: dict[int, list[int]] = {}
        for row, profile in enumerate(self._profile_of):
            for place, _ in profile.derived:
                wanted.setdefault(place, []).append(row)
        voices = _Voices(self._metrics, self._profile_of, done)
        for place, declared in in_order(self._metrics):
            if place in wanted:
                mine = _Held()
                mine.rows = wanted[place]
                mine.observations = [
                    derive(declared, {key: voices.of(key, row) for key in declared.inputs}) for row in mine.rows
                ]
                done[place] = _columns(place, declared, mine)


def _columns(place: int, declared: Declared, held: _Held) -> MetricColumns:
    columns = None
    with suppress(AttributeError):  # what a metric gave is no observation; `reduce_one` says so
        columns = observed(held.rows, held.observations)
    found = None if columns is None else reduced(declared, columns)
    if columns is not None and found is not None:
        return MetricColumns(place, declared, columns, found)
    rows: list[int] = []
    observations: list[Observation] = []
    scored_rows: list[int] = []
    scores: list[ConversationScore] = []
    for row, mine in _by_row(held):
        evaluated = reduce_one(declared, mine)
        rows += [row] * len(evaluated.observations)
        observations += evaluated.observations
        scored_rows += [row] * len(evaluated.scores)
        scores += evaluated.scores
    return MetricColumns(place, declared, observed(rows, observations), from_scores(scored_rows, scores))


def _by_row(held: _Held) -> Iterator[tuple[int, tuple[Observation, ...]]]:
    start = 0
    for end in range(1, len(held.rows) + 1):
        if end == len(held.rows) or held.rows[end] != held.rows[start]:
            yield held.rows[start], tuple(held.observations[start:end])
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
        found: dict[int, list[ConversationScore]] = {}
        if place not in self._done:
            return found
        columns = self._done[place].reduced
        rows = zip(columns.row.tolist(), columns.judge, columns.status.tolist(), columns.value.tolist(), strict=True)
        for (row, judge, code, value), reason in zip(rows, columns.reason, strict=True):
            status = STATUSES[code]
            score = ConversationScore(
                judge=judge, status=status, value=value if status == MEASURED else None, reason=reason
            )
            found.setdefault(row, []).append(score)
        return found
