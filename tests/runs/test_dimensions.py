"""Dimensions as codes, and fields of few values: what they are by definition, whatever the values."""

from __future__ import annotations

import json

import duckdb
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from convoscope.analysis.answer.samples import MAX_FIELDS, MAX_VALUES, _add_fields, _FactColumn
from convoscope.conversation import DIMENSIONS
from convoscope.runs.dimensions import Dimensions
from convoscope.statistics.differences import distinct

TEXTS = st.text(max_size=3) | st.sampled_from(["v1", "v2", "", "É", "\U0001f600"])


def dimensions_of(rows: list[dict[str, str]]) -> Dimensions:
    """A table of conversations with these dimensions."""
    connection = duckdb.connect(":memory:")
    columns = ", ".join(f"{name} VARCHAR" for name in (*DIMENSIONS, "dimensions"))
    connection.execute(f"CREATE TABLE conversations (number INTEGER, {columns})")
    for number, row in enumerate(rows):
        further = {name: value for name, value in row.items() if name not in DIMENSIONS}
        values = [number, *(row.get(name) for name in DIMENSIONS), json.dumps(further) if further else None]
        connection.execute(f"INSERT INTO conversations VALUES ({', '.join('?' * len(values))})", values)
    return Dimensions(connection, "conversations", len(rows), np.int64)


class TestDimensions:
    @given(st.lists(st.dictionaries(st.sampled_from(["model", "agent", "release", "a/b~c"]), TEXTS), max_size=12))
    def test_each_conversation_has_the_code_of_its_value(self, rows: list[dict[str, str]]) -> None:
        dimensions = dimensions_of(rows)
        assert dimensions.names == {name for row in rows for name in row}
        for name in ("model", "agent", "release", "a/b~c", "domain"):
            values, codes = dimensions.of(name)
            assert values == sorted({row[name] for row in rows if name in row}, key=str.encode)
            assert [values[code] if code >= 0 else None for code in codes] == [row.get(name) for row in rows]

    def test_a_name_that_is_asked_for_and_unknown(self) -> None:
        values, codes = dimensions_of([{"model": "m"}, {}]).of("nothing")
        assert (values, codes.tolist()) == ([], [-1, -1])


class TestFields:
    """They are read in batches, and equal records once in a batch: the same as one record after the other."""

    @given(
        st.lists(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2", "none", "yes"])), max_size=30),
        st.integers(1, 7),
    )
    def test_each_conversation_has_its_own(self, records: list[dict[str, str]], size: int) -> None:
        columns = read_fields(records, size)
        assert [*columns] == list(dict.fromkeys(name for record in records for name in record))
        for name, column in columns.items():
            known = {code: value for value, code in column.index_of.items()}
            # 0 is "none": the record does not say so, or it says "none"
            assert [known[code] for code in column.codes.tolist()] == [record.get(name, "none") for record in records]

    def test_values_are_in_the_order_in_which_they_came(self) -> None:
        (column,) = read_fields([{"a": "z"}, {"a": "b"}, {"a": "z"}, {}], 2).values()
        assert (column.index_of, column.codes.tolist()) == ({"none": 0, "z": 1, "b": 2}, [1, 2, 1, 0])

    def test_too_many_values_are_not_counted_on(self) -> None:
        columns = read_fields([{"id": str(number), "kind": "k"} for number in range(200)], 50)
        # "none" and 40 values, and the one that is too many
        assert len(columns["id"].index_of) == MAX_VALUES + 1
        assert columns["kind"].codes.tolist() == [1] * 200

    def test_too_many_fields(self) -> None:
        assert len(read_fields([{f"f{number}": "x"} for number in range(MAX_FIELDS + 5)], 50)) == MAX_FIELDS


def read_fields(records: list[dict[str, str]], size: int) -> dict[str, _FactColumn]:
    columns: dict[str, _FactColumn] = {}
    rows = [(number, json.dumps(record)) for number, record in enumerate(records)]
    for start in range(0, len(rows), size):
        _add_fields(columns, rows[start : start + size], len(records))
    return columns


@given(st.lists(st.integers(-1, 20)))
def test_distinct_codes(codes: list[int]) -> None:
    assert distinct(np.array(codes, dtype=np.int64)) == len(set(codes))
