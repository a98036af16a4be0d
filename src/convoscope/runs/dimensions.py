"""The dimensions of all conversations of a run as arrays: the values in the order of their letters, and codes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.runs.database import dimension_column, known_dimensions

if TYPE_CHECKING:
    import duckdb


class Dimension(NamedTuple):
    """The values of a dimension, and for each conversation the index of its value; -1 for none."""

    values: list[str]
    codes: NDArray[Any]


class Dimensions:
    """Each is read once, when it is asked for. `kind` is the type of the codes."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, conversations: str, count: int, kind: type[np.signedinteger[Any]]
    ) -> None:
        self._connection, self._conversations, self._count, self._kind = connection, conversations, count, kind
        # No cache of a method: that would point back at this object, whose arrays are large, and keep it alive.
        self._read: dict[str, Dimension] = {}

    @cached_property
    def names(self) -> set[str]:
        """The dimensions that some conversation has."""
        return known_dimensions(self._connection, self._conversations)

    def of(self, name: str) -> Dimension:
        """A dimension by its name."""
        if name not in self._read:
            self._read[name] = self.column(dimension_column(name)) if name in self.names else self.nothing
        return self._read[name]

    def column(self, column: str) -> Dimension:
        """A column of the table of conversations."""
        source = f"(SELECT number, {column} AS v FROM {self._conversations} WHERE v IS NOT NULL)"
        values = [row[0] for row in self._connection.execute(f"SELECT DISTINCT v FROM {source} ORDER BY v").fetchall()]
        if not values:
            return self.nothing
        if len(values) == 1:
            rows = self._connection.execute(f"SELECT number, 0 AS code FROM {source}").fetchnumpy()
        else:
            texts = np.empty(len(values), dtype=object)
            texts[:] = values
            self._connection.register("known", {"v": texts, "code": np.arange(len(values), dtype=np.int32)})
            joined = f"SELECT s.number, k.code FROM {source} AS s JOIN known AS k USING (v)"
            rows = self._connection.execute(joined).fetchnumpy()
            self._connection.unregister("known")
        codes = np.full(self._count, -1, dtype=self._kind)
        codes[np.asarray(rows["number"])] = rows["code"]
        return Dimension([str(value) for value in values], codes)

    @property
    def nothing(self) -> Dimension:
        """No value for any conversation; it takes no memory."""
        return Dimension([], np.broadcast_to(self._kind(-1), self._count))
