"""A plan on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.analysis.compare.words import amount_text, rounded
from convoscope.analysis.plan import PlannedSize, SamplePlan
from convoscope.analysis.words import counted, percent_text, value_text
from convoscope.report.screen import Screen


def print_plan(screen: Screen, plan: SamplePlan) -> None:
    """What it takes, design by design; what the run as it is would show."""
    effect = amount_text(plan.effect, plan.unit)
    today = value_text(plan.value, plan.unit)
    screen.wrapped(
        f"To show a difference of {effect} in {plan.label} ({today} today), "
        f"with {percent_text(plan.power)} power and {counted(plan.figures, 'figure')} compared:",
        "bold",
    )
    screen.line()
    for size in plan.sizes:
        screen.line(f"  {_design(size):34}{_needs(size, plan)}")
    screen.line()
    for line in _remarks(plan):
        screen.wrapped(line)


def _design(size: PlannedSize) -> str:
    if size.design == "unpaired":
        return "without pairs"
    return f"pairs, {counted(size.trials, 'trial')} of each scenario"


def _needs(size: PlannedSize, plan: SamplePlan) -> str:
    conversations = f"{counted(rounded(size.conversations), plan.noun)} a side"
    return (
        conversations if size.design == "unpaired" else f"{rounded(size.scenarios or 0):,} scenarios, {conversations}"
    )


def _remarks(plan: SamplePlan) -> Iterator[str]:
    """What a run of this size shows, and what the plan assumes."""
    size = counted(plan.conversations, plan.noun)
    pairs = "" if plan.detectable_pairs is None else f", or {amount_text(plan.detectable_pairs, plan.unit)} by pairs"
    yield f"Two runs like this one ({size} each) would show {amount_text(plan.detectable, plan.unit)}{pairs}."
    if plan.detectable_pairs is not None and plan.assumes_alike:
        yield "Pairs are planned as if a change acted alike in all scenarios; where it does not, more are needed."
