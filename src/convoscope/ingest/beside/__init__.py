"""What lies beside logs and belongs to conversations: flow definitions, datasets of scenarios, gold labels."""
