"""Items written to real files come back as they were, whatever the file holds them in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import HealthCheck, assume, given, settings

from convoscope.ingest.io.json import decode
from convoscope.views.standard_data import Tidied, tidy
from convoscope.views.standard_data.canonical import fields_of
from support.logs import read, write, write_json, write_lines
from support.made_up_items import joined

Item = dict[str, Any]
anew = settings(
    deadline=None,
    max_examples=30,
    # Each example writes its files anew, so that they may share a folder.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def marked(items: Sequence[Item]) -> list[Item]:
    """Items of one conversation, each of which can be found again."""
    return [{**item, "conversation_id": "c-1", "mark": str(number)} for number, item in enumerate(items)]


def came_back(path: Path) -> dict[str, Tidied]:
    """The items in a file, by their marks."""
    outcome = read(path)
    assert outcome.report.problems == []
    back = [fields_of(one, item) for one in outcome.conversations for item in one.items]
    assert len(back) == outcome.report.records_used
    return {tidied.unknown["mark"]: tidied for tidied in back}


def expected(items: Sequence[Item]) -> dict[str, Tidied]:
    """What reading should give: what has no field of the schema is no item."""
    tidied = [tidy(item) for item in items]
    return {one.unknown["mark"]: one for one in tidied if one.fields}


def cells(items: Sequence[Item]) -> list[Item]:
    """Items as a table of texts holds them: what is not text is JSON text, and nothing is an empty cell."""
    names = list(dict.fromkeys(name.strip() for item in items for name in item if name.strip() == name and name))
    return [{name: _cell(item.get(name)) for name in names} for item in items]


def _cell(value: Any) -> str | None:
    text = value if isinstance(value, str) else json.dumps(value)
    return None if value is None else text or None


@anew
@given(joined())
def test_lines_and_arrays(tmp_path: Path, items: list[Item]) -> None:
    items = [ONE, *(decode(json.dumps(item).encode()).value for item in items)]
    items = marked(items)
    assert came_back(write_lines(tmp_path / "items.jsonl", *items)) == expected(items)
    assert came_back(write_json(tmp_path / "items.json", items)) == expected(items)


@anew
@given(joined())
def test_csv(tmp_path: Path, items: list[Item]) -> None:
    rows = cells(marked([ONE, *items]))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    assume("\0" not in stream.getvalue())  # a file with a NUL is no text
    assert came_back(write(tmp_path / "items.csv", stream.getvalue())) == expected(rows)


@settings(anew, max_examples=15)
@given(joined())
def test_parquet(tmp_path: Path, items: list[Item]) -> None:
    # Names of columns are the same in capital and small letters there.
    rows = [{name: one for name, one in row.items() if name.islower()} for row in cells(marked([ONE, *items]))]
    path = tmp_path / "items.parquet"
    with duckdb.connect(":memory:") as connection:
        quoted = ['"' + name.replace('"', '""') + '"' for name in rows[0]]
        connection.execute(f"CREATE TABLE items ({', '.join(f'{name} VARCHAR' for name in quoted)})")
        places = ", ".join("?" for _ in quoted)
        connection.executemany(f"INSERT INTO items VALUES ({places})", [list(row.values()) for row in rows])
        connection.execute(f"COPY items TO '{path}' (FORMAT parquet)")
    assert came_back(path) == expected(rows)


ONE: Item = {"agent_task": "Where is it?", "agent_response": "On its way."}
