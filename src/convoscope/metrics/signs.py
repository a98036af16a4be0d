"""Signs that a conversation goes wrong, which need neither a judge nor a label: the words are English."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import CONVERSATION, COUNT, EVENT, LOWER, NEITHER, TURN, WORDS, metric
from convoscope.metrics.needs import ASSISTANT_SPEECH, TOOL_CALLS, USER_SPEECH
from convoscope.metrics.nonsense import EMPTY_AGENT
from convoscope.metrics.presets import conversation_share_metric, share_metric
from convoscope.scores.observation import (
    Observation,
    measured,
    not_applicable,
    ratio,
    subject_of,
    unmeasured,
)
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.identifiers import name_words
from convoscope.text.words import count_words, long_sentences
from convoscope.views.user_turns import hands_over

LAST_TURNS = 2
"""Of the agent: what it says in them is its last word, be it followed by a goodbye."""
MIN_REQUEST_WORDS = 5
ALIKE = 0.6
"""Sentences that share so much of their words ask for the same thing."""
MAX_REQUESTS = 100
"""So many earlier sentences of the user are compared."""

_LOOKS_ONLY = frozenset(
    ("get", "search", "find", "list", "lookup", "look", "check", "calculate", "think", "fetch", "query", "read")
) | frozenset(("verify", "authenticate", "describe", "show", "retrieve", "view", "count", "identify", "validate"))
# One boundary before all of them: where no word begins, nothing else is tried.
_DECLINES = re.compile(
    r"\b(?:(?:transfer(?:ring|red)?|connect(?:ing|ed)?|forward(?:ing|ed)?) (?:you|your (?:call|request))\b"
    r"|hand(?:ing|ed)? you over\b|(?:i|we)(?:(?: am|'m| are|'re) (?:unable|not able) to| cannot| can't| can not"
    r"| apologi[sz]e|(?:'m| am|'re| are) (?:very |so |really )?sorry)\b|unfortunately\b)"
)
_OBJECTS = re.compile(
    r"\b(?:no,? (?:i|we) (?:want|wanted|need|needed|meant|would like)\b"
    r"|(?:that|this|it)(?:'s| is| was) (?:not (?:what|right|correct|true|the)|wrong|incorrect)|not what i\b"
    r"|i (?:(?:already|just) (?:told|said|gave|asked|provided|mentioned|explained)|said|asked for|meant)\b"
    r"|are you sure\b|you(?:'re| are) (?:wrong|mistaken)\b|as i (?:said|mentioned)\b"
    r"|(?:doesn't|does not|didn't|did not) (?:work|help|make sense|answer)\b)"
)


@conversation_share_metric(
    "agent.declined",
    version=1,
    label="handed over or declined",
    importance=3,
    better=NEITHER,
    needs=(ASSISTANT_SPEECH,),
    notices=(),
)
def declined(conversation: Conversation) -> Observation:
    """Did the agent hand over or decline in the end, without having done anything?

    1 where it calls a tool that hands over to a person, or says in its last two turns that it hands over, cannot or
    is sorry, and no call of a tool that changes something came back without an error. Else 0. A tool changes
    something unless its name begins with a verb of looking: get, search, find, list, check, calculate. Which is better
    depends on the request: to decline what the rules forbid is right.
    """
    sign = _sign_of_declining(conversation)
    done = _action_done(conversation) if sign else ""
    details = {name: text for name, text in (("sign", sign), ("done", done)) if text}
    return measured(conversation, 1 if sign and not done else 0, details=details or None)


def _sign_of_declining(conversation: Conversation) -> str:
    """What the agent did or said that hands over or declines; nothing where it did not."""
    for call in conversation.tool_calls:
        if hands_over(call):
            return call.name
    speaking = [text for turn in conversation.turns if (text := turn.assistant_text)]
    for text in reversed(speaking[-LAST_TURNS:]):
        plain = text.casefold().replace("’", "'")
        if match := _DECLINES.search(plain):
            return match[0]
    return ""


def _action_done(conversation: Conversation) -> str:
    """The last tool that changes something and came back without an error; nothing where there is none."""
    results = conversation.tool_results
    for call in reversed(conversation.tool_calls):
        words = name_words(call.name)
        if (
            words
            and words[0] not in _LOOKS_ONLY
            and not hands_over(call)
            and (result := results.get(call.seq)) is not None
            and not result.failed
        ):
            return call.name
    return ""


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
def pushback(conversation: Conversation) -> Iterator[Observation]:
    """In what share of their turns does the user object, or ask for the same thing again?

    1 of a turn in which the user says that something is wrong or was said before ("that is not what I asked"), or
    says a sentence of five words or more that shares 60 % of its words with an earlier one of theirs; else 0. A turn
    without words of the user is not applicable, and one before which the agent said nothing.
    """
    requests: list[frozenset[str]] = []
    answered = False
    for turn in conversation.turns:
        text = turn.user_text
        if not text:
            yield not_applicable(turn, "no_user_text")
        else:
            sentences = _requests(text)
            if answered:
                sign = _objection(text, sentences, requests)
                yield ratio(turn, 1 if sign else 0, 1, empty="no_user_text", details={"sign": sign} if sign else None)
            else:
                yield not_applicable(turn, "nothing_to_object_to")
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
    for sentence in sentences:
        if any(len(sentence.words & before) >= ALIKE * len(sentence.words | before) for before in earlier):
            return sentence.text
    return ""


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
def effort(conversation: Conversation) -> Observation:
    """How many words does the user have to say?

    Words of all turns of the user. A hard task takes more of them than an easy one: compare conversations of one
    task, and read it beside what came of them, as a user who is sent away said little.
    """
    return measured(conversation, sum(count_words(turn.user_text) for turn in conversation.turns))


@metric(
    "tools.unrecovered_errors",
    version=1,
    label="tool errors that stay",
    importance=5,
    observes=CONVERSATION,
    unit=COUNT,
    better=LOWER,
    needs=(TOOL_CALLS,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    notices=(),
    falls_silent=(EMPTY_AGENT,),
)
def unrecovered_errors(conversation: Conversation) -> Observation:
    """How many tools failed, and never worked afterwards?

    Tools whose last call that has a result came back with an error. Unmeasured where no call has a result.
    """
    results = conversation.tool_results
    last: dict[str, bool] = {}
    for call in conversation.tool_calls:
        result = results.get(call.seq)
        if result is not None:
            last[call.name] = result.failed
    if not last:
        return unmeasured(conversation, "no_tool_result")
    names = [name for name, failed in last.items() if failed]
    return measured(conversation, len(names), details={"tools": names} if names else None)


@share_metric(
    "tools.repeated_calls",
    version=1,
    label="tool calls repeated",
    importance=3,
    observes=EVENT,
    better=LOWER,
    needs=(TOOL_CALLS,),
    notices=(),
    falls_silent=(EMPTY_AGENT,),
)
def repeated_calls(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls says again what an earlier one said, and learns nothing new?

    1 of a call of the same tool with the same arguments as an earlier call, whose result, where the log has one, is
    also the same; else 0. Asking again until the answer changes is no repetition.
    """
    results = conversation.tool_results
    earlier: set[bytes] = set()
    for call in conversation.tool_calls:
        result = results.get(call.seq)
        answer = None if result is None else (result.result, result.error, result.success)
        key = _encode((call.name, call.arguments, call.raw_arguments, answer))
        yield ratio(subject_of(call), 1 if key in earlier else 0, 1, empty="no_tool_calls", details={"tool": call.name})
        earlier.add(key)


_encode = msgspec.json.Encoder(order="sorted").encode
