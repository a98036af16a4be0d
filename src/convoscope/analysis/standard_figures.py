"""The figures of the standard MultiWOZ evaluator over a run: those of its scores, and those of all texts together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from convoscope.analysis.words import reason_text
from convoscope.conversation import Conversation, SlotSpan
from convoscope.conversation.turns import Turn
from convoscope.errors import UsageError
from convoscope.metrics.dialogue.frames import GOLD, PREDICTED
from convoscope.metrics.dialogue.tomiinek.declared import TOMIINEK, predicted_turns
from convoscope.metrics.dialogue.tomiinek.evaluate import Richness, corpus_bleu, richness
from convoscope.metrics.dialogue.tomiinek.matching import response_form
from convoscope.runs.run import Run

_SCORED = {
    "inform": ("dialogue.inform", ""),
    "success": ("dialogue.success", ""),
    "joint goal accuracy": ("dialogue.jga", ""),
    "slot F1": ("dialogue.slot_f1", ""),
    "slot precision": ("dialogue.slot_f1", "precision"),
    "slot recall": ("dialogue.slot_f1", "recall"),
}
NO_RESPONSE = "no response was predicted"
NOT_SCORED = "not scored: `convoscope score … --metrics tomiinek`"


class StandardFigure(NamedTuple):
    """A figure as the standard evaluator prints it, shares in percent; or why it is missing."""

    name: str
    value: float | None
    reason: str = ""


class PredictedShare(NamedTuple):
    """How much was predicted. What is missing scores as empty."""

    dialogues: int
    expected_dialogues: int
    turns: int
    expected_turns: int
    without: tuple[str, ...]
    """The dialogues without any prediction."""


class StandardReport(NamedTuple):
    """All figures, and how much of the dialogues they rest on."""

    figures: list[StandardFigure]
    coverage: PredictedShare


class _Texts:
    """The responses of all dialogues, what people said instead, and what was predicted at all."""

    def __init__(self) -> None:
        self.responses: list[str] = []
        self.references: list[str] = []
        self.with_placeholders: list[str] = []
        self.dialogues = self.predicted = 0
        self.without: list[str] = []

    def add(self, conversation: Conversation) -> None:
        self.dialogues += 1
        spans = {frame.seq: frame.spans for frame in conversation.frames if frame.origin == GOLD and frame.spans}
        turns = [turn for turn in conversation.turns if turn.user]
        predicted = _predicted(conversation, turns)
        self.predicted += predicted
        if not predicted:
            self.without.append(conversation.id)
        for turn, prediction in zip(turns, predicted_turns(conversation), strict=True):
            self.responses.append(response_form(prediction["response"]))
            self.references.append(response_form(turn.assistant_text))
            pieces = [_with_placeholders(one.meant(), spans.get(one.seq, ())) for one in turn.assistant]
            self.with_placeholders.append(response_form(" ".join(pieces)))


def _predicted(conversation: Conversation, turns: Sequence[Turn]) -> int:
    """How many turns have a prediction, be it one that failed."""
    frames = [frame for frame in conversation.frames if frame.origin == PREDICTED]
    predicted, missing = {frame.seq for frame in frames}, {frame.seq for frame in frames if frame.failure == _MISSING}
    seqs = [({one.seq for one in turn.user}, {one.seq for one in turn.assistant}) for turn in turns]
    return sum(not predicted.isdisjoint(user | agent) and missing.isdisjoint(user) for user, agent in seqs)


def _with_placeholders(text: str, spans: Iterable[SlotSpan]) -> str:
    """A text with the names of slots in place of their values, where the annotation says they stand."""
    end = len(text)
    for span in sorted((one for one in spans if one.start is not None), key=lambda one: -(one.start or 0)):
        if span.start is not None and span.end is not None and span.end <= end:  # none inside another
            text = f"{text[: span.start]}[{span.slot}]{text[span.end :]}"
            end = span.start
    return text


def standard_report(run: Run) -> StandardReport:
    """What the standard evaluator would say of a run that was scored with variant `tomiinek`."""
    texts = _Texts()
    for conversation in run.conversations():
        texts.add(conversation)
    scored = [_scored(run, name, *wanted) for name, wanted in _SCORED.items()]
    bleu = _bleu(texts)
    rich = _rich(richness(texts.responses), "" if any(texts.responses) else NO_RESPONSE)
    return StandardReport(
        [*scored[:2], bleu, _combined(scored[0], scored[1], bleu), *scored[2:], *rich],
        PredictedShare(
            texts.dialogues - len(texts.without),
            texts.dialogues,
            texts.predicted,
            len(texts.responses),
            tuple(texts.without),
        ),
    )


def _scored(run: Run, name: str, metric: str, reduction: str) -> StandardFigure:
    """A figure of the run, in percent."""
    for figure in run.summary.figures:
        if (figure.metric, figure.variant, figure.reduction) == (metric, TOMIINEK, reduction):
            if figure.value is None:
                return StandardFigure(name, None, reason_text(figure.reason))
            return StandardFigure(name, 100 * figure.value)
    return StandardFigure(name, None, NOT_SCORED)


def _bleu(texts: _Texts) -> StandardFigure:
    """Against what people said, with placeholders where the predictions have any."""
    if not any(texts.responses):
        return StandardFigure("BLEU", None, NO_RESPONSE)
    has_placeholders = any(_PLACEHOLDER.search(response) for response in texts.responses)
    try:
        value = corpus_bleu(texts.responses, texts.with_placeholders if has_placeholders else texts.references)
    except UsageError as error:
        return StandardFigure("BLEU", None, f"{error.message}: {error.hint}")
    return StandardFigure("BLEU", value)


def _combined(inform: StandardFigure, success: StandardFigure, bleu: StandardFigure) -> StandardFigure:
    parts = (inform, success, bleu)
    if inform.value is None or success.value is None or bleu.value is None:
        lost = ", ".join(one.name for one in parts if one.value is None)
        return StandardFigure("combined", None, f"there is no {lost}")
    return StandardFigure("combined", bleu.value + (inform.value + success.value) / 2)


def _rich(figures: Richness, reason: str) -> list[StandardFigure]:
    """How varied the responses are, over all of them; or why that is unknown."""
    named = {
        "tokens in a response": figures.mean_length,
        "entropy": figures.entropy,
        "conditional entropy": figures.conditional_entropy,
        "MSTTR-50": figures.msttr,
        "distinct unigrams": figures.distinct_unigrams,
        "distinct bigrams": figures.distinct_bigrams,
        "distinct trigrams": figures.distinct_trigrams,
    }
    if reason:
        return [StandardFigure(name, None, reason) for name in named]
    return [
        StandardFigure(name, value, "" if value is not None else "too little text") for name, value in named.items()
    ]


_MISSING = "missing"
_PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")
"""Responses are in lower case, but for placeholders."""
