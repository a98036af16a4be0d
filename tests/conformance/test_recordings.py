"""A real conversation of two sides, whole and turn by turn: the turns say what is true of the whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

import convoscope
from convoscope.audio.resource import Recordings
from convoscope.conversation import Clock, Conversation, Marker, Participant, Segment, Text, Time, Track, Utterance
from convoscope.conversation.model import AudioFile
from convoscope.metrics.audio import against_log as metrics

NEAR = 0.25
"""Seconds: how sure voice activity is of the beginning of a turn of a few hundred milliseconds in noise."""


class HeardTurn(NamedTuple):
    """Where a turn is in the whole recording, and where it is loud."""

    role: str
    at: int
    start: float
    end: float
    samples: NDArray[np.float32]


@cache
def turns_of(folder: Path) -> tuple[HeardTurn, ...]:
    """The turns, found in the whole by their samples: the correlation is above 0.95, and nowhere else above 0.4."""
    whole, rate = soundfile.read(folder / "deepeval-conversation.wav", dtype="float32")
    energy = np.cumsum(np.concatenate(([0.0], whole.astype(np.float64) ** 2)))
    turns: list[HeardTurn] = []
    for path in sorted(folder.glob("deepeval-turn-*.wav")):
        samples, _ = soundfile.read(path, dtype="float32")
        size, count = 1 << (len(whole) + len(samples)).bit_length(), len(whole) - len(samples) + 1
        products = np.fft.irfft(np.fft.rfft(whole, size) * np.conj(np.fft.rfft(samples, size)), size)[:count]
        near = energy[len(samples) : len(samples) + count] - energy[:count]
        fits = products / np.sqrt(near + 1e-3) / np.sqrt(float((samples.astype(np.float64) ** 2).sum()))
        at = int(fits.argmax())
        assert fits[at] > 0.95
        loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
        start, end = (at + loud[0]) / rate, (at + loud[-1]) / rate
        turns.append(HeardTurn(path.stem.rpartition("-")[2], at, start, end, samples))
    return tuple(sorted(turns, key=lambda turn: turn.at))


@pytest.fixture
def folder(shared: Callable[[str], Path]) -> Path:
    return shared("data/recording")


def log_of(turns: tuple[HeardTurn, ...], path: Path, channels: tuple[str, ...], later: float = 0.0) -> Conversation:
    timeline = [
        Utterance(
            seq=seq,
            speaker=turn.role,
            intended=Text("words"),
            segments=(Segment(round(turn.start + later, 3), round(turn.end + later, 3), "audio"),),
        )
        for seq, turn in enumerate(turns)
    ]
    return Conversation(
        id="call",
        participants=(Participant("user", "user"), Participant("assistant", "assistant")),
        clocks=(Clock(id="audio", kind="audio", offset=0.0),),
        timeline=tuple(timeline),
        recording=AudioFile(tracks=(Track(path=str(path), channels=channels, started=Time(0.0, "audio")),)),
    )


def two_sided(turns: tuple[HeardTurn, ...], path: Path) -> Path:
    sound = np.zeros((max(turn.at + len(turn.samples) for turn in turns) + 24_000, 2), np.float32)
    for turn in turns:
        sound[turn.at : turn.at + len(turn.samples), int(turn.role == "assistant")] += turn.samples
    soundfile.write(path, sound, 24_000)
    return path


def test_all_turns_are_in_the_whole(folder: Path) -> None:
    assert [turn.role for turn in turns_of(folder)].count("user") == len(turns_of(folder)) / 2 == 5


@pytest.mark.parametrize("later", [0.0, 3.2])
def test_times_that_are_true_or_shifted(folder: Path, later: float) -> None:
    log = log_of(turns_of(folder), folder / "deepeval-conversation.wav", (), later)
    [offset] = metrics.log_offset(log, recording=Recordings())
    assert offset.details is not None
    assert offset.details["offset"] == pytest.approx(later, abs=0.1)
    heard = {one.subject.id: one.value for one in metrics.turns_not_in_sound(log, recording=Recordings())}
    assert heard == dict.fromkeys(map(str, range(10)), 0.0)
    [unlogged] = metrics.speech_not_in_log(log, recording=Recordings())
    assert unlogged.value == 0.0


def test_each_line_that_is_left_out_is_found(folder: Path, tmp_path: Path) -> None:
    turns = turns_of(folder)
    path = two_sided(turns, tmp_path / "call.wav")
    whole = log_of(turns, path, ("user", "assistant"))
    recordings = Recordings()
    [nothing] = metrics.speech_not_in_log(whole, recording=recordings)
    assert nothing.value == 0.0
    long = [seq for seq, turn in enumerate(turns) if turn.end - turn.start > 1.0]
    assert len(long) >= 8
    for seq in long:
        log = msgspec.structs.replace(whole, timeline=tuple(one for one in whole.timeline if one.seq != seq))
        [observation] = metrics.speech_not_in_log(log, recording=recordings)
        assert observation.details is not None
        moments = observation.details["moments"]
        assert {moment["speaker"] for moment in moments} == {turns[seq].role}
        assert moments[0]["start"] == pytest.approx(turns[seq].start, abs=NEAR)
        # What is loud at the end of a turn may be a breath.
        assert turns[seq].end - 0.6 < moments[-1]["end"] < turns[seq].end + NEAR


def test_two_voices_on_one_channel_are_speech(shared: Callable[[str], Path]) -> None:
    folder = shared("data/diarization")
    for path in sorted(folder.glob("*.wav")):
        [call] = convoscope.read(path)
        marks = [one.time for one in call.timeline if isinstance(one, Marker) and one.time is not None]
        heard = sum((mark.until or mark.at) - mark.at for mark in marks)
        spoken = sum(float(line.split()[4]) for line in path.with_suffix(".rttm").read_text().splitlines())
        # The annotation counts the silence around the words of each turn as speech.
        assert 0.7 * spoken < heard < 1.05 * spoken
        assert call.participants == ()
