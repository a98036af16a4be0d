"""The list of conversations that the page searches and sorts: columns, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.analysis.words import outcome_text
from convoscope.conversation import DIMENSIONS
from convoscope.runs.database import CONVERSATION_SCORES, CONVERSATIONS, connect, parquet
from convoscope.runs.null_rows import PROFILES
from convoscope.runs.ranking import Headline, Ranking
from convoscope.runs.run import Run
from convoscope.scores.observation import MEASURED
from convoscope.views.flow.endings import LOST, UNKNOWN

DIGITS = 12

Cell = float | str
"""A value, or `u3`: the first letter of the status and the place of the reason among the reasons."""


class Dimension(msgspec.Struct):
    """A dimension: its values, and for each conversation the place of its own; -1 for none."""

    name: str
    values: list[str]
    codes: list[int]


class IndexColumn(msgspec.Struct):
    """A metric: what it says of each conversation."""

    metric: str
    unit: str
    better: str
    cells: list[Cell]


class Index(msgspec.Struct):
    """Everything that the list knows. All lists go worst first."""

    ids: list[str]
    behind: list[float | None]
    because: list[list[tuple[int, float, int]]]
    """For each conversation, in which columns it is behind how many of the others, and how it fails in them."""
    measured: list[int]
    """How many conversations of the run each column was measured in."""
    broke: list[tuple[int, str]]
    """Places of conversations whose integration broke, and what broke."""
    lost: list[tuple[int, str]]
    """Places of conversations that are lost, and what tells so."""
    reasons: list[str]
    dimensions: list[Dimension]
    columns: list[IndexColumn]


def make_index(run: Run, ranking: Ranking, numbers: Sequence[int]) -> Index:
    """The list of the given conversations, in their order."""
    with connect(memory_mb=1024) as connection:
        connection.register("wanted", _placed(numbers))
        names = ", ".join(f'"{name}"' for name in DIMENSIONS)
        rows = connection.execute(
            f"SELECT conversation, error, profile, dimensions, outcome, {names} "
            f"FROM {run.table(CONVERSATIONS)} JOIN wanted USING (number) ORDER BY place"
        ).fetchall()
        cells = _Cells(connection, run, [row[2] for row in rows])
        columns = [IndexColumn(one.key, one.unit, one.better, cells.of(one)) for one in ranking.headlines]
    placed = np.asarray(numbers, dtype=np.int64)
    return Index(
        ids=[row[0] for row in rows],
        behind=_behind(ranking, placed),
        because=_because(ranking, placed),
        measured=list(ranking.measured),
        broke=[(at, row[1]) for at, row in enumerate(rows) if row[1]],
        lost=[
            (at, outcome_text(LOST, ranking.lost[number]))
            for at, number in enumerate(numbers)
            if number in ranking.lost
        ],
        reasons=list(cells.reasons),
        dimensions=[
            *_outcomes([row[4] for row in rows]),
            *_dimensions([row[3] for row in rows], list(zip(*(row[5:] for row in rows), strict=True))),
        ],
        columns=columns,
    )


def _placed(numbers: Sequence[int]) -> dict[str, Any]:
    """The numbers that are wanted, each with its place in the list, as a table."""
    wanted = np.asarray(numbers, dtype=np.int64)
    return {"number": wanted, "place": np.arange(len(wanted), dtype=np.int64)}


class _Cells:
    """What each metric says of each conversation of the list; the rows of `wanted` say which these are."""

    def __init__(self, connection: Any, run: Run, profiles: Sequence[str]) -> None:
        self.reasons: dict[str, int] = {}
        self._connection = connection
        self._profiles = profiles
        self._scores = f"FROM {run.table(CONVERSATION_SCORES)} JOIN wanted USING (number)"
        rows = connection.execute(
            f"SELECT profile, metric, variant, status, reason FROM {parquet(run.folder / PROFILES)}"
        ).fetchall()
        self._absent = {tuple(row[:3]): (row[3], row[4]) for row in rows}

    def of(self, headline: Headline) -> list[Cell]:
        absent = {key: self._without(key, headline) for key in dict.fromkeys(self._profiles)}
        cells: list[Cell] = [absent[key] for key in self._profiles]
        for place, status, reason in self._connection.execute(
            f"SELECT place, status, reason {self._scores} WHERE status <> '{MEASURED}' AND {headline.any_judge}"
        ).fetchall():
            cells[place] = self._missing(status, reason or "")
        measured = self._connection.execute(
            f"SELECT place, value {self._scores} WHERE status = '{MEASURED}' AND {headline.condition}"
        ).fetchnumpy()
        values = _significant(np.asarray(measured["value"], dtype=np.float64)).tolist()
        for place, value in zip(measured["place"].tolist(), values, strict=True):
            cells[place] = value
        return cells

    def _without(self, profile: str, headline: Headline) -> str:
        """What the metric says that does not look at conversations of a profile."""
        return self._missing(*self._absent.get((profile, headline.metric, headline.variant), _NOT_SCORED))

    def _missing(self, status: str, reason: str) -> str:
        return f"{status[0]}{self.reasons.setdefault(reason, len(self.reasons))}"


_NOT_SCORED = ("unmeasured", "not_scored")


def _significant(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """To `DIGITS` significant digits, so that the list is short."""
    size = np.floor(np.log10(np.abs(values), out=np.zeros_like(values), where=values != 0))
    scale = 10.0 ** np.clip(DIGITS - 1 - size, -300, 300)
    rounded = np.round(values * scale) / scale
    return np.where(np.isfinite(rounded), rounded, values)


def _behind(ranking: Ranking, numbers: NDArray[np.int64]) -> list[float | None]:
    values = np.round(ranking.behind[numbers], 4).tolist()
    return [None if value != value else value for value in values]  # noqa: PLR0124 - NaN is not itself


def _because(ranking: Ranking, numbers: NDArray[np.int64]) -> list[list[tuple[int, float, int]]]:
    """For each conversation, in which columns it is behind how many of the others, and how it fails in them."""
    columns = ranking.column[:, numbers].T.tolist()
    shares = np.round(ranking.share[:, numbers], 6).T.tolist()
    failures = ranking.failure[:, numbers].T.tolist()
    return [
        [one for one in zip(*mine, strict=True) if one[0] >= 0] for mine in zip(columns, shares, failures, strict=True)
    ]


def _outcomes(outcomes: Sequence[str]) -> list[Dimension]:
    """What came of each conversation, as a dimension that can be looked for; none where nobody knows of any."""
    values = sorted(set(outcomes))
    if values == [UNKNOWN]:
        return []
    return [Dimension("outcome", values, [values.index(one) for one in outcomes])]


def _dimensions(others: Sequence[str | None], own: Sequence[Sequence[str | None]]) -> list[Dimension]:
    """Our own dimensions first, then those of the log, by name."""
    columns: dict[str, Sequence[str | None]] = dict(zip(DIMENSIONS, own, strict=False))
    dimensions_of = [msgspec.json.decode(one) if one else {} for one in others]
    for name in sorted({name for one in dimensions_of for name in one}):
        columns[name] = [one.get(name) for one in dimensions_of]
    dimensions: list[Dimension] = []
    for name, column in columns.items():
        values = sorted({value for value in column if value is not None})
        if values:
            code: dict[str | None, int] = {None: -1, **{value: place for place, value in enumerate(values)}}
            dimensions.append(Dimension(name, values, [code[value] for value in column]))
    return dimensions
