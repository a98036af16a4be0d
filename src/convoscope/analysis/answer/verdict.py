"""The verdict: up to three clauses, each only if it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from types import MappingProxyType

from convoscope.analysis.answer.endings import Endings, handed_over_words, how_they_ended, no_dialogue_clauses
from convoscope.analysis.answer.groups import Difference, versions_apart
from convoscope.analysis.answer.model import Cause, Clause, Noun, Outcomes, Tone, metric_label
from convoscope.analysis.targets import Check
from convoscope.analysis.words import counted, value_text
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.summary import Summary

LEAST_SHARE = 0.25
"""Of the lost, what one place must have to be named."""
LEAST_LOST = 5
OF_A_HUNDRED = 20
"""From so many on, "73 of 100" says as much as the counts, and is read at once."""


def make_verdict(
    summary: Summary,
    checks: Sequence[Check],
    noun: Noun,
    outcomes: Outcomes,
    causes: Sequence[Cause],
    end_states: Counter[str],
    endings: Endings = MappingProxyType({}),
) -> tuple[Clause, ...]:
    """How good, where it breaks, what differs between versions; and how many conversations are none."""
    clauses = list(no_dialogue_clauses(outcomes, noun, summary.conversations))
    if outcomes.no_dialogue < summary.conversations:
        clauses.insert(0, _outcome(checks, noun, outcomes, endings))
    clauses += _place(noun, outcomes, causes, end_states)
    clauses += _versions(versions_apart(summary), noun)
    return tuple(clauses)


def _outcome(checks: Sequence[Check], noun: Noun, outcomes: Outcomes, endings: Endings) -> Clause:
    if not outcomes.known:
        return how_they_ended(outcomes, endings, noun)
    handed_over = handed_over_words(outcomes)
    if not outcomes.all_lost:
        end = "" if not outcomes.unknown else f", of {outcomes.known:,} whose end is known"
        return Clause(lead=f"No {noun} was lost", rest=f"{end}{handed_over}.")
    lead = f"{_share(outcomes, noun)} reach their goal"
    rest, tone = _against_target(checks)
    rest += handed_over
    if outcomes.unknown:
        rest += f"; how {outcomes.unknown:,} others ended is not known"
    return Clause(lead=lead, rest=f"{rest}.", tone=tone)


def _share(outcomes: Outcomes, noun: Noun) -> str:
    if outcomes.known < OF_A_HUNDRED:
        return f"{outcomes.done:,} of {counted(outcomes.known, noun)}"
    of_a_hundred = round(100 * outcomes.done / outcomes.known)
    # What is not all is never told as all, nor what is not none as none.
    of_a_hundred = min(99, max(1, of_a_hundred)) if outcomes.done and outcomes.all_lost else of_a_hundred
    return f"{of_a_hundred} of 100 {noun}s"


def _against_target(checks: Sequence[Check]) -> tuple[str, Tone]:
    check = next((one for one in checks if one.figure.key == OUTCOME_METRIC and not one.figure.reduction), None)
    if check is None or check.verdict.outcome == "undetermined":
        return "", "plain"
    target = f"the target of {100 * check.target.value:g}"
    if not check.verdict.sure:
        return f", too close to {target} to call", "plain"
    return (f", above {target}", "good") if check.verdict.outcome == "met" else (f", below {target}", "bad")


def _place(noun: Noun, outcomes: Outcomes, causes: Sequence[Cause], end_states: Counter[str]) -> Iterator[Clause]:
    """The one place where most is lost: a state, else a cause."""
    lost = outcomes.all_lost
    (state, count), *_ = end_states.most_common(1) or [("", 0)]
    if state and count >= max(LEAST_LOST, LEAST_SHARE * lost):
        yield Clause(lead=f"{count:,} of the {lost:,} lost {noun}s end in one state, {state}", rest=".")
    elif causes and causes[0].lost >= LEAST_SHARE * lost:
        yield Clause(lead=f"{causes[0].lost:,} of the {lost:,} lost {noun}s", rest=f": {causes[0].sentence}.")


def _versions(differences: Sequence[Difference], noun: Noun) -> Iterator[Clause]:
    """The strongest difference between versions, for the worse and for the better."""
    if not differences:
        return
    first = differences[0]
    second = next((one for one in differences if one.worse != first.worse), None)
    words = ("worse", "better") if first.worse else ("better", "worse")
    lead = f"{first.after} is {words[0]} than {first.before}: {_difference(first, noun)}"
    rest = f", but {words[1]}: {_difference(second, noun)}." if second is not None else "."
    yield Clause(lead=lead, rest=rest, tone="bad" if first.worse else "plain")


def _difference(of: Difference, noun: Noun) -> str:
    label = metric_label(of.declared, noun)
    return f"{label} {value_text(of.figure.value, of.figure.unit)}, was {value_text(of.earlier.value, of.figure.unit)}"
