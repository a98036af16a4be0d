"""Topics, risks and actions that annotators found, against gold labels."""
