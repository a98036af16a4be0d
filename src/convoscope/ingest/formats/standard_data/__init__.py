"""Evaluation items of the StandardData schema."""
