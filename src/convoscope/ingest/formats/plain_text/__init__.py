"""Transcripts as plain text: a label, a colon, and what was said."""
