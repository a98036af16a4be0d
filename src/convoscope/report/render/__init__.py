"""A table in the form that its reader wants: for a terminal or a pipe, and as Markdown."""
