"""Metrics that must wait for something, run to their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from inspect import isasyncgen, iscoroutine
from types import GeneratorType
from typing import Any

from convoscope.metrics.score import Observation


def awaited(result: Any) -> Any:
    """What a metric gave; where that is still to come, it is waited for."""
    if type(result) in _THERE:
        return result
    if isasyncgen(result):
        result = _all(result)
    elif not iscoroutine(result):
        return result
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(result)
    # Called from inside a loop, as notebooks do: one loop cannot wait inside another.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, result).result()


_THERE = frozenset({GeneratorType, list, tuple, Observation})
"""What metrics mostly give: there is nothing to wait for."""


async def _all(observations: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in observations]
