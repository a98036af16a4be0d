"""Small voice stacks for tests: what the parts of an agent report, as items and conversations hold it."""

from typing import Any

from convoscope.conversation import ComponentMetric, Conversation, Item
from support.chats import UNPLACED, chat


def part(component: str, speech: str = "", label: str = "", **values: Any) -> ComponentMetric:
    """What one part of the stack reports of one call."""
    return ComponentMetric(seq=UNPLACED, component=component, values=values, speech_id=speech, label=label)


def stack(*events: ComponentMetric, latency: Any = None, **facts: Any) -> Conversation:
    """One item with these component metrics, and what its session states of its latency."""
    extras = {} if latency is None else {"latency": latency}
    item = Item(id="1", events=tuple(range(len(events))), extras=extras)
    return chat(*events, items=(item,), **facts)


def items(*each: tuple[list[ComponentMetric], Any], **facts: Any) -> Conversation:
    """Several items, each with its component metrics and its `latency`."""
    events: list[ComponentMetric] = []
    made: list[Item] = []
    for number, (mine, latency) in enumerate(each, start=1):
        seqs = tuple(range(len(events), len(events) + len(mine)))
        extras = {} if latency is None else {"latency": latency}
        made.append(Item(id=str(number), events=seqs, extras=extras))
        events += mine
    return chat(*events, items=tuple(made), **facts)
