"""Where dialogue states go wrong: domains and intents taken for others, slots by kind of error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.metrics.dialogue.frames import dialogue_turns, has_predictions, has_truth
from convoscope.metrics.dialogue.turn_scores import domain_is_right
from convoscope.metrics.dialogue.turns import DialogueTurn, State

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
        self.standing: dict[str, list[ErrorExample]] = {}
        self.by_domain: dict[str, Counter[str]] = {}
        self.by_position: dict[int, Counter[str]] = {}

    def add(self, conversation: Conversation) -> None:
        """Count a dialogue. An error is listed where it began, and counts in every turn in which it is there."""
        self.dialogues += 1
        seqs = {turn.id: turn.user[0].seq for turn in conversation.turns if turn.user}
        standing: dict[SlotError, ErrorExample] = {}
        for turn in dialogue_turns(conversation):
            if not domain_is_right(turn.predicted.domains or (), turn.truth.domains or ()):
                self.domains.update(_confusions(turn.truth.domains, turn.predicted.domains))
            self.intents.update(_confusions(turn.truth.intents, turn.predicted.intents))
            errors = _errors_of(turn)
            if errors is None:
                continue
            self._count_turn(turn, errors)
            for error in errors:
                first = standing.get(error)
                if first is None:
                    first = ErrorExample(conversation.id, turn.number, error, 0, seqs[turn.number])
                standing[error] = first._replace(turns=first.turns + 1)
        for error, example in standing.items():
            self.standing.setdefault(error.name, []).append(example)

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
        rows = [SlotRow(slot, dict(kinds), self._worst(slot, examples)) for slot, kinds in self.slots.items()]
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

    def _worst(self, slot: str, examples: int) -> list[ErrorExample]:
        """The errors of a slot that stood longest."""
        return sorted(self.standing[slot], key=lambda one: (-one.turns, one.conversation, one.turn))[:examples]


_TURNS, _WRONG = "turns", "wrong"


def _share(counts: Counter[str]) -> StateShare:
    return StateShare(counts[_TURNS], counts[_WRONG], {kind: counts[kind] for kind in KINDS if counts[kind]})


def _confusions(true: Iterable[str] | None, predicted: Iterable[str] | None) -> Iterator[tuple[str, str]]:
    """Each true name that was not predicted, with each wrongly predicted one; `none` where there is no such."""
    if not true or predicted is None:
        return
    missed, wrong = sorted(set(true) - set(predicted)), sorted(set(predicted) - set(true))
    yield from ((one, other) for one in missed or ([NONE] if wrong else []) for other in wrong or [NONE])


def _errors_of(turn: DialogueTurn) -> list[SlotError] | None:
    if turn.truth.state is None or turn.predicted.state is None:
        return None
    return slot_errors(turn.predicted.state, turn.truth.state)


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
