"""Metrics that must wait for something, run to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import isasyncgen, isasyncgenfunction, iscoroutine, iscoroutinefunction
from types import GeneratorType
from typing import Any

from convoscope.scores.observation import Observation


def is_async(function: Callable[..., Any]) -> bool:
    """Whether what a function gives is still to come."""
    while isinstance(function, partial):
        function = function.func
    called = getattr(function, "__call__", function)  # noqa: B004 - an object that is called like a function
    return any(iscoroutinefunction(one) or isasyncgenfunction(one) for one in (function, called))


async def coming(result: Any) -> Any:
    """What a metric gave, when it is there."""
    if isasyncgen(result):
        return [one async for one in result]
    return await result if iscoroutine(result) else result


def awaited(result: Any) -> Any:
    """What a metric gave; where that is still to come, it is waited for."""
    if type(result) in _THERE or not (isasyncgen(result) or iscoroutine(result)):
        return result
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coming(result))
    # Called from inside a loop, as notebooks do: one loop cannot wait inside another.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coming(result)).result()


_THERE = frozenset({GeneratorType, list, tuple, Observation})
"""What metrics mostly give: there is nothing to wait for."""
