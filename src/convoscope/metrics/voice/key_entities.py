"""Metrics of the facts that the agent's speech recogniser must not get wrong: names, codes, times, amounts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple

from convoscope.conversation import USER, Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import HIGHER, TURN, Metric
from convoscope.metrics.needs import english_words
from convoscope.metrics.presets import share_metric
from convoscope.metrics.voice.call_facts import inapplicable
from convoscope.metrics.voice.transcription import NEEDS, but_trailing, dictation, each_heard
from convoscope.scores.observation import Observation, in_turn, ratio
from convoscope.text.spoken import check_facts

NO_ENTITIES = "no_entities"


class EntityFact(NamedTuple):
    """A fact that the user said, and whether the recogniser wrote it."""

    type: str
    intended: str
    correct: bool
    instead: str | None
    """What it wrote in its place, where something like it stands there."""

    def evidence(self) -> dict[str, str | bool | None]:
        heard = self.intended if self.correct else self.instead
        return {"type": self.type, "intended": self.intended, "heard": heard, "correct": self.correct}


@cached_on_argument
def facts_of(conversation: Conversation) -> dict[int, tuple[EntityFact, ...]]:
    """The facts of each turn."""
    return {
        turn: tuple(
            EntityFact(one.entity.type, one.entity.text, one.heard.correct, one.heard.instead)
            for one in check_facts(words.intended, words.heard)
        )
        for turn, words in dictation(conversation).compared.items()
    }


def _share(conversation: Conversation, types: Collection[str] | None, *, detailed: bool) -> Iterator[Observation]:
    """The facts of these types, or of all, that were heard rightly."""
    facts = facts_of(conversation)

    def checked(turn: int) -> Observation:
        of_types = [fact for fact in facts[turn] if types is None or fact.type in types]
        if not of_types:
            return inapplicable(turn, NO_ENTITIES)
        details = {"entities": [fact.evidence() for fact in of_types]} if detailed else None
        return ratio(
            in_turn(turn), sum(fact.correct for fact in of_types), len(of_types), empty=NO_ENTITIES, details=details
        )

    yield from each_heard(dictation(conversation), checked)


_english = partial(
    share_metric, observes=TURN, better=HIGHER, needs=(*NEEDS, english_words(USER)), languages=("en",), sensitive_to=()
)


@_english("voice.key_entities", version=3, label="names and numbers right", importance=7)
def key_entities(conversation: Conversation) -> Iterator[Observation]:
    """What share of the names, codes, times and amounts does the recogniser get right?

    Per turn: facts that the user meant to say and that stand in what was heard, ÷ facts. A fact is
    found by its shape and its spoken form, so that "Z K three" is heard in "ZK3". In a turn without a
    transcript, or with an empty one, all are wrong. A turn without a fact is not applicable, and so is
    an agent whose model hears the sound.
    """
    yield from _share(conversation, None, detailed=True)


@_english("voice.key_entities", variant="eva", version=2)
def key_entities_eva(conversation: Conversation) -> Iterator[Observation]:
    """What share of the facts does the recogniser get right, in the turns up to the last that it wrote?

    `voice.key_entities` as EVA publishes it: a turn with facts that was not transcribed, nor any after it, is
    unmeasured. A recogniser that dies in the middle of a call is not seen.
    """
    facts = facts_of(conversation)
    shares = _share(conversation, None, detailed=True)
    yield from but_trailing(dictation(conversation), shares, lambda turn: bool(facts[turn]))


class EntityKind(NamedTuple):
    """Types of facts that are told together."""

    types: tuple[str, ...]
    question: str


KINDS = {
    "name": EntityKind(("name",), "What share of the names does the recogniser get right?"),
    "place": EntityKind(("place",), "What share of the places does the recogniser get right?"),
    "code": EntityKind(
        ("confirmation_code", "flight_number", "seat", "airport_code"),
        "What share of the codes does the recogniser get right?",
    ),
    "when": EntityKind(
        ("date", "time", "duration"), "What share of the dates and times does the recogniser get right?"
    ),
    "amount": EntityKind(("amount", "number"), "What share of the amounts and numbers does the recogniser get right?"),
    "contact": EntityKind(
        ("phone", "email"), "What share of the phone numbers and addresses does the recogniser get right?"
    ),
}


def _of_kind(name: str) -> Metric:
    types, question = KINDS[name]

    def of_kind(conversation: Conversation) -> Iterator[Observation]:
        yield from _share(conversation, types, detailed=False)

    of_kind.__doc__ = f"""{question}

    `voice.key_entities` of these types alone: {", ".join(types)}.
    """
    return _english(f"voice.key_entities.{name}", version=3)(of_kind)


names = _of_kind("name")
places = _of_kind("place")
codes = _of_kind("code")
dates_and_times = _of_kind("when")
amounts = _of_kind("amount")
contacts = _of_kind("contact")
