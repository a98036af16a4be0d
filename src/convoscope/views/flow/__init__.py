"""A conversation as a walk through the states of its flow. Deterministic: it reads events, never a model."""
