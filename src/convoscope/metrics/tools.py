"""Metrics of the tools that the agent calls."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import CONVERSATION, COUNT, EVENT, HIGHER, NEITHER, SHARE, metric
from convoscope.metrics.needs import TOOL_CALLS, TOOLS_KNOWN
from convoscope.metrics.reduction import MEAN, MEAN_OF_CONVERSATIONS, RATIO, RATIO_OF_SUMS, Reduce
from convoscope.metrics.score import Observation, measured, not_applicable, ratio, unmeasured


@metric(
    "tools.calls",
    version=1,
    observes=CONVERSATION,
    unit=COUNT,
    better=NEITHER,
    needs=(TOOLS_KNOWN,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
)
def calls(conversation: Conversation) -> Observation:
    """How many tool calls does the agent make?

    0 where the agent had tools and used none. Not applicable where it had none; unmeasured where
    the log neither shows a call nor says which tools there were.
    """
    if not conversation.tool_calls and not conversation.agent.tools:
        return not_applicable(conversation, "no_tools")
    return measured(conversation, len(conversation.tool_calls))


@metric(
    "tools.success",
    version=1,
    observes=EVENT,
    unit=SHARE,
    better=HIGHER,
    needs=(TOOL_CALLS,),
    reduce=Reduce(RATIO, RATIO_OF_SUMS),
)
def success(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls came back without an error?

    Per call: 1 where its result reports no error, 0 where it reports one. A call without a result
    in the log is unmeasured. `stated` in the details says whether the result states its success or
    merely shows no error.
    """
    results = conversation.tool_results
    for call in conversation.tool_calls:
        result = results.get(call.seq)
        if result is None:
            yield unmeasured(call, "no_tool_result", call.name)
            continue
        bad = result.success is False or (result.success is None and bool(result.error))
        details = {"tool": call.name, "stated": result.success is not None}
        if result.error:
            details["error"] = result.error
        yield ratio(call, 0 if bad else 1, 1, empty="no_tool_calls", details=details)
