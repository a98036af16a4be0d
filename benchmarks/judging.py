"""What the instrument adds to a question: against the bare SDK, a server that answers after 50 ms, 200 in flight."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.slow_server import DELAY, slow_server
from convoscope.judging.instrument import Instrument, JudgeSettings

AT_ONCE = 200
AIM = 0.75
_UNASKED = 9
"""A port that nothing is sent to: all answers are in the cache."""
_TEXT = "[turn 1] user: Where is it? [turn 1] agent: On its way, I think.\n" * 20
_SCHEMA = {
    "type": "object",
    "required": ["reasoning", "score"],
    "properties": {"reasoning": {"type": "string"}, "score": {"type": "integer", "minimum": 1, "maximum": 10}},
}
Ask = Callable[[str], Awaitable[Any]]


class Pace(NamedTuple):
    """How fast questions were answered."""

    rate: float
    """Questions a second."""
    cpu: float
    """Seconds of processor time of this process for one question."""
    most: int
    """Questions in flight."""


def run(folder: Path, questions: int) -> None:
    """The bare SDK and the instrument in turns, twice; then the same questions again from the cache."""
    os.environ["CONVOSCOPE_CACHE"] = str(folder / "judge-cache")
    print(
        f"{questions:,} questions of {len(_TEXT):,} characters to a server that answers after {DELAY * 1000:.0f} ms, "
        f"{AT_ONCE} in flight; limit {AT_ONCE / DELAY:,.0f} a second"
    )
    for round_ in range(2):
        bare = _asked(_bare, questions, f"bare {round_}")
        plain = _asked(_instrument(use_cache=False), questions, f"plain {round_}")
        kept = _asked(_instrument(use_cache=True), questions, f"kept {round_}")
        print(
            f"  {'the bare SDK:':23} {bare.rate:6,.0f} a second, {bare.cpu * 1e3:.2f} ms of CPU, {bare.most} in flight"
        )
        _print("the instrument:", plain, bare)
        _print("keeping its answers:", kept, bare)
    began = time.perf_counter(), time.process_time()
    asyncio.run(_all(_instrument(use_cache=True), questions, "kept 0", _UNASKED))
    wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    print(f"  the same from the cache: {questions / wall:,.0f} a second, {cpu / questions * 1e3:.2f} ms of CPU\n")


def _print(name: str, pace: Pace, bare: Pace) -> None:
    share = pace.rate / bare.rate
    print(
        f"  {name:23} {pace.rate:6,.0f} a second, {pace.cpu * 1e3:.2f} ms of CPU, {pace.most} in flight: "
        f"{share:.0%} of the bare SDK (aim {AIM:.0%}), {(pace.cpu - bare.cpu) * 1e3:+.2f} ms a question; "
        f"by CPU time {bare.cpu / pace.cpu:.0%}"
    )


def _asked(client: Callable[[int], tuple[Ask, Any]], questions: int, name: str) -> Pace:
    with slow_server() as server:
        cpu = asyncio.run(_all(client, questions, name, server.port))
        asked = server.asked()
    assert len(asked.questions) == questions
    return Pace(questions / asked.seconds, cpu / questions, asked.most)


async def _all(client: Callable[[int], tuple[Ask, Any]], questions: int, name: str, port: int) -> float:
    """Ask everything; the processor time that it took."""
    ask, close = client(port)
    numbers = iter(range(questions))

    async def some(numbers: Iterator[int]) -> None:
        for number in numbers:
            await ask(f"{name} {number}\n{_TEXT}")

    began = time.process_time()
    await asyncio.gather(*(some(numbers) for _ in range(AT_ONCE)))
    took = time.process_time() - began
    await close()
    return took


def _bare(port: int) -> tuple[Ask, Any]:
    """The official SDK as its makers give it, with the same transport."""
    import openai

    client = openai.AsyncOpenAI(
        api_key="none",
        base_url=f"http://127.0.0.1:{port}/v1",
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(),
    )
    shape: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": _SCHEMA}}

    async def ask(prompt: str) -> Any:
        return await client.chat.completions.create(
            model="slow",
            messages=[{"role": "user", "content": prompt}],
            temperature=0.0,
            max_completion_tokens=4096,
            response_format=shape,
        )

    return ask, client.close


def _instrument(*, use_cache: bool) -> Callable[[int], tuple[Ask, Any]]:
    def client(port: int) -> tuple[Ask, Any]:
        judge = Instrument(f"openai:slow@http://127.0.0.1:{port}/v1", JudgeSettings(use_cache=use_cache))

        async def ask(prompt: str) -> Any:
            return await judge.ask(prompt, _SCHEMA)

        return ask, judge.aclose

    return client
