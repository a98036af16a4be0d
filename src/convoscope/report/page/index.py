"""The list of conversations that the page searches and sorts: columns, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.conversation import DIMENSIONS
from convoscope.metrics.score import MEASURED
from convoscope.runs.absent import PROFILES
from convoscope.runs.parts import CONVERSATION_SCORES, CONVERSATIONS
from convoscope.runs.run import Run
from convoscope.runs.tables import connect, parquet
from convoscope.runs.worst import Headline, Ranking

DIGITS = 12

Cell = float | str
"""A value, or `u3`: the first letter of the status and the place of the reason among the reasons."""


class Dimension(msgspec.Struct):
    """A dimension: its values, and for each conversation the place of its own; -1 for none."""

    name: str
    values: list[str]
    codes: list[int]


class Column(msgspec.Struct):
    """A metric: what it says of each conversation."""

    metric: str
    unit: str
    better: str
    cells: list[Cell]


class Index(msgspec.Struct):
    """Everything that the list knows. All lists go worst first."""

    ids: list[str]
    behind: list[float | None]
    because: list[list[tuple[int, float]]]
    """For each conversation, in which columns it is behind how many of the others."""
    measured: list[int]
    """How many conversations of the run each column was measured in."""
    broke: list[tuple[int, str]]
    """Places of conversations whose integration broke, and what broke."""
    reasons: list[str]
    dimensions: list[Dimension]
    columns: list[Column]


def make_index(run: Run, ranking: Ranking, numbers: Sequence[int]) -> Index:
    """The list of the given conversations, in their order."""
    with connect(memory_mb=1024) as connection:
        connection.register("wanted", _placed(numbers))
        names = ", ".join(f'"{name}"' for name in DIMENSIONS)
        rows = connection.execute(
            f"SELECT conversation, error, profile, dimensions, {names} "
            f"FROM {run.table(CONVERSATIONS)} JOIN wanted USING (number) ORDER BY place"
        ).fetchall()
        cells = _Cells(connection, run, [row[2] for row in rows])
        columns = [Column(one.key, one.unit, one.better, cells.of(one)) for one in ranking.headlines]
    return Index(
        ids=[row[0] for row in rows],
        behind=[_rounded(ranking.of(number)) for number in numbers],
        because=[_because(ranking, number) for number in numbers],
        measured=list(ranking.measured),
        broke=[(at, row[1]) for at, row in enumerate(rows) if row[1]],
        reasons=list(cells.reasons),
        dimensions=_dimensions([_carried(row[3], row[4:]) for row in rows]),
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
        said = {key: self._without(key, headline) for key in dict.fromkeys(self._profiles)}
        cells: list[Cell] = [said[key] for key in self._profiles]
        for place, status, reason in self._connection.execute(
            f"SELECT place, status, reason {self._scores} WHERE status <> '{MEASURED}' AND {headline.any_judge}"
        ).fetchall():
            cells[place] = self._missing(status, reason or "")
        found = self._connection.execute(
            f"SELECT place, value {self._scores} WHERE status = '{MEASURED}' AND {headline.condition}"
        ).fetchnumpy()
        values = _significant(np.asarray(found["value"], dtype=np.float64)).tolist()
        for place, value in zip(found["place"].tolist(), values, strict=True):
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


def _because(ranking: Ranking, number: int) -> list[tuple[int, float]]:
    rows = zip(ranking.column[:, number].tolist(), ranking.share[:, number].tolist(), strict=True)
    return [(column, round(share, 6)) for column, share in rows if column >= 0]


def _carried(others: str | None, own: Sequence[str | None]) -> dict[str, str]:
    carried = {name: value for name, value in zip(DIMENSIONS, own, strict=True) if value is not None}
    return {**carried, **(msgspec.json.decode(others) if others else {})}


def _dimensions(rows: Sequence[dict[str, str]]) -> list[Dimension]:
    """Our own dimensions first, then those of the log, by name."""
    found = {name for row in rows for name in row}
    ordered = [name for name in DIMENSIONS if name in found] + sorted(found - set(DIMENSIONS))
    dimensions: list[Dimension] = []
    for name in ordered:
        values = sorted({row[name] for row in rows if name in row})
        code = {value: place for place, value in enumerate(values)}
        dimensions.append(Dimension(name, values, [code[row[name]] if name in row else -1 for row in rows]))
    return dimensions


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
