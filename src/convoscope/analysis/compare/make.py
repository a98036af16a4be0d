"""A comparison, made once: of runs, of groups of one run, or of the versions that a run has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convoscope.analysis.answer.differences import LEAST_CONVERSATIONS, order_key, version_pair
from convoscope.analysis.answer.make import noun_of
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.answer.notes import hint_of
from convoscope.analysis.compare.figures import USUAL, Smallest, compared_figures
from convoscope.analysis.compare.groups import moved_groups, moved_mix
from convoscope.analysis.compare.model import ComparedFigure, DifferenceClaim, RunComparison
from convoscope.analysis.compare.pairs import moved_pairs
from convoscope.analysis.compare.sides import ComparedSets, sets_by_dimension, sets_of_runs
from convoscope.analysis.compare.verdict import overall, sentences
from convoscope.analysis.words import counted
from convoscope.errors import UsageError
from convoscope.runs.run import Run


def compare_runs(runs: Sequence[Run], smallest: Smallest = USUAL, names: Sequence[str] = ()) -> RunComparison:
    """Runs against the first of them, called by `names` where these are given."""
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs", hint="name a second one, or --by a dimension of the run")
    return _made(sets_of_runs(runs, names), smallest)


def compare_by(run: Run, by: str, values: Sequence[str] = (), smallest: Smallest = USUAL) -> RunComparison:
    """The groups of one run by a dimension, against the first of them. Versions are in their order: v9 before v10."""
    return _made(sets_by_dimension(run, by, values, order_key), smallest)


def compare_versions_of(run: Run) -> RunComparison | None:
    """The two versions of the agent that a run has, the earlier first; None where it has no two to compare."""
    pair = version_pair(run.summary)
    if pair is None:
        return None
    name, earlier, later = pair
    if min(earlier.conversations, later.conversations) < LEAST_CONVERSATIONS:
        return None
    return compare_by(run, name, (earlier.by[name], later.by[name]))


def _made(sets: ComparedSets, smallest: Smallest) -> RunComparison:
    nouns = {noun_of(run) for run in sets.runs}
    noun: Noun = nouns.pop() if len(nouns) == 1 else "conversation"
    sides = tuple(one.side for one in sets.sets)
    figures = compared_figures(sets, noun, smallest)
    pairs = moved_pairs(sets)
    groups = moved_groups(sets, noun, smallest, figures)
    return RunComparison(
        noun=noun,
        sides=sides,
        by=sets.by,
        verdict=overall(figures, groups),
        sentences=tuple(sentences(figures, sides, noun, groups)),
        claims=tuple(_claims(figures, many=len(sides) > 2)),
        figures=tuple(figures),
        pairing=pairs.sentence,
        shared=pairs.shared,
        fixed=pairs.fixed,
        broken=pairs.broken,
        pairs=pairs.pairs,
        groups=groups,
        mix=() if pairs.shared else moved_mix(sets, noun),
        notes=tuple(_notes(sets)),
    )


def _claims(figures: Sequence[ComparedFigure], *, many: bool) -> Iterator[DifferenceClaim]:
    claimed = [one for one in figures if one.finding in ("better", "worse")]
    for figure in sorted(claimed, key=lambda one: (bool(one.same_as), -one.importance, one.p or 0.0)):
        yield DifferenceClaim(
            metric=figure.metric,
            verdict="better" if figure.finding == "better" else "worse",
            difference=figure.difference or 0.0,
            low=figure.low,
            high=figure.high,
            n=figure.n,
            paired=figure.paired,
            small=figure.small,
            side=figure.side if many else "",
            same_as=figure.same_as,
        )


def _notes(sets: ComparedSets) -> Iterator[str]:
    """What limits a comparison as a whole."""
    if sets.other_reading:
        yield f"{sets.other_reading}; nothing is claimed: score them alike"
    nouns = {one.side.name: noun_of(one.run) for one in sets.sets}
    if len(set(nouns.values())) > 1:
        yield "the sides are not of one kind: " + ", ".join(f"{name} has {noun}s" for name, noun in nouns.items())
    for run in sets.runs:
        if problems := len(run.read_report.problems):
            yield f"{run.name}: {counted(problems, 'part')} of its logs could not be read"
    if not any(run.summary.label or run.summary.outcomes.done for run in sets.runs):
        hint = hint_of(sets.sets[-1].run, noun_of(sets.sets[-1].run), knows_outcomes=False)
        if hint.label:
            yield hint.label
    for run in sets.runs:
        if not run.receipt.valid:
            yield f"{run.name} is marked invalid: {run.receipt.invalid_reason}"
    inputs = [run.summary.input_hash for run in sets.runs]
    if len(inputs) > 1 and len(set(inputs)) < len(inputs):
        yield "two of the runs are of the same logs"
    for side in (compared.side for compared in sets.sets):
        if side.conversations < LEAST_CONVERSATIONS:
            yield f"{side.name} has {side.conversations:,} conversations: too few for most figures"
