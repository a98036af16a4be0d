"""The list of conversations that the page searches and sorts: columns, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from convoscope.conversation import DIMENSIONS
from convoscope.metrics.score import MEASURED
from convoscope.runs.parts import CONVERSATION_SCORES, CONVERSATIONS
from convoscope.runs.run import Run
from convoscope.runs.tables import connect
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
    place = {number: place for place, number in enumerate(numbers)}
    with connect(memory_mb=1024) as connection:
        connection.register("wanted", {"number": np.asarray(numbers, dtype=np.int64)})
        names = ", ".join(f'"{name}"' for name in DIMENSIONS)
        rows = connection.execute(
            f"SELECT number, conversation, error, dimensions, {names} "
            f"FROM {run.table(CONVERSATIONS)} SEMI JOIN wanted USING (number)"
        ).fetchall()
        rows.sort(key=lambda row: place[row[0]])
        reasons: dict[str, int] = {}
        columns = [
            Column(one.key, one.unit, one.better, _cells(connection, run, one, place, reasons))
            for one in ranking.headlines
        ]
    return Index(
        ids=[row[1] for row in rows],
        behind=[_rounded(ranking.of(number)) for number in numbers],
        because=[_because(ranking, number) for number in numbers],
        measured=list(ranking.measured),
        broke=[(at, row[2]) for at, row in enumerate(rows) if row[2]],
        reasons=list(reasons),
        dimensions=_dimensions([_carried(row[3], row[4:]) for row in rows]),
        columns=columns,
    )


def _because(ranking: Ranking, number: int) -> list[tuple[int, float]]:
    rows = zip(ranking.column[:, number].tolist(), ranking.share[:, number].tolist(), strict=True)
    return [(column, round(share, 6)) for column, share in rows if column >= 0]


def _cells(connection: Any, run: Run, headline: Headline, place: dict[int, int], reasons: dict[str, int]) -> list[Cell]:
    cells: list[Cell] = [_missing("unmeasured", "not_scored", reasons)] * len(place)
    query = (
        f"SELECT number, status, value, reason FROM {run.table(CONVERSATION_SCORES)} SEMI JOIN wanted USING (number) "
        f"WHERE {headline.any_judge}"
    )
    for number, status, value, reason in connection.execute(query).fetchall():
        cells[place[number]] = (
            float(f"{value:.{DIGITS}g}") if status == MEASURED else _missing(status, reason or "", reasons)
        )
    return cells


def _missing(status: str, reason: str, reasons: dict[str, int]) -> str:
    return f"{status[0]}{reasons.setdefault(reason, len(reasons))}"


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
