"""Conversations through all metrics, and what these observe as columns: the work of one part of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.conversation.remembered import forget
from convoscope.metrics.columns import Conversations
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import Declared
from convoscope.metrics.score import COMPUTED, MEASURED, STATUSES, Observation
from convoscope.scoring.evaluate import derive, observations_of, raised, reduce_one
from convoscope.scoring.profiles import Profile, Profiles, in_order
from convoscope.statistics.columns import Observed, Reduced, filled, from_scores, observed, reduced
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

    def columns(self) -> Observed:
        return observed(self.rows, self.observations)

    def one_by_one(self) -> list[Observation]:
        return self.observations


class _Filled(Conversations):
    """The columns that a metric filled for many conversations, batch after batch; places are rows."""

    def __init__(self) -> None:
        super().__init__(())

    @property
    def rows(self) -> list[int]:
        return self.places

    def take(self, declared: Metric, rows: Sequence[int], conversations: Sequence[Conversation]) -> None:
        """Let the metric look at some conversations. Where it breaks, each is looked at by itself."""
        many = Conversations(conversations)
        try:
            declared.function(many)
            whole = many.is_whole()
        except (Exception, SystemExit):  # whoever is to blame for it
            whole = False
        if whole:
            first = len(self)
            self.places += [rows[place] for place in many.places]
            self.subjects += many.subjects
            self.values += many.values
            self.details += many.details
            self.others |= {first + place: one for place, one in many.others.items()}
            return
        for row, conversation in zip(rows, conversations, strict=True):
            for observation in observations_of(declared, conversation):
                self.add(row, observation)

    def columns(self) -> Observed:
        return filled(self)

    def one_by_one(self) -> list[Observation]:
        return self.observations()


AT_ONCE = 256
"""Conversations that a metric looks at together, at most."""
BYTES_AT_ONCE = 1_000_000
"""And no more than this of their text, so that what is remembered of them stays small."""


class Batch:
    """Scores conversations one after the other, and gives the columns of all of them in the end."""

    def __init__(self, metrics: Sequence[Declared], resources: frozenset[str] = frozenset()) -> None:
        self._metrics = metrics
        self._resources = resources
        self._profiles = Profiles(metrics, resources)
        self._held: dict[int, _Held] = {}
        self._filled: dict[int, _Filled] = {}
        self._profile_of: list[Profile] = []
        self._waiting: list[Conversation] = []
        """Those that metrics which take many have yet to look at; the last rows."""
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._profile_of)

    def add(self, conversation: Conversation, size: int = 0) -> Profile:
        """Measure a conversation, whose text has so many bytes; it gets the next row.

        Metrics that take many look at it later. Until the next is added, what is remembered of it is there.
        """
        if len(self._waiting) >= AT_ONCE or self._bytes > BYTES_AT_ONCE:
            self._look_at_many()
        self._waiting.append(conversation)
        self._bytes += size
        profile = self._profiles.of(conversation)
        row = len(self._profile_of)
        self._profile_of.append(profile)
        held = self._held
        for place, declared in profile.ready:
            if declared.takes_many:
                continue
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

    def _look_at_many(self) -> None:
        first = len(self._profile_of) - len(self._waiting)
        rows: dict[int, list[int]] = {}
        for row in range(first, len(self._profile_of)):
            for place, declared in self._profile_of[row].ready:
                if declared.takes_many:
                    rows.setdefault(place, []).append(row)
        for place, mine in rows.items():
            metric = self._metrics[place]
            if isinstance(metric, Metric):
                conversations = [self._waiting[row - first] for row in mine]
                self._filled.setdefault(place, _Filled()).take(metric, mine, conversations)
        for conversation in self._waiting:
            forget(conversation)
        self._waiting, self._bytes = [], 0

    def columns(self) -> list[MetricColumns]:
        """The columns of every metric that observed anything, in the order of the metrics."""
        self._look_at_many()
        done: dict[int, MetricColumns] = {}
        every: dict[int, _Held | _Filled] = {**self._held, **self._filled}
        for place, mine in every.items():
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


def _columns(place: int, declared: Declared, held: _Held | _Filled) -> MetricColumns:
    columns = None
    with suppress(AttributeError):  # what a metric gave is no observation; `reduce_one` says so
        columns = held.columns()
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


def _by_row(held: _Held | _Filled) -> Iterator[tuple[int, tuple[Observation, ...]]]:
    start = 0
    observations = held.one_by_one()
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
