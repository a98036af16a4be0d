"""Event streams of agents that are driven by a flow."""
