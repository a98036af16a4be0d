"""LangSmith runs: batches of `post` and `patch`, which are two halves of one run, and lists of whole runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from convoscope.conversation import Label
from convoscope.ingest.kits.exchanges import TOKENS, numbers_in
from convoscope.ingest.kits.payloads import answered_messages, given_messages, tools_given
from convoscope.ingest.kits.shapes import embedded
from convoscope.ingest.kits.spans import LoggedSpan, seconds
from convoscope.ingest.kits.traces import (
    Logged,
    LoggedCall,
    Lookup,
    ToolRun,
    TraceReader,
    chunks_of,
    with_result_message,
)
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled

_OBJECTS = ("inputs", "outputs", "extra", "feedback_stats", "events")
"""Fields that a bulk export writes as JSON in a text."""
_KINDS = frozenset({"llm", "chain", "tool", "retriever", "prompt", "parser", "embedding"})


class LangSmithReader(TraceReader):
    """Runs with a run type."""

    name = "langsmith"
    title = "LangSmith"
    confidence = 0.95
    sessions = ("session_id", "thread_id", "conversation_id")

    def knows(self, span: LoggedSpan) -> bool:
        return span.text("run_type") in _KINDS

    def spans(self, value: Any) -> Iterable[LoggedSpan]:
        return _joined(_runs(value))

    def spans_of(self, group: RecordGroup) -> list[LoggedSpan]:
        # The two halves of a run may be in two records.
        return list(_joined(span.attributes for record in group.records for span in self._read(record.value)))

    def whole(self, span: LoggedSpan) -> tuple[Any, Any]:
        return span.attributes.get("inputs"), span.attributes.get("outputs")

    def logged(self, span: LoggedSpan) -> Logged | None:
        kind = span.text("run_type")
        inputs, outputs = as_object(span.attributes.get("inputs")), as_object(span.attributes.get("outputs"))
        if kind == "tool":
            given, result = _inner(inputs, "input"), _inner(outputs, "output") or None
            return with_result_message(ToolRun(name=span.name, arguments=given, result=result, error=span.error))
        if kind == "retriever":
            query = as_text(inputs.get("query")) or None
            return Lookup(query=query, chunks=chunks_of(outputs.get("documents", outputs.get("output"))))
        if kind != "llm":
            return None
        return LoggedCall(
            inputs=given_messages(inputs),
            outputs=answered_messages(outputs),
            model=as_text(_metadata(span).get("ls_model_name")) or as_text(inputs.get("model")),
            tools=tools_given(inputs) or tools_given(as_object(span.attributes.get("extra")).get("invocation_params")),
            usage=_usage(outputs, span),
        )

    def labels(self, spans: Sequence[LoggedSpan]) -> Iterator[Label]:
        for span in spans:
            for name, held in as_object(span.attributes.get("feedback_stats")).items():
                value = as_number(as_object(held).get("avg"))
                words = list(as_object(as_object(held).get("values")))
                verdict = value if value is not None else words[0] if len(words) == 1 else None
                if verdict is not None and not span.parent:
                    yield Label(name=name, value=verdict, rater="langsmith", rater_kind="external")


def _runs(value: Any) -> Iterator[JsonObject]:
    record = as_object(value)
    if isinstance(value, list):
        for entry in value:
            yield from _runs(entry)
    elif "post" in record or "patch" in record:
        for name in ("post", "patch"):
            yield from map(as_object, as_list(record.get(name)))
    elif isinstance(record.get("runs"), list):
        yield from map(as_object, record["runs"])
    elif "run_type" in record or "dotted_order" in record:
        yield {**record, "child_runs": None}
        yield from _runs(as_list(record.get("child_runs")))


def _joined(runs: Iterable[JsonObject]) -> Iterator[LoggedSpan]:
    """Runs, with what came later put over what came first; a patch without an id has the same place in the order."""
    whole: dict[str, JsonObject] = {}
    for row in runs:
        run = {name: embedded(value) if name in _OBJECTS else value for name, value in row.items()}
        key = as_text(run.get("dotted_order")) or as_text(run.get("id"))
        whole[key] = whole.get(key, {}) | filled(run)
    for run in whole.values():
        metadata = as_object(as_object(run.get("extra")).get("metadata"))
        threads = {name: metadata.get(name) for name in ("session_id", "thread_id", "conversation_id")}
        order = as_text(run.get("dotted_order"))
        yield LoggedSpan(
            trace=as_text(run.get("trace_id")) or as_text(run.get("id")),
            id=as_text(run.get("id")) or order.rpartition("Z")[2],
            parent=as_text(run.get("parent_run_id")),
            name=as_text(run.get("name")),
            start=seconds(run, ("start_time",)),
            end=seconds(run, ("end_time",)),
            attributes={**run, **threads},
            error=as_text(run.get("error")),
        )


def _metadata(span: LoggedSpan) -> JsonObject:
    return as_object(as_object(span.attributes.get("extra")).get("metadata"))


def _inner(value: JsonObject, *names: str) -> Any:
    return next((value[name] for name in names if name in value), value)


def _usage(outputs: JsonObject, span: LoggedSpan) -> JsonObject:
    """Tokens that the answer counts, else those of the run; costs, and the time to the first word."""
    generations = as_list(outputs.get("generations"))
    while generations and isinstance(generations[0], list):
        generations = generations[0]
    answer = as_object(as_object(next(iter(generations), None)).get("message")) or as_object(outputs.get("message"))
    fields = as_object(answer.get("kwargs")) or as_object(answer.get("data")) or answer
    held = (outputs.get("usage_metadata"), outputs.get("usage"), fields.get("usage_metadata"), fields.get("usage"))
    total = as_object(outputs.get("llm_output")).get("token_usage")
    counted = (numbers_in(as_object(entry), TOKENS) for entry in (*held, total))
    usage = next(filter(None, counted), {}) or numbers_in(span.attributes, TOKENS)
    first = seconds(span.attributes, ("first_token_time",))
    if first is not None and span.start is not None and first >= span.start:
        usage["ttft"] = round(first - span.start, 6)
    return usage | numbers_in(span.attributes, {"cost": ("total_cost",)})


READER = LangSmithReader()
