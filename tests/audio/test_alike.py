"""Of several files of one call, the lossless one counts if all hold the same sound; else none does."""

from __future__ import annotations

from pathlib import Path

import pytest

from convoscope.conversation import AudioFile, Conversation
from convoscope.resources import RecordingError
from support import sounds

np, soundfile = sounds.np, sounds.soundfile

from convoscope.audio.alike import best_of  # noqa: E402  after the check for the extra
from convoscope.audio.files import load_tracks  # noqa: E402

RATE = 16_000


def bursts(seed: int) -> np.ndarray:
    """Two channels of noise, each in bursts of 0.2 s of its own, for 4 s."""
    random = np.random.default_rng(seed)
    levels = random.choice([0.0, 0.05, 0.3], size=(20, 2)).repeat(RATE // 5, axis=0)
    return levels * random.uniform(-1, 1, levels.shape)


def write(path: Path, samples: np.ndarray, coding: str | None = None) -> str:
    soundfile.write(path, samples, RATE, subtype=coding)
    return str(path)


def test_the_lossless_file_of_the_same_sound(tmp_path: Path) -> None:
    opus = write(tmp_path / "call.ogg", bursts(1), "OPUS")
    wave = write(tmp_path / "call.wav", bursts(1))
    assert best_of([opus, wave]) == best_of([wave, opus]) == Path(wave)
    [left, right] = load_tracks(
        Conversation(id="call", recording=AudioFile(extras={"recording_candidates": [opus, wave]}))
    )
    assert left.path == right.path == Path(wave)


def test_a_mix_in_one_channel_is_the_same_sound_with_less(tmp_path: Path) -> None:
    mono = write(tmp_path / "call.flac", bursts(1).mean(axis=1))
    compressed = write(tmp_path / "call.ogg", bursts(1), "OPUS")
    silent = [write(tmp_path / f"{name}.wav", np.zeros(4 * RATE)) for name in "ab"]
    assert best_of(silent) == Path(silent[0])
    assert best_of([mono, write(tmp_path / "call.wav", bursts(1))]) == tmp_path / "call.wav"
    assert best_of([mono, compressed]) == Path(compressed)  # who speaks is known by the channel


@pytest.mark.parametrize(
    "other",
    [bursts(2), bursts(1)[:, ::-1], bursts(1)[: 3 * RATE], np.zeros((4 * RATE, 2))],
    ids=["another call", "sides swapped", "a second shorter", "silence"],
)
def test_different_sound_is_ambiguous(tmp_path: Path, other: np.ndarray) -> None:
    files = [write(tmp_path / "call.ogg", bursts(1), "OPUS"), write(tmp_path / "call.wav", other)]
    with pytest.raises(RecordingError, match=r"^call\.ogg, call\.wav: hold different sound") as caught:
        load_tracks(Conversation(id="call", recording=AudioFile(extras={"recording_candidates": files})))
    assert caught.value.reason == "recording_ambiguous"


def test_what_may_be_of_another_call_is_not_opened(tmp_path: Path) -> None:
    file = str(tmp_path / "recording.wav")  # there is none: it would be an error of another kind
    with pytest.raises(RecordingError, match=r"recording\.wav: may be of another conversation") as caught:
        load_tracks(Conversation(id="call", recording=AudioFile(extras={"recording_ambiguous": [file]})))
    assert caught.value.reason == "recording_ambiguous"
