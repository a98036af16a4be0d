"""Which text belongs to which stretch of sound: both run in one order, neither is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import sub

NOWHERE = -1
_ENDLESS = float("inf")
_BAND = 60


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
    Of many places an item is held only against those near its share of the way, so that a long call
    costs no square.
    """
    places = len(empty)
    reach_of = _BAND + abs(places - items)
    left = [0.0]
    for price in empty:
        left.append(left[-1] + price)
    # best[p]: the items so far, the last placed one at place p - 1; p = 0: none placed yet.
    best = [0.0, *([_ENDLESS] * places)]
    # Where an item is placed: the place of the one before it.
    steps: list[dict[int, int]] = []
    for item in range(items):
        now = [value + alone for value in best]
        step: dict[int, int] = {}
        middle = (item + 0.5) * places / items
        low, high = max(1, int(middle) - reach_of), min(places, int(middle) + reach_of)
        before_low = list(map(sub, best[:low], left[:low]))
        reach = min(before_low)
        origin = before_low.index(reach)
        for p in range(low, high + 1):
            before, why = reach + left[p - 1], origin
            if best[p] + again < before:
                before, why = best[p] + again, p
            total = before + cost(item, p - 1)
            if total < now[p]:
                now[p], step[p] = total, why
            # A place that was passed with an item on it was not left empty.
            if best[p] - left[p] < reach:
                reach, origin = best[p] - left[p], p
        best = now
        steps.append(step)
    at = min(range(places + 1), key=lambda p: best[p] + left[places] - left[p])
    result = [NOWHERE] * items
    for item in reversed(range(items)):
        if at in steps[item]:
            result[item] = at - 1
            at = steps[item][at]
    return result
