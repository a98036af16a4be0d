"""Data that others made, taken as it is found: by what a file holds, not by what it is called."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

LEAST_CUT = 60
"""A script that cuts a text keeps at least so much of it. A shorter one is whole."""


def facts(folder: Path) -> dict[str, dict[str, Any]]:
    """What a script counted, for each file that is there."""
    path = folder / "facts.json"
    if not path.is_file():
        pytest.skip(f"no conformance data: {folder} has no facts.json")
    held: dict[str, dict[str, Any]] = json.loads(path.read_text())
    return {name: counted for name, counted in held.items() if (folder / name).is_file()}


def begins_with(text: object, fact: str) -> bool:
    """Whether a text is what was noted of it: all of it, or its beginning where that was cut."""
    said, noted = str(text).strip(), fact.strip()
    return said == noted or (len(fact) >= LEAST_CUT and said.startswith(noted))


def values_of(path: Path) -> list[Any]:
    """What a file of JSON or of JSON lines holds; a list is its elements."""
    text = path.read_text(encoding="utf-8-sig")
    try:
        value = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return value if isinstance(value, list) else [value]


def content_hash(value: Any) -> str:
    """What tells a value that is known by hand from others of its name."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def multiwoz_files(folder: Path) -> dict[Path, dict[str, Any]]:
    """The files of MultiWOZ 2.1 dialogues, by what they hold."""
    files = {path: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    return {
        path: held for path, held in files.items() if isinstance(held, dict) and all(map(_is_dialogue, held.values()))
    }


def _is_dialogue(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("log"), list)


def acts_of(entry: dict[str, Any]) -> dict[str, list[Any]]:
    """The acts of an entry; where nobody annotated it, a word says so."""
    acts = entry.get("dialog_act")
    return acts if isinstance(acts, dict) else {}
