"""The model holds everything that the seed per-state-metrics.txt and the events of the flow-states spec name."""

from itertools import pairwise

import pytest

from convoscope.conversation import (
    ComponentMetric,
    Conversation,
    GuardEvaluated,
    Marker,
    SlotFilled,
    StateEntered,
    StateExited,
    ToolCall,
    ToolResult,
    Utterance,
)
from support.seed_examples import example, figures


@pytest.fixture
def chat() -> Conversation:
    return example("flow-states")


def test_flow_and_agent(chat: Conversation) -> None:
    assert chat.dimensions["flow"] == "vet_intake"
    assert chat.dimensions["agent"] == "pepper"
    assert chat.dimensions["model"] == "llm-small-3"
    assert chat.agent.name == chat.dimensions["agent"]
    assert [(tool.name, tool.kind) for tool in chat.agent.tools or ()] == [
        ("find_visit", "read"),
        ("book_visit", "write"),
    ]


def test_every_event_type_of_the_stream_has_a_place(chat: Conversation) -> None:
    assert {type(event) for event in chat.timeline} == {
        Utterance,
        StateEntered,  # state_entered
        StateExited,  # state_exited
        ComponentMetric,  # turn_complete
        GuardEvaluated,  # guard_evaluated
        SlotFilled,  # slot_filled
        ToolCall,  # tool_called
        ToolResult,  # tool_result
        Marker,  # conversation_ended
    }


def test_visits(chat: Conversation) -> None:
    entered = [e.state for e in chat.timeline if isinstance(e, StateEntered)]
    assert entered == ["greet", "collect_pet", "collect_visit", "confirm", "collect_visit", "escalated"]
    exits = [(e.state, e.to_state, e.reason) for e in chat.timeline if isinstance(e, StateExited)]
    assert exits == [
        ("greet", "collect_pet", "pet_named"),
        ("collect_pet", "collect_visit", "slots_filled"),
        ("collect_visit", "confirm", "slots_filled"),
        ("confirm", "collect_visit", "rejected"),
        ("collect_visit", "escalated", "tool_failed"),
    ]
    assert entered.count("collect_visit") - 1 == 1  # revisit
    assert {to for state, to, _ in exits if state == "collect_visit"} == {"confirm", "escalated"}  # to_states


def test_turns_of_a_state(chat: Conversation) -> None:
    ran: dict[str, list[float]] = {}
    state = ""
    for event in chat.timeline:
        if isinstance(event, StateEntered):
            state = event.state
        elif isinstance(event, ComponentMetric):
            # a turn belongs to the state that the agent ran in, which a late event has to say itself
            ran.setdefault(event.state or state, []).append(event.values["latency_ms"])
    assert ran == {
        "greet": [800],
        "collect_pet": [1200],
        "collect_visit": [900, 3500, 2100],
        "confirm": [1000],
        "escalated": [900],
    }
    turns = figures(chat, "turn")
    # seq 27 is the late one: it comes after `confirm` was entered, and tells of the turn that ran before
    assert [(t.seq, t.state) for t in turns if t.state] == [(27, "collect_visit")]
    assert not any(t.extras for t in turns)
    assert [(t.values["tokens_in"], t.values["tokens_out"]) for t in turns] == [
        (210, 14),
        (265, 17),
        (300, 9),
        (350, 6),
        (362, 12),
        (410, 19),
        (440, 15),
    ]
    assert {t.values["model"] for t in turns} == {"llm-small-3"}


def test_guards(chat: Conversation) -> None:
    guards = [e for e in chat.timeline if isinstance(e, GuardEvaluated)]
    assert [(e.guard, e.state, e.result, e.error) for e in guards] == [
        ("pet_is_known", "greet", True, ""),
        ("day_is_open", "collect_visit", None, "the calendar service did not answer"),  # guard_error
        ("day_is_open", "collect_visit", True, ""),
        ("day_is_open", "collect_visit", False, ""),
    ]


def test_slots(chat: Conversation) -> None:
    slots = {e.slot: (e.value, e.state) for e in chat.timeline if isinstance(e, SlotFilled)}
    assert slots == {
        "species": ("rabbit", "greet"),  # front-loaded: collect_pet is the state that asks for it
        "previous_visits": (0, "greet"),
        "vaccinated": (False, "collect_pet"),
        "medicine": ("", "collect_pet"),
        "day": ("friday", "collect_visit"),
    }
    # 0 == False in Python: the kinds have to survive too
    assert type(slots["previous_visits"][0]) is int
    assert slots["vaccinated"][0] is False


def test_tools(chat: Conversation) -> None:
    assert [(c.name, c.arguments) for c in chat.tool_calls] == [
        ("find_visit", {"day": "friday", "species": "rabbit"}),
        ("book_visit", {"day": "monday", "hour": "9:00"}),
    ]
    assert [(r.success, r.error) for r in chat.tool_results.values()] == [
        (True, ""),
        (False, "no vet for rabbits on monday"),
    ]
    assert chat.tool_results[23].result == ["10:20", "16:40"]


def test_it_ended_in_an_escalation(chat: Conversation) -> None:
    assert chat.outcome.completed is False
    assert chat.outcome.ended_reason == "escalated"  # stop_reason
    assert chat.outcome.final_status == "callback_promised"
    assert chat.outcome.duration == 29.0
    assert chat.outcome.error == ""  # errored conversations are excluded: this one is not
    ended = chat.timeline[-1]
    assert isinstance(ended, Marker)
    assert ended.name == "conversation_ended"
    assert ended.value == {"completed": False, "stop_reason": "escalated", "final_status": "callback_promised"}


def test_events_have_a_timestamp_and_an_order(chat: Conversation) -> None:
    times = [event.time for event in chat.timeline]
    assert (times[0].at, times[-1].at) == (1771236000.0, 1771236029.0)
    assert all(chat.elapsed(earlier, later) >= 0 for earlier, later in pairwise(times))
    assert chat.elapsed(times[0], times[-1]) == chat.outcome.duration
    assert [event.seq for event in chat.timeline] == list(range(1, 43))


def test_what_was_said(chat: Conversation) -> None:
    assert len(chat.turns) == 5
    assert chat.turns[1].user_text == "My rabbit Biscuit. It's her first time at a vet."
    assert chat.turns[4].assistant_text.endswith("a colleague will ring you within the hour.")
