"""A transcript in a single text, or in a list of lines, as messages: `Agent: …`, `[00:12] Caller: …`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convoscope.ingest.record import JsonObject
from convoscope.ingest.speaker_labels import LabelledLine, is_machine_key, labelled, speaker_labels

SPEAKER, TEXT, AT, HEADER = "speaker", "text", "at", "header"
"""The fields of such a message; a header is what comes before the first speaker."""
_FEWEST = 2


def transcript_messages(value: Any) -> list[JsonObject]:
    """The messages of a transcript; none of a text in which no lines of speakers are.

    >>> transcript_messages("Bot: Hello.\\nUser: Where is it?\\nI wait.")
    [{'speaker': 'Bot', 'text': 'Hello.'}, {'speaker': 'User', 'text': 'Where is it?\\nI wait.'}]
    """
    lines = _lines(value)
    marked = [labelled(line) for line in lines]
    known = [one for one in marked if one is not None]
    speakers = speaker_labels(known)
    spoken = [one for one in known if one.label in speakers]
    if len(spoken) < _FEWEST or 2 * sum(is_machine_key(one.label) for one in known) > len(known):
        return []
    messages: list[JsonObject] = []
    for line, mark in zip(lines, marked, strict=True):
        if mark is not None and mark.label in speakers:
            messages.append(_message(mark))
        elif messages and SPEAKER in messages[-1]:
            messages[-1][TEXT] = f"{messages[-1][TEXT]}\n{line}".strip()
        else:
            messages.append({HEADER: line})
    return messages


def _message(line: LabelledLine) -> JsonObject:
    at: JsonObject = {} if line.at is None else {AT: line.at}
    return {SPEAKER: line.label, TEXT: line.text, **at}


def _lines(value: Any) -> Sequence[str]:
    """The lines of a text, or of a list of texts; none of any other value."""
    if isinstance(value, str):
        return [line.strip() for line in value.splitlines() if line.strip()]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [line for one in value for line in _lines(one)]
    return ()
