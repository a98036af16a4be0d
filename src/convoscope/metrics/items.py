"""What the function of a metric gives, awaited where it must wait, and of each evaluation item where it takes one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.scores.observation import Observation, failed, measured, not_applicable
from convoscope.views.items import WHOLE, Case, Subject

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import isasyncgen, isasyncgenfunction, iscoroutine, iscoroutinefunction
from types import GeneratorType

NO_VALUE = "no_value"


class ItemView(NamedTuple):
    """One case, and the item as the published schema has it."""

    case: Case
    data: StandardData


@cached_on_argument
def viewed(conversation: Conversation) -> list[ItemView]:
    """The items of a conversation, each as `StandardData`; without items, one view of the whole."""
    # The schema is a Pydantic model: without it, Pydantic is not loaded.
    from convoscope.views.standard_data.canonical import standard_data_of

    cases = [
        Case(conversation, Subject("item", item.id, position), item) for position, item in enumerate(conversation.items)
    ] or [Case(conversation, WHOLE)]
    return [ItemView(*pair) for pair in zip(cases, standard_data_of(conversation), strict=True)]


def each_item(function: Callable[..., Any], conversation: Conversation) -> Iterator[Observation]:
    """What a function of an item gives, item by item. An item that breaks it does not keep the others from a score."""
    for case, data in viewed(conversation):
        try:
            observations = _all(case.subject, awaited(function(data)))
        except (Exception, SystemExit) as error:  # whatever a metric raises is its result
            observations = [failed(case.subject, "metric_raised", error_text(error))]
        yield from observations


async def each_item_awaited(function: Callable[..., Any], conversation: Conversation) -> AsyncIterator[Observation]:
    """The same of a function that waits."""
    for case, data in viewed(conversation):
        try:
            observations = _all(case.subject, await coming(function(data)))
        except (Exception, SystemExit) as error:  # whatever a metric raises is its result
            observations = [failed(case.subject, "metric_raised", error_text(error))]
        for observation in observations:
            yield observation


def _all(subject: Subject, given: Any) -> list[Observation]:
    return list(_observations(subject, given)) or [not_applicable(subject, NO_VALUE)]


def _observations(subject: Subject, given: Any) -> Iterator[Observation]:
    """A score of this item, whatever the function took it for."""
    if getattr(given, "ndim", None) == 0:
        given = given.item()  # a number, or a truth value, as NumPy has it
    if given is None:
        yield not_applicable(subject, NO_VALUE)
    elif isinstance(given, Observation):
        yield msgspec.structs.replace(given, subject=subject)
    elif isinstance(given, Real):
        yield measured(subject, float(given))
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | dict):
        for observation in given:
            if not isinstance(observation, Observation):
                raise TypeError(f"gave {observation!r} among its scores: yield measured(item, value)")
            yield msgspec.structs.replace(observation, subject=subject)
    else:
        raise TypeError(f"gave {given!r}, not a score: return a number, None, or measured(item, value)")


def error_text(error: BaseException) -> str:
    """What a score says of the exception that caused it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ is broken
        return type(error).__name__


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
    # Only what waits needs it.
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coming(result))
    # Called from inside a loop, as notebooks do: one loop cannot wait inside another.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coming(result)).result()


_THERE = frozenset({GeneratorType, list, tuple, Observation})
"""What metrics mostly give: there is nothing to wait for."""
