"""Google's Agent Development Kit: sessions with their events, and sets of cases for its evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.conversation import Expected, ExpectedToolCall, Outcome
from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_USAGE = {
    "prompt_tokens": ("prompt_token_count", "promptTokenCount"),
    "completion_tokens": ("candidates_token_count", "candidatesTokenCount"),
    "total_tokens": ("total_token_count", "totalTokenCount"),
}


class GoogleADKReader(TalkReader):
    """A session; a set of cases; or a list of questions with the calls that should follow."""

    name = "google-adk"
    title = "Google ADK sessions and eval sets"
    known = frozenset({"timestamp", "creation_timestamp"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            if any(_is_event(event) for event in as_list(value.get("events"))):
                return Detection(0.95, '"events" with an author and content', "record")
            if any("conversation" in as_object(case) for case in as_list(value.get("eval_cases"))):
                return Detection(0.95, '"eval_cases" with conversations', "record")
            if "query" in value and "expected_tool_use" in value:
                return Detection(0.95, '"query" with "expected_tool_use"', "file")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        values = [as_object(record.value) for record in group.records]
        if any("query" in value for value in values):
            yield _questions(values)
            return
        for value in values:
            if "events" in value:
                yield _session(value, notes)
            set_of_cases = {name: inner for name, inner in value.items() if name != "eval_cases"}
            for case in map(as_object, as_list(value.get("eval_cases"))):
                notes.inferred("reference_conversation", "an eval set says what should be said, not what was said")
                yield _case(case, {**case, "eval_set": set_of_cases})


def _is_event(value: Any) -> bool:
    event = as_object(value)
    return "author" in event and isinstance(as_object(event.get("content")).get("parts"), list)


def _session(value: JsonObject, notes: Notes) -> LoggedTalk:
    messages: list[TalkMessage] = []
    events = [as_object(event) for event in as_list(value.get("events"))]
    for event in events:
        if event.get("partial") is True:
            notes.ignored("partial_event", "the whole text follows")
            continue
        author = as_text(event.get("author"))
        usage = numbers_in(as_object(event.get("usage_metadata", event.get("usageMetadata"))), _USAGE)
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
        agent=as_text(value.get("app_name", value.get("appName"))) or (agents[0] if agents else ""),
        outcome=Outcome(error=next(filter(None, reversed(failures)), "")),
        extras=filled({"user": as_text(value.get("user_id", value.get("userId"))), "state": value.get("state")}),
        raw=value,
    )


def _case(case: JsonObject, raw: JsonObject) -> LoggedTalk:
    messages: list[TalkMessage] = []
    for turn in map(as_object, as_list(case.get("conversation"))):
        at = seconds(turn, ("creation_timestamp",))
        inner = as_object(turn.get("intermediate_data"))
        calls = [{"type": "tool-call", **filled(as_object(use))} for use in as_list(inner.get("tool_uses"))]
        spoken = [*plain_messages(_filled(turn.get("user_content")))]
        spoken += plain_messages([{"role": "assistant", "content": calls}]) if calls else []
        steps = [{"functionResponse": answer} for answer in as_list(inner.get("tool_responses"))]
        for step in (*as_list(inner.get("invocation_events")), *([{"content": {"parts": steps}}] if steps else ())):
            matched = plain_messages(_filled(as_object(step).get("content")), "assistant")
            spoken += [{**plain, "role": "assistant"} for plain in matched]
        spoken += plain_messages(_filled(turn.get("final_response")), "assistant")
        messages += [TalkMessage(plain=plain, at=at) for plain in spoken]
    return LoggedTalk(id=as_text(case.get("eval_id")), messages=messages, raw=raw)


def _questions(values: list[JsonObject]) -> LoggedTalk:
    """Questions without answers: what should be called and said is expected, and nothing was called."""
    uses = [as_object(use) for value in values for use in as_list(value.get("expected_tool_use"))]
    references = [as_text(value.get("reference")) for value in values]
    return LoggedTalk(
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
