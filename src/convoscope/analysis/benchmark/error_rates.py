"""Rates of errors that are pooled over files: Σ errors ÷ Σ of what there was."""

from __future__ import annotations

from typing import NamedTuple

from convoscope.analysis.benchmark.result import MetricResult
from convoscope.metrics.declaration import LOWER
from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import ratio_interval


class ErrorRate(NamedTuple):
    """Errors and what they are of, for each file; and how much the files without a prediction would add to both."""

    pairs: list[tuple[float, float]]
    lost: float


def error_rate(rate: ErrorRate, failed: int, empty: str) -> MetricResult:
    """The pooled rate. Without anything in the references there is none."""
    import numpy as np

    above, below = sum(one for one, _ in rate.pairs), sum(one for _, one in rate.pairs)
    kept = [one for one in rate.pairs if one[1]]
    interval = None
    if len(kept) > 1:
        columns = np.array(kept, float).T
        interval = ratio_interval(Sums("", columns[0], columns[1]), np.arange(len(kept)), bounded=False, least=0.0)
    reason = None if below else empty if rate.pairs else "no_prediction" if failed else "no_samples"
    return MetricResult(
        value=above / below if below else None,
        better=LOWER,
        average="pooled",
        reason=reason,
        coverage=len(rate.pairs) / (len(rate.pairs) + failed) if rate.pairs or failed else None,
        samples_measured=len(rate.pairs),
        samples_skipped=failed,
        skipped_reasons={"no_prediction": failed} if failed else {},
        interval=interval,
        worst_case=(above + rate.lost) / (below + rate.lost) if rate.lost and below else None,
    )
