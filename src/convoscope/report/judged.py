"""What judges say of one conversation, for page and terminal: score, verdict, quote, reasons, repeats, judge, cost.

A verdict is passes, fails, cannot tell, no answer, or none at all where the judge is not calibrated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.calibration import scores_by_judge
from convoscope.analysis.labelling import disagreement, repeats_of, wavering
from convoscope.analysis.words import NOTHING, cut_text, first_of, reason_text
from convoscope.conversation.lazy import cached_on_argument
from convoscope.judging.quotes import found_quote
from convoscope.judging.rubrics import Rubric
from convoscope.metrics.declaration import CONVERSATION, ITEM, TURN
from convoscope.metrics.judged_calls import EVIDENCE_NOT_FOUND
from convoscope.report.panels import ListFacet, facet
from convoscope.report.story import Story, TimelineEntry
from convoscope.runs.conversations import KeptConversation, ReducedScore
from convoscope.runs.database import CONVERSATIONS, connect
from convoscope.runs.reliability import JudgeReliability, has_judges, judged_metrics, reliability
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.scores.observation import COMPUTED, MEASURED, NOT_APPLICABLE, Observation
from convoscope.statistics.panels import REPEATS_STRADDLE
from convoscope.views.items import Subject

_PANEL = "panel:"
_MOST_QUOTES = 3
_MOST_ITEMS = 12
_LONGEST = 600
_TAKEN = {"input_tokens", "output_tokens", "cost", "seconds"}
_AGGREGATIONS = {
    "median": "the median",
    "mean": "the mean",
    "weighted_mean": "the weighted mean",
    "majority_vote": "what more than half of the judges say",
    "consensus": "the lowest, if all judges let it pass",
    "min": "the lowest",
    "max": "the highest",
}
UNFOUNDED = "no rating: these words are not where the judge says they are"
CANNOT_TELL = "cannot tell: the repeats are on both sides of the mark"


class JudgeQuote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Words that a judge rests its rating on, where they are, and why it says so."""

    text: str = ""
    reason: str = ""
    seq: int = -1
    """The event that holds the words; -1 where they are in none."""
    where: str = ""
    """`0:31`, `turn 3`."""
    judge: str = ""
    """Named where there are several."""
    exact: str = ""
    """The words as the log has them."""
    rating: str = ""
    """What the judge gives, `1 of 3`."""


class JudgeDots(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ratings that one judge gave, in percent of the scale."""

    judge: str
    dots: list[float]
    rating: str


class JudgedScore(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What judges say of a conversation by one rubric."""

    label: str
    value: str
    verdict: str
    tone: str = ""
    """`bad` and `good` only where the judge is calibrated."""
    low: str = ""
    high: str = ""
    mark: float | None = None
    """The pass mark in percent of the scale."""
    mark_text: str = ""
    judges: list[JudgeDots] = []
    asked: str = ""
    quotes: list[JudgeQuote] = []
    by: list[str] = []
    """Who judged, how far they agree with people, and what it took."""


class JudgedCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All opinions on one conversation."""

    line: str
    scores: list[JudgedScore]
    addressed: list[JudgeQuote] = []
    """Where the log speaks to the judge; the judges did not get that text."""


class _Voice(NamedTuple):
    """What one judge says by one rubric: of the whole, and of each subject."""

    reduced: ReducedScore
    observations: Sequence[Observation]

    @property
    def name(self) -> str:
        return self.reduced.judge.partition("@")[0]


class JudgedMaker:
    """Makes what judges say of the conversations of one run."""

    def __init__(self, summary: Summary, *, trust_judges: bool = False) -> None:
        self._trust = trust_judges
        self._rubrics = {name: rubric for name, rubric in judged_metrics(summary).items() if name in summary.by_key}
        self._known: dict[tuple[str, str], JudgeReliability] = {}
        for figure in summary.figures:
            known = reliability(summary, figure) if figure.key in self._rubrics else None
            if known is not None:
                self._known[figure.key, figure.judge] = known

    def is_judged(self, metric: str, judge: str) -> bool:
        """Whether a score is shown among the opinions."""
        return metric in self._rubrics and judge not in ("", COMPUTED)

    def has_opinion(self, metric: str, judge: str) -> bool:
        """Whether a score is an opinion, or a part of one: neither is fine or bad by itself."""
        return any(self.is_judged(name, judge) for name in (metric, metric.rpartition(".")[0]))

    def of(self, record: KeptConversation, story: Story) -> JudgedCall | None:
        """The opinions on a conversation; None where no judge was asked about it. The deciding one comes first."""
        voices: dict[str, list[_Voice]] = {}
        for reduced in record.reduced:
            if self.is_judged(reduced.key, reduced.judge) and reduced.status != NOT_APPLICABLE:
                observations = [
                    score.observation
                    for score in record.scores
                    if (score.metric, score.judge) == (reduced.metric, reduced.judge)
                ]
                voices.setdefault(reduced.key, []).append(_Voice(reduced, observations))
        if not voices:
            return None
        made = [(metric, self._score(self._rubrics[metric], each, story)) for metric, each in voices.items()]
        scores = [score for _, score in sorted(made, key=lambda pair: (pair[1].tone != "bad", pair[1].tone == ""))]
        costs = [
            cost
            for metric, each in voices.items()
            for voice in each
            if (cost := _taken(self._rubrics[metric], voice, "cost")) is not None
        ]
        opinions = f"{len(scores)} opinion{'' if len(scores) == 1 else 's'}"
        line = f"{opinions}, ${sum(costs):.3f}" if costs else opinions
        return JudgedCall(line=line, scores=scores, addressed=list(_addressed(voices, story)))

    def _score(self, rubric: Rubric, voices: Sequence[_Voice], story: Story) -> JudgedScore:
        panel = next((voice for voice in voices if voice.name.startswith(_PANEL)), None)
        members = [voice for voice in voices if voice is not panel]
        first = panel or members[0]
        low, high = _scale(rubric, members)
        has_mark = (low, high) == (rubric.low, rubric.high)
        asked = rubric._replace(low=low, high=high)
        rating = None if first.reduced.value is None else asked.rating(first.reduced.value)
        verdict, tone = self._verdict(rubric, first, members, rating if has_mark else None)
        return JudgedScore(
            label=rubric.title[:1].upper() + rubric.title[1:],
            value=NOTHING
            if first.reduced.value is None or verdict == CANNOT_TELL
            else _rating_text(asked, first.reduced.value),
            verdict=verdict,
            tone=tone,
            low=f"{low:g}",
            high=f"{high:g}",
            mark=_percent(rubric.passes_at, low, high) if has_mark else None,
            mark_text=f"mark {rubric.passes_at:g}" if has_mark else "",
            judges=[_dots(voice, asked) for voice in members],
            asked="; ".join([*_rated(members), *_asked(rubric, members), *_by_item(asked, members), *_unseen(members)]),
            quotes=list(_quotes(members, story, asked)),
            by=[self._by(rubric, voice) for voice in (*members, *([panel] if panel is not None else []))],
        )

    def _verdict(
        self, rubric: Rubric, first: _Voice, members: Sequence[_Voice], rating: float | None
    ) -> tuple[str, str]:
        reduced = first.reduced
        scores = [{voice.name: one for voice in members for one in voice.observations if not one.subject.id}]
        if any(wavering(rubric, one) for one in scores):
            return CANNOT_TELL, ""
        if reduced.value is None:
            detail = f": {cut_text(reduced.detail, 160)}" if reduced.detail else ""
            return f"no answer: {reason_text(reduced.reason)}{detail}", ""
        known = self._known.get((reduced.key, reduced.judge))
        if known is not None and not known.is_reliable and not self._trust:
            return known.text, ""
        if rating is None:
            return "", ""
        passes = rubric.passes(rating)
        spread = disagreement(rubric, scores[0])
        values = sorted(one.reduced.value for one in members if one.reduced.value is not None)
        ends = [f"{rubric.rating(value):.3g}" for value in (values[0], values[-1])]
        apart = f", but the panel disagrees: {ends[0]} to {ends[1]}" if spread and len(members) > 1 else ""
        return f"{'passes' if passes else 'fails'}, the mark is {rubric.passes_at:g}{apart}", (
            "good" if passes else "bad"
        )

    def _by(self, rubric: Rubric, voice: _Voice) -> str:
        """`openai/tiny@1a2b3c4d: κ 0.61 (0.48 to 0.72), 69 labels; $0.0040, 2.1 s`."""
        known = self._known.get((voice.reduced.key, voice.reduced.judge))
        cost, seconds = _taken(rubric, voice, "cost"), _taken(rubric, voice, "seconds")
        tokens = (_taken(rubric, voice, "input_tokens") or 0) + (_taken(rubric, voice, "output_tokens") or 0)
        taken = [
            f"${cost:.4f}" if cost is not None else f"{tokens:,.0f} tokens" if tokens else "",
            f"{seconds:.1f} s" if seconds is not None else "",
            "answered at the second try" if _details(voice).get("repaired") else "",
            "rates its own words" if _details(voice).get("own_words") else "",
            "yes/no questions, without a quote" if _details(voice).get("evidence") == "none" else "",
        ]
        parts = [known.text if known is not None else "", ", ".join(filter(None, taken))]
        name = _panel_text(voice) if voice.name.startswith(_PANEL) else voice.reduced.judge
        return f"{name}: {'; '.join(filter(None, parts))}" if any(parts) else name


def _panel_text(panel: _Voice) -> str:
    """`the panel's score is the median`, as its rule is; a panel without any value has none to say."""
    rule = _AGGREGATIONS.get(str(_details(panel).get("aggregation")), "")
    return f"the panel's score is {rule}" if rule else "the panel"


def _scale(rubric: Rubric, voices: Sequence[_Voice]) -> tuple[float, float]:
    """The scale that was asked for: a rubric of the user's own may have another."""
    for voice in voices:
        scale = _details(voice).get("scale")
        if isinstance(scale, list) and len(scale) == 2:
            return scale[0], scale[1]
    return rubric.low, rubric.high


def _details(voice: _Voice) -> Mapping[str, Any]:
    """What was kept of the first answer."""
    return next((one.details for one in voice.observations if one.details), {})


def _taken(rubric: Rubric, voice: _Voice, name: str) -> float | None:
    """What all answers took; None where that of one is unknown. Turns that one answer rates share what it took.

    Details of judges that are not ours may hold anything.
    """
    answers = [one.details for one in voice.observations if (one.details or {}).keys() & _TAKEN]
    values = [(details or {}).get(name) for details in (answers[:1] if rubric.is_by_turn else answers)]
    amounts = [float(value) for value in values if isinstance(value, int | float)]
    return fsum(amounts) if amounts and len(amounts) == len(values) else None


def _rating_text(rubric: Rubric, value: float) -> str:
    """`2 of 3`, of the value of a score."""
    return f"{rubric.rating(value):.3g} of {rubric.high:g}"


def _percent(rating: float, low: float, high: float) -> float:
    return round(100 * (rating - low) / (high - low), 2)


def _dots(voice: _Voice, rubric: Rubric) -> JudgeDots:
    """The repeats, else one dot for each turn, else one."""
    rated = [one for one in voice.observations if one.value is not None or one.reason == REPEATS_STRADDLE]
    repeats = (rated[0].details or {}).get("repeats") if len(rated) == 1 else None
    values = repeats if isinstance(repeats, list) else [one.value for one in rated]
    value = voice.reduced.value
    rating = NOTHING if value is None else f"{rubric.rating(value):.3g}"
    dots = [_percent(rubric.rating(one), rubric.low, rubric.high) for one in values if isinstance(one, int | float)]
    return JudgeDots(judge=voice.name, dots=dots, rating=rating)


def _rated(members: Sequence[_Voice]) -> Iterator[str]:
    """`the summary is “The customer called.”`, where what is rated is not in the conversation."""
    if isinstance(summary := _details(members[0]).get("summary"), str):
        yield f"the summary is “{cut_text(summary, _LONGEST)}”"


def _asked(rubric: Rubric, members: Sequence[_Voice]) -> Iterator[str]:
    """`asked 3 times: 2, 2, 1`."""
    for voice in members:
        whole = [one for one in voice.observations if not one.subject.id]
        repeats = repeats_of(rubric, whole[0]) if whole else []
        if repeats:
            name = f"{voice.name} " if len(members) > 1 else ""
            yield f"{name}asked {len(repeats)} times: {', '.join(f'{one:.3g}' for one in repeats)}"


def _unseen(members: Sequence[_Voice]) -> Iterator[str]:
    """`2 of 10 without a verdict: 0.70 to 0.90`, of a list that is not whole; `9 of 10 undecided`."""
    for voice in members:
        notes = [
            str(details[name])
            for one in voice.observations
            if (details := one.details or {}) and one.value is not None
            for name in ("without_verdict", "undecided")
            if name in details
        ]
        if notes:
            name = f"{voice.name} " if len(members) > 1 else ""
            yield f"{name}{first_of(notes, _MOST_ITEMS)}"


def _by_item(rubric: Rubric, members: Sequence[_Voice]) -> Iterator[str]:
    """`item t1: 10, item t2: ·`, of a conversation with several items."""
    for voice in members:
        items = [one for one in voice.observations if one.subject.kind == ITEM]
        if len(items) > 1:
            name = f"{voice.name} " if len(members) > 1 else ""
            ratings = (NOTHING if one.value is None else f"{rubric.rating(one.value):.3g}" for one in items)
            named = [
                f"item {cut_text(one.subject.id, 40)}: {rating}" for one, rating in zip(items, ratings, strict=True)
            ]
            yield f"{name}{first_of(named, _MOST_ITEMS)}"


def _quotes(members: Sequence[_Voice], story: Story, rubric: Rubric) -> Iterator[JudgeQuote]:
    """What the ratings rest on, the worst first."""
    for voice in members:
        rated = [one for one in voice.observations if one.details and one.details.keys() & {"quote", "reasoning"}]
        rated.sort(key=lambda one: 1.0 if one.value is None else one.value)
        for observation in rated[:_MOST_QUOTES]:
            details = observation.details or {}
            quote, reason = (str(details.get(name) or "") for name in ("quote", "reasoning"))
            if observation.value == rubric.value(rubric.high) and not quote:
                continue
            if observation.reason == EVIDENCE_NOT_FOUND:
                reason = UNFOUNDED
            turn = observation.subject.id if observation.subject.kind == TURN else ""
            entry, exact = _quoted(quote, turn, story)
            yield JudgeQuote(
                text=cut_text(quote, _LONGEST),
                reason=cut_text(reason, _LONGEST),
                seq=-1 if entry is None else entry.seq,
                where=_where(entry, observation.subject),
                judge=voice.name if len(members) > 1 else "",
                exact=exact,
                rating="" if observation.value is None else _rating_text(rubric, observation.value),
            )


def _quoted(quote: str, turn: str, story: Story) -> tuple[TimelineEntry | None, str]:
    """The event that holds the words, in the turn that was rated where one was, and the words as they are there."""
    turns = [one for one in story.turns if not turn or str(one.turn) == turn] or list(story.turns)
    for entry in (entry for one in turns for entry in one.entries):
        texts = [version.text for version in entry.readings] or [field.text for field in entry.fields]
        for text in texts:
            if exact := found_quote(quote, text):
                return entry, exact
    return None, ""


def _where(entry: TimelineEntry | None, subject: Subject) -> str:
    if entry is not None and entry.at is not None:
        return f"{int(entry.at // 60)}:{int(entry.at % 60):02d}"
    return f"{subject.kind} {cut_text(subject.id, 40)}" if subject.id and subject.kind != CONVERSATION else ""


def _addressed(voices: Mapping[str, Sequence[_Voice]], story: Story) -> Iterator[JudgeQuote]:
    """The turns with text that the judges did not get, because it speaks to them."""
    withheld = {turn for each in voices.values() for voice in each for turn in _details(voice).get("withheld") or ()}
    for number in sorted(withheld):
        entries = next((one.entries for one in story.turns if one.turn == number), ())
        entry = entries[0] if entries else None
        where = f"turn {number}" if number >= 0 else "what the agent was given"
        yield JudgeQuote(seq=-1 if entry is None else entry.seq, where=where)


class JudgeSigns(NamedTuple):
    """The conversations of a run, by number, whose judges are not of one mind."""

    disagreeing: frozenset[int]
    wavering: frozenset[int]
    silent: frozenset[int]


@cached_on_argument
def judge_signs(run: Run) -> JudgeSigns:
    """Where judges disagree, where the repeats of one are on both sides of the mark, where one has no answer."""
    with connect(run.folder) as connection:
        rows = connection.execute(f"SELECT conversation, number FROM {run.table(CONVERSATIONS)}").fetchall()
    numbers = dict(rows)
    signs: tuple[set[int], ...] = (set(), set(), set())
    for rubric in judged_metrics(run.summary).values():
        by_subject: dict[tuple[str, str], dict[str, Observation]] = {}
        for judge, scores in scores_by_judge(run, rubric).items():
            for key, observation in scores.items():
                if not judge.startswith(_PANEL):
                    by_subject.setdefault(key, {})[judge] = observation
        for (conversation, _), each in by_subject.items():
            is_silent = any(
                one.status not in (MEASURED, NOT_APPLICABLE) and one.reason != REPEATS_STRADDLE for one in each.values()
            )
            holds = (disagreement(rubric, each), wavering(rubric, each), is_silent)
            for sign in (sign for sign, is_there in zip(signs, holds, strict=True) if is_there):
                sign.add(numbers[conversation])
    return JudgeSigns(*map(frozenset, signs))


@facet
def disagreements(run: Run) -> ListFacet | None:
    """Conversations that the judges of a panel rate differently."""
    return _marked(run, "judges", "Judges", {"disagree": "Judges disagree"}, 0)


@facet
def waverings(run: Run) -> ListFacet | None:
    """Conversations that one judge both passes and fails."""
    return _marked(run, "repeats", "Asked again", {"waver": "Repeats straddle the mark"}, 1)


@facet
def silences(run: Run) -> ListFacet | None:
    """Conversations that a judge gave no usable answer about."""
    return _marked(run, "answers", "Answers of judges", {"none": "No answer"}, 2)


def _marked(run: Run, key: str, title: str, labels: Mapping[str, str], sign: int) -> ListFacet | None:
    numbers = judge_signs(run)[sign] if has_judges(run.summary) else ()
    (value,) = labels
    return ListFacet(key=key, title=title, values=dict.fromkeys(numbers, value), labels=labels) if numbers else None
