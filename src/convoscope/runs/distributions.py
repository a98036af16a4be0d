"""How the values of a metric spread: over conversations, over subjects, over the course of a conversation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from convoscope.metrics.declaration import COUNT, RATIO, SHARE, WORDS
from convoscope.runs.database import CONVERSATION_SCORES, SCORES, connect, quoted
from convoscope.runs.ranking import Headline, headlines, with_values
from convoscope.runs.run import Run

if TYPE_CHECKING:
    import duckdb

BINS = 20
MAX_POSITIONS = 40
"""Turn positions that are drawn; later ones are counted and said."""
FENCE = 6.0
"""Values further than this many interquartile ranges beyond the quartiles share the outermost bin."""
_WHOLE = (COUNT, WORDS)
_TINY = 1e-9
_HUGE = 1e100
"""Values beyond this are no amounts that a chart could show."""
_VALUES_IN_MEMORY = 5_000_000
"""Quantiles keep the values of all metrics that are asked for at once."""


class Bin(NamedTuple):
    """The values from `low` up to `high`; the last bin of a chart holds `high` too."""

    low: float
    high: float
    n: int


class Histogram(NamedTuple):
    """Counted values. The first and last bin reach to the smallest and greatest value, however far off."""

    bins: Sequence[Bin]
    n: int
    mean: float
    p50: float
    p95: float
    least: float
    most: float


class TurnPoint(NamedTuple):
    """The values at one position: their number, mean and middle half."""

    position: int
    n: int
    mean: float
    p25: float
    p75: float


class OverTurns(NamedTuple):
    """A metric over the course of the conversations."""

    points: Sequence[TurnPoint]
    later: int
    """Values at positions after the last that is kept."""


class Distribution(NamedTuple):
    """Everything there is to draw of one metric. None where the charts would say nothing."""

    headline: Headline
    observes: str
    by_conversation: Histogram | None
    by_subject: Histogram | None
    """Of the pooled turns, events, items; only where they are amounts: a share per call is 0 or 1."""
    over_turns: OverTurns | None


def distributions(run: Run) -> Iterator[Distribution]:
    """One for each metric of which at least one conversation has a value."""
    with connect(run.folder) as connection:
        valued = with_values(connection, run)
        for headline in headlines(run.summary):
            if headline[:3] in valued and (spread := _distribution(connection, run, headline)) is not None:
                yield spread


def distribution(run: Run, headline: Headline) -> Distribution | None:
    """That of one metric; None where no conversation has a value."""
    with connect(run.folder) as connection:
        return _distribution(connection, run, headline)


def _distribution(connection: duckdb.DuckDBPyConnection, run: Run, headline: Headline) -> Distribution | None:
    declared = run.summary.by_key.get(headline.key)
    level = declared.observes if declared is not None else "conversation"
    conversations = _histograms(connection, run.table(CONVERSATION_SCORES), [headline]).get(headline)
    if conversations is None:
        return None
    scores = run.table(SCORES)
    amounts = level != "conversation" and headline.unit not in (SHARE, RATIO)
    subjects = _histograms(connection, scores, [headline]).get(headline) if amounts else None
    turns = _over_turns(connection, scores, headline) if level == "turn" else None
    return Distribution(headline, level, conversations, subjects, turns)


def histograms(run: Run) -> Iterator[tuple[Headline, Histogram]]:
    """How the conversations spread, for each metric of which at least one has a value."""
    wanted = headlines(run.summary)
    max_concurrency = max(1, _VALUES_IN_MEMORY // max(1, run.summary.conversations))
    with connect(run.folder) as connection:
        for start in range(0, len(wanted), max_concurrency):
            some = wanted[start : start + max_concurrency]
            yield from _histograms(connection, run.table(CONVERSATION_SCORES), some).items()


class _Spread(NamedTuple):
    """What is asked of the values of one metric before they are put into bins."""

    n: int
    mean: float
    least: float
    most: float
    quantiles: Sequence[float]


def _histograms(
    connection: duckdb.DuckDBPyConnection, table: str, wanted: Sequence[Headline]
) -> dict[Headline, Histogram]:
    """Those of some metrics, in two queries: one for the middle and the ends, one for the bins between them."""
    metrics = ", ".join(quoted(name) for name in dict.fromkeys(one.metric for one in wanted))
    measured = f"{table} WHERE status = 'measured' AND metric IN ({metrics})"
    rows = connection.execute(
        "SELECT metric, variant, judge, count(*), avg(value), min(value), max(value), "
        f"quantile_cont(value, [0.25, 0.5, 0.75, 0.95]) FROM {measured} GROUP BY metric, variant, judge"
    ).fetchall()
    by_name = {tuple(row[:3]): _Spread(*row[3:]) for row in rows}
    spreads = {one: by_name[one[:3]] for one in wanted if one[:3] in by_name}
    edges = {
        one: bin_edges(spread.least, spread.most, (spread.quantiles[0], spread.quantiles[2]), one.unit)
        for one, spread in spreads.items()
        if max(abs(spread.least), abs(spread.most)) <= _HUGE
    }
    if not edges:
        return {}
    bins = ", ".join(
        f"({quoted(one.metric)}, {quoted(one.variant)}, {quoted(one.judge)}, "
        f"{low!r}::DOUBLE, {high - low!r}::DOUBLE, {len(more)})"
        for one, (low, high, *more) in edges.items()
    )
    # A tiny push, so that a value on an edge falls into the bin that begins there.
    counted = connection.execute(
        "SELECT metric, variant, judge, "
        "greatest(0, least(last, floor((value - low) / width + 1e-9)))::INTEGER AS bin, count(*) "
        f"FROM (SELECT metric, variant, judge, value FROM {measured}) "
        f"JOIN (VALUES {bins}) AS bins(metric, variant, judge, low, width, last) USING (metric, variant, judge) "
        "GROUP BY ALL"
    ).fetchall()
    counts = {tuple(row[:4]): row[4] for row in counted}
    return {
        one: _histogram(spreads[one], ends, [counts.get((*one[:3], index), 0) for index in range(len(ends) - 1)])
        for one, ends in edges.items()
    }


def _histogram(spread: _Spread, edges: Sequence[float], counts: Sequence[int]) -> Histogram:
    bins = [Bin(low, high, n) for low, high, n in zip(edges, edges[1:], counts, strict=False)]
    _, p50, _, p95 = spread.quantiles
    return Histogram(bins, spread.n, spread.mean, p50, p95, spread.least, spread.most)


def bin_edges(least: float, most: float, quartiles: tuple[float, float], unit: str) -> list[float]:
    """Round edges around the bulk of the values; shares and ratios always go from 0 to 1."""
    if unit in (SHARE, RATIO) and least >= 0 and most <= 1:
        return [tenth / 10 for tenth in range(11)]
    q1, q3 = quartiles
    reach = FENCE * (q3 - q1)
    # Quartiles that all but agree tell nothing of how far is far.
    far = reach > _TINY * (most - least)
    low, high = (max(least, q1 - reach), min(most, q3 + reach)) if far else (least, most)
    size = max(abs(low), abs(high))
    if high - low <= _TINY * size:
        # All but equal: one bin, a wide one where a narrow one could not be distinguished from its neighbour.
        width = 1.0 if size < 1e9 else round_width(size / 2, whole=False)
    else:
        low = 0.0 if 0 < low < high - low else low
        width = round_width((high - low) / BINS, whole=unit in _WHOLE)
    first = math.floor(low / width)
    # The last bin must hold the greatest value; of whole numbers each is at the start of a bin of its own.
    last = max(first + 1, math.ceil(high / width + (1e-3 if unit in _WHOLE else 1e-9)))
    return [float(f"{number * width:.12g}") for number in range(first, last + 1)]


def round_width(width: float, *, whole: bool) -> float:
    """The next of 1, 2, 5 times a power of ten; whole numbers are not split."""
    power = 10.0 ** math.floor(math.log10(width))
    rounded: float = next(step * power for step in (1, 2, 5, 10, 20) if step * power >= width * (1 - 1e-9))
    return max(1.0, rounded) if whole else rounded


def _over_turns(connection: duckdb.DuckDBPyConnection, scores: str, headline: Headline) -> OverTurns | None:
    rows = connection.execute(
        "SELECT position, count(*), avg(value), quantile_cont(value, 0.25), quantile_cont(value, 0.75) "
        f"FROM {scores} WHERE {headline.condition} AND status = 'measured' AND subject_kind = 'turn' "
        "GROUP BY position ORDER BY position"
    ).fetchall()
    if len(rows) < 2 or any(abs(value) > _HUGE for row in rows for value in row[2:]):
        return None
    points = [TurnPoint(*row) for row in rows[:MAX_POSITIONS]]
    return OverTurns(points, sum(row[1] for row in rows[MAX_POSITIONS:]))
