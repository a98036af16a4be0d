"""Task-oriented dialogue: states, acts, policy and goals, predicted against true (dialogue, 1)."""
