"""A property that is computed when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def forget(thing: Any) -> None:
    """Let go of what a thing remembers: some of it may point back to the thing, which then lives on too long."""
    thing.__dict__.clear()


__all__ = ["forget", "remembered"]
