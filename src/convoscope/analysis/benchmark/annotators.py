"""Who predicts where no predictions are given: annotators that are installed, by the name of their model."""

from __future__ import annotations

import os

from convoscope.errors import UsageError

VARIABLE = "CONVOSCOPE_SEMANTIC_MODEL"
RULES = "rules"
MODELS = (RULES,)
"""What can be named. Models that are asked come with judges."""


def default_model() -> str:
    """The model that the user's environment names; empty without one."""
    return os.environ.get(VARIABLE) or ""


def model_named(model: str | None) -> str:
    """The model that the user means; refuses what nobody can run yet."""
    name = model or default_model() or RULES
    if name not in MODELS:
        whose = "--model" if model else VARIABLE
        hint = f"there is {', '.join(MODELS)}; give what another model found with --predictions"
        raise UsageError(f"{whose}: the model {name!r} cannot be run", hint=hint)
    return name
