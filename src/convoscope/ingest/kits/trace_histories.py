"""Traces without a session that are one conversation: a call repeats what another trace sent and was answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from convoscope.conversation import SYSTEM
from convoscope.ingest.kits.shapes import signature
from convoscope.ingest.kits.spans import LoggedSpan
from convoscope.ingest.kits.trace_steps import Logged, LoggedCall, ToolRun, in_time, says
from convoscope.ingest.record import JsonObject, as_text


def joined_by_history(
    traces: Mapping[str, list[LoggedSpan]],
    logged: Mapping[int, Logged],
    sessions: Collection[str],
    users: Sequence[str],
) -> dict[str, list[LoggedSpan]]:
    """The spans of each conversation. `sessions` are names that a log gives: these are not joined with others.

    A trace goes on from another one if its first call begins with the messages of that one, and with its answer. Each
    trace is gone on from once: two users may begin alike. A tool that ran in a trace of its own belongs to its call.
    """
    history = _Histories()
    joined: dict[str, list[LoggedSpan]] = {}
    alone: list[str] = []
    for name in sorted(traces, key=lambda name: _start(traces[name])):
        spans = traces[name]
        steps = [logged[id(span)] for span in in_time(spans) if id(span) in logged]
        calls = [step for step in steps if isinstance(step, LoggedCall) and says(step)]
        if not calls and steps and name not in sessions:
            alone.append(name)
            continue
        user = next((text for span in spans if (text := span.text(*users))), "")
        before = history.before(calls[0], user) if calls and name not in sessions else ""
        joined.setdefault(before or name, []).extend(spans)
        if name not in sessions:
            history.add(before or name, user, calls)
    for name in alone:
        runs = [step for span in traces[name] if isinstance(step := logged.get(id(span)), ToolRun)]
        caller = next((at for run in runs if (at := history.callers.get(run.call_id))), name)
        joined.setdefault(caller, []).extend(traces[name])
    return {name: joined[name] for name in traces if name in joined}


def _start(spans: Sequence[LoggedSpan]) -> float:
    return min((span.start for span in spans if span.start is not None), default=0.0)


class _Histories:
    """What was said in conversations so far, up to the answer of each call."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], list[str]] = {}
        """By user and history, the conversations that got as far, and that no trace goes on from yet."""
        self._of: dict[str, list[tuple[str, int]]] = {}
        """The histories of a conversation."""
        self.callers: dict[str, str] = {}
        """By the id of a call of a tool, its conversation."""

    def before(self, call: LoggedCall, user: str) -> str:
        """The conversation that a call goes on from: the one of which it repeats most."""
        for so_far in reversed(list(_prefixes(call.inputs))):
            names = self._open.get((user, so_far))
            if names:
                name = names[0]
                for key in self._of.pop(name):
                    self._open[key].remove(name)
                return name
        return ""

    def add(self, name: str, user: str, calls: Sequence[LoggedCall]) -> None:
        for call in calls:
            if call.outputs:
                *_, whole = _prefixes([*call.inputs, *call.outputs])
                self._open.setdefault((user, whole), []).append(name)
                self._of.setdefault(name, []).append((user, whole))
            blocks = [block for message in call.outputs for block in message["content"]]
            ids = (as_text(block.get("id")) for block in blocks if block["type"] == "tool_use")
            self.callers |= dict.fromkeys(filter(None, ids), name)


def _prefixes(messages: Sequence[JsonObject]) -> Iterator[int]:
    """A hash for each beginning of the messages; instructions do not count."""
    so_far = 0
    for message in messages:
        if message["role"] != SYSTEM:
            so_far = hash((so_far, signature(message)))
            yield so_far
