"""Where a run may be made: beside others at work, in volumes and behind links, never over what is not ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import convoscope
from convoscope.errors import RunError, UsageError
from convoscope.runs.partial import Partial
from support.command_line import convoscope as command
from support.generated import FEW, write_lines


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("logs") / "chats.jsonl", range(60))


@pytest.fixture(scope="module")
def whole(logs: Path) -> convoscope.Run:
    return convoscope.score(logs, metrics=FEW, out=logs.parent / "whole", workers=1)


def started(logs: Path, out: Path) -> subprocess.Popen[str]:
    arguments = ["score", str(logs), "--metrics", ",".join(FEW), "--out", str(out), "--workers", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "convoscope", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


class TestTwoProcesses:
    @pytest.mark.parametrize("delay", [0.0, 0.3, 1.0])
    def test_one_makes_the_run_and_the_other_opens_it_or_says_who_makes_it(
        self, delay: float, logs: Path, whole: convoscope.Run, tmp_path: Path
    ) -> None:
        out = tmp_path / "run"
        first = started(logs, out)
        time.sleep(delay)
        second = started(logs, out)
        ended = [(*process.communicate(timeout=120), process.returncode) for process in (first, second)]
        assert 0 in [code for _, _, code in ended]
        for process, (_, err, code) in zip((first, second), ended, strict=True):
            if code:
                (other,) = {first.pid, second.pid} - {process.pid}
                said = rf"error: another process is writing {out}.partial \(process {other} on .+, since 20.+Z\)\n"
                assert re.fullmatch(said + "  wait for it, or choose another --out\n", err)
                assert code == 2
        assert [path.name for path in tmp_path.iterdir()] == ["run"]
        assert (out / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
        assert command("score", logs, "--metrics", ",".join(FEW), "--out", out).code == 0

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no list of open files to look at")
    def test_a_run_that_is_finished_while_another_waits_is_opened(
        self, logs: Path, whole: convoscope.Run, tmp_path: Path
    ) -> None:
        out = tmp_path / "run"
        busy = Partial(out, {"settings": "other"})
        waiting = started(logs, out)
        while not any(path.endswith("/run.partial/lock") for path in open_files(waiting.pid)):
            assert waiting.poll() is None
            time.sleep(0.005)
        shutil.copytree(whole.folder, out)
        busy.discard()
        _, err = waiting.communicate(timeout=120)
        assert (waiting.returncode, err) == (0, "")
        assert [path.name for path in tmp_path.iterdir()] == ["run"]
        assert convoscope.Run.open(out).receipt.run_id == whole.receipt.run_id

    def test_what_was_given_up_is_no_obstacle(self, logs: Path, tmp_path: Path) -> None:
        """A lock that was made, and whose maker was killed before it could sign it."""
        (tmp_path / "run.partial").mkdir()
        (tmp_path / "run.partial" / "lock").touch()
        run = convoscope.score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert run.summary.conversations == 60
        assert [path.name for path in tmp_path.iterdir()] == ["run"]


def open_files(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except OSError:
            continue
    return found


class TestAFolderThatIsThere:
    """It may be the volume of a container, which can neither be removed nor replaced."""

    def test_a_run_is_made_inside_of_it(self, logs: Path, whole: convoscope.Run, tmp_path: Path) -> None:
        out = tmp_path / "volume"
        out.mkdir()
        (out / "lost+found").mkdir()
        before = out.stat().st_ino
        convoscope.score(logs, metrics=FEW, out=out, workers=1)
        assert out.stat().st_ino == before
        assert [path.name for path in tmp_path.iterdir()] == ["volume"]
        names = {path.name for path in out.iterdir()}
        assert names == {path.name for path in whole.folder.iterdir()} | {"lost+found"}
        assert (out / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
    def test_a_mount_point(self, logs: Path, tmp_path: Path) -> None:
        out = tmp_path / "volume"
        out.mkdir()
        script = f'mount -t tmpfs none "{out}" && {sys.executable} -m convoscope score "{logs}" -m turns --out "{out}"'
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", out], check=False).returncode:
            pytest.skip("nothing may be mounted here")
        again = f'{script} && ls -A "{out}" && {sys.executable} -m convoscope runs show "{out}"'
        ended = subprocess.run(["unshare", "-m", "sh", "-c", again], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "receipt.json" in ended.stdout
        assert ".partial" not in ended.stdout

    def test_a_link_to_an_empty_folder_stays_one(self, logs: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "link").symlink_to("elsewhere")
        run = convoscope.score(logs, metrics=FEW, out=tmp_path / "link", workers=1)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "elsewhere" / "receipt.json").exists()
        assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "link"}
        assert convoscope.Run.open(tmp_path / "elsewhere").receipt.run_id == run.receipt.run_id

    def test_a_link_that_leads_nowhere_is_refused(self, logs: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("nowhere")
        with pytest.raises(RunError, match="is a broken link"):
            convoscope.score(logs, metrics=FEW, out=tmp_path / "link", workers=1)
        assert [path.name for path in tmp_path.iterdir()] == ["link"]

    def test_the_folder_that_one_is_in(self, logs: Path, tmp_path: Path) -> None:
        ended = command("score", logs, "--metrics", "turns", "--out", ".", cwd=tmp_path)
        assert (ended.code, ended.err) == (0, "")
        assert "page  report.html" in ended.out
        asked = command("sql", "--run", ".", "SELECT run, conversations FROM runs", "--json", cwd=tmp_path)
        assert asked.json == [{"run": tmp_path.name, "conversations": 60}]

    @pytest.mark.parametrize("moved", [(), ("summary.json", "scores.parquet"), ("receipt.json",)])
    def test_a_kill_while_it_is_moved_up(
        self, moved: tuple[str, ...], logs: Path, whole: convoscope.Run, tmp_path: Path
    ) -> None:
        """Files of a finished run are moved one by one, the receipt last."""
        out = tmp_path / "run"
        out.mkdir()
        inside = Partial(out, {**whole.receipt.depends_on, "part_bytes": str(4 * 1024 * 1024)})
        inside.finish()
        inside.close()
        for path in whole.folder.iterdir():
            last = moved == ("receipt.json",)
            target = out if last or path.name in moved else inside.folder
            (shutil.copytree if path.is_dir() else shutil.copy)(path, target / path.name)
        if moved != ("receipt.json",):
            with pytest.raises(RunError, match="score again to resume"):
                convoscope.Run.open(out)
        run = convoscope.score(logs, metrics=FEW, out=out, workers=1)
        assert run.receipt.run_id == whole.receipt.run_id
        assert {path.name for path in out.iterdir()} == {path.name for path in whole.folder.iterdir()}


class TestWhatIsNotOurs:
    @pytest.mark.parametrize("lock", ["", "42\n"])
    @pytest.mark.parametrize("where", ["run.partial", "run/.partial"])
    def test_a_folder_with_a_lock_loses_nothing(self, where: str, lock: str, logs: Path, tmp_path: Path) -> None:
        theirs = {"lock": lock, "parts/a.txt": "years", "scratch/b.txt": "of", "scores.parquet/c.txt": "work"}
        for name, text in theirs.items():
            path = tmp_path / where / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        with pytest.raises(RunError, match="is not an unfinished run"):
            convoscope.score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert {name: (tmp_path / where / name).read_text() for name in theirs} == theirs

    def test_a_file_in_the_place_of_the_folder_is_left_alone(self, logs: Path, tmp_path: Path) -> None:
        (tmp_path / "run.partial").write_text("years of work")
        with pytest.raises(RunError, match="is not an unfinished run"):
            convoscope.score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert (tmp_path / "run.partial").read_text() == "years of work"

    def test_a_folder_that_comes_meanwhile_is_left_alone(self, tmp_path: Path) -> None:
        unfinished = Partial(tmp_path / "run", {})
        unfinished.finish()
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "thesis.txt").write_text("years of work")
        with pytest.raises(RunError, match=r"everything is kept in .*run\.partial"):
            unfinished.publish()
        unfinished.close()
        assert (tmp_path / "run" / "thesis.txt").exists()
        assert (tmp_path / "run.partial" / "journal.jsonl").exists()


def test_a_path_that_is_not_utf8_is_refused_before_anything_is_done(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"r\xffn")
    with pytest.raises(UsageError, match=r"r\\xffn' is not UTF-8"):
        convoscope.score(logs, metrics=FEW, out=out, workers=1)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_moved_to_such_a_path_says_so(whole: convoscope.Run, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"r\xffn")
    shutil.copytree(whole.folder, folder)
    ended = command("show", folder)
    assert ended.code == 2
    assert "is not UTF-8\n  rename the folder of the run" in ended.err


def test_a_run_on_a_disk_that_is_read_only_is_opened(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    convoscope.score(logs, metrics="turns", out=out, workers=1)
    # As a kill at the very last moment leaves it.
    (out / "lock").write_bytes(b"an unfinished run of convoscope\n")
    arguments = f'score "{logs}" --metrics turns --out "{out}"'
    if os.geteuid() == 0:
        # Root may write everywhere, but on a disk that is mounted so.
        script = f'mount --bind "{out}" "{out}" && mount -o remount,ro,bind "{out}"'
        shell = ["unshare", "-m", "sh", "-c"]
        if subprocess.run([*shell, script], capture_output=True, check=False).returncode:
            pytest.skip("nothing may be mounted here")
        script += f' && ! touch "{out}/x" 2> /dev/null && {sys.executable} -m convoscope {arguments}'
    else:
        out.chmod(0o555)
        shell, script = ["sh", "-c"], f"{sys.executable} -m convoscope {arguments}"
    ended = subprocess.run([*shell, script], capture_output=True, text=True, check=False)
    out.chmod(0o755)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "60 conversations" in ended.stdout
