"""Worst first: how far a conversation is behind the others, and in what.

The scale is the same for every metric that has a direction: of the conversations that were measured,
the share that did better. A conversation is as far behind as the quadratic mean of its shares says,
so that one thing very wrong weighs more than several a little wrong; what was not measured in it
cannot put it behind. Where the integration broke, the conversation says nothing about the agent and
comes before all others. It is an order, not a measurement: in a run where all is well, somebody is
still last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.metrics.declaration import HIGHER, NEITHER
from convoscope.metrics.parts import PUBLISHED, parent_metric
from convoscope.runs.database import CONVERSATION_SCORES, CONVERSATIONS, connect, quoted
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.scores.observation import COMPUTED
from convoscope.statistics.summary import Figure

if TYPE_CHECKING:
    import duckdb

REASONS = 3
"""How many metrics are named as the reason for a place."""
_DIGITS = 3
"""Values that agree in so many digits are as good as each other."""


class Headline(NamedTuple):
    """A metric as a run has it for every conversation; where a panel sat, the panel's verdict."""

    metric: str
    variant: str
    judge: str
    unit: str
    better: str

    @property
    def key(self) -> str:
        return f"{self.metric}@{self.variant}" if self.variant else self.metric

    @property
    def condition(self) -> str:
        """Its rows, as SQL."""
        return f"{self._metric} AND judge = {quoted(self.judge)}"

    @property
    def any_judge(self) -> str:
        """Its rows and those of conversations that never reached the judge, the judge's last."""
        judges = f"judge IN ({quoted(self.judge)}, {quoted(COMPUTED)})"
        return f"{self._metric} AND {judges} ORDER BY judge = {quoted(self.judge)}"

    @property
    def _metric(self) -> str:
        return f"metric = {quoted(self.metric)} AND variant = {quoted(self.variant)}"


class Behind(NamedTuple):
    """In one metric: the value, and the share of the measured conversations that did better."""

    headline: Headline
    value: float
    share: float
    measured: int


class Standing(NamedTuple):
    """The place of one conversation. `behind` is None where no metric with a direction was measured in it."""

    number: int
    conversation: str
    behind: float | None
    because: tuple[Behind, ...]
    error: str = ""
    """What broke, where the integration did."""


class Ranking(NamedTuple):
    """All conversations of a run, worst first. Arrays but `order` go by the conversation's number."""

    headlines: Sequence[Headline]
    order: NDArray[np.int64]
    behind: NDArray[np.float64]
    """Not a number where nothing with a direction was measured."""
    column: NDArray[np.int16]
    """The headlines in which a conversation is furthest behind, most first; -1 for none."""
    share: NDArray[np.float64]
    value: NDArray[np.float64]
    measured: Sequence[int]
    """Conversations that each headline was measured in."""
    errors: Mapping[int, str]
    """What broke, by the number of the conversation."""

    def because(self, number: int) -> tuple[Behind, ...]:
        rows = zip(self.column[:, number], self.value[:, number], self.share[:, number], strict=True)
        return tuple(
            Behind(self.headlines[column], float(value), float(share), self.measured[column])
            for column, value, share in rows
            if column >= 0
        )

    def of(self, number: int) -> float | None:
        behind = float(self.behind[number])
        return None if np.isnan(behind) else behind


def headlines(summary: Summary) -> list[Headline]:
    """The metrics that say something of some conversation, one judge each; no parts, no published variants."""
    over_groups = {declared.metric for declared in summary.declared if declared.observes == "group"}
    by_key: dict[str, Headline] = {}
    names = {declared.name for declared in summary.declared}
    measured = {figure.key for figure in summary.metrics}
    for figure in summary.figures:
        if parent_metric(figure.metric, names) or figure.variant in PUBLISHED or figure.key not in measured:
            continue
        headline = Headline(figure.metric, figure.variant, figure.judge, figure.unit, figure.better)
        if not figure.reduction and headline.key not in over_groups:
            # A panel comes after its judges, and speaks for them.
            by_key[headline.key] = headline
    return list(by_key.values())


def with_values(connection: duckdb.DuckDBPyConnection, run: Run) -> set[tuple[str, ...]]:
    """Metric, variant and judge of all that have a value anywhere: the others need not be looked for one by one."""
    query = f"SELECT DISTINCT metric, variant, judge FROM {run.table(CONVERSATION_SCORES)} WHERE status = 'measured'"
    return set(connection.execute(query).fetchall())


def rank(run: Run) -> Ranking:
    """Put the conversations of a run in order, worst first."""
    count = run.summary.conversations
    columns = headlines(run.summary)
    squares, seen = np.zeros(count), np.zeros(count, dtype=np.bool_)
    column = np.full((REASONS, count), -1, dtype=np.int16)
    share, value = np.zeros((REASONS, count)), np.zeros((REASONS, count))
    measured = [0] * len(columns)
    with connect() as connection:
        valued = with_values(connection, run)
        for code, headline in enumerate(columns):
            if headline.better == NEITHER or headline[:3] not in valued:
                continue
            rows = connection.execute(
                f"SELECT number, value FROM {run.table(CONVERSATION_SCORES)} "
                f"WHERE {headline.condition} AND status = 'measured' ORDER BY number"
            ).fetchnumpy()
            number, values = np.asarray(rows["number"], dtype=np.int64), np.asarray(rows["value"], dtype=np.float64)
            shares = _better(values if headline.better == HIGHER else -values)
            squares[number] += shares**2
            seen[number] = True
            measured[code] = len(number)
            _remember(code, number, values, shares, column, value, share)
        broken = f"SELECT number, error FROM {run.table(CONVERSATIONS)} WHERE error <> '' ORDER BY number"
        errors = dict(connection.execute(broken).fetchall())
    behind = np.full(count, np.nan)
    behind[seen] = np.sqrt(squares[seen] / max(1, sum(1 for one in measured if one)))
    whole = np.ones(count, dtype=np.bool_)
    whole[list(errors)] = False
    order = np.lexsort((np.arange(count), -np.nan_to_num(behind, nan=-1.0), whole))
    return Ranking(columns, order, behind, column, share, value, measured, errors)


def worst(run: Run, limit: int) -> list[Standing]:
    """The first conversations of the ranking, with what puts them there."""
    ranking = rank(run)
    return standings(run, ranking, ranking.order[:limit].tolist())


def standings(run: Run, ranking: Ranking, numbers: Sequence[int]) -> list[Standing]:
    """The places of some conversations, in the order given."""
    ids = names(run, numbers)
    return [
        Standing(number, ids[number], ranking.of(number), ranking.because(number), ranking.errors.get(number, ""))
        for number in numbers
    ]


def names(run: Run, numbers: Sequence[int]) -> dict[int, str]:
    """The ids of some conversations, by number."""
    with connect() as connection:
        connection.register("wanted", {"number": np.asarray(numbers, dtype=np.int64)})
        query = f"SELECT number, conversation FROM {run.table(CONVERSATIONS)} SEMI JOIN wanted USING (number)"
        return dict(connection.execute(query).fetchall())


def _better(goodness: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each value, the share of all values that are greater by more than the last digits."""
    if not len(goodness):
        return goodness
    rounded = _rounded(goodness)
    greater = len(rounded) - np.searchsorted(np.sort(rounded), rounded, side="right")
    shares: NDArray[np.float64] = greater / len(rounded)
    return shares


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """To a few significant digits."""
    size = np.floor(np.log10(np.abs(values), out=np.zeros_like(values), where=values != 0))
    scale = 10.0 ** np.clip(_DIGITS - 1 - size, -300, 300)
    rounded: NDArray[np.float64] = np.round(values * scale) / scale
    return rounded


def _remember(
    code: int,
    number: NDArray[np.int64],
    values: NDArray[np.float64],
    shares: NDArray[np.float64],
    column: NDArray[np.int16],
    value: NDArray[np.float64],
    share: NDArray[np.float64],
) -> None:
    """Keep the few greatest shares of each conversation, greatest first; earlier metrics win ties."""
    for place in range(REASONS):
        takes = shares > share[place, number]
        at = number[takes]
        for below in range(REASONS - 1, place, -1):
            for array in (column, value, share):
                array[below, at] = array[below - 1, at]
        column[place, at], value[place, at], share[place, at] = code, values[takes], shares[takes]
        number, values, shares = number[~takes], values[~takes], shares[~takes]


class ConversationValue(NamedTuple):
    """A conversation and its own value in one metric."""

    conversation: str
    value: float


def lowest(run: Run, figure: Figure, limit: int) -> list[ConversationValue]:
    """The conversations with the least values in the metric of a figure, by the figure's judge."""
    return _first(run, figure, "ASC", limit)


def highest(run: Run, figure: Figure, limit: int) -> list[ConversationValue]:
    """The conversations with the greatest values in the metric of a figure, by the figure's judge."""
    return _first(run, figure, "DESC", limit)


def _first(run: Run, figure: Figure, direction: str, limit: int) -> list[ConversationValue]:
    query = (
        f"SELECT c.conversation, s.value FROM {run.table(CONVERSATION_SCORES)} s "
        f"JOIN {run.table(CONVERSATIONS)} c USING (number) "
        "WHERE s.metric = ? AND s.variant = ? AND s.judge = ? AND s.status = 'measured' "
        f"ORDER BY s.value {direction}, number LIMIT {int(limit)}"
    )
    with connect() as connection:
        rows = connection.execute(query, [figure.metric, figure.variant, figure.judge]).fetchall()
    return [ConversationValue(conversation, value) for conversation, value in rows]
