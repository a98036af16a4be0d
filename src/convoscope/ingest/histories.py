"""Growing histories: calls of a model, each logged with all messages so far, brought together into conversations.

Of such calls only the last one is a conversation; the others say its beginning again. A call is a part of another
one where that one begins with its messages and its answer. Records with different ids of conversations, labels or
trials are never parts of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from convoscope.ingest.copies import RecordKey
from convoscope.ingest.reader import CallHistory

_MOST = 0.95
"""Of the earlier exchanges of a file's chats, so many must be there as records, else it does not hold calls."""


class ModelCall(NamedTuple):
    """A record as a call: its messages as hashes of all prefixes, the last of the whole."""

    record: RecordKey
    prefixes: tuple[int, ...]
    history: CallHistory

    @property
    def by_id(self) -> Hashable:
        """What calls of one conversation have in common by their id; None without one."""
        history = self.history
        id = history.conversation or history.call
        return (bool(history.conversation), id, history.apart) if id else None

    @property
    def by_content(self) -> Hashable:
        """Among what they are looked for by content: all calls, or the records of a file; None where an id decides."""
        if self.history.conversation:
            return None
        return (
            ("calls", self.history.apart) if self.history.is_call else ("file", self.record.place, self.history.apart)
        )

    @property
    def is_answered(self) -> bool:
        return self.history.by_agent[-1]

    @property
    def has_reply(self) -> bool:
        """Whether the agent says or does something after the user."""
        by_user = self.history.by_user
        return True in by_user and any(self.history.by_agent[by_user.index(True) :])


def call_of(record: RecordKey, history: CallHistory) -> ModelCall:
    prefixes: list[int] = []
    for message in history.messages:
        prefixes.append(hash((prefixes[-1] if prefixes else 0, message)))
    return ModelCall(record, tuple(prefixes), history)


def parts_of(
    calls: Iterable[ModelCall], others: Mapping[int, int], windows: Collection[RecordKey] = ()
) -> dict[RecordKey, RecordKey]:
    """Which record is a part of which. `others` has, by input, the earlier exchanges of records that are alike to none.

    `windows` are records that go on with the end of another one: nothing is expected to go on with their beginning.

    By content alone a conversation takes in one record of each length: two users who said the same are two, and only
    as many are taken in as there are conversations that go on. Records that do not say that they are calls are taken
    in only where the whole file looks like calls: nearly all earlier exchanges of its chats are there as records.
    """
    going_on: dict[tuple[int, Hashable, bool], list[ModelCall]] = {}
    parts: dict[RecordKey, RecordKey] = {}
    by_file: dict[int, _File] = {}
    for call in sorted(calls, key=lambda call: (-len(call.prefixes), call.record)):
        whole, by_id, by_content = call.prefixes[-1], call.by_id, call.by_content
        if by_id and (same := going_on.get((whole, by_id, True)) or going_on.get((whole, by_id, False))):
            parts[call.record] = same[-1].record
            continue
        # The answer is in the call, or comes next.
        nexts = (True, False) if call.is_answered else (True,)
        longer = next((one for by_agent in nexts if (one := going_on.get((whole, by_content, by_agent)))), None)
        file = by_file.setdefault(call.record.place, _File())
        if by_content is None or not longer:
            if call.record not in windows:
                file.wholes.append(call)
            for key in filter(None, (by_id, by_content)):
                for prefix, by_agent in zip(call.prefixes, call.history.by_agent[1:], strict=False):
                    going_on.setdefault((prefix, key, by_agent), []).append(call)
        elif call.history.is_call:
            parts[call.record] = longer.pop().record
        else:
            file.parts.append((call, longer.pop()))
    for place, file in by_file.items():
        if file.holds_calls(others.get(place, 0)):
            parts |= {call.record: longer.record for call, longer in file.parts}
    return parts


class _File:
    """The records of one file that do not say whether they are calls."""

    def __init__(self) -> None:
        self.wholes: list[ModelCall] = []
        self.parts: list[tuple[ModelCall, ModelCall]] = []

    def holds_calls(self, absent: int) -> bool:
        """Whether nearly all earlier exchanges of the chats are there as records of their own, some with a reply."""
        if not any(call.has_reply for call, _ in self.parts):
            return False
        # Long chats that are equal come from a template: then one may begin like another one, too.
        if self._equal_wholes() > 1 - _MOST:
            return False
        lengths: dict[RecordKey, list[int]] = {}
        for call, longer in self.parts:
            lengths.setdefault(longer.record, []).append(len(call.prefixes))
        there, expected = 0, absent
        for whole in self.wholes:
            if whole.by_content is None or whole.history.is_call:
                continue
            ends = lengths.get(whole.record, [])
            for start, end in _earlier_exchanges(whole.history.by_agent, whole.history.by_user):
                expected += 1
                there += any(start < length <= end for length in ends)
        return there >= _MOST * expected

    def _equal_wholes(self) -> float:
        """The share of chats of several exchanges that are equal to another one."""
        long = [one for one in self.wholes if _earlier_exchanges(one.history.by_agent, one.history.by_user)]
        counts = Counter(one.prefixes[-1] for one in long)
        return sum(count - 1 for count in counts.values()) / max(1, len(long))


def _earlier_exchanges(by_agent: Sequence[bool], by_user: Sequence[bool]) -> list[tuple[int, int]]:
    """From each first word of the user to before the next one that follows a reply, without the last."""
    starts: list[int] = []
    replied = True
    for index, (is_agent, is_user) in enumerate(zip(by_agent, by_user, strict=True)):
        if is_user and replied:
            starts.append(index)
            replied = False
        replied = replied or is_agent
    return list(pairwise(starts))
