"""The answer of a run: how good, how sure, what breaks first, and which conversation to open.

Made once from a run, and printed by the terminal, the page, Markdown, JSON and Python in the same words.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from convoscope.metrics.declaration import Better
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.summary import DeclaredMetric

Tone = Literal["plain", "bad", "good"]
Noun = Literal["call", "chat", "conversation"]
Verdict = Literal["", "met", "missed", "too close", "undetermined"]


def metric_label(declared: DeclaredMetric, noun: Noun) -> str:
    """What a metric is called in an answer: in plain words."""
    if declared.metric == OUTCOME_METRIC:
        return f"{noun}s that {declared.label}"
    name = declared.metric.partition(".")[2] or declared.metric
    return declared.label or name.replace("_", " ").replace(".", ", ").replace("@", ", ")


def sentence_start(text: str) -> str:
    """As a sentence begins; a name of the log stays as it is."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]


class Clause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence of the verdict: the words that carry it, and the rest of the sentence."""

    lead: str
    rest: str = ""
    tone: Tone = "plain"
    """Of the rest: missed or worse is bad, met or better is good."""

    @property
    def text(self) -> str:
        return f"{self.lead}{self.rest}"


class Outcomes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of the conversations; all but `not_judged` add up to all of them."""

    done: int = 0
    lost: int = 0
    """Without those handed over."""
    handed_over: int = 0
    """Put through to a person. By label, log or flow they are lost, too, but for `not_judged`."""
    not_judged: int = 0
    """Of those handed over: nothing says whether that is a loss."""
    unknown: int = 0
    broken: int = 0
    """The integration broke: says nothing about the agent."""
    no_user_speech: int = 0
    """The user never said a word. These and the next two are in no average."""
    voicemail: int = 0
    ivr: int = 0

    @property
    def all_lost(self) -> int:
        return self.lost + self.handed_over - self.not_judged

    @property
    def no_dialogue(self) -> int:
        """No user talked with the agent."""
        return self.no_user_speech + self.voicemail + self.ivr

    @property
    def known(self) -> int:
        return self.done + self.all_lost

    @property
    def total(self) -> int:
        return self.done + self.lost + self.handed_over + self.unknown + self.broken + self.no_dialogue


class KeyFigure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the few figures that matter most."""

    name: str
    """As in the summary: metric, variant, reduction, judge."""
    label: str
    """In plain words."""
    unit: str
    better: Better
    value: float
    low: float | None = None
    high: float | None = None
    n: int
    coverage: float
    """Of what should have a value, the share that has one: the smaller of conversations and what is observed."""
    target: str = ""
    """`≥ 80 %`."""
    verdict: Verdict = ""
    """Whether the whole interval lies on one side of the target."""
    met: bool | None = None
    """Whether the value itself is on the right side of it, which decides how a command ends."""
    passes: bool | None = None
    """Of ten points, whether the value passes its mark; None where the metric has none."""
    bad: bool = False
    """A target or a pass mark is missed, or half or more of it went wrong."""
    remark: str = ""
    """What to know of it without a target: the limit that it misses, that it is notable, how few clusters it has."""
    judge: str = ""
    """Who gave the scores behind it; empty where they are computed."""
    calibration: str = ""
    """How far that judge agrees with people: `κ 0.61 (0.48 to 0.72), 69 labels`, `not calibrated`."""

    @property
    def verdict_text(self) -> str:
        """`met`, `missed, too close`, `met, no interval`, `undetermined`: how a command ends, and how sure that is."""
        if self.verdict != "too close":
            return self.verdict
        has_interval = self.low is not None or self.high is not None
        return f"{'met' if self.met else 'missed'}, {'too close' if has_interval else 'no interval'}"


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation that shows something, and where in it."""

    conversation: str
    number: int
    event: int | None = None
    """The event of its timeline to look at."""
    seconds: float | None = None
    """Since the conversation began."""


class JudgeOpinion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a judge says of one conversation: its words, which are not checked, and who it is."""

    judge: str
    calibration: str
    """How far it agrees with people: `not calibrated`, `κ 0.61 (0.48 to 0.72), 69 labels`."""
    of: str
    """What it rated."""
    rating: str
    """`1 of 3`."""
    where: str = ""
    """`turn 3`, of a rating that is not of the whole conversation."""
    reason: str = ""
    quote: str = ""
    """The words of the conversation that it rests on."""

    @property
    def text(self) -> str:
        """`judge openai/tiny, not calibrated, gives 1 of 3 (faithfulness): “No source.” It quotes “The fee is …”`"""
        words = [f"“{self.reason}”"] if self.reason else []
        words += [f"It quotes “{self.quote}”"] if self.quote else []
        return f"{self.lead}: {' '.join(words)}"

    @property
    def lead(self) -> str:
        """Who says it, how far they can be believed, and what they rate."""
        what = f"{self.of}, {self.where}" if self.where else self.of
        return f"judge {self.judge}, {self.calibration}, gives {self.rating} ({what})"


class Cause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What lost conversations have in common. Every lost conversation is under one of them."""

    rule: str
    """`tool`, `asked_again`, `talked_over`, `misheard`, `loop`, `no_reply`; `none` where no single cause was found."""
    subject: str = ""
    """The tool, the state, the kind of thing misheard; what tells two causes of one rule apart."""
    sentence: str
    """Who does what."""
    evidence: str = ""
    """One line with a number: of these conversations, against the rest where that is known."""
    quote: str = ""
    """The user's own words in the example, or what the agent heard in their place."""
    opinion: JudgeOpinion | None = None
    """What a judge says of the example."""
    lost: int
    example: Evidence | None = None
    flow: str = ""
    state: str = ""
    """Where most of these conversations ended."""
    in_one_state: bool = False
    """All of them ended there."""
    numbers: tuple[int, ...] = ()
    """The conversations, by their number in the run, worst first."""


class WorstConversation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation of the list, by `Answer.order`."""

    conversation: str
    number: int
    outcome: Literal["lost", "handed_over", "unknown", "done"]
    reasons: tuple[str, ...]
    """In words, the deciding one first; a value that passes is no reason."""


class GroupApart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group that differs from the rest after correction."""

    by: dict[str, str]
    conversations: int
    sentence: str
    worse: bool
    figure: str
    """The name of the figure in which it differs."""
    in_verdict: bool = False
    """The verdict says it, too."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person wants to know of a run."""

    noun: Noun
    conversations: int
    verdict: tuple[Clause, ...]
    outcomes: Outcomes
    figures: tuple[KeyFigure, ...]
    more_bad: str = ""
    """The bad figures that have no line, in one; nothing where all have."""
    more_bad_figures: tuple[KeyFigure, ...] = ()
    """The same, each by itself."""
    notes: tuple[str, ...] = ()
    """What limits these figures: clocks that disagree, one giant conversation, a wait far outside."""
    causes: tuple[Cause, ...]
    """Most lost first, at most five; `remaining` holds the others."""
    remaining: tuple[Cause, ...] = ()
    """Causes of few conversations, and of those without a single cause: with `causes`, all that is lost."""
    order: str = "worst first"
    """What the order of conversations is called: `roughest first` where neither outcomes nor trials lead it."""
    worst: tuple[WorstConversation, ...] = ()
    groups: tuple[GroupApart, ...] = ()
    alike: str = ""
    """The groups that are like the rest, in one sentence."""
    not_measured: str = ""
    """One line with counts."""
    reading: str = ""
    """What reading did, in one line."""
    broken: str = ""
    """Broken integrations, in one line; they are no cause."""
    unread: str = ""
    """How many conversations are in languages that some figures do not read, in one line."""
    sound: str = ""
    """Which recordings were not measured, and why; what says who is on which channel."""
    hint: str = ""
    """What would make the answer a better one."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know beside the figures, whether or not there are any, in a line each."""
        return tuple(filter(None, (self.more_bad, *self.notes, self.hint, self.broken, self.unread, self.sound)))

    @property
    def headline(self) -> str:
        """The verdict as text."""
        return " ".join(clause.text for clause in self.verdict)
