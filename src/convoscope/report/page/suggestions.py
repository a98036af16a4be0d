"""A target for a figure that has none: what the best version or group of the run already reaches."""

from __future__ import annotations

import math

import msgspec

from convoscope.analysis.answer.differences import version_names
from convoscope.analysis.targets import check, target_text, verdict_text
from convoscope.analysis.words import name_text, value_text
from convoscope.metrics.declaration import HIGHER, LOWER, SHARE, Target
from convoscope.report.page.figures import FigureData, ScaledInterval, Spread, scale_of, scaled, spread
from convoscope.statistics.summary import Figure

MIN_N = 20
"""A group of fewer is no source."""
MAX_GROUPS = 12
"""A dimension of more values is no kind of conversations."""
_LEFT_OUT = frozenset(("scenario_id", "trial", "state", "flow"))
_STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


class TriedTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A target that a card suggests, and what the card is with it."""

    source: str
    """Where it comes from: `v2 has 2.41 s`."""
    target: str
    verdict: str
    bar: ScaledInterval | None = None
    spread: Spread | None = None
    option: str
    """What keeps it: `--target 'agent.talks_over_user <= 1%'`."""


def suggested_target(figure: Figure, data: FigureData) -> TriedTarget | None:
    """None where no version or group does better: without a source there is no suggestion."""
    if figure.value is None or figure.better not in (HIGHER, LOWER) or not figure.judge.startswith("("):
        return None
    source = _source(figure, data)
    if source is None:
        return None
    name, value = source
    target = Target(">=" if figure.better == HIGHER else "<=", _rounded(value, figure))
    verdict = check(figure, target)
    histogram = data.histograms.get(figure.key)
    return TriedTarget(
        source=f"{name} has {value_text(value, figure.unit)}",
        target=target_text(target, figure.unit),
        verdict=verdict_text(verdict, figure),
        bar=scaled(figure, scale_of([figure], histogram, [target]), [target]),
        spread=None if histogram is None else spread(histogram, figure, [target]),
        option=f"--target '{name_text(figure)} {target.comparison} {_option_value(target.value, figure.unit)}'",
    )


def _source(figure: Figure, data: FigureData) -> tuple[str, float] | None:
    """The version with the best value, else the group with the best value, if that is better than all together."""
    name = name_text(figure)
    single = {by[0]: groups for by, groups in data.groups.items() if len(by) == 1 and by[0] not in _LEFT_OUT}
    versions = [one for one in version_names(single) if one in single]
    for dimension in (*versions, *(one for one in single if one not in versions)):
        groups = single[dimension]
        if not 2 <= len(groups) <= MAX_GROUPS:
            continue
        values = [
            (group.value, by[dimension])
            for by, figures in groups
            if (group := figures.get(name)) is not None and group.value is not None and group.n >= MIN_N
        ]
        if not values or figure.value is None:
            continue
        value, best = max(values) if figure.better == HIGHER else min(values)
        if value > figure.value if figure.better == HIGHER else value < figure.value:
            return (best if dimension in versions else f"{dimension.replace('_', ' ')} {best}"), value
    return None


def _rounded(value: float, figure: Figure) -> float:
    """The next round number that the source still reaches."""
    if figure.better == HIGHER and (figure.unit == SHARE or 0 < value <= 1):
        return math.floor(100 * value) / 100
    if not value:
        return 0.0
    scale = 10.0 ** math.floor(math.log10(abs(value)))
    parts = abs(value) / scale
    wanted = [step for step in _STEPS if (step <= parts if figure.better == HIGHER else step >= parts - 1e-9)]
    step = (max(wanted) if figure.better == HIGHER else min(wanted)) if wanted else parts
    return float(f"{math.copysign(step * scale, value):.6g}")


def _option_value(value: float, unit: str) -> str:
    if unit == SHARE:
        return f"{100 * value:g}%"
    return f"{value:g}"
