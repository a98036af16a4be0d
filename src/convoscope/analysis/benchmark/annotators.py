"""Who predicts where no predictions are given: annotators that are installed, by the name of their model."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from typing import Protocol

from convoscope.conversation import Annotations, Conversation
from convoscope.errors import UsageError

GROUP = "convoscope.annotators"
VARIABLE = "CONVOSCOPE_SEMANTIC_MODEL"
RULES = "rules"
MODELS = (RULES,)
"""What can be named. Models that are asked come with judges."""


class Annotator(Protocol):
    """Finds topics, risks and actions in a conversation."""

    @property
    def config(self) -> dict[str, str]:
        """Versions and hashes of all that could make it find something else."""
        ...

    def annotate(self, conversation: Conversation) -> Annotations:
        """What it finds; a family that it does not provide, or failed at, is None."""
        ...


def model_named(model: str | None) -> str:
    """The model that the user means; refuses what nobody can run yet."""
    name = model or os.environ.get(VARIABLE) or RULES
    if name not in MODELS:
        whose = "--model" if model else VARIABLE
        hint = f"there is {', '.join(MODELS)}; give what another model found with --predictions"
        raise UsageError(f"{whose}: the model {name!r} cannot be run", hint=hint)
    return name


def annotator_of(model: str) -> Annotator:
    """The annotator of a model."""
    for entry in entry_points(group=GROUP):
        if entry.name == model:
            annotator: Annotator = entry.load()
            return annotator
    raise UsageError(f"no annotator {model!r} is installed", hint="give predictions with --predictions DIR")
