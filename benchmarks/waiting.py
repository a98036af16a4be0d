"""Metrics that wait: questions in flight, and questions a second, against a server that answers after 50 ms."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.asking import HttpJudge
from benchmarks.slow_server import DELAY, Asked, slow_server
from convoscope.runs.make import make_run

AT_ONCE = 200
AIM = 3_000


def run(folder: Path, conversations: int) -> None:
    """Score small chats with one metric that asks, and one that computes; then ask the same and do nothing else."""
    logs = _chats(folder, conversations)
    with slow_server() as server:
        os.environ["SLOW_SERVER"] = str(server.port)
        began = time.perf_counter()
        made = make_run(
            logs,
            metrics=["asking.politeness", "conversation.turns"],
            metrics_from=[Path(__file__).with_name("asking.py")],
            out=folder / "asked",
            workers=1,
            max_concurrency=AT_ONCE,
        )
        seconds = time.perf_counter() - began
        asked = server.asked()
    assert made.summary.conversations == conversations == len(set(asked.questions)) == len(asked.questions)
    bare = _ask_alone(conversations)
    limit = AT_ONCE / DELAY
    rate, alone = conversations / asked.seconds, conversations / bare.seconds
    print(
        f"{conversations:,} chats, one question each to a server that answers after {DELAY * 1000:.0f} ms\n"
        f"  {asked.most} in flight, {rate:,.0f} questions a second (aim {AIM:,}, limit {limit:,.0f}); "
        f"{conversations / seconds:,.0f} chats a second in the whole run\n"
        f"  a bare loop that does nothing but ask: {bare.most} in flight, {alone:,.0f} a second; "
        f"we have {rate / alone:.0%} of that\n"
    )


def _chats(folder: Path, count: int) -> Path:
    messages = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "On its way, I think."}]
    path = folder / "asked.jsonl"
    with path.open("w") as stream:
        for number in range(count):
            stream.write(json.dumps({"id": f"c{number}", "messages": messages}) + "\n")
    return path


def _ask_alone(count: int) -> Asked:
    """The same questions by the same client, without us."""

    async def ask(judge: HttpJudge, questions: Iterator[int]) -> None:
        for number in questions:
            await judge.ask(f"c{number}", {})

    async def ask_all(port: int) -> None:
        judge, questions = HttpJudge(port), iter(range(count))
        await asyncio.gather(*(ask(judge, questions) for _ in range(AT_ONCE)))
        await judge.aclose()

    with slow_server() as server:
        asyncio.run(ask_all(server.port))
        return server.asked()
