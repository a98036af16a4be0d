"""Metrics that a judge has to give."""
