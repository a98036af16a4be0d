"""Logs whose texts are edited or completed, and that are rotated: each conversation counts once, and none is lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.errors import RunError
from convoscope.runs.make import make_run
from convoscope.runs.run import Run

Texts = tuple[str, ...]


def talk(id: str | None, *texts: str, at: float | None = None) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)
    ]
    for number, message in enumerate(messages if at is not None else ()):
        message["timestamp"] = at + number  # type: ignore[operator]
    return {**({} if id is None else {"id": id}), "messages": messages}


def write(path: Path, *records: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def scored(folder: Path, **options: Any) -> Run:
    return make_run(
        folder / "logs", out=folder / "run", **{"metrics": ["turns"], "workers": 1, "keep": True, **options}
    )


def said(run: Run) -> Counter[tuple[str, Texts]]:
    """What the conversations of a run say, by their ids in the log."""
    return Counter(
        (one.id.partition("~")[0], tuple(each.meant() for each in one.utterances)) for one in run.conversations()
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


ANN, CHECK, BYE = ("I am Ann.", "Hello!"), ("Where is it?", "I am chec"), ("Bye.", "Bye bye.")
REDACTED, CHECKING = ("I am ***.", "Hello!"), ("Where is it?", "I am checking your order now.")
C1, C2, C3 = talk("c1", *ANN), talk("c2", *CHECK), talk("c3", *BYE)


@pytest.mark.parametrize("keep", [True, False])
def test_a_text_that_was_redacted_and_one_that_was_completed(folder: Path, keep: bool) -> None:
    log = folder / "logs" / "a.jsonl"
    write(log, C1, C2, C3)
    scored(folder, keep=keep)
    write(log, talk("c1", *REDACTED), talk("c2", *CHECKING), C3)
    run = scored(folder, keep=keep)
    assert said(run) == Counter([("c1", REDACTED), ("c2", CHECKING), ("c3", BYE)])
    # The part that held the text before is gone.
    assert len(list((run.folder / "conversations.parquet").iterdir())) == 1
    assert run.read_report.warnings == []


# Before, after, and what is in the run then. Each is a file of lines, a.jsonl, unless it says otherwise.
NAMELESS = [talk(None, *texts) for texts in (ANN, BYE)]
OTHER = ("Is it open?", "Until eight.")
CHANGES: dict[str, tuple[dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]], list[tuple[str, Texts]]]] = {
    "all texts of the only chat": ({"a": [C1]}, {"a": [talk("c1", "***", "***")]}, [("c1", ("***", "***"))]),
    "all texts of one of two": (
        {"a": [C1, C3]},
        {"a": [talk("c1", "***", "***"), C3]},
        [("c1", ("***", "***")), ("c3", BYE)],
    ),
    "a message that was taken out": (
        {"a": [C1, C3]},
        {"a": [talk("c1", "I am Ann."), C3]},
        [("c1", ANN[:1]), ("c3", BYE)],
    ),
    "a record without an id": (
        {"a": NAMELESS},
        {"a": [talk(None, *REDACTED), NAMELESS[1]]},
        [("a.jsonl:1", REDACTED), ("a.jsonl:2", BYE)],
    ),
    "an edit, with times": (
        {"a": [talk("c1", *ANN, at=1.76e9)]},
        {"a": [talk("c1", "***", "***", at=1.76e9)]},
        [("c1", ("***", "***"))],
    ),
    "completed and rotated at once": (
        {"a": [C3, C2]},
        {"a.1": [C3, talk("c2", *CHECKING)], "a": [C1]},
        [("c1", ANN), ("c2", CHECKING), ("c3", BYE)],
    ),
    "redacted and rotated at once": (
        {"a": [C1, C3]},
        {"a.1": [talk("c1", *REDACTED), C3], "a": [talk("c4", *OTHER)]},
        [("c1", REDACTED), ("c3", BYE), ("c4", OTHER)],
    ),
    "a file that was cut, with the ids of before": (
        {"a": [C1, C3]},
        {"a": [talk("c1", *OTHER)]},
        [("c1", ANN), ("c1", OTHER), ("c3", BYE)],
    ),
    "a file that was cut, with the same id at another time": (
        {"a": [talk("c1", *ANN, at=1.76e9)]},
        {"a": [talk("c1", *OTHER, at=1.77e9)]},
        [("c1", ANN), ("c1", OTHER)],
    ),
    "a file that is gone, and the same id in another": (
        {"a": [C1]},
        {"b": [talk("c1", *OTHER)]},
        [("c1", ANN), ("c1", OTHER)],
    ),
    "an id that is used again behind one that was edited": (
        {"a": [C1]},
        {"a": [talk("c1", *REDACTED), talk("c1", *OTHER)]},
        [("c1", REDACTED), ("c1", OTHER)],
    ),
    "a rotated file, and its ids used again in the new one": (
        {"a": [C1, C3]},
        {"a.1": [C1, C3], "a": [talk("c1", *OTHER)]},
        [("c1", ANN), ("c3", BYE), ("c1", OTHER)],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_logs_that_change(folder: Path, name: str) -> None:
    before, after, expected = CHANGES[name]
    for file, records in before.items():
        write(folder / "logs" / f"{file}.jsonl", *records)
    scored(folder)
    for path in (folder / "logs").iterdir():
        path.unlink()
    for file, records in after.items():
        write(folder / "logs" / f"{file}.jsonl", *records)
    assert said(scored(folder)) == Counter(expected)


def test_a_document_that_was_half_written(folder: Path) -> None:
    document = folder / "logs" / "chat.json"
    for texts in (CHECK, CHECKING):
        document.write_text(json.dumps(talk("chat-2104", *texts)))
        assert said(scored(folder)) == Counter([("chat-2104", texts)])


def test_a_kept_conversation_is_not_replaced_by_another_in_a_new_file_of_that_name(folder: Path) -> None:
    """At the second look its file was gone: what comes in one of that name is another conversation."""
    write(folder / "logs" / "a.jsonl", C1)
    write(folder / "logs" / "b.jsonl", C3)
    scored(folder)
    (folder / "logs" / "a.jsonl").unlink()
    scored(folder)
    write(folder / "logs" / "a.jsonl", talk("c1", *OTHER))
    assert said(scored(folder)) == Counter([("c1", ANN), ("c1", OTHER), ("c3", BYE)])


def test_messages_that_are_joined_by_an_id(folder: Path) -> None:
    """One is redacted. Then the log is cut, and the conversation goes on: it stays as it was, and counts once."""

    def message(number: int, text: str) -> dict[str, Any]:
        role, at = ("user", "assistant")[number % 2], 1.76e9 + number
        return {"conversation_id": "j", "role": role, "content": text, "timestamp": at}

    log = folder / "logs" / "a.jsonl"
    write(log, message(0, "I am Ann."), message(1, "Hello!"))
    scored(folder)
    write(log, message(0, "I am ***."), message(1, "Hello!"))
    assert said(scored(folder)) == Counter([("j", REDACTED)])
    write(log, message(1, "Hello!"), message(2, "Where is it?"))
    run = scored(folder)
    assert said(run) == Counter([("j", REDACTED)])
    assert run.read_report.ignored["goes_on_after_its_log"] == 1


def test_what_was_deleted_is_still_a_loss(folder: Path) -> None:
    write(folder / "logs" / "a.jsonl", C1, C3)
    scored(folder, keep=False)
    write(folder / "logs" / "a.jsonl", C3)
    with pytest.raises(RunError, match=r"1 conversation of .*: c1"):
        scored(folder, keep=False)


STEPS = ["add", "complete", "redact", "rotate", "rotate away", "copy and cut", "cut", "restart"]


@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=3, max_size=7))
def test_each_counts_once_and_none_is_lost(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    """A log that is written to, edited and rotated, as the files are; and what the run must hold, as a plain list."""
    folder = tmp_path_factory.mktemp("edited")
    (folder / "logs").mkdir()
    live = folder / "logs" / "app.jsonl"
    files: dict[Path, list[int]] = {live: []}
    texts: list[tuple[str, Texts]] = []
    """All conversations that ever were, as they were said last."""
    first = [0]
    """Ids are numbers from the last restart on."""

    def add(count: int) -> None:
        for _ in range(count):
            number = len(texts)
            files[live].append(number)
            texts.append(
                (f"c{number - first[0]}", (f"This is {number}.", "Hello!", "Where is it?", f"I am che {number}"))
            )

    def change(at: int, new: str) -> None:
        for file in list(files)[-2:]:
            for number in files[file][-2:]:
                id, lines = texts[number]
                texts[number] = id, (*lines[:at], new, *lines[at + 1 :]) if at >= 0 else (*lines[:-1], lines[-1] + new)

    for step in ["add", *steps]:
        old = live.with_name(f"app.{len(files)}.jsonl")
        if step == "complete":
            change(-1, " for you")
        elif step == "redact":
            change(0, "***")
        elif step in ("rotate", "copy and cut"):
            files[old], files[live] = files[live], []
        elif step in ("rotate away", "cut"):
            files[live] = []
        elif step == "restart":
            first[0] = len(texts)
        if step not in ("complete", "redact"):
            add(2)
        for path, numbers in files.items():
            write(path, *(talk(*[texts[one][0], *texts[one][1]], at=1.76e9 + 100 * one) for one in numbers))
        assert said(scored(folder)) == Counter(texts), step
