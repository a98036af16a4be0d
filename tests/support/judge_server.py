"""A judge over real HTTP on loopback, as hostile as a test wants it: OpenAI's and Anthropic's wire formats."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from convoscope.scoring.forecast import least

Answering = Callable[[str, dict[str, Any]], Any]


def best(prompt: str, schema: dict[str, Any]) -> Any:
    """The best rating of everything that is asked: the least value that fits, with the turns filled in."""
    answer = least(schema)
    if "turns" in answer and "entities" not in json.dumps(schema):
        line = next(line for line in prompt.splitlines() if "Rate every turn" in line)
        numbers = [int(number) for number in line.rpartition(":")[2].split(".")[0].split(",")]
        answer["turns"] = [{**least(schema["properties"]["turns"]["items"]), "turn_id": number} for number in numbers]
    return answer


class JudgeServer:
    """Counts what it is asked, keeps what came over the wire, and answers as it is told to."""

    def __init__(self) -> None:
        self.answer: Answering = best
        self.chances: Callable[[str], dict[str, float] | None] = lambda prompt: {"Yes": 0.1, "No": 0.9}
        """How likely each first word is, where log-probabilities are asked for; None: the server gives none."""
        self.prompts: list[str] = []
        self.waves: list[bytes] = []
        """The files that came as `input_audio`, one for each question that had a sound."""
        self.bodies: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.failures: list[Callable[[web.Request], Any]] = []
        """What happens to the next requests, instead of an answer."""
        self.always: Callable[[web.Request], Any] | None = None
        self.seconds = 0.0
        self.in_flight = 0
        self.most_in_flight = 0
        self.port = 0

    @property
    def openai(self) -> str:
        return f"openai:tiny@http://127.0.0.1:{self.port}/v1"

    @property
    def listening(self) -> str:
        """The same with a name that says that it takes sound."""
        return f"openai:tiny-audio@http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic(self) -> str:
        return f"anthropic:tiny@http://127.0.0.1:{self.port}"

    async def _openai(self, request: web.Request) -> web.StreamResponse:
        body = await self._read(request)
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        if (failed := await self._failed(request)) is not None:
            return failed
        prompt = _text_of(body)
        if body.get("logprobs"):
            message = _first_word(self.chances(prompt))
        else:
            text = self._text(prompt, schema)
            message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [message]}
        return web.json_response({**whole, "usage": usage})

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        body = await self._read(request)
        if (failed := await self._failed(request)) is not None:
            return failed
        text = self._text(body["messages"][0]["content"], body["tools"][0]["input_schema"])
        block = {"type": "tool_use", "id": "1", "name": "answer", "input": json.loads(text)}
        usage = {"input_tokens": 100, "output_tokens": 20}
        whole = {"id": "1", "type": "message", "role": "assistant", "model": "tiny", "stop_reason": "tool_use"}
        return web.json_response({**whole, "stop_sequence": None, "content": [block], "usage": usage})

    async def _read(self, request: web.Request) -> Any:
        raw = await request.text()
        self.bodies.append(raw)
        self.headers.append(dict(request.headers))
        body = json.loads(raw)
        self.prompts.append(_text_of(body))
        parts = body["messages"][0]["content"]
        for part in parts if isinstance(parts, list) else ():
            if part["type"] == "input_audio":
                assert part["input_audio"]["format"] == "wav"
                self.waves.append(base64.b64decode(part["input_audio"]["data"], validate=True))
        return body

    async def _failed(self, request: web.Request) -> web.StreamResponse | None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.seconds:
                await asyncio.sleep(self.seconds)
            fail = self.failures.pop(0) if self.failures else self.always
            if fail is None:
                return None
            result = fail(request)
            return await result if asyncio.iscoroutine(result) else result
        finally:
            self.in_flight -= 1

    def _text(self, prompt: str, schema: dict[str, Any]) -> str:
        answer = self.answer(prompt, schema)
        return answer if isinstance(answer, str) else json.dumps(answer)


def _text_of(body: dict[str, Any]) -> str:
    """The words of a question, also of one whose message has several parts."""
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] == "text")


def _first_word(chances: dict[str, float] | None) -> dict[str, Any]:
    """One word as OpenAI's wire has it, with the likelihood of others."""
    word = next(iter(chances or {"yes": 1.0}))
    logprobs = None
    if chances is not None:
        words = [{"token": token, "logprob": math.log(chance), "bytes": None} for token, chance in chances.items()]
        logprobs = {"content": [{**words[0], "top_logprobs": words}], "refusal": None}
    message = {"role": "assistant", "content": word}
    return {"index": 0, "finish_reason": "length", "message": message, "logprobs": logprobs}


def status(code: int, **headers: str) -> Callable[[web.Request], web.Response]:
    """An answer with this HTTP status."""
    return lambda _: web.json_response({"error": {"message": "no"}}, status=code, headers=headers)


def empty(_: web.Request) -> web.Response:
    return web.Response(text="", content_type="application/json")


def not_json(_: web.Request) -> web.Response:
    return web.Response(text="<html>busy</html>", content_type="text/html")


async def cut(request: web.Request) -> web.StreamResponse:
    """Half an answer, then the line is dead."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "500"})
    await response.prepare(request)
    await response.write(b'{"id": "1", "choices": [')
    assert request.transport is not None
    request.transport.abort()
    return response


@contextmanager
def judge_server() -> Iterator[JudgeServer]:
    """A server that listens on loopback until the block ends."""
    server = JudgeServer()
    loop = asyncio.new_event_loop()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", server._openai)
    app.router.add_post("/v1/messages", server._anthropic)
    runner = web.AppRunner(app)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
