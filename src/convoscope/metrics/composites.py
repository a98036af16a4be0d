"""Figures made of other figures: pass@k and pass^k over the trials of one task, and EVA's passes and means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import comb, fsum
from typing import NamedTuple

from convoscope.metrics.declaration import HIGHER, RATIO, SHARE, Derived, GroupSample, derived
from convoscope.metrics.perturbations import EMPTY_AGENT, SKEWED_CLOCKS, Perturbation
from convoscope.metrics.registry import Declared
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
        _over_trials(metric_key, passes_at, k, ".pass_at", pass_at_k),
        _over_trials(metric_key, passes_at, k, ".pass_hat", pass_hat_k),
        _over_trials(metric_key, passes_at, k, ".pass_hat_theoretical", pass_hat_k_theoretical),
    )


_QUESTIONS: dict[Callable[[int, int, int], float | None], tuple[str, str, str]] = {
    pass_at_k: (
        "Does at least one of {k} trials of a scenario pass?",
        ">>> pass_at_k(trials=4, passed=1, k=3)  # 1 - 1 of 4 ways to draw three that all fail\n    0.75",
        "one of {k} trials passes, or more",
    ),
    pass_hat_k: (
        "Do all of {k} trials of a scenario pass?",
        ">>> pass_hat_k(trials=4, passed=3, k=3)  # 1 of 4 ways to draw three\n    0.25",
        "all of {k} trials pass",
    ),
    pass_hat_k_theoretical: (
        "Would all of {k} further trials of a scenario pass, at the rate that was observed?",
        ">>> pass_hat_k_theoretical(trials=4, passed=2, k=3)  # half to the power of 3\n    0.125",
        "all of {k} more trials would pass",
    ),
}
"""What each figure asks, an example of it, and what it is called."""


def _over_trials(
    metric_key: str,
    passes_at: float,
    k: int,
    suffix: str,
    figure: Callable[[int, int, int], float | None],
) -> Derived:
    question, example, label = _QUESTIONS[figure]

    def per_scenario(samples: list[GroupSample]) -> Mapping[str, float | None]:
        return {name: figure(*tally, k) for name, tally in by_scenario(samples, passes_at).items()}

    per_scenario.__doc__ = f"""{question.format(k=k)}

    A trial passes where {metric_key} is at least {passes_at:g}. {figure.__doc__} The mean over scenarios.

    {example}
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
        label=f"{name.rpartition('.')[2].replace('_', ' ')}: {label.format(k=k)}",
        unscored=FEWER_TRIALS,
    )(per_scenario)


K = 3

success_pass_at, success_pass_hat, success_pass_hat_theoretical = repeats("outcome.success", passes_at=1.0, k=K)
task_pass_at, task_pass_hat, task_pass_hat_theoretical = repeats("outcome.task_completion", passes_at=1.0, k=K)
turns_pass_at, turns_pass_hat, turns_pass_hat_theoretical = repeats("voice.turn_taking", passes_at=0.8, k=K)
a_pass_at, a_pass_hat, a_pass_hat_theoretical = repeats("eva.a_pass", passes_at=1.0, k=K)
x_pass_at, x_pass_hat, x_pass_hat_theoretical = repeats("eva.x_pass", passes_at=1.0, k=K)
overall_pass_at, overall_pass_hat, overall_pass_hat_theoretical = repeats("eva.overall_pass", passes_at=1.0, k=K)

_PASSES_AT = {
    "outcome.success": 1.0,
    "outcome.task_completion": 1.0,
    "voice.turn_taking": 0.8,
    "eva.a_pass": 1.0,
    "eva.x_pass": 1.0,
    "eva.overall_pass": 1.0,
}


def with_trials(chosen: Iterable[Declared], k: int) -> list[Declared]:
    """The same metrics, with pass@k and pass^k for another k."""
    metrics: list[Declared] = []
    for declared in chosen:
        trial, _, _ = declared.name.rpartition(".pass_")
        if trial in _PASSES_AT and declared.variant == f"k{K}":
            others = repeats(trial, passes_at=_PASSES_AT[trial], k=k)
            metrics += [other for other in others if other.name == declared.name]
        else:
            metrics.append(declared)
    return metrics


class CompositePart(NamedTuple):
    """One metric of a composite, and the value from which on it passes (voice logs, 1.6)."""

    metric: str
    passes_at: float


ACCURACY = (
    CompositePart("outcome.task_completion", 1.0),
    CompositePart("judged.faithfulness", 0.5),
    CompositePart("judged.agent_speech_fidelity", 0.95),
)
_INSTEAD = {
    "outcome.task_completion": "outcome.task_completion@external",
    "voice.turn_taking@eva": "voice.turn_taking@external",
    "outcome.conversation_valid_end": "outcome.conversation_valid_end@external",
}
"""Where the log has no data for what we compute: the verdict of another program on it."""
EXPERIENCE = (
    CompositePart("judged.conversation_progression", 0.5),
    CompositePart("voice.turn_taking@eva", 0.8),
    CompositePart("judged.conciseness", 0.5),
)
BOTH = (CompositePart("eva.a_pass", 1.0), CompositePart("eva.x_pass", 1.0))


class _Audit(NamedTuple):
    """Which nonsense a composite notices through its parts, and which leaves one of these without a value."""

    sensitive_to: tuple[Perturbation, ...]
    undefined_under: tuple[Perturbation, ...] = ()


_OF_ACCURACY = _Audit((EMPTY_AGENT,))
_OF_EXPERIENCE = _Audit((SKEWED_CLOCKS,), (EMPTY_AGENT,))


def _passes(name: str, question: str, parts: tuple[CompositePart, ...], audit: _Audit) -> Derived:
    """1 where every part reaches its threshold, else 0."""
    thresholds = tuple(part.passes_at for part in parts)

    def passes(*values: float) -> float:
        return float(all(value >= at for value, at in zip(values, thresholds, strict=True)))

    conditions = ", ".join(f"{part.metric} is at least {part.passes_at:g}" for part in parts)
    passes.__doc__ = f"""{question}

    1 where {conditions}; else 0. No value while one of them has none.

    >>> {name.removeprefix("eva.")}.function({", ".join(f"{at:g}" for at in thresholds)})
    1.0
    """
    return derived(
        name,
        version=3,
        over="conversation",
        unit=SHARE,
        better=HIGHER,
        inputs=_names(parts),
        instead=_instead(_names(parts)),
        **audit._asdict(),
    )(passes)


def _mean(name: str, question: str, parts: tuple[CompositePart, ...], audit: _Audit) -> Derived:
    """The mean of all parts; never of those that happen to be there (voice logs, 1.7, defect 9)."""

    def mean(*values: float) -> float:
        return fsum(values) / len(values)

    mean.__doc__ = f"""{question}

    The mean of {", ".join(_names(parts))}. No value while one of them has none.

    >>> {name.removeprefix("eva.")}.function({", ".join(["0.0, 0.5, 1.0"] * (len(parts) // 3))})
    0.5
    """
    return derived(
        name,
        version=3,
        over="conversation",
        unit=RATIO,
        better=HIGHER,
        inputs=_names(parts),
        instead=_instead(_names(parts)),
        **audit._asdict(),
    )(mean)


def _names(parts: tuple[CompositePart, ...]) -> tuple[str, ...]:
    return tuple(part.metric for part in parts)


def _instead(names: tuple[str, ...]) -> dict[str, str]:
    return {name: _INSTEAD[name] for name in names if name in _INSTEAD}


a_pass = _passes("eva.a_pass", "Was the call accurate?", ACCURACY, _OF_ACCURACY)
x_pass = _passes("eva.x_pass", "Was the call a good experience?", EXPERIENCE, _OF_EXPERIENCE)
overall_pass = _passes("eva.overall_pass", "Was the call both accurate and a good experience?", BOTH, _OF_EXPERIENCE)
a_mean = _mean("eva.a_mean", "How accurate was the call?", ACCURACY, _OF_ACCURACY)
x_mean = _mean("eva.x_mean", "How good an experience was the call?", EXPERIENCE, _OF_EXPERIENCE)
overall_mean = _mean("eva.overall_mean", "How good was the call, all in all?", ACCURACY + EXPERIENCE, _OF_EXPERIENCE)


@derived(
    "eva.validation_gate",
    version=1,
    over="conversation",
    unit=SHARE,
    better=HIGHER,
    inputs=(
        "outcome.conversation_valid_end",
        "judged.user_behavioral_fidelity",
        "judged.user_speech_fidelity.clear",
    ),
    instead=_instead(("outcome.conversation_valid_end",)),
    fails_at=0.0,
    importance=1,
    sensitive_to=(),
)
def validation_gate(*values: float) -> float:
    """Did the simulated caller behave so that the call says something about the agent?

    1 where the call ended validly, the caller kept to its task, and no turn of the caller's voice got a name, a code or
    a number wrong; 0 where one of these is known to be false. Unmeasured while one is unknown: the voice, until
    something hears it. Not applicable to a call without a simulator. No call is left out of other figures for it.

    >>> validation_gate.function(1.0, 1.0, 1.0), validation_gate.function(1.0, 0.0, 1.0)
    (1.0, 0.0)
    """
    return float(all(value >= 1 for value in values))
