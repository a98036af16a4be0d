"""What every engine of a cluster must do, whichever it is: logs, code of a user, and drivers that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convoscope.conversation import to_json
from convoscope.metrics import example
from convoscope.runs.make import make_run
from convoscope.runs.run import Run
from support.generated import FEW, write_lines
from support.judge_server import judge_server

EVERYTHING = pytest.mark.skipif(not os.environ.get("CONVOSCOPE_ENGINES"), reason="make test-engines runs it")

CODE = '''
import os, signal
from pathlib import Path
from convoscope.conversation import Conversation, Participant, Text, Utterance
from convoscope.ingest.reader import Detection, Reader
from convoscope import metric
from convoscope.metrics import measured


class Talks(Reader):
    """Plain lines: who, a bar, what."""

    name = "NAME"
    title = "Notes of a talk"

    def detect(self, sample):
        if sample.container == "text" and all(" | " in line for line in sample.values):
            return Detection(0.9, "lines of who | what", "file")
        return None

    def build(self, group, notes):
        said = [record.value.split(" | ", 1) for record in group.records]
        events = tuple(
            Utterance(seq=at, speaker=who, intended=Text(what, "notes")) for at, (who, what) in enumerate(said)
        )
        people = tuple(Participant(who, who) for who in ("user", "assistant"))
        yield Conversation(id=group.name, participants=people, timeline=events)


TALKS = Talks()


@metric("mine.shouting", version=1, observes="conversation", unit="count", better="lower")
def shouting(conversation):
    """How many utterances are in capitals?"""
    for name in ("once", "always"):
        mark = Path(__file__).with_name(f"kill-{name}")
        if conversation.id == "3" and mark.exists():
            if name == "once":
                mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    return measured(conversation, sum(conversation.text(one).isupper() for one in conversation.utterances))
'''
"""A reader and a metric of a user. Beside a file `kill-once`, the metric kills the worker that has talk 3, once."""


def write_talks(folder: Path, name: str) -> Path:
    """Six talks in a format of a user, of which the first and the fourth shout; gives the file of the code."""
    (folder / "talks").mkdir()
    for number in range(6):
        text = "WHERE IS IT?" if number % 3 == 0 else "Where is it?"
        (folder / "talks" / f"{number}.txt").write_text(f"user | {text}\nassistant | Here.\n")
    source = folder / f"my_{name}.py"
    source.write_text(CODE.replace("NAME", name))
    return source


def score_talks(folder: Path, source: Path, engine: str, out: str = "run") -> Run:
    """A part for each talk."""
    return make_run(
        folder / "talks",
        metrics=["mine.shouting"],
        metrics_from=[source],
        readers_from=[source],
        engine=engine,
        part_bytes=30,
        out=folder / out,
    )


def check_bytes(folder: Path, engine: str) -> None:
    """The parts and the summary are those of this machine, to the byte."""
    logs = write_lines(folder / "chats.jsonl", range(60))
    here = make_run(logs, metrics=FEW, out=folder / "here", workers=1, part_bytes=5000)
    there = make_run(logs, metrics=FEW, out=folder / "there", engine=engine, part_bytes=5000)
    assert there.receipt.parts == here.receipt.parts
    assert len(there.receipt.parts) > 3
    assert (there.folder / "summary.json").read_bytes() == (here.folder / "summary.json").read_bytes()
    assert list(map(str, there.scores())) == list(map(str, here.scores()))
    assert files_of(there) == files_of(here)


def files_of(run: Run) -> list[str]:
    """The files of a run, by their paths in it."""
    return sorted(str(path.relative_to(run.folder)) for path in run.folder.rglob("*") if path.is_file())


def check_judges(folder: Path, engine: str) -> Run:
    """Of two workers each has one question in flight, and all workers together ask 7 of the 12."""
    (folder / "calls").mkdir()
    for number in range(12):
        call = example("user: Hello?", f"assistant: Hello, {number}.", id=f"call-{number}")
        (folder / "calls" / f"{number}.json").write_bytes(to_json(call))
    with judge_server() as server:
        server.seconds = 0.02
        run = make_run(
            folder / "calls",
            judge=server.openai,
            metrics="judged.faithfulness",
            out=folder / "run",
            engine=engine,
            max_questions=7,
            max_concurrency=2,
            part_bytes=200,
        )
        assert len(server.prompts) == 7
        assert server.most_in_flight <= 2
    reasons = sorted(row.reason for row in run.scores() if row.metric == "judged.faithfulness")
    assert reasons == [""] * 7 + ["budget_spent"] * 5
    return run


def check_lost_worker(folder: Path, source: Path, engine: str) -> Run:
    """A worker is killed once, and its part is done again."""
    (folder / "kill-once").touch()
    run = score_talks(folder, source, engine)
    assert not (folder / "kill-once").exists()  # the worker was killed
    assert [one.id for one in run.conversations()] == ["0", "1", "2", "3", "4", "5"]
    assert run.summary.metrics[0].value == pytest.approx(2 / 6)  # the first and the fourth
    return run


CHATS, PART = 60, 3_000
HELD = """
import time
from pathlib import Path
from convoscope import metric
from convoscope.metrics import measured


@metric("mine.held", version=1, observes="conversation", unit="count", better="lower")
def held(conversation):
    '''How many events? One conversation takes as long as there is a file `hold`.'''
    while conversation.id == "chat-00040" and Path(__file__).with_name("hold").exists():
        time.sleep(0.01)
    return measured(conversation, len(conversation.timeline))
"""
"""A metric that keeps a run from its end until it was stopped, however fast the machine is."""
DRIVER = f"""
import sys
from convoscope import score
score(sys.argv[1], metrics={[*FEW, "mine.held"]}, metrics_from=[sys.argv[2]], out=sys.argv[3], engine=sys.argv[4],
      workers=2, part_bytes={PART})
"""


def held_file(folder: Path) -> Path:
    """The file of the metric: two modules of one name would be refused."""
    return folder / f"held_{folder.name}.py"


def stop_driver(folder: Path, engine: str, how: signal.Signals, parts: int = 3) -> tuple[Path, int, list[int]]:
    """Start a driver in a process of its own and stop it when some parts are done.

    Gives the logs, the exit code, and the processes that it had started.
    """
    logs = write_lines(folder / "chats.jsonl", range(CHATS))
    held_file(folder).write_text(HELD)
    (folder / "hold").touch()
    with (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(logs), str(held_file(folder)), str(folder / "run"), engine],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    journal = folder / "run.partial" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > parts):
        time.sleep(0.005)
    assert process.poll() is None, (folder / "errors.txt").read_text()
    started = descendants(process.pid)
    os.kill(process.pid, how)
    code = process.wait()
    (folder / "hold").unlink()
    return logs, code, started


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that these started."""
    try:
        children = [one for path in Path(f"/proc/{pid}/task").glob("*/children") for one in path.read_text().split()]
    except OSError:
        return []
    return [one for child in children for one in (int(child), *descendants(int(child)))]


def wait_for_end(pids: list[int], seconds: float = 60) -> list[int]:
    """Those of some processes that still run when they should have ended."""
    end = time.monotonic() + seconds
    while (alive := [pid for pid in pids if _is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.05)
    return alive


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def check_resumed(folder: Path, logs: Path) -> None:
    """A run that was stopped is continued here: nothing is lost, nothing is there twice."""
    resumed, whole = (
        make_run(
            logs,
            metrics=[*FEW, "mine.held"],
            metrics_from=[held_file(folder)],
            out=folder / name,
            workers=1,
            part_bytes=PART,
        )
        for name in ("run", "whole")
    )
    assert any(warning.startswith("resuming: ") for warning in resumed.read_report.warnings)
    assert [one.id for one in resumed.conversations()] == [f"chat-{number:05d}" for number in range(CHATS)]
    assert (resumed.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
    # A page is written by `score`, and not here; nothing that was half written is left.
    assert files_of(resumed) == files_of(whole)
    assert not (folder / "run.partial").exists()
