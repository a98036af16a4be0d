"""Google's Agent Development Kit: sessions with their events, and sets of cases for its evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from convoscope.conversation import Expected, ExpectedToolCall, Label, Outcome
from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes

_USAGE = {
    "prompt_tokens": ("prompt_token_count",),
    "completion_tokens": ("candidates_token_count",),
    "total_tokens": ("total_token_count",),
}
_TEXTS = frozenset({"args", "response", "state", "state_delta", "stateDelta"})
"""Fields whose names are not those of the kit: what is in them is kept as it is."""


class GoogleADKReader(TalkReader):
    """A session, or its events; a set of cases, or its results; or questions with the calls that should follow."""

    name = "google-adk"
    title = "Google ADK sessions and eval sets"
    known = frozenset({"timestamp", "creation_timestamp"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in (_snake(value) for value in sample.values):
            held = as_object(value)
            if any(_is_event(event) for event in as_list(held.get("events"))):
                return Detection(0.95, '"events" with an author and content', "record")
            if _is_event(held) and ("invocation_id" in held or "actions" in held):
                return Detection(0.95, "events with an author and content", "file")
            if any("eval_id" in as_object(case) for case in as_list(held.get("eval_cases"))):
                return Detection(0.95, '"eval_cases" with ids', "record")
            if any("eval_id" in as_object(case) for case in as_list(held.get("eval_case_results"))):
                return Detection(0.95, '"eval_case_results" with ids', "record")
            if any("expected_tool_use" in as_object(turn) for turn in as_list(held.get("data"))):
                return Detection(0.95, '"data" with "expected_tool_use"', "record")
            if "query" in held and "expected_tool_use" in held:
                return Detection(0.95, '"query" with "expected_tool_use"', "file")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        values = [as_object(_snake(record.value)) for record in group.records]
        if any("query" in value for value in values):
            yield _questions(values)
        elif any(_is_event(value) for value in values):
            yield _session({"events": values}, notes)
        else:
            for value in values:
                yield from _talks(value, notes)


def _talks(value: JsonObject, notes: Notes) -> Iterator[LoggedTalk]:
    if "events" in value:
        yield _session(value, notes)
    if as_list(value.get("data")):
        yield _questions([as_object(turn) for turn in value["data"]], as_text(value.get("name")))
    around = {name: inner for name, inner in value.items() if name not in ("eval_cases", "eval_case_results")}
    for case in map(as_object, as_list(value.get("eval_cases"))):
        notes.inferred("reference_conversation", "an eval set says what should be said, not what was said")
        yield LoggedTalk(
            id=as_text(case.get("eval_id")),
            messages=_turns(as_list(case.get("conversation"))),
            raw={**case, "eval_set": around},
        )
    for case in map(as_object, as_list(value.get("eval_case_results"))):
        yield _result(case, around)


def _is_event(value: Any) -> bool:
    event = as_object(value)
    return "author" in event and isinstance(as_object(event.get("content")).get("parts"), list)


def _snake(value: Any) -> Any:
    """A value with the names of fields in the spelling of Python: the kit writes either."""
    if isinstance(value, Mapping):
        return {
            re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() if name.isidentifier() else name: (
                inner if name in _TEXTS else _snake(inner)
            )
            for name, inner in value.items()
        }
    return [_snake(inner) for inner in value] if isinstance(value, list) else value


def _session(value: JsonObject, notes: Notes) -> LoggedTalk:
    messages: list[TalkMessage] = []
    events = [as_object(event) for event in as_list(value.get("events"))]
    for event in events:
        if event.get("partial") is True:
            notes.ignored("partial_event", "the whole text follows")
            continue
        author = as_text(event.get("author"))
        usage = numbers_in(as_object(event.get("usage_metadata")), _USAGE)
        for plain in plain_messages(_filled(event.get("content"))):
            # Results of tools have the role user: the author says that no user wrote them.
            role = "user" if author == "user" else "assistant"
            messages.append(
                TalkMessage(
                    plain={**plain, "role": role},
                    at=seconds(event, ("timestamp",)),
                    name="" if role == "user" else author,
                    usage=usage,
                )
            )
    failures = [as_text(event.get("error_message")) or as_text(event.get("error_code")) for event in events]
    agents = [message.name for message in messages if message.name]
    return LoggedTalk(
        id=as_text(value.get("id")),
        messages=messages,
        agent=as_text(value.get("app_name")) or (agents[0] if agents else ""),
        outcome=Outcome(error=next(filter(None, reversed(failures)), "")),
        extras=filled({"user": as_text(value.get("user_id")), "state": value.get("state")}),
        raw=value,
    )


def _turns(turns: Iterable[Any]) -> list[TalkMessage]:
    """The messages of invocations: what the user asked, the calls on the way, the last answer."""
    messages: list[TalkMessage] = []
    for turn in map(as_object, turns):
        at = seconds(turn, ("creation_timestamp",)) or None
        inner = as_object(turn.get("intermediate_data"))
        calls = [{"type": "tool-call", **filled(as_object(use))} for use in as_list(inner.get("tool_uses"))]
        spoken = [*plain_messages(_filled(turn.get("user_content")))]
        spoken += plain_messages([{"role": "assistant", "content": calls}]) if calls else []
        steps = [{"functionResponse": answer} for answer in as_list(inner.get("tool_responses"))]
        for step in (*as_list(inner.get("invocation_events")), *([{"content": {"parts": steps}}] if steps else ())):
            matched = plain_messages(_filled(as_object(step).get("content")), "assistant")
            spoken += [{**plain, "role": "assistant"} for plain in matched]
        messages += [TalkMessage(plain=plain, at=at) for plain in spoken]
        for author, parts in filter(_is_pair, as_list(inner.get("intermediate_responses"))):
            step = plain_messages(_filled({"role": "model", "parts": parts}), "assistant")
            messages += [TalkMessage(plain=plain, at=at, name=as_text(author)) for plain in step]
        answer = plain_messages(_filled(turn.get("final_response")), "assistant")
        messages += [TalkMessage(plain=plain, at=at) for plain in answer]
    return messages


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


def _result(case: JsonObject, around: JsonObject) -> LoggedTalk:
    """A case that was run: what was said, and the scores of the kit."""
    pairs = [as_object(pair) for pair in as_list(case.get("eval_metric_result_per_invocation"))]
    wanted = [plain for pair in pairs for plain in _turns([pair.get("expected_invocation")])]
    last = [block for message in wanted[-1:] for block in message.plain["content"] if block["type"] == "text"]
    scores = [as_object(score) for score in as_list(case.get("overall_eval_metric_results"))]
    return LoggedTalk(
        id=as_text(case.get("session_id")) or as_text(case.get("eval_id")),
        messages=_turns(pair.get("actual_invocation") for pair in pairs),
        dimensions={"scenario_id": as_text(case.get("eval_id"))},
        expected=Expected(ground_truth="\n".join(block["text"] for block in last) or None),
        labels=[
            Label(name=as_text(score.get("metric_name")), value=value, rater="google-adk", rater_kind="external")
            for score in scores
            if (value := as_number(score.get("score"))) is not None
        ],
        raw={**case, "eval_set": around},
    )


def _questions(values: list[JsonObject], id: str = "") -> LoggedTalk:
    """Questions without answers: what should be called and said is expected, and nothing was called."""
    uses = [as_object(use) for value in values for use in as_list(value.get("expected_tool_use"))]
    references = [as_text(value.get("reference")) for value in values]
    return LoggedTalk(
        id=id,
        messages=[
            TalkMessage(plain=plain) for value in values for plain in plain_messages(as_text(value.get("query")))
        ],
        expected=Expected(
            ground_truth=references[-1] or None,
            tool_calls=tuple(ExpectedToolCall(as_text(use.get("tool_name")), use.get("tool_input")) for use in uses),
        ),
        raw=values,
    )


def _filled(content: Any) -> JsonObject:
    """A content without the fields of its parts that are null."""
    value = as_object(content)
    return {**value, "parts": [filled(as_object(part)) for part in as_list(value.get("parts"))]}


READER = GoogleADKReader()
