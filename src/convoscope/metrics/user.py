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
    languages = languages_of(conversation)
    earlier: list[_Message] = []
    reply = next((turn.assistant_text for turn in conversation.turns if not turn.user), "")
    question = _only_question(turns)
    for turn in turns:
        first, text, answered = turn.user[0], turn.user_text, reply
        reply = turn.assistant_text or reply
        if not text.strip():
            yield not_applicable(first, "no_user_text")
            continue
        language = languages.of_text(text, first)
        words = lexicon(language)
        message = _Message("" if words is None else folded_phrases(without_quotes(text)), words)
        # After a greeting, which is short or asks, the user says why they are here.
        is_greeted = not earlier and ("?" in answered or "？" in answered or len(answered) <= MAX_GREETING)
        if not answered.strip():
            yield not_applicable(first, "nothing_to_object_to")
        elif question and turn is not turns[0]:
            yield ratio(first, 1.0, 1.0, details={"sign": question})
        elif words is None:
            yield unmeasured(first, reason_unread(language), language)
        elif not is_greeted and (sign := _sign(message, words, answered, earlier)):
            yield ratio(first, 1.0, 1.0, details={"sign": sign})
        else:
            yield ratio(first, 0.0, 1.0)
        earlier.append(message)
        del earlier[:-MAX_TURNS]


def _only_question(turns: Sequence[Turn]) -> str:
    """The one question that a user asks again and again, whatever its language; nothing where they say more."""
    if len(turns) < 2 or not turns[0].user_text.rstrip().endswith(("?", "？", "؟")):
        return ""
    texts = {folded_phrases(turn.user_text) for turn in turns}
    return texts.pop().strip(" .?") if len(texts) == 1 else ""


def _sign(message: _Message, words: Lexicon, reply: str, earlier: Sequence[_Message]) -> str:
    """The words by which the user objects or asks again; nothing where they do neither."""
    if sign := words.find("objection", message.text):
        return sign
    if sign := words.find(AFTER_STATEMENT, message.text):
        # Where the reply asks nothing, or declines, that is no mere answer.
        folded = folded_phrases(reply)
        if not ("?" in folded or words.find(AGENT_REQUEST, folded)) or words.find("refusal", folded):
            return sign
    sign = words.find(PERSON_REQUEST, message.text)
    if sign and any(words.find(PERSON_REQUEST, before.text) for before in earlier):
        return sign
    if message.content:
        return _repeated(message, words, reply, earlier)
    # Nothing but question marks: what was said is not understood, or no answer.
    return "?" if message.text.strip(" .") and not message.text.strip(" .?") else ""


def _repeated(message: _Message, words: Lexicon, reply: str, earlier: Sequence[_Message]) -> str:
    """The sentence by which the user asks again."""
    content = message.content
    near = [(distance, one) for distance, one in enumerate(reversed(earlier)) if len(content & one.content) > 1]
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
    """What the user says in one turn, folded."""

    def __init__(self, text: str, words: Lexicon | None) -> None:
        self.text = text
        self._words = words
        self.content = _NOTHING if words is None else _content(text, words)

    @remembered
    def sentences(self) -> list[_Sentence]:
        """Those that are long enough to be known again. Most turns are never asked for theirs."""
        words, long = self._words, []
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
_NOTHING: frozenset[str] = frozenset()


def _was_asked(content: frozenset[str], earlier: Iterable[tuple[int, _Message]]) -> bool:
    """Whether a sentence has its content, and all its numbers, in common with one of an earlier turn.

    Of a turn before the last one, a sentence must say more to be the same: "is it free" is asked of many things.
    """
    for distance, message in earlier:
        least = MIN_CONTENT if distance == 0 else MIN_CONTENT_LONG_AGO
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
