"""What is an echo of the other side, and what is someone who speaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support import sounds

np = sounds.np

from convoscope.audio.files import load_tracks  # noqa: E402
from convoscope.conversation import Conversation, Participant, Track  # noqa: E402
from convoscope.conversation.model import AudioFile  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "recording" / "bakery.ogg"


def speech_of(folder: Path, user: Any, agent: Any, rate: int = sounds.RATE) -> list[list[tuple[float, float]]]:
    path = sounds.write(folder / "echo.wav", user, agent, rate=rate)
    call = Conversation(
        id="call",
        participants=(Participant("u", "user"), Participant("a", "assistant")),
        recording=AudioFile(tracks=(Track(path=str(path), channels=("u", "a")),)),
    )
    return [list(map(tuple, track.speech())) for track in load_tracks(call)]


def late(wave: Any, seconds: float, gain: float) -> Any:
    shift = round(seconds * sounds.RATE)
    return np.concatenate([np.zeros(shift, np.float32), gain * wave[: len(wave) - shift]])


@pytest.fixture(scope="module")
def call() -> tuple[Any, Any]:
    """The agent's and the user's channel of a call of six turns, without an echo."""
    prompts = [sounds.prompt(name) for name in ("vm-rec-temp", "vm-tempgreetactive", "privacy-incorrect")]
    answers = [sounds.said(text, "rms") for text in ("I would like to change it.", "In the morning.", "Thank you.")]
    lines = [
        line for pair in zip(prompts, answers, strict=True) for line in (("assistant", pair[0]), ("user", pair[1]))
    ]
    agent, user, _ = sounds.call_of(*lines, pause=1.2)
    return 0.4 * agent / np.abs(agent).max(), 0.4 * user / np.abs(user).max()


@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("part", [0.35, 1.0])
def test_an_echo_of_any_part_of_a_call_is_no_speech(tmp_path: Path, call: Any, part: float, seconds: float) -> None:
    agent, user = call
    clean, _ = speech_of(tmp_path, user, agent)
    source = np.where(np.arange(len(agent)) < part * len(agent), agent, 0)
    heard, _ = speech_of(tmp_path, user + late(source, seconds, 0.25), agent)
    assert len(heard) == len(clean)
    for (start, end), (begin, until) in zip(clean, heard, strict=True):
        assert (begin, until) == (pytest.approx(start, abs=0.1), pytest.approx(end, abs=0.1))


def test_who_speaks_over_an_echo_is_heard(tmp_path: Path, call: Any) -> None:
    agent, user = call
    words = sounds.said("Stop, that is wrong.", "rms")
    words = 0.4 * words / np.abs(words).max()
    at = round(1.2 * sounds.RATE)  # the agent speaks from 0.5 s on
    over = user.copy()
    over[at : at + len(words)] += words
    heard, _ = speech_of(tmp_path, over + late(agent, 0.2, 0.25), agent)
    spoken = sum(min(end, 1.2 + len(words) / sounds.RATE) - max(start, 1.2) for start, end in heard if start < 2 < end)
    assert spoken > 0.7 * len(words) / sounds.RATE


def test_two_who_speak_at_once_are_no_echo(tmp_path: Path, call: Any) -> None:
    agent, user = call
    moved = np.roll(user, round(-2.5 * sounds.RATE))
    alone = speech_of(tmp_path, moved, np.zeros_like(agent))[0]
    assert speech_of(tmp_path, moved, agent)[0] == alone


def test_a_clipped_echo_is_one(tmp_path: Path) -> None:
    samples, rate = sounds.soundfile.read(EXAMPLE, dtype="float32")
    # The agent speaks from 9.35 to 14.92 s, the caller over it from 11.35 to 12.83 s. From 13.5 s on its voice comes
    # back at a quarter, 120 ms later, and clipped.
    first, last, shift = int(13.5 * rate), int(14.9 * rate), int(0.12 * rate)
    samples[first:last, 0] += np.clip(0.25 * samples[first - shift : last - shift, 1], -0.05, 0.05)
    user, _ = speech_of(tmp_path, samples[:, 0], samples[:, 1], rate)
    assert any(start < 11.6 and end > 12.6 for start, end in user)
    assert sum(max(0.0, min(end, 14.9) - max(start, 13.5)) for start, end in user) < 0.3
