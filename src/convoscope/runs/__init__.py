"""A run is a folder: written, resumed, read, queried, invalidated."""
