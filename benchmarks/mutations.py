"""Good items made wrong at random, read by the whole border: no exception, and nothing lost without a warning."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

_ROOT = Path(__file__).parent.parent
_EXAMPLES = _ROOT / "examples" / "standard-data" / "items.jsonl"

Draw = random.Random
Place = tuple[Any, Any]
"""A container, and the key or index of a value in it."""


def run(count: int, seed: int = 1) -> None:
    """Print how many of `count` mutated payloads raised, lost a value, or came back other than they went."""
    sys.path.insert(0, str(_ROOT / "tests"))
    from convoscope.standard_data import StandardData, standard_data_of, tidy, to_conversation
    from standard_data.payloads_made_up import Marker, is_found, texts_in  # type: ignore[import-not-found]

    draw = random.Random(seed)
    good = [json.loads(line) for line in _EXAMPLES.read_text(encoding="utf-8").splitlines() if _is_object(line)]
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


def mutated(item: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """A copy of an item in which one to four things are wrong."""
    payload = copy.deepcopy(item)
    for _ in range(draw.randint(1, 4)):
        places = list(_places(payload))
        if places:
            draw.choice(_MUTATIONS)(*draw.choice(places), draw)
    return payload


def _places(value: Any) -> Iterator[Place]:
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
        name = draw.choice(
            ["question", "answer", "item_type", "expected_output", "conversation", "label", "unheard_of"]
        )
        holder[draw.choice([name, f"{key}_", key.upper(), f"a.{key}"])] = holder.pop(key)


def _double(holder: Any, key: Any, draw: Draw) -> None:
    if isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[draw.choice(["question", "input_text", "output_text", "trace_data", f"{key}2"])] = holder[key]


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


_MUTATIONS: list[Callable[[Any, Any, Draw], None]] = [_replace, _replace, _remove, _wrap, _write_out, _rename, _double]
