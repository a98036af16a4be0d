"""Conversations that walk through the states of a flow, made up for pictures of flows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

import convoscope
from convoscope.conversation import (
    ComponentMetric,
    Conversation,
    Event,
    Flow,
    FlowState,
    Outcome,
    Participant,
    StateEntered,
    StateExited,
    Text,
    Utterance,
)
from convoscope.runs.run import Run

PEOPLE = (Participant("agent", "assistant"), Participant("caller", "user"))


def walk(
    id: str, states: Sequence[str], *, completed: bool, flow: Flow | None = None, name: str = "", latency: float = 900
) -> Conversation:
    """Enters each state, says something, has a turn, and goes on; where it did not complete it stays in the last."""
    events: list[Event] = []
    for place, state in enumerate(states):
        events.append(StateEntered(seq=len(events), state=state))
        events.append(Utterance(seq=len(events), speaker="agent", intended=Text(f"This is {state}.")))
        turn = {"latency_ms": latency + 40.0 * place}
        events.append(ComponentMetric(seq=len(events), component="turn", label="turn_complete", values=turn))
        events.append(Utterance(seq=len(events), speaker="caller", heard=Text("Go on, please.")))
        if place + 1 < len(states):
            events.append(StateExited(seq=len(events), state=state, to_state=states[place + 1]))
    return Conversation(
        id=id,
        dimensions={"flow": flow.name if flow else name or "walks", "agent": "clover"},
        participants=PEOPLE,
        timeline=tuple(events),
        flow=flow,
        outcome=Outcome(completed=completed),
    )


def make_run(folder: Path, conversations: Sequence[Conversation]) -> Run:
    return convoscope.score(conversations, metrics=["state", "flow"], out=folder, workers=1)


# ---------------------------------------------------------------------- six states: a viewing of a flat

VIEWING = Flow(
    name="apartment_viewing",
    states=(
        FlowState(name="greet", rank=0, segment="opening"),
        FlowState(name="collect_details", rank=1, segment="collect", required_slots=("name", "day")),
        FlowState(name="collect_contact", rank=2, segment="collect"),
        FlowState(name="confirm", rank=3, segment="confirm"),
        FlowState(name="waiting_list", rank=3.5, segment="confirm"),
        FlowState(name="booked", rank=4, terminal="success", segment="close"),
        FlowState(name="escalated", rank=5, terminal="escalation", segment="close"),
    ),
)
_VIEWINGS = (
    (30, ("greet", "collect_details", "collect_contact", "confirm", "booked"), True),
    (6, ("greet", "collect_details", "collect_contact", "confirm", "collect_details", "confirm", "booked"), True),
    (21, ("greet", "collect_details"), False),
    (4, ("greet", "collect_details", "collect_details", "escalated"), False),
    (2, ("greet", "collect_details", "collect_contact"), False),
    (1, ("greet",), False),
)


def viewings() -> Iterator[Conversation]:
    """64 calls: 21 got stuck where details are collected, two later, one at once; nobody waited for a place."""
    for kind, (count, states, completed) in enumerate(_VIEWINGS):
        for number in range(count):
            yield walk(f"call {kind}-{number:02}", states, completed=completed, flow=VIEWING)


def versions() -> Iterator[Conversation]:
    """40 calls of each of two versions, two trials of 20 scenarios: v1 is stuck in `ask_day` in the first 24, v2 in the
    last 4. So 24 pairs are fixed, 4 broke, and the 12 between reach the goal in both."""
    asks = FlowState(name="greet", rank=0), FlowState(name="ask_day", rank=1)
    flow = Flow(name="booking", states=(*asks, FlowState(name="done", rank=2, terminal="success")))
    for agent, stuck in (("v1", range(24)), ("v2", range(36, 40))):
        for number in range(40):
            states = ("greet", "ask_day") if number in stuck else ("greet", "ask_day", "done")
            call = walk(f"{agent}-{number:02}", states, completed=number not in stuck, flow=flow)
            scenario = {"scenario_id": f"s{number % 20:02}", "trial": str(number // 20)}
            yield msgspec.structs.replace(call, dimensions={**call.dimensions, "agent": agent, **scenario})


# ---------------------------------------------------------------------- many states, and cycles

_VERBS = ("ask", "listen", "verify", "confirm", "explain", "offer", "repeat", "look_up", "book", "correct")
_THINGS = ("name", "address", "policy_number", "symptom", "appointment", "payment", "callback_time", "delivery")


def names(count: int) -> list[str]:
    pairs = [f"{verb}_{thing}" for thing in _THINGS for verb in _VERBS]
    return pairs[:count]


def branching(count: int, calls: int, seed: int, *, weak: Sequence[int] = ()) -> Iterator[Conversation]:
    """Calls through so many states, with branches, repeats and returns; in the weak ones many get stuck."""
    chance = random.Random(seed)
    states = names(count - 2)
    last = len(states) - 1
    ways = [
        sorted({min(last, at + step) for step in chance.sample((1, 2, 3, 4, 6), k=2 if at % 3 else 3)} - {at}) or [last]
        for at in range(len(states))
    ]
    for number in range(calls):
        at, seen, completed = 0, [states[0]], False
        for _ in range(3 * count):
            if chance.random() < (0.5 if at in weak else 0.015):
                break
            if chance.random() < 0.02:
                seen.append("escalated")
                break
            if at == last:
                seen.append("done")
                completed = True
                break
            roll = chance.random()
            back = ways[at - 3][0] if at > 6 and at % 5 == 0 and roll < 0.25 else None
            at = at - 3 if back is not None else at if at % 7 == 0 and roll > 0.9 else chance.choice(ways[at])
            seen.append(states[at])
        yield walk(f"call {number:04}", seen, completed=completed, name=f"flow of {count}")
