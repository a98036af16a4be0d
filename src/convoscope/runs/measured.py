"""What was measured of each conversation: the columns of one metric by one judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from convoscope.runs.database import quoted
from convoscope.runs.run import Run
from convoscope.runs.score_columns import ScoreColumns

MeasuredColumns = Mapping[str, NDArray[Any]]


def rows_of(metric: str, variant: str, judge: str) -> str:
    """The rows of a metric by one judge, as SQL."""
    return f"metric = {quoted(metric)} AND variant = {quoted(variant)} AND judge = {quoted(judge)}"


def _scores(run: Run) -> ScoreColumns:
    if run.columns is None:
        run.columns = ScoreColumns(run.tables)
    return run.columns


def measured_columns(run: Run, metric: str, variant: str, judge: str, columns: Sequence[str]) -> MeasuredColumns:
    """What was measured of each conversation in one metric, by one judge: columns in the order of `number`."""
    return _scores(run).measured(metric, variant, judge, columns)


def with_values(run: Run) -> set[tuple[str, str, str]]:
    """Metric, variant and judge of all that have a value anywhere."""
    extents = _scores(run).extents.items()
    return {(*key, judge) for key, extent in extents for judge in extent.measured_by}
