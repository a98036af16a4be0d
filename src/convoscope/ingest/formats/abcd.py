"""Action-Based Conversations Dataset: customers, agents, and the buttons that agents press.

`original` is what was said. `delexed` says it again with values replaced, and knows the right next step of each turn:
its targets become frames, the rest is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from convoscope.conversation import ASSISTANT, USER, Act, Conversation, Frame, Scenario, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import Fields, as_list, as_object, as_text
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_SPEAKERS = {"agent": ASSISTANT, "customer": USER}
_ACTION = "action"
_SPLITS = ("train", "dev", "test")
_SPLIT = re.compile(rb'\s*\{\s*"(?:train|dev|test)"\s*:\s*\[')
_TARGETS = 5
"""Of a turn: the subflow, the kind of next step, the button, its values, and the utterance among the candidates."""


class ABCDReader(Reader):
    """Chats of customers with agents who follow guidelines; each button is a tool call."""

    name = "abcd"
    title = "Action-Based Conversations Dataset"

    def detect(self, sample: Sample) -> Detection | None:
        chats = [chat for value in sample.values for chat in _chats(value)]
        if any(_is_turn(one) for chat in chats for one in as_list(as_object(chat).get("original"))):
            return Detection(1.0, '"original" is a list of agent, customer and action with their words')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            for chat in _chats(record.value):
                yield _conversation(chat, group, notes)

    def holds_members(self, head: bytes) -> bool:
        return _SPLIT.match(head) is not None and b'"original"' in head


def _chats(value: Any) -> list[Any]:
    """The chats of the whole data set, which is split by purpose; or one chat."""
    splits = [chats for name, chats in as_object(value).items() if name in _SPLITS and isinstance(chats, list)]
    return [chat for chats in splits for chat in chats] if splits else [value]


def _is_turn(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value)
    return is_pair and (value[0] in _SPEAKERS or value[0] == _ACTION)


def _conversation(value: Any, group: RecordGroup, notes: Notes) -> Conversation:
    chat = Fields(value, "conversation", notes)
    original = chat.take("original", kind=list)
    if original is None:
        raise InputError("has no list of turns", field="original", hint='expected [["agent", "Hi!"], …]')
    id = chat.text("convo_id") or group.name
    targets = _targets(chat.pop("delexed", None), len(original), notes)
    timeline = TimelineBuilder(notes)
    frames: list[Frame] = []
    for index, turn in enumerate(original):
        _turn(index, turn, targets[index], timeline, frames)
    scenario = chat.take("scenario", kind=dict)
    flows = as_object(scenario)
    return Conversation(
        id=id,
        dimensions={key: text for key in ("flow", "subflow") if (text := as_text(flows.get(key)))},
        source=Source(format="abcd", files=group.file_names, record=id),
        participants=timeline.participants,
        scenario=None if scenario is None else Scenario(goal=scenario),
        timeline=tuple(timeline.events),
        frames=tuple(frames),
        extras=chat.rest(),
    )


def _targets(delexed: Any, count: int, notes: Notes) -> list[list[Any]]:
    """The targets of each turn; none for all where the two lists do not fit together."""
    if delexed is None:
        return [[]] * count
    turns = as_list(delexed)
    targets = [list(as_list(as_object(turn).get("targets"))) for turn in turns]
    if len(turns) != count or any(len(one) != _TARGETS for one in targets):
        notes.set_aside("targets_unreadable", f"{len(turns)} turns in delexed, {count} in original")
        return [[]] * count
    notes.ignored("delexed", "it says the texts again", count=count)
    return targets


def _turn(index: int, turn: Any, targets: list[Any], timeline: TimelineBuilder, frames: list[Frame]) -> None:
    """What was said, or the button that was pressed and what the system said of it."""
    seq = timeline.seq
    if not _is_turn(turn):
        timeline.notes.set_aside("turn_unreadable", f"original[{index}]", seq)
        timeline.mark("turn_unreadable", turn)
        return
    speaker, text = turn
    if speaker == _ACTION:
        button = as_text(targets[2]) if targets else ""
        timeline.call(button or _ACTION, {"values": list(as_list(targets[3]))} if targets else None, id=str(index))
        timeline.result(text, name=button or _ACTION)
        return
    timeline.say(timeline.participant(_SPEAKERS[speaker], speaker), intended=Text(text), id=str(index))
    if targets and speaker == "customer" and (intent := as_text(targets[0])):
        frames.append(Frame(seq=seq, origin="gold", intents=(intent,)))
    elif targets and (step := as_text(targets[1])):
        frames.append(Frame(seq=seq, origin="gold", acts=(Act(step),)))


READER = ABCDReader()
