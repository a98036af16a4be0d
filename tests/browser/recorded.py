"""A run of calls with recordings: two channels, one, none, broken, with a clock of its own, with hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import convoscope
from browser.given import SPELLS
from convoscope.conversation import AudioFile, Conversation, Track, to_json
from convoscope.metrics import CONVERSATION, HIGHER, LOWER, Observation, measured, metric
from convoscope.runs.run import Run
from support.chats import agent, chat, user
from support.sounds import np, soundfile

RATE = 8000
SECONDS = 28
TALK = (
    ("agent", 1.0, 4.0, "Harbour office, good morning."),
    ("user", 5.0, 8.0, "I have booked the ferry for nine."),
    ("agent", 9.0, 14.0, "That is €142.50 to Holm, is that right?"),
    ("user", 13.0, 16.0, "What about the dog?"),
    ("agent", 20.0, 25.0, "Dogs travel free."),
)
"""Who speaks from when to when, in seconds of the recording: at once from 13 to 14, and nothing from 16 to 20."""
MOMENTS = (
    {"start": 10.0, "end": 10.2, "kind": "dropout", "text": "0.2 s without sound"},
    {"start": 11.0, "end": 11.1, "kind": "dropout"},
    {"start": 21.0, "end": 22.0, "kind": "not_in_sound"},
    {"start": 5.5, "end": 6.5, "kind": "barge_in_lost", "speaker": "user"},
    {"start": 9.0, "end": 14.0, "kind": "quality", "value": 2.1},
    {"start": 20.0, "end": 25.0, "kind": "quality", "value": 4.0},
    {"start": "never", "kind": "dropout"},
    {"start": float("inf"), "kind": "dropout"},
)
"""The last two are no moments."""
HEARD = {
    "meant": "That is €142.50 to Holm, is that right?",
    "spoken": "That is forty two fifty to Holm, is that right?",
    "differs": [{"kind": "amount", "meant": "€142.50", "spoken": "forty two fifty", "start": 10.0, "end": 11.0}],
    # As many words as the turn has: 5 s for 8 words, the third from 10.25 to 10.875.
    "words": [
        {"text": word, "start": 9 + 0.625 * at, "end": 9 + 0.625 * (at + 1)}
        for at, word in enumerate(["That", "is", "€142.50", "to", "Holm,", "is", "that", "right?"])
    ],
    "by": "faster-whisper:tiny.en",
}
FILE_NAME = "call #1 100% <img src=x onerror=window.pwned=1> 'é'?.wav"


def recorded(folder: Path) -> Run:
    sounds = folder / "sounds"
    sounds.mkdir()
    sound = sides()
    soundfile.write(sounds / FILE_NAME, sound, RATE)
    soundfile.write(sounds / "mono.wav", sound.mean(axis=1), RATE)
    (sounds / "broken.wav").write_bytes(b"RIFF\0\0\0\0WAVE and no more")
    # The caller's file ends earlier.
    soundfile.write(sounds / "agent.wav", sound[:, 0], RATE)
    soundfile.write(sounds / "user.wav", sound[: 25 * RATE, 1], RATE)
    both = Track(path=str(sounds / FILE_NAME), channels=("agent", "user"))
    calls = [
        call("two channels", both),
        call("one channel", Track(path=str(sounds / "mono.wav"))),
        call("two files", *(Track(path=str(sounds / f"{who}.wav"), channels=(who,)) for who in ("agent", "user"))),
        call("no recording"),
        call("broken", Track(path=str(sounds / "broken.wav"))),
        call("remote", Track(url="https://recordings.invalid/call.wav")),
        call("apart", both, clock="wall"),
    ]
    log = folder / "recorded.jsonl"
    log.write_bytes(b"\n".join(map(to_json, calls)) + b"\n")
    metrics = ["conversation.turns", *_metrics()]
    return convoscope.score(log, metrics=metrics, out=folder / "recorded", workers=1)


def sides() -> Any:
    """A tone for each side where it speaks."""
    at = np.arange(SECONDS * RATE) / RATE
    sound = np.zeros((len(at), 2))
    for speaker, start, end, _ in TALK:
        side = 0 if speaker == "agent" else 1
        sound[:, side] += np.where((at >= start) & (at < end), 0.3 * np.sin(2 * np.pi * (200 + 150 * side) * at), 0)
    return sound


def call(id: str, *tracks: Track, clock: Literal["audio", "wall"] = "audio") -> Conversation:
    said = [
        (agent if speaker == "agent" else user)(
            text, **({"sound": [(start, end)]} if clock == "audio" else {"at": start, "until": end})
        )
        for speaker, start, end, text in TALK
    ]
    return chat(*said, id=id, recording=AudioFile(tracks=tracks) if tracks else None)


def _metrics() -> list[Any]:
    @metric("audio.marks", version=1, observes=CONVERSATION, unit="count", better=LOWER)
    def marks(conversation: Conversation) -> Observation:
        """What is there to mark?"""
        spell = {"start": 24.0, "end": 24.5, "kind": SPELLS[0], "text": SPELLS[1]}
        return measured(conversation, 1, details={"moments": [*MOMENTS[:6], spell, MOMENTS[6], {"start": None}]})

    @metric("audio.arrived", version=1, observes="utterance", unit="share", better=HIGHER)
    def arrived(conversation: Conversation) -> Iterator[Observation]:
        """Did the amount arrive?"""
        for utterance in conversation.utterances:
            yield measured(utterance, utterance.seq != 2, details=HEARD if utterance.seq == 2 else {"differs": []})

    return [marks, arrived]
