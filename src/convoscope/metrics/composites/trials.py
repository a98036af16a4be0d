"""pass@3 and pass^3 of the metrics that say whether a trial succeeded (voice logs, 1.6)."""

from __future__ import annotations

from collections.abc import Iterable

from convoscope.metrics.composites.pass_k import repeats
from convoscope.metrics.registry import Declared

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
