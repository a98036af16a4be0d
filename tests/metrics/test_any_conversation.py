"""Whatever a conversation holds, every metric has something to say about it, and none breaks."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, assume, given, settings

from convoscope.conversation import Conversation
from convoscope.metrics import registry
from convoscope.metrics.declaration import Metric
from convoscope.scoring.evaluate import evaluate
from support.calls import is_of_this_world
from support.strategies import conversations

OURS = [
    one
    for one in registry.installed().declared.values()
    if isinstance(one, Metric) and one.function.__module__.startswith("convoscope.")
]


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(conversations())
def test_no_metric_breaks(conversation: Conversation) -> None:
    assume(is_of_this_world(conversation))
    evaluated = evaluate(conversation, OURS)
    assert [one.declared.key for one in evaluated] == [one.key for one in OURS]
    for each in evaluated:
        for one in (*each.observations, *each.scores):
            assert one.status != "error", (each.declared.key, one)
            assert one.value is None or math.isfinite(one.value), (each.declared.key, one)
