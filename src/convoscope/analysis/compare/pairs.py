"""The same scenario on both sides: which conversations were fixed, and which broke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from convoscope.analysis.answer.comparison import pair_rows
from convoscope.analysis.answer.make import rank_reasons
from convoscope.analysis.compare.model import ConversationPair, RunComparison
from convoscope.analysis.compare.sides import (
    ComparedSet,
    ComparedSets,
    JoinedSamples,
    sets_by_dimension,
    sets_of_runs,
)
from convoscope.analysis.words import counted
from convoscope.runs.ranking import names, rank
from convoscope.runs.run import Run
from convoscope.views.flow.endings import DONE, LOST, OUTCOMES

MOST = 200
"""Pairs that are listed; all are counted."""


class _Pair(NamedTuple):
    """Two conversations of one scenario, by their numbers in their runs."""

    before: int
    after: int


class MovedPairs(NamedTuple):
    """What became of the conversations that both sides have."""

    shared: int = 0
    fixed: int = 0
    broken: int = 0
    pairs: tuple[ConversationPair, ...] = ()
    """Broken first, then in the order of the later side's ranking."""
    sentence: str = ""


def moved_pairs(sets: ComparedSets) -> MovedPairs:
    """Of all later sides, against the baseline."""
    by_side = [_of_side(sets, sets.sets[0], later) for later in sets.sets[1:]]
    pairs = sorted((pair for one in by_side for pair in one.pairs), key=lambda pair: pair.moved == "fixed")
    return MovedPairs(
        max((one.shared for one in by_side), default=0),
        sum(one.fixed for one in by_side),
        sum(one.broken for one in by_side),
        tuple(pairs[:MOST]),
        by_side[0].sentence if by_side else "",
    )


def _of_side(sets: ComparedSets, baseline: ComparedSet, later: ComparedSet) -> MovedPairs:
    scenarios = sets.samples.scenarios
    rows = pair_rows(sets.samples, baseline.rows, later.rows)
    if rows is None:
        return MovedPairs(sentence=_unpaired(sets, baseline, later))
    only = [
        len(np.setdiff1d(scenarios[one & (scenarios >= 0)], scenarios[other & (scenarios >= 0)]))
        for one, other in ((baseline.rows, later.rows), (later.rows, baseline.rows))
    ]
    left_out = [
        f"{counted(count, 'scenario')} only in {side.side.name}"
        for count, side in zip(only, (baseline, later), strict=True)
        if count
    ]
    without = int(np.count_nonzero((baseline.rows | later.rows) & (scenarios < 0)))
    left_out += [f"{counted(without, 'conversation')} without a scenario"] if without else []
    trials = int(np.count_nonzero((baseline.rows | later.rows) & (scenarios >= 0)))
    trials -= int(np.count_nonzero((rows.first | rows.second) & (scenarios >= 0)))
    if trials and not any(only):
        left_out.append(f"{counted(trials, 'trial')} of one side alone")
    by_id = isinstance(sets.samples, JoinedSamples) and sets.samples.pairs_by_id
    same = "conversations of the same id in both" if by_id else "scenarios in both"
    sentence = f"{rows.shared:,} {same}, compared pair by pair"
    sentence += f"; left out: {', '.join(left_out)}" if left_out else ""
    moved: list[ConversationPair] = []
    if not sets.other_labels:
        moved = list(_moved(sets, baseline, later, np.flatnonzero(rows.first), np.flatnonzero(rows.second)))
    kinds = [one.moved for one in moved]
    return MovedPairs(rows.shared, kinds.count("fixed"), kinds.count("broken"), tuple(moved), sentence)


def _unpaired(sets: ComparedSets, baseline: ComparedSet, later: ComparedSet) -> str:
    scenarios = sets.samples.scenarios
    known = [bool((scenarios[one.rows] >= 0).any()) for one in (baseline, later)]
    if not all(known):
        return "no scenarios in the logs: all conversations of one side are compared with all of the other"
    shared = np.intersect1d(scenarios[baseline.rows & (scenarios >= 0)], scenarios[later.rows & (scenarios >= 0)])
    few = "no scenario" if not len(shared) else f"only {counted(len(shared), 'scenario')}"
    return f"{few} in both: all conversations of one side are compared with all of the other, not pairs"


def _moved(
    sets: ComparedSets, baseline: ComparedSet, later: ComparedSet, first: np.ndarray, second: np.ndarray
) -> Iterator[ConversationPair]:
    """The pairs whose outcome is another."""
    outcomes = {id(run): rank(run).outcome for run in sets.runs}
    wanted = {OUTCOMES.index(DONE), OUTCOMES.index(LOST)}
    moved: list[_Pair] = []
    for pair in _paired(sets, baseline, later, first, second):
        ends = (int(outcomes[id(baseline.run)][pair.before]), int(outcomes[id(later.run)][pair.after]))
        is_whole = pair.before not in rank(baseline.run).errors and pair.after not in rank(later.run).errors
        if set(ends) == wanted and is_whole:
            moved.append(pair)
    yield from _named(sets, baseline, later, moved)


def _paired(
    sets: ComparedSets, baseline: ComparedSet, later: ComparedSet, first: np.ndarray, second: np.ndarray
) -> Iterator[_Pair]:
    """Conversations of one scenario. Several trials of it are pairs only where their names match."""
    before_of, after_of = _by_trial(sets, first), _by_trial(sets, second)
    for key, numbers in after_of.items():
        if len(numbers) == 1 and len(before_of.get(key, ())) == 1:
            yield _Pair(before_of[key][0] - baseline.start, numbers[0] - later.start)


def conversation_pairs(comparison: RunComparison, runs: Sequence[Run]) -> dict[int, int]:
    """Of the last side, each conversation that has a pair in the baseline, and which: by their numbers.

    Whatever came of them; nothing where pairs are not compared.
    """
    names = (comparison.sides[0].name, comparison.sides[-1].name)
    sets = sets_by_dimension(runs[0], comparison.by, names) if comparison.by else sets_of_runs([runs[0], runs[-1]])
    baseline, later = sets.sets
    rows = pair_rows(sets.samples, baseline.rows, later.rows)
    if rows is None:
        return {}
    pairs = _paired(sets, baseline, later, np.flatnonzero(rows.first), np.flatnonzero(rows.second))
    return {pair.after: pair.before for pair in pairs}


def _by_trial(sets: ComparedSets, numbers: np.ndarray) -> dict[tuple[int, int], list[int]]:
    scenarios, trials = sets.samples.scenarios, sets.samples.dimension("trial").codes
    by_trial: dict[tuple[int, int], list[int]] = {}
    for number in numbers.tolist():
        by_trial.setdefault((int(scenarios[number]), int(trials[number])), []).append(number)
    return by_trial


def _named(
    sets: ComparedSets, baseline: ComparedSet, later: ComparedSet, moved: Sequence[_Pair]
) -> Iterator[ConversationPair]:
    """Broken first, each kind in the order of the run in which they are lost."""
    if not moved:
        return
    scenario, trial = sets.samples.dimension("scenario_id"), sets.samples.dimension("trial")
    befores = names(baseline.run, [one.before for one in moved])
    afters = names(later.run, [one.after for one in moved])
    is_lost = rank(later.run).outcome == OUTCOMES.index(LOST)
    broken = {one.after: one for one in moved if is_lost[one.after]}
    fixed = {one.before: one for one in moved if not is_lost[one.after]}
    kinds: tuple[Literal["broken", "fixed"], ...] = ("broken", "fixed")
    for kind, by_number, run in zip(kinds, (broken, fixed), (later.run, baseline.run), strict=True):
        order = [number for number in rank(run).order.tolist() if number in by_number]
        reasons = rank_reasons(run, order[:MOST]) if order else {}
        for number in order:
            pair = by_number[number]
            at = pair.before + baseline.start
            why = reasons.get(number)
            yield ConversationPair(
                moved=kind,
                scenario=scenario.values[scenario.codes[at]],
                trial=trial.values[trial.codes[at]] if trial.codes[at] >= 0 else "",
                side=later.side.name,
                before=befores[pair.before],
                before_number=pair.before,
                after=afters[pair.after],
                after_number=pair.after,
                reason=why.reasons[0] if why is not None and why.reasons else "",
            )
