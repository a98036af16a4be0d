"""Good records made wrong at random: no exception, nothing lost without a warning, and two ways of reading agree.

Items go through the whole border. Records of each format of `FORMATS` are read by the quick, typed way and by the
tolerant one, which is the definition: conversations, notes, problems and warnings have to be the same.
"""

from __future__ import annotations

import copy
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from benchmarks.chats import chats
from benchmarks.items import items
from convoscope.conversation import to_json
from convoscope.ingest.discover import Input
from convoscope.ingest.pieces import InputPiece
from convoscope.ingest.reader import Reader, installed
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import Partition, Read, read_partition

_ROOT = Path(__file__).parent.parent
_ITEMS = _ROOT / "examples" / "standard-data" / "items.jsonl"
_CHATS = _ROOT / "examples" / "openai-chat" / "support.jsonl"

Draw = random.Random
Place = tuple[Any, Any]
"""A container, and the key or index of a value in it."""


def run(count: int, seed: int = 1) -> None:
    """Print how many of `count` mutated payloads raised, lost a value, or came back other than they went."""
    sys.path.insert(0, str(_ROOT / "tests"))
    from convoscope.views.standard_data import StandardData, standard_data_of, tidy, to_conversation
    from support.made_up_payloads import Marker, is_found, texts_in  # type: ignore[import-not-found]

    draw = random.Random(seed)
    good = _objects_in(_ITEMS)
    outcome: Counter[str] = Counter()
    began = perf_counter()
    for _ in range(count):
        payload = mutated(draw.choice(good), draw)
        marker = Marker()
        marked = marker.mark(payload)
        try:
            item = StandardData.model_validate(payload)
            tidied = tidy(marked)
            conversation = to_conversation([tidy(payload)], id="mutated")
            (back,) = standard_data_of(conversation)
        except Exception as error:
            outcome["raised"] += 1
            print(f"  {type(error).__name__}: {error} for {json.dumps(payload)[:300]}")
            continue
        blob = "\n".join(texts_in([tidied.fields, tidied.unknown, [one.value for one in tidied.warnings]]))
        outcome["lost a value"] += not all(is_found(leaf, blob) for leaf in marker.leaves)
        outcome["came back other than it went"] += back != item or back.warnings != item.warnings
        outcome["with a warning"] += bool(item.warnings)
        outcome["with unknown keys"] += bool(item.unknown)
    told = ", ".join(f"{outcome[name]:,} {name}" for name in ("raised", "lost a value", "came back other than it went"))
    print(f"{count:,} mutated payloads in {perf_counter() - began:.1f} s: {told}")
    print(f"  {outcome['with a warning']:,} had a warning, {outcome['with unknown keys']:,} had unknown keys\n")


def run_both_ways(count: int, seed: int = 1) -> None:
    """Print in how many of `count` mutated records of each format the two ways of reading come to the same."""
    for format in FORMATS:
        began = perf_counter()
        differences = sum(1 for _ in disagreements(format, count, seed))
        print(f"{count:,} mutated records of {format.name} read both ways in {perf_counter() - began:.1f} s:")
        print(f"  {differences:,} were read differently\n")


class Outcome(NamedTuple):
    """All that reading says."""

    reads: list[tuple[bytes, bytes]]
    """Each conversation with its notes and its origin, as JSON."""
    report: bytes


class Format(NamedTuple):
    """A format that is read in two ways."""

    name: str
    seeds: Callable[[], Sequence[Any]]
    """Good records: JSON values, of which copies are made wrong."""
    read: Callable[[Sequence[bytes], bool], Outcome]
    """Write records, which are JSON text more or less, as this format has them, and read them, typed or not."""


class Disagreement(NamedTuple):
    """Text that the two ways read differently."""

    text: bytes
    typed: Outcome
    tolerant: Outcome


def disagreements(format: Format, count: int, seed: int) -> Iterator[Disagreement]:
    """The records, of `count` mutated ones, that the two ways read differently."""
    draw = random.Random(f"{format.name} {seed}")
    seeds = format.seeds()
    for _ in range(0, count, _TOGETHER):
        texts = [mutated_text(draw.choice(seeds), draw) for _ in range(_TOGETHER)]
        if format.read(texts, True) != format.read(texts, False):
            each = [Disagreement(one, format.read([one], True), format.read([one], False)) for one in texts]
            wrong = [one for one in each if one.typed != one.tolerant]
            together = b"\n".join(texts)
            yield from wrong or [Disagreement(together, format.read(texts, True), format.read(texts, False))]


_TOGETHER = 25


def read_lines(reader: str) -> Callable[[Sequence[bytes], bool], Outcome]:
    """How records are read that stand for themselves, one a line."""

    def read(texts: Sequence[bytes], typed: bool) -> Outcome:
        found = Input("mutated.jsonl", "mutated.jsonl", reader, "lines", "record", "")
        report = ReadReport()
        partition = Partition(0, (InputPiece(found, 0, data=b"\n".join(texts)),))
        if typed:
            reads = list(read_partition(partition, report))
        else:
            with tolerant(installed().by_name[reader]):
                reads = list(read_partition(partition, report))
        encode = msgspec.json.encode
        return Outcome([(_written(one), encode((one.notes, one.origin))) for one in reads], encode(report))

    return read


@contextmanager
def tolerant(reader: Reader) -> Iterator[None]:
    """Meanwhile the reader reads every record by `build`."""
    reader.typed, before = None, reader.typed
    try:
        yield
    finally:
        reader.typed = before


def _written(read: Read) -> bytes:
    try:
        return to_json(read.conversation, finite=read.exact)
    except (ValueError, TypeError, RecursionError) as error:
        return repr(error).encode()


@cache
def _objects_in(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if _is_object(line)]


def _short_chats(count: int) -> Iterator[Any]:
    """Three messages with a tool call and no tools: what is made wrong in them is mostly something that counts."""
    for chat in chats(count):
        messages: Any = chat["messages"]
        first = next(place for place, one in enumerate(messages) if "tool_calls" in one)
        yield {"id": chat["id"], "model": chat["model"], "messages": messages[first - 1 : first + 2]}


FORMATS = [
    Format("standard-data", lambda: [*_objects_in(_ITEMS), *items(20)], read_lines("standard-data")),
    Format("openai-chat", lambda: [*_objects_in(_CHATS), *chats(10), *_short_chats(40)], read_lines("openai-chat")),
]


def mutated_text(value: Any, draw: Draw) -> bytes:
    """A copy of a record as JSON text, in which some things are wrong; one in ten is right."""
    right = draw.random() < 0.1
    payload = value if right else mutated(value, draw) if draw.random() < 0.8 else copy.deepcopy(value)
    separators = draw.choice([(",", ":"), (", ", ": "), (" ,\t", " :  ")])
    text = json.dumps(payload, ensure_ascii=draw.random() < 0.5, separators=separators).encode("utf-8", "surrogatepass")
    if not right and draw.random() < 0.5:
        for _ in range(draw.randint(1, 2)):
            text = draw.choice(_DAMAGES)(text, draw)
    return text


def _somewhere(text: bytes, draw: Draw, marks: Sequence[bytes]) -> int:
    """Just behind one of these marks, where it is in the text; else anywhere."""
    found = [at for at in range(1, len(text)) if text[at - 1 : at] in marks]
    return draw.choice(found) if found else draw.randint(0, len(text))


def _into_a_string(text: bytes, draw: Draw) -> bytes:
    at = _somewhere(text, draw, [b" ", b'"'])
    return text[:at] + draw.choice(_IN_STRINGS) + text[at:]


def _as_a_value(text: bytes, draw: Draw) -> bytes:
    at = _somewhere(text, draw, [b":"])
    end = min([place for mark in (b",", b"}", b"]") if (place := text.find(mark, at)) >= 0], default=len(text))
    return text[:at] + draw.choice(_AS_VALUES) + text[end:]


def _twice(text: bytes, draw: Draw) -> bytes:
    """A name that stands in an object twice."""
    names = _NAME.findall(text)
    name = draw.choice(names) if names else b'"id"'
    if draw.random() < 0.2:
        name = b'"\\u%04x' % name[1] + name[2:]
    at = _somewhere(text, draw, [b"{"])
    pair = name + b":" + draw.choice([*_AS_VALUES, b'"\xff"', b'"\\ud800"', b'""', b'"again"'])
    if draw.random() < 0.5:
        return text[:at] + pair + b"," + text[at:]
    end = text.rfind(b"}")
    return text[:end] + b"," + pair + text[end:]


def _around(text: bytes, draw: Draw) -> bytes:
    before, after = draw.choice(_AROUND)
    return before + text + after


def _cut(text: bytes, draw: Draw) -> bytes:
    return text[: draw.randint(0, len(text))]


def _flip(text: bytes, draw: Draw) -> bytes:
    at = draw.randrange(max(1, len(text)))
    return text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]


def _remove_bytes(text: bytes, draw: Draw) -> bytes:
    at = draw.randrange(max(1, len(text)))
    return text[:at] + text[at + draw.randint(1, 20) :]


_NAME = re.compile(rb'"[a-z_]+"(?=\s*:)')
_IN_STRINGS = [
    *[b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\x07", b"\t", b"\x1e", b"\x7f", b"\xc2\x85", b"\xe2\x80\xa8"],
    *[
        b"\\ud800",
        b"\\udc00\\ud800",
        b"\\u0000",
        b"\\x",
        b"\\",
        b'"',
        b"\xef\xbb\xbf",
        b"\xf0\x9f\x98\x80",
        b"\\ud83d\\ude00",
    ],
]
_AS_VALUES = [
    *[
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"-1e999",
        b"1e308",
        b"1E5",
        b"01",
        b"-0.0",
        b"9" * 400,
        b"9" * 5000,
        b"1" + b"0" * 25,
    ],
    *[
        b"null",
        b"true",
        b"tru",
        b"[]",
        b"{}",
        b"[1,]",
        b'{"a":}',
        b"[" * 3000,
        b"1700000000",
        b"1.7e9",
        b"1700000000000",
    ],
    *[
        b"[null]",
        b'[{"role":"user"}]',
        b'{"a":NaN}',
        b'"[1, NaN]"',
        b'"{\\"a\\": NaN}"',
        b'"{broken"',
        b'"Error: no"',
        b"3.5",
    ],
]
_AROUND = [
    *[
        (b"\xef\xbb\xbf", b""),
        (b"  ", b"\t"),
        (b"", b"\r"),
        (b"\x0b", b"\x0c"),
        (b"", b"x"),
        (b"", b"{}"),
        (b"[", b"]"),
    ],
    *[(b"[", b"]"), (b"\n\n", b"\n"), (b"", b"\n  \r\n"), (b"\x00", b""), (b"", b"\x1e{}")],
]
_DAMAGES: list[Callable[[bytes, Draw], bytes]] = [
    *[_into_a_string, _as_a_value, _as_a_value, _twice, _twice, _around, _cut, _flip, _remove_bytes],
]


def mutated(item: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """A copy of an item in which one to four things are wrong."""
    payload = copy.deepcopy(item)
    for _ in range(draw.randint(1, 4)):
        held = list(places(payload))
        if held:
            draw.choice(_MUTATIONS)(*draw.choice(held), draw)
    return payload


def places(value: Any) -> Iterator[Place]:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict | list):
            for key, inner in one.items() if isinstance(one, dict) else enumerate(one):
                yield one, key
                pending.append(inner)


_JUNK: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        1e300,
        10**25,
        1763200000250,
        "",
        "   ",
        "NaN",
        "true",
        "[1, 2",
        '{"a": 1}',
        "007",
        "1763200000",
    ),
    *(
        [
            "tool",
            "system",
            "Error: it broke",
            '{"status": "failed"}',
            " [1] ",
            "1e999",
            "conversational",
        ]
    ),
    *([], {}, [None], [[1]], {"a": {"b": []}}, ["text", 3, {"x": 1}], "2026-02-30T99:00", "1763200000"),
]


def _replace(holder: Any, key: Any, draw: Draw) -> None:
    holder[key] = copy.deepcopy(draw.choice(_JUNK))


def _remove(holder: Any, key: Any, _: Draw) -> None:
    del holder[key]


def _wrap(holder: Any, key: Any, draw: Draw) -> None:
    value = holder[key]
    holder[key] = draw.choice([[value], {"turn_1": value}, {"value": value}, [[value]]])


def _write_out(holder: Any, key: Any, draw: Draw) -> None:
    text = json.dumps(holder[key])
    holder[key] = text if draw.random() < 0.8 else text[: len(text) // 2]


def _rename(holder: Any, key: Any, draw: Draw) -> None:
    if isinstance(holder, dict):
        name = draw.choice(_NAMES)
        holder[draw.choice([name, f"{key}_", key.upper(), f"a.{key}"])] = holder.pop(key)


_NAMES = [
    *["question", "answer", "item_type", "expected_output", "conversation", "label", "unheard_of", "items", "data"],
    *[
        "conversation_id",
        "session_id",
        "id",
        "name",
        "refusal",
        "created_at",
        "metadata",
        "tools",
        "functions",
        "model",
    ],
    *[
        "input",
        "model",
        "request",
        "choices",
        "instructions",
        "role",
        "content",
        "tool_calls",
        "function_call",
        "timestamp",
    ],
    *["agent_name", "turn_id", "stt", "attributes", "message", "speaker", "llm_metrics", "error", "trial", "parts"],
]


def _double(holder: Any, key: Any, draw: Draw) -> None:
    if isinstance(holder, list):
        holder.append(holder[key])
    else:
        name = draw.choice([*_NAMES, "question", "input_text", "output_text", "trace_data", f"{key}2"])
        holder[name] = copy.deepcopy(holder[key])


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


_MUTATIONS: list[Callable[[Any, Any, Draw], None]] = [_replace, _replace, _remove, _wrap, _write_out, _rename, _double]
