"""Where dialogue states go wrong: domains and intents taken for others, slots by kind of error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from convoscope.conversation import Conversation
from convoscope.metrics.dialogue.frames import dialogue_turns, has_predictions, has_truth
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import State

MISSING, WRONG_VALUE, HALLUCINATED, WRONG_DOMAIN = "missing", "wrong value", "hallucinated", "wrong domain"
KINDS = (MISSING, WRONG_VALUE, HALLUCINATED, WRONG_DOMAIN)
NONE = "none"

Key = TypeVar("Key", str, int)


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


class StateShare(NamedTuple):
    """Turns, and those of them whose state is wrong."""

    turns: int
    wrong: int


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
    domains: dict[tuple[str, str], int]
    """How often a true domain was taken for another one."""
    intents: dict[tuple[str, str], int]
    slots: list[SlotRow]
    by_domain: dict[str, StateShare]
    by_position: dict[int, StateShare]


def dialogue_errors(conversations: Iterable[Conversation], examples: int = 3) -> DialogueErrors:
    """The errors of all dialogues that have both truth and predictions; slots with most errors first."""
    domains: Counter[tuple[str, str]] = Counter()
    intents: Counter[tuple[str, str]] = Counter()
    kinds: dict[str, Counter[str]] = {}
    standing: dict[str, list[ErrorExample]] = {}
    by_domain: Counter[tuple[str, bool]] = Counter()
    by_position: Counter[tuple[int, bool]] = Counter()
    dialogues = turns = 0
    for conversation in conversations:
        if not has_predictions(conversation) or not has_truth(conversation):
            continue
        dialogues += 1
        first: dict[SlotError, tuple[int, int]] = {}
        for turn in dialogue_turns(conversation):
            domains.update(_confusions(turn.truth.domains, turn.predicted.domains))
            intents.update(_confusions(turn.truth.intents, turn.predicted.intents))
            errors = _errors_of(turn)
            if errors is None:
                continue
            turns += 1
            by_position[turn.number, bool(errors)] += 1
            wrong = {error.domain for error in errors}
            by_domain.update((domain, domain in wrong) for domain in {*(turn.truth.domains or ()), *wrong})
            for error in errors:
                kinds.setdefault(error.name, Counter())[error.kind] += 1
                began, count = first.get(error, (turn.number, 0))
                first[error] = (began, count + 1)
        for error, (began, count) in first.items():
            standing.setdefault(error.name, []).append(ErrorExample(conversation.id, began, error, count))
    rows = [
        SlotRow(slot, dict(counts), sorted(standing[slot], key=lambda one: (-one.turns, one.conversation))[:examples])
        for slot, counts in kinds.items()
    ]
    return DialogueErrors(
        dialogues,
        turns,
        dict(domains.most_common()),
        dict(intents.most_common()),
        sorted(rows, key=lambda row: (-row.total, row.slot)),
        _shares(by_domain),
        _shares(by_position),
    )


def _shares(counts: Counter[tuple[Key, bool]]) -> dict[Key, StateShare]:
    keys = sorted({key for key, _ in counts})
    return {key: StateShare(counts[key, True] + counts[key, False], counts[key, True]) for key in keys}


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
    """Every slot that differs. A true value that stands under another domain is one error, not two."""
    if predicted == true:
        return []
    ours = {(domain, slot): value for domain, slots in predicted.items() for slot, value in slots.items()}
    gold = {(domain, slot): value for domain, slots in true.items() for slot, value in slots.items()}
    invented = {key: value for key, value in ours.items() if key not in gold}
    errors = []
    for (domain, slot), value in gold.items():
        answer = ours.get((domain, slot))
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
