"""HTTP exchanges with a model, recorded by VCR (YAML or JSON) or by a browser (HAR)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from convoscope.ingest.kits.exchanges import (
    body_of,
    is_model_request,
    request_messages,
    response_messages,
    tools_in,
    usage_in,
)
from convoscope.ingest.kits.shapes import signature
from convoscope.ingest.kits.spans import LoggedSpan, seconds
from convoscope.ingest.kits.streams import is_stream, stream_events
from convoscope.ingest.kits.traces import KNOWN, Logged, LoggedCall, TraceReader
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text

_OTHER = re.compile(
    r"(/embeddings|/moderations|/rerank|/count_tokens|/images/\w+|/speech|:\w*[eE]mbed\w*|:countTokens)\b"
)
"""Addresses where a model is asked for something else than an answer: vectors, counts, pictures."""


_TALK = re.compile(r"(/completions|/responses|/messages|/converse(-stream)?|:\w*[gG]enerateContent)\b")
"""Addresses where a model is asked for an answer, though the request does not name the model."""
_MODEL = re.compile(r"/(?:models|model|deployments)/([^/:?%]+)")


class HttpExchangesReader(TraceReader):
    """Recordings whose requests hold messages for a model."""

    name = "http-exchanges"
    title = "HTTP exchanges with a model"
    known = KNOWN | {"headers"}
    confidence = 0.93
    joins_files = False
    joins_histories = False
    no_calls = "its requests ask a model for vectors, counts or pictures, not for an answer"

    def knows(self, span: LoggedSpan) -> bool:
        return "asked" in span.attributes or "other" in span.attributes

    def spans(self, value: Any) -> Iterable[LoggedSpan]:
        for number, exchange in enumerate(_exchanges(value)):
            request, response = as_object(exchange.get("request")), as_object(exchange.get("response"))
            asked, answer = _body(request, "body", "postData"), _body(response, "body", "content")
            address = as_text(request.get("uri", request.get("url")))
            if _OTHER.search(address) and "model" in f"{address}{list(as_object(asked))}":
                yield LoggedSpan(id=str(number), name=address, attributes={"other": exchange})
                continue
            if not is_model_request(asked) and not (_TALK.search(address) and request_messages(asked)):
                continue
            started = seconds(exchange, ("startedDateTime", "recorded_at"))
            took = as_number(exchange.get("time"))
            status = as_object(response.get("status")).get("code", response.get("status"))
            refused = f"HTTP status {status}" if isinstance(status, int) and status >= 400 else ""
            failed = ": ".join(filter(None, (refused, _failure(answer))))
            yield LoggedSpan(
                id=str(number),
                name=address,
                start=started,
                end=None if started is None or took is None else started + took / 1000,
                attributes={"asked": asked, "answer": answer},
                error=failed,
            )

    def spans_of(self, group: RecordGroup) -> list[LoggedSpan]:
        spans = [span for record in group.records for span in self.spans(record.value)]
        chats = [span for span in spans if "asked" in span.attributes]
        for span, number in zip(chats, _chains(chats), strict=True):
            span.trace = f"{group.name}#{number}" if number > 1 else ""
        for span in spans:
            span.trace = f"{group.name}#other" if "other" in span.attributes else span.trace
        return spans

    def logged(self, span: LoggedSpan) -> Logged | None:
        if "asked" not in span.attributes:
            return None
        asked, answer = as_object(span.attributes["asked"]), span.attributes["answer"]
        return LoggedCall(
            inputs=request_messages(asked),
            outputs=[] if span.error else response_messages(answer),
            model=as_text(asked.get("model")) or next(iter(_MODEL.findall(span.name)), ""),
            tools=tools_in(asked),
            usage=usage_in(answer),
        )


def _body(message: JsonObject, *names: str) -> Any:
    """The body of a request or response; some recorders keep it as it was parsed."""
    return message["parsed_body"] if "parsed_body" in message else body_of(message.get(names[0], message.get(names[1])))


def _failure(answer: Any) -> str:
    """Why there is no answer, where the service says it in the answer."""
    error = as_object(answer).get("error")
    blocked = as_object(as_object(answer).get("promptFeedback")).get("blockReason")
    return as_text(as_object(error).get("message")) or as_text(error) or as_text(blocked)


def _exchanges(value: Any) -> Iterator[JsonObject]:
    record = as_object(value)
    log = as_object(record.get("log"))
    listed = record.get("interactions", record.get("http_interactions", log.get("entries")))
    yield from map(as_object, as_list(listed))


def _chains(spans: Iterable[LoggedSpan]) -> Iterator[int]:
    """Which conversation each exchange is of: the one whose latest answer it repeats, or most messages; else a new one.

    A request that repeats the first words and no answer starts over, unless nothing was answered yet.
    """
    messages: list[set[str]] = []
    latest: list[str] = []
    by_response: dict[str, int] = {}
    """By the id of a response, its conversation: the Responses API names the one that a request goes on from."""
    for span in spans:
        asked = [message for message in request_messages(span.attributes["asked"]) if message["role"] != "system"]
        answer = [] if span.error else list(map(signature, response_messages(span.attributes["answer"])))
        sent = list(map(signature, asked))
        starts = all(message["role"] == "user" for message in asked)
        fits = [
            (latest[number] in sent, len(words.intersection(sent)), number)
            for number, words in enumerate(messages)
            if sent and sent[0] in words and not (starts and latest[number] and words.issuperset(sent))
        ]
        before = by_response.get(as_text(as_object(span.attributes["asked"]).get("previous_response_id")))
        number = before if before is not None else max(fits)[2] if fits else len(messages)
        by_response |= dict.fromkeys(_response_ids(span.attributes["answer"]), number)
        if number == len(messages):
            messages.append(set())
            latest.append("")
        messages[number].update(sent, answer)
        latest[number] = answer[-1] if answer else latest[number]
        yield number + 1


def _response_ids(answer: Any) -> list[str]:
    events = [as_object(event) for event in stream_events(answer)] if is_stream(answer) else [as_object(answer)]
    return [id for event in events if (id := as_text((as_object(event.get("response")) or event).get("id")))]


READER = HttpExchangesReader()
