"""conversation.contents: what there is in the timeline, against a plain look at it for each fact."""

from collections.abc import Callable

import pytest
from hypothesis import given

from convoscope.conversation import (
    ComponentMetric,
    Conversation,
    Event,
    Retrieval,
    Segment,
    StateExited,
    Text,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.events import StateEntered, Time
from support.few_events import CLOCK, PEOPLE, conversations


def _spoken(conversation: Conversation, role: str = "") -> list[Utterance]:
    roles = {one.id: one.role for one in conversation.participants}
    talk = [event for event in conversation.timeline if isinstance(event, Utterance)]
    return [one for one in talk if not role or roles[one.speaker] == role]


def _any(conversation: Conversation, *kinds: type[Event]) -> bool:
    return any(isinstance(event, kinds) for event in conversation.timeline)


NAIVE: dict[str, Callable[[Conversation], bool]] = {
    "has_utterances": lambda one: bool(_spoken(one)),
    "has_user_speech": lambda one: bool(_spoken(one, "user")),
    "has_assistant_speech": lambda one: bool(_spoken(one, "assistant")),
    "has_times": lambda one: any(said.time is not None or said.segments for said in _spoken(one)),
    "has_sound": lambda one: any(said.segments for said in _spoken(one)),
    "has_user_intended": lambda one: any(
        said.intended is not None or said.spoken is not None for said in _spoken(one, "user")
    ),
    "has_user_heard": lambda one: any(said.heard is not None for said in _spoken(one, "user")),
    "has_fallback": lambda one: any(said.manner == "fallback" for said in _spoken(one)),
    "has_tool_calls": lambda one: _any(one, ToolCall),
    "has_tool_results": lambda one: _any(one, ToolResult),
    "has_states": lambda one: _any(one, StateEntered, StateExited),
    "has_retrievals": lambda one: _any(one, Retrieval),
    "has_queries": lambda one: any(isinstance(event, Retrieval) and event.query is not None for event in one.timeline),
}


@given(conversations())
def test_each_fact_is_what_a_look_at_all_events_gives(conversation: Conversation) -> None:
    told = {name: getattr(conversation.contents, name) for name in NAIVE}
    assert told == {name: look(conversation) for name, look in NAIVE.items()}
    reports = [event for event in conversation.timeline if isinstance(event, ComponentMetric)]
    assert sorted(one.seq for some in conversation.contents.reports.values() for one in some) == [
        one.seq for one in reports
    ]
    assert all(one.component == name for name, some in conversation.contents.reports.items() for one in some)


_TALK = {"has_utterances"}
_OF_USER = {*_TALK, "has_user_speech"}


@pytest.mark.parametrize(
    ("event", "true"),
    [
        (Utterance(seq=0, speaker="s", intended=Text("Be brief.")), _TALK),
        (Utterance(seq=0, speaker="u"), _OF_USER),  # speech without words is speech
        (Utterance(seq=0, speaker="a", heard=Text("hi")), {*_TALK, "has_assistant_speech"}),
        (Utterance(seq=0, speaker="u", heard=Text("hi")), {*_OF_USER, "has_user_heard"}),
        (Utterance(seq=0, speaker="u", spoken=Text("hi")), {*_OF_USER, "has_user_intended"}),
        (Utterance(seq=0, speaker="u", time=Time(1.0, "c")), {*_OF_USER, "has_times"}),
        (Utterance(seq=0, speaker="u", segments=(Segment(0, 1, "c"),)), {*_OF_USER, "has_times", "has_sound"}),
        (Utterance(seq=0, speaker="s", manner="fallback"), {*_TALK, "has_fallback"}),
        (ToolCall(seq=0, name="find", time=Time(1.0, "c")), {"has_tool_calls"}),  # of utterances alone, times count
        (ToolResult(seq=0), {"has_tool_results"}),
        (StateExited(seq=0, state="greeting"), {"has_states"}),
        (Retrieval(seq=0), {"has_retrievals"}),
        (Retrieval(seq=0, query=""), {"has_retrievals", "has_queries"}),
    ],
)
def test_one_event_makes_these_facts(event: Event, true: set[str]) -> None:
    conversation = Conversation(id="c", participants=PEOPLE, clocks=(CLOCK,), timeline=(event,))
    assert {name for name in NAIVE if getattr(conversation.contents, name)} == true
