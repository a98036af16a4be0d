"""What is computed when it is first asked for, and kept with the thing that it is computed of."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

if TYPE_CHECKING:
    from functools import cached_property as remembered
else:

    class remembered:  # noqa: N801 - it is used like `property`
        """Like `functools.cached_property`, which takes a lock up to Python 3.11 and costs more than what it keeps."""

        def __init__(self, compute: Any) -> None:
            self._compute = compute
            self._name = compute.__name__
            self.__doc__ = compute.__doc__

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


def cached_on_argument(compute: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
    """A function of one thing whose result is kept in that thing's `__dict__`: it is let go together with the thing."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def cached(thing: _Argument) -> _Result:
        cache = thing.__dict__
        if name in cache:
            result: _Result = cache[name]
            return result
        result = cache[name] = compute(thing)
        return result

    return cached


def forget(thing: Any) -> None:
    """Let go of what a thing remembers: some of it may point back to the thing, which then lives on too long."""
    thing.__dict__.clear()


__all__ = ["cached_on_argument", "forget", "remembered"]
