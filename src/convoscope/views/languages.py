"""Which language is spoken: by each speaker, in each utterance. What the log states counts before what is detected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convoscope.conversation import ASSISTANT, USER, Conversation, Utterance
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.language import (
    has_many_words,
    is_alone,
    is_plainly,
    is_sure,
    is_written_in,
    language_code,
    language_of,
    plain_language_of,
)

LANGUAGE_NOT_SUPPORTED = "language_not_supported"
"""The reason code where words are of a language that a metric does not read."""
LANGUAGE_UNKNOWN = "language_unknown"
"""The reason code where nothing says what language the words are of."""

_FIELDS = ("language", "lang", "locale", "language_code", "detected_language")
_ABOUT_SPEAKERS = {USER: ("user", "customer", "caller", "contact", "client"), ASSISTANT: ("assistant", "agent", "bot")}
_COMMON = 160
"""Characters of a speaker's words in which common words are counted."""
_SAMPLE = 50
"""Where these say too little: characters that the model is asked about. Where it is not certain, `_MOST`."""
_MOST = 480
_UTTERANCE = 80
"""Characters of an utterance that decide about it alone."""
_MIN_VOTES = 2
"""Common words by which a speaker is known to speak what another one speaks."""


class SpokenLanguages:
    """The languages of one conversation. Codes as in `text.language`; nothing where it is unknown."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._of_all = _stated_in(conversation.extras) or _stated_in(conversation.dimensions)
        self._of_speakers: dict[str, str] = {}
        self._stated_by: dict[str, str] = {}
        self._usual: dict[str, str] = {}
        self._said: dict[str, list[str]] | None = None

    def of_speaker(self, speaker: str) -> str:
        """What one participant speaks: as stated, else by their own words; where few, by the others'."""
        if speaker not in self._of_speakers:
            stated = self._stated(speaker)
            self._of_speakers[speaker] = stated if _is_believed(stated) else self._by_words(speaker) or stated
        return self._of_speakers[speaker]

    def of_text(self, text: str, utterance: Utterance) -> str:
        """The language of some words of an utterance, or of several that begin with it."""
        speaker = utterance.speaker
        if speaker not in self._usual:
            # Nothing where each utterance has to be looked at.
            usual = self._stated(speaker)
            if not _is_believed(usual):
                usual = self.of_speaker(speaker)
                usual = usual if is_alone(usual, " ".join(self._texts(speaker))) else ""
            self._usual[speaker] = usual
        if language := _stated_of(utterance) or self._usual[speaker]:
            return language
        usual = self.of_speaker(speaker)
        if is_plainly(usual, text):
            return usual
        own = language_of(text[:_UTTERANCE])
        # Few words, or a few letters of a script: the speaker's other words say the language.
        return usual if not own or (not is_sure(own) and is_written_in(usual, own)) else own

    def of_all(self) -> str:
        """The language of all that is said: as stated, else by the words of everyone together."""
        stated = self._of_all
        return stated if _is_believed(stated) else _language_of_all(self._all_texts()) or stated

    def of_role(self, role: str) -> str:
        """What the first participant of a role speaks."""
        speaker = next((one.id for one in self._conversation.participants if one.role == role), None)
        return self._of_all if speaker is None else self.of_speaker(speaker)

    def _stated(self, speaker: str) -> str:
        if speaker not in self._stated_by:
            extras = self._conversation.extras
            role = self._conversation.roles.get(speaker, "") if extras else ""
            about = (extras.get(name) for name in _ABOUT_SPEAKERS.get(role, ()))
            codes = (_stated_in(fields) for fields in about if isinstance(fields, Mapping))
            self._stated_by[speaker] = next(filter(None, codes), self._of_all)
        return self._stated_by[speaker]

    def _by_words(self, speaker: str) -> str:
        own = self._texts(speaker)
        for known in self._of_speakers.values():
            if is_plainly(known, " ".join(_beginnings(own, _COMMON)), _MIN_VOTES):
                return known
        language = _language_of_all(own)
        # Many words that no language is known by are of none that is: what others speak says nothing about them.
        if language or has_many_words(" ".join(_beginnings(own, _MOST))):
            return language
        others = self._all_texts(without=speaker)
        return _language_of_all(others) or _language_of_all([*own, *others])

    def _texts(self, speaker: str) -> list[str]:
        """What one participant says."""
        if self._said is None:
            self._said = {}
            for utterance in self._conversation.utterances:
                if text := self._conversation.text(utterance):
                    self._said.setdefault(utterance.speaker, []).append(text)
        return self._said.get(speaker, [])

    def _all_texts(self, without: str | None = None) -> list[str]:
        """What all say in their order, but one of them."""
        conversation = self._conversation
        others = (utterance for utterance in conversation.utterances if utterance.speaker != without)
        return [text for utterance in others if (text := conversation.text(utterance))]


@cached_on_argument
def languages_of(conversation: Conversation) -> SpokenLanguages:
    """The languages of a conversation, each found out when it is asked for."""
    return SpokenLanguages(conversation)


def reason_unread(language: str) -> str:
    """Why words of a language are not read, as a reason code."""
    return LANGUAGE_NOT_SUPPORTED if language else LANGUAGE_UNKNOWN


def _language_of_all(texts: Sequence[str]) -> str:
    """By the beginnings of some texts; by more of them where that says too little."""
    if plain := plain_language_of(" ".join(_beginnings(texts, _COMMON))):
        return plain
    short = " ".join(_beginnings(texts, _SAMPLE))
    language = language_of(short)
    if is_sure(language) or sum(map(len, texts)) <= len(short):
        return language
    return language_of(" ".join(_beginnings(texts, _MOST))) or language


def _is_believed(stated: str) -> bool:
    """A log that states a language is believed. English is what many write where no one chose: words may differ."""
    return stated not in ("", "en")


def _stated_in(fields: Mapping[str, Any]) -> str:
    """The language that some fields state; nothing where they state none."""
    if not fields:
        return ""
    for name in _FIELDS:
        if name in fields and (code := language_code(fields[name])):
            return code
    metadata = fields.get("metadata")
    return _stated_in(metadata) if isinstance(metadata, Mapping) and metadata is not fields else ""


def _stated_of(utterance: Utterance) -> str:
    for text in (utterance.heard, utterance.spoken, utterance.intended):
        if text is not None and text.language and (code := language_code(text.language)):
            return code
    return _stated_in(utterance.extras) if utterance.extras else ""


def _beginnings(texts: Sequence[str], most: int) -> Iterator[str]:
    for text in texts:
        if most <= 0:
            return
        yield text[:most]
        most -= len(text)
