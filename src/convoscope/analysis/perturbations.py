"""Conversations turned into nonsense: each kind is a pure function from a conversation to a conversation.

A conversation that a kind does not change is given back as it is. Whatever others say of a conversation (labels,
reports of components, states, the outcome that was logged) stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

from msgspec.structs import replace

from convoscope.conversation import ASSISTANT, DEFAULT_TURN_RULE, USER, Conversation, Item, Time, Utterance
from convoscope.conversation.events import AnyEvent, ToolCall, ToolResult
from convoscope.metrics.perturbations import (
    EMPTY_AGENT,
    EQUAL_TIMES,
    PARROT,
    RANDOM_WORDS,
    SAYS_EVERYTHING,
    SHUFFLED_TURNS,
    SKEWED_CLOCKS,
    SWAPPED_ROLES,
    Perturbation,
)

OFF = 5.0
"""Seconds that a skewed clock is off from the start."""
DRIFT = 0.5
"""Seconds that it goes on to lose with each utterance."""

_END_OF_CALL = "connection_state"


def by_timeline(conversation: Conversation) -> Conversation:
    """The conversation as its timeline tells it, which is what nonsense is made of.

    Of the records behind the timeline, which some metrics read beside it, only those of the call's end are left.
    """
    if not conversation.log and conversation.turn_rule == DEFAULT_TURN_RULE:
        return conversation
    log = tuple([replace(record, event=-1) for record in conversation.log if record.kind == _END_OF_CALL])
    return replace(conversation, log=log, turn_rule=DEFAULT_TURN_RULE)


def empty_agent(conversation: Conversation) -> Conversation:
    """The agent says nothing and calls no tool; so nothing changes in the scenario's database either.

    The answer of an evaluation item stays as an utterance without words.
    """
    deeds = list(_deeds(conversation))
    answers = {item.answered for item in conversation.items}
    emptied = {event.seq: _without_words(event) for event in deeds if type(event) is Utterance and event.seq in answers}
    gone = {event.seq for event in deeds} - emptied.keys()
    if not deeds:
        return conversation
    scenario = conversation.scenario
    if scenario is not None and scenario.before is not None and scenario.after is not None:
        scenario = replace(scenario, after=scenario.before)
    return replace(
        conversation,
        timeline=tuple([emptied.get(event.seq, event) for event in conversation.timeline if event.seq not in gone]),
        scenario=scenario,
        items=tuple([_without_deeds(item, gone) for item in conversation.items]),
        frames=tuple([frame for frame in conversation.frames if frame.seq not in gone]),
        annotations=(),
    )


def _deeds(conversation: Conversation) -> Iterable[AnyEvent]:
    """What the agent said, the calls that it made, and the results of all calls but the user's own."""
    results = conversation.tool_results
    of_user = {
        results[call.seq].seq
        for call in conversation.tool_calls
        if call.seq in results and not _is_agents(conversation, call)
    }
    for event in conversation.timeline:
        if _is_agents(conversation, event) or (type(event) is ToolResult and event.seq not in of_user):
            yield event


def _is_agents(conversation: Conversation, event: AnyEvent) -> bool:
    if type(event) is Utterance:
        return conversation.roles[event.speaker] == ASSISTANT
    return type(event) is ToolCall and conversation.roles.get(event.caller) != USER


def _without_words(utterance: Utterance) -> Utterance:
    return replace(_worded(utterance, ""), segments=())


def _without_deeds(item: Item, gone: set[int]) -> Item:
    extras = item.extras
    if item.events or "tool_calls" in extras:
        extras = {**extras, "tool_calls": []}  # a list without a call says that none was made
    return _not_extracted(
        replace(
            item,
            asked=None if item.asked in gone else item.asked,
            answered=None if item.answered in gone else item.answered,
            events=tuple([seq for seq in item.events if seq not in gone]),
            extras=extras,
        )
    )


def parrot(conversation: Conversation) -> Conversation:
    """The agent repeats the user's last words; what it says before the user speaks stays."""
    words: dict[int, str] = {}
    last = ""
    for utterance in conversation.utterances:
        role = conversation.roles[utterance.speaker]
        if role == USER:
            last = conversation.text(utterance) or last
        elif role == ASSISTANT and last:
            words[utterance.seq] = last
    return saying(conversation, words)


def says_everything(conversation: Conversation) -> Conversation:
    """Each reply of the agent is all of its replies."""
    replies = _replies(conversation)
    everything = " ".join(replies.values())
    return saying(conversation, dict.fromkeys(replies, everything) if len(replies) > 1 else {})


def shuffled_turns(conversation: Conversation) -> Conversation:
    """Each reply of the agent stands in another turn: the next comes first, and the first last."""
    replies = _replies(conversation)
    texts = list(replies.values())
    return saying(conversation, dict(zip(replies, [*texts[1:], *texts[:1]], strict=True)))


def random_words(conversation: Conversation) -> Conversation:
    """The agent's words are random letters, each word as long as it was."""
    draw = Random(conversation.id)
    return saying(
        conversation,
        {seq: "".join([_drawn(letter, draw) for letter in text]) for seq, text in _replies(conversation).items()},
    )


def _drawn(letter: str, draw: Random) -> str:
    if letter.isspace() or not letter.isalnum():
        return letter
    if letter.isdecimal():
        return draw.choice(digits)
    return draw.choice(ascii_uppercase if letter.isupper() else ascii_lowercase if letter.islower() else ascii_letters)


def _replies(conversation: Conversation) -> dict[int, str]:
    """The agent's words, by the seq of their utterance."""
    roles = conversation.roles
    return {
        one.seq: one.meant()
        for one in conversation.utterances
        if roles[one.speaker] == ASSISTANT and one.meant().strip()
    }


def saying(conversation: Conversation, words: Mapping[int, str]) -> Conversation:
    """The conversation with other words in some utterances; what was extracted from these for an item goes."""
    if all(one.meant() == words[one.seq] for one in conversation.utterances if one.seq in words):
        return conversation
    return replace(
        conversation,
        timeline=tuple(
            [
                _worded(event, words[event.seq]) if type(event) is Utterance and event.seq in words else event
                for event in conversation.timeline
            ]
        ),
        items=tuple([_not_extracted(item) if item.answered in words else item for item in conversation.items]),
    )


def _not_extracted(item: Item) -> Item:
    return replace(item, extras={name: value for name, value in item.extras.items() if name != "extracted_content"})


def _worded(utterance: Utterance, words: str) -> Utterance:
    """The utterance with other words, wherever it has some."""
    texts = {
        name: replace(text, text=words)
        for name, text in (("intended", utterance.intended), ("spoken", utterance.spoken), ("heard", utterance.heard))
        if text is not None
    }
    return replace(utterance, **texts)


def swapped_roles(conversation: Conversation) -> Conversation:
    """The user is taken for the agent, and the agent for the user."""
    swapped = {USER: ASSISTANT, ASSISTANT: USER}
    if not swapped.keys() & set(conversation.roles.values()):
        return conversation
    return replace(
        conversation,
        participants=tuple([replace(one, role=swapped.get(one.role, one.role)) for one in conversation.participants]),
        items=tuple([replace(item, asked=item.answered, answered=item.asked) for item in conversation.items]),
    )


def equal_times(conversation: Conversation) -> Conversation:
    """Everything happens at the same moment: the first that each clock tells."""
    first: dict[str, float] = {}
    for event in conversation.timeline:
        if event.time is not None:
            first[event.time.clock] = min(first.get(event.time.clock, event.time.at), event.time.at)
        for segment in event.segments if type(event) is Utterance else ():
            first[segment.clock] = min(first.get(segment.clock, segment.start), segment.start)
    return _retimed(conversation, lambda _, __, clock: first[clock])


def skewed_clocks(conversation: Conversation) -> Conversation:
    """The agent's clock is some seconds off, and more with each of its utterances."""
    agents = [one.seq for one in conversation.utterances if conversation.roles[one.speaker] == ASSISTANT]
    late = {seq: OFF + DRIFT * place for place, seq in enumerate(agents)}
    return _retimed(conversation, lambda event, at, _: at + late.get(event.seq, 0.0))


def _retimed(conversation: Conversation, moment: Callable[[AnyEvent, float, str], float]) -> Conversation:
    """The conversation with other times; itself where none is another."""
    timeline = tuple([_at_other_times(event, moment) for event in conversation.timeline])
    return conversation if timeline == conversation.timeline else replace(conversation, timeline=timeline)


def _at_other_times(event: AnyEvent, moment: Callable[[AnyEvent, float, str], float]) -> AnyEvent:
    time = event.time
    if time is not None:
        until = None if time.until is None else moment(event, time.until, time.clock)
        event = replace(event, time=Time(moment(event, time.at, time.clock), time.clock, until))
    if type(event) is Utterance and event.segments:
        segments = [
            replace(one, start=moment(event, one.start, one.clock), end=moment(event, one.end, one.clock))
            for one in event.segments
        ]
        event = replace(event, segments=tuple(segments))
    return event


MAKE_NONSENSE: dict[Perturbation, Callable[[Conversation], Conversation]] = {
    EMPTY_AGENT: empty_agent,
    PARROT: parrot,
    SAYS_EVERYTHING: says_everything,
    SHUFFLED_TURNS: shuffled_turns,
    SWAPPED_ROLES: swapped_roles,
    RANDOM_WORDS: random_words,
    EQUAL_TIMES: equal_times,
    SKEWED_CLOCKS: skewed_clocks,
}
"""How each kind is made."""
