"""Metric classes of EVA as metrics here: `compute(context)` gives a `MetricScore`, which becomes a score of ours."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from inspect import cleandoc, isawaitable, isclass
from typing import Any, Literal, Protocol, get_args

from convoscope.errors import DeclarationError
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, Better, Metric, metric
from convoscope.metrics.judged import FAMILY
from convoscope.metrics.verdicts import FAILED, NOT_ON_SCALE, SKIPPED
from convoscope.scores.observation import (
    COMPUTED,
    ERROR,
    MEASURED,
    NOT_APPLICABLE,
    UNMEASURED,
    Observation,
    Status,
)
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.folding import split_camel
from convoscope.views import MetricContext
from convoscope.views.items import WHOLE

ScoreField = Literal["normalized_score", "score"]
_FIELDS = ("score", "normalized_score", "error", "skipped", "version", "prompt_hash", "details", "sub_metrics")


class EvaMetric(Protocol):
    """What EVA's metric classes have. `compute` may be async; what it gives has the fields of a `MetricScore`."""

    def compute(self, context: Any) -> Any:
        """The score of one call, from its `MetricContext`."""


def eva_metric(
    metric_class: type[EvaMetric] | EvaMetric,
    *,
    name: str = "",
    version: int = 1,
    of: ScoreField = "normalized_score",
    unit: str = RATIO,
    better: Better = HIGHER,
) -> Metric:
    """Declare a metric that asks a class of EVA, or an object of one, about each call.

    Its value is `normalized_score`, from 0 to 1; with `of="score"` it is `score`, on the scale that `unit` names. A
    score with a `prompt_hash` is a judge's, `external:NAME@HASH`; any other was computed. A name without a family is of
    the family `custom`. Assign the result to a name of a module, and name that module in `--metrics-from`.
    """
    called = _name(metric_class)
    if not callable(getattr(metric_class, "compute", None)):
        raise DeclarationError(f"{called} has no method compute", hint="a metric class of EVA has compute(context)")
    if of not in get_args(ScoreField):
        raise DeclarationError(f"{called}: of={of!r}", hint=f"use one of {', '.join(get_args(ScoreField))}")
    held: list[EvaMetric] = [] if isclass(metric_class) else [metric_class]

    async def verdict(context: MetricContext) -> Observation:
        if not held:
            held.append(metric_class())  # type: ignore[operator]
        if not _is_supported(held[0], context):
            return _score(COMPUTED, NOT_APPLICABLE, "pipeline_not_supported", str(context.pipeline_type or "unknown"))
        result = held[0].compute(context)
        return observation_of(await result if isawaitable(result) else result, called, of)

    words = cleandoc(getattr(metric_class, "__doc__", None) or "").strip()
    verdict.__doc__ = f"""What does {called} say of a call?

{words}

The value is `{of}` of a metric class of EVA. An error is an error, and what it skips is unmeasured."""
    return metric(
        name if "." in name else f"{FAMILY}.{name or called}",
        version=version,
        observes=CONVERSATION,
        unit=unit,
        better=better,
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    )(verdict)


def observation_of(result: Any, name: str, of: ScoreField = "normalized_score") -> Observation:
    """A `MetricScore`, an object or a dictionary with its fields, as a score of a conversation."""
    fields = {field: _field(result, field) for field in _FIELDS}
    if all(value is None for value in fields.values()):
        raise TypeError(f"compute gave {result!r}, which has none of the fields of a MetricScore")
    judge = f"external:{name}@{fields['prompt_hash']}" if fields["prompt_hash"] else COMPUTED
    details = _details(fields)
    if fields["error"]:
        return _score(judge, ERROR, FAILED, str(fields["error"]), details)
    value = fields[of]
    if fields["skipped"] or (fields["score"] is None and fields["normalized_score"] is None):
        return _score(judge, UNMEASURED, SKIPPED, str((details.get("details") or {}).get("reason") or ""), details)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or (of == "normalized_score" and not 0 <= value <= 1):
        return _score(judge, UNMEASURED, NOT_ON_SCALE, f"{of} is {value!r}", details)
    return Observation(subject=WHOLE, status=MEASURED, value=float(value), judge=judge, details=details)


def _score(
    judge: str, status: Status, reason: str, detail: str, details: Mapping[str, Any] | None = None
) -> Observation:
    return Observation(subject=WHOLE, status=status, reason=reason, detail=detail, judge=judge, details=details)


def _field(result: Any, name: str) -> Any:
    return result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)


def _details(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a score says beside its value; of its parts, their numbers."""
    details = {name: value for name, value in fields.items() if value not in (None, False, {}, "")}
    parts = fields["sub_metrics"]
    if isinstance(parts, Mapping) and parts:
        details["sub_metrics"] = {
            str(part): {name: _field(score, name) for name in _FIELDS[:4] if _field(score, name) not in (None, False)}
            for part, score in parts.items()
        }
    if not isinstance(details.get("details"), Mapping):
        details.pop("details", None)
    return details


def _is_supported(held: EvaMetric, context: MetricContext) -> bool:
    """Whether the class says that it knows calls of this pipeline; one that says nothing knows all."""
    supported = getattr(held, "supported_pipeline_types", None)
    if not supported:
        return True
    return str(context.pipeline_type or "") in {str(getattr(kind, "value", kind)) for kind in supported}


def _name(metric_class: Any) -> str:
    """The name that the class has, in the form that metrics have here."""
    stated = getattr(metric_class, "name", None)
    if not isinstance(stated, str) or not stated:
        kind = metric_class if isclass(metric_class) else type(metric_class)
        stated = split_camel(kind.__name__, "_").lower().strip("_")
    return re.sub(r"[^a-z0-9_]+", "_", stated.lower()).strip("_") or "unnamed"


__all__ = ["EvaMetric", "eva_metric", "observation_of"]
