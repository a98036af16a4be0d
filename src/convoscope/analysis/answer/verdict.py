"""The verdict: how good, where it breaks, what differs between versions; each sentence only if it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from convoscope.analysis.answer.comparison import KnownOutcomes, Strata
from convoscope.analysis.answer.differences import Difference, Versions, within_text
from convoscope.analysis.answer.model import Cause, Clause, Noun, Outcomes, Tone, metric_label
from convoscope.analysis.answer.samples import NO_VALUE
from convoscope.analysis.targets import Check, target_text
from convoscope.analysis.words import counted, cut_text, percent_text, value_text
from convoscope.conversation.lazy import cached_on_argument
from convoscope.runs.database import CONVERSATIONS, connect, quoted
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.run import Run
from convoscope.scoring.labels import as_number
from convoscope.views.background import NO, YES
from convoscope.views.end_reasons import HANDED_OVER, KINDS, words_of_kind
from convoscope.views.flow.endings import UNKNOWN

Endings = Mapping[str, int]
"""How many conversations ended how: by kind, or by the log's own words; those of which the log says it."""
_MOST = 5
_LONGEST = 40


@cached_on_argument
def endings_of(run: Run) -> Endings:
    """How conversations ended, most first; nothing for a run that does not keep it."""
    with connect(run.folder) as connection:
        table = run.table(CONVERSATIONS)
        columns = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()]
        if "ending" not in columns:
            return {}
        query = f"SELECT ending, count(*) FROM {table} WHERE ending IS NOT NULL GROUP BY ending"
        counts: dict[str, int] = dict(connection.execute(query).fetchall())
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


class UndecidedLabel(NamedTuple):
    """The label of a run, and its values that are neither good nor bad where nothing else decides the outcome."""

    label: str
    values: Mapping[str, int]
    """How many conversations of unknown outcome have them, most first; nothing where all are numbers."""


@cached_on_argument
def undecided_label(run: Run) -> UndecidedLabel | None:
    """None where the label decides each conversation that has it. Numbers without a mark are a ranking."""
    label = run.summary.label
    if label is None or label.passed + label.failed == label.conversations:
        return None
    query = (
        f"SELECT label, count(*) FROM {run.table(CONVERSATIONS)} "
        f"WHERE label IS NOT NULL AND outcome = {quoted(UNKNOWN)} GROUP BY label"
    )
    with connect(run.folder) as connection:
        rows = connection.execute(query).fetchall()
    words = sorted((row for row in rows if as_number(row[0]) is None), key=lambda row: (-row[1], row[0]))
    return UndecidedLabel(label.label, dict(words)) if rows else None


def undecided_clause(undecided: UndecidedLabel, noun: Noun) -> Clause:
    """`26 chats have a `status` that is neither good nor bad: `open` 13, `pending` 13.`"""
    shown = list(undecided.values.items())[:_MOST]
    count = sum(undecided.values.values())
    parts = [f"`{cut_text(value, _LONGEST)}` {number:,}" for value, number in shown]
    rest = count - sum(number for _, number in shown)
    words = ", ".join([*parts, *([f"{rest:,} other"] if rest else [])])
    has = "has" if count == 1 else "have"
    lead = f"{counted(count, noun)} {has} a `{cut_text(undecided.label, _LONGEST)}` that is neither good nor bad"
    return Clause(lead=lead, rest=f": {words}.")


def ranking_clause(undecided: UndecidedLabel, noun: Noun) -> Clause:
    """A label of numbers without a mark says which conversations are worse, not which are lost."""
    lead = f"`{cut_text(undecided.label, _LONGEST)}` has no mark"
    return Clause(lead=lead, rest=f": it orders the {noun}s, and does not say which of them reach their goal.")


def no_label_clause(noun: Noun) -> Clause:
    """Where a field may be the outcome, which the hint names."""
    return Clause(lead=f"Which {noun}s reach their goal is not known", rest=": no field was named as the label.")


def how_they_ended(outcomes: Outcomes, endings: Endings, noun: Noun) -> Clause:
    """What is known of the ends where nothing says whether a goal was reached."""
    known = sum(endings.values())
    total = outcomes.total
    if not known:
        return Clause(lead=f"These logs do not say how the {noun}s ended.")
    if set(endings) == {HANDED_OVER} and known < total:
        lead = f"{known:,} of {counted(total, noun)} {_are(known)} handed over to a person"
        return Clause(lead=lead, rest="; the logs do not say how the others ended.")
    lead = f"The logs say how {known:,} of {counted(total, noun)} ended, not whether they reached their goal"
    return Clause(lead=lead, rest=f": {_counts(endings, noun)}.")


def _counts(endings: Endings, noun: Noun) -> str:
    words: Counter[str] = Counter()
    for ending, count in endings.items():
        name = words_of_kind(ending, is_chat=noun != "call") if ending in KINDS else f"`{cut_text(ending, _LONGEST)}`"
        words[name] += count
    parts = [f"{name} {count:,}" for name, count in words.most_common(_MOST)]
    rest = sum(words.values()) - sum(count for _, count in words.most_common(_MOST))
    return ", ".join([*parts, *([f"other {rest:,}"] if rest else [])])


def handed_over_words(outcomes: Outcomes) -> str:
    """How many were put through to a person, as the end of a sentence."""
    if not outcomes.handed_over:
        return ""
    base = outcomes.known + outcomes.not_judged
    judged = " (counted neither as reached nor as lost)" if outcomes.not_judged == outcomes.handed_over else ""
    return f"; {outcomes.handed_over:,} of {base:,} {_are(outcomes.handed_over)} handed over to a person{judged}"


def no_dialogue_clauses(outcomes: Outcomes, noun: Noun, *, is_heard: bool = False) -> Iterator[Clause]:
    """How many conversations have no dialogue, in one sentence. `is_heard`: sound was measured."""
    total = outcomes.total
    if not outcomes.no_dialogue:
        return
    if outcomes.no_user_speech == total:
        none = f"None of the {counted(total, noun)} has a" if total > 1 else f"The {noun} has no"
        yield Clause(
            lead=f"{none} word of the user", rest=f", so {'only sound' if is_heard else 'nothing'} is measured."
        )
        return
    who = "caller" if noun == "call" else "user"
    of = f" of {counted(total, noun)}"
    parts = []
    if outcomes.no_user_speech:
        parts.append(f"{outcomes.no_user_speech:,}{of}: the {who} never spoke")
    for count, words in ((outcomes.voicemail, "a mailbox"), (outcomes.ivr, "a phone menu")):
        if count:
            parts.append(f"{count:,}{'' if parts else of} reached {words}")
    are = _are(outcomes.no_dialogue)
    is_short = len(parts) == 1 and not outcomes.no_user_speech
    but_sound = " but those of sound" if is_heard and outcomes.no_user_speech else ""
    apart = f" and {are}" if is_short else f"; {'it' if outcomes.no_dialogue == 1 else 'they'} {are}"
    yield Clause(lead="; ".join(parts), rest=f"{apart} left out of all averages{but_sound}.")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


LEAST_SHARE = 0.25
"""Of the lost, what one place must have to be named."""
LEAST_LOST = 5
COMPLETIONS = (OUTCOME_METRIC, "outcome.task_completion", "flow.completion", "dialogue.goal_completion")
MAX_STRATA = 3
MAX_NAME = 24
VERBS: Mapping[str, tuple[str, str]] = {
    OUTCOME_METRIC: ("completes more {noun}s", "completes fewer {noun}s"),
    "outcome.task_completion": ("completes more tasks", "completes fewer tasks"),
    "flow.completion": ("completes more flows", "completes fewer flows"),
    "timing.response_latency": ("replies sooner", "replies later"),
    "voice.response_speed": ("replies sooner", "replies later"),
    "latency.e2e_latency": ("replies sooner", "replies later"),
    "interaction.response_latency_mean": ("replies sooner", "replies later"),
    "agent.talks_over_user": ("talks over {people} less often", "talks over {people} more often"),
    "agent.unanswered_turns": ("leaves fewer turns without a reply", "leaves more turns without a reply"),
    "agent.repetition": ("says the same again less often", "says the same again more often"),
    "tools.success": ("has fewer failed tool calls", "has more failed tool calls"),
    "user.pushback": ("meets fewer objections", "meets more objections"),
}
"""What a version does that is better, and worse, in some figures; others are named by their labels."""


def make_verdict(
    checks: Sequence[Check],
    noun: Noun,
    outcomes: Outcomes,
    causes: Sequence[Cause],
    end_states: Counter[str],
    versions: Versions | None = None,
    endings: Endings = MappingProxyType({}),
    undecided: UndecidedLabel | None = None,
    *,
    names_field: bool = False,
    is_heard: bool = False,
) -> tuple[Clause, ...]:
    """How good, where it breaks, what differs between versions; and how many logs are no conversations.

    `names_field`: a field that may be the outcome is proposed as the label. `is_heard`: sound was measured.
    """
    clauses = list(no_dialogue_clauses(outcomes, noun, is_heard=is_heard))
    if undecided is not None and undecided.values:
        clauses.insert(0, undecided_clause(undecided, noun))
    if outcomes.no_dialogue < outcomes.total:
        clause = _outcome(checks, noun, outcomes, endings, undecided)
        is_silent = not outcomes.known and not sum(endings.values()) and undecided is None
        clauses.insert(0, no_label_clause(noun) if is_silent and names_field else clause)
    clauses += _where_it_breaks(noun, outcomes, causes, end_states)
    clauses += _versions(versions, noun) if versions is not None else ()
    return tuple(clauses)


def _outcome(
    checks: Sequence[Check], noun: Noun, outcomes: Outcomes, endings: Endings, undecided: UndecidedLabel | None
) -> Clause:
    if not outcomes.known and undecided is not None and not undecided.values:
        return ranking_clause(undecided, noun)
    if not outcomes.known:
        return how_they_ended(outcomes, endings, noun)
    handed_over = handed_over_words(outcomes)
    if not outcomes.all_lost and undecided is not None and undecided.values:
        lead = f"{outcomes.done:,} of {counted(outcomes.known + outcomes.unknown, noun)} reach their goal"
        return Clause(lead=lead, rest=f"; whether any was lost is not known{handed_over}.")
    if not outcomes.all_lost:
        end = "" if not outcomes.unknown else f", of {outcomes.known:,} whose end is known"
        return Clause(lead=f"No {noun} was lost", rest=f"{end}{handed_over}.")
    share = outcomes.done / outcomes.known
    lead = f"{outcomes.done:,} of {counted(outcomes.known, noun)} reach their goal ({percent_text(share)})"
    rest, tone = _against_target(checks)
    rest += handed_over
    if outcomes.unknown:
        rest += f"; how {counted(outcomes.unknown, 'other')} ended is not known"
    return Clause(lead=lead, rest=f"{rest}.", tone=tone)


def _against_target(checks: Sequence[Check]) -> tuple[str, Tone]:
    check = next((one for one in checks if one.figure.key == OUTCOME_METRIC and not one.figure.reduction), None)
    if check is None or check.verdict.outcome == "undetermined":
        return "", "plain"
    target = f"the target of {target_text(check.target, check.figure.unit).partition(' ')[2]}"
    if not check.verdict.sure:
        return f", too close to {target} to call", "plain"
    return (f", above {target}", "good") if check.label == "met" else (f", below {target}", "bad")


def _where_it_breaks(
    noun: Noun, outcomes: Outcomes, causes: Sequence[Cause], end_states: Counter[str]
) -> Iterator[Clause]:
    """The one place where most is lost: a state, else a cause."""
    lost = outcomes.all_lost
    (state, count), *_ = end_states.most_common(1) or [("", 0)]
    if state and count >= max(LEAST_LOST, LEAST_SHARE * lost):
        yield Clause(lead=f"{count:,} of the {lost:,} lost {noun}s end in one state, {cut_text(state, 60)}", rest=".")
    elif causes and causes[0].lost >= LEAST_SHARE * lost:
        yield Clause(lead=f"{causes[0].lost:,} of the {lost:,} lost {noun}s", rest=f": {causes[0].sentence}.")


def _versions(versions: Versions, noun: Noun) -> Iterator[Clause]:
    """What is worse and what is better, as loudly; and whether it is open if more is completed."""
    before, after = cut_text(versions.before, MAX_NAME), _version_text(versions.dimension, versions.after)
    if versions.too_few:
        few = " and ".join(
            f"{counted(count, noun)} of {_version_text(versions.dimension, name)}" for name, count in versions.too_few
        )
        yield Clause(lead=f"{few} {'is' if few.startswith('1 ') else 'are'} too few to compare {after} with {before}.")
        return
    if versions.few_users:
        few = " and ".join(
            f"{_version_text(versions.dimension, name)} has {counted(count, 'user')}"
            for name, count in versions.few_users
        )
        yield Clause(lead=f"{few}: too few to compare {after} with {before}.")
        return
    if versions.unshared:
        yield Clause(lead=f"{before} and {after} were tried on different scenarios: they cannot be compared.")
        return
    worse = next((difference for difference in versions.claimed if difference.worse), None)
    better = next((difference for difference in versions.claimed if not difference.worse), None)
    shown = sorted(filter(None, (worse, better)), key=versions.claimed.index)
    for difference in shown:
        yield from _claim(difference, before, after, noun)
    if not any(difference.figure.key in COMPLETIONS for difference in versions.claimed):
        yield from _undecided(versions, before, after, noun, is_only=not shown)


def _version_text(dimension: str, value: str) -> str:
    """`v2`; `release 2026.2`, where the value is a number alone."""
    name = cut_text(value, MAX_NAME)
    return name if any(letter.isalpha() for letter in name) else f"{dimension.replace('_', ' ')} {name}"


def _claim(difference: Difference, before: str, after: str, noun: Noun) -> Iterator[Clause]:
    tone: Tone = "bad" if difference.worse else "good"
    if difference.apart:
        yield Clause(
            lead=f"{after} and {before} differ in {_values(difference, noun)}",
            rest=f"; but their {_plural(difference.apart)} differ too, so the cause cannot be separated.",
        )
        return
    verb = _verb(difference, noun)
    strata = difference.strata
    known = f" ({_known(difference.coverage, before, after, noun)})" if difference.coverage is not None else ""
    if strata is None or not difference.is_hidden:
        rest = f": {_values(difference, noun)}{within_text(difference)}{known}."
        yield Clause(lead=f"{_of_known(difference, noun)}{after} {verb} than {before}", rest=rest, tone=tone)
        return
    each = f"Within each {strata.by}" if strata.all_agree else f"Compared within {strata.by}"
    rest = f": {_strata_text(strata, difference)}{known}."
    yield Clause(lead=f"{each} {after} {verb} than {before}", rest=rest, tone=tone)
    what = "they say the opposite" if difference.is_reversed else "they hardly differ"
    yield _together(difference, strata, after, noun, what)


def _of_known(difference: Difference, noun: Noun) -> str:
    """Where as many of both versions have no outcome, what is said is said of the others."""
    coverage = difference.coverage
    return f"Of the {noun}s whose outcome is known, " if coverage is not None and coverage.is_even else ""


def _known(coverage: KnownOutcomes, before: str, after: str, noun: Noun) -> str:
    """`known for 12 of 30 chats of v2 and 30 of 30 of v1`."""
    return (
        f"known for {coverage.second:,} of {counted(coverage.second_total, noun)} of {after} "
        f"and {coverage.first:,} of {coverage.first_total:,} of {before}"
    )


def _undecided(versions: Versions, before: str, after: str, noun: Noun, *, is_only: bool) -> Iterator[Clause]:
    """What the data do not decide: why, where the mix makes it seem otherwise."""
    seeming = versions.explained[0] if versions.explained else None
    if seeming is not None and (is_only or seeming.figure.key in COMPLETIONS):
        yield from _explained(seeming, before, after, noun)
        return
    undecided = next((one for one in versions.open if one.figure.key in COMPLETIONS), None)
    if undecided is not None:
        verb = _verb(undecided, noun, better=True)
        yield _no_difference(undecided, verb, before, after, noun)
    elif is_only and versions.open:
        yield Clause(lead=f"No clear difference yet between {before} and {after}.")


def _no_difference(difference: Difference, verb: str, before: str, after: str, noun: Noun) -> Clause:
    """That it is open, and how much there is to decide by."""
    pairs = f" ({counted(difference.raw.pairs, 'shared scenario')})" if difference.raw.pairs else ""
    coverage = difference.coverage
    known = f"; the outcome is {_known(coverage, before, after, noun)}" if coverage is not None else ""
    return Clause(lead=f"No clear difference yet in whether {after} {verb} than {before}{pairs}", rest=f"{known}.")


def _explained(difference: Difference, before: str, after: str, noun: Noun) -> Iterator[Clause]:
    """A difference that is there only because the kinds of conversations differ, or that depends on the kind."""
    verb, strata = _verb(difference, noun, better=True), difference.mixed or difference.strata
    if strata is None or (difference.coverage is not None and not difference.coverage.is_even):
        yield _no_difference(difference, verb, before, after, noun)
    elif difference.mixed is not None:
        lead = f"Whether {after} {verb} than {before} depends on the {strata.by}"
        yield Clause(lead=lead, rest=f": {_strata_text(strata, difference)}.")
    else:
        lead = f"Within {strata.by}, no clear difference yet in whether {after} {verb} than {before}"
        yield Clause(lead=lead, rest=f": {_strata_text(strata, difference)}.")
        yield _together(difference, strata, after, noun, "they differ")


def _together(difference: Difference, strata: Strata, after: str, noun: Noun, what: str) -> Clause:
    """Why all conversations together say something else."""
    raw, unit = difference.raw, difference.figure.unit
    values = f"{value_text(raw.second, unit)}, was {value_text(raw.first, unit)}"
    more = _more_of(strata, noun)
    label = metric_label(difference.declared, noun)
    return Clause(lead="", rest=f"Together {what} ({label} {values}) because {after} has more {more}.")


def _more_of(strata: Strata, noun: Noun) -> str:
    """`hard chats`; of values that say little by themselves, `chats with difficulty 5`."""
    value = cut_text(strata.more_of, MAX_NAME)
    if value in (YES, NO, NO_VALUE):
        return f"{noun}s {'with' if value == YES else 'without'} {strata.by}"
    speaks = any(letter.isalpha() for letter in value) and value not in ("true", "false")
    return f"{value} {noun}s" if speaks else f"{noun}s with {strata.by} {value}"


def _plural(name: str) -> str:
    """`customer tiers`, `categories`."""
    words = name.rpartition(".")[2].replace("_", " ")
    if words.endswith("s"):
        return words
    return f"{words[:-1]}ies" if words.endswith("y") and words[-2:-1] not in "aeiou" else f"{words}s"


def _verb(difference: Difference, noun: Noun, *, better: bool | None = None) -> str:
    """What the later version does, in words: `replies sooner`; `does worse in arguments right`."""
    good = not difference.worse if better is None else better
    verbs = VERBS.get(difference.figure.key)
    if verbs is None:
        return f"does {'better' if good else 'worse'} in {metric_label(difference.declared, noun)}"
    people = "callers" if noun == "call" else "users"
    return verbs[0 if good else 1].format(noun=noun, people=people)


def _values(difference: Difference, noun: Noun) -> str:
    compared, unit = difference.comparison if difference.is_hidden else difference.raw, difference.figure.unit
    label = f"{metric_label(difference.declared, noun)} " if difference.figure.key in VERBS or difference.apart else ""
    return f"{label}{value_text(compared.second, unit)}, was {value_text(compared.first, unit)}"


def _strata_text(strata: Strata, difference: Difference) -> str:
    """`booking 100.0 %, was 90.0 %; billing 40.0 %, was 30.0 %`."""
    unit = difference.figure.unit
    parts = [
        f"{cut_text(value, MAX_NAME)} {value_text(compared.second, unit)}, was {value_text(compared.first, unit)}"
        for value, compared in strata.strata[:MAX_STRATA]
    ]
    more = len(strata.strata) - MAX_STRATA
    return "; ".join(parts) + (f"; and {more:,} more" if more > 0 else "")
