"""Metrics of what the agent's speech recogniser wrote: its words, and the facts that it must not get wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NamedTuple

from convoscope.conversation import USER, Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.conversation.turns import EVA_TURN_RULE
from convoscope.metrics.declaration import HIGHER, LOWER, TURN, Metric, metric, share_metric
from convoscope.metrics.needs import USER_SPEECH, Need, english_words, in_timeline
from convoscope.metrics.voice.call import CALL, inapplicable
from convoscope.scores.observation import NOT_APPLICABLE, Observation, in_turn, ratio, unmeasured
from convoscope.scores.reducers import RATIO, RATIO_OF_SUMS, Reduce
from convoscope.text.spoken import check_entities, normalise
from convoscope.views import MetricContext, metric_context
from convoscope.views.eva import eva_reading
from convoscope.views.languages import languages_of

ERRORS_PER_WORD = "errors per word"
"""No share: insertions can make more errors than there are words."""

WORST = 5
"""So many spans that differ are kept as details, the longest first."""


RECOGNISER = Need(
    "audio_native",
    "pipeline",
    "a cascade: the model of this agent hears the sound itself, and there is no recogniser before it",
    lambda conversation: not conversation.is_audio_native,
    status_if_missing=NOT_APPLICABLE,
)
INTENDED = Need(
    "no_intended_text",
    "timeline.utterance.intended of a user",
    "what the user meant to say, as a simulator logs it, or a transcript made by hand",
    in_timeline("has_user_intended"),
)
TRANSCRIBED = Need(
    "no_transcript",
    "timeline.utterance.heard of a user",
    "what the agent's recogniser made of the user's words",
    # Something was heard of the user, be it nothing, or there is the log with a recogniser's words.
    lambda conversation: (
        conversation.contents.has_user_heard or any(record.source == "audit" for record in conversation.log)
    ),
)
NEEDS = (CALL, RECOGNISER, USER_SPEECH, INTENDED, TRANSCRIBED)


class TranscribedTurn(NamedTuple):
    """What the user meant to say in a turn, and what the recogniser wrote: empty where it lost the turn."""

    turn: int
    intended: str
    heard: str


class Dictation(NamedTuple):
    """The turns of the user that can be compared, and why the others cannot."""

    compared: dict[int, TranscribedTurn]
    inapplicable: frozenset[int]
    """Nothing was intended there."""
    unknown: frozenset[int]
    """The user spoke, or was heard, and what was intended is unknown."""
    trailing: frozenset[int]
    """Turns that were not transcribed, nor any after them."""
    language: str
    turns: tuple[int, ...]
    """All of them, in their order."""


@cached_on_argument
def dictation(conversation: Conversation) -> Dictation:
    """The user's turns, as they can be compared."""
    context = metric_context(conversation)
    language = context.language or languages_of(conversation).of_role(USER) or "en"
    heard = _really_heard(conversation, context)
    intended = {turn: text for turn, text in context.intended_user_turns.items() if text}
    turns = sorted({*intended, *heard, *(turn for turn, spans in context.audio_timestamps_user_turns.items() if spans)})
    last = max((turn for turn, text in heard.items() if normalise(text, language)), default=-1)
    worded = [turn for turn in turns if turn in intended and normalise(intended[turn], language)]
    return Dictation(
        {turn: TranscribedTurn(turn, intended[turn], heard.get(turn, "")) for turn in worded},
        frozenset(intended).difference(worded),
        frozenset(turns).difference(intended),
        frozenset(turn for turn in worded if turn > last),
        language,
        tuple(turns),
    )


def _really_heard(conversation: Conversation, context: MetricContext) -> dict[int, str]:
    """What the recogniser wrote, by turn; never a text that was filled in from the intended one."""
    filled = set(context.backfilled_user_turns)
    if context.turn_rule == EVA_TURN_RULE and conversation.log:
        # That rule fills the last turn without saying so; the log knows which turns the recogniser wrote.
        reading = eva_reading(conversation)
        records = zip(reading.log, reading.turn_of, strict=True)
        written = {turn for record, turn in records if record.source == "audit" and record.kind == "user"}
        filled |= set(context.transcribed_user_turns) - written
    return {turn: text for turn, text in context.transcribed_user_turns.items() if text and turn not in filled}


def each_heard(turns: Dictation, observe: Callable[[int], Observation]) -> Iterator[Observation]:
    """One observation for each turn that can be compared, and the reason for each that cannot."""
    for turn in turns.turns:
        if turn in turns.compared:
            yield observe(turn)
        elif turn in turns.inapplicable:
            yield inapplicable(turn, "nothing_intended")
        else:
            yield unmeasured(in_turn(turn), INTENDED.code)


def but_trailing(
    turns: Dictation, observations: Iterator[Observation], has_words: Callable[[int], bool] = lambda _: True
) -> Iterator[Observation]:
    """The published rule: a turn that was not transcribed, nor any after it, may have outlived the call."""
    for observation in observations:
        turn = observation.subject.position
        waits = turn in turns.trailing and has_words(turn)
        yield unmeasured(observation.subject, "not_transcribed_at_end") if waits else observation


class Errors(NamedTuple):
    """One turn, word by word."""

    words: int
    substitutions: int
    deletions: int
    insertions: int
    details: dict[str, Any]

    @property
    def all(self) -> int:
        return self.substitutions + self.deletions + self.insertions


def word_errors(intended: str, heard: str, language: str) -> Errors:
    """The fewest substitutions, deletions and insertions from the one text to the other, after normalising."""
    from rapidfuzz.distance import Levenshtein

    reference, hypothesis = normalise(intended, language), normalise(heard, language)
    details: dict[str, Any] = {"reference": " ".join(reference), "hypothesis": " ".join(hypothesis)}
    if not hypothesis:
        return Errors(len(reference), 0, len(reference), 0, {**details, "lost": True})
    number = {word: index for index, word in enumerate(dict.fromkeys((*reference, *hypothesis)))}
    steps = Levenshtein.opcodes([number[word] for word in reference], [number[word] for word in hypothesis])
    counts = dict.fromkeys(("equal", "replace", "delete", "insert"), 0)
    differing: list[dict[str, str]] = []
    for step in steps:
        expected, written = reference[step.src_start : step.src_end], hypothesis[step.dest_start : step.dest_end]
        counts[step.tag] += len(written if step.tag == "insert" else expected)
        if step.tag != "equal":
            differing.append({"said": " ".join(expected), "heard": " ".join(written)})
    if differing:
        details["worst"] = sorted(differing, key=lambda pair: -len(pair["said"]) - len(pair["heard"]))[:WORST]
    return Errors(len(reference), counts["replace"], counts["delete"], counts["insert"], details)


@cached_on_argument
def _errors(conversation: Conversation) -> dict[int, Errors]:
    turns = dictation(conversation)
    return {turn: word_errors(one.intended, one.heard, turns.language) for turn, one in turns.compared.items()}


_wer_metric = partial(
    metric,
    observes=TURN,
    unit=ERRORS_PER_WORD,
    better=LOWER,
    needs=NEEDS,
    reduce=Reduce(RATIO, RATIO_OF_SUMS),
    sensitive_to=(),
)


@_wer_metric("voice.stt_wer", version=4, label="word error rate", importance=7)
def stt_wer(conversation: Conversation) -> Iterator[Observation]:
    """How many of the user's words does the recogniser get wrong?

    Substitutions, deletions and insertions ÷ words that the user meant to say, after both texts are
    brought into one spoken form; Japanese, Chinese and Korean by character. A turn without a
    transcript, or with an empty one, counts with all its words as deletions, wherever in the call it
    is. A turn of which the intended text is unknown is unmeasured. Not applicable where the model
    hears the sound.

    >>> words = {"intended": {"text": "My code is ZK3 please"}, "heard": {"text": "My code is ZK4 please"}}
    >>> spoken = {"type": "utterance", "speaker": "user", **words, "segments": [{"start": 0, "end": 1}]}
    >>> call = example(spoken, "2-3 assistant: Thanks.")
    >>> value(stt_wer, call)  # one of five words
    0.2
    """
    yield from _wrong_words(conversation)


@_wer_metric("voice.stt_wer", variant="eva", version=3)
def stt_wer_eva(conversation: Conversation) -> Iterator[Observation]:
    """How many of the user's words does the recogniser get wrong, in the turns up to the last that it wrote?

    `voice.stt_wer` as EVA publishes it: a turn that was not transcribed, nor any after it, is unmeasured. A
    recogniser that dies in the middle of a call is not seen.

    >>> words = {"intended": {"text": "My code is ZK3 please"}, "heard": {"text": "My code is ZK4 please"}}
    >>> spoken = {"type": "utterance", "speaker": "user", **words, "segments": [{"start": 0, "end": 1}]}
    >>> call = example(spoken, "2-3 assistant: Thanks.")
    >>> value(stt_wer_eva, call)  # one of five words
    0.2
    """
    yield from but_trailing(dictation(conversation), _wrong_words(conversation))


def _wrong_words(conversation: Conversation) -> Iterator[Observation]:
    errors = _errors(conversation)

    def observe_turn(turn: int) -> Observation:
        wrong = errors[turn]
        return ratio(in_turn(turn), wrong.all, wrong.words, empty="nothing_intended", details=wrong.details)

    yield from each_heard(dictation(conversation), observe_turn)


_EXAMPLES = {"substitution": "my code was four", "insertion": "my own code is four", "deletion": "my code four"}
"""What a recogniser may make of "my code is four", with one error of each kind."""


def _part(kind: str, question: str) -> Metric:
    """One kind of error alone."""

    def part(conversation: Conversation) -> Iterator[Observation]:
        errors = _errors(conversation)
        yield from each_heard(
            dictation(conversation),
            lambda turn: ratio(
                in_turn(turn), getattr(errors[turn], f"{kind}s"), errors[turn].words, empty="nothing_intended"
            ),
        )

    part.__doc__ = f"""{question}

    The {kind}s of `voice.stt_wer` ÷ words that the user meant to say.

    >>> words = {{"intended": {{"text": "my code is four"}}, "heard": {{"text": "{_EXAMPLES[kind]}"}}}}
    >>> spoken = {{"type": "utterance", "speaker": "user", **words, "segments": [{{"start": 0, "end": 1}}]}}
    >>> value("voice.stt_wer.{kind}_rate", example(spoken, "2-3 assistant: Thanks."))
    0.25
    """
    return _wer_metric(f"voice.stt_wer.{kind}_rate", version=4)(part)


substitution_rate = _part("substitution", "How many of the user's words does the recogniser take for others?")
deletion_rate = _part("deletion", "How many of the user's words does the recogniser miss?")
insertion_rate = _part("insertion", "How many words does the recogniser add?")


NO_ENTITIES = "no_entities"


class EntityFact(NamedTuple):
    """A fact that the user said, and whether the recogniser wrote it."""

    type: str
    intended: str
    correct: bool
    instead: str | None
    """What it wrote instead, where that is similar."""

    def evidence(self) -> dict[str, str | bool | None]:
        heard = self.intended if self.correct else self.instead
        return {"type": self.type, "intended": self.intended, "heard": heard, "correct": self.correct}


@cached_on_argument
def entity_checks(conversation: Conversation) -> dict[int, tuple[EntityFact, ...]]:
    """The facts of each turn."""
    return {
        turn: tuple(
            EntityFact(one.entity.type, one.entity.text, one.heard.correct, one.heard.instead)
            for one in check_entities(words.intended, words.heard)
        )
        for turn, words in dictation(conversation).compared.items()
    }


def _share(conversation: Conversation, types: Collection[str] | None, *, detailed: bool) -> Iterator[Observation]:
    """The facts of these types, or of all, that were heard rightly."""
    checks = entity_checks(conversation)

    def checked(turn: int) -> Observation:
        of_types = [fact for fact in checks[turn] if types is None or fact.type in types]
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


@_english("voice.key_entities", version=4, label="names and numbers right", importance=7)
def key_entities(conversation: Conversation) -> Iterator[Observation]:
    """What share of the names, codes, times and amounts does the recogniser get right?

    Per turn: facts that the user meant to say and that are in what was heard, ÷ facts. A fact is
    found by its shape and its spoken form, so that "Z K three" is heard in "ZK3". In a turn without a
    transcript, or with an empty one, all are wrong. A turn without a fact is not applicable, and so is
    an agent whose model hears the sound.

    >>> words = {"intended": {"text": "My code is ZK3 please"}, "heard": {"text": "My code is ZK4 please"}}
    >>> spoken = {"type": "utterance", "speaker": "user", **words, "segments": [{"start": 0, "end": 1}]}
    >>> call = example(spoken, "2-3 assistant: Thanks.")
    >>> value(key_entities, call)
    0.0
    """
    yield from _share(conversation, None, detailed=True)


@_english("voice.key_entities", variant="eva", version=3)
def key_entities_eva(conversation: Conversation) -> Iterator[Observation]:
    """What share of the facts does the recogniser get right, in the turns up to the last that it wrote?

    `voice.key_entities` as EVA publishes it: a turn with facts that was not transcribed, nor any after it, is
    unmeasured. A recogniser that dies in the middle of a call is not seen.

    >>> words = {"intended": {"text": "My code is ZK3 please"}, "heard": {"text": "My code is ZK4 please"}}
    >>> spoken = {"type": "utterance", "speaker": "user", **words, "segments": [{"start": 0, "end": 1}]}
    >>> call = example(spoken, "2-3 assistant: Thanks.")
    >>> value(key_entities_eva, call)
    0.0
    """
    checks = entity_checks(conversation)
    shares = _share(conversation, None, detailed=True)
    yield from but_trailing(dictation(conversation), shares, lambda turn: bool(checks[turn]))


class EntityKind(NamedTuple):
    """Types of facts that are reported together."""

    types: tuple[str, ...]
    question: str
    example: str


KINDS = {
    "name": EntityKind(("name",), "What share of the names does the recogniser get right?", "My name is Anna Smith."),
    "place": EntityKind(("place",), "What share of the places does the recogniser get right?", "I live in Paris."),
    "code": EntityKind(
        ("confirmation_code", "flight_number", "seat", "airport_code"),
        "What share of the codes does the recogniser get right?",
        "My code is ZK3.",
    ),
    "when": EntityKind(
        ("date", "time", "duration"),
        "What share of the dates and times does the recogniser get right?",
        "I come on Monday.",
    ),
    "amount": EntityKind(
        ("amount", "number"),
        "What share of the amounts and numbers does the recogniser get right?",
        "I paid 20 euros.",
    ),
    "contact": EntityKind(
        ("phone", "email"),
        "What share of the phone numbers and addresses does the recogniser get right?",
        "Write to anna at example.com.",
    ),
}


def _of_kind(name: str) -> Metric:
    types, question, example = KINDS[name]

    def of_kind(conversation: Conversation) -> Iterator[Observation]:
        yield from _share(conversation, types, detailed=False)

    of_kind.__doc__ = f"""{question}

    `voice.key_entities` of these types alone: {", ".join(types)}.

    >>> words = {{"intended": {{"text": "{example}"}}, "heard": {{"text": "{example}"}}}}
    >>> spoken = {{"type": "utterance", "speaker": "user", **words, "segments": [{{"start": 0, "end": 1}}]}}
    >>> value("voice.key_entities.{name}", example(spoken, "2-3 assistant: Thanks."))
    1.0
    """
    return _english(f"voice.key_entities.{name}", version=4)(of_kind)


names = _of_kind("name")
locations = _of_kind("place")
codes = _of_kind("code")
dates_and_times = _of_kind("when")
amounts = _of_kind("amount")
contacts = _of_kind("contact")
