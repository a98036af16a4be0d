"""A run opens recordings by itself, where a metric asks for them; and never where the user does not want it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.metrics import CONVERSATION, HIGHER, Conversation, Observation, Recording, measured, metric, unmeasured
from convoscope.resources import RecordingError
from support import sounds
from support.command_line import convoscope as run_command
from support.logs import CHAT


@metric("test.recorded", version=1, observes=CONVERSATION, unit="s", better=HIGHER)
def recorded(conversation: Conversation, recording: Recording) -> Observation:
    """How long is the recording?"""
    try:
        [track] = recording.tracks(conversation)
    except RecordingError as error:
        return unmeasured(conversation, error.reason, error.detail)
    return measured(conversation, track.seconds)


def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, seconds in (("one", 2), ("two", 3)):
        sounds.write(folder / f"{name}.wav", sounds.tone(440, seconds))
    (folder / "four.wav").write_bytes(b"broken")
    records = [{"id": id, **CHAT} for id in ("one", "two", "three", "four")]
    (folder / "calls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    return folder


def scored(folder: Path, out: Path, **settings: Any) -> convoscope.Run:
    return convoscope.score(folder, metrics=[recorded], out=out, **settings)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_conversation_has_its_recording_or_a_reason(tmp_path: Path, workers: int) -> None:
    run = scored(logs(tmp_path), tmp_path / "run", workers=workers, part_bytes=100)
    found = {one.conversation: (one.value, one.reason) for one in run.scores(all=True)}
    assert found == {
        "four": (None, "recording_not_readable"),
        "one": (2.0, ""),
        "three": (None, "no_recording"),
        "two": (3.0, ""),
    }
    assert list(run.receipt.config["resources"]) == ["convoscope.resources.sound.Recording"]


def test_no_recording_is_opened_where_the_user_does_not_want_it(tmp_path: Path) -> None:
    run = scored(logs(tmp_path), tmp_path / "run", use_audio=False)
    reasons = {one.conversation: one.reason for one in run.scores(all=True)}
    assert reasons == {"three": "no_recording", **dict.fromkeys(("one", "two", "four"), "recordings_not_opened")}


def test_a_recording_that_changed_is_scored_again(tmp_path: Path) -> None:
    folder = logs(tmp_path)
    scored(folder, tmp_path / "run")
    sounds.write(folder / "one.wav", sounds.tone(440, 4))
    run = scored(folder, tmp_path / "run")
    values = {score.conversation: score.value for score in run.scores(all=True)}
    assert (values["one"], values["two"]) == (4.0, 3.0)


def test_from_the_command_line(tmp_path: Path) -> None:
    folder = logs(tmp_path)
    elsewhere = tmp_path / "audio"
    elsewhere.mkdir()
    (folder / "one.wav").rename(elsewhere / "one.wav")
    source = tmp_path / "metrics.py"
    source.write_text(
        "from convoscope.metrics import Conversation, Observation, Recording, measured, metric\n"
        "@metric('own.length', version=1, observes='conversation', unit='s', better='higher')\n"
        "def length(conversation: Conversation, recording: Recording) -> Observation:\n"
        "    '''How long?'''\n"
        "    return measured(conversation, recording.tracks(conversation)[0].seconds)\n"
    )
    options = ["--metrics-from", source, "--metrics", "own", "--limit", "1", "--json"]
    ended = run_command("score", folder, *options, "--audio", elsewhere, "--out", tmp_path / "run")
    assert ended.json["summary"]["metrics"][0]["value"] == 2.0
    ended = run_command("score", folder, *options, "--no-audio", "--out", tmp_path / "other")
    assert "recordings_not_opened" in ended.out
