"""`convoscope watch` follows real files in a process of its own."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread, Timer
from typing import IO, Any

import pytest

from convoscope.runs.run import Run
from support.generated import chat

OPTIONS = [
    "--every",
    "0.1",
    "--ended-after",
    "0.3",
    "--report",
    "3000",
    "--metrics",
    "conversation.turns,tools.success",
]


class Watching:
    """The process, and what it prints."""

    def __init__(self, process: subprocess.Popen[str], output: IO[str]) -> None:
        self.process, self._output = process, output

    def next(self) -> dict[str, Any]:
        """The next line."""
        value: dict[str, Any] = json.loads(self._output.readline())
        return value

    def until(self, event: str) -> dict[str, Any]:
        """The next line of this kind."""
        for line in self._output:
            value: dict[str, Any] = json.loads(line)
            if value["event"] == event:
                return value
        assert self.process.stderr is not None
        raise AssertionError(f"it ended without {event}: {self.process.wait()}, {self.process.stderr.read()[-2000:]}")

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)


@contextmanager
def watching(folder: Path, *options: str, logs: str = "logs") -> Iterator[Watching]:
    command = [sys.executable, "-m", "convoscope", "watch", logs, "--json", "--out", "run", *OPTIONS, *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # A line that never comes would be waited for.
    limit = Timer(90, process.kill)
    limit.start()
    try:
        assert process.stdout is not None
        yield Watching(process, process.stdout)
    finally:
        limit.cancel()
        process.kill()
        process.communicate()


def add(path: Path, *numbers: int) -> None:
    with path.open("a") as stream:
        stream.writelines(json.dumps({**chat(number), "resolved": bool(number % 2)}) + "\n" for number in numbers)


def test_a_line_for_each_conversation_that_ended(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    add(logs / "a.jsonl", 1, 2)
    with watching(tmp_path, "--label", "resolved") as watch:
        begun = watch.until("following")
        assert (begun["files"], begun["known"]) == (1, 2)
        add(logs / "a.jsonl", 3)
        ended = watch.until("ended")
        assert (ended["id"], ended["outcome"]) == ("chat-00003", "done")
        # One document is one call that may still be written to: it counts when it is quiet.
        (logs / "b.json").write_text(json.dumps({**chat(4), "resolved": False}))
        ended = watch.until("ended")
        assert (ended["id"], ended["outcome"]) == ("chat-00004", "lost")
        assert watch.interrupt() == 0
        assert watch.until("end")["answer"]["conversations"] == 4
    assert Run.open(tmp_path / "run").summary.conversations == 4
    assert (tmp_path / "run" / "report.html").exists()


def test_a_missed_target_is_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    add(tmp_path / "logs" / "a.jsonl", *range(10))
    with watching(tmp_path, "--target", "turns >= 100", "--stalled", "0.2") as watch:
        assert watch.until("stalled")["seconds"] >= 0
        assert watch.interrupt() == 1


def test_a_conversation_that_goes_on_right_now_is_not_counted(tmp_path: Path) -> None:
    """Messages are joined by id; one that came a moment ago says that the conversation is not over."""
    (tmp_path / "logs").mkdir()

    def say(id: str, role: str, text: str, at: float) -> None:
        message = {"conversation_id": id, "role": role, "content": text, "timestamp": at}
        with (tmp_path / "logs" / "live.jsonl").open("a") as stream:
            stream.write(json.dumps(message) + "\n")

    for role in ("user", "assistant"):
        say("over", role, f"Words of the {role}.", time.time() - 7200)
    soon = time.time() + 12
    for role in ("user", "assistant"):
        say("goes-on", role, f"Words of the {role}.", soon)
    with watching(tmp_path) as watch:
        assert watch.until("following")["known"] == 1
        ended = watch.until("ended")
        # Not before its last message was 0.3 s ago.
        assert ended["id"] == "goes-on"
        assert time.time() >= soon + 0.3
        assert watch.interrupt() == 0
    assert os.listdir(tmp_path / "logs") == ["live.jsonl"]


def test_logs_that_come_later(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with watching(tmp_path) as watch:
        assert watch.until("following")["files"] == 0
        add(tmp_path / "logs" / "a.jsonl", 1)
        assert watch.until("ended")["id"] == "chat-00001"
        assert watch.interrupt() == 0


def write(path: Path, *records: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_a_log_that_is_rotated_brings_nothing_new(tmp_path: Path) -> None:
    """With an id or without: only the chat in the new log ended, and it was lost. The old log goes away in the end."""
    logs = tmp_path / "logs"
    logs.mkdir()
    nameless = {name: value for name, value in chat(1).items() if name != "id"}
    write(logs / "app.jsonl", {**nameless, "resolved": True}, *({**chat(n), "resolved": True} for n in range(2, 26)))
    with watching(tmp_path, "--label", "resolved") as watch:
        assert watch.until("following")["known"] == 25
        (logs / "app.jsonl").rename(logs / "app.1.jsonl")
        add(logs / "app.jsonl", 500, 502)
        # The even ones are lost.
        assert [watch.until("ended")["id"] for _ in range(2)] == ["chat-00500", "chat-00502"]
        (logs / "app.1.jsonl").unlink()
        add(logs / "app.jsonl", 503)
        assert watch.until("ended")["id"] == "chat-00503"
        assert watch.interrupt() == 0
        answer = watch.until("end")["answer"]
        # 25 that are gone from the logs, and three.
        assert answer["conversations"] == 28
        assert answer["outcomes"] == {"done": 26, "lost": 2}


def test_a_chat_in_three_snapshots_ended_once(tmp_path: Path) -> None:
    """It gets longer, and then its verdict."""
    logs, whole = tmp_path / "logs", chat(1)
    logs.mkdir()
    add(logs / "a.jsonl", 2)
    with watching(tmp_path, "--label", "resolved", "--report", "1") as watch:
        watch.until("following")
        lines = [{**whole, "messages": whole["messages"][:2]}, whole, {**whole, "resolved": True}]
        for number, record in enumerate(lines):
            with (logs / "b.jsonl").open("a") as stream:
                stream.write(json.dumps(record) + "\n")
            ended = watch.until("ended")
            assert (ended["id"], ended["again"]) == ("chat-00001", number > 0)
        report = watch.until("report")
        assert (report["ended"], report["done"], report["known"]) == (1, 1, 1)
        assert watch.interrupt() == 0


def test_what_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "broken.jsonl").write_text("no log\n")
    with watching(tmp_path, "--report", "0.5") as watch:
        watch.until("following")
        assert watch.until("problem")["problem"].startswith("broken.jsonl")
        add(tmp_path / "logs" / "a.jsonl", 1)
        events = [watch.next()["event"] for _ in range(2)]
        add(tmp_path / "logs" / "a.jsonl", 3)
        events += [watch.next()["event"] for _ in range(2)]
        assert "ended" in events
        assert "problem" not in events
        assert watch.interrupt() == 0


def test_a_rating_that_nobody_gave_yet(tmp_path: Path) -> None:
    """The label is in no log when it begins; it comes after the talk."""
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / "monday.jsonl", chat(1), chat(2))
    with watching(tmp_path, "--label", "resolved") as watch:
        assert watch.until("following")["known"] == 2
        assert watch.until("problem")["problem"] == "no conversation has a field 'resolved' yet"
        write(tmp_path / "logs" / "tuesday.jsonl", *({**chat(n), "resolved": n == 1} for n in (1, 2)))
        ended = [watch.until("ended") for _ in range(2)]
        assert [(one["id"], one["outcome"], one["again"]) for one in ended] == [
            ("chat-00001", "done", True),
            ("chat-00002", "lost", True),
        ]
        assert watch.interrupt() == 0
        assert watch.until("end")["answer"]["conversations"] == 2


def test_a_reader_that_has_seen_enough_ends_it(tmp_path: Path) -> None:
    """`head -n 1` reads one line: what comes later goes to nobody. Two conversations, and the target is missed."""
    (tmp_path / "logs").mkdir()
    add(tmp_path / "logs" / "a.jsonl", 1, 3)
    with watching(tmp_path, "--target", "turns >= 100") as watch:
        watch.until("following")
        assert watch.process.stdout is not None
        watch.process.stdout.close()
        assert watch.process.wait(timeout=60) == 1
        assert live(tmp_path / "run")["ended"] is True
        assert watch.process.stderr is not None
        assert watch.process.stderr.read() == ""
        watch.process.stdout = None


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_that_is_stopped_ends_as_with_ctrl_c(tmp_path: Path, workers: str) -> None:
    (tmp_path / "logs").mkdir()
    add(tmp_path / "logs" / "a.jsonl", 1, 3)
    with watching(tmp_path, "--target", "turns >= 100", "--workers", workers) as watch:
        watch.until("following")
        add(tmp_path / "logs" / "a.jsonl", 5)
        watch.until("ended")
        watch.process.terminate()
        assert watch.process.wait(timeout=60) == 1
        assert watch.until("end")["answer"]["conversations"] == 3
        news = live(tmp_path / "run")
        assert (news["ended"], news["total"], [one["id"] for one in news["calls"]]) == (True, 3, ["chat-00005"])


def test_before_anything_was_scored_it_ends_as_interrupted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with watching(tmp_path) as watch:
        watch.until("following")
        watch.process.terminate()
        assert watch.process.wait(timeout=60) == 130


class TestNewLines:
    """What is a new line: bytes that were in no log at the look before."""

    def watch(self, folder: Path) -> Any:
        from convoscope.analysis.policy import hold
        from convoscope.report.watch import Pace, Watch, watch_settings

        (folder / "logs").mkdir()
        add(folder / "logs" / "a.jsonl", 1, 3)
        settings = watch_settings(folder / "logs", out=folder / "run", metrics=["turns"], workers=1)
        watch = Watch(folder / "logs", settings, lambda run: hold(run, (), None, None), Pace(0.01, 3000, 3000))
        assert [*watch._begin()]
        # As if the newest line was an hour old.
        watch._quiet_since -= 3600
        return watch

    def change(self, logs: Path, name: str) -> None:
        log = logs / "a.jsonl"
        if name == "touched":
            os.utime(log, ns=(1, 1))
        elif name == "renamed":
            log.rename(logs / "b.jsonl")
        elif name == "copied":
            (logs / "b.jsonl").write_bytes(log.read_bytes())
        elif name == "an empty log":
            (logs / "b.jsonl").touch()
        elif name == "deleted":
            log.unlink()
        elif name == "a line":
            add(log, 5)
        elif name == "half a line":
            with log.open("a") as stream:
                stream.write('{"id": "chat')
        elif name == "a log":
            add(logs / "b.jsonl", 7)

    @pytest.mark.parametrize(
        ("name", "is_new"),
        [
            ("touched", False),
            ("renamed", False),
            ("copied", False),
            ("an empty log", False),
            ("deleted", False),
            ("a line", True),
            ("half a line", True),
            ("a log", True),
        ],
    )
    def test_what_resets_the_clock(self, tmp_path: Path, name: str, is_new: bool) -> None:
        watch = self.watch(tmp_path)
        newest, quiet = watch._newest, watch._quiet_since
        self.change(tmp_path / "logs", name)
        events = [*watch._look()]
        assert (watch._quiet_since > quiet) is is_new
        assert (watch._newest > newest) is is_new
        assert live(tmp_path / "run")["newest"] == watch._newest or not watch.run
        assert bool([one for one in events if "cannot" in str(one)]) is False


def test_a_report_is_not_repeated_while_nothing_happens(tmp_path: Path) -> None:
    """Due at each look, it comes once, and again after a conversation."""
    from convoscope.analysis.policy import hold
    from convoscope.report.watch import Pace, Watch, watch_settings

    (tmp_path / "logs").mkdir()
    add(tmp_path / "logs" / "a.jsonl", 1, 3)
    settings = watch_settings(tmp_path / "logs", out=tmp_path / "run", metrics=["turns"], workers=1)
    held = lambda run: hold(run, ["turns >= 100"], None, None)  # noqa: E731
    watch = Watch(tmp_path / "logs", settings, held, Pace(0.01, 1e-9, 3000))
    assert [*watch._begin()]

    def kinds() -> list[str]:
        return [type(event).__name__ for event in watch._look()]

    assert kinds() == ["HourReport", "TargetState"]
    assert kinds() == kinds() == []
    add(tmp_path / "logs" / "a.jsonl", 5)
    page = (tmp_path / "run" / "report.html").read_bytes()
    assert kinds() == ["ConversationEnded", "HourReport", "TargetState"]
    assert kinds() == []
    # The page was written less than a minute ago: it stays. What is new beside it says which run the page is of.
    assert (tmp_path / "run" / "report.html").read_bytes() == page
    news = live(tmp_path / "run")
    assert ([one["id"] for one in news["calls"]], news["total"], news["ended"]) == (["chat-00005"], 2, False)
    watch.end()
    assert (live(tmp_path / "run")["total"], live(tmp_path / "run")["ended"]) == (3, True)


class TestItGoesOn:
    """What goes wrong at a look is said once, and the next look tries again. The end is as ever."""

    def test_a_folder_that_is_gone_and_comes_back(self, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()
        add(logs / "a.jsonl", 1, 2)
        with watching(tmp_path) as watch:
            watch.until("following")
            logs.rename(tmp_path / "moved")
            assert watch.until("problem")["problem"] == "logs: there is no such file or folder; tried again"
            time.sleep(0.5)
            logs.mkdir()
            add(logs / "b.jsonl", 3, 4)
            assert {watch.next()["id"], watch.next()["id"]} == {"chat-00003", "chat-00004"}
            logs.rename(tmp_path / "gone")
            # It is another time.
            watch.until("problem")
            assert watch.interrupt() == 0
            assert watch.until("end")["answer"]["conversations"] == 4
        assert live(tmp_path / "run")["total"] == 4

    def test_one_log_that_is_renamed_and_made_again(self, tmp_path: Path) -> None:
        log = tmp_path / "app.jsonl"
        add(log, 1, 2)
        with watching(tmp_path, logs="app.jsonl") as watch:
            watch.until("following")
            log.rename(tmp_path / "app.1.jsonl")
            watch.until("problem")
            add(log, 3, 4)
            assert watch.until("ended")["id"] == "chat-00003"
            assert watch.interrupt() == 0
            assert watch.until("end")["answer"]["conversations"] == 4

    def test_logs_that_come_and_go_all_the_time(self, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()

        def document(number: int) -> Path:
            return logs / f"{number:05d}.json"

        for number in range(100):
            document(number).write_text(json.dumps(chat(number)))
        with watching(tmp_path, "--every", "0.02") as watch:
            watch.until("following")
            # A pipe that is full would keep it waiting.
            Thread(target=watch.until, args=["end"]).start()
            end = time.monotonic() + 2
            number = 100
            while time.monotonic() < end:
                document(number).write_text(json.dumps(chat(number)))
                document(number - 100).unlink()
                number += 1
                time.sleep(0.005)
            assert watch.process.poll() is None
            assert watch.interrupt() == 0

    def test_a_label_that_says_nothing_when_it_comes(self, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()
        write(logs / "a.jsonl", chat(1), chat(2))
        with watching(tmp_path, "--label", "v") as watch:
            watch.until("following")
            assert watch.until("problem")["problem"] == "no conversation has a field 'v' yet"
            write(logs / "b.jsonl", {**chat(3), "v": "yes"}, {**chat(4), "v": "no"})
            said = watch.until("problem")["problem"]
            assert said.startswith("label v: nothing says which value is good")
            assert "write --label 'v = yes'" in said
            write(logs / "b.jsonl", chat(3), chat(4))
            assert watch.until("ended")["id"] == "chat-00003"
            assert watch.interrupt() == 0

    def test_a_value_that_changes_what_gone_ones_mean(self, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()
        write(logs / "a.jsonl", *({**chat(number), "score": number} for number in (0, 1)))
        with watching(tmp_path, "--label", "score") as watch:
            watch.until("following")
            (logs / "a.jsonl").unlink()
            write(logs / "b.jsonl", *({**chat(number), "score": number} for number in (6, 7)))
            assert watch.until("problem")["problem"].startswith("score '0' says something else by now")
            assert watch.interrupt() == 0
            assert watch.until("end")["answer"]["conversations"] == 2

    def test_other_targets_at_a_restart(self, tmp_path: Path) -> None:
        (tmp_path / "logs").mkdir()
        add(tmp_path / "logs" / "a.jsonl", 1, 2)
        for target, code in (("turns >= 1", 0), ("turns >= 100", 1)):
            with watching(tmp_path, "--target", target) as watch:
                watch.until("following")
                assert watch.interrupt() == code


def live(run: Path) -> dict[str, Any]:
    """What the page is renewed from."""
    text = re.search(r">(\{.*\})</pre>", (run / "live.html").read_text())
    assert text is not None
    value: dict[str, Any] = json.loads(html.unescape(text[1]))
    return value


def test_retention_while_it_watches(tmp_path: Path) -> None:
    """`runs prune` moves the first day of the run; the watch goes on with it."""
    import convoscope

    def dated(number: int, day: int) -> dict[str, Any]:
        messages = [{**one, "timestamp": f"2026-11-{day:02d}T10:00:00Z"} for one in chat(number)["messages"]]
        return {**chat(number), "messages": messages}

    logs = tmp_path / "logs"
    logs.mkdir()
    write(logs / "a.jsonl", dated(1, 1), dated(2, 2), dated(3, 3))
    with watching(tmp_path, "--since", "2026-11-02") as watch:
        assert watch.until("following")["known"] == 2
        assert convoscope.prune(tmp_path / "run", "2026-11-03").dropped == 1
        write(logs / "b.jsonl", dated(4, 2), dated(5, 4), dated(6, 5))
        assert [watch.until("ended")["id"] for _ in range(2)] == ["chat-00005", "chat-00006"]
        assert watch.interrupt() == 0
        # Of the 3rd, the 4th and the 5th.
        assert watch.until("end")["answer"]["conversations"] == 3


def test_from_python(tmp_path: Path) -> None:
    import convoscope
    from convoscope.report.watch import ConversationEnded, WatchBegun

    logs = tmp_path / "logs"
    logs.mkdir()
    # A file of a single line may be one document.
    add(logs / "a.jsonl", 1, 3)
    out = tmp_path / "run"
    seen = []
    events = convoscope.watch(logs, out=out, metrics="conversation.turns", workers=1, every=0.05)
    for event in events:
        seen.append(event)
        if isinstance(event, WatchBegun):
            add(logs / "a.jsonl", 2)
        else:
            break
    events.close()
    assert [type(one) for one in seen] == [WatchBegun, ConversationEnded]
    assert seen[1].id == "chat-00002"
    assert Run.open(out).summary.conversations == 3
    assert (out / "report.html").exists()


def test_a_store_that_fails_inside_of_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database makes an error of its own of what the client of a store raises."""
    import duckdb

    import convoscope
    from convoscope.report.watch import ConversationEnded, NotRead, Watch, WatchBegun

    failures = [duckdb.Error("Traceback (most recent call last):\nOSError: [Errno 5] Input/output error\n\nLINE 1")]
    came = Watch._came

    def failing(self: Watch, run: Run) -> Iterator[Any]:
        if failures:
            raise failures.pop()
        yield from came(self, run)

    monkeypatch.setattr(Watch, "_came", failing)
    logs = tmp_path / "logs"
    logs.mkdir()
    add(logs / "a.jsonl", 1, 3)
    events = convoscope.watch(logs, out=tmp_path / "run", metrics="conversation.turns", workers=1, every=0.05)
    assert isinstance(next(events), WatchBegun)
    add(logs / "a.jsonl", 2)
    assert next(events) == NotRead(problem="OSError: [Errno 5] Input/output error; tried again")
    ended = next(events)
    assert isinstance(ended, ConversationEnded)
    assert ended.id == "chat-00002"
    events.close()


def test_the_share_of_the_last_hour() -> None:
    """Wilson, by hand: 41 of 58, z = 1.96, are 0.580 to 0.808."""
    from convoscope.report.watch import HourReport

    report = HourReport(span="last hour", noun="call", ended=60, done=41, known=58, low=0.580, high=0.808)
    assert report.words == "last hour: 41 of 58 calls reached their goal (71 %, 58 to 81); 2 more, unknown"
    few = HourReport(span="since 14:02", noun="chat", ended=1, done=0, known=1)
    assert few.words == "since 14:02: 0 of 1 chat reached their goal, too few for a share"


def test_logs_and_run_in_an_object_store(tmp_path: Path) -> None:
    from support.object_store import BUCKET, object_store

    with object_store() as store:
        store.pipe_file(f"{BUCKET}/live/a.jsonl", json.dumps(chat(1)).encode() + b"\n")
        address, out = f"s3://{BUCKET}/live", f"s3://{BUCKET}/watched/run"
        with watching(tmp_path, "--out", out, logs=address) as watch:
            assert watch.until("following")["files"] == 1
            store.pipe_file(f"{BUCKET}/live/b.jsonl", json.dumps(chat(2)).encode() + b"\n")
            assert watch.until("ended")["id"] == "chat-00002"
            assert watch.interrupt() == 0
        assert Run.open(out).summary.conversations == 2
        assert store.exists(f"{BUCKET}/watched/run/report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_does_not_answer_is_no_other_run(tmp_path: Path) -> None:
    """An error while the store is down does not end the watch, although it cannot look whether its run is the same."""
    from convoscope.analysis.policy import hold
    from convoscope.report.watch import Watch, watch_settings
    from support.object_store import BUCKET, object_store

    (tmp_path / "a.jsonl").write_text(json.dumps(chat(1)) + "\n")
    os.utime(tmp_path / "a.jsonl", (0, 0))
    with object_store() as store:
        settings = watch_settings(tmp_path, out=f"s3://{BUCKET}/watched/silent", metrics=["turns"], workers=1)
        watch = Watch(tmp_path, settings, lambda run: hold(run, (), None, None))
        next(watch.events())
        assert watch.run is not None
        store.server.stop()
        said = [event.words for event in watch._tried_again(ConnectionResetError("reset by peer"))]
        store.server.start()
    assert said == ["reset by peer; tried again"]


def test_a_store_that_stops_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.object_store import BUCKET, object_store

    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with object_store() as store:
        store.pipe_file(f"{BUCKET}/stops/a.jsonl", json.dumps(chat(1)).encode() + b"\n")
        address, out = f"s3://{BUCKET}/stops", f"s3://{BUCKET}/watched/stops"
        with watching(tmp_path, "--out", out, logs=address) as watch:
            watch.until("following")
            store.server.stop()
            said = watch.until("problem")["problem"]
            assert said.startswith(address)
            assert said.endswith("tried again")
            store.server.start()
            store.pipe_file(f"{BUCKET}/stops/b.jsonl", json.dumps(chat(2)).encode() + b"\n")
            assert watch.until("ended")["id"] == "chat-00002"
            assert watch.interrupt() == 0
