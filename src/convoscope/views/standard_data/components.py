"""`metrics_collected`: whatever stands there, as a flat list of component metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.views.standard_data.containers import OBJECT
from convoscope.views.standard_data.kinds import ValueKind
from convoscope.views.standard_data.payloads import component_metrics
from convoscope.views.standard_data.payloads.fields import FIELDS
from convoscope.views.standard_data.payloads.turn_order import UNORDERED
from convoscope.views.standard_data.shapes import METRICS
from convoscope.views.standard_data.warnings import Warned, Warnings

# Not of the schema, but known: what frameworks measure beside it, and where the readers of payloads keep the rest.
_OF_FRAMEWORKS = FIELDS | {"envelopes", "metric", "model", "processor", "source", "source_type", UNORDERED}


class ComponentMetrics(ValueKind):
    """Component metrics, each with its `type`; those of a type that the schema does not have stay as they came."""

    def clean(self, value: Any) -> bool:
        if type(value) is not list:
            return False
        for metric in value:
            shape = METRICS.get(metric["type"]) if type(metric) is dict and type(metric.get("type")) is str else None
            # A key that is not of the schema may be another framework's name for one that is.
            if shape is None or not shape.clean(metric) or any(key not in shape.fields for key in metric):
                return False
        return True

    def mend(self, value: Any, path: str, warnings: Warnings, type: str = "") -> list[dict[str, Any]] | None:
        warned = len(warnings)
        read = component_metrics(value, type)
        for notice in read.warnings:
            warnings.append(Warned(path + notice.path, notice.code, notice.message, notice.value))
        result = []
        for index, metric in enumerate(read.metrics):
            shape = METRICS.get(metric.get("type", ""), OBJECT)
            if shape.clean(metric):
                result.append(metric)
            elif (mended := shape.mend(metric, f"{path}[{index}]", warnings)) is not None:
                result.append(mended)
        return result if result or len(warnings) == warned else None

    def unknown(self, value: Any) -> Iterator[str]:
        for metric in value:
            if (shape := METRICS.get(metric.get("type", ""))) is not None:
                yield from (f"[]{name}" for name in shape.unknown(metric) if name[1:] not in _OF_FRAMEWORKS)


COMPONENT_METRICS = ComponentMetrics()
