"""Which text belongs to which stretch of sound: both run in one order, neither is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence

NOWHERE = -1
_ENDLESS = float("inf")


def placed(
    items: int,
    empty: Sequence[float],
    cost: Callable[[int, int], float],
    *,
    again: float,
    alone: float,
) -> list[int]:
    """The place of each item, or NOWHERE, so that the whole costs least and no two cross.

    `empty` has for each place what it costs to leave it without an item, `cost` what an item costs
    at a place, `again` what a second item at one place costs on top, `alone` an item without a place.
    """
    places = len(empty)
    left = [0.0]
    for price in empty:
        left.append(left[-1] + price)
    # best[p]: the items so far, the last placed one at place p - 1; p = 0: none placed yet.
    best = [0.0, *([_ENDLESS] * places)]
    steps: list[list[tuple[int, bool]]] = []
    for item in range(items):
        now = [value + alone for value in best]
        step = [(p, False) for p in range(places + 1)]
        reach, origin = best[0], 0
        for p in range(1, places + 1):
            before, why = reach + left[p - 1], origin
            if best[p] + again < before:
                before, why = best[p] + again, p
            total = before + cost(item, p - 1)
            if total < now[p]:
                now[p], step[p] = total, (why, True)
            # A place that was passed with an item on it was not left empty.
            if best[p] - left[p] < reach:
                reach, origin = best[p] - left[p], p
        best = now
        steps.append(step)
    at = min(range(places + 1), key=lambda p: best[p] + left[places] - left[p])
    found = [NOWHERE] * items
    for item in reversed(range(items)):
        why, here = steps[item][at]
        if here:
            found[item] = at - 1
        at = why
    return found
