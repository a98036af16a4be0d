"""What limits the figures of an answer, and what would make it a better one, in a line each."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from convoscope.analysis.answer.model import KeyFigure, Noun
from convoscope.analysis.answer.samples import WAIT, Samples, wait_units
from convoscope.analysis.words import counted, cut_text, name_text, percent_text
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import SECONDS
from convoscope.metrics.latency.response import CLOCKS_DISAGREE
from convoscope.runs.conversations import first_conversations
from convoscope.runs.database import CONVERSATIONS, SCORES, connect, quoted
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.scores.reducers import MEAN_OF_CONVERSATIONS
from convoscope.statistics.summary import Figure
from convoscope.text.lexicon import lexicon
from convoscope.views.fields import LabelSearch, best_proposal
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, LANGUAGE_UNKNOWN
from convoscope.views.timing import span_text
from convoscope.views.user_turns import AT_END, may_speak

GIANT = 0.5
"""Of the turns, calls or items behind a figure, more than one conversation or scenario may be without a word."""
LEAST_CONVERSATIONS = 3
FAR = 20.0
"""A wait of so many medians is far outside."""
LONG = 600.0
HALF_HOUR, NEAR = 1800.0, 60.0
"""Zones of time differ by whole half hours; a wait that is so little more is hardly one."""
LEAST_SHIFTED = 3
MOST_SHIFTED = 0.8
MAX_ID = 40
_BACKWARDS = "time_runs_backwards"
_LISTENS = "no_recogniser"
"""What a metric needs that hears words: without languages of its own, it has those of the recogniser."""
_OF_ANY_SPEECH = ("audio.speech_share", "audio.longest_silence")
"""They are measured of every recording with speech; the speakers need not be known."""
_WITHOUT_SPEECH = {
    "recording_silent": "the recording is silent",
    "too_little_speech": "the recording holds less than 3 s of speech",
    "recording_empty": "the recording is empty",
    "recording_not_readable": "the recording cannot be read",
}


class AnswerNotes(NamedTuple):
    """Up to one line of each kind."""

    lines: tuple[str, ...]
    two_units: bool
    """Times seem to be in seconds here and in milliseconds there: seconds are no figure."""


def notes_on(run: Run, figures: Sequence[KeyFigure], samples: Samples, noun: Noun) -> AnswerNotes:
    """What limits the figures of a run."""
    clocks, units = list(_clocks(run, noun)), []
    if (units_of_waits := wait_units(run.summary, samples)).are_two:
        where = f"In {units_of_waits.long:,} of {counted(units_of_waits.waits, noun)}"
        units = [f"{where} waits are about 1,000 times as long as in the others: their times may be in milliseconds."]
    waits = [] if units else _waits(run, noun)
    giants = (*_giant(run.summary, figures, samples, noun), *_giant_user(samples, noun))
    return AnswerNotes((*_sound(run.summary, noun), *clocks, *units, *waits, *giants), bool(units))


def without_doubtful(figures: Sequence[KeyFigure], notes: AnswerNotes) -> tuple[KeyFigure, ...]:
    """Without seconds where their unit is in doubt, unless they have a target."""
    return tuple(one for one in figures if not notes.two_units or one.unit != SECONDS or one.target)


def _clocks(run: Run, noun: Noun) -> Iterator[str]:
    """Conversations whose waits are unmeasured because the times of user and agent do not agree."""
    wait = next((one for one in run.summary.figures if one.key == WAIT and not one.reduction), None)
    if wait is None:
        return
    total = counted(wait.samples_total, noun)
    if wait.skipped_reasons.get(CLOCKS_DISAGREE):
        with connect(run.folder) as connection:
            rows = connection.execute(
                f"SELECT number, min(detail) FROM {run.table(SCORES)} "
                f"WHERE metric = {quoted(WAIT)} AND reason = {quoted(CLOCKS_DISAGREE)} GROUP BY number"
            ).fetchall()
        (detail, _), *_ = Counter(detail for _, detail in rows).most_common(1)
        where = f"In {len(rows):,} of {total}"
        yield f"{where} the times of user and agent disagree {detail}: waits are not measured there."
    if count := wait.skipped_reasons.get(_BACKWARDS):
        yield f"In {count:,} of {total} replies are dated before what they answer: waits are not measured there."


def _sound(summary: Summary, noun: Noun) -> Iterator[str]:
    """Recordings without speech, or that cannot be read."""
    figures = (one for one in summary.metrics if one.key in _OF_ANY_SPEECH and not one.reduction)
    without = (one for one in summary.not_measured if not set(_OF_ANY_SPEECH).isdisjoint(one.metrics))
    entry = next(figures, None) or next(without, None)
    if entry is not None:
        for reason, words in _WITHOUT_SPEECH.items():
            if count := entry.skipped_reasons.get(reason):
                where = f"In {count:,} of {counted(entry.samples_total, noun)} {words}"
                yield f"{where if entry.samples_total > 1 else words.capitalize()}: nothing is measured of its sound."


def _waits(run: Run, noun: Noun) -> Iterator[str]:
    """Replies that come almost exactly some half hours later; else the longest wait, where it is far outside."""
    figures = {one.reduction: one for one in run.summary.metrics if one.key == WAIT}
    if "" not in figures or "p50" not in figures:
        return
    where = f"metric = {quoted(WAIT)} AND variant = '' AND status = 'measured' AND value >= {LONG}"
    with connect(run.folder) as connection:
        rows = connection.execute(f"SELECT number, value FROM {run.table(SCORES)} WHERE {where}").fetchall()
        if not rows:
            return
        shifted = {number: value for number, value in rows if value >= HALF_HOUR and value % HALF_HOUR <= NEAR}
        if len(shifted) >= LEAST_SHIFTED and len(shifted) >= MOST_SHIFTED * len({number for number, _ in rows}):
            (span, _), *_ = Counter(span_text(value - value % HALF_HOUR) for value in shifted.values()).most_common(1)
            conversations = f"{len(shifted):,} of {counted(run.summary.conversations, noun)}"
            yield f"In {conversations} the agent seems to reply just after {span}: its clock may be ahead by that."
            return
        number, longest = max(rows, key=lambda row: row[1])
        median = figures["p50"].value or 0.0
        if longest >= FAR * max(median, 1.0):
            query = f"SELECT conversation FROM {run.table(CONVERSATIONS)} WHERE number = {int(number)}"
            ((id,),) = connection.execute(query).fetchall()
            yield f"The longest wait, {span_text(longest)}, is in {cut_text(id, MAX_ID)}; the median is {median:.1f} s."


def _giant(summary: Summary, figures: Sequence[KeyFigure], samples: Samples, noun: Noun) -> Iterator[str]:
    """The conversation or scenario that most of the turns behind some figures are of."""
    headlines = {name_text(one): one for one in summary.metrics if not one.reduction}
    by_giant: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for shown in figures:
        figure = headlines.get(shown.name) or headlines.get(shown.name.rpartition(" ")[0])
        share, kind, name = _largest(summary, figure, samples, noun) if figure is not None else (0.0, "", "")
        if share > GIANT:
            by_giant.setdefault((kind, name), []).append((share, shown.label))
    for (kind, name), shares in by_giant.items():
        share, label = shares[0]  # of the most important figure
        more = f" and {counted(len(shares) - 1, 'other figure')}" if len(shares) > 1 else ""
        of_one = f"one {kind}, {cut_text(name, MAX_ID)}"
        yield f"{percent_text(share)} of the values behind “{label}”{more} are of {of_one}."


def _giant_user(samples: Samples, noun: Noun) -> Iterator[str]:
    """One user of many who has half of all conversations."""
    counts = np.bincount(samples.users[samples.users >= 0], minlength=1)
    if np.count_nonzero(counts) >= LEAST_CONVERSATIONS and counts.max() >= GIANT * samples.count:
        name = cut_text(samples.user_names.values[int(np.argmax(counts))], MAX_ID)
        yield f"{counts.max():,} of {counted(samples.count, noun)} are of one user, {name}."


def _largest(summary: Summary, figure: Figure, samples: Samples, noun: Noun) -> tuple[float, str, str]:
    """The share of the largest conversation, else scenario; of figures that pool turns, calls or items."""
    declared = summary.by_key[figure.key]
    sample = samples.of(figure)
    if sample is None or declared.reduce.across == MEAN_OF_CONVERSATIONS.name:
        return 0.0, "", ""
    weights = sample.below
    if np.count_nonzero(weights) < LEAST_CONVERSATIONS:
        return 0.0, "", ""
    largest = int(np.argmax(weights))
    share = float(weights[largest] / weights.sum())
    if share > GIANT:
        return share, noun, samples.ids([largest])[0]
    scenarios = samples.scenarios
    sums = np.bincount(scenarios[scenarios >= 0], weights=weights[scenarios >= 0])
    if np.count_nonzero(sums) < LEAST_CONVERSATIONS:
        return 0.0, "", ""
    first = int(np.argmax(sums))
    dimension = samples.dimension("scenario_id")
    name = dimension.values[dimension.codes[np.flatnonzero(scenarios == first)[0]]]
    return float(sums[first] / weights.sum()), "scenario", name


MOST_CONVERSATIONS = 1_000
"""So many are looked at for a field that says how they ended."""


class Hint(NamedTuple):
    """A line each; "" for none."""

    speech: str = ""
    label: str = ""

    @property
    def text(self) -> str:
        return " ".join(filter(None, self))


def hint_of(run: Run, noun: Noun, *, knows_outcomes: bool) -> Hint:
    """The tool that the agent may speak by, and the field that looks like the outcome where none is known."""
    if knows_outcomes and not _replies_by_tool(run):
        return Hint()
    looks = _first_looks(run)
    first = looks.seen < run.summary.conversations
    label = "" if knows_outcomes else best_proposal(looks.search.proposals(noun, first=first))
    return Hint(_speech_words(looks.tools, noun), label)


class _FirstLooks(NamedTuple):
    """What was seen in the first conversations: how many they are, their fields, the tools that may speak."""

    seen: int
    search: LabelSearch
    tools: Counter[str]


@cached_on_argument
def _first_looks(run: Run) -> _FirstLooks:
    search, seen, tools = LabelSearch(), 0, Counter[str]()
    by_tool = _replies_by_tool(run)
    for conversation in first_conversations(run, MOST_CONVERSATIONS):
        seen += 1
        search.see(conversation)
        if by_tool:
            tools.update({call.name for call in conversation.tool_calls if may_speak(call)})
    return _FirstLooks(seen, search, tools)


@cached_on_argument
def _replies_by_tool(run: Run) -> bool:
    """Whether turns are without a reply, and a tool looks as if it gave one."""
    reason = AT_END["by_tool"]
    query = f"SELECT 1 FROM {run.table(SCORES)} WHERE metric = 'agent.unanswered_turns' AND reason = '{reason}' LIMIT 1"
    with connect(run.folder) as connection:
        return bool(connection.execute(query).fetchall())


def _speech_words(tools: Counter[str], noun: Noun) -> str:
    if not tools:
        return ""
    (name, count), *_ = tools.most_common(1)
    option = f"--speech-tool {shlex.quote(name)}"
    return f"The agent may speak by the tool `{name}` ({counted(count, noun)}): {option} reads its texts as replies."


def unread_languages(summary: Summary, noun: Noun) -> str:
    """How many conversations are in languages that how many figures do not read; nothing where all are read."""
    unread: dict[tuple[str, ...], list[int]] = defaultdict(list)
    unknown: list[int] = []
    without: dict[str, Mapping[str, int]] = {}
    for entry in summary.not_measured:
        without |= dict.fromkeys(entry.metrics, entry.skipped_reasons)
    without |= {figure.key: figure.skipped_reasons for figure in summary.metrics if not figure.reduction}
    for key, reasons in without.items():
        if count := reasons.get(LANGUAGE_NOT_SUPPORTED):
            declared = summary.by_key[key]
            of_recogniser = (_LISTENS,) if _LISTENS in declared.needs else ()
            unread[tuple(declared.languages) or of_recogniser].append(count)
        if count := reasons.get(LANGUAGE_UNKNOWN):
            unknown.append(count)
    parts = []
    for languages, counts in sorted(unread.items(), key=lambda one: -len(one[0])):
        which = f"not in {_names(languages)}" if languages else "written without blanks between words"
        which = "in a language that the recogniser does not know" if languages == (_LISTENS,) else which
        is_are = "is" if max(counts) == 1 else "are"
        parts.append(f"{max(counts):,} of {counted(summary.conversations, noun)} {is_are} {which}: {_left_out(counts)}")
    if unknown:
        parts.append(f"the language of {counted(max(unknown), noun)} is not known: {_left_out(unknown)}")
    return "; ".join(parts)


def _left_out(counts: Sequence[int]) -> str:
    return f"{counted(len(counts), 'figure')} {'does' if len(counts) == 1 else 'do'} not read them"


def _names(languages: tuple[str, ...]) -> str:
    names = sorted(known.name if (known := lexicon(code)) is not None else code for code in languages)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
