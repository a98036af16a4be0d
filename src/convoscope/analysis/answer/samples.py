"""What each conversation adds to a figure, and what kind of conversation it is: arrays by the number in the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.conversation import DIMENSIONS, Conversation, from_json
from convoscope.conversation.lazy import cached_on_argument
from convoscope.runs.database import CONVERSATIONS, SCORES, connect, quoted
from convoscope.runs.dimensions import Dimension, Dimensions
from convoscope.runs.measured import measured_columns
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.scores.reducers import ACROSS, Sums
from convoscope.statistics.differences import Codes, FigureSample, Floats
from convoscope.statistics.summary import Figure, is_bounded, least_value
from convoscope.text.folding import comparable
from convoscope.views.background import NO, YES
from convoscope.views.machines import NO_DIALOGUE

if TYPE_CHECKING:
    import duckdb

MAX_DIMENSIONS = 12
MAX_FIELDS = 200
MAX_VALUES = 40
"""A fact of more values is no kind of conversations."""
NO_VALUE = "none"
_MOST_KEPT = 3_000_000
"""Pairs of numbers of samples that are in memory at the same time, about."""


class SubjectValues(NamedTuple):
    """The values of turns, calls or items, each with the number of its conversation."""

    value: Floats
    number: Codes


class _FactColumn(NamedTuple):
    index_of: dict[str, int]
    codes: NDArray[np.int8]


def _values(index_of: Mapping[str, int]) -> list[str]:
    return [NO, YES] if set(index_of) == {NO_VALUE, YES} else list(index_of)


_decode = msgspec.json.Decoder(dict[str, str]).decode


@cached_on_argument
def _fields_of(run: Run) -> dict[str, _FactColumn]:
    """The fields of the records of a run that have few values, one byte for each conversation; read once."""
    columns: dict[str, _FactColumn] = {}
    count = run.summary.conversations
    with connect(run.folder) as connection:
        rows = connection.execute(
            f"SELECT number, facts FROM {run.table(CONVERSATIONS)} WHERE facts IS NOT NULL ORDER BY number"
        )
        while batch := rows.fetchmany(5000):
            _add_fields(columns, batch, count)
    return {name: column for name, column in columns.items() if len(column.index_of) <= MAX_VALUES}


def _add_fields(columns: dict[str, _FactColumn], rows: Sequence[tuple[int, str]], count: int) -> None:
    """Many conversations say the same, such as their day: each text is decoded once."""
    numbers, texts = zip(*rows, strict=True)
    index_of = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    codes: dict[str, list[int]] = {}
    for index, text in enumerate(index_of):
        for name, value in _decode(text).items():
            column = columns.get(name)
            if column is None and len(columns) < MAX_FIELDS:
                column = columns[name] = _FactColumn({NO_VALUE: 0}, np.zeros(count, dtype=np.int8))
            if column is not None and len(column.index_of) <= MAX_VALUES:
                if name not in codes:
                    codes[name] = [0] * len(index_of)
                codes[name][index] = column.index_of.setdefault(value, len(column.index_of))
    here, which = np.array(numbers), np.array([index_of[text] for text in texts])
    for name, own in codes.items():
        columns[name].codes[here] = np.array(own, dtype=np.int8)[which]


class ConversationArrays(Protocol):
    """What is known of each conversation, and what it adds to figures: of one run, or of several together."""

    count: int

    def dimension(self, name: str) -> Dimension: ...
    def of(self, figure: Figure) -> FigureSample | None: ...
    def of_subject(self, figure: Figure, kind: str, subject: str) -> FigureSample: ...

    @property
    def dimension_names(self) -> list[str]: ...
    @property
    def fields(self) -> dict[str, Dimension]: ...
    @property
    def user_names(self) -> Dimension: ...
    @property
    def talks(self) -> NDArray[np.bool_]: ...

    @cached_property
    def scenarios(self) -> Codes:
        """The scenario of each conversation; -1 for none."""
        codes = self.dimension("scenario_id").codes
        if not self.dimension("scenario_id").values:
            return codes
        for name in ("dataset", "domain"):  # scenarios of one name are others in another data set
            other = self.dimension(name)
            codes = np.where(codes >= 0, codes * (len(other.values) + 1) + other.codes + 1, -1)
        known = np.flatnonzero(codes >= 0)
        codes[known] = np.unique(codes[known], return_inverse=True)[1]
        return codes

    @cached_property
    def clusters(self) -> Codes:
        """What is independent: the scenario of a conversation, else its user, else the conversation."""
        number = np.arange(self.count)
        own = np.where(self.users >= 0, self.users, self.count + number)
        _, clusters = np.unique(np.where(self.scenarios >= 0, self.scenarios, -1 - own), return_inverse=True)
        return clusters.astype(np.int64)

    @cached_property
    def users(self) -> Codes:
        """The user of each conversation; -1 for none, and where there is a single one."""
        users = self.user_names
        return users.codes if len(users.values) > 1 else np.broadcast_to(np.int64(-1), self.count)


class Samples(ConversationArrays):
    """The conversations of a run as arrays. Each column is read once, when it is asked for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._connection: duckdb.DuckDBPyConnection = connect(run.folder)
        self.count = run.summary.conversations
        # No cache of methods: that would point back at this object, whose arrays are large, and keep it alive.
        self._dimensions = Dimensions(self._connection, run.table(CONVERSATIONS), self.count, np.int64)
        self._samples: dict[tuple[str, ...], FigureSample | None] = {}

    @cached_property
    def user_names(self) -> Dimension:
        """Who talks with the agent, as the records say."""
        return self._dimensions.column("user_id")

    @cached_property
    def fields(self) -> dict[str, Dimension]:
        """Fields of the records that have few values; conversations without one have the value `none`."""
        known = set(self.dimension_names)
        return {
            name: Dimension(_values(one.index_of), one.codes.astype(np.int64))
            for name, one in _fields_of(self._run).items()
            if name not in known
        }

    @cached_property
    def dimension_names(self) -> list[str]:
        """Every dimension that some conversation has."""
        return [*DIMENSIONS, *sorted(self._dimensions.names.difference(DIMENSIONS))[:MAX_DIMENSIONS]]

    def dimension(self, name: str) -> Dimension:
        return self._dimensions.of(name)

    def sample(self, metric: str, variant: str, judge: str, across: str) -> FigureSample | None:
        key = (metric, variant, judge, across)
        if key not in self._samples:
            # Of very many conversations, few at a time: figures are gone through one after the other.
            while len(self._samples) * self.count >= _MOST_KEPT:
                del self._samples[next(iter(self._samples))]
            self._samples[key] = self._read_sample(*key)
        return self._samples[key]

    def _read_sample(self, metric: str, variant: str, judge: str, across: str) -> FigureSample | None:
        if across not in ACROSS:
            return None
        reducer = ACROSS[across]
        rows = measured_columns(self._run, metric, variant, judge, reducer.combines)
        number = np.asarray(rows["number"], dtype=np.int64)
        # Only what the reducer says that it combines.
        sums = reducer.sums(SimpleNamespace(**{name: rows[name] for name in reducer.combines}))
        above, below = np.zeros(self.count), np.zeros(self.count)
        above[number], below[number] = sums[0].above, sums[0].below
        return FigureSample(above, below)

    def of_subject(self, figure: Figure, kind: str, subject: str) -> FigureSample:
        """What each conversation adds to the figure of one topic, slot or the like."""
        where = " AND ".join(
            f"{name} = {quoted(value)}"
            for name, value in (
                ("metric", figure.metric),
                ("variant", figure.variant),
                ("judge", figure.judge),
                ("subject_kind", kind),
                ("subject", subject),
                ("status", "measured"),
            )
        )
        rows = self._connection.execute(
            "SELECT number, sum(coalesce(numerator, value))::DOUBLE AS above, sum(coalesce(denominator, 1))::DOUBLE "
            f"AS below FROM {self._run.table(SCORES)} WHERE {where} GROUP BY number"
        ).fetchnumpy()
        above, below = np.zeros(self.count), np.zeros(self.count)
        number = np.asarray(rows["number"], dtype=np.int64)
        above[number], below[number] = rows["above"], rows["below"]
        return FigureSample(above, below)

    @cached_property
    def talks(self) -> NDArray[np.bool_]:
        """The conversations that should have an outcome: the user spoke with the agent, and the integration held."""
        without = ", ".join(map(quoted, NO_DIALOGUE))
        where = f"outcome NOT IN ({without}) AND error IS NULL"
        query = f"SELECT number FROM {self._run.table(CONVERSATIONS)} WHERE {where}"
        rows = np.zeros(self.count, dtype=np.bool_)
        rows[np.asarray(self._connection.execute(query).fetchnumpy()["number"], dtype=np.int64)] = True
        return rows

    def of(self, figure: Figure) -> FigureSample | None:
        """What each conversation adds to a headline; None where that is no ratio of two sums."""
        declared = self._run.summary.by_key.get(figure.key)
        if declared is None:
            return None
        sample = self.sample(figure.metric, figure.variant, figure.judge, declared.reduce.across)
        if sample is None:
            return None
        sums = Sums("", sample.above, sample.below)
        return sample._replace(
            bounded=is_bounded(declared.unit, declared.better, sums), least=least_value(declared.unit)
        )

    def values(self, figure: Figure) -> SubjectValues:
        """The values of all subjects of a metric, pooled."""
        where = " AND ".join(
            f"{name} = {quoted(value)}"
            for name, value in (
                ("metric", figure.metric),
                ("variant", figure.variant),
                ("judge", figure.judge),
                ("status", "measured"),
            )
        )
        query = f"SELECT number, value FROM {self._run.table(SCORES)} WHERE {where}"
        rows = self._connection.execute(query).fetchnumpy()
        return SubjectValues(np.asarray(rows["value"], dtype=np.float64), np.asarray(rows["number"], dtype=np.int64))

    def numbers_by_id(self) -> dict[str, int]:
        """The number of each conversation."""
        query = f"SELECT conversation, number FROM {self._run.table(CONVERSATIONS)} ORDER BY number"
        return dict(self._connection.execute(query).fetchall())

    def openings(self, numbers: Sequence[int]) -> list[str]:
        """What the user says first in some conversations, folded; "" where nothing."""
        wanted = ", ".join(str(int(one)) for one in numbers)
        query = f"SELECT number, body FROM {self._run.table(CONVERSATIONS)} WHERE number IN ({wanted})"
        bodies = dict(self._connection.execute(query).fetchall())
        return [opening_of(from_json(bodies[one])) for one in numbers]

    def ids(self, numbers: Sequence[int]) -> list[str]:
        """The ids of some conversations."""
        wanted = ", ".join(str(int(one)) for one in numbers)
        query = f"SELECT number, conversation FROM {self._run.table(CONVERSATIONS)} WHERE number IN ({wanted})"
        by_number = dict(self._connection.execute(query).fetchall())
        return [by_number[one] for one in numbers]


@cached_on_argument
def samples_of(run: Run) -> Samples:
    """The conversations of a run as arrays, read once for all who ask while the run is open."""
    return Samples(run)


def opening_of(conversation: Conversation) -> str:
    """What the user says first, without capitals and punctuation."""
    turns = (turn.user_text for turn in conversation.turns)
    return comparable(next(filter(None, turns), ""))


WAIT = "timing.response_latency"
LEAST = 3
"""Conversations of each unit."""
THOUSAND = 1000.0
GAP = 30.0
"""Between the longest of the short waits and the shortest of the long ones."""


class WaitUnits(NamedTuple):
    """How many conversations have waits, and in how many they are a thousand times as long as in the others."""

    waits: int = 0
    long: int = 0

    @property
    def are_two(self) -> bool:
        return self.long > 0


def wait_units(summary: Summary, samples: Samples) -> WaitUnits:
    """Look for two kinds of waits with nothing between them."""
    wait = next((one for one in summary.metrics if one.key == WAIT and not one.reduction), None)
    sample = samples.of(wait) if wait is not None else None
    if sample is None:
        return WaitUnits()
    has_wait = (sample.below > 0) & (sample.above > 0)
    waits = np.sort(sample.above[has_wait] / sample.below[has_wait])
    if len(waits) < 2 * LEAST:
        return WaitUnits()
    steps = waits[1:] / waits[:-1]
    cut = int(np.argmax(steps)) + 1
    short, long = waits[:cut], waits[cut:]
    factor = float(np.median(long) / np.median(short))
    are_two = min(len(short), len(long)) >= LEAST and steps.max() >= GAP and THOUSAND / 3 <= factor <= THOUSAND * 3
    return WaitUnits(len(waits), len(long) if are_two else 0)
