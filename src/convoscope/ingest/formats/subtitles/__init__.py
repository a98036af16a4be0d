"""Subtitles: SRT, WebVTT and SBV."""
