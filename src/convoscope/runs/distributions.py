"""How the values of a metric spread: over conversations, over subjects, over the course of a conversation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from convoscope.metrics.declaration import COUNT, RATIO, SHARE, WORDS
from convoscope.runs.database import SCORES, connect
from convoscope.runs.measured import measured_columns
from convoscope.runs.ranking import Headline, headlines
from convoscope.runs.run import Run
from convoscope.statistics.intervals import Floats

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
    return filter(None, (distribution(run, headline) for headline in headlines(run.summary)))


def distribution(run: Run, headline: Headline) -> Distribution | None:
    """That of one metric; None where no conversation has a value."""
    declared = run.summary.by_key.get(headline.key)
    level = declared.observes if declared is not None else "conversation"
    conversations = _of_conversations(run, headline)
    if conversations is None:
        return None
    scores = run.table(SCORES)
    with connect(run.folder) as connection:
        subjects = None
        if level != "conversation" and headline.unit not in (SHARE, RATIO):
            query = f"SELECT value FROM {scores} WHERE status = 'measured' AND {headline.condition}"
            subjects = histogram(connection.execute(query).fetchnumpy()["value"], headline.unit)
        turns = _over_turns(connection, scores, headline) if level == "turn" else None
    return Distribution(headline, level, conversations, subjects, turns)


def histograms(run: Run) -> Iterator[tuple[Headline, Histogram]]:
    """How the conversations spread, for each metric of which at least one has a value."""
    for headline in headlines(run.summary):
        if (spread := _of_conversations(run, headline)) is not None:
            yield headline, spread


def _of_conversations(run: Run, headline: Headline) -> Histogram | None:
    return histogram(measured_columns(run, *headline[:3], columns=("value",))["value"], headline.unit)


def histogram(values: Floats, unit: str) -> Histogram | None:
    """How values spread; None where there is none, and where no chart could show them."""
    if not len(values):
        return None
    least, most = float(values.min()), float(values.max())
    if max(abs(least), abs(most)) > _HUGE:
        return None
    p25, p50, p75, p95 = np.percentile(values, [25, 50, 75, 95]).tolist()
    edges = bin_edges(least, most, (p25, p75), unit)
    last = len(edges) - 2
    # A tiny push, so that a value on an edge falls into the bin that begins there.
    index = np.clip(np.floor((values - edges[0]) / (edges[1] - edges[0]) + 1e-9), 0, last).astype(np.int64)
    counts = np.bincount(index, minlength=last + 1).tolist()
    bins = [Bin(low, high, n) for low, high, n in zip(edges, edges[1:], counts, strict=False)]
    return Histogram(bins, len(values), float(values.mean()), p50, p95, least, most)


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
