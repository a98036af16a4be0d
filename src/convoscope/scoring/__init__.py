"""Plan and execute metrics over conversations."""
