"""A metric that asks a judge over HTTP, and the judge: what a user would name with `--metrics-from`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any

import convoscope
from convoscope import Conversation, Judge
from convoscope.metrics import Observation, measured
from convoscope.resources import Verdict


class _Connection(asyncio.Protocol):
    """A connection that stays open, with one question at a time on it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.held = b""
        self.answer: asyncio.Future[bytes] | None = None

    def ask(self, body: bytes) -> asyncio.Future[bytes]:
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(b"POST /ask HTTP/1.1\r\nHost: judge\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        return self.answer

    def data_received(self, data: bytes) -> None:
        self.held += data
        head, _, body = self.held.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if self.answer is not None and length and len(body) >= int(length):
            self.held = b""
            if not self.answer.done():  # whoever asked may have given up
                self.answer.set_result(body)

    def connection_lost(self, error: Exception | None) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error or ConnectionError("the judge hung up"))


class HttpJudge(Judge):
    """Keeps connections open for those who ask."""

    identity = "local/slow@1"

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[_Connection] = []

    async def ask(self, prompt: str, schema: Mapping[str, Any]) -> Verdict:
        del schema
        connection = self._free.pop() if self._free else await self._connect()
        answer = json.loads(await connection.ask(prompt.encode()))
        self._free.append(connection)
        return Verdict(answer, self.identity)

    async def _connect(self) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(_Connection, "127.0.0.1", self._port)
        return connection

    async def aclose(self) -> None:
        for connection in self._free:
            connection.transport.close()


@convoscope.resource
def judge() -> Judge:
    """Found by the port that the environment names."""
    return HttpJudge(int(os.environ["SLOW_SERVER"]))


@convoscope.metric("asking.politeness", version=1, observes="conversation", unit="of 10", better="higher")
async def politeness(conversation: Conversation, judge: Judge) -> Observation:
    """How polite is the agent, in the eyes of a judge?"""
    verdict = await judge.ask(conversation.id, {})
    return measured(conversation, verdict.answer["score"], judge=verdict.judge)
