"""How good speech sounds to people, as trained models predict it: Distill-MOS; DNSMOS and PLCMOS where installed.

Distill-MOS is package data, with its weights rounded to 8 bits. CONVOSCOPE_DISTILLMOS names the full form.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.errors import UsageError
from convoscope.resources.sound import RecordedTrack, Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 16_000
WINDOW = 122_880
"""Samples of a window of Distill-MOS: 7.68 s (specs: judged 6)."""
HOP = 61_440
"""Windows of a longer turn are at most half a window apart: 1 s apart they cost 2.5 times as much, for 0.01 of 5."""
LONGEST = 60.0
"""Seconds of a turn that are scored at once."""
MODEL = Path(__file__).with_name("models") / "distillmos-int8.onnx"
VARIABLE = "CONVOSCOPE_DISTILLMOS"
_SILENT = 1e-4


class TurnQuality(NamedTuple):
    """The score of one stretch of speech, in seconds of the track."""

    start: float
    end: float
    mos: float
    background: float | None = None
    """DNSMOS BAK: how little noise there is."""
    packet_loss: float | None = None
    """PLCMOS: how little of the sound was lost."""


def model_file() -> Path:
    """The model that is used."""
    named = os.environ.get(VARIABLE)
    if not named:
        return MODEL
    if not Path(named).is_file():
        raise UsageError(f"{VARIABLE}={named}: there is no such file", hint="name Distill-MOS as ONNX, or unset it")
    return Path(named)


def models_identity() -> str:
    """What the scores depend on: the model, and what is installed beside it."""
    file = model_file()
    name = "int8" if file == MODEL else hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    return f"distillmos/{name}{' speechmos' if second_opinion() is not None else ''}"


@cache
def second_opinion() -> Path | None:
    """The folder of the package `speechmos`, whose models are loaded by path; None where it is not installed."""
    spec = find_spec("speechmos")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def _session(file: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Several processes score at once: with threads of their own they only wait for each other.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def mos(samples: NDArray[np.float32], hop: int = HOP) -> float:
    """The predicted opinion of speech of 16 kHz, from 1 to 5: the mean over its windows."""
    import numpy as np

    session = _session(model_file())
    if len(samples) <= WINDOW:
        samples, starts = np.pad(samples, (0, WINDOW - len(samples))), [0]
    else:
        count = -(-(len(samples) - WINDOW) // hop) + 1
        starts = np.linspace(0, len(samples) - WINDOW, count).astype(int).tolist()
    scores = [float(session.run(None, {"spec": _spectrum(samples[at : at + WINDOW])[None]})[0].item()) for at in starts]
    return 1 + 4 * sum(scores) / len(scores)


def _spectrum(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """The compressed spectrum that the model takes (specs: judged 6)."""
    import numpy as np

    peak = float(np.abs(samples).max())
    padded = np.pad(samples / max(peak, _SILENT), 80, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, 320)[::160][:768]
    window = np.hanning(321)[:320]
    spectrum = np.fft.rfft(frames * window, axis=1).T
    scaled = spectrum * np.maximum(np.abs(spectrum), 1e-12) ** -0.7
    return np.stack((scaled.real, scaled.imag)).astype(np.float32)


def quality_of(track: RecordedTrack, turns: Sequence[Span]) -> tuple[TurnQuality, ...]:
    """The quality of each stretch of speech. It is computed once. Raises `RecordingError`."""
    kept: dict[tuple[Span, ...], tuple[TurnQuality, ...]] = vars(track).setdefault("_quality", {})
    key = tuple(turns)
    if key not in kept:
        kept[key] = tuple(_quality(track, part) for turn in turns for part in _parts(turn))
    return kept[key]


def _parts(turn: Span) -> list[Span]:
    """A turn, or equal parts of a long one: what is scored at once is held in memory."""
    length = turn.end - turn.start
    count = max(1, math.ceil(length / LONGEST))
    return [Span(turn.start + length * part / count, turn.start + length * (part + 1) / count) for part in range(count)]


def _quality(track: RecordedTrack, turn: Span) -> TurnQuality:
    from convoscope.audio.second_opinion import background, packet_loss

    samples = track.read(turn.start, turn.end, RATE)
    folder = second_opinion()
    others = (None, None) if folder is None else (background(folder, samples), packet_loss(folder, samples))
    return TurnQuality(turn.start, turn.end, mos(samples), *others)
