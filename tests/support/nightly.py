"""Invented chats of many nights: who asks what, how it ended, how long the replies took, and by which version."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

FIRST = date(2026, 10, 18)


def chat(day: date, number: int, *, resolved: bool, wait: float, version: str, **fields: Any) -> dict[str, Any]:
    """A chat of one question and one reply, as the API of a model logs it."""
    began = datetime.combine(day, time(9), UTC) + timedelta(minutes=number)
    asked = began.timestamp()
    messages = [
        {"role": "user", "content": f"Where is my parcel {number}?", "timestamp": asked},
        {"role": "assistant", "content": f"Parcel {number} comes tomorrow.", "timestamp": asked + wait},
    ]
    metadata = {"version": version, "resolved": resolved, **fields}
    return {"id": f"{day:%m%d}-{number:03d}", "messages": messages, "metadata": metadata}


def write_night(folder: Path, day: date, chats: list[dict[str, Any]]) -> Path:
    """A file of chats, named by its day."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{day.isoformat()}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in chats))
    return file


def make_night(
    day: date, seed: int, *, count: int, share: float, wait: float, versions: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Chats of which about this share is resolved, with about this wait, by these versions."""
    lot = random.Random(seed)
    names = list(versions)
    return [
        chat(
            day,
            number,
            resolved=lot.random() < share,
            wait=round(lot.lognormvariate(0, 0.5) * wait, 2),
            version=lot.choices(names, [versions[name] for name in names])[0],
        )
        for number in range(count)
    ]
