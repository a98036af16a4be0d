"""How much of a slow test is done in each run, and how much with `--hypothesis-profile thorough`."""

from __future__ import annotations

from hypothesis import settings


def amount(usual: int, thorough: int) -> int:
    return thorough if settings.get_current_profile_name() == "thorough" else usual
