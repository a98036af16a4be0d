"""Metrics of what the agent makes of the answers of tools: errors that stay, and calls that learn nothing new."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import CONVERSATION, COUNT, EVENT, LOWER, metric
from convoscope.metrics.needs import TOOL_CALLS
from convoscope.metrics.nonsense import EMPTY_AGENT
from convoscope.metrics.presets import share_metric
from convoscope.scores.observation import Observation, measured, ratio, subject_of, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce


@metric(
    "tools.unrecovered_errors",
    version=1,
    label="tool errors that stay",
    importance=5,
    observes=CONVERSATION,
    unit=COUNT,
    better=LOWER,
    needs=(TOOL_CALLS,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    notices=(),
    falls_silent=(EMPTY_AGENT,),
)
def unrecovered_errors(conversation: Conversation) -> Observation:
    """How many tools failed, and never worked afterwards?

    Tools whose last call that has a result came back with an error. Unmeasured where no call has a result.
    """
    results = conversation.tool_results
    last: dict[str, bool] = {}
    for call in conversation.tool_calls:
        result = results.get(call.seq)
        if result is not None:
            last[call.name] = result.failed
    if not last:
        return unmeasured(conversation, "no_tool_result")
    names = [name for name, failed in last.items() if failed]
    return measured(conversation, len(names), details={"tools": names} if names else None)


@share_metric(
    "tools.repeated_calls",
    version=1,
    label="tool calls repeated",
    importance=3,
    observes=EVENT,
    better=LOWER,
    needs=(TOOL_CALLS,),
    notices=(),
    falls_silent=(EMPTY_AGENT,),
)
def repeated_calls(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls says again what an earlier one said, and learns nothing new?

    1 of a call of the same tool with the same arguments as an earlier call, whose result, where the log has one, is
    also the same; else 0. Asking again until the answer changes is no repetition.
    """
    results = conversation.tool_results
    earlier: set[bytes] = set()
    for call in conversation.tool_calls:
        result = results.get(call.seq)
        answer = None if result is None else (result.result, result.error, result.success)
        key = _encode((call.name, call.arguments, call.raw_arguments, answer))
        yield ratio(subject_of(call), 1 if key in earlier else 0, 1, empty="no_tool_calls", details={"tool": call.name})
        earlier.add(key)


_encode = msgspec.json.Encoder(order="sorted").encode
