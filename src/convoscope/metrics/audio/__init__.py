"""The family `audio`: what can be heard of the agent."""
