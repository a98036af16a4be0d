"""Metrics of the conversation as a whole."""

from __future__ import annotations

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import CONVERSATION, COUNT, NEITHER, metric
from convoscope.metrics.needs import UTTERANCES
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.scores.observation import Observation, measured, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce, percentile


@metric(
    "conversation.turns",
    version=2,
    label="turns of the user",
    importance=1,
    observes=CONVERSATION,
    unit=COUNT,
    better=NEITHER,
    needs=(UTTERANCES,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    also={"p50": percentile(50), "p95": percentile(95)},
    sensitive_to=(EMPTY_AGENT,),
)
def turns(conversation: Conversation) -> Observation:
    """How many turns did the user take?

    Turns in which the user speaks, by the conversation's turn rule. The agent's greeting (turn 0)
    is not one. A conversation in which only the agent speaks has 0. Unmeasured where no user is known,
    and it is not known of a speaker who it is.

    >>> value(turns, example("user: Hello?", "assistant: Hello.", "user: Good bye."))
    2.0
    """
    count = sum(1 for turn in conversation.turns if turn.user)
    if not count and any(conversation.roles[one.speaker] == "unknown" for one in conversation.utterances):
        return unmeasured(conversation, "speakers_unknown")
    return measured(conversation, count)
