"""Hypothesis strategies for items of one conversation: histories that grow, questions that are in them or are not.

Few words, so that different things are often said in the same words.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from support.made_up_payloads import payloads
from support.strategies import json_values, texts

SPEAKERS = st.sampled_from(["user", "assistant", "Customer", "ivy", "agent", "system", "", "Anna"])
WORDS = st.sampled_from(["Hello.", "Yes.", "Where is it?", "On its way.", ""])
TIMES = st.sampled_from(["2026-03-02T09:00:00Z", "2026-03-02T09:00:05Z", "1772442000", "12.5", "noon"])
EPOCHS = st.sampled_from([1772442000, 1772442001.5, 3.25, 1772442000250])
IDS = st.sampled_from(["1", "2", "a", "a", ""])
ONE_IN_FOUR = st.integers(0, 3).map(lambda drawn: drawn == 3)
ONE_IN_EIGHT = st.integers(0, 7).map(lambda drawn: drawn == 7)
FLOATS = st.sampled_from([0.0, 0.25, 3, -1.0, 2**60 + 1])


def some(**known: SearchStrategy[Any]) -> SearchStrategy[dict[str, Any]]:
    """An object with any of these keys, some of them null, and perhaps one that nobody knows."""
    optional = {name: values | st.none() for name, values in known.items()}
    return st.fixed_dictionaries({}, optional=optional | {"shade": json_values(2)})


TURNS = st.fixed_dictionaries({"speaker": SPEAKERS, "message": WORDS}) | some(
    speaker=SPEAKERS, message=WORDS, timestamp=TIMES, metadata=st.dictionaries(texts(), json_values(2), max_size=1)
)
CALLS = some(tool_name=WORDS, parameters=st.dictionaries(texts(), json_values(2), max_size=2), call_id=IDS)
RESULTS = some(call_id=IDS, result=json_values(3), success=st.booleans(), error_message=WORDS)
TOOLS = some(name=WORDS, description=WORDS, args_schema=st.just({"type": "object"}), return_schema=st.just({}))
METRICS = some(
    type=st.sampled_from(["llm_metrics", "eou_metrics", "realtime_model_metrics", "stt_span", "_metrics", "custom"]),
    label=IDS,
    speech_id=IDS,
    timestamp=EPOCHS,
    ttft=FLOATS,
    end_of_utterance_delay=FLOATS,
)
SPANS = some(
    transcript=WORDS, input_text=WORDS, span_start_time=TIMES, span_end_time=TIMES, span_duration_ms=FLOATS, model=WORDS
)
AUDIO = some(
    audio_duration=FLOATS,
    audio_uuid=IDS,
    sample_rate=st.sampled_from([8000, 48000]),
    channels=st.just(2),
    format=st.sampled_from(["wav", ""]),
    complete_transcript=WORDS,
    audio_url=WORDS,
    timeline=st.just({"user": [[0, 1]]}),
)


def by_turn(spans: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return spans | st.dictionaries(st.sampled_from(["turn_1", "turn_2", ""]), spans, max_size=2)


BESIDE = {
    "user_id": IDS,
    "task_id": IDS,
    "turn_id": IDS,
    "source_trace_id": IDS,
    "input_text": WORDS,
    "output_text": WORDS,
    "ground_truth": WORDS,
    "novaeval_item_type": st.sampled_from(["agent", "conversational"]),
    "agent_name": st.sampled_from(["ivy", "fern", ""]),
    "agent_role": WORDS,
    "system_prompt": WORDS,
    "trace": st.lists(st.dictionaries(texts(), json_values(2), max_size=1), max_size=1),
    "exit_status": st.sampled_from(["success", ""]),
    "agent_exit": st.booleans(),
    "tools_available": st.lists(TOOLS, max_size=2),
    "tool_calls": st.lists(CALLS, max_size=3),
    "tool_call_results": st.lists(RESULTS, max_size=3),
    "parameters_passed": st.just({"number": "A-1"}),
    "expected_tool_call": CALLS,
    "retrieval_query": st.lists(WORDS, max_size=3),
    "retrieved_context": st.lists(st.lists(WORDS, max_size=2), max_size=3),
    "speaker": SPEAKERS,
    "message": WORDS,
    "turn_position": st.integers(0, 3),
    "context": WORDS | st.sampled_from([{"choices": ["a"]}, '{"choices": ["a"]}', "{choices}"]),
    "expected_format": WORDS,
    "extracted_content": WORDS,
    "stt_data": by_turn(SPANS),
    "tts_data": by_turn(SPANS),
    "raw_complete_audio": AUDIO,
    "latency": st.just({"llm_ttft": 0.5}),
    "metrics_collected": st.lists(METRICS, max_size=3),
    "metadata": st.fixed_dictionaries(
        {}, optional={"model": st.sampled_from(["m-1", "m-2"]), "trial": st.just(1), "timestamp": TIMES}
    ),
    "timestamp": TIMES,
    "shade": json_values(3),
}


TURN_FACTS = {name: BESIDE[name] for name in ("turn_position", "timestamp", "turn_id", "ground_truth")}


@st.composite
def joined(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One to four items. Each has its own window onto a talk that grows, or none, or is anything at all."""
    talk = draw(st.lists(TURNS, min_size=2, max_size=4))
    items = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(ONE_IN_EIGHT):
            items.append(draw(payloads()))
            continue
        if draw(ONE_IN_EIGHT):
            items.append({"speaker": draw(SPEAKERS), "message": draw(WORDS), **draw(_few(TURN_FACTS, 2))})
            continue
        item = draw(_few(BESIDE, 8))
        asked, answered = draw(TURNS), draw(TURNS)
        if not draw(ONE_IN_EIGHT):
            talk = [*talk, asked, answered]
        if draw(ONE_IN_EIGHT):
            item |= {"retrieval_query": ["a", "b"], "retrieved_context": [["Yes."]]}
        if not draw(ONE_IN_FOUR):
            window = talk[draw(st.sampled_from([0, 0, 0, 1, 2])) :]
            item["conversation_context"] = draw(_few({"topic": WORDS, "context": WORDS, "shade": json_values(2)}, 2))
            if not draw(ONE_IN_EIGHT):
                item["conversation_context"]["turns"] = window[:-2] if draw(ONE_IN_FOUR) else window
        if not draw(ONE_IN_FOUR):
            item["agent_task"] = draw(_words_of(asked, talk))
        if not draw(ONE_IN_FOUR):
            item["agent_response"] = draw(_words_of(answered, talk))
        items.append(item)
    return items


def _words_of(turn: dict[str, Any], talk: list[dict[str, Any]]) -> SearchStrategy[str]:
    """What a turn says, and sometimes what another does."""
    mine = st.just(turn.get("message") or "Hello.")
    return mine | mine | st.sampled_from([one.get("message") or "Hello." for one in talk])


@st.composite
def _few(draw: st.DrawFn, known: dict[str, SearchStrategy[Any]], most: int) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(known)), max_size=most, unique=True))
    return {name: draw(known[name]) for name in names}
