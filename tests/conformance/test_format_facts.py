"""Every kind of log in `data/formats`: what a script counted in a file is what reading gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ASSISTANT, USER
from support.format_facts import NOT_READING, RULES, decide
from support.format_reading import Reading, facts_of, folders
from support.format_table import PAGE, Row, compared, rows_of
from support.shared_data import values_of
from support.suggested_maps import MISREAD, PARTLY, REFUSED, RIGHT

Shared = Callable[[str], Path]
Ran = Callable[[str, int], None]


@pytest.fixture(scope="module")
def rows(shared: Shared) -> list[Row]:
    return rows_of(shared("data/formats"))


def test_every_fact_is_decided(shared: Shared, ran: Ran) -> None:
    keys = {
        (folder.name, key)
        for folder in folders(shared("data/formats"))
        for facts in facts_of(folder).values()
        for key in facts
    }
    assert [f"{kind}.{key}" for kind, key in sorted(keys) if decide(kind, key) is None] == []
    assert not RULES.keys() & NOT_READING.keys()
    ran("keys of facts that are compared", len({key for kind, key in keys if callable(decide(kind, key))}))
    ran(
        "keys of facts that are not about reading",
        len({key for kind, key in keys if isinstance(decide(kind, key), str)}),
    )


def test_facts(rows: list[Row], ran: Ran) -> None:
    for row in rows:
        ran(f"{row.kind}: files {row.files}, refused {row.refused}, facts right {row.right} of", row.compared or 1)
    ran("facts of all kinds that are right", sum(row.right for row in rows))
    assert [f"{row.kind}/{each}" for row in rows for each in row.wrong] == []
    assert all(row.right == row.compared for row in rows)


def test_suggested_maps(rows: list[Row], ran: Ran) -> None:
    """With the readers switched off: a mapping is right, or lacks something, or is refused; none misreads."""
    maps: Counter[str] = sum((row.maps for row in rows), Counter())
    for name in (RIGHT, PARTLY, REFUSED):
        ran(f"suggested maps, {name}", maps[name])
    assert [row.kind for row in rows if row.maps[MISREAD]] == []


def test_the_page_is_true(rows: list[Row]) -> None:
    """Of each kind that has as many files as when the page was written; `make format-facts` writes it."""
    written = {line.split(" | ")[0]: line for line in PAGE.read_text().splitlines() if line.startswith("| ")}
    for row in rows:
        line = written.get(row.written.split(" | ")[0], "")
        assert line, f"{row.kind} is not on the page"
        if line.split(" | ")[1] == str(row.files):
            assert line == row.written


def _false(fact: Any) -> Iterator[Any]:
    """Facts that are not true: one more, one less, another text."""
    if isinstance(fact, int | float) and not isinstance(fact, bool):
        yield from (fact + 1, fact + 10_000, fact - 10_000)
    elif isinstance(fact, str) and fact:
        yield from (f"1999{fact[4:]}", f"2099{fact[4:]}") if fact[:3] == "202" else (f"§{fact}",)
    elif isinstance(fact, list) and fact:
        yield from (fact[1:], [*fact, "§" if isinstance(fact[-1], str) else fact[-1]])
    elif isinstance(fact, dict):
        counts = {name: count for name, count in fact.items() if isinstance(count, int)}
        yield from ({**fact, name: count + change} for name, count in counts.items() for change in (1, -1))


def test_a_false_fact_is_noticed(shared: Shared, ran: Ran) -> None:
    """Each comparison is able to fail: of the facts of a key that were made false, some are not right."""
    noticed, changed = Counter[str](), Counter[str]()
    for folder in folders(shared("data/formats")):
        for name, counted in facts_of(folder).items():
            reading = Reading(folder / name, counted)
            for key, is_right in compared(reading, folder.name) if not reading.refusal else ():
                rule = decide(folder.name, key)
                assert callable(rule)
                wrong = [fact for fact in _false(counted[key]) if is_right]
                noticed[f"{folder.name}.{key}"] += sum(rule(reading, fact) is not True for fact in wrong)
                changed[f"{folder.name}.{key}"] += len(wrong)
    assert [key for key, count in noticed.items() if changed[key] and not count] == []
    ran("comparisons that notice a false fact", len(noticed))


def test_langfuse_reference(shared: Shared, ran: Ran) -> None:
    """What Langfuse itself makes of each observation: who says what, and which tools are called."""
    folder = shared("data/formats/langfuse")
    traces = {name: values_of(folder / name)[0] for name in facts_of(folder)}
    count = 0
    for path in sorted(folder.glob("*/*.json")):
        seen = values_of(path)[0]
        ids = set(seen)
        name = next(name for name, trace in traces.items() if ids & {one["id"] for one in trace["observations"]})
        reading = Reading(folder / name, {})
        messages = [
            message
            for sides in seen.values()
            for side in ("input", "output")
            if (sides.get(side) or {}).get("success")
            for message in sides[side]["data"]
        ]
        said = {(one.get("role"), " ".join(one["content"].split())) for one in messages if _is_text(one)}
        users = {text for role, text in said if role == "user"}
        agents = {text for role, text in said if role in ("assistant", "model")}
        assert not users or users == {" ".join(text.split()) for text in reading.said(USER)}, name
        assert agents <= {" ".join(text.split()) for text in reading.said(ASSISTANT)}, name
        called = {(call.get("name"), call.get("id")) for one in messages for call in one.get("tool_calls") or ()}
        called |= {(block["name"], block["id"]) for one in messages for block in _blocks(one) if "name" in block}
        assert Counter(tool for tool, _ in called) == Counter(call.name for call in reading.calls) or not called, name
        count += bool(said or called)
    ran("traces as Langfuse itself reads them", count)


def _is_text(message: dict[str, Any]) -> bool:
    """A text; Google's tools answer as a user, in JSON."""
    content = message.get("content")
    return isinstance(content, str) and bool(content.strip()) and not content.startswith("{")


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
