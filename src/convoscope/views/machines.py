"""Calls, and conversations without a dialogue: the user never said a word, or a machine answered the call.

What the log says of it counts first, then what the user's side said. `machines.toml` holds the words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Conversation,
    Json,
    Marker,
    SlotFilled,
    StateEntered,
    Utterance,
)
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.folding import name_words, snake_case, visible
from convoscope.text.patterns import lazy_pattern
from convoscope.views.end_reasons import (
    BROKEN,
    IVR,
    NO_ANSWER,
    VOICEMAIL,
    folded_field,
    hands_over,
    kind_of_reason,
    named_values,
    stated_reason,
)
from convoscope.views.result_fields import is_filled

_PHONE_FIELDS = frozenset(f"call_{name}" for name in ("type", "status", "sid", "duration")) | frozenset(
    f"{name}_number" for name in ("from", "to", "phone", "caller")
)
"""Fields of a record that only a phone call has, whether or not its sound was logged, folded."""
_LONGEST_NAME = 40


def is_call(conversation: Conversation) -> bool:
    """It has speech: the pipeline is one of speech, or there are logs of a call, or sound, or only a recording."""
    if conversation.pipeline is not None:
        return conversation.pipeline != "text"
    is_bare = conversation.recording is not None and not conversation.utterances
    return bool(conversation.log) or conversation.contents.has_sound or is_bare


def is_phone_call(conversation: Conversation) -> bool:
    """A call, or a transcript with the fields of one: `call_sid`, `fromNumber`, also in its metadata."""
    if is_call(conversation):
        return True
    metadata = conversation.extras.get("metadata")
    return any(
        len(name) <= _LONGEST_NAME and snake_case(name) in _PHONE_FIELDS and value not in (None, "")
        for fields in (conversation.extras, metadata)
        if isinstance(fields, dict)
        for name, value in fields.items()
    )


NO_USER_SPEECH = "no_user_speech"
NO_DIALOGUE = (NO_USER_SPEECH, VOICEMAIL, IVR)
"""Why a conversation has no dialogue, as reason codes."""
_A_DIALOGUE = 3
"""So many turns of the user without a phrase of a machine are a dialogue, whatever a field says."""
_LONGEST = 1_000
"""Letters of a turn that are looked at: the greeting of a machine is shorter."""
_MOST_TURNS = 20
_NEVER_THE_USER = frozenset((ASSISTANT, SYSTEM, "tool", "developer"))
_SAYS_NOTHING = lazy_pattern(r"[\s.…·\-–—_*]*")
_ENDS_THE_CALL = frozenset(("end", "hangup", "hang", "terminate", "close", "finish"))
_INPUT = frozenset(
    ["dtmf", "keypress", "key", "keys", "digit", "digits", "pressed", "speaking", "speech", "transcript", "transcribed"]
)
_NOT_INPUT = frozenset(("role", "name", "id", "type", "message_id", "timestamp", "time", "created_at", "user_id"))
_WORDS = lazy_pattern(r"[^\W_]+")


@cached_on_argument
def no_dialogue(conversation: Conversation) -> str:
    """Why there was no dialogue with the agent: one of `NO_DIALOGUE`; nothing where there was one, or it is unknown.

    Data sets are left alone: items to be judged, dialogue states, gold annotations, simulations of a scenario. So are
    logs without utterances, which record no speech at all, and conversations whose integration broke.
    """
    is_of_data_set = (
        conversation.items
        or conversation.frames
        or conversation.scenario is not None
        or any(annotated.origin == "gold" for annotated in conversation.annotations)
        or any(record.source == "simulator" for record in conversation.log)
    )
    if is_of_data_set:
        return ""
    spoken = _user_texts(conversation)
    # A bare `status` of a chat may be its topic: it counts where nothing that a person says is against it.
    stated = _stated_machine(
        conversation, bare=is_phone_call(conversation) or not spoken or any(map(_phrase, spoken[:2]))
    )
    if stated and (len(spoken) < _A_DIALOGUE or any(map(_phrase, spoken))):
        return stated
    if conversation.outcome.error or kind_of_reason(stated_reason(conversation)) == BROKEN:
        return ""
    if spoken:
        return _machine_in_words(spoken)
    return NO_USER_SPEECH if _is_without_speech(conversation) else ""


def _is_without_speech(conversation: Conversation) -> bool:
    """Whether the log records what is said, and the user said and did nothing in it."""
    roles, states = conversation.roles, 0
    for event in conversation.timeline:
        kind = type(event)
        if kind is SlotFilled or (kind is Marker and _is_input(event, roles)):  # type: ignore[arg-type]
            return False
        states += kind is StateEntered
    # What the transcript of a recording holds may be the user's.
    if conversation.recording is not None and conversation.recording.transcript:
        return False
    # A flow that went on had an answer.
    if states > 1 or any(_is_sound(utterance, roles) for utterance in conversation.utterances):
        return False
    if not conversation.contents.has_assistant_speech:
        reasons = (stated_reason(conversation), conversation.outcome.final_status)
        return NO_ANSWER in map(kind_of_reason, reasons)
    # An agent that works by itself has its task in the instructions: that is no chat without a user.
    return is_phone_call(conversation) or all(
        hands_over(call.name) or not _ENDS_THE_CALL.isdisjoint(name_words(call.name))
        for call in conversation.tool_calls
    )


def _is_sound(utterance: Utterance, roles: Mapping[str, str]) -> bool:
    """Whether the user, or a speaker of unknown role, made a sound or sent something, be it a picture."""
    if roles[utterance.speaker] in _NEVER_THE_USER:
        return False
    text = utterance.meant()
    return bool(utterance.segments) or utterance.is_unread if not text.strip() else not is_silence(text)


def _is_input(marker: Marker, roles: Mapping[str, str]) -> bool:
    """Whether the user did something else than speak, or spoke without a transcript, or wrote what cannot be read."""
    if isinstance(marker.value, dict) and marker.value.get("role") == USER:
        return any(is_filled(value) for name, value in marker.value.items() if name not in _NOT_INPUT)
    by_user = roles.get(marker.participant) == USER
    words = name_words(marker.name)
    return (by_user or "user" in words or "dtmf" in words) and not _INPUT.isdisjoint(words)


_LONGEST_TURN = 4_000
"""Characters of a turn that are looked at: no announcement is longer."""


def _user_texts(conversation: Conversation) -> list[str]:
    """What the user said, one text for each turn; what is marked as silence or noise is left out."""
    roles, texts, last = conversation.roles, list[str](), ""
    for utterance in conversation.utterances:
        role = roles[utterance.speaker]
        if role == USER:
            text = utterance.meant()
            if is_silence(text):
                continue
            if last == USER:
                if len(texts[-1]) < _LONGEST_TURN:
                    texts[-1] = f"{texts[-1]} {text}"
            else:
                texts.append(text)
        last = role
    return texts


def is_silence(text: str) -> bool:
    """Whether a text says that there was no speech: nothing, dots, `[silence]`."""
    if len(text) > 40 or text[:1].isalnum():
        return False
    if _SAYS_NOTHING.fullmatch(text):
        return True
    inner = text.strip().casefold()
    if inner[:1] not in "[(<*" or inner[-1:] not in "])>*":
        return False
    return " ".join(name_words(inner)) in _lexicon().words["not_speech"]


# What fields say


def _stated_machine(conversation: Conversation, *, bare: bool) -> str:
    """The machine that the log's own fields name. `bare`: a `status`, `outcome` or `result` may name it."""
    outcome = conversation.outcome
    kind = kind_of_reason(stated_reason(conversation)) or (kind_of_reason(outcome.final_status) if bare else "")
    if kind in (VOICEMAIL, IVR):
        return kind
    machines = (_machine_of_field(name, value, bare) for name, value in named_values(conversation))
    return next(filter(None, machines), "")


def _machine_of_field(name: str, value: Json, bare: bool) -> str:
    machine = _machine_asked(name, bare)
    if not machine:
        return ""
    folded = snake_case(value[:60]) if isinstance(value, str) else ""
    for kind in (VOICEMAIL, IVR):
        if folded in _lexicon().words[kind]:
            return kind
    return machine if machine != "any" and (value is True or folded in ("true", "yes")) else ""


@lru_cache(maxsize=4096)
def _machine_asked(name: str, bare: bool) -> str:
    """The machine that a field of this name asks for; `any` where its value has to name it."""
    folded = folded_field(name)
    if folded not in _lexicon().words["asked"] and not (bare and folded in _lexicon().words["asked_of_calls"]):
        return ""
    words = name_words(folded)
    if "ivr" in words:
        return IVR
    return VOICEMAIL if {"voicemail", "machine"} & set(words) and "detection" not in words else "any"


# What the user's side says


def _machine_in_words(texts: Sequence[str]) -> str:
    """The machine that speaks on the user's side, where no person does."""
    # Most conversations end with words of a person, and nothing more is looked at.
    if not _phrase(texts[-1]) or not any(map(_phrase, texts[:2])):
        return ""
    kinds = [_phrase(text) for text in texts[:_MOST_TURNS]]
    if 2 * sum(map(bool, kinds)) < len(kinds):
        return ""
    return next((kind for kind in (VOICEMAIL, IVR) if kind in kinds), "")


def _phrase(text: str) -> str:
    """Which machine says such words, or `weak`; nothing for words of a person, or that quote a machine."""
    lexicon = _lexicon()
    plain = visible(text[:_LONGEST]).casefold().replace("’", "'")
    if "?" in plain or "？" in plain:
        return ""
    # Most texts do not hold all words of any phrase. To split by blanks is much faster than by a pattern.
    words = frozenset(plain.replace(".", " ").replace(",", " ").replace("-", " ").replace("'", " ").split())
    if not any(needed <= words for hint in lexicon.hints.keys() & words for needed in lexicon.hints[hint]) and (
        plain.isascii() or not any(phrase in plain for phrase in lexicon.unspaced)
    ):
        return ""
    plain = " ".join(plain.split())
    phrases = lexicon.phrases
    kind = next((kind for kind in (VOICEMAIL, IVR) if phrases[kind].search(plain)), "")
    if not kind:
        # A mailbox or a carrier by two parts of its text: whom the call reached, and what the caller should do.
        instructions = {match[0] for match in phrases["instructs"].finditer(plain)}
        is_mailbox = len(instructions) > 1 or (instructions and phrases["reached"].search(plain))
        is_carrier = phrases["states"].search(plain) and phrases["callee"].search(plain)
        if is_mailbox or (is_carrier and not phrases["person"].search(plain)):
            kind = VOICEMAIL
        elif phrases["weak"].search(plain):
            kind = "weak"
    if not kind or phrases["quotes"].search(plain) or (kind == IVR and phrases["person"].search(plain)):
        return ""
    return kind


class _Lexicon(NamedTuple):
    words: Mapping[str, frozenset[str]]
    """Names and values of fields, and what is written for silence."""
    hints: Mapping[str, Sequence[frozenset[str]]]
    """The words of each phrase, by its longest word."""
    unspaced: tuple[str, ...]
    """Phrases of languages that write no blanks."""
    phrases: Mapping[str, re.Pattern[str]]


@cache
def _lexicon() -> _Lexicon:
    data: dict[str, Any] = tomllib.loads(Path(__file__).with_name("machines.toml").read_text(encoding="utf-8"))
    words = {**data.pop("fields"), "not_speech": data.pop("not_speech")["words"]}
    kinds = (VOICEMAIL, IVR, "weak", "quotes", "person", "reached", "instructs", "callee", "states")
    phrases = {kind: [phrase for language in data.values() for phrase in language[kind]] for kind in kinds}
    machine = [phrase for kind in (VOICEMAIL, IVR, "weak", "instructs", "states") for phrase in phrases[kind]]
    hints: dict[str, list[frozenset[str]]] = {}
    for phrase in machine:
        if not _is_unspaced(phrase):
            needed = _WORDS.findall(phrase)
            hints.setdefault(max(needed, key=len), []).append(frozenset(needed))
    return _Lexicon(
        {name: frozenset(listed) for name, listed in words.items()},
        hints,
        tuple(filter(_is_unspaced, machine)),
        {kind: _any_phrase(phrases[kind]) for kind in kinds},
    )


def _any_phrase(phrases: Sequence[str]) -> re.Pattern[str]:
    """Whole phrases; `**` is up to twelve words, with the signs next to them."""
    gap = r"[^ ]{0,2}(?: [^ ]++){0,12} "
    after: dict[str, list[str]] = {}
    for phrase in phrases:
        if not _is_unspaced(phrase):
            first, _, rest = phrase.partition(" ** ")
            after.setdefault(re.escape(first), []).extend([re.escape(rest)] if rest else [""])
    spaced = []
    for first, rests in after.items():
        spaced += [f"{first}{gap}(?:{'|'.join(filter(None, rests))})"] if any(rests) else []
        spaced += [first] if "" in rests else []
    unspaced = [re.escape(one) for one in phrases if _is_unspaced(one)]
    return lazy_pattern("|".join([rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)", *unspaced]))


def _is_unspaced(phrase: str) -> bool:
    return any(character >= "\u3040" for character in phrase)
