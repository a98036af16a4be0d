"""Everything that a metric needs: declarations, units, needs, reducers, views and resources. One module per family."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convoscope.conversation.model import Conversation
    from convoscope.conversation.turns import Turn
    from convoscope.metrics.composites import Repeats, repeats
    from convoscope.metrics.declaration import (
        CONVERSATION,
        COUNT,
        EVENT,
        HIGHER,
        ITEM,
        LOWER,
        NEITHER,
        RATIO,
        SECONDS,
        SHARE,
        STATE,
        TURN,
        WORDS,
        Derived,
        GroupSample,
        Metric,
        Target,
        TenPoints,
        axis,
        conversation_share_metric,
        derived,
        item_metric,
        metric,
        share_metric,
        wait_metric,
    )
    from convoscope.metrics.eva_classes import eva_metric
    from convoscope.metrics.examples import example, value
    from convoscope.metrics.judged import template_scorer
    from convoscope.metrics.needs import (
        ASSISTANT_SPEECH,
        FLOW_DECLARED,
        GROUND_TRUTH,
        JUDGE,
        NOT_BROKEN,
        RECORDING,
        TIMES,
        TOOL_CALLS,
        TOOLS_KNOWN,
        USER_SPEECH,
        UTTERANCES,
        Need,
        english_words,
    )
    from convoscope.metrics.perturbations import (
        ANSWERED_BADLY,
        EMPTY_AGENT,
        EQUAL_TIMES,
        PARROT,
        RANDOM_WORDS,
        SAYS_EVERYTHING,
        SHUFFLED_TURNS,
        SKEWED_CLOCKS,
        SWAPPED_ROLES,
    )
    from convoscope.resources import (
        Judge,
        Recognised,
        Recogniser,
        RecordedTrack,
        Recording,
        RecordingError,
        Sound,
        Verdict,
        resource,
    )
    from convoscope.scores.observation import (
        Observation,
        Score,
        counted,
        failed,
        in_turn,
        measured,
        not_applicable,
        ratio,
        unmeasured,
    )
    from convoscope.scores.reducers import (
        COUNTS,
        LAST,
        MAXIMUM,
        MAXIMUM_OF_SUBJECTS,
        MEAN,
        MEAN_OF_CONVERSATIONS,
        MEAN_OF_REPORTED,
        MEAN_OF_SUBJECTS,
        MEDIAN,
        MINIMUM,
        POOLED_COUNTS,
        RATIO_OF_REPORTED,
        RATIO_OF_SUMS,
        RATIO_WITHIN,
        SUM,
        SUM_OF_CONVERSATIONS,
        WHOLE_RATIO,
        Across,
        Reduce,
        Within,
        percentile,
        register,
    )
    from convoscope.scores.side_tables import SideTable
    from convoscope.views.items import WHOLE, State, Subject
    from convoscope.views.metric_context import MetricContext
    from convoscope.views.registry import view
    from convoscope.views.standard_data.model import StandardData

__all__ = [
    "ANSWERED_BADLY",
    "ASSISTANT_SPEECH",
    "CONVERSATION",
    "COUNT",
    "COUNTS",
    "EMPTY_AGENT",
    "EQUAL_TIMES",
    "EVENT",
    "FLOW_DECLARED",
    "GROUND_TRUTH",
    "HIGHER",
    "ITEM",
    "JUDGE",
    "LAST",
    "LOWER",
    "MAXIMUM",
    "MAXIMUM_OF_SUBJECTS",
    "MEAN",
    "MEAN_OF_CONVERSATIONS",
    "MEAN_OF_REPORTED",
    "MEAN_OF_SUBJECTS",
    "MEDIAN",
    "MINIMUM",
    "NEITHER",
    "NOT_BROKEN",
    "PARROT",
    "POOLED_COUNTS",
    "RANDOM_WORDS",
    "RATIO",
    "RATIO_OF_REPORTED",
    "RATIO_OF_SUMS",
    "RATIO_WITHIN",
    "RECORDING",
    "SAYS_EVERYTHING",
    "SECONDS",
    "SHARE",
    "SHUFFLED_TURNS",
    "SKEWED_CLOCKS",
    "STATE",
    "SUM",
    "SUM_OF_CONVERSATIONS",
    "SWAPPED_ROLES",
    "TIMES",
    "TOOLS_KNOWN",
    "TOOL_CALLS",
    "TURN",
    "USER_SPEECH",
    "UTTERANCES",
    "WHOLE",
    "WHOLE_RATIO",
    "WORDS",
    "Across",
    "Conversation",
    "Derived",
    "GroupSample",
    "Judge",
    "Metric",
    "MetricContext",
    "Need",
    "Observation",
    "Recognised",
    "Recogniser",
    "RecordedTrack",
    "Recording",
    "RecordingError",
    "Reduce",
    "Repeats",
    "Score",
    "SideTable",
    "Sound",
    "StandardData",
    "State",
    "Subject",
    "Target",
    "TenPoints",
    "Turn",
    "Verdict",
    "Within",
    "axis",
    "conversation_share_metric",
    "counted",
    "derived",
    "english_words",
    "eva_metric",
    "example",
    "failed",
    "in_turn",
    "item_metric",
    "measured",
    "metric",
    "not_applicable",
    "percentile",
    "ratio",
    "register",
    "repeats",
    "resource",
    "share_metric",
    "template_scorer",
    "unmeasured",
    "value",
    "view",
    "wait_metric",
]

_HOMES = (
    "convoscope.metrics.declaration",
    "convoscope.metrics.needs",
    "convoscope.metrics.perturbations",
    "convoscope.scores.observation",
    "convoscope.scores.reducers",
    "convoscope.scores.side_tables",
    "convoscope.views.registry",
    "convoscope.views.metric_context",
    "convoscope.resources",
    "convoscope.metrics.composites",
    "convoscope.metrics.judged",
    "convoscope.metrics.eva_classes",
    "convoscope.metrics.examples",
    "convoscope.views.standard_data.model",
)
"""Where the names are looked for, in this order, on first use: to import one of our modules costs nothing else."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(home)
            if hasattr(module, name):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module 'convoscope.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
