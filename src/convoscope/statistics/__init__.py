"""Scores become summaries: reducers, intervals, derived figures, pass@k, panels of judges."""
