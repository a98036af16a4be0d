"""The answer of a run, made once from what it keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.analysis.answer.cause_evidence import RestOfRun
from convoscope.analysis.answer.causes import (
    ASKED_AGAIN,
    LOOP,
    MISHEARD,
    NO_REPLY,
    NONE,
    TALKED_OVER,
    TOOL_FAILED,
    TOOL_SLOW,
    Symptom,
    cause_of,
)
from convoscope.analysis.answer.differences import compare_versions, groups_apart
from convoscope.analysis.answer.figures import chosen_figures, judge_lines, mark_text, more_bad_text, value_at_mark
from convoscope.analysis.answer.model import (
    Answer,
    Cause,
    Evidence,
    JudgeOpinion,
    Noun,
    Outcomes,
    WorstConversation,
    metric_label,
)
from convoscope.analysis.answer.notes import hint_of, notes_on, unread_languages, without_doubtful
from convoscope.analysis.answer.opinions import worst_opinions
from convoscope.analysis.answer.samples import samples_of
from convoscope.analysis.answer.verdict import endings_of, make_verdict, undecided_label
from convoscope.analysis.targets import Check, GivenTarget, run_checks
from convoscope.analysis.words import (
    ORDERS,
    counted,
    cut_text,
    reading_text,
    reason_text,
    set_aside_text,
    sides_text,
    sound_text,
    trial_text,
    unrounded_text,
    value_text,
)
from convoscope.conversation import USER, Conversation, from_json
from convoscope.conversation.flow import ESCALATIONS
from convoscope.conversation.lazy import cached_on_argument
from convoscope.runs.conversations import first_conversations
from convoscope.runs.database import CONVERSATIONS, connect
from convoscope.runs.ranking import RankedConversation, RankedMetric, Ranking, names, rank
from convoscope.runs.reliability import is_doubtful
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.views.end_reasons import HANDED_OVER, handed_over_by
from convoscope.views.flow.endings import DONE, LOST, OUTCOMES, UNKNOWN, terminal_of
from convoscope.views.flow.walk import walk
from convoscope.views.machines import NO_DIALOGUE, is_phone_call

MOST_CAUSES = 5
LEAST_LOST = 5
"""A cause of fewer lost conversations is counted with the others."""
MOST_WORST = 5
MOST_REASONS = 3
_LOOKED_AT = 50
"""Conversations that are looked at for what to call them."""
_MOST_WORDS = 90
_MOST_QUOTED = 60
SAID_BY_LOG = "the log says so"
"""What `endings` gives as evidence where the log itself says whether a conversation was completed."""
NO_REASON = "no mark is missed, and no metric of the order is worse than in others"


def make_answer(run: Run, targets: Sequence[GivenTarget] = ()) -> Answer:
    """What a person wants to know of a run. `targets` come beside those that the run was scored with."""
    return _made(run, run_checks(run, targets)) if targets else _usual_answer(run)


@cached_on_argument
def _usual_answer(run: Run) -> Answer:
    return _made(run, run_checks(run))


def _made(run: Run, checks: Sequence[Check]) -> Answer:
    summary, ranking, lost = run.summary, rank(run), look_at_lost(run)
    noun = noun_of(run)
    outcomes = _outcomes(ranking, lost)
    causes = _causes(run, lost, noun)
    telling = [one for one in causes if one.lost >= LEAST_LOST and one.rule != NONE][:MOST_CAUSES]
    checks = [check for check in checks if not check.by]
    # It holds conversations for a moment, and goes before the arrays are there.
    hint = hint_of(run, noun, knows_outcomes=bool(outcomes.known))
    samples = samples_of(run)
    trusted = run.trusts_judges
    versions = compare_versions(summary, samples, trust_judges=trusted)
    figures = chosen_figures(summary, checks, noun, trust_judges=trusted)
    notes = notes_on(run, figures.figures, samples, noun)
    return Answer(
        noun=noun,
        conversations=summary.conversations,
        verdict=make_verdict(
            checks,
            noun,
            outcomes,
            telling,
            Counter(one.state for one in lost),
            versions,
            endings_of(run),
            undecided_label(run),
            names_field=bool(hint.label),
            is_heard=any(one.key.startswith("audio.") for one in summary.metrics),
        ),
        outcomes=outcomes,
        figures=without_doubtful(figures.figures, notes),
        more_bad=more_bad_text(figures.more_bad),
        more_bad_figures=figures.more_bad,
        notes=(*judge_lines(figures.figures, summary), *notes.lines),
        causes=tuple(telling),
        remaining=tuple(one for one in causes if one not in telling),
        order=ORDERS[ranking.basis],
        worst=tuple(_worst(run, ranking, lost)),
        groups=(groups := groups_apart(summary, noun, samples, versions, trust_judges=trusted)).apart,
        alike=groups.alike,
        not_measured=_not_measured(summary),
        reading="; ".join(filter(None, (reading_text(run.read_report), set_aside_text(run.read_report, examples=1)))),
        broken=_broken(ranking, noun),
        unread=unread_languages(summary, noun),
        sound=" ".join(filter(None, (sound_text(run.read_report), sides_text(run.read_report)))),
        hint=hint.text,
    )


class LostConversation(NamedTuple):
    """A conversation that did not reach what it was for, and what went wrong first."""

    number: int
    id: str
    finding: Symptom
    flow: str
    state: str
    """The state that it got stuck in, or was handed over from; nothing where the log has no states."""
    handed_over: bool
    seconds: float | None
    """When it happened, since the conversation began."""
    quote: str = ""
    """What the user said then, or at last."""


@cached_on_argument
def look_at_lost(run: Run) -> list[LostConversation]:
    """Every lost conversation whose integration held, worst first."""
    return _look_at_lost(run, rank(run).whole)


def _look_at_lost(run: Run, numbers: Sequence[int] | NDArray[np.int64]) -> list[LostConversation]:
    """Those of the given conversations that are lost, and whose integration held."""
    ranking = rank(run)
    lost = OUTCOMES.index(LOST)
    chosen = np.asarray(numbers, dtype=np.int64)
    # A million conversations, of which few are lost: Python sees those alone.
    numbers = [number for number in chosen[ranking.outcome[chosen] == lost].tolist() if number not in ranking.errors]
    by_number: dict[int, LostConversation] = {}
    with connect(run.folder) as connection:
        connection.register("wanted", {"number": np.asarray(numbers, dtype=np.int64)})
        query = f"SELECT number, conversation, body FROM {run.table(CONVERSATIONS)} SEMI JOIN wanted USING (number)"
        rows = connection.execute(query)
        while batch := rows.fetchmany(1000):
            for number, id, body in batch:
                conversation = from_json(body)
                finding = cause_of(conversation)
                by_number[number] = LostConversation(
                    number,
                    id,
                    finding,
                    conversation.dimensions.get("flow", ""),
                    lost_in(conversation) if conversation.contents.has_states else "",
                    terminal_of(conversation) == "escalation" or bool(handed_over_by(conversation)),
                    _seconds(conversation, finding.event),
                    _quote(conversation, finding.event),
                )
    return [by_number[number] for number in numbers]


def lost_in(conversation: Conversation) -> str:
    """The state that it ended in; where that is an escalation, the last one before it."""
    walked = walk(conversation)
    if terminal_of(conversation) != "escalation":
        return walked.last
    escalations = conversation.flow.escalations if conversation.flow is not None else ESCALATIONS
    return next((one.state for one in reversed(walked.visits) if one.state not in escalations), walked.last)


def _seconds(conversation: Conversation, event: int | None) -> float | None:
    """When an event happened, since the conversation began; None where the log has no times."""
    if event is None:
        return None
    for timed in conversation.timeline:
        if timed.seq == event and timed.time is not None:
            return max(0.0, conversation.common(timed.time) - conversation.started)
    return None


def _quote(conversation: Conversation, event: int | None) -> str:
    """The first words of the user after an event; where there are no such words, the last ones."""
    roles = conversation.roles
    spoken = [one for one in conversation.utterances if roles[one.speaker] == USER and conversation.text(one).strip()]
    after = [one for one in spoken if event is not None and one.seq > event] or spoken[-1:]
    words = " ".join(conversation.text(after[0]).split()) if after else ""
    return words if len(words) <= _MOST_QUOTED else f"{words[: _MOST_QUOTED - 1].rstrip()}…"


def _outcomes(ranking: Ranking, lost: Sequence[LostConversation]) -> Outcomes:
    whole = ranking.outcome[ranking.whole]
    handed_over = sum(one.handed_over for one in lost)
    counts = {name: int(np.sum(whole == code)) for code, name in enumerate(OUTCOMES)}
    return Outcomes(
        done=counts[DONE],
        lost=len(lost) - handed_over,
        handed_over=handed_over + counts[HANDED_OVER],
        not_judged=counts[HANDED_OVER],
        unknown=counts[UNKNOWN],
        broken=len(ranking.errors),
        **{name: counts[name] for name in NO_DIALOGUE},
    )


def _causes(run: Run, lost: Sequence[LostConversation], noun: Noun) -> list[Cause]:
    """All lost conversations, by what they have in common; most first, those without a single cause last."""
    by_cause: dict[tuple[str, str], list[LostConversation]] = {}
    for conversation in lost:
        by_cause.setdefault(conversation.finding[:2], []).append(conversation)
    rest = RestOfRun(run)
    opinions = worst_opinions(run, (members[0].number for members in by_cause.values()), noun)
    causes = [
        _cause(rule, subject, members, noun, rest, opinions.get(members[0].number))
        for (rule, subject), members in by_cause.items()
    ]
    return sorted(causes, key=lambda one: (one.rule == NONE, -one.lost, one.rule, one.subject))


def _cause(
    rule: str,
    subject: str,
    members: Sequence[LostConversation],
    noun: Noun,
    rest: RestOfRun,
    opinion: JudgeOpinion | None,
) -> Cause:
    (flow, state), most = Counter((one.flow, one.state) for one in members).most_common(1)[0]
    first = members[0]
    return Cause(
        rule=rule,
        subject=subject,
        sentence=_sentence(rule, subject, noun),
        evidence=_evidence(rule, subject, members, noun, rest),
        quote=_example_words(first),
        opinion=opinion,
        lost=len(members),
        example=Evidence(conversation=first.id, number=first.number, event=first.finding.event, seconds=first.seconds),
        flow=flow,
        state=state,
        in_one_state=bool(state) and most == len(members),
        numbers=tuple(one.number for one in members),
    )


def _sentence(rule: str, subject: str, noun: Noun) -> str:
    """Who does what."""
    people = "callers" if noun == "call" else "users"
    return {
        TOOL_SLOW: f"{people} give up when {subject} is slow",
        TOOL_FAILED: f"{subject} fails, and the {noun}s end there",
        ASKED_AGAIN: f"{subject or 'the agent'} asks for the same thing again and again",
        TALKED_OVER: f"the agent talks over {people} until they give up",
        MISHEARD: f"the recogniser mishears {_PLURALS.get(subject, subject)}",
        LOOP: f"the {noun}s go round between {subject}",
        NO_REPLY: f"the agent leaves {people} without a reply",
        NONE: "no single cause found",
    }[rule]


_PLURALS = {
    "name": "names",
    "place": "places",
    "code": "codes",
    "when": "dates and times",
    "amount": "amounts and numbers",
    "contact": "phone numbers and addresses",
}


def _evidence(rule: str, subject: str, members: Sequence[LostConversation], noun: Noun, rest: RestOfRun) -> str:
    """One line with a number, against the rest where there is one to compare with."""
    amounts = [one.finding.amount for one in members]
    middle, most = median(amounts), max(amounts)
    numbers = frozenset(one.number for one in members)
    if rule == TOOL_SLOW:
        usual = rest.tool_seconds(subject, numbers)
        against = "" if usual is None else f", {usual:.1f} s in the rest"
        return f"median {middle:.1f} s in these {noun}s{against}; up to {most:.1f} s"
    if rule == TALKED_OVER:
        times = rest.times_talked_over(numbers)
        against = "" if times is None else f", {times:g} in the rest"
        return f"median {middle:g} times a {noun}{against}; up to {most:.0f}"
    if rule in (ASKED_AGAIN, LOOP):
        return f"median {middle:g} times a {noun}, up to {most:.0f}"
    return ""


def _example_words(example: LostConversation) -> str:
    """In quotation marks; of a word that was misheard, both sides have their own."""
    if example.finding.rule == MISHEARD:
        return cut_text(example.finding.words, _MOST_WORDS)
    return f"“{example.quote}”" if example.quote else ""


def _worst(run: Run, ranking: Ranking, lost: Sequence[LostConversation]) -> list[WorstConversation]:
    first_without = OUTCOMES.index(NO_DIALOGUE[0])
    numbers = [number for number in ranking.whole[:MOST_WORST].tolist() if ranking.outcome[number] < first_without]
    ids = names(run, numbers)
    reasons = rank_reasons(run, numbers, lost)
    return [
        WorstConversation(
            conversation=ids[number],
            number=number,
            outcome=OUTCOMES[ranking.outcome[number]],  # type: ignore[arg-type]
            reasons=reasons[number].reasons,
        )
        for number in numbers
    ]


class RankReasons(NamedTuple):
    """Why a conversation has its rank, as text, the deciding reason first; and where that can be seen."""

    reasons: tuple[str, ...]
    lost_in: str = ""
    """The state that it was lost in."""
    event: int | None = None
    """The event that shows the first reason."""
    seconds: float | None = None
    """When that was."""


def rank_reasons(
    run: Run, numbers: Sequence[int], lost: Sequence[LostConversation] | None = None
) -> dict[int, RankReasons]:
    """Why the given conversations have their ranks, in the same words for page and terminal, by number."""
    ranking, noun = rank(run), noun_of(run)
    symptoms = {one.number: one for one in (_look_at_lost(run, numbers) if lost is None else lost)}
    reasons: dict[int, RankReasons] = {}
    text_of = cache(partial(reason_of, run.summary, noun=noun, trust_judges=run.trusts_judges))
    for number, because in zip(numbers, ranking.because(numbers), strict=True):
        symptom = symptoms.get(number)
        texts: list[str] = []
        if symptom is not None:
            why = ranking.lost.get(number)
            texts = [*filter(None, [symptom.finding.words])]
            # What happened says more than that the log calls it lost.
            texts += [] if texts and why in (None, "", SAID_BY_LOG) else [f"lost: {why}" if why else "lost"]
        if trial := trial_text(ranking.trials.get(number)):
            texts.append(trial)
        texts += map(text_of, because)
        where = () if symptom is None else (symptom.state, symptom.finding.event, symptom.seconds)
        reasons[number] = RankReasons(tuple(texts[:MOST_REASONS]), *where)
    return reasons


def rank_texts(run: Run, ranked: Sequence[RankedConversation], most: int = 2) -> list[str]:
    """Why each of some conversations has its rank, in one line: what broke, else the first reasons."""
    reasons = rank_reasons(run, [one.number for one in ranked])
    texts = []
    for conversation in ranked:
        broke = [f"the integration broke: {conversation.error}"] if conversation.error else []
        missing = "no metric with a direction was measured" if conversation.behind is None else NO_REASON
        texts.append("; ".join([*broke, *reasons[conversation.number].reasons][:most]) or missing)
    return texts


def reason_of(summary: Summary, behind: RankedMetric, noun: Noun, *, trust_judges: bool = False) -> str:
    """In what a conversation failed, or is behind others, in plain words."""
    headline = behind.headline
    declared = summary.by_key.get(headline.key)
    label = headline.key if declared is None else metric_label(declared, noun)
    value = value_text(behind.value, headline.unit)
    if not trust_judges and is_doubtful(summary, headline.key, headline.judge):
        return f"{label} {value}, by a judge that is not calibrated"
    if behind.failure == "mark" and declared is not None and declared.ten_points is not None:
        mark = declared.ten_points
        value = unrounded_text(behind.value, value_at_mark(mark), headline.unit)
        return f"{label} {value}, {mark_text(mark, headline.unit, headline.better)}"
    if behind.failure == "target":
        return f"{label} {value}, misses its target"
    if behind.failure:
        return f"{label} {value}, the worst there is"
    return f"{label} {value}, worse than {round(behind.share * behind.measured):,} of {behind.measured:,}"


def _not_measured(summary: Summary) -> str:
    """How many metrics have no value, and why."""
    wholes = summary.whole_metrics.values()
    reasons = Counter(reason_text(entry.reason) for entry in wholes if entry is not None)
    if not reasons:
        return ""
    parts = [f"{number:,} {reason}" for reason, number in reasons.most_common(3)]
    rest = reasons.total() - sum(number for _, number in reasons.most_common(3))
    total = counted(len(wholes), "metric")
    return f"{reasons.total():,} of {total} not measured: {', '.join([*parts, *([f'{rest:,} other'] if rest else [])])}"


def _broken(ranking: Ranking, noun: Noun) -> str:
    errors: Mapping[int, str] = ranking.errors
    if not errors:
        return ""
    error, _ = Counter(errors.values()).most_common(1)[0]
    return (
        f"{counted(len(errors), noun)} broke off with an error that says nothing about the agent: {cut_text(error, 60)}"
    )


@cached_on_argument
def noun_of(run: Run) -> Noun:
    """What the conversations of a run are called: calls where all are, chats where none is and people talk."""
    conversations = list(first_conversations(run, _LOOKED_AT))
    # One without a word, such as a call that was not answered, does not say what it is.
    talks = [one for one in conversations if one.utterances] or conversations
    calls = [is_phone_call(one) or (one.recording is not None and one.pipeline is None) for one in talks]
    if conversations and all(calls):
        return "call"
    if not any(calls) and any(one.utterances for one in conversations):
        return "chat"
    return "conversation"
