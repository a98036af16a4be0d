"""How far judges agree, in a few lines: the panel, the repeats, the second look."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.analysis.words import counted, percent_text
from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.report.table import print_words
from convoscope.runs.judging import JudgingSummary, SecondLookMetric
from convoscope.runs.summary import Summary

_NAMED = 3
"""Conversations that a line names."""


def print_judging(screen: Screen, summary: Summary, *, full: bool = False) -> None:
    """What judges do not agree about; with `full` also that nothing is known of it."""
    lines = judging_lines(summary, full=full)
    if lines:
        screen.line()
    for line in lines:
        print_words(screen, one_line(line, None), "", "  ")


def judging_lines(summary: Summary, *, full: bool = True) -> list[str]:
    """The same, a sentence each; empty where no judge was asked."""
    judging = summary.judging
    return [] if judging is None else [*_disagreements(judging), *(_absent(judging) if full else ())]


def _disagreements(judging: JudgingSummary) -> Iterator[str]:
    for panel in judging.panels:
        if panel.n:
            split = f", {panel.split:,} on both sides of the pass mark" if panel.split else ""
            undetermined = f", {panel.undetermined:,} undetermined: too little consensus" if panel.undetermined else ""
            yield f"panel: {panel.metric} differs in {_share(panel.differ, panel.n)}{split}{undetermined}"
    for repeated in judging.repeated:
        if repeated.n:
            undetermined = f", {repeated.straddle:,} undetermined: on both sides of the pass mark"
            yield (
                f"{judging.repeats} repeats by {repeated.judge}: {repeated.metric} differs in "
                f"{_share(repeated.differ, repeated.n)}{undetermined if repeated.straddle else ''}"
            )
    if judging.second_look is not None:
        for metric in judging.second_look.metrics:
            yield f"second look by {metric.second or judging.second_look.judge}: {_second(metric)}"


def _second(metric: SecondLookMetric) -> str:
    lost = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in metric.unanswered.items())
    without = f"; without an answer: {lost}" if lost else ""
    if not metric.n:
        return f"nothing to compare in {metric.metric}{without}"
    ids = list(dict.fromkeys(apart.conversation for apart in metric.apart))
    where = f" ({', '.join(ids[:_NAMED])}{', …' if len(ids) > _NAMED else ''})" if ids else ""
    mean = f", mean difference {metric.mean_difference:+.2f}" if metric.differ else ""
    return f"{metric.metric} differs in {_share(metric.differ, metric.n)}{mean}{where}{without}"


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({percent_text(part / whole)})"


def _absent(judging: JudgingSummary) -> Iterator[str]:
    if judging.panel is None:
        yield f"{counted(1, 'judge')}: no consensus is known (--judge several times is a panel)"
    if judging.second_look is None:
        yield "no second look: --second-look JUDGE has a tenth judged again by another judge"
