"""The family `voice`: calls of a voice agent."""
