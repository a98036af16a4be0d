"""Metrics that wait: questions in flight, and questions a second, against a server that answers after 50 ms."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from benchmarks.slow_server import DELAY, slow_server
from convoscope.runs.making import make_run

AT_ONCE = 200


def run(folder: Path, conversations: int) -> None:
    """Score small chats with one metric that asks, and one that computes."""
    logs = folder / "asked.jsonl"
    messages = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "On its way, I think."}]
    with logs.open("w") as stream:
        for number in range(conversations):
            stream.write(json.dumps({"id": f"c{number}", "messages": messages}) + "\n")
    with slow_server() as server:
        os.environ["SLOW_SERVER"] = str(server.port)
        began = time.perf_counter()
        made = make_run(
            logs,
            metrics=["asking.politeness", "conversation.turns"],
            metrics_from=[Path(__file__).with_name("asking.py")],
            out=folder / "asked",
            workers=1,
            at_once=AT_ONCE,
        )
        seconds = time.perf_counter() - began
        asked = server.asked()
    assert made.summary.conversations == conversations == len(set(asked.questions)) == len(asked.questions)
    limit = AT_ONCE / DELAY
    rate = conversations / asked.seconds
    print(
        f"waiting: {conversations:,} questions to a server that answers after {DELAY * 1000:.0f} ms: "
        f"{asked.most} in flight, {rate:,.0f} a second from the first question to the last answer "
        f"({rate / limit:.0%} of the {limit:,.0f} that are possible), "
        f"{conversations / seconds:,.0f} a second of the whole run\n"
    )
