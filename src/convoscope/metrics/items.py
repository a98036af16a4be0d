"""Metrics that look at one evaluation item at a time: what they give for each becomes a score of that item."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.async_metrics import awaited, coming
from convoscope.scores.observation import Observation, failed, measured, not_applicable
from convoscope.views.items import WHOLE, Case, Subject

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData

NO_VALUE = "no_value"


class ItemView(NamedTuple):
    """One case, and the item as the published schema has it."""

    case: Case
    data: StandardData


@cached_on_argument
def viewed(conversation: Conversation) -> list[ItemView]:
    """The items of a conversation, each as `StandardData`; without items, one view of the whole."""
    # The schema is a Pydantic model: whoever does not ask for it need not wait for Pydantic.
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
    """What a score says of the exception that it stands for."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ is broken
        return type(error).__name__


__all__ = ["NO_VALUE", "ItemView", "each_item", "each_item_awaited", "error_text", "viewed"]
