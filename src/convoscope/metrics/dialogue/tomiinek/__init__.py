"""The standard MultiWOZ evaluation: inform, success, BLEU, state tracking, richness (dialogue, 4)."""
