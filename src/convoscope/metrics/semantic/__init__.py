"""Topics, risks and actions that somebody found, against gold labels."""
