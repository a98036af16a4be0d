"""LangChain messages: serialised objects, dictionaries of `messages_to_dict`, and states of LangGraph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.shapes import is_langchain, plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text
from convoscope.ingest.report import Notes

_USAGE = {
    "prompt_tokens": ("input_tokens",),
    "completion_tokens": ("output_tokens",),
    "total_tokens": ("total_tokens",),
}


class LangChainReader(TalkReader):
    """A list of messages, or an object with one."""

    name = "langchain"
    title = "LangChain messages"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if is_langchain(as_object(value)):
                return Detection(0.94, "each record is a LangChain message", "file")
            if _states(value):
                return Detection(0.94, "states of threads with LangChain messages", "file")
            if any(is_langchain(as_object(member)) for member in _listed(value)):
                return Detection(0.94, "a list of LangChain messages", "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        single = [record.value for record in group.records if is_langchain(as_object(record.value))]
        if single:
            yield _talk(single, "", [record.value for record in group.records])
            return
        states = [state for record in group.records for state in _states(record.value)]
        for record in group.records if not states else ():
            yield _talk(_listed(record.value), "", record.value)
        threads: dict[str, list[JsonObject]] = {}
        for state in states:
            threads.setdefault(_thread(state), []).append(state)
        for id, of_thread in threads.items():
            # A thread has a state for each step: the longest holds the others.
            longest = max(of_thread, key=lambda state: len(_listed(state)))
            if len(of_thread) > 1:
                notes.ignored("earlier_state", id[:80], count=len(of_thread) - 1)
            yield _talk(_listed(longest), id, of_thread)


def _thread(state: JsonObject) -> str:
    config = as_object(as_object(state.get("config")).get("configurable"))
    return as_text(state.get("thread_id")) or as_text(config.get("thread_id"))


def _states(value: Any) -> list[JsonObject]:
    """The states of threads in a record: one, or a list of checkpoints."""
    states = [as_object(state) for state in (value if isinstance(value, list) else [value])]
    return [state for state in states if _thread(state) and _listed(state)]


def _listed(value: Any) -> list[Any]:
    record = as_object(value)
    record = as_object(record.get("checkpoint")) or as_object(record.get("kwargs")) or record
    inner = as_object(record.get("values")) or as_object(record.get("channel_values")) or record
    return list(value) if isinstance(value, list) else list(as_list(inner.get("messages")))


def _talk(values: list[Any], id: str, raw: Any) -> LoggedTalk:
    messages: list[TalkMessage] = []
    models: list[str] = []
    for value in map(as_object, values):
        fields = as_object(value.get("kwargs")) or as_object(value.get("data")) or value
        usage = numbers_in(as_object(fields.get("usage_metadata")), _USAGE)
        messages += [TalkMessage(plain=plain, usage=usage) for plain in plain_messages(value)]
        models.append(as_text(as_object(fields.get("response_metadata")).get("model_name")))
    return LoggedTalk(id=id, messages=messages, model=next(filter(None, models), ""), raw=raw)


READER = LangChainReader()
