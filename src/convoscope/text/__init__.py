"""Texts, for everyone: words, comparison, spoken forms, and patterns and schemas that always come to an end."""
