"""Conversations of a few kinds of events, and items that carry a few values: what metrics ask for beforehand."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from convoscope.conversation import (
    Agent,
    AudioFile,
    Clock,
    ComponentMetric,
    Conversation,
    Event,
    Expected,
    ExpectedToolCall,
    Item,
    Marker,
    Outcome,
    Participant,
    Retrieval,
    Segment,
    StateEntered,
    StateExited,
    Text,
    Time,
    Tool,
    ToolCall,
    ToolResult,
    Utterance,
)

PEOPLE = (Participant("u", "user"), Participant("a", "assistant"), Participant("s", "system"))
CLOCK = Clock(id="c", kind="wall")
SPEECH: tuple[dict[str, Any], ...] = (
    {},
    {"intended": Text("Yes.")},
    {"spoken": Text("")},
    {"heard": Text("no")},
    {"time": Time(1.0, "c")},
    {"segments": (Segment(0, 1, "c"),)},
    {"manner": "fallback"},
)
EVENTS: tuple[Event, ...] = (
    *(Utterance(seq=0, speaker=one.id, **facts) for one in PEOPLE for facts in SPEECH),
    ToolCall(seq=0, name="find", time=Time(1.0, "c")),
    ToolResult(seq=0),
    StateEntered(seq=0, state="greeting"),
    StateExited(seq=0, state="greeting"),
    Retrieval(seq=0),
    Retrieval(seq=0, query=""),
    Marker(seq=0, name="noise"),
    *(ComponentMetric(seq=0, component=name) for name in ("llm", "stt_span", "tts_span", "turn", "call")),
    ComponentMetric(seq=0, component="call", values={"e2e_latency": 0.5}),
    ComponentMetric(seq=0, component="turn", values={"e2e_latency": None}),
    ComponentMetric(seq=0, component="llm", values={"output_tokens": 0}),
    ComponentMetric(seq=0, component="llm", values={"reasoning_tokens": None}),
)
VALUES: tuple[Any, ...] = (None, "", "x", [], [1], {}, {"a": 1}, False, 0)
OUTCOMES = (Outcome(), Outcome(finished=True), Outcome(finished=False))
EXPECTED = (
    Expected(),
    Expected(ground_truth="B"),
    Expected(ground_truth=" "),
    Expected(format=""),
    Expected(tool_calls=()),
    Expected(tool_calls=(ExpectedToolCall("find"),)),
)
AGENTS = (Agent(), Agent(role="clerk"), Agent(instructions="Help."), Agent(tools=()), Agent(tools=(Tool(name="find"),)))


@st.composite
def conversations(draw: st.DrawFn, fields: tuple[str, ...] = ()) -> Conversation:
    """Any order of these events; where fields are named, items carry them."""
    chosen = draw(st.lists(st.sampled_from(EVENTS), max_size=6))
    timeline = tuple(msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(chosen))
    seqs = list(range(len(chosen)))
    pointed = st.sampled_from([None, *seqs])
    item = st.builds(
        Item,
        id=st.just("i"),
        kind=st.sampled_from(("", "agent", "conversational")),
        asked=pointed,
        answered=pointed,
        events=st.lists(st.sampled_from(seqs), max_size=3).map(tuple) if seqs else st.just(()),
        expected=st.sampled_from(EXPECTED),
        outcome=st.sampled_from((None, *OUTCOMES)),
        extras=st.dictionaries(st.sampled_from(fields), st.sampled_from(VALUES), max_size=5) if fields else st.just({}),
    )
    return Conversation(
        id="c",
        participants=PEOPLE,
        clocks=(CLOCK,),
        timeline=timeline,
        items=tuple(draw(st.lists(item, max_size=3 if fields else 0))),
        agent=draw(st.sampled_from(AGENTS)),
        expected=draw(st.sampled_from(EXPECTED)),
        outcome=draw(st.sampled_from(OUTCOMES)),
        recording=draw(st.sampled_from((None, AudioFile()))),
    )
