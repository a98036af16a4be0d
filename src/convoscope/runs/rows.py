"""Rows of a run that are read when they are asked for: as dicts, as a DataFrame, as an Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from convoscope.errors import UsageError
from convoscope.runs.database import connect
from convoscope.scores.observation import Score


class RunTable:
    """A table of a run. Nothing is read before one of the methods is called."""

    def __init__(self, folder: Path, query: str, values: Sequence[str] = ()) -> None:
        self._folder = folder
        self._query = query
        self._values = list(values)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of a run: to_pandas(), to_arrow(), to_list()>"

    def __len__(self) -> int:
        with connect(self._folder) as connection:
            ((count,),) = connection.execute(f"SELECT count(*) FROM ({self._query})", self._values).fetchall()
        return int(count)

    def to_list(self) -> list[dict[str, Any]]:
        """The rows as dicts, by the names of the columns."""
        with connect(self._folder) as connection:
            answer = connection.execute(self._query, self._values)
            names = [column[0] for column in answer.description]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame. What was not measured has no value: NaN, and its status says why."""
        _check_installed("pandas")
        with connect(self._folder) as connection:
            return connection.execute(self._query, self._values).df()

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table."""
        _check_installed("pyarrow")
        with connect(self._folder) as connection:
            return connection.sql(self._query, params=self._values).to_arrow_table()


class ScoreTable(RunTable):
    """Score rows; to go over them gives a `Score` each, a few at a time."""

    def __init__(self, folder: Path, query: str, values: Sequence[str], scores: Callable[[], Iterator[Score]]) -> None:
        super().__init__(folder, query, values)
        self._scores = scores

    def __iter__(self) -> Iterator[Score]:
        return self._scores()


def _check_installed(package: str) -> None:
    if find_spec(package) is None:
        raise UsageError(f"this needs {package}", hint=f"pip install {package}; to_list() needs nothing")
