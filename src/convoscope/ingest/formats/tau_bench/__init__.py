"""Trajectories of τ-bench."""
