"""One form for slot values and states, so that predicted and true ones can be compared (dialogue, 1.4 and 1.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

State = dict[str, dict[str, str]]
"""Slot values by domain and slot, in canonical form: no empty value, no empty domain."""

DONTCARE = "dontcare"

_EMPTY = frozenset({"", "none", "null", "not mentioned", "not given", "[]"})
_SAME = {
    "center": "centre",
    "any": DONTCARE,
    "do not care": DONTCARE,
    "do n't care": DONTCARE,
    "does not matter": DONTCARE,
    "doesn't matter": DONTCARE,
    "don't care": DONTCARE,
    "dont care": DONTCARE,
    "dont't care": DONTCARE,
}


@lru_cache(65536)
def _canonical_text(value: str) -> str:
    folded = " ".join(value.casefold().split())
    return "" if folded in _EMPTY else _SAME.get(folded, folded)


def canonical_value(value: object) -> str:
    """A slot value in its one form: small letters, single spaces, one word for "any". Empty where there is none."""
    return "" if value is None else _canonical_text(value if type(value) is str else str(value))


def canonical_state(slots: Mapping[str, Mapping[str, Any]]) -> State:
    """A state in which every slot has one value; the first of several. `Hotel` and `hotel` are one domain."""
    state: State = {}
    for domain, values in slots.items():
        filled = {}
        for slot, value in values.items():
            text = canonical_value(first_of(value))
            if text:
                filled[slot.casefold()] = text
        if filled:
            name = domain.casefold()
            state[name] = {**filled, **state[name]} if name in state else filled
    return state


class AlignedStates(NamedTuple):
    """A predicted and a true state with one value for each slot."""

    predicted: State
    """Equal to the true one where it has any of the values that are right."""
    true: State
    own: State
    """As it was predicted, whatever is true."""


def aligned_state(predicted: Mapping[str, Mapping[str, Any]], truth: Mapping[str, Mapping[str, Any]]) -> AlignedStates:
    """Both states with one value for each slot, equal where the prediction is any of the values that are right."""
    true_state, own = canonical_state(truth), canonical_state(predicted)
    aligned = own
    for domain, values in truth.items():
        ours = own.get(domain.casefold())
        if not ours:
            continue
        for slot, value in values.items():
            if isinstance(value, str) or not isinstance(value, Iterable):
                continue
            right = [canonical_value(one) for one in value]
            answer = ours.get(slot.casefold(), "")
            if len(right) > 1 and answer in right and right[0] and answer != right[0]:
                held = aligned[domain.casefold()]
                aligned = {**aligned, domain.casefold(): {**held, slot.casefold(): right[0]}}
    return AlignedStates(aligned, true_state, own)


def first_of(value: Any) -> Any:
    """The first of several values, or the one that there is."""
    if isinstance(value, (list, tuple)):
        return next((one for one in value if canonical_value(one)), None)
    return value
