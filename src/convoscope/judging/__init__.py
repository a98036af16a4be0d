"""The language model as an instrument: named, versioned, cached, budgeted, and silent when it does not know."""
