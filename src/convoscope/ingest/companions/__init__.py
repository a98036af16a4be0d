"""Files that belong to logs: flow definitions, datasets, dialogue files, predictions of turns, gold labels."""
