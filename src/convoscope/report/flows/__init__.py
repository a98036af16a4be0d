"""What the states of a flow did, on a terminal or in a pipe: one module per question."""
