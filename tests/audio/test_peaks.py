"""Peaks of a track: on the scale of the file, few however long it is, with little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from convoscope.audio.peaks import MOST, peaks


class Track:
    """A track of so many seconds, made as it is read."""

    def __init__(self, seconds: float, rate: int, sample: Any) -> None:
        self.seconds, self.rate, self._sample = seconds, rate, sample

    def windows(self, seconds: float) -> Iterator[tuple[float, NDArray[np.float32]]]:
        total, size = round(self.seconds * self.rate), round(seconds * self.rate)
        for start in range(0, total, size):
            at = np.arange(start, min(total, start + size)) / self.rate
            yield start / self.rate, self._sample(at).astype(np.float32)


def levels(track: Track) -> list[int]:
    return list(peaks(track).levels)  # type: ignore[arg-type]


def test_a_tenth_of_a_second_is_a_peak() -> None:
    """One second of silence, one at a quarter of full scale with either sign: √0.25 = 0.5, and 0.5 · 255 = 127.5."""
    found = levels(Track(2, 8000, lambda at: np.where(at < 1, 0.0, np.where(at * 8000 % 2, 0.25, -0.25))))
    assert found == [0] * 10 + [128] * 10


def test_the_scale_is_that_of_the_file() -> None:
    """A soft recording stays low beside a loud one: √0.04 = 0.2, and 0.2 · 255 = 51."""
    assert set(levels(Track(1, 8000, lambda at: np.full(len(at), 0.04)))) == {51}
    assert set(levels(Track(1, 8000, lambda at: np.full(len(at), 1.0)))) == {255}
    assert set(levels(Track(1, 8000, lambda at: np.full(len(at), 1.5)))) == {255}


@pytest.mark.parametrize("rate", [8000, 11025, 44100])
def test_a_click_is_where_it_was(rate: int) -> None:
    """One sample at 61.25 s is in the bin that holds this second, whatever the rate and the windows."""
    click = round(61.25 * rate)
    found = peaks(Track(90.03, rate, lambda at: np.rint(at * rate) == click))  # type: ignore[arg-type]
    (place,) = np.flatnonzero(np.frombuffer(found.levels, np.uint8))
    assert place / found.rate <= 61.25 <= (place + 1) / found.rate


def test_three_hours_take_no_more_room_than_minutes() -> None:
    tracemalloc.start()
    try:
        found = peaks(Track(3 * 3600, 8000, lambda at: np.full(len(at), 0.5)))  # type: ignore[arg-type]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert MOST * 0.9 < len(found.levels) <= MOST
    # The whole would be 86,400,000 samples, 346 MB. A window of ten seconds is 80,000, and a few of them are held.
    assert most < 8_000_000


def test_a_sample_that_is_no_number_is_no_sound() -> None:
    assert set(levels(Track(1, 8000, lambda at: np.where(at < 0.5, np.nan, 0.0)))) == {0}
