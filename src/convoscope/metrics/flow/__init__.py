"""The families `flow` and `state`, and where callers leave a flow."""
