"""The Parquet files of a run: what docs/guides/parquet.md promises is what a run writes, and others can read."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from convoscope.demo import make_calls, write_logs
from convoscope.metrics.registry import installed
from convoscope.runs.make import make_run
from support.generated import chat

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "parquet.md"
METRICS = ["conversation.turns", "tools.success", "flow"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with states, and with two conversations of one id."""
    folder = tmp_path_factory.mktemp("layout")
    calls = [call for _, call in zip(range(12), make_calls(), strict=False)]
    write_logs(calls, folder / "logs")
    from json import dumps

    (folder / "logs" / "again.jsonl").write_text("".join(f"{dumps(chat(number))}\n" for number in (1, 1)))
    (folder / "logs" / "once_more.jsonl").write_text(dumps({**chat(2), "id": chat(1)["id"]}) + "\n")
    return make_run(folder / "logs", metrics=METRICS, out=folder / "run", workers=1).folder


def written(run: Path) -> dict[str, list[tuple[str, str]]]:
    """The columns and types of each table of a run."""
    tables = {}
    for path in sorted(run.glob("*.parquet")):
        files = f"{path}/*.parquet" if path.is_dir() else str(path)
        described = duckdb.sql(f"DESCRIBE SELECT * FROM read_parquet('{files}')").fetchall()
        tables[path.stem] = [(name, kind) for name, kind, *_ in described]
    return tables


def promised() -> dict[str, list[tuple[str, str]]]:
    """The same, as the tables of the guide say it."""
    tables: dict[str, list[tuple[str, str]]] = {}
    for section in re.split(r"^## ", GUIDE.read_text(), flags=re.MULTILINE):
        name = re.match(r"(\w+)\.parquet", section)
        rows = re.findall(r"^\| (`.+?`) \| ([A-Z\[\]]+) \|", section, flags=re.MULTILINE)
        if name and rows:
            tables[name[1]] = [(column, kind) for names, kind in rows for column in re.findall(r"`(\w+)`", names)]
    return tables


def test_a_run_writes_what_the_guide_promises(run: Path) -> None:
    tables = written(run)
    assert promised().keys() == {"scores", "conversation_scores", "conversations", "states", "profiles"}
    assert {name: tables[name] for name in promised()} == promised()
    assert tables["renamed"] == [("part", "INTEGER"), ("row", "INTEGER"), ("name", "VARCHAR")]


def test_the_keys_of_the_guide_are_keys(run: Path) -> None:
    keys = re.findall(r"^\| of `(\w+)` \| (.+) \|$", GUIDE.read_text(), flags=re.MULTILINE)
    assert len(keys) == 5
    for table, columns in keys:
        files = f"{run}/{table}.parquet" + ("/*.parquet" if (run / f"{table}.parquet").is_dir() else "")
        key = ", ".join(re.findall(r"`(\w+)`", columns))
        query = f"SELECT count(*), (SELECT count(*) FROM (SELECT DISTINCT {key} FROM '{files}')) FROM '{files}'"
        (rows, distinct) = duckdb.sql(query).fetchall()[0]
        assert rows == distinct > 0, table


def test_only_measured_rows_have_a_value(run: Path) -> None:
    for table in ("scores", "conversation_scores"):
        wrong = f"FROM '{run}/{table}.parquet/*.parquet' WHERE (status = 'measured') <> (value IS NOT NULL)"
        assert duckdb.sql(f"SELECT count(*) {wrong}").fetchall() == [(0,)]
        without = f"FROM '{run}/{table}.parquet/*.parquet' WHERE (status = 'measured') <> (reason IS NULL)"
        assert duckdb.sql(f"SELECT count(*) {without}").fetchall() == [(0,)]


def test_names_are_those_that_spark_and_bigquery_take(run: Path) -> None:
    tables = {**written(run)}
    for table in installed().tables.values():
        tables[table.name] = [(column.name, column.sql) for column in table.columns]
    assert len({name.casefold() for name in tables}) == len(tables)
    for table_name, columns in tables.items():
        names = [name for name, _ in columns]
        for name in (table_name, *names):
            # BigQuery: letters, digits and underscores, not a digit first, at most 300 characters, no such beginning.
            assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,299}", name), (table_name, name)
            reserved = ("_TABLE_", "_FILE_", "_PARTITION", "_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER", "_CHANGE_")
            assert not name.upper().startswith(reserved), (table_name, name)
        # Both compare names without regard to case. Spark skips files whose name begins with _ or a dot.
        assert len({name.casefold() for name in names}) == len(names), table_name
    assert not [path for path in run.rglob("*.parquet") if path.name.startswith(("_", "."))]


def test_the_examples_leave_out_what_a_killed_growth_left(run: Path, tmp_path: Path) -> None:
    """The query of the guide, in a folder with a file of a part that the receipt does not name: nothing is doubled."""
    from shutil import copytree

    query = re.search(r'duckdb\.sql\("""(.+?)"""\)', GUIDE.read_text(), flags=re.DOTALL)
    assert query is not None
    counts = query[1].replace("LIMIT 3", "LIMIT 100")
    copytree(run, tmp_path / "run")
    before = duckdb.sql(counts.replace("runs/chat", str(tmp_path / "run"))).fetchall()
    assert before
    for table in ("scores", "conversations"):
        folder = tmp_path / "run" / f"{table}.parquet"
        stray = f"SELECT * REPLACE (99 AS part) FROM '{folder}/*.parquet'"
        duckdb.sql(f"COPY ({stray}) TO '{folder}/part-000099.parquet'")
    assert duckdb.sql(counts.replace("runs/chat", str(tmp_path / "run"))).fetchall() == before
