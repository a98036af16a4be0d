"""Lists of metric names in the answer and the order: each name is that of a metric there is."""

from __future__ import annotations

import pytest

from convoscope.analysis.answer.figures import INFERRED_PART, TWINS
from convoscope.analysis.answer.samples import WAIT
from convoscope.analysis.answer.verdict import COMPLETIONS, VERBS
from convoscope.metrics.registry import installed
from convoscope.runs.ranking import OUTCOME_METRIC, ROUGHNESS

LISTS = {
    "completions": COMPLETIONS,
    "verbs": tuple(VERBS),
    "twins": tuple(sorted(name for twins in TWINS for name in twins)),
    "roughness": tuple(sorted(ROUGHNESS)),
    "by themselves": (WAIT, OUTCOME_METRIC, f"tools.success.{INFERRED_PART}", "agent.unanswered_turns"),
}


@pytest.mark.parametrize("names", LISTS.values(), ids=LISTS.keys())
def test_each_name_is_declared(names: tuple[str, ...]) -> None:
    assert not [name for name in names if name not in installed().declared]
