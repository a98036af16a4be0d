"""Rates of errors that are pooled over files: Σ errors ÷ Σ of what there was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from convoscope.analysis.benchmark.result import MetricResult
from convoscope.metrics.declaration import LOWER
from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import ratio_interval

_Sample = TypeVar("_Sample")


class ErrorRate(NamedTuple):
    """Errors and what they are of, for each file; and what the files without a prediction would add to both."""

    pairs: Sequence[tuple[float, float]]
    lost_errors: float
    lost: float
    bounded: bool = False
    """Whether there cannot be more errors than what they are of."""


class FailedFile(str):
    """The reason why a file has no usable prediction, in place of what it was compared to."""


def divided(samples: Sequence[_Sample | FailedFile]) -> tuple[list[_Sample], Counter[str]]:
    """What was measured, and why the rest was not."""
    measured = [one for one in samples if not isinstance(one, FailedFile)]
    return measured, Counter(str(one) for one in samples if isinstance(one, FailedFile))


def error_rate(rate: ErrorRate, reasons: Counter[str], empty: str) -> MetricResult:
    """The pooled rate. Without anything in the references there is none."""
    import numpy as np

    failed = reasons.total()
    above, below = sum(one for one, _ in rate.pairs), sum(one for _, one in rate.pairs)
    kept = [one for one in rate.pairs if one[1]]
    interval = None
    if len(kept) > 1:
        columns = np.array(kept, float).T
        sums = Sums("", columns[0], columns[1])
        interval = ratio_interval(sums, np.arange(len(kept)), bounded=rate.bounded, least=0.0)
    common = reasons.most_common(1)
    reason = None if below else empty if rate.pairs else common[0][0] if common else "no_samples"
    return MetricResult(
        value=above / below if below else None,
        better=LOWER,
        average="pooled",
        reason=reason,
        coverage=len(rate.pairs) / (len(rate.pairs) + failed) if rate.pairs or failed else None,
        samples_measured=len(rate.pairs),
        samples_skipped=failed,
        skipped_reasons=dict(sorted(reasons.items())),
        interval=interval,
        worst_case=(above + rate.lost_errors) / (below + rate.lost) if failed and below else None,
    )
