"""Metrics of what the agent makes of the answers of tools: errors that stay, and calls that learn nothing new."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import CONVERSATION, COUNT, EVENT, LOWER, metric
from convoscope.metrics.needs import TOOL_CALLS
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.metrics.presets import share_metric
from convoscope.scores.observation import Observation, measured, ratio, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_REPORTED, Reduce
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
    reduce=Reduce(MEAN, MEAN_OF_REPORTED),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def unrecovered_errors(conversation: Conversation) -> Observation:
    """How many tools failed, and never worked afterwards?

    Tools whose last call with a result that says how it went failed. Unmeasured where no call has a result, and where
    no tool is known to have failed and the last result of one does not say how it went. A group in which errors stay,
    and no fewer conversations do not say than do, has no value: failures report themselves.
    """
    outcomes = [(call.name, outcome_of_call(conversation, call)) for call in conversation.tool_calls]
    last = {name: outcome for name, outcome in outcomes if outcome is not None}
    stated = {name: outcome for name, outcome in outcomes if outcome is not None and outcome.basis}
    names = [name for name, outcome in stated.items() if outcome.failed]
    unstated = next(((name, outcome.reason) for name, outcome in last.items() if outcome.reason), None)
    if not last:
        return unmeasured(conversation, "no_tool_result")
    if unstated and not names:
        return unmeasured(conversation, unstated[1], unstated[0])
    return measured(conversation, float(len(names)), details={"tools": names} if names else None)


@share_metric(
    "tools.repeated_calls",
    version=1,
    label="tool calls repeated",
    importance=3,
    observes=EVENT,
    better=LOWER,
    needs=(TOOL_CALLS,),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
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
        yield ratio(call, 1.0 if key in earlier else 0.0, 1.0, details={"tool": call.name})
        earlier.add(key)


_encode = msgspec.json.Encoder(order="sorted").encode
