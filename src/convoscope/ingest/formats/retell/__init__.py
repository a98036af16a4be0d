"""Calls of Retell."""
