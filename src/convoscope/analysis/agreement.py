"""What pairs of ratings come to, of people and of a judge: accuracy, macro F1, kappa, with intervals over clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.judging.calibrations import Agreement, FlagCounts
from convoscope.judging.rubrics import Rubric

LEAST_CLUSTERS = 10
"""Of fewer calls there is no interval: drawing them again and again gives nothing but the same few."""
_DRAWS = 2000
_SEED = 20260101

Counts = NDArray[np.int64]


class RatedLabel(NamedTuple):
    """One label of people, and what the judge says of the same."""

    people: float
    """On the scale of the rubric."""
    judged: float | None
    """None where the judge gave no rating."""
    cluster: str
    reason: str = ""
    """Why the judge gave none."""
    part: str = ""
    """What this label needs that the judge does not see; such labels are also left out in a second count."""


def agreement_of(
    rubric: Rubric,
    judge: str,
    labels: Iterable[RatedLabel],
    *,
    flags: Mapping[str, FlagCounts] | None = None,
    part: str = "",
) -> Agreement:
    """How the labels and the ratings of a judge fit. Intervals are drawn over clusters: one may hold several labels."""
    every = list(labels)
    rated = [one for one in every if one.judged is not None]
    ratings = [float(rating) for rating in rubric.ratings]
    gold = np.array([ratings.index(whole_rating(rubric, one.people)) for one in rated], dtype=np.int64)
    predicted = np.array([ratings.index(whole_rating(rubric, one.judged or 0.0)) for one in rated], dtype=np.int64)
    confusion = np.zeros((len(ratings), len(ratings)), dtype=np.int64)
    np.add.at(confusion, (gold, predicted), 1)
    clusters = [one.cluster for one in rated]
    draws = _draws(gold, predicted, clusters, len(ratings))
    unanswered: dict[str, int] = {}
    for label in every:
        if label.judged is None:
            unanswered[label.reason] = unanswered.get(label.reason, 0) + 1
    return Agreement(
        metric=rubric.measures,
        rubric=rubric.name,
        version=rubric.version,
        judge=judge,
        labels=len(rated),
        unanswered=dict(sorted(unanswered.items())),
        accuracy=_accuracy(confusion),
        accuracy_interval=_interval([_accuracy(draw) for draw in draws]),
        macro_f1=_macro_f1(confusion),
        kappa=kappa(confusion),
        kappa_interval=_interval([kappa(draw) for draw in draws]),
        majority=float(confusion.sum(axis=1).max() / confusion.sum()) if rated else None,
        ratings=ratings,
        confusion=confusion.tolist(),
        passes_at=rubric.passes_at,
        is_lower_better=rubric.is_lower_better,
        flags=dict(flags or {}),
        clusters=len(set(clusters)),
        part=part,
        parts=_parts(rubric, judge, every),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def whole_rating(rubric: Rubric, rating: float) -> float:
    """The rating of the scale that a mean of repeats is nearest to; in the middle of two, the worse.

    Where there are only two ratings, the mark is between them: a share of 0.6 does not pass at 0.7.
    """
    if len(rubric.ratings) == 2:
        return float(rubric.ratings[rubric.passes(rating) != rubric.is_lower_better])
    return float(np.ceil(rating - 0.5))


def _parts(rubric: Rubric, judge: str, labels: Sequence[RatedLabel]) -> list[Agreement]:
    """The same without the labels that rest on what the judge was not shown, for each such thing."""
    names = sorted({one.part for one in labels if one.part})
    return [
        agreement_of(
            rubric, judge, [one._replace(part="") for one in labels if one.part != name], part=f"without {name}"
        )
        for name in names
    ]


def _draws(gold: Counts, predicted: Counts, clusters: Sequence[str], size: int) -> list[Counts]:
    """Tables of clusters that were drawn with replacement."""
    names = {name: index for index, name in enumerate(dict.fromkeys(clusters))}
    if len(names) < LEAST_CLUSTERS:
        return []
    tables = np.zeros((len(names), size, size), dtype=np.int64)
    np.add.at(tables, (np.array([names[name] for name in clusters]), gold, predicted), 1)
    chance = np.random.default_rng(_SEED)
    return [tables[chance.integers(0, len(names), len(names))].sum(axis=0) for _ in range(_DRAWS)]


def _accuracy(confusion: Counts) -> float | None:
    total = confusion.sum()
    return float(np.trace(confusion) / total) if total else None


def _macro_f1(confusion: Counts) -> float | None:
    """The mean of F1 over the ratings that people or the judge gave."""
    judged, gold = confusion.sum(axis=0), confusion.sum(axis=1)
    used = (judged + gold) > 0
    return float(np.mean(2 * np.diag(confusion)[used] / (judged + gold)[used])) if used.any() else None


def kappa(confusion: Counts) -> float | None:
    """1 − weighted disagreement ÷ that of chance; None where chance has none, because one rating was always given.

    >>> kappa(np.array([[20, 5], [10, 15]]))  # agree 0.7, by chance 0.5: (0.7 - 0.5) / 0.5
    0.4
    """
    total = confusion.sum()
    if not total:
        return None
    size = len(confusion)
    weights = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    by_chance = np.outer(confusion.sum(axis=1), confusion.sum(axis=0)) / total
    expected = float((weights * by_chance).sum())
    return round(1 - float((weights * confusion).sum()) / expected, 12) if expected else None


def _interval(values: Sequence[float | None]) -> tuple[float, float] | None:
    """The middle 95 % of what was drawn; None where more than a few draws have no value."""
    known_values = [value for value in values if value is not None]
    if len(known_values) < 0.95 * _DRAWS:
        return None
    low, high = np.percentile(known_values, [2.5, 97.5])
    return float(low), float(high)
