"""Whether a conversation reached what it was for, by the one definition of all reports."""

from __future__ import annotations

from convoscope.conversation import Conversation
from convoscope.metrics.needs import Need
from convoscope.metrics.presets import conversation_share_metric
from convoscope.scores.observation import Observation, measured
from convoscope.views.flow.endings import outcome_of

OUTCOME_KNOWN = Need(
    code="outcome_unknown",
    field="outcome",
    unlock="your own verdict, named with --label; or `completed` in the log, or a flow that declares its ends",
    present=lambda conversation: outcome_of(conversation).done is not None,
)


@conversation_share_metric(
    "outcome.success", version=2, label="reach their goal", importance=10, needs=(OUTCOME_KNOWN,), sensitive_to=()
)
def success(conversation: Conversation) -> Observation:
    """Did the conversation reach what it was for?

    1 where it is done, 0 where it is lost: by the user's own label, else by what the log says of it, else by the end
    that the flow came to. Unmeasured where none of these tells.
    """
    reading = outcome_of(conversation)
    return measured(conversation, 1 if reading.done else 0, details={"told_by": reading.evidence})
