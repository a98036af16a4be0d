"""Event logs made wrong at random, read with the strict path and without it: both must tell the same."""

from __future__ import annotations

import copy
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from benchmarks import planted
from convoscope.conversation import to_json
from convoscope.ingest.discover import find_inputs
from convoscope.ingest.formats.state_events import reader as state_events
from convoscope.ingest.split import cut, read_partition

Draw = random.Random
Line = dict[str, Any]
_T = 1_760_000_000.25
_JUNK: list[Any] = [
    *(None, True, False, 0, -1, 7, 0.5, 1e300, -0.0, 10**25, 2**63, 1763200000250, 1e-300),
    *("", "   ", "0", "true", "error", "terminal", "escalated", "greet", "\0", "é\u2028", "x" * 300, "1760000001.5"),
    *([], {}, [None], [[1]], {"name": "greet"}, {"a": {"b": []}}, ["text", 3, {"x": 1}]),
    *("2026-02-16T11:20:00Z", "2026-02-16T11:20:00", "2026-02-30T99:00"),
]
_NAMES = [
    *("conversation_id", "session_id", "call_id", "id", "event_id", "event", "type", "event_type", "name", "timestamp"),
    *("ts", "time", "seq", "sequence", "flow", "agent", "agent_name", "model", "persona", "trial", "domain", "dataset"),
    *("state", "state_name", "to_state", "from", "to", "reason", "slot", "key", "value", "guard", "result", "error"),
    *("latency_ms", "latency_s", "tokens_in", "tokens_out", "cost_usd", "turn", "speech_id", "tool", "arguments"),
    *("tool_call_id", "success", "ok", "is_error", "status", "completed", "stop_reason", "final_status", "duration_s"),
    *("errored", "fatal", "data", "payload", "events", "messages", "role", "content", "text", "unheard_of", ""),
]
_EVENTS = [
    *(
        "state_entered",
        "StateExited",
        "turn_completed",
        "TURN COMPLETE",
        "guard-evaluated",
        "slot_filled",
        "tool_called",
    ),
    *("tool_result", "conversation_ended", "error", "heartbeat", "", "state_exited", "turn_complete"),
]


def run(count: int, seed: int = 1) -> None:
    """Print how many of `count` mutated logs are read in another way by type than by the reader that looks closer."""
    began = perf_counter()
    outcome: Counter[str] = Counter()
    for number in range(count):
        found = compare(seed * 1_000_000 + number)
        outcome.update(found.counts)
        if found.difference:
            print(f"  log {seed * 1_000_000 + number}: {found.difference[:300]}")
    read, strict = outcome["conversations"], outcome["strict"]
    print(f"{count:,} mutated event logs in {perf_counter() - began:.1f} s: {outcome['different']:,} read differently")
    print(f"  {read:,} conversations, {strict:,} of them read by type\n")


class Compared(NamedTuple):
    """Whether the two ways of reading a log differ, and how many conversations there were."""

    difference: str
    counts: Counter[str]


def compare(seed: int) -> Compared:
    """Write the log of a seed, and read it in both ways."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="convoscope-mutated-") as folder:
        logs = Path(folder) / "logs"
        logs.mkdir()
        for name, data in mutated_files(draw).items():
            (logs / name).write_bytes(data)
        size = draw.choice([500, 3000, 4_000_000])
        strict, by_type = read_all(logs, size, strict=True)
        closer, _ = read_all(logs, size, strict=False)
    counts = Counter(conversations=len(closer) - 1, strict=by_type)
    different = next(
        (f"{one!r} is not {other!r}" for one, other in zip(strict, closer, strict=False) if one != other), ""
    )
    if len(strict) != len(closer):
        different = different or f"{len(strict)} parts, not {len(closer)}"
    counts["different"] += bool(different)
    return Compared(different, counts)


def read_all(folder: Path, size: int, *, strict: bool) -> tuple[list[Any], int]:
    """Conversations as JSON with their places and notes, and at last the report; how many were read by type."""
    reader = state_events.READER
    plain = reader.strict_first
    found = find_inputs([folder])
    told: list[Any] = []
    by_type = 0
    build = reader.quick_build

    def counting(*given: Any) -> Any:
        nonlocal by_type
        made = build(*given)
        by_type += made is not None
        return made

    reader.strict_first = strict
    reader.quick_build = counting  # type: ignore[method-assign, assignment]
    try:
        with tempfile.TemporaryDirectory(prefix="convoscope-") as scratch:
            for partition in cut(found.inputs, found.report, Path(scratch), size):
                reads = read_partition(partition, found.report, flows=found.flows)
                told += [(tuple(read.origin), to_json(read.conversation), read.notes) for read in reads]
    finally:
        reader.strict_first = plain
        del reader.quick_build
    told.append(msgspec.json.encode(found.report.ordered()))
    return told, by_type


# Logs.


def mutated_files(draw: Draw) -> dict[str, bytes]:
    """One to three files of some conversations, of which some lines are wrong."""
    calls = [_call(draw, f"c{number}") for number in range(draw.randint(1, 4))]
    lines = calls[0] if draw.random() < 0.3 else _interleaved(calls, draw)
    for _ in range(draw.choice([0, 0, 1, 1, 1, 2, 3, 6])):
        if lines:
            draw.choice(_LINE_FAULTS)(lines, draw)
    texts = [json.dumps(line, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass") for line in lines]
    for _ in range(draw.choice([0, 0, 0, 1, 1, 3])):
        if texts:
            draw.choice(_TEXT_FAULTS)(texts, draw)
    end = draw.choice([b"\n", b"\n", b"\n", b"\r\n"])
    count = draw.choice([1, 1, 2, 3])
    return {
        f"log-{number}.jsonl": end.join(texts[number::count]) + draw.choice([b"", end])
        for number in range(min(count, len(texts)))
    } or {"log-0.jsonl": b"{}"}


def _call(draw: Draw, id: str) -> list[Line]:
    """A conversation as the page of the format writes it, or one that the planted flows gave."""
    if draw.random() < 0.4:
        return [{**event, "conversation_id": id} for event in draw.choice(_planted())]
    at, lines = _T + draw.randint(0, 3), list[Line]()
    named = {"flow": "viewing", "agent": "gemini"} if draw.random() < 0.8 else {}
    states = draw.choice([["greet", "details", "confirm", "close"], ["greet", "details", "greet"], ["greet"]])
    whole = draw.random() < 0.2

    def add(event: str, **facts: Any) -> None:
        nonlocal at
        at = float(int(at + 1)) if whole else round(at + draw.choice([0.0, 0.1, 1.5]), 3)
        number = {} if bare else {"seq": len(lines)}
        lines.append({"conversation_id": id, **named, **number, "timestamp": at, "event": event, **facts})

    bare = draw.random() < 0.2
    for place, state in enumerate(states):
        add("state_entered", state=state)
        for _ in range(draw.randint(0, 3)):
            _happen(draw, add, state, place)
        if place + 1 < len(states) or draw.random() < 0.4:
            to_state = states[place + 1] if place + 1 < len(states) else "escalated"
            add("state_exited", state=state, to_state=to_state, **draw.choice([{}, {"reason": "done"}]))
    if draw.random() < 0.8:
        add("conversation_ended", completed=draw.random() < 0.5, **draw.choice([{}, {"stop_reason": "terminal"}]))
    return lines


@cache
def _planted() -> list[Sequence[Line]]:
    return list(planted.short_calls(12))


def _happen(draw: Draw, add: Callable[..., None], state: str, place: int) -> None:
    kind = draw.randrange(6)
    if kind == 0:
        figures: list[Line] = [
            {},
            {"tokens_in": 3, "tokens_out": 4},
            {"tokens_out": 4, "model": "m1", "tokens_in": 3},
            {"model": "m2"},
        ]
        add("turn_complete", latency_ms=draw.choice([900, 120.5, 4000]), **draw.choice(figures))
    elif kind == 1:
        named: list[Line] = [{}, {"state": state}, {"state": "greet", "latency_ms": 3}]
        add("turn_complete", **draw.choice(named))
    elif kind == 2:
        add("slot_filled", slot=draw.choice(["name", f"day{place}"]), value=draw.choice([0, "", "Ada", False, [1]]))
    elif kind == 3:
        add("guard_evaluated", guard="ready", result=True, **draw.choice([{}, {"error": ""}, {"error": "KeyError"}]))
    elif kind == 4:
        given: list[Line] = [{}, {"arguments": {"a": 1}}, {"arguments": "{}", "call_id": "t1"}]
        add("tool_called", name="book", **draw.choice(given))
    else:
        facts: list[Line] = [
            {"success": True},
            {"success": False, "error": "busy"},
            {"error": "x"},
            {"result": {"ok": True}},
        ]
        add("tool_result", name="book", **draw.choice(facts))


def _interleaved(calls: list[list[Line]], draw: Draw) -> list[Line]:
    waiting = [list(call) for call in calls if call]
    lines: list[Line] = []
    while waiting:
        call = draw.choice(waiting)
        lines.append(call.pop(0))
        waiting = [one for one in waiting if one]
    return lines


# What is wrong with lines.


def _replace(lines: list[Line], draw: Draw) -> None:
    line = draw.choice(lines)
    if line:
        line[draw.choice(list(line))] = copy.deepcopy(draw.choice(_JUNK))


def _drop(lines: list[Line], draw: Draw) -> None:
    line = draw.choice(lines)
    if line:
        del line[draw.choice(list(line))]


def _drop_everywhere(lines: list[Line], draw: Draw) -> None:
    name = draw.choice(["seq", "timestamp", "flow", "agent", "event", "conversation_id"])
    for line in lines:
        line.pop(name, None)


def _add(lines: list[Line], draw: Draw) -> None:
    value = draw.choice([*_JUNK, "greet", "c0", "c1", 3])
    draw.choice(lines).setdefault(draw.choice(_NAMES), copy.deepcopy(value))


def _rename(lines: list[Line], draw: Draw) -> None:
    line = draw.choice(lines)
    if line:
        line[draw.choice(_NAMES)] = line.pop(draw.choice(list(line)))


def _nest(lines: list[Line], draw: Draw) -> None:
    line = draw.choice(lines)
    inner = {name: line.pop(name) for name in list(line) if draw.random() < 0.5}
    line[draw.choice(["data", "payload"])] = inner


def _call_otherwise(lines: list[Line], draw: Draw) -> None:
    draw.choice(lines)["event"] = draw.choice(_EVENTS)


def _repeat(lines: list[Line], draw: Draw) -> None:
    place = draw.randrange(len(lines))
    lines.insert(draw.randint(place, len(lines)), copy.deepcopy(lines[place]))


def _move(lines: list[Line], draw: Draw) -> None:
    lines.insert(draw.randrange(len(lines)), lines.pop(draw.randrange(len(lines))))


def _same_moment(lines: list[Line], draw: Draw) -> None:
    first = draw.randrange(len(lines))
    for line in lines[first : first + draw.choice([2, 3, 12])]:
        line["timestamp"] = _T + 1


def _other_times(lines: list[Line], draw: Draw) -> None:
    writers: list[Callable[[float], Any]] = [
        *(int, str, lambda at: at * 1000, lambda at: f"2026-02-16T11:20:{at % 60:06.3f}Z", lambda at: at - _T)
    ]
    write = draw.choice(writers)
    some = draw.random() < 0.5
    for line in lines:
        if isinstance(line.get("timestamp"), float) and not (some and draw.random() < 0.7):
            line["timestamp"] = write(line["timestamp"])


def _of_another(lines: list[Line], draw: Draw) -> None:
    draw.choice(lines)[draw.choice(["flow", "agent", "conversation_id"])] = draw.choice(["c0", "c1", "other", 3])


def _leave_out(lines: list[Line], draw: Draw) -> None:
    del lines[draw.randrange(len(lines))]


_LINE_FAULTS = [
    *(_replace, _replace, _drop, _drop_everywhere, _add, _add, _rename, _nest, _call_otherwise, _repeat, _move),
    *(_same_moment, _other_times, _of_another, _leave_out),
]


# What is wrong with texts.


def _text(change: Callable[[bytes, Draw], bytes]) -> Callable[[list[bytes], Draw], None]:
    def fault(texts: list[bytes], draw: Draw) -> None:
        place = draw.randrange(len(texts))
        texts[place] = change(texts[place], draw)

    return fault


def _put_in(text: bytes, draw: Draw) -> bytes:
    junk = [b"NaN", b"-Infinity", b"1e999", b'"\\ud800"', b'"\\u0000"', b'"\x01"', b'"\xff"', b"9" * 400, b'"\\u00e9"']
    at = text.rfind(b": ", 0, draw.randrange(len(text) + 1) + 2) + 2
    end = min((place for place in (text.find(b", ", at), text.find(b"}", at)) if place >= 0), default=len(text))
    return text[:at] + draw.choice(junk) + text[end:]


def _twice_a_key(text: bytes, draw: Draw) -> bytes:
    keys = [b'"event": "error"', b'"conversation_id": "c1"', b'"state": "greet"', b'"seq": 1', b'"st\\u0061te": "x"']
    return text.removesuffix(b"}") + b", " + draw.choice(keys) + b"}"


_TEXT_FAULTS: list[Callable[[list[bytes], Draw], None]] = [
    _text(_put_in),
    _text(_put_in),
    _text(_twice_a_key),
    _text(lambda text, draw: text[: draw.randrange(len(text) + 1)]),
    _text(lambda text, draw: text + draw.choice([text, b" 1", b" \t ", b"\x0c", b",", b"{}"])),
    _text(lambda text, draw: draw.choice([b" ", b"\xef\xbb\xbf", b"\x0b", b"[", b"#"]) + text),
    _text(lambda text, draw: text.replace(b", ", draw.choice([b",\n", b",\r", b",\n\n", b" ,\t"]), 1)),
    _text(lambda text, draw: text.replace(b"e", draw.choice([b"\xff", b"\\u0065", b"\x00", b"\\", b"\\ud83d"]), 1)),
    _text(lambda text, _: b"[%b]" % text),
    _text(lambda _, draw: draw.choice([b"", b"  ", b"null", b"[]", b"{}", b"7", b'"text"', b"[" * 3000])),
]
