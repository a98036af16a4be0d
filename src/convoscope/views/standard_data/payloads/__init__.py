"""Metric payloads as voice frameworks write them, read into component metrics: plain dicts in, plain dicts out."""

from __future__ import annotations

from convoscope.views.standard_data.payloads.metrics_collected import Components, component_metrics
from convoscope.views.standard_data.payloads.spans import TraceSpan, from_span

__all__ = ["Components", "TraceSpan", "component_metrics", "from_span"]
