"""Metrics of sound: its quality, its loudness and pitch, and how many words arrive."""
