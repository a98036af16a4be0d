"""Conversations that give every metric that has to notice nonsense a dozen chances to do so."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from msgspec.structs import replace

import convoscope
from convoscope.conversation import (
    Agent,
    Conversation,
    Database,
    Expected,
    ExpectedToolCall,
    Item,
    Label,
    Outcome,
    Scenario,
    Tool,
    ToolCall,
    ToolResult,
)
from convoscope.conversation.databases import database_hash
from support.calls import bot, caller, voice_call
from support.chats import UNPLACED, agent, chat, user
from support.duplex import COUGH, PHRASE, Laid, speech
from support.duplex import conversation as duplex

EXAMPLES = Path(__file__).parents[2] / "examples"
MANY = 12
CITIES = ("Paris", "Madrid", "Lisbon", "Vienna", "Oslo", "Helsinki", "Dublin", "Prague", "Warsaw", "Athens")


@cache
def corpus() -> tuple[Conversation, ...]:
    """The examples, and what they lack."""
    return (*convoscope.read(EXAMPLES), *made_up())


@cache
def made_up() -> tuple[Conversation, ...]:
    """What the examples lack."""
    makers = (answers, forms, choices, duplex_call, call, tries, hashed)
    return tuple(make(number) for number in range(MANY) for make in makers)


def answers(number: int) -> Conversation:
    """Three questions, rightly answered, with the tool calls that were expected."""
    capitals = [CITIES[(number + place) % len(CITIES)] for place in range(3)]
    events, items = [], []
    for place, city in enumerate(capitals):
        first = len(events)
        call = ToolCall(seq=UNPLACED, name="look_up", arguments={"city": city}, call_id=f"{place}")
        found = ToolResult(seq=UNPLACED, call_id=f"{place}", result=city, success=True)
        events += [user(f"Which capital lies number {place} on my way of {number} days?"), call, found, agent(city)]
        expected = Expected(ground_truth=city, tool_calls=(ExpectedToolCall("look_up", {"city": city}),))
        items.append(
            Item(
                id=f"i{place}",
                asked=first,
                answered=first + 3,
                events=(first + 1, first + 2),
                expected=expected,
                extras={"context": "Capitals of Europe.", "tool_calls": [{"tool_name": "look_up"}]},
            )
        )
    return chat(*events, id=f"answers-{number}", items=tuple(items))


@cache
def chats() -> tuple[Conversation, ...]:
    """Chats that say themselves what the last answer should be."""
    return tuple(
        chat(
            user(f"I leave on day {number}."),
            agent("Where does the journey go?"),
            user("To the capital that comes next."),
            agent(city),
            id=f"chat-{number}",
            expected=Expected(ground_truth=city),
        )
        for number, city in enumerate(CITIES)
    )


def forms(number: int) -> Conversation:
    """Two answers that are to be JSON, and are."""
    asked = Expected(format="JSON")
    return chat(
        user(f"Order {number} as JSON, please."),
        agent(f'{{"order": {number}}}'),
        user("And its price?"),
        agent(f'{{"price": {number}.5}}'),
        id=f"forms-{number}",
        items=(Item(id="a", asked=0, answered=1, expected=asked), Item(id="b", asked=2, answered=3, expected=asked)),
    )


def choices(number: int) -> Conversation:
    """Two questions with choices, rightly answered."""
    context = {"choices": ["red", "green", "blue"]}
    first, second = ("A", "B") if number % 2 else ("B", "C")
    items = tuple(
        Item(id=name, asked=at, answered=at + 1, expected=Expected(ground_truth=truth), extras={"context": context})
        for name, at, truth in (("a", 0, first), ("b", 2, second))
    )
    return chat(
        user("Which colour is it?"),
        agent(f"The answer is {first}."),
        user("And the other one?"),
        agent(f"The answer is {second}."),
        id=f"choices-{number}",
        items=items,
    )


def duplex_call(number: int) -> Conversation:
    """A full-duplex call: turns with replies, an interruption, a backchannel, a cough and words to somebody else."""
    late = number % 3
    user_speech = speech(300, (0, 20), (60, 75), (120, 123), (160, 175), (230, 245))
    agent_speech = speech(300, (24 + late, 68), (100, 150), (183 + late, 215), (250 + late, 290))
    built = duplex(
        user_speech,
        agent_speech,
        {120: "backchannel"},
        [Laid(80, COUGH), Laid(218, PHRASE)],
        id=f"duplex-{number}",
    )
    return replace(built, id=f"duplex-{number}", dimensions={**built.dimensions, "scenario_id": f"duplex-{number}"})


DATABASE = {"orders": {"7": {"status": "open"}}, "session": {}}
DONE = {"orders": {"7": {"status": "cancelled"}}, "session": {"user": "ana"}}


def call(number: int) -> Conversation:
    """A voice call that does its task: it logs the caller in and changes the database; judges have looked at it."""
    gap = 0.7 + 0.05 * number
    login = ToolCall(seq=UNPLACED, name="log_in", arguments={"user": "ana"}, call_id="1")
    labels = tuple(
        Label(name=name, value=0.96 + 0.01 * (number % 3), rater="ana")
        for name in ("faithfulness", "agent_speech_fidelity", "conversation_progression", "conciseness")
    )
    return voice_call(
        bot("Hello, who is calling?", (0.0, 1.5)),
        caller("This is Ana.", (2.0, 3.5), heard="This is Ana."),
        bot("One moment.", (3.5 + gap, 4.0 + gap)),
        login,
        ToolResult(seq=UNPLACED, name="log_in", call_id="1", result={"status": "ok"}, success=True),
        bot("Welcome, Ana. What can I do?", (6.0 + gap, 8.0 + gap)),
        caller("Cancel order 7.", (10.0, 11.5), heard="Cancel order 7."),
        bot("Order 7 is cancelled.", (11.5 + gap, 14.0 + gap)),
        id=f"call-{number}",
        agent=Agent(tools=(Tool(name="log_in", kind="auth"),)),
        scenario=Scenario(before=Database(DATABASE), after=Database(DONE), expected=Database(DONE)),
        outcome=Outcome(ended_reason="goodbye", completed=True),
        labels=labels,
    )


def tries(number: int) -> Conversation:
    """A call in which nobody can be logged in, with tools that say only when they fail."""
    events = [caller("This is Bo.", (0.0, 1.0))]
    for place in range(1 + number % 3):
        events += [
            ToolCall(seq=UNPLACED, name="log_in", arguments={"user": "bo"}, call_id=f"{place}"),
            ToolResult(seq=UNPLACED, name="log_in", call_id=f"{place}", success=False, error="wrong password"),
        ]
    return voice_call(
        *events,
        bot("I cannot find you.", (2.0 + 0.1 * number, 4.0), manner="fallback" if number % 2 else ""),
        id=f"tries-{number}",
        agent=Agent(tools=(Tool(name="log_in", kind="auth"),)),
        scenario=Scenario(before=Database(DATABASE), after=Database(DATABASE), expected=Database(DONE)),
        outcome=Outcome(ended_reason="goodbye", completed=False),
    )


def hashed(number: int) -> Conversation:
    """The same call, of which only a hash of the database in the end is told."""
    whole = call(number)
    assert whole.scenario is not None
    after = Database(None, database_hash(DONE))
    return replace(whole, id=f"hashed-{number}", scenario=replace(whole.scenario, before=None, after=after))
