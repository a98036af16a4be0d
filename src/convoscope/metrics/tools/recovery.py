"""Metrics of what the agent makes of the answers of tools: errors that stay, and calls that learn nothing new."""

from __future__ import annotations

import msgspec

from convoscope.metrics.columns import Conversations
from convoscope.metrics.declaration import CONVERSATION, COUNT, EVENT, LOWER, metric
from convoscope.metrics.needs import TOOL_CALLS
from convoscope.metrics.nonsense import EMPTY_AGENT
from convoscope.metrics.presets import share_metric
from convoscope.scores.observation import subject_of, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.views.subjects import WHOLE
from convoscope.views.tool_outcomes import outcome_of_call


@metric(
    "tools.unrecovered_errors",
    version=2,
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
def unrecovered_errors(many: Conversations) -> None:
    """How many tools failed, and never worked afterwards?

    Tools whose last call with a result that says how it went failed. Only failures that are stated count.
    Unmeasured where no call has a result.
    """
    for index, conversation in enumerate(many.conversations):
        outcomes = [(call.name, outcome_of_call(conversation, call)) for call in conversation.tool_calls]
        last = {name: outcome.failed for name, outcome in outcomes if outcome is not None and outcome.basis}
        if any(outcome is not None for _, outcome in outcomes):
            names = [name for name, failed in last.items() if failed]
            many.measured(index, WHOLE, float(len(names)), {"tools": names} if names else None)
        else:
            many.add(index, unmeasured(conversation, "no_tool_result"))


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
def repeated_calls(many: Conversations) -> None:
    """What share of the tool calls says again what an earlier one said, and learns nothing new?

    1 of a call of the same tool with the same arguments as an earlier call, whose result, where the log has one, is
    also the same; else 0. Asking again until the answer changes is no repetition.
    """
    for place, conversation in enumerate(many.conversations):
        results = conversation.tool_results
        earlier: set[bytes] = set()
        for call in conversation.tool_calls:
            result = results.get(call.seq)
            answer = None if result is None else (result.result, result.error, result.success)
            key = _encode((call.name, call.arguments, call.raw_arguments, answer))
            many.ratio(place, subject_of(call), 1.0 if key in earlier else 0.0, 1.0, {"tool": call.name})
            earlier.add(key)


_encode = msgspec.json.Encoder(order="sorted").encode
