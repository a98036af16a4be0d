"""Drawing conversations again: the same as if each draw were pooled and sorted, without the memory for it."""

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from convoscope.statistics.intervals import DRAWS, percentile_interval

MEGABYTE = 1_000_000


def talks(conversations: int, turns: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Turns of conversations that differ: those of one lie about 100 above those of the one before."""
    owner = np.repeat(np.arange(conversations, dtype=np.int64), turns)
    return np.random.default_rng(2).normal(100.0 * owner, 1.0), owner


def plainly(values: NDArray[np.float64], owner: NDArray[np.int64], q: float) -> list[float]:
    """Draw whole conversations, pool their turns, take the percentile: as it is written in books.

    The draws depend on the number of conversations alone.
    """
    groups = [values[owner == one] for one in np.unique(owner)]
    draws = np.random.default_rng(len(groups)).integers(0, len(groups), size=(DRAWS, len(groups)), dtype=np.int32)
    found = [np.percentile(np.concatenate([groups[pick] for pick in picks]), q) for picks in draws]
    return np.percentile(found, [2.5, 97.5]).tolist()


@pytest.mark.parametrize("q", [1, 50, 95, 99.9])
@pytest.mark.parametrize(("conversations", "turns"), [(20, 50), (12, 200), (7, 3), (3, 1)])
def test_it_is_plain_resampling(conversations: int, turns: int, q: float) -> None:
    values, owner = talks(conversations, turns)
    one = percentile_interval(values, owner, q)
    assert one is not None
    # The same draws; ends are rounded to ten digits.
    assert [one.low, one.high] == pytest.approx(plainly(values, owner, q), rel=1e-9)


def test_conversations_of_many_turns_that_differ_need_little_memory() -> None:
    values, owner = talks(20, 10_000)
    tracemalloc.start()
    try:
        one = percentile_interval(values, owner, 50)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # 1,000 draws of 200,000 turns at once would be 1.6 GB.
    assert peak < 400 * MEGABYTE
    assert one is not None
    assert (one.method, one.clusters) == ("cluster_bootstrap", 20)
    # The middle lies between conversations 9 and 10 of 20, at about 950, give or take a few conversations.
    assert 300 < one.low < 950 < one.high < 1600
