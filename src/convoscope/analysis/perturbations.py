"""Conversations turned into nonsense, and conversations with two outcomes: pure functions of a conversation.

A conversation that a kind of nonsense does not change is given back as it is. What others say of a conversation
(labels, reports of components, states, the logged outcome) stays. Of two outcomes, one is as if it had gone well and
one as if it had gone wrong; only what the log has is changed, and nothing is added: a metric that measures one of the
two and not the other is forced by which conversations it can measure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

from msgspec.structs import replace

from convoscope.conversation import (
    ASSISTANT,
    DEFAULT_TURN_RULE,
    USER,
    Conversation,
    Database,
    Expected,
    ExpectedToolCall,
    Item,
    Outcome,
    Scenario,
    Time,
    Utterance,
)
from convoscope.conversation.databases import database_hash
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
from convoscope.views.items import Case, cases

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
        results[event.seq].seq
        for event in conversation.timeline
        if type(event) is ToolCall and event.seq in results and not _is_agents(conversation, event)
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
    """Each reply of the agent is in another turn: the next comes first, and the first last."""
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
    late = {seq: OFF + DRIFT * index for index, seq in enumerate(agents)}
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


_OTHER_LETTERS = str.maketrans(
    ascii_lowercase + ascii_uppercase + digits,
    ascii_lowercase[13:] + ascii_lowercase[:13] + ascii_uppercase[13:] + ascii_uppercase[:13] + digits[5:] + digits[:5],
)
_ENGLISH = (
    *("by", "me", "two", "old", "cold", "blue", "river", "table", "window", "garden", "weather", "kitchen"),
    *("mountain", "umbrella", "newspaper", "chocolate", "strawberry", "basketball", "supermarket", "grandmother"),
)
"""Two words of each length."""
_SMALL_WORDS = frozenset(
    {"a", "an", "and", "are", "at", "for", "from", "in", "is", "it", "of", "on", "the", "to", "was"}
)
_OTHER_TOOL = "another_tool"
_OTHER_HASH = "0" * 64


class OutcomePair(NamedTuple):
    """The same conversation, gone well and gone wrong."""

    well: Conversation
    wrong: Conversation


def completed(conversation: Conversation) -> OutcomePair | None:
    """The flag that says whether the task was done."""
    outcomes = [conversation.outcome, *(item.outcome for item in conversation.items if item.outcome is not None)]
    if all(outcome.completed is None for outcome in outcomes):
        return None
    return _outcomes(conversation, lambda outcome, well: replace(outcome, completed=well), "completed")


def final_status(conversation: Conversation) -> OutcomePair | None:
    """The status that it ended with."""
    if not conversation.outcome.final_status:
        return None
    contract = conversation.flow.final_status if conversation.flow is not None else None
    status = {True: (contract or ("completed",))[0], False: "failed"}
    return _outcomes(conversation, lambda outcome, well: replace(outcome, final_status=status[well]), "final_status")


def ended_reason(conversation: Conversation) -> OutcomePair | None:
    """Why it ended: with a goodbye, or because there was silence."""
    if not conversation.outcome.ended_reason:
        return None
    reason = {True: "goodbye", False: "inactivity_timeout"}
    return _outcomes(conversation, lambda outcome, well: replace(outcome, ended_reason=reason[well]), "ended_reason")


def _outcomes(conversation: Conversation, change: Callable[[Outcome, bool], Outcome], field: str) -> OutcomePair:
    def made(well: bool) -> Conversation:
        of_items = {
            item.id: change(item.outcome, well)
            for item in conversation.items
            if item.outcome is not None and getattr(item.outcome, field) not in (None, "")
        }
        own = conversation.outcome
        return replace(
            conversation,
            outcome=own if getattr(own, field) in (None, "") else change(own, well),
            items=tuple([replace(one, outcome=of_items.get(one.id, one.outcome)) for one in conversation.items]),
        )

    return OutcomePair(made(True), made(False))


def tool_results(conversation: Conversation) -> OutcomePair | None:
    """Whether the tools did what they were asked."""
    results = [event for event in conversation.timeline if type(event) is ToolResult]
    if not results:
        return None
    # Where a log states errors alone, a result that went well states nothing.
    states_success = True if any(one.success for one in results) else None
    worked = {"success": states_success, "error": "", "result": None}
    failed = {"success": False, "error": "invalid argument"}

    def made(well: bool) -> Conversation:
        fields = worked if well else failed
        timeline = [replace(one, **fields) if type(one) is ToolResult else one for one in conversation.timeline]
        return replace(conversation, timeline=tuple(timeline))

    return OutcomePair(made(True), made(False))


def answers(conversation: Conversation) -> OutcomePair | None:
    """Whether the answers are the expected ones."""
    truths = {seq: truth for case in cases(conversation) for seq, truth in _truth(case)}
    if not truths:
        return None
    wrong = {seq: _other_answer(truth) for seq, truth in truths.items()}
    return OutcomePair(saying(conversation, truths), saying(conversation, wrong))


def _other_answer(truth: str) -> str:
    """Another answer, with as many words and digits, as long: in English, so that metrics that read English read it."""
    is_small = not {*re.findall(r"[a-z]{2,}", truth.lower())} - _SMALL_WORDS

    def other(match: re.Match[str]) -> str:
        word, given = match[0].lower(), match[0]
        if word in _SMALL_WORDS and not is_small:
            return given
        new = next((english for english in _ENGLISH if len(english) == len(word) and english != word), "")
        if not new:
            return given.translate(_OTHER_LETTERS)
        return new.upper() if given.isupper() else new.capitalize() if given[0].isupper() else new

    return re.sub(r"[A-Za-z]+|[0-9]", other, truth)


def _truth(case: Case) -> Iterable[tuple[int, str]]:
    """The utterance that answers, and what it should say."""
    truth, item, conversation = case.expected.ground_truth, case.item, case.conversation
    if truth is None or not case.answer:
        return
    if item is not None:
        if item.answered is not None:
            yield item.answered, truth
        return
    for utterance in reversed(conversation.utterances):
        if conversation.roles[utterance.speaker] == ASSISTANT and conversation.text(utterance).strip():
            yield utterance.seq, truth
            return


def expected_calls(conversation: Conversation) -> OutcomePair | None:
    """Whether the tool calls are the expected ones."""
    wanting = [case for case in cases(conversation) if case.expected.tool_calls and case.tool_calls]
    if not wanting:
        return None

    def made(well: bool) -> Conversation:
        items = {case.item.id: _expecting(case, well) for case in wanting if case.item is not None}
        own = [_expecting(case, well) for case in wanting if case.item is None]
        return replace(
            conversation,
            expected=own[0] if own else conversation.expected,
            items=tuple([replace(one, expected=items.get(one.id, one.expected)) for one in conversation.items]),
        )

    return OutcomePair(made(True), made(False))


def _expecting(case: Case, well: bool) -> Expected:
    calls = [ExpectedToolCall(call.name if well else _OTHER_TOOL, call.arguments) for call in case.tool_calls]
    return replace(case.expected, tool_calls=tuple(calls))


def database(conversation: Conversation) -> OutcomePair | None:
    """Whether the database is as it should be in the end."""
    scenario = conversation.scenario
    if scenario is None or scenario.after is None or scenario.expected is None:
        return None
    pair = _databases(scenario.after, scenario.expected)
    if pair is None:
        return None
    well, wrong = (_with_database(conversation, scenario, after) for after in pair)
    return OutcomePair(well, wrong)


def _databases(after: Database, expected: Database) -> tuple[Database, Database] | None:
    """The database in the end, right and wrong, given as it was given: by its content, or by a hash alone."""
    if after.content is not None:
        if not isinstance(expected.content, dict):
            return None
        wrong = {**expected.content, "a_change_that_nobody_expects": True}
        return Database(expected.content), Database(wrong)
    right = expected.hash or (database_hash(expected.content) if expected.content is not None else "")
    return (Database(None, right), Database(None, _OTHER_HASH)) if right else None


def _with_database(conversation: Conversation, scenario: Scenario, after: Database) -> Conversation:
    return replace(conversation, scenario=replace(scenario, after=after))


OUTCOMES: dict[str, Callable[[Conversation], OutcomePair | None]] = {
    "completed": completed,
    "final_status": final_status,
    "ended_reason": ended_reason,
    "tool_results": tool_results,
    "answers": answers,
    "expected_calls": expected_calls,
    "database": database,
}
"""What can go well or wrong, and the pair of each; None where a log does not tell of it."""
