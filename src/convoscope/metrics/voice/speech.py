"""Metrics of a voice agent at work: what it says before it works, how much its model writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.conversation import ASSISTANT, AnyEvent, ComponentMetric, Conversation, ToolCall, Utterance
from convoscope.metrics.declaration import EVENT, HIGHER, NEITHER, Metric, metric, share_metric
from convoscope.metrics.needs import TOOL_CALLS, Need
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.metrics.voice.call import CALL, is_quantity
from convoscope.scores.observation import Observation, measured, ratio, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_SUBJECTS, Reduce

TOKENS = "tokens"
OUTPUT_TOKENS = "output_tokens"
REASONING_TOKENS = "reasoning_tokens"


@share_metric(
    "voice.pre_tool_speech",
    label="speaks before it uses a tool",
    version=2,
    observes=EVENT,
    better=HIGHER,
    needs=(CALL, TOOL_CALLS),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def pre_tool_speech(conversation: Conversation) -> Iterator[Observation]:
    """Does the agent say something before it goes to work?

    Tool calls of one turn without speech between them are a group. 1 for a group before which
    the agent spoke in the same turn, else 0, in which case the user hears silence while tools work.
    The subject is the first call of the group.

    >>> value(pre_tool_speech, example("0-1 user: Hi.", "2-3 assistant: One moment.", "tool: find {} -> {}"))
    1.0
    """
    for turn in conversation.turns:
        spoken = {one.seq for one in (*turn.user, *turn.assistant)}
        spoke = in_group = False
        for event in turn.events:
            if isinstance(event, ToolCall):
                if not in_group:
                    yield ratio(event, spoke, 1, empty="no_tool_calls", details={"tool": event.name, "turn": turn.id})
                in_group = True
            elif isinstance(event, Utterance) and event.seq in spoken:
                in_group = False
                spoke = spoke or conversation.roles[event.speaker] == ASSISTANT


def _counts(event: AnyEvent) -> dict[str, Any] | None:
    """What an event says of the tokens of one call of the model; None where it speaks of something else."""
    if type(event) is ComponentMetric and event.component == "llm":
        counts = {name: event.values.get(name) for name in (OUTPUT_TOKENS, REASONING_TOKENS)}
        return counts if any(value is not None for value in counts.values()) else None
    return None


def _tokens(name: str, counted: str, question: str, what: str) -> Metric:
    def tokens(conversation: Conversation) -> Iterator[Observation]:
        for event in conversation.timeline:
            counts = _counts(event)
            if counts is None:
                continue
            value = counts[counted]
            yield measured(event, value) if is_quantity(value) else unmeasured(event, "no_token_counts")

    tokens.__doc__ = f"""{question}

    Per call of the model, as the log counts them: {what}. A call of which the log gives no such count
    is unmeasured, and so is a conversation without any.

    >>> value("{name}", example("0-1 user: Hi.", 'llm: {{"{counted}": 10}}', 'llm: {{"{counted}": 20}}'))
    15.0
    """
    counts_logged = Need(
        "no_token_counts",
        f"timeline.component_metric of llm, values.{counted}",
        "the tokens of each call of the model, for example `agent_perf_stats.csv` beside the log",
        lambda conversation: any(map(_counts, conversation.contents.reports.get("llm", ()))),
    )
    return metric(
        name,
        version=2,
        observes=EVENT,
        unit=TOKENS,
        better=NEITHER,
        needs=(CALL, counts_logged),
        reduce=Reduce(MEAN, MEAN_OF_SUBJECTS),
        sensitive_to=(),
    )(tokens)


output_tokens = _tokens(
    "voice.output_tokens",
    OUTPUT_TOKENS,
    "How many tokens does the model write each time it is asked?",
    "all that it writes",
)
reasoning_tokens = _tokens(
    "voice.reasoning_tokens",
    REASONING_TOKENS,
    "How many tokens does the model spend on thinking each time it is asked?",
    "those that are not spoken. 0 where it rightly thought nothing",
)
