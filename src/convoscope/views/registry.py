"""Which views of a conversation a metric can ask for: ours, and those that others declare, by their types."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from inspect import Parameter, isroutine, signature, unwrap
from types import ModuleType
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from convoscope.conversation import Conversation
from convoscope.errors import DeclarationError

Made = TypeVar("Made")

CONVERSATION = "convoscope.conversation.model.Conversation"
ITEM = "convoscope.views.standard_data.model.StandardData"
_STATE_ROWS = "collections.abc.Sequence[convoscope.views.flow.state_rows.StateRow]"


class View(msgspec.Struct, frozen=True):
    """A type that a metric can ask for, and what makes it of a conversation."""

    type: str
    """The whole name of the type: heavy ones are known without being imported."""
    make: Callable[[Conversation], Any] | None = None
    """None where the type is more than one view of one conversation: each of its items, or many conversations."""


def view(make: Callable[[Conversation], Made]) -> Callable[[Conversation], Made]:
    """Declare a view: metrics whose first parameter has the type that this function returns are given it.

    A second function for the same type is refused, unless it is the first one loaded again.
    """
    annotation = annotation_of(make, "return")
    if not isinstance(annotation, type) and get_origin(annotation) is None:
        raise DeclarationError(
            f"the view {make.__qualname__} does not say what it returns", hint="annotate it: def mine(…) -> MyView"
        )
    name = type_name(annotation)
    registered = _VIEWS.get(name)
    if registered is not None and (registered.make is None or _home(registered.make) != _home(make)):
        raise DeclarationError(f"{short_name(name)} is a view already", hint="declare one view for each type")
    _VIEWS[name] = View(name, make)
    return make


def view_for(function: Callable[..., Any], metric: str) -> View:
    """The view that a metric's function asks for by the annotation of its first parameter.

    Without one, or with `Any`, that is the conversation itself.
    """
    first = next(iter(signature(function).parameters.values()), None)
    if first is None or first.annotation is Parameter.empty:
        return _VIEWS[CONVERSATION]
    annotation = annotation_of(function, first.name)
    if annotation in (Any, object):
        return _VIEWS[CONVERSATION]
    if isinstance(annotation, str):
        named = [view for name, view in _VIEWS.items() if short_name(name) == short_name(annotation)]
        view, shown = named[0] if len(named) == 1 else None, annotation
    else:
        name = type_name(annotation)
        view, shown = _VIEWS.get(name), short_name(name)
    if view is None:
        raise DeclarationError(
            f"{metric} asks for a {shown}, which is not a view of a conversation",
            hint=f"there is {', '.join(sorted(map(short_name, _VIEWS)))}; declare others with @convoscope.view",
        )
    return view


def annotation_of(function: Any, name: str) -> Any:
    """An annotation as the thing that it names; as text where that is imported for type checkers alone."""
    plain = function
    while isinstance(plain, partial):
        plain = plain.func
    plain = unwrap(plain if isroutine(plain) else type(plain).__call__)
    annotation = plain.__annotations__.get(name)
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, getattr(plain, "__globals__", {}))
    except Exception:  # a name that is not there at run time, or text that is no type
        return annotation.strip("'\"")


def type_name(annotation: Any) -> str:
    """The whole name of a type, also of one such as `Sequence[StateRow]`."""
    inner = get_args(annotation)
    if inner and get_origin(annotation) is not None:
        return f"{type_name(get_origin(annotation))}[{', '.join(map(type_name, inner))}]"
    return f"{annotation.__module__}.{annotation.__qualname__}" if isinstance(annotation, type) else str(annotation)


def short_name(name: str) -> str:
    """The name of a type as one writes it, without modules."""
    return re.sub(r"(?:[\w<>]+\.)+(\w+)", r"\1", name)


def _home(make: Callable[..., Any]) -> tuple[str, str]:
    return make.__module__, make.__qualname__


def is_view(kind: type) -> bool:
    """Whether things of this type are views of a whole conversation."""
    registered = _VIEWS.get(type_name(kind))
    return registered is not None and registered.make is not None


def declares_view(module: ModuleType) -> bool:
    """Whether a module declares a view."""
    return any(one.make is not None and one.make.__module__ == module.__name__ for one in _VIEWS.values())


def _metric_context(conversation: Conversation) -> Any:
    from convoscope.views.metric_context import metric_context

    return metric_context(conversation)


def _state_rows(conversation: Conversation) -> Any:
    from convoscope.views.flow.state_rows import state_rows

    return state_rows(conversation)


_VIEWS: dict[str, View] = {
    one.type: one
    for one in (
        View(CONVERSATION, lambda conversation: conversation),
        View("convoscope.views.metric_context.MetricContext", _metric_context),
        View(_STATE_ROWS, _state_rows),
        View(ITEM),
    )
}
