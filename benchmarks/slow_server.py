"""A web server that answers every question after 50 ms, in a process of its own, and remembers who asked.

`python -m benchmarks.slow_server` prints its port. `POST /ask` gets an answer late, and so does a question in OpenAI's
wire format, `POST /v1/chat/completions`. `GET /asked` gets all questions at once.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

DELAY = 0.05
_ANSWER = {"role": "assistant", "content": '{"reasoning": "It is fine.", "score": 7}'}
_COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "slow",
    "choices": [{"index": 0, "finish_reason": "stop", "message": _ANSWER}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
}
_ANSWERS = {True: json.dumps(_COMPLETION).encode(), False: b'{"score": 7}'}
"""In OpenAI's wire format, or not."""


class _Server(asyncio.Protocol):
    """One connection; questions follow each other on it."""

    questions: list[str] = []
    in_flight = 0
    most = 0
    first = last = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.held = b""

    def data_received(self, data: bytes) -> None:
        self.held += data
        head, found, rest = self.held.partition(b"\r\n\r\n")
        if not found:
            return
        if head.startswith(b"GET /asked"):
            told = {"questions": _Server.questions, "most": _Server.most, "seconds": _Server.last - _Server.first}
            self.answer(json.dumps(told).encode())
            return
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        self.held = b""
        self.is_completion = head.startswith(b"POST /v1/chat/completions ")
        _Server.first = _Server.first or time.perf_counter()
        _Server.questions.append(rest.decode())
        _Server.in_flight += 1
        _Server.most = max(_Server.most, _Server.in_flight)
        asyncio.get_running_loop().call_later(DELAY, self.answer_late)

    def answer_late(self) -> None:
        _Server.in_flight -= 1
        _Server.last = time.perf_counter()
        self.answer(_ANSWERS[self.is_completion])

    def answer(self, body: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Asked(NamedTuple):
    """What a server was asked."""

    questions: list[str]
    most: int
    """Questions in flight at the same time, at most."""
    seconds: float
    """From the first question to the last answer."""


class SlowServer:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def asked(self) -> Asked:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/asked") as answer:
            return Asked(**json.load(answer))


@contextmanager
def slow_server() -> Iterator[SlowServer]:
    """A server of its own, ended afterwards."""
    command = [sys.executable, "-m", "benchmarks.slow_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield SlowServer(int(process.stdout.readline()))
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_serve())
