"""Reads the folders that voice agent test benches leave: several logs of one call."""
