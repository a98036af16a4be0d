"""Names, codes, amounts and dates on their way: as the agent meant and spoke them, as the caller's were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from convoscope.audio.recognise import RATE
from convoscope.audio.transcript import TRANSCRIBED_BY
from convoscope.audio.word_alignment import AlignedText, align
from convoscope.conversation import ASSISTANT, USER, Conversation, Utterance
from convoscope.metrics.audio.meant_entities import (
    checked_entities,
    doubt_of,
    in_context,
    is_heard,
    words_between,
)
from convoscope.metrics.audio.omissions import Heard, added_entities, in_a_row, left_out
from convoscope.metrics.audio.spoken_script import (
    INTENDED_BY_AGENT,
    LEAST_MATCHED,
    LEAST_PROBABILITY,
    SpokenLine,
    SpokenScript,
    in_english,
    is_sure,
    moment,
    script,
    spoken_script,
    timed_words,
    transcript,
    with_recording,
)
from convoscope.metrics.declaration import EVENT, HIGHER, share_metric
from convoscope.metrics.needs import Need
from convoscope.metrics.voice.transcription import RECOGNISER as CASCADE
from convoscope.resources.sound import Recognised, Recogniser, Recording, Sound
from convoscope.scores.observation import NOT_APPLICABLE, UNMEASURED, Observation, ratio
from convoscope.text.spoken import FactCheck, SpokenEntity, normalise
from convoscope.text.spoken.aloud import aloud
from convoscope.text.spoken.entities import kind_of

NO_ENTITIES = "no_entities"
_AROUND = 2.0
"""Seconds before and behind a fact that are heard again."""

_entity_metric = partial(share_metric, observes=EVENT, better=HIGHER, languages=("en",), sensitive_to=())

HEARD_BY_LOG = Need(
    "no_transcript",
    "timeline.utterance.heard of a user",
    "what the agent's recogniser made of the user's words",
    lambda conversation: conversation.contents.has_user_heard and TRANSCRIBED_BY not in conversation.extras,
)


class EntityOnItsWay(NamedTuple):
    """A fact of one text, and whether it is in the other."""

    kind: str
    wanted: str
    other: str
    is_right: bool
    doubt: str = ""
    """Why nothing is said of a fact that is not there as it should be."""
    start: float = 0.0
    end: float = 0.0


@_entity_metric(
    "audio.spoken_entities",
    version=6,
    needs=(INTENDED_BY_AGENT,),
    label="names and numbers as spoken",
    importance=7,
)
@with_recording
async def spoken_entities(
    conversation: Conversation, recording: Recording, recogniser: Recogniser
) -> Sequence[Observation]:
    """How many of the names, codes, amounts and dates that the agent meant to say are in its sound?

    Per utterance of the agent: facts of the text that are heard, ÷ facts that can be decided, and facts that were
    added. Spoken forms are equal: "one fifty" is 150, and 12/03 is December third or March twelfth. A fact that is not
    heard counts as wrong only if the recogniser is sure of what it hears there, hears the same when it hears these
    seconds again, and what it hears is another fact and not the same one in another spelling; or if it hears the words
    around it with no time for the fact between them. Otherwise it is left out, and the details say why.

    >>> value(spoken_entities, example("user: How much is it?", "assistant: That is $142.50."))
    'no_recording'
    """
    in_english(conversation, ASSISTANT)
    lines = [line for line in script(conversation, ASSISTANT) if line.text.strip()]
    spoken = await spoken_script(conversation, recording, recogniser, ASSISTANT, lines)
    observations = []
    for line in spoken.lines:
        checked = await _spoken(spoken, line, recogniser)
        observations.append(_observed(line, checked, spoken))
    return observations


class _Checked(NamedTuple):
    """The facts of one utterance, those that were added to it, and how much of it is known not to have been said."""

    entities: list[EntityOnItsWay]
    audible: frozenset[int]
    """The tokens of the text that were heard: as they are, in another form, or elsewhere."""
    lost: frozenset[int]
    """Those that were left out for sure."""


async def _spoken(spoken: SpokenScript, line: SpokenLine, recogniser: Recogniser) -> _Checked:
    """The facts of a text, what was heard of each, and the facts that were heard and are in no text."""
    aligned, side = line.aligned, spoken.side
    reached = aligned.reached if line.utterance.cut_off_by else None
    entities, lost, swapped = [], set[int](), set[int]()
    right = {index for index, matched in enumerate(aligned.matched) if matched}
    for check in checked_entities(aligned.text, aligned.heard):
        start, end = check.entity.span
        if reached is not None and end > reached:
            continue  # cut off before it was said
        own = {index for index, one in enumerate(aligned.tokens) if start < one.end and one.start < end}
        right |= own if check.heard.correct else set()
        swapped |= own if is_heard(check.entity.text, aligned.heard) else set()
        if check.heard.correct:
            fate = _Fate(aligned.moment(start, end) or (0.0, 0.0), _heard_for(check, aligned))
        else:
            fate = await _fate(spoken, line, recogniser, check)
        lost.update(fate.lost)
        times = moment(side, *fate.when).values()
        kind, meant = kind_of(check.entity.type), check.entity.text
        entities.append(EntityOnItsWay(kind, meant, fate.heard, check.heard.correct, fate.doubt, *times))
    for added in added_entities(aligned, side, spoken.text, right) if reached is None else ():
        if not await _second_doubt(spoken, line, recogniser, None, added):
            times = moment(side, added.start, added.end).values()
            entities.append(EntityOnItsWay(added.kind, "", _shown(added.text), False, "", *times))
    return _Checked(entities, frozenset(right | swapped), frozenset(lost))


class _Fate(NamedTuple):
    """What was heard where a fact should be, why that may be the fact after all, and what was left out for sure."""

    when: tuple[float, float]
    heard: str
    doubt: str = ""
    lost: Sequence[int] = ()


async def _fate(spoken: SpokenScript, line: SpokenLine, recogniser: Recogniser, check: FactCheck) -> _Fate:
    """What became of a fact that was not heard as it should be."""
    aligned, (start, end) = line.aligned, check.entity.span
    words, heard = aligned.words_at(start, end), _heard_for(check, aligned)
    when = aligned.moment(start, end) or (0.0, 0.0)
    if not words:
        omission = left_out(aligned, spoken.side, start, end)
        if omission is None:
            return _Fate(when, heard, "unsure")
        doubt = await _second_doubt(spoken, line, recogniser, check.entity, omission.between)
        between = omission.between
        return _Fate((between.start, between.end), "", doubt, () if doubt else omission.tokens)
    if not is_sure(words, LEAST_PROBABILITY):
        return _Fate(when, heard, "unsure")
    # A word of no text right before it may be its minus.
    minus = aligned.added_before(start) if check.entity.text[0] in "-−" else ()
    whole = " ".join((*(word.text for word in minus), heard))
    doubt = doubt_of(check.entity.type, check.entity.text, whole, in_context(aligned.text, start, end))
    return _Fate(when, heard, doubt or await _second_doubt(spoken, line, recogniser, check.entity, Heard(heard, *when)))


def _heard_for(check: FactCheck, aligned: AlignedText) -> str:
    """The words that were heard for a fact."""
    heard = _shown(" ".join(word.text for word in aligned.words_at(*check.entity.span)))
    # What makes it another fact may be next to it: 2:30 am.
    is_elsewhere = bool(check.heard.instead) and is_heard(check.entity.text, heard)
    return check.heard.instead or "" if is_elsewhere or not heard else heard


def _shown(heard: str) -> str:
    """Words without the punctuation of the sentence."""
    return heard.strip(" ,.;:!?")


async def _second_doubt(
    spoken: SpokenScript, line: SpokenLine, recogniser: Recogniser, fact: SpokenEntity | None, heard: Heard
) -> str:
    """Hear only the seconds around a fact again: in another cut, words come out otherwise if they were a guess.

    Where the fact is also heard elsewhere, its order matters: then the whole utterance is heard again.
    """
    side, aligned = spoken.side, line.aligned
    from_, to = heard.start, heard.end
    is_elsewhere = fact is not None and is_heard(fact.text, aligned.heard)
    if is_elsewhere and aligned.words:
        from_, to = min(from_, aligned.words[0].start), max(to, aligned.words[-1].end)
    start, end = max(0.0, from_ - _AROUND), min(side.track.seconds, to + _AROUND)
    words = await recogniser.recognise(Sound(side.track.speaker, RATE, side.track.read(start, end, RATE)))
    again = " ".join(word.text for word in words)
    right = [check.entity for check in checked_entities(aligned.text, again) if check.heard.correct]
    if fact is not None and (fact in right if is_elsewhere else is_heard(fact.text, again)):
        return "heard at the second time"
    return "" if is_heard(heard.text, again) or in_a_row(heard.text, again) else "heard otherwise at the second time"


def _observed(line: SpokenLine, checked: _Checked, spoken: SpokenScript) -> Observation:
    utterance, aligned, entities = line.utterance, line.aligned, checked.entities
    subject = _subject(utterance)
    if not entities:
        return _without(subject, NOT_APPLICABLE, NO_ENTITIES, "")
    heard = utterance.heard.text if utterance.heard is not None else ""
    details: dict[str, Any] = {
        "meant": aligned.text,
        "spoken": aligned.heard,
        **({"heard": heard} if utterance.heard is not None else {}),
        "differs": [_named(one) for one in entities if not one.is_right and not one.doubt],
        "undecided": [{**_named(one), "why": one.doubt} for one in entities if not one.is_right and one.doubt],
        "heard_by_log": [*_by_log(aligned.text, heard)],
        "words": timed_words(spoken.side, aligned.words),
        "by": spoken.side.by,
    }
    if utterance.cut_off_by and (lost := aligned.text[aligned.reached :].strip()):
        end = aligned.words[-1].end if aligned.words else 0.0
        details["differs"].append({"kind": "cut", "meant": lost, "spoken": "", **moment(spoken.side, end, end)})
    return _share(subject, checked, {name: one for name, one in details.items() if one or name == "differs"}, aligned)


def _named(fact: EntityOnItsWay) -> dict[str, Any]:
    return {"kind": fact.kind, "meant": fact.wanted, "spoken": fact.other, "start": fact.start, "end": fact.end}


def _by_log(text: str, heard: str) -> Iterator[dict[str, str]]:
    """The facts of a text that the log's recogniser, at the other end of the call, wrote otherwise."""
    aligned = _with_words_of(text, heard)
    for check in checked_entities(aligned.text, heard) if heard.strip() else ():
        if not check.heard.correct:
            kind = kind_of(check.entity.type)
            yield {"kind": kind, "meant": check.entity.text, "heard": _heard_for(check, aligned)}


def _with_words_of(text: str, written: str) -> AlignedText:
    """A text with the words of another one, which have no times."""
    [aligned] = align([text], [Recognised(word, n, n + 1) for n, word in enumerate(written.split())])
    return aligned


def _subject(utterance: Utterance) -> Any:
    from convoscope.scores.observation import subject_of

    return subject_of(utterance)


def _share(subject: Any, checked: _Checked, details: dict[str, Any], aligned: AlignedText) -> Observation:
    """Right ÷ decided, with the doubtful ones named."""
    entities = checked.entities
    doubtful = [one for one in entities if not one.is_right and one.doubt]
    audible = len(checked.audible)
    if not audible or audible < LEAST_MATCHED * (len(aligned.tokens) - len(checked.lost)):
        return _without(subject, UNMEASURED, "utterance_not_recognised", f"{aligned.matched_share:.0%} of its words")
    decided = len(entities) - len(doubtful)
    if not decided:
        return _without(subject, UNMEASURED, "recogniser_unsure", "; ".join(one.doubt for one in doubtful[:3]), details)
    return ratio(subject, sum(one.is_right for one in entities), decided, details=details)


def _without(subject: Any, status: Any, reason: str, detail: str, details: dict[str, Any] | None = None) -> Observation:
    return Observation(subject=subject, status=status, reason=reason, detail=detail, details=details)


@_entity_metric(
    "audio.heard_entities",
    version=6,
    needs=(CASCADE, HEARD_BY_LOG),
    label="names and numbers of the caller in the log",
    importance=5,
)
@with_recording
async def heard_entities(
    conversation: Conversation, recording: Recording, recogniser: Recogniser
) -> Sequence[Observation]:
    """How many of the caller's names, codes, amounts and dates, as we hear them, did the agent's recogniser write?

    Per utterance of the caller: facts in what our recogniser hears that are in the transcript of the log, ÷ facts
    that it is sure of. Two recognisers are compared: where they differ, it is open which of them is wrong.

    >>> words = {"heard": {"text": "My code is ZK4 please"}}
    >>> call = example({"type": "utterance", "speaker": "user", **words}, "assistant: Thanks.")
    >>> value(heard_entities, call)
    'no_recording'
    """
    in_english(conversation, USER)
    spoken = await spoken_script(conversation, recording, recogniser, USER, transcript(conversation, USER))
    return [_heard_alike(line.utterance, line.aligned, spoken) for line in spoken.lines]


def _heard_alike(utterance: Utterance, aligned: AlignedText, spoken: SpokenScript) -> Observation:
    subject = _subject(utterance)
    written = utterance.heard.text if utterance.heard is not None else ""
    checked, companion = [], _with_words_of(aligned.heard, written)
    for check in checked_entities(aligned.heard, written):
        words = [aligned.words[n] for n in words_between([one.text for one in aligned.words], *check.entity.span)]
        doubt = ""
        if not check.heard.correct:
            sure = is_sure(words, LEAST_PROBABILITY)
            doubt = doubt_of(check.entity.type, check.entity.text, check.heard.instead or "") if sure else "unsure"
            if sure and not written.strip():
                doubt = ""  # it wrote nothing at all
        when = moment(spoken.side, words[0].start, words[-1].end) if words else {"start": 0.0, "end": 0.0}
        kind = kind_of(check.entity.type)
        instead = _heard_for(check, companion)
        checked.append(EntityOnItsWay(kind, check.entity.text, instead, check.heard.correct, doubt, *when.values()))
    if not checked:
        return _without(subject, NOT_APPLICABLE, NO_ENTITIES, "")
    differing = [one for one in checked if not one.is_right and not one.doubt]
    meant = utterance.intended.text if utterance.intended is not None else ""
    details: dict[str, Any] = {
        **({"meant": meant} if meant else {}),
        "spoken": aligned.heard,
        "heard": written,
        "differs": [
            {"kind": one.kind, "spoken": one.wanted, "heard": one.other, "start": one.start, "end": one.end}
            for one in differing
        ],
        "words": timed_words(spoken.side, aligned.words),
        "by": spoken.side.by,
    }
    doubtful = [one for one in checked if not one.is_right and one.doubt]
    if doubtful:
        details["undecided"] = [
            {"kind": one.kind, "spoken": one.wanted, "heard": one.other, "start": one.start, "end": one.end}
            | {"why": one.doubt}
            for one in doubtful
        ]
    if len(doubtful) == len(checked):
        why = "; ".join(one.doubt for one in doubtful[:3])
        return _without(subject, UNMEASURED, "recogniser_unsure", why, details)
    return ratio(subject, sum(one.is_right for one in checked), len(checked) - len(doubtful), details=details)


@_entity_metric(
    "audio.heard_words",
    version=6,
    needs=(CASCADE, HEARD_BY_LOG),
    label="words of the caller in the log",
    importance=3,
)
@with_recording
async def heard_words(
    conversation: Conversation, recording: Recording, recogniser: Recogniser
) -> Sequence[Observation]:
    """How many of the caller's words, as we hear them, did the agent's recogniser write?

    Per utterance of the caller: words of our recogniser that it is sure of and that are in the transcript of the log
    in the same order, ÷ words that it is sure of. Two recognisers are compared: where they differ, it is open which
    of them is wrong.

    >>> words = {"heard": {"text": "My code is ZK4 please"}}
    >>> call = example({"type": "utterance", "speaker": "user", **words}, "assistant: Thanks.")
    >>> value(heard_words, call)
    'no_recording'
    """
    in_english(conversation, USER)
    spoken = await spoken_script(conversation, recording, recogniser, USER, transcript(conversation, USER))
    return [_words_alike(line.utterance, line.aligned, spoken) for line in spoken.lines]


def _words_alike(utterance: Utterance, aligned: AlignedText, spoken: SpokenScript) -> Observation:
    from rapidfuzz.distance import LCSseq

    written = normalise(aloud(utterance.heard.text if utterance.heard is not None else ""), spoken.language)
    sure = " ".join(word.text for word in aligned.words if is_sure((word,), LEAST_PROBABILITY))
    own = normalise(aloud(sure), spoken.language)
    if not own:
        empty = "recogniser_unsure" if aligned.words else "utterance_not_recognised"
        return _without(_subject(utterance), UNMEASURED, empty, "")
    details = {"spoken": aligned.heard, "heard": " ".join(written), "by": spoken.side.by}
    return ratio(_subject(utterance), LCSseq.similarity(own, written), len(own), details=details)


__all__ = ["checked_entities", "doubt_of", "heard_entities", "heard_words", "spoken_entities"]
