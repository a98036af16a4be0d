"""Four conversations in which a tool is called, and the few metrics that are asked about them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.chats import call, chat, result, user

_VALIDITY = "tools.tool_call_validity"
METRICS = (
    "agent.repetition",
    "agent.words_per_turn",
    "answer.exact_match",
    "answer.f1",
    "conversation.turns",
    "timing.response_latency",
    "tools.calls",
    "tools.success",
    _VALIDITY,
    f"{_VALIDITY}.bad_argument_rate",
    f"{_VALIDITY}.missing_argument_rate",
    f"{_VALIDITY}.rejected_rate",
    f"{_VALIDITY}.unknown_tool_rate",
)


def called_run(folder: Path, by: Sequence[Sequence[str]] | None = (("flow",),)) -> Run:
    """One call each: the first fails, the others come back. No times, no truths, not a word of the agent.

    They follow two flows, by turns, which are asked for: there are few conversations of each.
    """
    conversations = [
        chat(
            user("hi"),
            call("find", "1"),
            result("find", "1", success=number > 0),
            id=f"c{number}",
            dimensions={"flow": f"f{number % 2}", "agent": "only"},
        )
        for number in range(4)
    ]
    return score(conversations, metrics=METRICS, out=folder, workers=1, by=by)
