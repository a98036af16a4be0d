"""Schema-Guided Dialogue, and dialogues of MultiWOZ 2.2, which have its shape."""
