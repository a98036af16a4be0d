"""Calls of two synthesized voices: what each says is known to the letter, and so is what its log claims."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from convoscope.conversation import AudioFile, Clock, Conversation, Participant, Segment, Text, Track, Utterance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 16_000
VOICES = {"agent": "slt", "caller": "rms"}
PAUSE = 0.8
HAS_FLITE = shutil.which("flite") is not None


class Spoken(NamedTuple):
    """A turn of a call: who speaks, what the log says of it, and what the voice says."""

    speaker: str
    logged: str
    voiced: str = ""
    """The same where it is empty."""


@functools.cache
def synthesized(text: str, voice: str) -> NDArray[np.float32]:
    """A text in a voice of flite, at 16 kHz."""
    import soundfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "said.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(file)], check=True, capture_output=True)
        samples, rate = soundfile.read(file, dtype="float32")
    assert rate == RATE
    return samples


def record(turns: Sequence[Spoken], file: Path, *, id: str = "call", channels: int = 2) -> Conversation:
    """Write the recording of a call, and give its log: the agent's texts as intended, the caller's as heard."""
    import numpy as np
    import soundfile

    sides: dict[str, list[NDArray[np.float32]]] = {"agent": [], "caller": []}
    timeline = []
    now = 0.0
    silence = np.zeros(int(PAUSE * RATE), np.float32)
    for seq, turn in enumerate(turns):
        samples = synthesized(turn.voiced or turn.logged, VOICES[turn.speaker])
        other = "caller" if turn.speaker == "agent" else "agent"
        sides[turn.speaker] += [samples, silence]
        sides[other].append(np.zeros(len(samples) + len(silence), np.float32))
        end = now + len(samples) / RATE
        text = Text(turn.logged)
        said = {"intended": text} if turn.speaker == "agent" else {"heard": text}
        timeline.append(Utterance(seq=seq, speaker=turn.speaker, segments=(Segment(now, end),), **said))
        now = end + PAUSE
    tracks = np.stack([np.concatenate(sides["agent"]), np.concatenate(sides["caller"])], axis=1)
    soundfile.write(file, tracks if channels == 2 else tracks.sum(axis=1), RATE)
    return Conversation(
        id=id,
        participants=(Participant("agent", "assistant"), Participant("caller", "user")),
        clocks=(Clock(id="audio", kind="audio", offset=0.0),),
        timeline=tuple(timeline),
        recording=AudioFile(
            tracks=(Track(path=str(file), channels=("agent", "caller") if channels == 2 else (), sample_rate=RATE),)
        ),
    )
