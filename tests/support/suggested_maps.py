"""A suggested mapping of a log, against what the reader of that log reads.

A suggestion is *right* where all that user and agent say, and all calls of tools, are the same; *partly* where some of
it is missing, or instructions and results of tools are read as texts; *refused*; or *misread*: what it reads was not
said, not by this side, or not in this order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import convoscope
from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.errors import ConvoscopeError
from convoscope.ingest.mapping.suggestion import suggested_map

RIGHT, PARTLY, REFUSED, MISREAD = "right", "partly", "refused", "misread"
Spoken = tuple[str, str]


def _spoken(one: Conversation) -> list[Spoken]:
    """Who says what; blanks do not count."""
    pairs = [(one.roles[said.speaker], " ".join(said.meant().split())) for said in one.utterances]
    return [(role, text) for role, text in pairs if text]


def _calls(conversations: Sequence[Conversation]) -> Counter[tuple[str, bool]]:
    """Calls of tools, and whether a user calls."""
    return Counter((call.name, one.roles.get(call.caller) == USER) for one in conversations for call in one.tool_calls)


def _is_within(part: Sequence[Spoken], whole: Sequence[Spoken]) -> bool:
    """Whether all of a part is in the whole, in its order."""
    rest = iter(whole)
    return all(pair in rest for pair in part)


def verdict(path: Path, map_file: Path) -> str:
    try:
        map_file.write_text(suggested_map([path]))
    except ConvoscopeError:
        return REFUSED
    mapped = list(convoscope.read(path, format=f"map:{map_file.stem}", readers_from=map_file))
    try:
        known = list(convoscope.read(path))
    except ConvoscopeError:
        return MISREAD  # a file in which nothing was said
    truth = [_spoken(one) for one in known]
    for one in mapped:
        spoken = [pair for pair in _spoken(one) if pair[0] in (USER, ASSISTANT)]
        if not any(_is_within(spoken, each) for each in truth):
            return MISREAD
    if _calls(mapped) - _calls(known):
        return MISREAD
    is_all = [_spoken(one) for one in mapped] == truth and _calls(mapped) == _calls(known)
    return RIGHT if is_all else PARTLY
