"""Where dialogue states go wrong, and the figures of the standard MultiWOZ evaluator over a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from convoscope.analysis.words import reason_text
from convoscope.conversation import Conversation, SlotSpan
from convoscope.conversation.turns import Turn
from convoscope.errors import UsageError
from convoscope.metrics.dialogue.frames import GOLD, PREDICTED, dialogue_turns, has_predictions, has_truth
from convoscope.metrics.dialogue.tomiinek.declared import TOMIINEK, predicted_turns
from convoscope.metrics.dialogue.tomiinek.evaluate import Richness, corpus_bleu, richness
from convoscope.metrics.dialogue.tomiinek.matching import response_form
from convoscope.metrics.dialogue.turn_scores import domain_is_right
from convoscope.metrics.dialogue.turns import DialogueTurn, State
from convoscope.runs.run import Run

MISSING, WRONG_VALUE, HALLUCINATED, WRONG_DOMAIN = "missing", "wrong value", "hallucinated", "wrong domain"
KINDS = (MISSING, WRONG_VALUE, HALLUCINATED, WRONG_DOMAIN)
NONE = "none"


class SlotError(NamedTuple):
    """A slot of a turn that is not as it should be."""

    domain: str
    slot: str
    kind: str
    true: str
    predicted: str

    @property
    def name(self) -> str:
        return f"{self.domain}-{self.slot}"


class ErrorExample(NamedTuple):
    """Where an error was first made in a conversation, and in how many turns it stood."""

    conversation: str
    turn: int
    error: SlotError
    turns: int
    seq: int = -1
    """What the user says in that turn, in the timeline."""


class StateShare(NamedTuple):
    """Turns, those of them whose state is wrong, and the slots that are wrong in them, by kind of error."""

    turns: int
    wrong: int
    kinds: dict[str, int]


class SlotRow(NamedTuple):
    """A slot with its errors, counted in turns, and the ones that stood longest."""

    slot: str
    kinds: dict[str, int]
    examples: list[ErrorExample]

    @property
    def total(self) -> int:
        return sum(self.kinds.values())


class DialogueErrors(NamedTuple):
    """All errors of the dialogues of a run."""

    dialogues: int
    turns: int
    """With a true and a predicted state."""
    wrong: int
    """Those whose state is wrong."""
    domains: dict[tuple[str, str], int]
    """How often a true domain was taken for another one."""
    intents: dict[tuple[str, str], int]
    slots: list[SlotRow]
    by_domain: dict[str, StateShare]
    by_position: dict[int, StateShare]


def dialogue_errors(conversations: Iterable[Conversation], examples: int = 3) -> DialogueErrors:
    """The errors of all dialogues that have both truth and predictions; slots with most errors first."""
    count = _ErrorCount()
    for conversation in conversations:
        if has_predictions(conversation) and has_truth(conversation):
            count.add(conversation)
    return count.result(examples)


class _ErrorCount:
    """What the dialogues so far add up to."""

    def __init__(self) -> None:
        self.dialogues = 0
        self.domains: Counter[tuple[str, str]] = Counter()
        self.intents: Counter[tuple[str, str]] = Counter()
        self.slots: dict[str, Counter[str]] = {}
        self.by_slot: dict[str, list[ErrorExample]] = {}
        self.by_domain: dict[str, Counter[str]] = {}
        self.by_position: dict[int, Counter[str]] = {}

    def add(self, conversation: Conversation) -> None:
        """Count a dialogue. An error is listed where it began, and counts in every turn in which it is there."""
        self.dialogues += 1
        seqs = {turn.id: turn.user[0].seq for turn in conversation.turns if turn.user}
        by_error: dict[SlotError, ErrorExample] = {}
        for turn in dialogue_turns(conversation):
            if not domain_is_right(turn.predicted.domains or (), turn.truth.domains or ()):
                self.domains.update(_confusions(turn.truth.domains, turn.predicted.domains))
            self.intents.update(_confusions(turn.truth.intents, turn.predicted.intents))
            if turn.truth.state is None or turn.predicted.state is None:
                continue
            errors = slot_errors(turn.predicted.state, turn.truth.state)
            self._count_turn(turn, errors)
            for error in errors:
                first = by_error.get(error)
                if first is None:
                    first = ErrorExample(conversation.id, turn.number, error, 0, seqs[turn.number])
                by_error[error] = first._replace(turns=first.turns + 1)
        for error, example in by_error.items():
            self.by_slot.setdefault(error.name, []).append(example)

    def _count_turn(self, turn: DialogueTurn, errors: Sequence[SlotError]) -> None:
        here = self.by_position.setdefault(turn.number, Counter())
        here.update([_TURNS, *([_WRONG] if errors else ()), *(error.kind for error in errors)])
        wrong = {error.domain for error in errors}
        for domain in {*(turn.truth.domains or ()), *wrong}:
            counts = self.by_domain.setdefault(domain, Counter())
            counts.update([_TURNS, *([_WRONG] if domain in wrong else ())])
        for error in errors:
            self.by_domain[error.domain][error.kind] += 1
            self.slots.setdefault(error.name, Counter())[error.kind] += 1

    def result(self, examples: int) -> DialogueErrors:
        """All of it, the most frequent first."""

        def longest(slot: str) -> list[ErrorExample]:
            return sorted(self.by_slot[slot], key=lambda one: (-one.turns, one.conversation, one.turn))[:examples]

        rows = [SlotRow(slot, dict(kinds), longest(slot)) for slot, kinds in self.slots.items()]
        return DialogueErrors(
            self.dialogues,
            sum(counts[_TURNS] for counts in self.by_position.values()),
            sum(counts[_WRONG] for counts in self.by_position.values()),
            dict(self.domains.most_common()),
            dict(self.intents.most_common()),
            sorted(rows, key=lambda row: (-row.total, row.slot)),
            {domain: _share(self.by_domain[domain]) for domain in sorted(self.by_domain)},
            {turn: _share(self.by_position[turn]) for turn in sorted(self.by_position)},
        )


_TURNS, _WRONG = "turns", "wrong"


def _share(counts: Counter[str]) -> StateShare:
    return StateShare(counts[_TURNS], counts[_WRONG], {kind: counts[kind] for kind in KINDS if counts[kind]})


def _confusions(true: Iterable[str] | None, predicted: Iterable[str] | None) -> Iterator[tuple[str, str]]:
    """Each true name that was not predicted, with each wrongly predicted one; `none` where there is no such."""
    if not true or predicted is None:
        return
    missed, wrong = sorted(set(true) - set(predicted)), sorted(set(predicted) - set(true))
    yield from ((one, other) for one in missed or ([NONE] if wrong else []) for other in wrong or [NONE])


def slot_errors(predicted: State, true: State) -> list[SlotError]:
    """Every slot that differs. A true value in another domain is one error, not two."""
    if predicted == true:
        return []
    predicted_slots = {(domain, slot): value for domain, slots in predicted.items() for slot, value in slots.items()}
    gold = {(domain, slot): value for domain, slots in true.items() for slot, value in slots.items()}
    invented = {key: value for key, value in predicted_slots.items() if key not in gold}
    errors = []
    for (domain, slot), value in gold.items():
        answer = predicted_slots.get((domain, slot))
        if answer is None:
            moved = next((key for key, other in invented.items() if key[1] == slot and other == value), None)
            if moved is not None:
                del invented[moved]
                errors.append(SlotError(domain, slot, WRONG_DOMAIN, value, f"{moved[0]}-{slot} = {value}"))
            else:
                errors.append(SlotError(domain, slot, MISSING, value, ""))
        elif answer != value:
            errors.append(SlotError(domain, slot, WRONG_VALUE, value, answer))
    errors += [SlotError(domain, slot, HALLUCINATED, "", value) for (domain, slot), value in invented.items()]
    return errors


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
