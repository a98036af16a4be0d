"""What a metric may ask of a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Verdict(NamedTuple):
    """What a judge answered."""

    answer: Mapping[str, Any]
    """As the schema wants it."""
    judge: str
    """Who answered, for `measured(…, judge=…)`: `provider/model@rubric-hash`."""


class Judge(Protocol):
    """Reads a text and answers in the shape that is asked for."""

    identity: str
    """All that its answers depend on beside the question: `provider/model@rubric-hash`."""

    async def ask(self, prompt: str, schema: Mapping[str, Any]) -> Verdict:
        """The answer to a prompt, in the shape of a JSON Schema. Raises where there is none to be had."""


__all__ = ["Judge", "Verdict"]
