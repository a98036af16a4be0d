"""How alike two values are, as the standard evaluator measures it (dialogue, 4: traps for parity)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from rapidfuzz import fuzz
from rapidfuzz.distance import Indel

_AS_GOOD_AS_EQUAL = 0.995


@lru_cache(262144)
def partial_ratio(left: str, right: str) -> int:
    """The best likeness of the shorter text to a window of the longer one, from 0 to 100; 0 where one is empty.

    Windows begin where the two texts have a stretch in common, by their shortest edit, and at the end. Other
    libraries look at more windows, and accept pairs that the standard evaluator refuses.
    """
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
        return bool(left) and threshold < 100
    if not fuzz.partial_ratio(left, right, score_cutoff=threshold):
        return False
    return partial_ratio(left, right) > threshold


def _windows(shorter: str, longer: str) -> list[int]:
    """Where in the longer text a window begins, for each stretch that both have; and the last window."""
    starts = dict.fromkeys(max(0, there - here) for here, there in _common_stretches(shorter, longer))
    starts[len(longer) - len(shorter)] = None
    return list(starts)


def _common_stretches(left: str, right: str) -> Iterator[tuple[int, int]]:
    """Where each stretch that an edit keeps begins, in both texts."""
    last = (-2, -2)
    for pair in _kept(left, right):
        if pair != (last[0] + 1, last[1] + 1):
            yield pair
        last = pair


def _kept(left: str, right: str) -> list[tuple[int, int]]:
    """The letters that a shortest edit from left to right keeps, with its ties broken as python-Levenshtein does.

    From the end: go on inserting or deleting where the last step did; else keep, replace, insert, delete.
    """
    front = 0
    while front < min(len(left), len(right)) and left[front] == right[front]:
        front += 1
    back = 0
    while back < min(len(left), len(right)) - front and left[-1 - back] == right[-1 - back]:
        back += 1
    here, there = left[front : len(left) - back], right[front : len(right) - back]
    costs = _costs(here, there)
    kept = [(len(left) - 1 - step, len(right) - 1 - step) for step in range(back)]
    row, column, direction = len(here), len(there), 0
    while row or column:
        cost = costs[row][column]
        if direction < 0 and column and cost == costs[row][column - 1] + 1:
            column -= 1
        elif direction > 0 and row and cost == costs[row - 1][column] + 1:
            row -= 1
        elif row and column and here[row - 1] == there[column - 1] and cost == costs[row - 1][column - 1]:
            row, column, direction = row - 1, column - 1, 0
            kept.append((front + row, front + column))
        elif row and column and cost == costs[row - 1][column - 1] + 1:
            row, column, direction = row - 1, column - 1, 0
        elif column and cost == costs[row][column - 1] + 1:
            column, direction = column - 1, -1
        else:
            row, direction = row - 1, 1
    kept += [(step, step) for step in reversed(range(front))]
    kept.reverse()
    return kept


def _costs(left: str, right: str) -> list[list[int]]:
    """The edit distance of every beginning of one text to every beginning of the other."""
    rows = [list(range(len(right) + 1))]
    for count, letter in enumerate(left, 1):
        above, row = rows[-1], [count]
        for place, other in enumerate(right):
            row.append(min(above[place] + (letter != other), above[place + 1] + 1, row[place] + 1))
        rows.append(row)
    return rows
