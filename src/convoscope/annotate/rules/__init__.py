"""The rule annotator: lexicons and patterns, kept as data."""
