"""How fast and how much a judge is asked: concurrency that adapts, retries, a budget that is kept, prices."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import tomllib
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeVar

from convoscope.errors import UsageError
from convoscope.judging.backends import BudgetSpent, JudgeFailed

Answer = TypeVar("Answer")

MOST_TRIES = 6
LONGEST_WAIT = 60.0
"""Seconds between two tries, whatever a server asks for."""
FAILURES_IN_A_ROW = 12
"""Questions that fail one after the other before the judge counts as down."""


class Throttle:
    """Lets some questions through at a time: more while all goes well, half as many when a server says stop."""

    def __init__(self, most: int, start: int = 8) -> None:
        self._most = max(1, most)
        self._allowed = float(min(start, self._most))
        self._is_starting = True
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        while self._in_flight >= int(self._allowed):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()
                raise
        self._in_flight += 1

    async def __aexit__(self, *error: object) -> None:
        self._in_flight -= 1
        self._wake()

    def succeeded(self) -> None:
        """Twice as fast in each round at first, later one more in each round."""
        gain = 1.0 if self._is_starting else 1.0 / self._allowed
        self._allowed = min(self._most, self._allowed + gain)
        self._wake()

    def throttled(self) -> None:
        self._is_starting = False
        self._allowed = max(1.0, self._allowed / 2)

    def _wake(self) -> None:
        free = int(self._allowed) - self._in_flight
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class Retries:
    """Asks again after a failure that may pass; gives up on a judge that is down."""

    def __init__(self, throttle: Throttle, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._throttle = throttle
        self._sleep = sleep
        self._failures = 0
        self._down: JudgeFailed | None = None

    async def ask(self, question: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer; raises the last failure."""
        for attempt in range(MOST_TRIES):
            if self._down is not None:
                raise self._down
            try:
                async with self._throttle:
                    answer = await question()
            except JudgeFailed as failure:
                if failure.throttled:
                    self._throttle.throttled()
                if failure.is_final or attempt + 1 == MOST_TRIES:
                    self._count(failure)
                    raise
                # Full jitter: those that failed together do not come back together.
                wait = random.uniform(0.5, 1.0) * min(LONGEST_WAIT, 0.5 * 2**attempt)
                await self._sleep(min(LONGEST_WAIT, max(wait, failure.wait or 0.0)))
            else:
                self._failures = 0
                self._throttle.succeeded()
                return answer
        raise AssertionError("unreachable")

    def _count(self, failure: JudgeFailed) -> None:
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            self._down = JudgeFailed(f"{failure.message}; the judge is not asked any more", is_final=True)


class Price(NamedTuple):
    """US dollars for a million tokens."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


@cache
def price_list() -> tuple[str, dict[str, Price]]:
    """The date of the prices, and the price of each model, by `provider/model`."""
    content = tomllib.loads(files("convoscope.judging").joinpath("prices.toml").read_text())
    return content["date"], {name: Price(*price) for name, price in content["prices"].items()}


def price_of(name: str) -> Price | None:
    """The price of a model, also of a dated release of it; None where it is unknown."""
    _, prices = price_list()
    known = [model for model in prices if name == model or name.startswith(f"{model}-20")]
    return prices[max(known, key=len)] if known else None


IN_MEMORY = ":memory:"


class Budget:
    """Questions and dollars that all processes of a run may spend together, counted in a file beside the run."""

    def __init__(self, file: Path, questions: int | None, dollars: float | None) -> None:
        self._file = file
        self._limits = (questions, dollars)
        self._connection: sqlite3.Connection | None = None

    def reserve(self, dollars: float) -> None:
        """Set money aside for one question. Raises `BudgetSpent`."""
        most_questions, most_dollars = self._limits
        row = self._open().execute(
            "UPDATE spent SET questions = questions + 1, dollars = dollars + :cost "
            "WHERE (:questions IS NULL OR questions + 1 <= :questions) "
            "AND (:dollars IS NULL OR dollars + :cost <= :dollars + 1e-9) RETURNING 1",
            {"cost": dollars, "questions": most_questions, "dollars": most_dollars},
        )
        if row.fetchone() is None:
            raise BudgetSpent("the budget of this run is spent", is_final=True)

    def charge(self, reserved: float, spent: float) -> None:
        """A question cost this, instead of what was set aside for it."""
        self._open().execute("UPDATE spent SET dollars = dollars + ?", (spent - reserved,))

    def spent(self) -> tuple[int, float]:
        questions, dollars = self._open().execute("SELECT questions, dollars FROM spent").fetchone()
        return questions, dollars

    def set_spent(self, questions: int, dollars: float) -> None:
        """What another counter of the same run came to."""
        self._open().execute("UPDATE spent SET questions = ?, dollars = ?", (questions, dollars))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = sqlite3.connect(self._file, timeout=30, isolation_level=None, check_same_thread=False)
            if str(self._file) != IN_MEMORY:
                os.chmod(self._file, 0o600)
            connection.execute("CREATE TABLE IF NOT EXISTS spent (questions INTEGER, dollars REAL)")
            connection.execute("INSERT INTO spent SELECT 0, 0.0 WHERE NOT EXISTS (SELECT 1 FROM spent)")
            self._connection = connection
        return self._connection


class SharedBudget:
    """A budget that another process counts, which may be on another machine."""

    def __init__(self, ask: Callable[[str, float], object]) -> None:
        self._ask = ask

    def reserve(self, dollars: float) -> None:
        """Set money aside for one question. Raises `BudgetSpent`. Where nothing answers, no question is asked."""
        try:
            is_allowed = self._ask("reserve", dollars)
        except Exception as error:  # whatever the connection of a cluster raises
            name = type(error).__name__
            raise JudgeFailed(f"the budget of this run cannot be reached: {name}", is_final=True) from None
        if not is_allowed:
            raise BudgetSpent("the budget of this run is spent", is_final=True)

    def charge(self, reserved: float, spent: float) -> None:
        """A question cost this. What cannot be said stays set aside: the budget is kept all the more."""
        with suppress(Exception):
            self._ask("charge", spent - reserved)

    def close(self) -> None:
        """The engine closes what it opened."""


_shared: dict[str, SharedBudget] = {}


def share_budget(ledger: str, budget: SharedBudget) -> None:
    """From here on, judges of this process that count in a file of this name count elsewhere."""
    _shared[ledger] = budget


def budget_for(ledger: str, questions: int | None, dollars: float | None) -> Budget | SharedBudget:
    """The budget of a run, by the name of its file; in memory where it has none."""
    return _shared.get(ledger) or Budget(Path(ledger or IN_MEMORY), questions, dollars)


def check_budget(dollars: float | None, names: list[str]) -> None:
    """A budget in money needs the price of each judge."""
    if dollars is not None and (unknown := [name for name in names if price_of(name) is None]):
        raise UsageError(
            f"the price of {unknown[0] or 'a judge at an address of its own'} is unknown, so --budget cannot be kept",
            hint="--max-questions limits the number of questions",
        )
