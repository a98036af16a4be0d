"""What lies beside logs and belongs to conversations: flow definitions, datasets, predictions of turns, gold labels."""
