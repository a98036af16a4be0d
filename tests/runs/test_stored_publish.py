"""How a run in an object store is written: a reader sees one run whole, at every moment, whoever else writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import convoscope
from convoscope import storage
from convoscope.errors import RunError
from convoscope.runs import stored
from convoscope.runs.database import file_name
from convoscope.runs.prune import prune
from convoscope.runs.run import Run
from support.generated import FEW, write_lines
from support.killed_writes import Killed, killed_after
from support.object_store import BUCKET, object_store
from support.pages import page_facts

OLD, NEW = 6, 9
"""Conversations before and after it grows."""


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with object_store() as opened:
        yield opened


@pytest.fixture
def memory() -> Iterator[Any]:
    opened = fsspec.filesystem("memory")
    yield opened
    opened.store.clear()
    opened.pseudo_dirs[:] = [""]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The logs before and after."""
    folders = {count: tmp_path_factory.mktemp("logs") for count in (OLD, NEW)}
    for folder in folders.values():
        write_lines(folder / "monday.jsonl", range(OLD))
    write_lines(folders[NEW] / "tuesday.jsonl", range(OLD, NEW))
    return folders


@pytest.fixture(scope="module")
def summaries(logs: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    """What the same logs give on this machine."""
    runs = {count: scored(folder, str(tmp_path_factory.mktemp("run") / "x")) for count, folder in logs.items()}
    return {count: (run.folder / "summary.json").read_bytes() for count, run in runs.items()}


def scored(logs: Path, out: str, **options: Any) -> Run:
    return convoscope.score(logs, metrics=FEW, out=out, **{"workers": 1, "part_bytes": 20_000, **options})


def below(store: Any, address: str) -> set[str]:
    """The names of what is below an address."""
    store.invalidate_cache()
    root = address.partition("://")[2].strip("/")
    found = {name.strip("/") for name in store.find(root)} if store.exists(root) else set()
    return {name.removeprefix(root).lstrip("/") for name in found}


def check_whole(out: str, summaries: dict[int, bytes]) -> int:
    """Open a run, and hold all that it says against each other; how many conversations it has."""
    run = Run.open(out)
    count = run.summary.conversations
    assert count == sum(run.receipt.parts) == len(list(run.conversations())) == run.read_report.conversations
    assert run.tables.own("summary.json").read_bytes() == summaries[count]
    assert len({row["conversation"] for row in run.conversation_scores().to_list()}) == count
    return count


def check_tidy(store: Any, out: str) -> None:
    """What is below the run is the run, the own files of the one before, and copies of its own files for people."""
    run = Run.open(out)
    before = f"generation-{run.receipt.generation - 1:06d}"
    objects = {name for name in below(store, out) if file_name(name) and not name.startswith(before)}
    assert objects == set(run.receipt.objects)
    assert not below(store, f"{out}.partial")
    root = out.partition("://")[2]
    for name in ("summary.json", "read-report.json", "profiles.parquet"):
        assert store.cat_file(f"{root}/{name}") == run.tables.own(name).read_bytes()
    assert run.receipt.run_id in page_facts(run.folder / "report.html")
    assert not run.tables.own("page-due").exists()


def copy_of(store: Any, source: str, target: str) -> str:
    root, there = source.partition("://")[2], target.partition("://")[2]
    for name in below(store, source):
        store.cp_file(f"{root}/{name}", f"{there}/{name}")
    store.invalidate_cache()
    return target


def check_old_or_new(out: str, summaries: dict[int, bytes], old: int, new: int = NEW) -> None:
    """What a killed command leaves: the run as it was, or as it is to be."""
    if old or below(fsspec.filesystem(out.partition("://")[0]), f"{out}/receipt.json"):
        assert check_whole(out, summaries) in (old, new)
    else:
        with pytest.raises(RunError, match=r"no run at|is not a run"):
            Run.open(out)


def kill_at_every_write(store: Any, logs: Path, out: str, summaries: dict[int, bytes], old: int = 0) -> int:
    """The same command again and again, each time with one write more, on what the one before left; how often."""
    for most in range(100):
        with killed_after(store, most):
            try:
                scored(logs, out)
            except Killed:
                check_old_or_new(out, summaries, old)
            else:
                return most
    raise AssertionError("it never ends")


def test_a_first_run_that_is_killed_at_any_write_is_gone_on_from(
    memory: Any, logs: dict[int, Path], summaries: dict[int, bytes]
) -> None:
    # From the mark to the receipt: the mark, three tables of a part, six files of the run's own, that its page is due.
    assert kill_at_every_write(memory, logs[NEW], "memory://runs/first", summaries) >= 11
    assert check_whole("memory://runs/first", summaries) == NEW
    check_tidy(memory, "memory://runs/first")


def test_a_growth_that_is_killed_at_any_write_leaves_the_old_run_or_the_new_one(
    memory: Any, logs: dict[int, Path], summaries: dict[int, bytes]
) -> None:
    scored(logs[OLD], "memory://runs/grown")
    assert kill_at_every_write(memory, logs[NEW], "memory://runs/grown", summaries, OLD) >= 11
    assert check_whole("memory://runs/grown", summaries) == NEW
    check_tidy(memory, "memory://runs/grown")


def test_what_comes_after_the_receipt_is_done_by_the_next_command(
    memory: Any, logs: dict[int, Path], summaries: dict[int, bytes]
) -> None:
    scored(logs[OLD], "memory://runs/base")
    memory.pipe_file("/runs/base/audit.json", b"{}")
    out = copy_of(memory, "memory://runs/base", "memory://runs/counted")
    with killed_after(memory, 100) as written:
        scored(logs[NEW], out)
    receipt = next(at for at, name in enumerate(written, 1) if name.endswith("/receipt.json"))
    # Copies for people, the audit, the page, that it is no longer due, what is stale, what was kept, the mark.
    assert len(written) - receipt >= 9
    for most in range(receipt, len(written)):
        out = copy_of(memory, "memory://runs/base", f"memory://runs/after-{most}")
        with killed_after(memory, most), pytest.raises(Killed):
            scored(logs[NEW], out)
        assert check_whole(out, summaries) == NEW
        scored(logs[NEW], out)
        check_tidy(memory, out)
        # It was of the run before.
        assert "audit.json" not in below(memory, out)


@pytest.mark.parametrize("most", [12, 20])
def test_what_a_kill_leaves_on_s3_is_gone_on_from(
    store: Any, logs: dict[int, Path], summaries: dict[int, bytes], most: int
) -> None:
    out = f"s3://{BUCKET}/killed/{most}"
    for count, old in ((OLD, 0), (NEW, OLD)):
        with pytest.raises(Killed), killed_after(store, most):
            scored(logs[count], out)
        check_old_or_new(out, summaries, old, count)
        scored(logs[count], out)
        assert check_whole(out, summaries) == count
        check_tidy(store, out)


class Meanwhile:
    """Another process does something at the moment when a run is to be published."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
        publish, self.acts = stored.StoredRun.publish, [act]

        def after_the_other(run: Any, made: Run) -> Run:
            if self.acts:
                self.acts.pop()()
            return publish(run, made)

        monkeypatch.setattr(stored.StoredRun, "publish", after_the_other)


@pytest.mark.parametrize("scheme", ["s3", "memory"])
@pytest.mark.parametrize("grows", [False, True])
def test_of_two_writers_with_other_logs_one_is_refused(
    store: Any, memory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scheme: str, *, grows: bool
) -> None:
    """Both have one conversation more, c100 here and c101 there, in lines of the same length."""
    out = f"{scheme}://{BUCKET}/two/{grows}"
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder in (mine, theirs):
        folder.mkdir()
        write_lines(folder / "monday.jsonl", range(OLD))
    if grows:
        scored(mine, out)
    for folder, number in ((mine, 100), (theirs, 101)):
        write_lines(folder / "tuesday.jsonl", [number])
    Meanwhile(monkeypatch, lambda: scored(theirs, out))
    with pytest.raises(RunError, match="another process has written"):
        scored(mine, out)
    run = Run.open(out)
    ids = {one.id for one in run.conversations()}
    assert {row["conversation"] for row in run.conversation_scores().to_list()} == ids
    whole = {one.id for one in scored(theirs, str(tmp_path / "whole")).conversations()}
    assert ids == whole
    check_tidy(store if scheme == "s3" else memory, out)


def test_of_two_writers_with_the_same_logs_both_have_the_run(
    store: Any, monkeypatch: pytest.MonkeyPatch, logs: dict[int, Path], summaries: dict[int, bytes]
) -> None:
    out = f"s3://{BUCKET}/twice"
    Meanwhile(monkeypatch, lambda: scored(logs[OLD], out))
    scored(logs[OLD], out)
    assert check_whole(out, summaries) == OLD
    check_tidy(store, out)


def test_a_command_that_finds_nothing_new_does_not_disturb_one_that_writes(
    memory: Any, monkeypatch: pytest.MonkeyPatch, logs: dict[int, Path], summaries: dict[int, bytes]
) -> None:
    """A first run that was killed after its receipt left things undone; they are done while the run grows."""
    out = "memory://runs/disturbed"
    with killed_after(memory, 100) as written:
        scored(logs[OLD], "memory://runs/counted")
    receipt = next(at for at, name in enumerate(written, 1) if name.endswith("/receipt.json"))
    with killed_after(memory, receipt + 1), pytest.raises(Killed):
        scored(logs[OLD], out)
    put = storage.put_if

    def late(store: Any, name: str, *rest: Any) -> bool:
        # All objects of the run that grows are there, but its receipt.
        monkeypatch.setattr(stored, "put_if", put)
        scored(logs[OLD], out)
        return put(store, name, *rest)

    monkeypatch.setattr(stored, "put_if", late)
    scored(logs[NEW], out)
    assert check_whole(out, summaries) == NEW
    check_tidy(memory, out)


def test_a_receipt_whose_answer_was_lost_is_there(
    store: Any, monkeypatch: pytest.MonkeyPatch, logs: dict[int, Path], summaries: dict[int, bytes]
) -> None:
    """The client tries again, and the store refuses, since the object is there by now: it is our own."""
    kind, lost = type(store), list[str]()
    call = kind._call_s3

    async def losing(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        answer = await call(self, method, *args, **kwargs)
        if method == "put_object" and kwargs["Key"].endswith("receipt.json") and not lost:
            lost.append(kwargs["Key"])
            await call(self, method, *args, **kwargs)
        return answer

    monkeypatch.setattr(kind, "_call_s3", losing)
    out = f"s3://{BUCKET}/lost-answer"
    scored(logs[OLD], out)
    assert lost
    assert check_whole(out, summaries) == OLD
    check_tidy(store, out)


def test_a_part_of_a_killed_attempt_is_not_taken_for_one_of_other_content(
    store: Any, memory: Any, tmp_path: Path
) -> None:
    """The line of the log changes at equal length: the part of the killed attempt has the size of the new one."""
    out = "memory://runs/changed"
    write_lines(tmp_path / "monday.jsonl", range(OLD))
    scored(tmp_path, out)
    late = tmp_path / "tuesday.jsonl"
    write_lines(late, [100])
    before = late.read_text()
    with killed_after(memory, 8) as written, pytest.raises(Killed):
        scored(tmp_path, out)
    assert any("runs/changed/conversations.parquet/part-000001" in name for name in written)
    late.write_text(before.replace("a", "e"))
    assert len(late.read_text()) == len(before)
    scored(tmp_path, out)
    whole = scored(tmp_path, str(tmp_path / "whole"))
    assert list(Run.open(out).conversations()) == list(whole.conversations())


def test_a_run_that_was_copied_into_a_store_grows_there(
    memory: Any, logs: dict[int, Path], summaries: dict[int, bytes], tmp_path: Path
) -> None:
    run, out = scored(logs[OLD], str(tmp_path / "run")), "memory://runs/copied"
    for path in run.folder.rglob("*"):
        if path.is_file():
            memory.pipe_file(f"/runs/copied/{path.relative_to(run.folder).as_posix()}", path.read_bytes())
    assert kill_at_every_write(memory, logs[NEW], out, summaries, OLD) >= 11
    assert check_whole(out, summaries) == NEW


def test_a_copy_of_a_stored_run_opens_on_this_machine_and_does_not_grow(
    memory: Any, logs: dict[int, Path], summaries: dict[int, bytes], tmp_path: Path
) -> None:
    scored(logs[OLD], "memory://runs/source")
    memory.get("/runs/source", str(tmp_path / "copy"), recursive=True)
    assert check_whole(str(tmp_path / "copy"), summaries) == OLD
    with pytest.raises(RunError, match="copy of a run in an object store"):
        scored(logs[NEW], str(tmp_path / "copy"))
    assert check_whole(str(tmp_path / "copy"), summaries) == OLD


def test_a_reader_that_opened_a_run_before_it_grew_goes_on_with_it(
    store: Any, logs: dict[int, Path], summaries: dict[int, bytes]
) -> None:
    out = f"s3://{BUCKET}/read"
    before = scored(logs[OLD], out)
    opened = Run.open(out)
    scored(logs[NEW], out)
    assert opened.summary.conversations == OLD
    assert before.tables.own("summary.json").read_bytes() == summaries[OLD]
    assert len(list(opened.conversations())) == OLD


def test_nothing_new_writes_nothing(store: Any, logs: dict[int, Path]) -> None:
    out = f"s3://{BUCKET}/unchanged"
    run_id = scored(logs[OLD], out).receipt.run_id
    with killed_after(store, 0):
        assert scored(logs[OLD], out).receipt.run_id == run_id


def test_an_object_that_is_gone_is_an_error_and_no_figure(store: Any, logs: dict[int, Path]) -> None:
    out = f"s3://{BUCKET}/gone"
    run = scored(logs[OLD], out)
    gone = next(one for one in run.receipt.objects if one.startswith("scores.parquet/"))
    store.rm_file(f"{BUCKET}/gone/{gone}")
    with pytest.raises(RunError, match="is missing: the run is not whole"):
        Run.open(out)
    with pytest.raises(RunError, match="is missing"):
        scored(logs[NEW], out)


def test_a_name_in_a_receipt_does_not_lead_out_of_the_run(memory: Any, logs: dict[int, Path]) -> None:
    run = scored(logs[OLD], "memory://runs/hostile")
    text = memory.cat_file("/runs/hostile/receipt.json")
    for name in ("../other/scores.parquet/part-000000.parquet", "generation-000000/../../x", "/etc/passwd"):
        memory.pipe_file("/runs/hostile/receipt.json", text.replace(run.receipt.objects[0].encode(), name.encode()))
        with pytest.raises(RunError, match="no object of a run"):
            Run.open("memory://runs/hostile")


def test_a_listing_that_is_old_hides_no_rows(
    store: Any, logs: dict[int, Path], summaries: dict[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing of before the run grew: what it does not name is asked for by name."""
    out = f"s3://{BUCKET}/stale"
    scored(logs[OLD], out)
    old = {root: store.find(root, detail=True) for root in (f"{BUCKET}/stale",)}
    scored(logs[NEW], out)
    kind = type(store)
    lists = kind._lsdir

    async def old_listing(self: Any, path: str, **options: Any) -> Any:
        listed = await lists(self, path, **options)
        known = old[f"{BUCKET}/stale"]
        return [one for one in listed if not one["name"].startswith(f"{BUCKET}/stale") or one["name"] in known]

    monkeypatch.setattr(kind, "_lsdir", old_listing)
    assert check_whole(out, summaries) == NEW


def test_prune_works_on_a_run_in_a_store(memory: Any, tmp_path: Path) -> None:
    """Six chats of two days: three stay."""
    days = ["2026-11-01"] * 3 + ["2026-11-02"] * 3
    lines = [
        f'{{"id": "c{at}", "messages": [{{"role": "user", "content": "Hi {at}", "timestamp": "{day}T10:00:00Z"}}, '
        f'{{"role": "assistant", "content": "Hello", "timestamp": "{day}T10:00:02Z"}}]}}\n'
        for at, day in enumerate(days)
    ]
    (tmp_path / "chats.jsonl").write_text("".join(lines))
    run = scored(tmp_path / "chats.jsonl", "memory://runs/pruned")
    pruned = prune(run, "2026-11-02")
    assert (pruned.dropped, pruned.run.summary.conversations) == (3, 3)
    assert [one.id for one in Run.open("memory://runs/pruned").conversations()] == ["c3", "c4", "c5"]
    assert prune(pruned.run, "2026-11-02").dropped == 0
    since = scored(tmp_path / "chats.jsonl", str(tmp_path / "since"), since="2026-11-02")
    assert pruned.run.tables.own("summary.json").read_bytes() == (since.folder / "summary.json").read_bytes()
