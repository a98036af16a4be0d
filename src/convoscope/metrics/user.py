"""Metrics of what the user says: whether they object or ask again, and how much they have to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.conversation.lazy import remembered
from convoscope.conversation.turns import Turn
from convoscope.metrics.declaration import CONVERSATION, EVENT, LOWER, WORDS, metric, share_metric
from convoscope.metrics.needs import USER_SPEECH
from convoscope.scores.observation import Observation, measured, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.comparison import count_words, is_without_blanks
from convoscope.text.language import language_of
from convoscope.text.lexicon import (
    AFTER_STATEMENT,
    AGENT_REQUEST,
    PERSON_REQUEST,
    SENTENCE,
    Lexicon,
    folded_phrases,
    lexicon,
    lexicon_languages,
    without_quotes,
)
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, languages_of, reason_unread

MIN_REQUEST_WORDS = 4
MIN_REQUEST_LETTERS = 8
"""Of a sentence without blanks."""
ALIKE = 0.75
"""Sentences that share so much of their content ask for the same thing."""
MIN_CONTENT = 2
"""So many words of content, or pairs of letters where there are no blanks, must be the same."""
MIN_CONTENT_LONG_AGO = 3
MAX_GREETING = 80
"""Characters of what the agent opens with."""
MAX_TURNS = 10
"""So many earlier turns of the user are compared."""


@share_metric(
    "user.pushback",
    version=2,
    label="user objects or asks again",
    importance=7,
    observes=EVENT,
    better=LOWER,
    needs=(USER_SPEECH,),
    languages=lexicon_languages(),
    sensitive_to=(),
)
def pushback(conversation: Conversation) -> Iterator[Observation]:
    """In what share of their turns does the user object to the agent, or ask for the same thing again?

    1 of a turn in which the user says that the agent's reply is wrong, does not help or was not asked for, or that
    they have said something before ("that is not what I asked"); or asks again for what they asked for in an
    earlier turn, or for a person, in whatever words; else 0. What describes the problem ("it does not work") is no
    objection, nor is what the user says first after a greeting, what they quote, or what may answer a question of
    the agent ("no, I want the other one"), unless the agent declines in the same turn. Thanks, goodbyes, consent,
    and facts that the agent asks for are not asked again, however often they are said. A turn without words of the
    user is not applicable, and one before which the agent said nothing. A turn in a language without a lexicon is
    unmeasured, unless the user says nothing but one question, again and again.

    >>> value(pushback, example("user: Where is it?", "assistant: On Monday.", "user: That is not what I asked."))
    1.0
    """
    turns = [turn for turn in conversation.turns if turn.user]
    if not turns:
        yield not_applicable(conversation, "no_user_speech")
        return
    messages = _messages(conversation, turns)
    earlier: list[_Message] = []
    reply = next((turn.assistant_text for turn in conversation.turns if not turn.user), "")
    question = _only_question(turns)
    for turn, message in zip(turns, messages, strict=True):
        first, answered = turn.user[0], reply
        reply = turn.assistant_text or reply
        if message is None:
            yield not_applicable(first, "no_user_text")
            continue
        # After a greeting, which is short or asks, the user says why they are here.
        is_greeted = not earlier and ("?" in answered or "？" in answered or len(answered) <= MAX_GREETING)
        if not answered.strip():
            yield not_applicable(first, "nothing_to_object_to")
        elif question and turn is not turns[0]:
            yield ratio(first, 1.0, 1.0, details={"sign": question})
        elif message.lexicon is None:
            yield unmeasured(first, reason_unread(message.language), message.language)
        elif not is_greeted and (sign := _sign(message, message.lexicon, answered, earlier)):
            yield ratio(first, 1.0, 1.0, details={"sign": sign})
        else:
            yield ratio(first, 0.0, 1.0)
        earlier.append(message)
        del earlier[:-MAX_TURNS]


def _messages(conversation: Conversation, turns: Sequence[Turn]) -> list[_Message | None]:
    """What the user says in each turn; None where that is nothing."""
    languages = languages_of(conversation)
    messages: list[_Message | None] = []
    by_language: dict[str, list[_Message]] = {}
    for turn in turns:
        text = turn.user_text
        if not text.strip():
            messages.append(None)
            continue
        language = languages.of_text(text, turn.user[0])
        message = _Message(text, language, lexicon(language))
        messages.append(message)
        by_language.setdefault(language, []).append(message)
    for same in by_language.values():
        words = same[0].lexicon
        if words is not None and words.may_hold(_OBJECTIONS, [message.text for message in same]):
            for message in same:
                message.may_object = True
    return messages


def _only_question(turns: Sequence[Turn]) -> str:
    """The one question that a user asks again and again, whatever its language; nothing where they say more."""
    if len(turns) < 2 or not turns[0].user_text.rstrip().endswith(("?", "？", "؟")):
        return ""
    texts = {folded_phrases(turn.user_text) for turn in turns}
    return texts.pop().strip(" .?") if len(texts) == 1 else ""


def _sign(message: _Message, words: Lexicon, reply: str, earlier: Sequence[_Message]) -> str:
    """The words by which the user objects or asks again; nothing where they do neither."""
    if message.may_object and (sign := _objection(message, words, reply, earlier)):
        return sign
    if message.content:
        return _repeated(message, words, reply, earlier)
    # Nothing but question marks: what was said is not understood, or no answer.
    return "?" if message.text.strip(" .") and not message.text.strip(" .?") else ""


def _objection(message: _Message, words: Lexicon, reply: str, earlier: Sequence[_Message]) -> str:
    """The words by which the user objects, or asks for a person again."""
    if sign := words.find("objection", message.text):
        return sign
    if sign := words.find(AFTER_STATEMENT, message.text):
        # Where the reply asks nothing, or declines, that is no mere answer.
        folded = folded_phrases(reply)
        if not ("?" in folded or words.find(AGENT_REQUEST, folded)) or words.find("refusal", folded):
            return sign
    sign = words.find(PERSON_REQUEST, message.text)
    return sign if sign and any(words.find(PERSON_REQUEST, before.text) for before in earlier) else ""


def _repeated(message: _Message, words: Lexicon, reply: str, earlier: Sequence[_Message]) -> str:
    """The sentence by which the user asks again."""
    content = message.content
    # All of one sentence must be nearly the same: then it is enough to look at the messages.
    alike = ALIKE * len(content) if message.is_one_sentence else 0
    least, near = MIN_CONTENT, []
    for before in reversed(earlier):
        if len(content & before.content) >= max(least, alike):
            near.append((least, before))
        least = MIN_CONTENT_LONG_AGO
    again = [one for one in message.sentences if _was_asked(one.content, near)] if near else []
    if not again or words.find("agreement", message.text):
        return ""
    folded = folded_phrases(reply)
    return next((one.text for one in again if _asks_again(one, words, folded)), "")


class _Sentence(NamedTuple):
    """A sentence of the user that is long enough to be known again."""

    text: str
    content: frozenset[str]
    is_question: bool


class _Message:
    """What the user says in one turn, folded; nothing of a language without a lexicon."""

    may_object = False
    """The user's messages have words by which one objects."""

    def __init__(self, text: str, language: str, words: Lexicon | None) -> None:
        self.language, self.lexicon = language, words
        self.text = "" if words is None else folded_phrases(without_quotes(text))
        self.content = _NOTHING if words is None else _content(self.text, words)

    @property
    def is_one_sentence(self) -> bool:
        """Whether all of its content is in one sentence for certain."""
        inner = self.text.strip(" .?")
        return "." not in inner and "?" not in inner and self.lexicon is not None and self.lexicon.has_blanks

    @remembered
    def sentences(self) -> list[_Sentence]:
        """Those that are long enough to be known again. Most turns are never asked for theirs."""
        words, long = self.lexicon, []
        if words is None:
            return []
        least = MIN_REQUEST_WORDS if words.has_blanks else MIN_REQUEST_LETTERS
        sentences = SENTENCE.findall(self.text.strip())
        for sentence in sentences:
            plain = sentence.strip(" .?")
            length = plain.count(" ") + 1 if words.has_blanks else len(plain.replace(" ", ""))
            if length >= least:
                is_all = words.has_blanks and len(sentences) == 1
                content = self.content if is_all else _content(plain, words)
                if content:
                    long.append(_Sentence(plain, content, sentence.endswith("?")))
        return long


def _content(text: str, words: Lexicon) -> frozenset[str]:
    """What distinguishes a text: words that carry content, or pairs of letters where there are no blanks."""
    if words.has_blanks:
        return frozenset(text.split()) - words.common - _SIGNS
    letters = text.replace(" ", "")
    return frozenset(map("".join, pairwise(letters))) - _SIGNS


_SIGNS = frozenset(".?")
_OBJECTIONS = ("objection", AFTER_STATEMENT, PERSON_REQUEST)
_NOTHING: frozenset[str] = frozenset()


def _was_asked(content: frozenset[str], earlier: Iterable[tuple[int, _Message]]) -> bool:
    """Whether a sentence has its content, and all its numbers, in common with one of an earlier turn.

    `earlier` has turns, each with the number of words that must be the same: of a turn before the last one, a sentence
    must say more, as "is it free" is asked of many things.
    """
    for least, message in earlier:
        for before in message.sentences:
            shared = len(content & before.content)
            if shared < least or shared < ALIKE * (len(content) + len(before.content) - shared):
                continue
            if not any(word[0].isdigit() for word in content ^ before.content):
                return True
    return False


def _asks_again(sentence: _Sentence, words: Lexicon, reply: str) -> bool:
    """Whether a sentence that was said before is no courtesy, and no answer to what the agent asked."""
    text = f" {sentence.text} "
    if words.find("thanks", text) or words.find("goodbye", text):
        return False
    if sentence.is_question or not ("?" in reply or words.find("request", reply)):
        return True
    # Numbers are facts, which the agent may have asked for: what is said with them must be more than a few words.
    plain = [word for word in sentence.content if not word[0].isdigit()]
    if len(plain) < len(sentence.content) and len(plain) <= MIN_CONTENT:
        return False
    taken_up = sum(word in reply for word in sentence.content)
    return bool(words.find("request", text)) and 2 * taken_up < len(sentence.content)


@metric(
    "user.effort",
    version=2,
    label="words the user has to say",
    importance=2,
    observes=CONVERSATION,
    unit=WORDS,
    better=LOWER,
    needs=(USER_SPEECH,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    sensitive_to=(),
)
def effort(conversation: Conversation) -> Observation:
    """How many words does the user have to say?

    Words of all turns of the user. A hard task takes more of them than an easy one: compare conversations of one
    task, and read it together with what came of them, as a user who is sent away said little. Unmeasured where the user
    writes without blanks between words, as in Japanese. Not applicable where no message of theirs has words, as with
    pictures.

    >>> value(effort, example("user: Where is it?", "assistant: It left on Monday.", "user: Thank you."))  # 3 + 2 words
    5.0
    """
    texts = [turn.user_text for turn in conversation.turns]
    without_blanks = next((text for text in texts if not text.isascii() and is_without_blanks(text)), "")
    if not any(map(str.strip, texts)):
        # Pictures, sound, files.
        return not_applicable(conversation, "no_user_text")
    if without_blanks:
        return unmeasured(conversation, LANGUAGE_NOT_SUPPORTED, language_of(without_blanks))
    return measured(conversation, sum(map(count_words, texts)))
