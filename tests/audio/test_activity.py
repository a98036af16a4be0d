"""Voice activity against silences that are known, because they were put there."""

from __future__ import annotations

import pytest

from support import sounds

np = sounds.np

from convoscope.audio.activity import FRAME, RATE, speech_probabilities, speech_spans  # noqa: E402

NAMES = ("vm-enter-num-to-call", "vm-tempgreetactive", "queue-thankyou", "vm-rec-temp", "privacy-incorrect")


def frames_of_speech(wave, decibels: float | None):  # type: ignore[no-untyped-def]
    heard = wave if decibels is None else sounds.with_noise(wave, decibels)
    seconds = len(wave) / RATE
    curve = np.zeros(len(wave) // FRAME)
    for start, end in speech_spans(speech_probabilities([heard.astype(np.float32)]), seconds):
        curve[round(start * RATE / FRAME) : round(end * RATE / FRAME)] = 1
    return curve


@pytest.mark.parametrize(("decibels", "most"), [(None, 0.05), (15, 0.06), (5, 0.08)])
def test_error_against_known_silences(decibels: float | None, most: float) -> None:
    parts, truth = [], []
    for name in NAMES:
        prompt = sounds.prompt(name)
        # The truth is the energy of the clean studio prompt: a frame above −45 dB of its loudest, pauses closed.
        power = np.array([np.sqrt(np.mean(prompt[at : at + FRAME] ** 2)) for at in range(0, len(prompt), FRAME)])
        loud = power > power.max() * 10 ** (-45 / 20)
        first, last = np.flatnonzero(loud)[[0, -1]]
        parts += [prompt, sounds.silence(FRAME * 50 / RATE)]
        prompt_frames = np.zeros(len(power))
        prompt_frames[first : last + 1] = 1
        for begin in range(first, last):  # a pause of a third of a second is silence
            if not loud[begin : begin + 10].any():
                prompt_frames[begin : begin + 10] = 0
        truth += [prompt_frames, np.zeros(50)]
        parts[-2] = np.pad(prompt, (0, len(power) * FRAME - len(prompt)))
    wave, expected = np.concatenate(parts), np.concatenate(truth)
    found = frames_of_speech(wave, decibels)
    size = min(len(found), len(expected))
    assert 0.2 < expected.mean() < 0.9
    assert np.mean(found[:size] != expected[:size]) <= most


@pytest.mark.parametrize(
    "wave",
    [sounds.noise(10), sounds.tone(440, 10), sounds.silence(10), sounds.tone(220, 10) + sounds.tone(277, 10, 0.3)],
    ids=["noise", "sine", "silence", "chord"],
)
def test_what_is_no_speech(wave) -> None:  # type: ignore[no-untyped-def]
    assert sum(end - start for start, end in speech_spans(speech_probabilities([wave]), 10.0)) < 0.5
