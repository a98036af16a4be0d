"""What the states of a flow did, asked of one or several runs: which state broke the flow, and how sure that is."""

from convoscope.analysis.flows.states import States, states

__all__ = ["States", "states"]
