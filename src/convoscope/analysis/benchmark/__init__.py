"""Benchmarks: data sets with gold, tracks that score predictions against it, results with receipts, and gates."""
