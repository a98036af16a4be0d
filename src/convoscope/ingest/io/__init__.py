"""Bytes in, records out: containers, JSON, YAML, tables, standard input."""
