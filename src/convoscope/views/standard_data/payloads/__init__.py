"""Metric payloads as voice frameworks write them, read into component metrics: plain dicts in, plain dicts out."""
