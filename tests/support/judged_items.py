"""Evaluation items with all that judged metrics read, and answers of judges about them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from convoscope.conversation import Conversation
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import known
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import answered
from convoscope.views.standard_data.canonical import to_conversation
from convoscope.views.standard_data.tidy import tidy

TURNS = [
    {"speaker": "user", "message": "Hello, my name is Ines. Can I return a lamp?"},
    {"speaker": "assistant", "message": "Hello Ines. When did you buy it?"},
    {"speaker": "user", "message": "Last week."},
    {"speaker": "assistant", "message": "Then you can send it back for free."},
]
FULL: dict[str, Any] = {
    "agent_task": "How long can I return a lamp?",
    "agent_response": "You can return it within 30 days. Shipping is free.",
    "ground_truth": "Lamps can be returned within 30 days; shipping is free.",
    "agent_role": "Clerk of a lamp shop",
    "system_prompt": "Greet the caller. Ask when the lamp was bought.",
    "retrieval_query": ["return lamp", "shipping"],
    "retrieved_context": [["Lamps are bright.", "Lamps: return within 30 days."], ["Returns ship free of charge."]],
    "conversation_context": {"turns": TURNS},
    "tools_available": [{"name": "find_order"}, {"name": "weather"}],
    "tool_calls": [
        {"tool_name": "find_order", "parameters": {"name": "Ines"}, "call_id": "1"},
        {"tool_name": "weather", "parameters": {}, "call_id": "2"},
    ],
    "tool_call_results": [{"call_id": "1", "result": "lamp, bought last week", "success": True}],
    "trace": [{"step": "find the order"}, {"step": "tell the user"}],
    "agent_exit": True,
    "exit_status": "success",
    "context": {"criteria": "The answer names the number of days."},
    "stt_data": {"transcript": "Last week.", "provider": "p"},
}


def item(id: str = "one", without: Sequence[str] = (), **fields: Any) -> Conversation:
    """A conversation of one item; without some fields, and with others."""
    whole = {**FULL, **fields}
    return to_conversation([tidy({name: value for name, value in whole.items() if name not in without})], id=id)


def listed(*verdicts: tuple[str, ...], **flags: bool) -> dict[str, Any]:
    """An answer that lists what a judge found: a verdict, a quote, and the words that it is listed from if others.

    `flags` say why there is no quote: `common_knowledge`, `prohibition`.
    """
    said = {"common_knowledge": False, "prohibition": False, **flags}
    return {
        "items": [
            {"text": words or quote, "words": words, "quote": quote, "verdict": verdict, **said}
            for verdict, quote, words in ((*one, "")[:3] for one in verdicts)
        ]
    }


def numbered(verdicts: Mapping[int, tuple[str, str]]) -> dict[str, Any]:
    """An answer about what a judge was given by number."""
    return {
        "items": [
            {"id": number, "explanation": "so", "quote": quote, "verdict": verdict}
            for number, (verdict, quote) in verdicts.items()
        ]
    }


def judged(name: str, conversation: Conversation, judge: Any, **settings: Any) -> Sequence[Observation]:
    """What a metric says by a judge: its name, or what it answers."""
    declared = known(name)
    assert isinstance(declared, Metric)

    def reply(prompt: str, schema: Any) -> Any:
        return judge(prompt, schema) if callable(judge) else judge

    async def ask() -> Sequence[Observation]:
        named = judge if isinstance(judge, str) else reply
        instrument = Instrument(named, JudgeSettings(use_cache=False, **settings))
        try:
            return await answered(declared, conversation, {"judge": instrument})
        finally:
            await instrument.aclose()

    return asyncio.run(ask())
