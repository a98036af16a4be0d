"""A run folder may come from anyone: no command executes, reads or writes anything outside because of what it holds."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import convoscope
from convoscope.errors import ConvoscopeError, RunError
from convoscope.runs.database import _entries, connect
from convoscope.runs.run import Run
from convoscope.runs.sql import query, views
from support.command_line import convoscope as command

EXAMPLES = Path(__file__).parents[2] / "examples" / "state-events"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convoscope.score(EXAMPLES, out=tmp_path_factory.mktemp("whole") / "run", workers=1).folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "runs" / "run"))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that no command may read or change."""
    path = tmp_path / "outside.txt"
    path.write_text("secret")
    return path


COMMANDS: dict[str, tuple[object, ...]] = {
    "sql": ("sql", "--run", "RUN", "SELECT count(*) FROM scores"),
    "report": ("report", "RUN"),
    "runs show": ("runs", "show", "RUN"),
    "runs list": ("runs", "list", "--folder", "RUNS"),
    "states matrix": ("states", "matrix", "RUN"),
    "states segments": ("states", "segments", "RUN"),
    "states flows": ("states", "flows", "RUN"),
    "states archetypes": ("states", "archetypes", "RUN"),
    "states analyze": ("states", "analyze", "RUN"),
    "states gate": ("states", "gate", "RUN", "--baseline", "RUN"),
    "states recount": ("states", "recount", "RUN"),
    "show": ("show", "RUN"),
    "plot": ("plot", "RUN", "conversation.turns"),
    "audit": ("audit", "RUN"),
    "score": ("score", EXAMPLES, "--out", "RUN", "--workers", 1),
}


def arguments(name: str, run: Path) -> list[object]:
    return [{"RUN": run, "RUNS": run.parent}.get(str(one), one) for one in COMMANDS[name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_sql_in_a_run_is_not_executed(name: str, run: Path, outside: Path, tmp_path: Path) -> None:
    """The attack of the review: the text of a view closes it, copies a file and opens another view."""
    stolen = tmp_path / "stolen.csv"
    text = (
        f"1 AS a FROM (SELECT 1); COPY (SELECT * FROM read_text('{outside}')) TO '{stolen}'; "
        "CREATE VIEW more AS SELECT 1"
    )
    table = {"name": "evil", "what": "x", "key": "k", "nothing": text, "combine": {"a": text}, "views": {"v": text}}
    named = {**table, "name": f'evil" AS SELECT {text} --'}
    (run / "side-tables.json").write_text(json.dumps([table, named, {**table, "name": "states"}]))
    # A folder whose name is SQL is not a table of the run.
    shutil.copytree(run / "states.parquet", run / f"x\" AS SELECT 1; COPY (SELECT 1) TO '{stolen.name}' --.parquet")
    ended = command(*arguments(name, run), cwd=tmp_path)
    assert not stolen.exists()
    assert "secret" not in ended.out + ended.err
    assert ended.code in (0, 1, 2, 3)
    assert "bug in convoscope" not in ended.err


def test_the_bare_rows_of_an_unknown_table_can_be_asked(run: Path) -> None:
    shutil.copytree(run / "states.parquet", run / "moods.parquet")
    opened = Run.open(run)
    assert "moods" in views([opened])
    (rows,) = query([opened], "SELECT (SELECT count(*) FROM moods) = (SELECT count(*) FROM states)").rows
    assert rows == (True,)


@pytest.mark.parametrize("name", ["scores", "all_scores", "runs", "moods_combined", "state_scores", "Ä", "a b", "..."])
def test_a_name_that_is_taken_or_not_a_table_is_no_view(run: Path, name: str) -> None:
    before = views([Run.open(run)])
    shutil.copytree(run / "states.parquet", run / f"{name}.parquet", dirs_exist_ok=True)
    opened = Run.open(run)
    assert views([opened]) == before
    assert query([opened], "SELECT count(*) FROM runs").rows == [(1,)]


def as_link(path: Path, outside: Path) -> None:
    path.unlink()
    path.symlink_to(outside)


def as_pipe(path: Path, outside: Path) -> None:
    del outside
    path.unlink()
    os.mkfifo(path)


FILES = ["scores.parquet/part-000000.parquet", "summary.json", "receipt.json", "read-report.json", "flows.json"]
FILES += ["profiles.parquet", "states_combined.parquet", "report.html"]


@pytest.mark.parametrize("make", [as_link, as_pipe])
@pytest.mark.parametrize("file", FILES)
def test_what_is_no_plain_file_is_refused(
    run: Path, outside: Path, file: str, make: Callable[[Path, Path], None]
) -> None:
    make(run / file, outside)
    with pytest.raises(RunError, match="a run holds plain files only"):
        Run.open(run)
    assert outside.read_text() == "secret"


@pytest.mark.parametrize("name", ["sql", "report", "runs show", "runs list", "states matrix", "show", "audit", "score"])
def test_every_command_refuses_a_link(run: Path, outside: Path, name: str) -> None:
    as_link(run / "report.html", outside)
    ended = command(*arguments(name, run))
    assert ended.code == 2
    assert "is a link: a run holds plain files only" in ended.err or "is not a run" in ended.err
    assert outside.read_text() == "secret"


def test_a_folder_of_parts_that_leads_out(run: Path, whole: Path) -> None:
    shutil.rmtree(run / "scores.parquet")
    (run / "scores.parquet").symlink_to(whole / "scores.parquet")
    with pytest.raises(RunError, match="is a link"):
        Run.open(run)


@pytest.mark.parametrize("name", ["sql", "show", "runs show", "report", "states matrix"])
def test_a_missing_part_is_a_clear_error(run: Path, name: str) -> None:
    (run / "scores.parquet" / "part-000000.parquet").unlink()
    ended = command(*arguments(name, run))
    assert ended.code == 2
    assert "part-000000.parquet is missing: the run is not whole\n  score the logs again, into another" in ended.err


def test_a_connection_opens_files_of_its_run_only(run: Path, whole: Path, outside: Path, tmp_path: Path) -> None:
    with connect(run) as connection:
        for sql in (
            f"SELECT * FROM read_text('{outside}')",
            f"SELECT * FROM read_text('{run}/../../outside.txt')",
            f"SELECT * FROM read_parquet('{whole}/profiles.parquet')",
            f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
            f"ATTACH '{tmp_path}/new.db'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(sql)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside.txt", "runs"]


def everything(run: Path) -> tuple[object, ...]:
    opened = Run.open(run)
    return opened.summary, opened.read_report, opened.flows


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("receipt.json", "{" * 5),
        ("receipt.json", '{"config":' + '{"a":' * 100_000),
        ("summary.json", "[" * 100_000),
        ("summary.json", "{}"),
        ("read-report.json", "\x00"),
        ("flows.json", '[{"name": 7}]'),
    ],
)
def test_a_damaged_file_is_an_error_and_no_fault(run: Path, file: str, text: str) -> None:
    (run / file).write_text(text)
    with pytest.raises(ConvoscopeError, match="damaged"):
        everything(run)


def changed(run: Path, file: str, *path: str | int, value: object) -> None:
    whole = json.loads((run / file).read_text())
    inner = whole
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    (run / file).write_text(json.dumps(whole))


HOSTILE = "\x1b]0;x\x07\x9b31m<img src=x onerror=alert(1)>\u202e##[command]x\n::error::y|a"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("conversations",), -5),
        (("conversations",), 10**15),
        (("metrics", 0, "metric"), HOSTILE),
        (("not_measured", 0, "metrics", 0), HOSTILE),
        (("not_measured", 0, "samples_total"), -5),
    ],
)
def test_a_summary_that_does_not_fit_is_refused(run: Path, path: tuple[str | int, ...], value: object) -> None:
    changed(run, "summary.json", *path, value=value)
    with pytest.raises(RunError, match=r"summary\.json is damaged"):
        assert Run.open(run).summary


def test_texts_of_a_run_steer_no_terminal(run: Path) -> None:
    for name in ("question", "label"):
        changed(run, "summary.json", "declared", 0, name, value=HOSTILE)
    changed(run, "summary.json", "metrics", 0, "unit", value=HOSTILE)
    changed(run, "summary.json", "not_measured", 0, "reason", value=HOSTILE)
    changed(run, "receipt.json", "run_id", value=HOSTILE)
    changed(run, "receipt.json", "finished_at", value=HOSTILE)
    changed(run, "receipt.json", "inputs", 0, "name", value=HOSTILE)
    changed(run, "read-report.json", "warnings", value=[HOSTILE])
    for name in ("runs show", "report", "runs list"):
        ended = command(*arguments(name, run))
        for raw in ("\x1b", "\x07", "\x9b", "\u202e", "##[command"):
            assert raw not in ended.out + ended.err
    assert "<img src=x" not in (run / "report.html").read_text()


def test_code_that_a_receipt_names_is_not_imported(run: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("open('ran.txt', 'w').close()\n")
    (run / "evil.py").write_text("open('ran.txt', 'w').close()\n")
    changed(run, "receipt.json", "config", "metrics_from", value=["evil.py", "evil"])
    changed(run, "receipt.json", "config", "annotate", value="evil")
    changed(run, "receipt.json", "config", "targets", value=["evil.py >= 1"])
    for name in ("audit", "report", "runs show", "show"):
        command(*arguments(name, run), cwd=tmp_path)
    assert not (tmp_path / "ran.txt").exists()


class TestUnfinished:
    """`score --out` goes on with what lies there, which may come from anyone too."""

    def begun(self, tmp_path: Path) -> Path:
        """An unfinished run whose journal fits: that of a run, stopped before it got its name."""
        folder = tmp_path / "made.partial"
        folder.mkdir()
        (folder / "journal.jsonl").write_text('{"type":"header","depends_on":{}}\n')
        return folder

    @pytest.mark.parametrize("name", ["lock", "journal.jsonl", "journal.new", "scores.parquet", "scratch", "answers"])
    def test_a_link_is_not_followed(self, tmp_path: Path, outside: Path, name: str) -> None:
        folder = self.begun(tmp_path)
        target = tmp_path / "target"
        target.mkdir()
        (target / "kept.txt").write_text("kept")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target if "." not in name or name.endswith("parquet") else outside)
        if name == "journal.jsonl":
            (folder / "lock").write_text("an unfinished run of convoscope\n")
        with pytest.raises(RunError):
            convoscope.score(EXAMPLES, out=tmp_path / "made", metrics="conversation.turns", workers=1)
        assert outside.read_text() == "secret"
        assert (target / "kept.txt").read_text() == "kept"

    def test_the_folder_itself_is_a_link(self, tmp_path: Path) -> None:
        target = tmp_path / "target"
        target.mkdir()
        (tmp_path / "made.partial").symlink_to(target)
        with pytest.raises(RunError):
            convoscope.score(EXAMPLES, out=tmp_path / "made", metrics="conversation.turns", workers=1)
        assert list(target.iterdir()) == []

    def test_names_in_a_journal_lead_nowhere(self, tmp_path: Path) -> None:
        """A journal that fits, whose parts name tables outside of the folder, is not believed."""
        from convoscope.ingest.report import ReadReport
        from convoscope.runs.partial import Partial
        from convoscope.scoring.partition import PartDone, Timings

        made = Partial(tmp_path / "made", {"a": "1"})
        outside = tmp_path / "x.parquet" / "part-000000.parquet"
        outside.parent.mkdir()
        outside.write_bytes(b"kept")
        for table in ("conversations", "scores", "conversation_scores"):
            path = made.folder / f"{table}.parquet" / "part-000000.parquet"
            path.parent.mkdir()
            path.write_bytes(b"x")
        tables = ("conversations", "scores", "conversation_scores")
        facts: dict[str, Any] = {"profiles": (), "report": ReadReport(), "timings": Timings()}
        made.finish_part(PartDone(part=0, conversations=1, tables=(*tables, "../x"), **facts))
        made.close()
        again = Partial(tmp_path / "made", {"a": "1"})
        assert again.done == {}
        again.close()
        assert outside.read_bytes() == b"kept"


def test_what_only_its_owner_may_read_stays_so(run: Path) -> None:
    (run / "receipt.json").chmod(0o600)
    Run.open(run).invalidate("wrong logs")
    assert (run / "receipt.json").stat().st_mode & 0o777 == 0o600
    assert not Run.open(run).receipt.valid


def test_a_report_to_share_does_not_name_the_folders_of_this_machine(run: Path, tmp_path: Path) -> None:
    assert command("report", run, "--markdown", tmp_path / "report.md").code == 0
    text = (tmp_path / "report.md").read_text()
    assert str(run.parent) not in text
    assert "`run`" in text


@pytest.mark.parametrize("gone", [".partial", "conversations.parquet"])
def test_a_folder_that_another_process_removes_meanwhile_is_no_error(gone: str, tmp_path: Path) -> None:
    (tmp_path / ".partial" / "conversations.parquet").mkdir(parents=True)
    seen = []
    for entry in _entries(tmp_path):
        seen.append(entry.name)
        if entry.name == gone:
            shutil.rmtree(entry.path)
    assert seen[-1] == gone
