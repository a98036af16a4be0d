"""The event loop in which the metrics of one process wait. Only what waits imports it."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

Answer = TypeVar("Answer")

_SWITCH_SECONDS = 0.0001
"""How long the loop's thread stands in line behind one that computes. It has little to do each time, but often."""

_PATIENCE = 5.0
"""Seconds to wait for those that are given up."""


class EventLoop:
    """Runs coroutines side by side, at most `max_concurrency` of them; the others stand in line, in order."""

    def __init__(self, max_concurrency: int) -> None:
        self._max_concurrency = max_concurrency
        self._line: deque[tuple[Future[Any], Callable[[], Coroutine[Any, Any, Any]]]] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._is_called = False
        """The loop was asked to look at the line, and has not done so yet."""
        self._switch_before = sys.getswitchinterval()
        sys.setswitchinterval(min(_SWITCH_SECONDS, self._switch_before))
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="convoscope-event-loop", daemon=True)
        self._thread.start()

    def submit(self, start: Callable[[], Coroutine[Any, Any, Answer]]) -> Future[Answer]:
        """What a coroutine will give; it is started when its turn has come."""
        answer: Future[Answer] = Future()
        self._line.append((answer, start))
        # Where as many run as may, the next that ends looks at the line: the loop need not be woken.
        if not self._is_called and len(self._running) < self._max_concurrency:
            self._is_called = True
            self._loop.call_soon_threadsafe(self._look)
        return answer

    def run(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        """What a coroutine gives, at once and waited for."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """Give up what is not done yet, and end the thread; one that a metric blocks is left behind."""
        sys.setswitchinterval(self._switch_before)
        try:
            asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result(_PATIENCE)
        except TimeoutError:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _look(self) -> None:
        self._is_called = False
        self._start()

    def _start(self) -> None:
        while self._line and len(self._running) < self._max_concurrency:
            answer, start = self._line.popleft()
            self._running.add(self._loop.create_task(self._answer(answer, start)))

    async def _answer(self, answer: Future[Any], start: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            answer.set_result(await start())
        except BaseException as error:  # raised where the answer is waited for
            answer.set_exception(error)
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._running.discard(task)
            self._start()

    async def _cancel(self) -> None:
        self._line.clear()
        tasks = [*self._running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
