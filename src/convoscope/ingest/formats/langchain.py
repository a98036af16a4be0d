"""LangChain messages: serialised objects, dictionaries of `messages_to_dict`, and states of LangGraph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.shapes import is_langchain, plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import as_list, as_object, as_text
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
            if any(is_langchain(as_object(member)) for member in _listed(value)):
                return Detection(0.94, "a list of LangChain messages", "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        del notes
        single = [record.value for record in group.records if is_langchain(as_object(record.value))]
        if single:
            yield _talk(single, "", [record.value for record in group.records])
            return
        for record in group.records:
            value = as_object(record.value)
            config = as_object(as_object(value.get("config")).get("configurable"))
            id = as_text(value.get("thread_id")) or as_text(config.get("thread_id"))
            yield _talk(_listed(record.value), id, record.value)


def _listed(value: Any) -> list[Any]:
    record = as_object(value)
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
