"""What lies beside logs and belongs to conversations: flow definitions, datasets with expected outcomes."""
