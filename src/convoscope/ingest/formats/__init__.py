"""One package for each format that can be read."""
