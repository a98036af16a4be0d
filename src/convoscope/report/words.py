"""Figures in words: values with their units, intervals, reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convoscope.runs.run import Run
from convoscope.runs.worst import Behind


def value_text(value: float | None, unit: str) -> str:
    """A value as people write it; a dot where there is none."""
    if value is None:
        return "·"
    if unit == "share":
        return f"{100 * value:.1f} %"
    if unit == "count":
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    if unit == "ratio":
        return f"{value:.3f}"
    return f"{value:,.2f} {unit}"


def interval_text(figure: Mapping[str, Any]) -> str:
    """The 95 % interval; a dot where there is none."""
    interval = figure["interval"]
    if interval is None:
        return "·"
    low, high, unit = interval["low"], interval["high"], figure["unit"]
    if unit == "share":
        return f"{100 * low:.1f} to {100 * high:.1f}"
    digits = 3 if unit == "ratio" else 2
    return f"{low:,.{digits}f} to {high:,.{digits}f}"


def coverage_text(figure: Mapping[str, Any]) -> str:
    """The share of conversations that could be measured and were."""
    coverage = figure["coverage"]
    return "·" if coverage is None else f"{100 * coverage:.0f} %"


def reasons_text(figure: Mapping[str, Any], observes: str = "subject") -> str:
    """What was not measured, and why. `observes` is what the metric looks at: turn, event, item."""
    reasons = figure["skipped_reasons"]
    parts = [f"{count:,} {reason_text(code)}" for code, count in reasons.items()]
    if figure["subjects_skipped"]:
        parts.append(f"{counted(figure['subjects_skipped'], observes)} without a value")
    return ", ".join(parts)


def reason_text(code: str) -> str:
    """A reason code as words."""
    return code.replace("_", " ")


def name_text(figure: Mapping[str, Any]) -> str:
    """The metric as it prints: variant, reduction and judge where they are not the usual."""
    name = key_text(figure["metric"], figure["variant"])
    if figure["reduction"]:
        name += f" {figure['reduction']}"
    if not figure["judge"].startswith("("):
        name += f" [{figure['judge']}]"
    return name


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def key_text(metric: str, variant: str) -> str:
    """`jga@tomiinek`; the default variant has no suffix."""
    return f"{metric}@{variant}" if variant else metric


def place_text(run: Run) -> str:
    """Where the run is, as a command would name it; whoever gets a page need not learn the folders of its maker."""
    return run.name if run.folder.is_absolute() else str(run.folder)


def behind_text(one: Behind) -> str:
    """In what a conversation is behind the others, and how far."""
    value = value_text(one.value, one.headline.unit)
    return f"{one.headline.key} {value}: {100 * one.share:.0f} % of the others did better"
