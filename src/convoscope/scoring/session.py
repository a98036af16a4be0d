"""What one process scores with: the resources that it made, and the loop in which its metrics wait."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from multiprocessing.util import Finalize
from typing import Any

from convoscope.conversation import Conversation
from convoscope.errors import InputError, UsageError
from convoscope.metrics.declaration import Metric
from convoscope.resources.registry import Resource
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import answered, say
from convoscope.scoring.event_loop import EventLoop

DEFAULT_CONCURRENCY = 200
"""Questions in flight at the same time, over all workers, unless the user says otherwise."""

Keep = Callable[[Sequence[Observation]], None]


class Session:
    """Makes resources when they are first asked for, hands them to metrics, and closes them at the end."""

    def __init__(
        self, resources: Mapping[str, Resource] | None = None, max_concurrency: int = DEFAULT_CONCURRENCY
    ) -> None:
        self._resources = resources or {}
        self.max_concurrency = max_concurrency
        self._made: dict[int, Any] = {}
        """What each resource made, by the identity of its declaration."""
        self._opened: dict[int, Any] = {}
        """And what is handed to metrics: of an asynchronous context manager, what it gives."""
        self._given: dict[str, Mapping[str, Any]] = {}
        self._end: Finalize | None = None
        self.process = os.getpid()
        self.names = frozenset(self._resources)

    def identities(self) -> dict[str, str]:
        """What each resource says that its answers depend on."""
        identities: dict[str, str] = {}
        for name, resource in self._resources.items():
            identity = getattr(self._make(resource), "identity", None)
            if not isinstance(identity, str) or not identity:
                raise UsageError(
                    f"{resource.home} has no identity",
                    hint="`identity` names what the answers depend on: provider/model@rubric-hash",
                )
            identities[name] = identity
        return identities

    def given(self, declared: Metric) -> Mapping[str, Any]:
        """The resources that a metric asks for, by parameter."""
        if not declared.resources:
            return _NOTHING
        resources = self._given.get(declared.key)
        if resources is None:
            there = {name: asked for name, asked in declared.resources.items() if asked in self._resources}
            resources = {name: self._open(self._resources[asked]) for name, asked in there.items()}
            self._given[declared.key] = resources
        return resources

    def ask(self, declared: Metric, conversation: Conversation, keep: Keep) -> Future[Sequence[Observation]]:
        """What a metric that waits will say of a conversation. What it says is kept as soon as it is there."""
        given = self.given(declared)

        async def ask() -> Sequence[Observation]:
            observations = await answered(declared, conversation, given)
            keep(observations)
            return observations

        return self._loop.submit(ask)

    def close(self) -> None:
        """End what runs, and close what was made. A session that is asked again afterwards starts afresh."""
        if self._end is not None:
            self._end.cancel()
        ours = {id(one): one.is_ours for one in self._resources.values()}
        for place, instance in self._made.items():
            if ours[place]:
                with suppress(Exception):  # what was scored is kept, whatever goes wrong now
                    self._close(place, instance)
        if "_loop" in self.__dict__:
            self._loop.close()
            del self.__dict__["_loop"]
        self._made, self._opened, self._given, self._end = {}, {}, {}, None

    @cached_property
    def _loop(self) -> EventLoop:
        self._close_at_exit()
        return EventLoop(self.max_concurrency)

    def _close_at_exit(self) -> None:
        """A worker that ends closes what it made."""
        if self._end is None:
            self._end = Finalize(None, self.close, exitpriority=10)

    def _make(self, resource: Resource) -> Any:
        if id(resource) not in self._made:
            self._close_at_exit()
            try:
                self._made[id(resource)] = resource.make()
            except InputError:  # a file that it is made of says what is wrong with it
                raise
            except (Exception, SystemExit) as error:  # whatever the user's function raises
                raise UsageError(f"{resource.home} cannot be made: {say(error)}") from None
        return self._made[id(resource)]

    def _open(self, resource: Resource) -> Any:
        place, instance = id(resource), self._make(resource)
        if place not in self._opened:
            is_opened = resource.is_ours and hasattr(instance, "__aenter__")
            self._opened[place] = self._run(instance.__aenter__(), resource) if is_opened else instance
        return self._opened[place]

    def _run(self, coroutine: Coroutine[Any, Any, Any], resource: Resource) -> Any:
        try:
            return self._loop.run(coroutine)
        except (Exception, SystemExit) as error:  # whatever the user's object raises
            raise UsageError(f"{resource.home} cannot be opened: {say(error)}") from None

    def _close(self, place: int, instance: Any) -> None:
        if hasattr(instance, "__aenter__"):
            if place in self._opened:
                self._loop.run(instance.__aexit__(None, None, None))
        elif hasattr(instance, "aclose"):
            self._loop.run(instance.aclose())
        elif hasattr(instance, "close"):
            instance.close()


_NOTHING: Mapping[str, Any] = {}
__all__ = ["DEFAULT_CONCURRENCY", "Session"]
