"""How loud a track is from moment to moment, and where its sound breaks: gaps, clicks, flat tops. One pass for all."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from convoscope.audio.loudness import LoudnessMeter
from convoscope.audio.speakers import joined
from convoscope.conversation.lazy import cached_on_argument
from convoscope.resources.sound import RecordedTrack, Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FRAME = 0.0025
"""Seconds: the finest step of the levels."""
QUIET = 1e-3
"""−60 dBFS."""
EDGE = 14.0
"""23 dB, as a ratio of amplitudes."""
OVER_FLOOR = 2.0
"""Amplitudes above the noise that fills a gap: a frame of noise is rarely louder."""
FADING = 4.0
"""12 dB within 7 ms: a sound that becomes so much softer ends by itself."""
SOFT = 10 ** (-10 / 20)
"""Of the level of a turn, within 5 ms: a noise gate, a synthesizer and samples of 8 bits make zeros of softer sound."""
SHORTEST_GAP, LONGEST_GAP = 0.020, 2.0
_AT_SPEECH = 0.1
"""Seconds. Voice activity hears where a gap begins and ends to about so much."""
FILLED = 10 ** (-20 / 20)
"""Of the level of a turn: what fills a gap, as comfort noise, is softer, if not as soft as a pause …"""
STEADY = 2.0
"""… and its loudest 2.5 ms are no more than so many times the median of all, in amplitude: nothing speaks in it."""
LARGEST_STEP = 0.5
"""Of full scale, between neighbouring samples …"""
LEAST_STEP, STEP_LEAD = 0.1, 3.0
"""… or so many times the level of the loud parts, where that is less: a softer voice has softer steps. Of 24 minutes of
a person and of five synthesizers without a click, the largest step that stands out is 2.4 times that level."""
CLICK_LEAD = 8.0
"""A click stands out from the 2 ms around it by so many times: loud noise has large steps everywhere."""
CLIP_TIME = 3 / 16_000
"""Seconds: three samples of 16 kHz. At higher rates, the top of a low tone is flat for longer than three samples."""
_STEP = 1.01 / 32768
"""Two samples of 16 bits that are next to each other differ by no less."""
_NEAR_PEAK = 0.98
_LEAST_PEAK = 0.05
_LEAST_SHARE = 0.25
_FULL = 0.97
_AROUND = 0.05
"""Seconds: some periods of a low voice."""
_WITHIN, _OFTEN = 0.5, 5
"""Seconds around a flat top, and how many have its level there. A top that is flat by chance is alone."""
TOGETHER = 0.050
"""Seconds: events that are closer are one."""
LONGEST_EVENT = 0.1
"""Seconds: events that are joined are no longer; breakage that goes on counts again."""
FEW_VALUES = 256
"""A sound with no more different samples was coded with 8 bits, by µ-law or A-law: it has flat tops by itself."""
_SECONDS = 10.0


class Breakage(NamedTuple):
    """A moment at which the sound breaks, in seconds of the track."""

    start: float
    end: float
    kind: str


class TrackLevels(NamedTuple):
    """What one pass over a track gives."""

    step: float
    """Seconds of a frame."""
    power: NDArray[np.float32]
    """Mean of squares of each frame."""
    lufs: float | None
    peak: float
    clicks: tuple[Breakage, ...]
    clips: tuple[Breakage, ...]
    clipped: float
    """Seconds inside of flat tops."""


@cached_on_argument
def levels_of(track: RecordedTrack) -> TrackLevels:
    """The levels of a track. It is computed once. Raises `RecordingError`."""
    import numpy as np

    size = max(1, round(FRAME * track.rate))
    step = size / track.rate
    meter = LoudnessMeter(track.rate)
    power: list[NDArray[np.float32]] = []
    steps: list[_Step] = []
    tops = _FlatTops(track.rate)
    values: set[float] = set()
    tail = np.zeros(0, np.float32)
    context = round(0.005 * track.rate)
    for start, samples in track.windows(round(_SECONDS / step) * step):
        meter.add(samples)
        whole = len(samples) // size * size
        power.append(np.mean(samples[:whole].reshape(-1, size).astype(np.float64) ** 2, axis=1).astype(np.float32))
        joined = np.concatenate((tail, samples))
        steps += _large_steps(joined, start - len(tail) / track.rate, track.rate, len(tail))
        tops.add(joined, start - len(tail) / track.rate, len(tail))
        if len(values) <= FEW_VALUES:
            values.update(np.unique(samples[: 4 * track.rate]).tolist()[: FEW_VALUES + 1])
        tail = joined[-context:]
    clips = tops.clips(is_companded=len(values) <= FEW_VALUES)
    clipped = sum(span.end - span.start for span in clips)
    all_power = np.concatenate(power) if power else np.zeros(0, np.float32)
    return TrackLevels(
        step,
        all_power,
        meter.integrated(),
        tops.peak,
        tuple(_clicks(steps, all_power)),
        tuple(clips),
        clipped,
    )


class _Step(NamedTuple):
    start: float
    end: float
    size: float


def _large_steps(samples: NDArray[np.float32], start: float, rate: int, known: int) -> list[_Step]:
    """Steps that are much larger than those around them; of the samples after the `known` first ones."""
    import numpy as np

    steps = np.abs(np.diff(samples))
    candidates = np.flatnonzero(steps > LEAST_STEP)
    candidates = candidates[candidates >= max(0, known - 1)]
    if not len(candidates):
        return []
    total = np.concatenate(([0.0], np.cumsum(steps.astype(np.float64) ** 2)))
    far, near = max(8, round(0.002 * rate)), max(2, round(0.0002 * rate))
    low, high = np.maximum(0, candidates - far), np.minimum(len(steps), candidates + far + 1)
    inner_low, inner_high = np.maximum(0, candidates - near), np.minimum(len(steps), candidates + near + 1)
    count = np.maximum(1, (high - low) - (inner_high - inner_low))
    around = (total[high] - total[low] - (total[inner_high] - total[inner_low])) / count
    is_click = steps[candidates] > CLICK_LEAD * np.sqrt(np.maximum(around, 0.0))
    indexes = candidates[is_click].tolist()
    return [_Step(start + at / rate, start + (at + 1) / rate, float(steps[at])) for at in indexes]


def _clicks(steps: Sequence[_Step], power: NDArray[np.float32]) -> Iterator[Breakage]:
    """The steps that are large for the loud parts of a track: those of at least half of the power of its loudest."""
    import numpy as np

    loud = power[power >= np.percentile(power, 95) / 2] if len(power) else power
    least = min(LARGEST_STEP, max(LEAST_STEP, STEP_LEAD * math.sqrt(float(loud.mean())))) if len(loud) else LARGEST_STEP
    for start, end, size in steps:
        if size > least:
            yield Breakage(start, end, "click")


class _FlatTops:
    """Runs of samples that stay at the loudest value around them, each time the same: what was above is cut off."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._least = max(3, round(CLIP_TIME * rate))
        self._runs: list[tuple[float, float, float]] = []
        """Start, end and level."""
        self.peak = 0.0

    def add(self, samples: NDArray[np.float32], start: float, known: int) -> None:
        import numpy as np

        self.peak = max(self.peak, float(np.abs(samples).max(initial=0.0)))
        flat = (np.abs(np.diff(samples)) <= _STEP) & (np.abs(samples[1:]) >= _LEAST_PEAK)
        edges = np.diff(np.concatenate(([False], flat, [False])).astype(np.int8))
        begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        # Three samples have two steps between them. A run that ends in the known part was counted before.
        is_long = (ends - begins + 1 >= self._least) & (ends >= known)
        near = round(_AROUND * self._rate)
        for begin, end in zip(begins[is_long].tolist(), ends[is_long].tolist(), strict=True):
            level = float(samples[begin])
            around = samples[max(0, begin - near) : end + near] * math.copysign(1.0, level)
            if float(around.max()) * _NEAR_PEAK <= abs(level):
                self._runs.append((start + begin / self._rate, start + (end + 1) / self._rate, level))

    def clips(self, *, is_companded: bool) -> list[Breakage]:
        """The runs at full scale, and those whose level others near them have; of 8-bit codes only the first."""
        # Soft samples of coarse steps are alike, too: no line clips so far below its loudest sound.
        runs = [run for run in self._runs if abs(run[2]) >= _LEAST_SHARE * self.peak]
        starts = [start for start, _, _ in runs]
        result: list[Breakage] = []
        for start, end, level in runs:
            near = runs[bisect(starts, start - _WITHIN) : bisect(starts, start + _WITHIN)]
            is_often = sum(abs(other - level) <= 2 * _STEP for _, _, other in near) >= _OFTEN
            if abs(level) >= _FULL or (is_often and not is_companded):
                result.append(Breakage(start, end, "clipping"))
        return result


def noise_floor(levels: TrackLevels) -> float:
    """The amplitude of what is always there: a tenth of all frames are softer."""
    import numpy as np

    return math.sqrt(float(np.percentile(levels.power, 10))) if len(levels.power) else 0.0


def gaps(levels: TrackLevels, speech: Sequence[Span]) -> list[Breakage]:
    """Gaps inside of speech whose both edges are hard: the sound stopped and went on while it was loud.

    Pauses between words may be zeros, too, of a noise gate, a synthesizer or coarse samples. They begin and end where
    speech is soft. A gap holds no more than the noise of the track, or a steady faint one, as comfort noise.
    """
    import numpy as np

    root = np.sqrt(levels.power)
    floor = max(QUIET, OVER_FLOOR * noise_floor(levels))
    edges_of_speech = [edge for span in speech for edge in (span.start - _AT_SPEECH, span.end + _AT_SPEECH)]
    result: list[Breakage] = []
    for span in joined(speech, LONGEST_GAP):
        first, last = round(span.start / levels.step), min(len(root), round(span.end / levels.step))
        loud = levels.power[first:last][root[first:last] >= floor]
        level = math.sqrt(float(loud.mean())) if len(loud) else 0.0
        is_known = np.zeros(max(0, last - first), bool)
        for limit in (floor, FILLED * level):
            edges = np.diff(np.concatenate(([False], root[first:last] < limit, [False])).astype(np.int8))
            for begin, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
                start, stop = first + int(begin), first + int(end)
                gap = Breakage(start * levels.step, stop * levels.step, "dropout")
                is_inside = begin >= 2 and end <= last - first - 2
                is_long = SHORTEST_GAP - 2 * levels.step <= gap.end - gap.start <= LONGEST_GAP
                if is_known[begin:end].any() or not (is_inside and is_long and _is_in_speech(gap, edges_of_speech)):
                    continue
                if _is_cut(root, start, stop, SOFT * level) and (limit == floor or _is_steady(root[start:stop])):
                    is_known[begin:end] = True
                    result.append(gap)
    return result


def _is_steady(root: NDArray[np.float32]) -> bool:
    """Whether a gap holds the same faint noise throughout, but for its first and last frame."""
    import numpy as np

    inner = root[1:-1]
    return len(inner) >= 6 and bool(
        inner.max() <= STEADY * np.median(inner) and inner.min() >= np.median(inner) / STEADY
    )


def _is_in_speech(gap: Breakage, edges: Sequence[float]) -> bool:
    """Whether both ends of a gap are at or inside of speech: where all are on one track, others speak between."""
    return all(bisect(edges, moment) % 2 == 1 for moment in (gap.start, gap.end))


def _is_cut(root: NDArray[np.float32], start: int, stop: int, soft: float) -> bool:
    """Both edges of a gap are hard, and the sound there is neither soft, nor fading, nor swelling.

    The frame at an edge is partly quiet: the one before it is 5 ms away from the first quiet one.
    """
    before, after = float(root[max(0, start - 2) : start].max()), float(root[stop : stop + 2].max())
    first, last = max(float(root[start]), 1e-9), max(float(root[stop - 1]), 1e-9)
    earlier = float(root[max(0, start - 7) : max(1, start - 3)].max(initial=0.0))
    recent = float(root[max(0, start - 3) : start].max())
    later = float(root[stop + 3 : stop + 7].max(initial=0.0))
    soon = float(root[stop : stop + 3].max())
    is_hard = before / first > EDGE and after / last > EDGE
    return is_hard and min(before, after) > soft and recent > earlier / FADING and soon > later / FADING


def events(breakages: Sequence[Breakage]) -> list[Breakage]:
    """Breakages that are close to each other as one event; one that goes on counts again after a tenth of a second."""
    result: list[Breakage] = []
    for breakage in sorted(breakages):
        last = result[-1] if result else None
        if last is not None and breakage.start - last.end <= TOGETHER and breakage.end - last.start <= LONGEST_EVENT:
            kind = last.kind if last.kind == breakage.kind else "breakage"
            result[-1] = Breakage(last.start, max(last.end, breakage.end), kind)
        else:
            result.append(breakage)
    return result


def speech_frames(levels: TrackLevels, spans: Sequence[Span], seconds: float = 0.02) -> NDArray[np.float64]:
    """Mean power of the frames of 20 ms inside of spans."""
    import numpy as np

    many = max(1, round(seconds / levels.step))
    whole = len(levels.power) // many * many
    power = levels.power[:whole].astype(np.float64).reshape(-1, many).mean(axis=1)
    inside = np.zeros(len(power), bool)
    for span in spans:
        inside[math.ceil(span.start / (many * levels.step)) : int(span.end / (many * levels.step))] = True
    result: NDArray[np.float64] = power[inside]
    return result
