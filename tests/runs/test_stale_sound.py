"""A recording that a log has elsewhere counts as it is now: the same command measures it again if it is another one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.answer import make_answer
from convoscope.analysis.words import sound_text
from convoscope.ingest.report import ReadReport
from support import sounds

np, soundfile = sounds.np, sounds.soundfile

from convoscope.runs.make import make_run as score  # noqa: E402  after the check for the extra
from convoscope.runs.run import Run  # noqa: E402

METRIC = "audio.longest_silence"


def call(path: Path, pause: float) -> None:
    """Two sentences with this silence between them; the voice adds up to 0.4 s of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    voice = sounds.said("Good morning, what can I do for you today?")
    sounds.write(path, np.concatenate([voice, sounds.silence(pause), voice]))


def log(folder: Path, *paths: str) -> Path:
    file = folder / "logs" / "items.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as stream:
        for number, path in enumerate(paths, 1):
            asked = {"conversation_id": f"c{number}", "agent_task": "hello", "agent_response": "hi"}
            turns = [{"speaker": "user", "message": "hello"}, {"speaker": "assistant", "message": "hi"}]
            record = {**asked, "conversation_context": {"turns": turns}, "metadata": {"local_audio_path": path}}
            stream.write(json.dumps(record) + "\n")
    return file


def scored(folder: Path, **settings: Any) -> Run:
    return score(folder / "logs", metrics=METRIC, out=folder / "run", workers=1, **settings)


def values(run: Run) -> dict[str, float | str]:
    return {row.conversation: row.reason if row.value is None else row.value for row in run.scores()}


@pytest.mark.parametrize("is_absolute", [True, False])
def test_another_recording_is_measured_and_the_same_is_not(tmp_path: Path, is_absolute: bool) -> None:
    elsewhere = tmp_path / "logs" / "sound"  # a folder that is not searched by name
    named = [str(elsewhere / f"{name}.wav") if is_absolute else f"sound/{name}.wav" for name in "ab"]
    log(tmp_path, *named)
    call(elsewhere / "a.wav", 2.0)
    first = scored(tmp_path)
    assert values(first) == {"c1": pytest.approx(2.0, abs=0.5), "c2": "recording_not_found"}

    assert scored(tmp_path).receipt.run_id == first.receipt.run_id
    os.utime(elsewhere / "a.wav", (1, 1))  # only touched
    assert scored(tmp_path).receipt.run_id == first.receipt.run_id

    call(elsewhere / "a.wav", 4.0)
    call(elsewhere / "b.wav", 3.0)  # it came back
    again = scored(tmp_path)
    assert values(again) == {"c1": pytest.approx(4.0, abs=0.5), "c2": pytest.approx(3.0, abs=0.5)}
    assert again.receipt.generation == first.receipt.generation + 1
    assert again.read_report.sound == {}

    (elsewhere / "b.wav").unlink()
    gone = scored(tmp_path)
    assert values(gone)["c2"] == "recording_not_found"
    assert gone.read_report.sound["recording_not_found"].examples == ["b.wav"]  # the name, not the folder


def test_a_part_without_that_recording_stays(tmp_path: Path) -> None:
    paths = [str(tmp_path / "sound" / f"{name}.wav") for name in "ab"]
    log(tmp_path, *paths)
    for path in paths:
        call(Path(path), 2.0)
    before = scored(tmp_path, part_bytes=200)
    assert before.receipt.parts == [1, 1]
    call(Path(paths[1]), 4.0)
    after = scored(tmp_path, part_bytes=200)
    assert after.receipt.parts == [1, 0, 1]  # the second is of a new part
    assert values(after)["c2"] == pytest.approx(4.0, abs=0.5)


def test_a_run_that_does_not_listen_does_not_look(tmp_path: Path) -> None:
    log(tmp_path, str(tmp_path / "sound" / "a.wav"))
    call(tmp_path / "sound" / "a.wav", 2.0)
    first = scored(tmp_path, use_audio=False)
    call(tmp_path / "sound" / "a.wav", 4.0)
    assert scored(tmp_path, use_audio=False).receipt.run_id == first.receipt.run_id
    assert first.read_report.sound == {}  # the user said so


def test_what_is_said_of_recordings_that_are_not_measured(tmp_path: Path) -> None:
    (tmp_path / "sound").mkdir()
    (tmp_path / "sound" / "a.wav").write_text("no sound")
    log(tmp_path, str(tmp_path / "sound" / "a.wav"))
    words = "sound: 1 recording not measured: a.wav: is not a recording"
    assert sound_text(scored(tmp_path).read_report) == words
    assert words in make_answer(scored(tmp_path)).remarks  # what page and notebook show

    log(tmp_path, *(str(tmp_path / "sound" / f"{name}.wav") for name in "abc"))
    assert sound_text(scored(tmp_path).read_report) == (
        "sound: 3 recordings not measured: 2 not found (b.wav, …), --audio FOLDER says where recordings are; "
        "1 not readable (a.wav: is not a recording)"
    )


def test_one_recording_of_several_conversations_is_said(tmp_path: Path) -> None:
    """c1 and c2 name one file, c3 a copy of it, c4 another recording: three have the same sound."""
    names = ["a.wav", "a.wav", "copy.wav", "b.wav"]
    log(tmp_path, *(str(tmp_path / "sound" / name) for name in names))
    call(tmp_path / "sound" / "a.wav", 2.0)
    call(tmp_path / "sound" / "b.wav", 3.0)
    shutil.copyfile(tmp_path / "sound" / "a.wav", tmp_path / "sound" / "copy.wav")
    run = scored(tmp_path, part_bytes=200)
    assert len(run.receipt.parts) > 1  # they are found across the parts of a run
    words = (
        "3 conversations name the same recording (a.wav 3 times): its sound counts as often, and intervals take it for "
        "independent"
    )
    assert sound_text(run.read_report) == words
    assert words in make_answer(run).remarks
    assert run.read_report.inferred["recording_shared"].count == 3
    # A run that grows knows those of before: c5 has the sound of c4.
    log(tmp_path, *(str(tmp_path / "sound" / name) for name in [*names, "b.wav"]))
    grown = scored(tmp_path, part_bytes=200).read_report.inferred["recording_shared"]
    assert (grown.count, grown.examples) == (5, ["a.wav 3 times", "b.wav 2 times"])


def test_without_the_extra_the_line_has_the_command() -> None:
    report = ReadReport()
    report.not_heard("audio_not_installed", "")
    assert sound_text(report) == "sound: 1 recording not measured: pip install 'convoscope[audio]'"
    report.not_heard("audio_not_installed", "")
    assert sound_text(report) == "sound: 2 recordings not measured: pip install 'convoscope[audio]'"
