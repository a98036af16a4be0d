"""Conversations of ElevenLabs."""
