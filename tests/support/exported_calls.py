"""What tests of exports of voice platforms have in common: records with odd values in them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

ODD: tuple[Any, ...] = (None, True, 0, -1, 1e308, 10**400, "", "x", "\x00", [], [None], ["x"], {}, {"a": []}, [{}])

often = settings(deadline=None, derandomize=True, max_examples=75, suppress_health_check=list(HealthCheck))


@st.composite
def spoilt(draw: st.DrawFn, value: Any) -> Any:
    """The same with something odd in a few places, at any depth."""
    whole = [copy.deepcopy(value)]
    for _ in range(draw(st.integers(1, 6))):
        here: Any = whole
        for _ in range(draw(st.integers(0, 7))):
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            inner = [key for key in keys if isinstance(here[key], dict | list) and here[key]]
            if not inner:
                break
            here = here[draw(st.sampled_from(inner))]
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        here[draw(st.sampled_from(keys))] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return whole[0]
