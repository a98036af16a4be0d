"""Our own conversation JSON."""
