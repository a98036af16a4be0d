"""How alike two values are, as the standard evaluator measures it (dialogue, 4: traps for parity)."""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz import fuzz
from rapidfuzz.distance import Indel, Levenshtein

_AS_GOOD_AS_EQUAL = 0.995


@lru_cache(262144)
def partial_ratio(left: str, right: str) -> int:
    """The best likeness of the shorter text to a window of the longer one, from 0 to 100; 0 where only one is empty.

    Windows begin where the two texts have a stretch in common, by their shortest edit, and at the end. Other
    libraries look at more windows, and accept pairs that the standard evaluator refuses.
    """
    if left == right:
        return 100
    if not left or not right:
        return 0
    shorter, longer = (left, right) if len(left) <= len(right) else (right, left)
    best = 0.0
    for start in _windows(shorter, longer):
        likeness = Indel.normalized_similarity(shorter, longer[start : start + len(shorter)])
        if likeness > _AS_GOOD_AS_EQUAL:
            return 100
        best = max(best, likeness)
    return round(100 * best)


def is_like(left: str, right: str, threshold: int) -> bool:
    """Whether the likeness is above a threshold. The best of all windows, which is found fast, bounds it."""
    if left == right:
        return threshold < 100
    if not fuzz.partial_ratio(left, right, score_cutoff=threshold):
        return False
    return partial_ratio(left, right) > threshold


def _windows(shorter: str, longer: str) -> dict[int, None]:
    """Where in the longer text a window begins, for each stretch that both have; and the last window."""
    stretches = Levenshtein.editops(shorter, longer).as_matching_blocks()
    return dict.fromkeys(max(0, stretch.b - stretch.a) for stretch in stretches)
