"""Composites of EVA: does a call pass on accuracy, on experience, on both? As data: parts and thresholds."""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

from convoscope.metrics.declaration import HIGHER, RATIO, SHARE, Derived, derived
from convoscope.metrics.perturbations import EMPTY_AGENT, SKEWED_CLOCKS, Perturbation


class CompositePart(NamedTuple):
    """One metric of a composite, and the value from which on it passes (voice logs, 1.6)."""

    metric: str
    passes_at: float


ACCURACY = (
    CompositePart("outcome.task_completion", 1.0),
    CompositePart("judged.faithfulness", 0.5),
    CompositePart("judged.agent_speech_fidelity", 0.95),
)
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
    """
    return derived(
        name, version=2, over="conversation", unit=SHARE, better=HIGHER, inputs=_names(parts), **audit._asdict()
    )(passes)


def _mean(name: str, question: str, parts: tuple[CompositePart, ...], audit: _Audit) -> Derived:
    """The mean of all parts; never of those that happen to be there (voice logs, 1.7, defect 9)."""

    def mean(*values: float) -> float:
        return fsum(values) / len(values)

    mean.__doc__ = f"""{question}

    The mean of {", ".join(_names(parts))}. No value while one of them has none.
    """
    return derived(
        name, version=2, over="conversation", unit=RATIO, better=HIGHER, inputs=_names(parts), **audit._asdict()
    )(mean)


def _names(parts: tuple[CompositePart, ...]) -> tuple[str, ...]:
    return tuple(part.metric for part in parts)


a_pass = _passes("eva.a_pass", "Was the call accurate?", ACCURACY, _OF_ACCURACY)
x_pass = _passes("eva.x_pass", "Was the call a good experience?", EXPERIENCE, _OF_EXPERIENCE)
overall_pass = _passes("eva.overall_pass", "Was the call both accurate and a good experience?", BOTH, _OF_EXPERIENCE)
a_mean = _mean("eva.a_mean", "How accurate was the call?", ACCURACY, _OF_ACCURACY)
x_mean = _mean("eva.x_mean", "How good an experience was the call?", EXPERIENCE, _OF_EXPERIENCE)
overall_mean = _mean("eva.overall_mean", "How good was the call, all in all?", ACCURACY + EXPERIENCE, _OF_EXPERIENCE)
