"""How many conversations would show an effect: from the spread of a run, with its clusters and pairs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from convoscope.analysis.answer.comparison import Rows, pair_rows, pair_sums
from convoscope.analysis.answer.differences import version_pair
from convoscope.analysis.answer.make import noun_of
from convoscope.analysis.answer.model import Noun, metric_label
from convoscope.analysis.answer.samples import Samples, samples_of
from convoscope.analysis.compare.figures import headlines
from convoscope.analysis.words import name_text
from convoscope.errors import UsageError
from convoscope.metrics.declaration import SHARE
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.run import Run
from convoscope.runs.targets import find_figure
from convoscope.statistics.differences import LEVEL, Codes, FigureSample, Floats, normal_quantile

POWER = 0.8
TRIALS = (1, 3, 5)
"""Trials of a scenario that a plan shows."""
LEAST_CLUSTERS = 5
_EFFECT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(pp|points?|%|[a-z]*)\s*")


class ValueSpread(NamedTuple):
    """How values differ: between scenarios, and between trials of one."""

    between: float
    within: float
    """Both as variances of one conversation."""
    trials: float
    """Conversations of a scenario, on average."""
    clusters: int
    reacts: float | None = None
    """How differently scenarios react to another version, as a variance; None where no two versions were tried."""


class PlannedSize(msgspec.Struct, frozen=True, kw_only=True):
    """What one design needs."""

    design: str
    """`unpaired` or `pairs`."""
    scenarios: int | None
    """None where the run has no scenarios."""
    trials: int
    conversations: int
    """Of each side."""


class SamplePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How many conversations would show an effect, and what the run as it is would show."""

    figure: str
    label: str
    noun: Noun
    unit: str
    value: float
    effect: float
    power: float
    level: float
    """Of the claim: 5 %, divided over all figures that a comparison of such runs has."""
    figures: int
    sizes: tuple[PlannedSize, ...]
    detectable: float
    """The effect that two runs of this size would show, without pairs."""
    detectable_pairs: float | None
    """The same for pairs of its scenarios; None where it has none."""
    assumes_alike: bool
    """Pairs are planned as if a change acted alike in all scenarios: no two versions say otherwise."""
    conversations: int
    scenarios: int


def plan(run: Run | str | os.PathLike[str], effect: str, figure: str = "", *, power: float = POWER) -> SamplePlan:
    """How many conversations would show an effect in a figure; without a name, in the outcome."""
    run = run if isinstance(run, Run) else Run.open(run)
    if not 0.5 <= power < 1:
        raise UsageError(f"--power must be at least 50% and below 100%, not {power:.0%}")
    known = {name_text(one): (one, declared) for one, declared in headlines(run.summary) if not one.reduction}
    if not known:
        raise UsageError(f"{run.folder} has no figure with a direction", hint="score logs that have more")
    units = {name: one.unit for name, (one, _) in known.items()}
    name = find_figure(figure, units) if figure else OUTCOME_METRIC
    if name not in known:
        hint = f"name one with --figure: {', '.join(list(known)[:5])}"
        raise UsageError(f"{run.folder} does not say whether conversations reach their goal", hint=hint)
    chosen, declared = known[name]
    samples = samples_of(run)
    sample = samples.of(chosen)
    if sample is None or chosen.value is None:
        raise UsageError(f"{name} is computed over a whole group: its spread is not known")
    size = effect_size(effect, chosen.unit, chosen.value)
    weights = [max(1.0, float(one.importance)) for _, one in known.values()]
    level = LEVEL * max(1.0, float(declared.importance)) / sum(weights)
    spread = _spread(run, samples, sample)
    reach = (normal_quantile(1 - level / 2) + normal_quantile(power)) ** 2
    has_scenarios = bool((samples.scenarios >= 0).any())
    alone = _variance(spread, spread.trials)
    pairs = _pair_variance(spread, spread.trials)
    return SamplePlan(
        figure=name,
        label=metric_label(declared, noun_of(run)),
        noun=noun_of(run),
        unit=chosen.unit,
        value=chosen.value,
        effect=size,
        power=power,
        level=level,
        figures=len(known),
        sizes=tuple(_sizes(spread, reach, size, has_scenarios=has_scenarios)),
        detectable=math.sqrt(reach * 2 * alone / spread.clusters),
        detectable_pairs=math.sqrt(reach * pairs / spread.clusters) if has_scenarios else None,
        assumes_alike=spread.reacts is None,
        conversations=run.summary.conversations,
        scenarios=len(np.unique(samples.scenarios[samples.scenarios >= 0])),
    )


def effect_size(text: str, unit: str, value: float) -> float:
    """`3pp` of a share, `10%` of the value, or a number in the figure's own unit."""
    match = _EFFECT.fullmatch(text)
    hint = "write 3pp for a share, 10% of the value, or a number in its unit"
    if match is None:
        raise UsageError(f"--effect {text!r} is no size", hint=hint)
    number, kind = float(match[1]), match[2]
    if kind in ("pp", "point", "points"):
        if unit != SHARE:
            raise UsageError(f"--effect {text!r}: the figure is no share", hint=hint)
        size = number / 100
    elif kind == "%":
        size = number / 100 * abs(value)
    elif kind in ("", unit):
        size = number
    else:
        raise UsageError(f"--effect {text!r}: the unit of the figure is {unit}", hint=hint)
    if size <= 0:
        raise UsageError(f"--effect {text!r}: nothing shows an effect of zero", hint=hint)
    return size


def _sizes(spread: ValueSpread, reach: float, effect: float, *, has_scenarios: bool) -> Sequence[PlannedSize]:
    wanted = reach / effect**2
    alone = _size("unpaired", wanted * 2 * _variance(spread, spread.trials), spread.trials, has_scenarios)
    pairs = [_size("pairs", wanted * _pair_variance(spread, trials), trials, True) for trials in TRIALS]
    return [*pairs, alone] if has_scenarios else [alone]


def _size(design: str, clusters: float, trials: float, has_scenarios: bool) -> PlannedSize:
    count = max(LEAST_CLUSTERS, math.ceil(clusters))
    return PlannedSize(
        design=design,
        scenarios=count if has_scenarios else None,
        trials=max(1, round(trials)),
        conversations=math.ceil(count * trials),
    )


def _variance(spread: ValueSpread, trials: float) -> float:
    """Of the mean of a scenario with so many trials."""
    return spread.between + spread.within / trials


def _pair_variance(spread: ValueSpread, trials: float) -> float:
    """Of the difference of two such means of the same scenario: what scenarios have in common falls out."""
    return 2 * spread.within / trials + (spread.reacts or 0.0)


def _spread(run: Run, samples: Samples, sample: FigureSample) -> ValueSpread:
    """The parts of the variance, by the clusters of the run (analysis of variance)."""
    rows = np.flatnonzero(sample.below > 0)
    above, below, clusters = sample.above[rows], sample.below[rows], samples.clusters[rows]
    residuals = (above - below * (above.sum() / below.sum())) / float(below.mean())
    for side in _versions(run, samples):  # what two versions differ by is no spread of conversations
        residuals[side[rows]] -= residuals[side[rows]].mean()
    _, codes = np.unique(clusters, return_inverse=True)
    counts = np.bincount(codes).astype(np.float64)
    if len(counts) < LEAST_CLUSTERS:
        raise UsageError(f"{run.folder} has {len(counts)} independent values: too few to plan by")
    between, within = _parts(residuals, codes, counts)
    trials = float(len(rows) / len(counts))
    return ValueSpread(between, within, trials, len(counts), _reacts(run, samples, sample, within))


def _parts(residuals: Floats, codes: Codes, counts: Floats) -> tuple[float, float]:
    size, groups = len(residuals), len(counts)
    means = np.bincount(codes, weights=residuals) / counts
    if groups == size:  # each cluster has one conversation: all of the spread is between them
        return 0.0, float(np.var(residuals, ddof=1))
    inside = float(np.sum((residuals - means[codes]) ** 2)) / (size - groups)
    across = float(np.sum(counts * (means - residuals.mean()) ** 2)) / (groups - 1)
    usual = (size - float(np.sum(counts**2)) / size) / (groups - 1)
    return max(0.0, (across - inside) / usual), inside


def _reacts(run: Run, samples: Samples, sample: FigureSample, within: float) -> float | None:
    """How differently scenarios react to another version, by two versions of the run that share scenarios."""
    sides = _versions(run, samples)
    rows = pair_rows(samples, *sides) if sides else None
    sums = None if rows is None else pair_sums(sample, rows.first, rows.second, samples.scenarios)
    if rows is None or sums is None:
        return None
    counts = [np.bincount(samples.scenarios[np.flatnonzero(side & (sample.below > 0))]) for side in rows[:2]]
    noise = [within * float(np.mean(1 / count[count > 0])) for count in counts]
    return max(0.0, float(np.var(sums[1].above - sums[0].above, ddof=1)) - sum(noise))


def _versions(run: Run, samples: Samples) -> list[Rows]:
    """The conversations of the two versions that a run has; nothing where it has no two."""
    pair = version_pair(run.summary)
    if pair is None:
        return []
    name, *groups = pair
    dimension = samples.dimension(name)
    sides = [dimension.codes == dimension.values.index(group.by[name]) for group in groups]
    return sides if all(side.any() for side in sides) else []
