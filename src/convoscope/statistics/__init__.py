"""Scores become summaries: reducers, intervals, derived figures, panels of judges."""
