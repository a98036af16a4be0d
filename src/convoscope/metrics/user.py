"""Metrics of what the user says: whether they object or ask again, and how much they have to say. English words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.metrics.columns import Conversations
from convoscope.metrics.declaration import CONVERSATION, LOWER, TURN, WORDS, metric
from convoscope.metrics.needs import USER_SPEECH
from convoscope.metrics.presets import share_metric
from convoscope.scores.observation import in_turn, not_applicable
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.words import count_words, long_sentences
from convoscope.views.subjects import WHOLE

MIN_REQUEST_WORDS = 5
ALIKE = 0.6
"""Sentences that share so much of their words ask for the same thing."""
MAX_REQUESTS = 100
"""So many earlier sentences of the user are compared."""

# One boundary before all of them: where no word begins, nothing else is tried.
_OBJECTS = re.compile(
    r"\b(?:no,? (?:i|we) (?:want|wanted|need|needed|meant|would like)\b"
    r"|(?:that|this|it)(?:'s| is| was) (?:not (?:what|right|correct|true|the)|wrong|incorrect)|not what i\b"
    r"|i (?:(?:already|just) (?:told|said|gave|asked|provided|mentioned|explained)|said|asked for|meant)\b"
    r"|are you sure\b|you(?:'re| are) (?:wrong|mistaken)\b|as i (?:said|mentioned)\b"
    r"|(?:doesn't|does not|didn't|did not) (?:work|help|make sense|answer)\b)"
)


@share_metric(
    "user.pushback",
    version=1,
    label="user objects or asks again",
    importance=7,
    observes=TURN,
    better=LOWER,
    needs=(USER_SPEECH,),
    notices=(),
)
def pushback(many: Conversations) -> None:
    """In what share of their turns does the user object, or ask for the same thing again?

    1 of a turn in which the user says that something is wrong or was said before ("that is not what I asked"), or
    says a sentence of five words or more that shares 60 % of its words with an earlier one of theirs; else 0. A turn
    without words of the user is not applicable, and one before which the agent said nothing.
    """
    for place, conversation in enumerate(many.conversations):
        _pushback_in(conversation, many, place)


def _pushback_in(conversation: Conversation, many: Conversations, place: int) -> None:
    requests: list[frozenset[str]] = []
    answered = False
    for turn in conversation.turns:
        text = turn.user_text
        if not text:
            many.add(place, not_applicable(turn, "no_user_text"))
        else:
            sentences = _requests(text)
            if not answered:
                many.add(place, not_applicable(turn, "nothing_to_object_to"))
            elif sign := _objection(text, sentences, requests):
                many.ratio(place, in_turn(turn.id), 1.0, 1.0, {"sign": sign})
            else:
                many.ratio(place, in_turn(turn.id), 0.0, 1.0)
            requests += [sentence.words for sentence in sentences]
            del requests[:-MAX_REQUESTS]
        answered = answered or bool(turn.assistant_text)


class _Request(NamedTuple):
    """A sentence of the user that is long enough to be known again."""

    text: str
    words: frozenset[str]


def _requests(text: str) -> list[_Request]:
    return [
        _Request(one.text, frozenset(one.normalised_words.split())) for one in long_sentences(text, MIN_REQUEST_WORDS)
    ]


def _objection(text: str, sentences: Sequence[_Request], earlier: Sequence[frozenset[str]]) -> str:
    match = _OBJECTS.search(text.casefold().replace("’", "'"))
    if match:
        return match[0]
    return next((sentence.text for sentence in sentences if _is_among(sentence.words, earlier)), "")


def _is_among(words: frozenset[str], earlier: Sequence[frozenset[str]]) -> bool:
    """Whether a sentence has most of its words in common with an earlier one."""
    count = len(words)
    for before in earlier:
        shared = len(words & before)
        if shared >= ALIKE * (count + len(before) - shared):
            return True
    return False


@metric(
    "user.effort",
    version=1,
    label="words the user has to say",
    importance=2,
    observes=CONVERSATION,
    unit=WORDS,
    better=LOWER,
    needs=(USER_SPEECH,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    notices=(),
)
def effort(many: Conversations) -> None:
    """How many words does the user have to say?

    Words of all turns of the user. A hard task takes more of them than an easy one: compare conversations of one
    task, and read it beside what came of them, as a user who is sent away said little.
    """
    for place, conversation in enumerate(many.conversations):
        many.measured(place, WHOLE, float(sum([count_words(turn.user_text) for turn in conversation.turns])))
