"""Subtitles: SRT and WebVTT."""
