"""Readings of a conversation, in shapes that other tools and metrics know."""

from convoscope.views.metric_context import MetricContext, PipelineType, metric_context

__all__ = ["MetricContext", "PipelineType", "metric_context"]
