"""Several trials of one task: does one succeed, do all succeed?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import comb
from typing import NamedTuple

from convoscope.metrics.declaration import HIGHER, RATIO, Derived, GroupSample, derived
from convoscope.scores.observation import NOT_APPLICABLE


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


def _scenario(sample: GroupSample) -> str:
    """Scenario 7 of one domain is not scenario 7 of another."""
    if not sample.dimensions.get("scenario_id"):
        return sample.conversation
    names = (sample.dimensions.get(name) for name in ("dataset", "domain", "scenario_id"))
    return "/".join(name for name in names if name)


def by_scenario(samples: Iterable[GroupSample], passes_at: float) -> Mapping[str, Trials]:
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


class Repeats(NamedTuple):
    """The three figures of several trials of one task."""

    pass_at: Derived
    pass_hat: Derived
    pass_hat_theoretical: Derived


FEWER_TRIALS = "fewer_trials_than_k"


def repeats(metric_key: str, *, passes_at: float, k: int) -> Repeats:
    """Declare pass@k and pass^k of a metric, observed and theoretical, over the trials of each scenario.

    A trial passes where the metric gives at least `passes_at`. Assign the three to names of a module
    whose metrics are registered.
    """
    return Repeats(
        _over_trials(metric_key, passes_at, k, ".pass_at", pass_at_k, _PASS_AT),
        _over_trials(metric_key, passes_at, k, ".pass_hat", pass_hat_k, _PASS_HAT),
        _over_trials(metric_key, passes_at, k, ".pass_hat_theoretical", pass_hat_k_theoretical, _THEORETICAL),
    )


_PASS_AT = "Does at least one of {k} trials of a scenario pass?"
_PASS_HAT = "Do all of {k} trials of a scenario pass?"
_THEORETICAL = "Would all of {k} further trials of a scenario pass, at the rate that was observed?"


def _over_trials(
    metric_key: str,
    passes_at: float,
    k: int,
    suffix: str,
    figure: Callable[[int, int, int], float | None],
    question: str,
) -> Derived:
    def per_scenario(samples: list[GroupSample]) -> Mapping[str, float | None]:
        return {name: figure(*tally, k) for name, tally in by_scenario(samples, passes_at).items()}

    per_scenario.__doc__ = f"""{question.format(k=k)}

    A trial passes where {metric_key} is at least {passes_at:g}. {figure.__doc__} The mean over scenarios.
    """
    name, _, variant = metric_key.partition("@")
    return derived(
        name + suffix,
        version=1,
        over="group",
        unit=RATIO,
        better=HIGHER,
        inputs=(metric_key,),
        variant=f"{variant}-k{k}" if variant else f"k{k}",
        unscored=FEWER_TRIALS,
    )(per_scenario)
