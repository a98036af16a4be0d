"""Every kind of log in `data/formats`: what a script counted in a file is what reading gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.format_facts import NOT_READING, RULES, decide
from support.format_reading import NO_CONTENT, Reading

Shared = Callable[[str], Path]
Ran = Callable[[str, int], None]


class Row(NamedTuple):
    """What came out of one kind."""

    kind: str
    files: int
    right: int
    compared: int
    refused: int
    wrong: list[str]


def _facts(folder: Path) -> dict[str, dict[str, Any]]:
    """The facts of the logs of a kind. Files in folders inside are no logs: they hold what others made of one."""
    held: dict[str, dict[str, Any]] = json.loads((folder / "facts.json").read_text())
    return {
        name: facts for name, facts in held.items() if (folder / name).parent == folder and (folder / name).exists()
    }


def _compared(reading: Reading, kind: str) -> Iterator[tuple[str, bool]]:
    for key, fact in reading.facts.items():
        rule = decide(kind, key)
        if callable(rule):
            is_right = rule(reading, fact)
            if is_right is not None:
                yield key, is_right


def _row(folder: Path) -> Row:
    right = compared = refused = 0
    wrong: list[str] = []
    facts = _facts(folder)
    for name, counted in facts.items():
        reading = Reading(folder / name, counted)
        found = list(_compared(reading, folder.name))
        if reading.refusal and all(is_right for _, is_right in found):
            # Nothing was said in it, the facts say: the refusal must give that reason. Nothing counts as right.
            refused += 1
            if not any(words in reading.refusal for words in NO_CONTENT):
                wrong.append(f"{name}: refused without a reason that fits: {reading.refusal}")
            continue
        compared += len(found)
        right += sum(is_right for _, is_right in found) if not reading.refusal else 0
        wrong += [f"{name}: {key}" for key, is_right in found if not is_right or reading.refusal]
    return Row(folder.name, len(facts), right, compared, refused, wrong)


def _folders(root: Path) -> list[Path]:
    return sorted(path.parent for path in root.glob("*/facts.json"))


@pytest.fixture(scope="module")
def rows(shared: Shared) -> list[Row]:
    return [_row(folder) for folder in _folders(shared("data/formats"))]


def test_every_fact_is_decided(shared: Shared, ran: Ran) -> None:
    keys = {
        (folder.name, key)
        for folder in _folders(shared("data/formats"))
        for facts in _facts(folder).values()
        for key in facts
    }
    assert [f"{kind}.{key}" for kind, key in sorted(keys) if decide(kind, key) is None] == []
    ran("facts that are about reading", len({key for kind, key in keys if callable(decide(kind, key))}))
    assert not RULES.keys() & NOT_READING.keys()


def test_facts(rows: list[Row], ran: Ran) -> None:
    for row in rows:
        ran(f"{row.kind}: {row.files} files, {row.refused} refused, {row.right} facts right of", row.compared or 1)
    assert [f"{row.kind}/{each}" for row in rows for each in row.wrong] == []
