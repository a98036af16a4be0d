"""Topics, risks and actions that annotators find in conversations."""
