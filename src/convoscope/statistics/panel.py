"""Several judges of one subject: the median of what they say is a score of the panel."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import fsum
from statistics import median

from convoscope.scores.observation import (
    COMPUTED,
    MEASURED,
    NOT_APPLICABLE,
    Observation,
    measured,
    not_applicable,
    unmeasured,
)
from convoscope.views.items import Subject


def panel_name(judges: Sequence[str]) -> str:
    """`panel:` and a hash of who sits on it."""
    return "panel:" + hashlib.sha256("\n".join(sorted(judges)).encode()).hexdigest()[:12]


def panel(observations: Sequence[Observation]) -> list[Observation]:
    """The panel's score of each subject; empty where fewer than two judges spoke.

    A judge that was asked several times speaks with the mean of its answers. Where a judge has no
    value for a subject, the panel has none either. What nobody judged (a turn without an
    opportunity) makes no judge.
    """
    judges = sorted({one.judge for one in observations if one.judge != COMPUTED})
    if len(judges) < 2:
        return []
    name = panel_name(judges)
    values_of: dict[Subject, dict[str, list[float]]] = {}
    passed: dict[Subject, str] = {}
    refused: set[Subject] = set()
    for observation in observations:
        voices = values_of.setdefault(observation.subject, {})
        if observation.status == MEASURED and observation.value is not None and observation.judge != COMPUTED:
            voices.setdefault(observation.judge, []).append(observation.value)
        elif observation.status == NOT_APPLICABLE:
            passed.setdefault(observation.subject, observation.reason)
        else:
            refused.add(observation.subject)
    scores: list[Observation] = []
    for subject, voices in values_of.items():
        silent = [judge for judge in judges if judge not in voices]
        if not voices and subject in passed and subject not in refused:
            scores.append(not_applicable(subject, passed[subject], judge=name))
        elif silent:
            scores.append(unmeasured(subject, "judge_missing", ", ".join(silent), judge=name))
        else:
            verdicts = [fsum(values) / len(values) for values in voices.values()]
            details = {"judges": len(verdicts), "spread": max(verdicts) - min(verdicts)}
            scores.append(measured(subject, median(verdicts), judge=name, details=details))
    return scores
