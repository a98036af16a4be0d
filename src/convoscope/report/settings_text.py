"""The `convoscope.toml` that `convoscope init` writes: what was found in the logs, with comments to decide by."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

from convoscope.analysis.answer import make_answer
from convoscope.analysis.words import interval_text, value_text
from convoscope.harmless import one_line, toml_text
from convoscope.metrics.declaration import HIGHER, NEITHER, SHARE
from convoscope.runs.run import Run
from convoscope.statistics.summary import Figure
from convoscope.views.fields import Proposal

MAX_TARGETS = 5
_MAX_VALUES = 20
_POWER = 1 + NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf(0.975)
"""How far a limit is from no change, in half widths of the interval, so that four of five comparisons show it."""
_CLEAR = 2
"""The rank of a proposal that is a verdict by its name or values; one of a higher rank is a guess."""


class LogSettings(NamedTuple):
    """What is known of logs before anything of them is decided."""

    logs: Sequence[str]
    """As the file names them: from its folder on."""
    reading: Mapping[str, Any]
    """How they are read, by the keys of `[score]`."""
    labels: Sequence[Proposal]
    dimensions: Mapping[str, Counter[str]]

    @property
    def label(self) -> str | None:
        """The field that clearly says how conversations ended; None where that is a guess."""
        best = next(iter(self.labels), None)
        return best.labels[0] if best is not None and best.rank <= _CLEAR and len(best.labels) == 1 else None


def settings_text(known: LogSettings, run: Run) -> str:
    """The whole file. `run` is of the logs, with the label if there is one."""
    lines = [
        "# What this team says about every run: `convoscope score` alone does all of it.",
        "# docs/guides/settings.md has all keys. Paths are meant from the folder of this file on.",
        "",
        '# baseline = "convoscope-baseline.json"  # `convoscope baseline set RUN` writes it',
        "",
        *_score(known),
        "",
        *_policy(_targets(run)),
        "",
        "# A judge is asked only by `--judge settings`: nothing is sent before you say so.",
        "# [judge]",
        '# model = "openai:MODEL"',
        "# max_questions = 500",
    ]
    return "\n".join(lines) + "\n"


def _score(known: LogSettings) -> Iterator[str]:
    yield "[score]"
    yield f"logs = {_value(list(known.logs))}"
    if known.labels:
        best = known.labels[0]
        yield f"# {one_line(best.words)}: check that this is how a conversation ended well."
        active = known.label
        for label in best.labels:
            yield f"{'' if label == active else '# '}label = {toml_text(label)}"
        for other in known.labels[1:3]:
            yield f"# also: {one_line(other.words)}"
    else:
        yield '# label = "resolved"  # a field that says how a conversation ended'
    for name, values in known.dimensions.items():
        if 1 < len(values) <= _MAX_VALUES:
            most = ", ".join(f"{value} ({count:,})" for value, count in values.most_common(3))
            yield f"# by = [{toml_text(name)}]  # {one_line(most)}"
    for name, value in known.reading.items():
        yield f"{name} = {_value(value)}"


def _policy(figures: Sequence[Figure]) -> Iterator[str]:
    if not figures:
        yield "# No figure of these logs has an interval to suggest a target from."
        yield "# [[policy.target]]"
        yield '# figure = "outcome.success"'
        yield '# at_least = "80%"'
        return
    least = min(figure.samples_measured for figure in figures)
    covered = min(min(figure.coverage or 0.0, figure.subject_coverage) for figure in figures)
    yield "# Suggested from today's values: each limit is the worse end of today's 95 % interval."
    yield "# Change them to what you need; `convoscope gate RUN` holds a run against them."
    yield "[policy]"
    yield f"min_n = {max(1, least // 2)}  # fewer conversations decide nothing"
    yield f"min_coverage = {math.floor(9 * covered) / 10}  # nor does less of what should have been measured"
    for figure in figures:
        yield ""
        yield "[[policy.target]]"
        yield f"figure = {toml_text(_name(figure))}"
        key = "at_least" if figure.better == HIGHER else "at_most"
        today = f"today {value_text(figure.value, figure.unit)}, {interval_text(figure)}"
        yield f"{key} = {_limit(figure)}  # {today}, of {figure.samples_measured:,} conversations"
    yield ""
    yield from _changes(figures[0])


def _changes(figure: Figure) -> Iterator[str]:
    """What a comparison with so many conversations can decide."""
    interval = figure.interval
    assert interval is not None
    # Two sides of today's size: their difference varies by the square root of two more.
    width = math.sqrt(2) * (interval.highest - interval.lowest) / 2 * _POWER
    is_share = figure.unit == SHARE
    size = f"{math.ceil(100 * width)}pp" if is_share else _outward(width, upwards=True)
    sign = "-" if figure.better == HIGHER else "+"
    key = "change_at_least" if figure.better == HIGHER else "change_at_most"
    yield "# What may change against the baseline, once there is one. With as many conversations as today"
    yield f"# on both sides, a limit of {size} is shown to hold four times in five, if nothing changes."
    yield "# [[policy.target]]"
    yield f"# figure = {toml_text(_name(figure))}"
    yield f'# {key} = "{sign}{size}"'


def _targets(run: Run) -> list[Figure]:
    """The key figures that a target can be suggested for: computed, with a direction and both ends of an interval."""
    figures = {_name(figure): figure for figure in run.summary.figures if figure.judge.startswith("(")}
    key = [figures[one.name] for one in make_answer(run).figures if one.name in figures and not one.judge]
    return [figure for figure in key if _is_usable(figure)][:MAX_TARGETS]


def _is_usable(figure: Figure) -> bool:
    interval = figure.interval
    has_ends = interval is not None and interval.low is not None and interval.high is not None
    return has_ends and figure.better != NEITHER


def _name(figure: Figure) -> str:
    return f"{figure.key} {figure.reduction}".strip()


def _limit(figure: Figure) -> str:
    """The worse end of the interval, rounded outwards: today's value meets it."""
    interval = figure.interval
    assert interval is not None
    if figure.better == HIGHER:
        end, upwards = interval.lowest, False
    else:
        end, upwards = interval.highest, True
    if figure.unit == SHARE:
        return f'"{_outward(100 * end, upwards=upwards)}%"'
    return _outward(end, upwards=upwards)


def _outward(value: float, *, upwards: bool) -> str:
    """With two digits, rounded upwards or downwards."""
    if not value:
        return "0"
    decimals = max(0, 1 - math.floor(math.log10(abs(value))))
    step = 10**-decimals
    rounded = (math.ceil if upwards else math.floor)(round(value / step, 6)) * step
    return f"{rounded:.{decimals}f}"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return str(value) if isinstance(value, int | float) else toml_text(str(value))
