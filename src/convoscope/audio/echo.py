"""What is heard on one track and is the sound of another one, over a loudspeaker or a bad line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from convoscope.audio.activity import SHORTEST_SPEECH
from convoscope.audio.against_log import joined, shared, total, without
from convoscope.resources.sound import RecordedTrack, Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 8_000
LATEST = 1.0
"""Seconds by which an echo is late, at most."""
ALIKE = 0.4
"""The correlation from which one sound is an echo of another. Two people reach 0.3 in a piece of this length …"""
PIECE = 1.5
"""… in seconds. Shorter pieces are alike by chance: they need more, by the root of their length."""
OWN = 4.0
"""Power of a frame, as a multiple of the echo's, from which someone speaks over the echo."""
_FRAME = 0.05
_MARGIN = 0.1
"""Seconds: voice activity hears an echo a little longer than it lasts."""


class Voices(NamedTuple):
    """A track, and when voice activity hears speech in it, echoes and all."""

    track: RecordedTrack
    speech: Sequence[Span]


def without_echo(heard: Voices, others: Sequence[Voices]) -> tuple[Span, ...]:
    """The speech of a track without the echoes of other tracks: their sound, later and quieter."""
    echoes = joined([span for other in others for span in _echoes(heard, other)], 0.0)
    if not echoes:
        return tuple(heard.speech)
    left = without(heard.speech, echoes)
    return tuple(Span(round(start, 3), round(end, 3)) for start, end in left if end - start >= SHORTEST_SPEECH)


def _echoes(heard: Voices, other: Voices) -> Iterator[Span]:
    """Where the speech of another track comes back, in seconds of the track that hears it."""
    track, source = heard.track, other.track
    if track.path != source.path and (track.offset is None or source.offset is None):
        return
    ahead = (source.offset or 0.0) - (track.offset or 0.0)
    for start, end in other.speech:
        count = max(1, int((end - start) / PIECE))
        for part in range(count):
            begin, until = (start + (end - start) * edge / count for edge in (part, part + 1))
            at = begin + ahead
            if at >= 0 and total(shared(heard.speech, [(at, until + ahead + LATEST)])) >= _MARGIN:
                yield from _echo_of(track.read(at, until + ahead + LATEST, RATE), source.read(begin, until, RATE), at)


def _echo_of(heard: NDArray[np.float32], source: NDArray[np.float32], at: float) -> Iterator[Span]:
    """Where a sound comes back in one that begins with it and lasts longer, but for what is too loud to be an echo."""
    import numpy as np

    length = min(len(source), len(heard))
    lag, correlation = _alike(heard.astype(np.float64), source[:length].astype(np.float64))
    if correlation < ALIKE * max(1.0, math.sqrt(PIECE * RATE / max(1, length))):
        return
    size = round(_FRAME * RATE)
    whole = length // size * size
    powers = [(one[:whole].astype(np.float64) ** 2).reshape(-1, size).mean(axis=1) for one in (heard[lag:], source)]
    gain = float(np.median(powers[0] / np.maximum(powers[1], 1e-12)))
    if gain >= 1:
        return
    loudest = np.maximum.reduce([np.roll(powers[1], shift) for shift in (-1, 0, 1)])
    own = powers[0] > OWN * gain * np.maximum(loudest, loudest.mean() / 10)
    edges = (np.flatnonzero(np.diff(np.concatenate(([False], own, [False])).astype(np.int8))) * _FRAME).tolist()
    speech = [span for span in zip(edges[::2], edges[1::2], strict=True) if span[1] - span[0] >= _MARGIN]
    kept = joined([(start - _MARGIN, end + _MARGIN) for start, end in speech], SHORTEST_SPEECH)
    first = at + lag / RATE
    for start, end in without([(-_MARGIN, whole / RATE + _MARGIN)], kept):
        yield Span(first + start, first + end)


def _alike(heard: NDArray[np.float64], source: NDArray[np.float64]) -> tuple[int, float]:
    """After how many samples a sound is most like another one, and their correlation there."""
    import numpy as np

    if not len(source):
        return 0, 0.0
    heard, source = heard - heard.mean(), source - source.mean()
    size = 1 << (len(heard) + len(source)).bit_length()
    products = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(source, size)), size)
    lag = int(np.abs(products[: len(heard) - len(source) + 1]).argmax())
    scale = math.sqrt(float((heard[lag : lag + len(source)] ** 2).sum() * (source**2).sum()))
    return lag, abs(float(products[lag])) / scale if scale else 0.0


__all__ = ["Voices", "without_echo"]
