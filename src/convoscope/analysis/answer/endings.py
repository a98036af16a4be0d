"""Sentences about how conversations ended: handed over, hung up, and those without a dialogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from convoscope.analysis.answer.model import Clause, Noun, Outcomes
from convoscope.analysis.words import counted, cut_text
from convoscope.conversation.lazy import cached_on_argument
from convoscope.runs.database import CONVERSATIONS, connect, quoted
from convoscope.runs.run import Run
from convoscope.scoring.labels import as_number
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


def no_dialogue_clauses(outcomes: Outcomes, noun: Noun) -> Iterator[Clause]:
    """How many conversations have no dialogue, in one sentence."""
    total = outcomes.total
    if not outcomes.no_dialogue:
        return
    if outcomes.no_user_speech == total:
        lead = f"None of the {counted(total, noun)} has a word of the user"
        yield Clause(lead=lead, rest=", so nothing is measured.")
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
    apart = f" and {are}" if is_short else f"; {'it' if outcomes.no_dialogue == 1 else 'they'} {are}"
    yield Clause(lead="; ".join(parts), rest=f"{apart} left out of all averages.")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
