"""Scores of a run for the places where people look at traces: OpenTelemetry, Langfuse, Phoenix."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.errors import UsageError
from convoscope.runs.run import Run
from convoscope.scores.observation import COMPUTED, MEASURED, NOT_APPLICABLE

Destination = Literal["otel", "langfuse", "phoenix"]
DESTINATIONS: tuple[Destination, ...] = ("otel", "langfuse", "phoenix")
EVENT = "gen_ai.evaluation.result"
_HUMAN, _EXTERNAL = "human:", "external:"


class TraceScore(NamedTuple):
    """A score of a conversation or of one of its turns, and the trace and span that it goes back to."""

    conversation: str
    name: str
    judge: str
    status: str
    value: float | None
    reason: str
    explanation: str
    session: str
    trace: str
    span: str
    """Of a turn, its call of a model; of a conversation, the first span of its trace."""
    is_turn: bool
    is_of_session: bool = False
    """It is of a conversation of several traces: of its session, not of one trace."""

    @property
    def id(self) -> str:
        """The same for the same score: what is exported twice is there once."""
        whole = "\n".join((self.trace, self.span, self.conversation, self.name, self.judge))
        return hashlib.sha256(whole.encode()).hexdigest()[:32]


class Export(NamedTuple):
    """The text of a file, and what is in it."""

    text: str
    scores: int
    without_trace: int
    """Scores of conversations that were not read from a trace."""
    without_value: int
    """Scores without a value, which the destination has no form for."""


def trace_scores(run: Run, metrics: Sequence[str] = ()) -> Iterator[TraceScore]:
    """Scores of conversations, and those of turns that are a call of a model. What is not applicable is left out."""
    wanted = set(metrics)
    whole: dict[str, list[dict[str, Any]]] = {}
    for row in run.conversation_scores().to_list():
        whole.setdefault(row["conversation"], []).append(row)
    for conversation in run.conversations():
        traces = [str(trace) for trace in conversation.extras.get("traces") or ()]
        trace = traces[0] if traces else ""
        roots: Mapping[str, str] = conversation.extras.get("root_spans") or {}
        session = conversation.id if traces and conversation.id not in traces else ""
        origin = _Origin(conversation.id, session, trace, conversation.extras.get("call_traces") or {}, len(traces))
        for row in whole.get(conversation.id, ()):
            name = _name(row["metric"], row["variant"])
            if row["status"] != NOT_APPLICABLE and (not wanted or name in wanted):
                reason = row["reason"] or ""
                yield origin.score(
                    name, row["judge"], row["status"], row["value"], reason, "", roots.get(trace, ""), False
                )
        spans = _spans_of_turns(conversation)
        for score in run.scores(conversation=conversation.id) if spans else ():
            name, span = _name(score.metric, score.variant), spans.get(score.subject.id, "")
            is_wanted = score.subject.kind == "turn" and span and score.status != NOT_APPLICABLE
            if is_wanted and (not wanted or name in wanted):
                details = score.observation.details or {}
                why = str(details.get("reasoning") or details.get("notes") or "")
                yield origin.score(name, score.judge, score.status, score.value, score.reason, why, span, True)


def _name(metric: str, variant: str) -> str:
    return f"{metric}@{variant}" if variant else metric


class _Origin(NamedTuple):
    """The conversation of scores, and the session and traces that it was read from."""

    conversation: str
    session: str
    trace: str
    call_traces: Mapping[str, str]
    """By the span of a call of a model, its trace, where there are several."""
    traces: int

    def score(
        self, name: str, judge: str, status: str, value: float | None, reason: str, why: str, span: str, is_turn: bool
    ) -> TraceScore:
        trace = self.call_traces.get(span, self.trace) if is_turn else self.trace
        is_of_session = bool(self.session) and not is_turn and self.traces > 1
        return TraceScore(
            self.conversation,
            name,
            judge,
            status,
            value,
            reason,
            why,
            self.session,
            trace,
            span,
            is_turn,
            is_of_session,
        )


def _spans_of_turns(conversation: Conversation) -> dict[str, str]:
    """By turn, the span of its last call of a model."""
    return {
        str(turn.id): event.id
        for turn in conversation.turns
        for event in turn.events
        if isinstance(event, ComponentMetric) and event.id
    }


def export(run: Run, destination: str, metrics: Sequence[str] = (), *, as_csv: bool = False) -> Export:
    """A file that the destination takes in."""
    if destination not in DESTINATIONS:
        raise UsageError(f"unknown destination {destination!r}", hint=f"one of {', '.join(DESTINATIONS)}, days")
    if as_csv and destination == "otel":
        raise UsageError("events of OpenTelemetry are not a table", hint="leave out --csv")
    scores = list(trace_scores(run, metrics))
    placed = [score for score in scores if score.trace or score.session]
    takes_empty = destination == "otel"
    kept = [score for score in placed if takes_empty or score.value is not None]
    made = {"otel": _otel, "langfuse": _langfuse, "phoenix": _phoenix}[destination](kept)
    text = _table(made) if as_csv else json.dumps(made, ensure_ascii=False, indent=1) + "\n"
    return Export(text, len(kept), len(scores) - len(placed), len(placed) - len(kept))


def _otel(scores: Sequence[TraceScore]) -> dict[str, Any]:
    """OTLP JSON: a log record of the event for each score, on the span that it is about."""
    records = [
        {
            "eventName": EVENT,
            "traceId": _hex(score.trace, 32),
            "spanId": _hex(score.span, 16),
            "body": {"stringValue": EVENT},
            "attributes": [_attribute(name, value) for name, value in _attributes(score).items()],
        }
        for score in scores
    ]
    resource = {"attributes": [_attribute("service.name", "convoscope")]}
    return {
        "resourceLogs": [
            {"resource": resource, "scopeLogs": [{"scope": {"name": "convoscope"}, "logRecords": records}]}
        ]
    }


def _hex(id: str, length: int) -> str:
    """An id as OTLP wants it; empty where it is of another shape, such as a UUID that is too long."""
    plain = id.replace("-", "").lower()
    is_hex = len(plain) == length and all(character in "0123456789abcdef" for character in plain)
    return plain if is_hex else ""


def _attributes(score: TraceScore) -> dict[str, Any]:
    attributes: dict[str, Any] = {"gen_ai.evaluation.name": score.name, "convoscope.judge": score.judge}
    if score.value is not None and score.status == MEASURED:
        attributes["gen_ai.evaluation.score.value"] = score.value
    else:
        attributes["error.type"] = score.reason or score.status
    if score.explanation:
        attributes["gen_ai.evaluation.explanation"] = score.explanation
    attributes["gen_ai.conversation.id"] = score.conversation
    return attributes


def _attribute(name: str, value: Any) -> dict[str, Any]:
    return {"key": name, "value": {"doubleValue": value} if isinstance(value, float | int) else {"stringValue": value}}


def _langfuse(scores: Sequence[TraceScore]) -> list[dict[str, Any]]:
    """Bodies of Langfuse's scores API, one for each score."""
    return [
        {
            "id": score.id,
            **({"sessionId": score.session} if _is_of_session(score) else {"traceId": score.trace}),
            **({"observationId": score.span} if score.is_turn and score.trace else {}),
            "name": score.name,
            "value": score.value,
            "dataType": "NUMERIC",
            "comment": "; ".join(filter(None, (score.explanation, "" if score.judge == COMPUTED else score.judge))),
        }
        for score in scores
    ]


def _is_of_session(score: TraceScore) -> bool:
    return score.is_of_session or not score.trace


def _phoenix(scores: Sequence[TraceScore]) -> list[dict[str, Any]]:
    """Annotations of Phoenix: of a span where it is known, else of a trace, else of a session."""
    return [
        {
            "name": score.name,
            "annotator_kind": _kind(score.judge),
            **_phoenix_target(score),
            "result": {"score": score.value} | ({"explanation": score.explanation} if score.explanation else {}),
            "metadata": {"judge": score.judge, "conversation": score.conversation},
            "identifier": score.id,
        }
        for score in scores
    ]


def _phoenix_target(score: TraceScore) -> dict[str, str]:
    if score.span:
        return {"span_id": score.span}
    return {"trace_id": score.trace} if score.trace else {"session_id": score.session}


def _kind(judge: str) -> str:
    if judge == COMPUTED:
        return "CODE"
    return "HUMAN" if judge.startswith(_HUMAN) else "LLM"


def _table(rows: Any) -> str:
    """Rows as CSV; inner objects by their names: `result.score`."""
    flat = [
        {
            **{name: value for name, value in row.items() if not isinstance(value, dict)},
            **{
                f"{name}.{key}": held
                for name, value in row.items()
                if isinstance(value, dict)
                for key, held in value.items()
            },
        }
        for row in rows
    ]
    names = list(dict.fromkeys(name for row in flat for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()
