"""Calls of Vapi."""
