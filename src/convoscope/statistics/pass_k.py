"""Several trials of one task: does one succeed, do all succeed?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import comb
from typing import NamedTuple

from convoscope.metrics.declaration import Sample
from convoscope.metrics.score import NOT_APPLICABLE


def pass_at_k(trials: int, passed: int, k: int) -> float | None:
    """Chance that at least one of k trials drawn from these passes; None with fewer trials than k."""
    if trials < k:
        return None
    return 1 - comb(trials - passed, k) / comb(trials, k)


def pass_hat_k(trials: int, passed: int, k: int) -> float | None:
    """Chance that all of k trials drawn from these pass; None with fewer trials than k."""
    if trials < k:
        return None
    return comb(passed, k) / comb(trials, k)


def pass_hat_k_theoretical(trials: int, passed: int, k: int) -> float | None:
    """Chance that k independent trials pass at the observed rate; None with fewer trials than k."""
    if trials < k:
        return None
    return (passed / trials) ** k


class Trials(NamedTuple):
    """How many trials a scenario had, and how many passed."""

    trials: int
    passed: int


def _scenario(sample: Sample) -> str:
    """Scenario 7 of one domain is not scenario 7 of another."""
    if not sample.dimensions.get("scenario_id"):
        return sample.conversation
    names = (sample.dimensions.get(name) for name in ("dataset", "domain", "scenario_id"))
    return "/".join(name for name in names if name)


def by_scenario(samples: Iterable[Sample], passes_at: float) -> Mapping[str, Trials]:
    """Trials and passes of each scenario; a conversation without a scenario is one of its own.

    A trial that could not be measured is no trial, but its scenario is there, so that it is counted
    as unscored rather than lost. What is not applicable is left out.
    """
    tally: dict[str, list[int]] = {}
    for sample in samples:
        if sample.status == NOT_APPLICABLE:
            continue
        scenario = _scenario(sample)
        counts = tally.setdefault(scenario, [0, 0])
        if sample.value is not None:
            counts[0] += 1
            counts[1] += sample.value >= passes_at
    return {scenario: Trials(*counts) for scenario, counts in sorted(tally.items())}
