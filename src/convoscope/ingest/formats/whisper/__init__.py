"""Transcripts of Whisper and its relatives, as JSON."""
