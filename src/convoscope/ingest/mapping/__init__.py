"""Logs that no reader knows, read by a mapping: a TOML file that says where in a record things are."""
