"""Databases of real records: the hashes that came with them are found again, and what changed can be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from convoscope.conversation.databases import canonical, changes, database_hash, is_hash_of
from support.shared_data import content_hash

LOOKED_AT = ("01beab3859c9", "ee85fa701b06")
"""The databases of the call whose changes were written down by hand."""


def test_stored_hashes(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    checked = 0
    for folder in sorted(shared("data/voice-logs").iterdir()):
        if not (folder / "result.json").is_file():
            continue
        result = json.loads((folder / "result.json").read_text())
        for moment in ("initial", "final"):
            database, stored = folder / f"{moment}_scenario_db.json", result.get(f"{moment}_scenario_db_hash")
            content = json.loads(database.read_text()) if database.is_file() else None
            if isinstance(content, dict) and stored:
                assert is_hash_of(stored, content), f"{folder.name}, {moment}"
                assert not is_hash_of(stored, {**content, "_current_date": "1970-01-01"}), (
                    f"{folder.name}, {moment}, with another date"
                )
                checked += 1
    ran("stored database hashes", checked)


def test_what_a_real_call_changed(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    pairs = 0
    for first in sorted(shared("data/voice-logs").glob("*/initial_scenario_db.json")):
        last = first.with_name("final_scenario_db.json")
        if not last.is_file():
            continue
        before, after = json.loads(first.read_text()), json.loads(last.read_text())
        assert bool(changes(before, after)) == (database_hash(before) != database_hash(after))
        assert changes(after, canonical(after)) == ()
        if (content_hash(before), content_hash(after)) == LOOKED_AT:
            # One flight was given up, one was taken: its seat, the status of both, and of the reservation.
            assert [str(change)[:80] for change in changes(before, after)] == [
                "journeys.FL_SK621_20260320.segments.0.available_seats.main_cabin: 18 → 19",
                "journeys.FL_SK703_20260325.segments.0.available_seats.main_cabin: 22 → 21",
                'reservations.ZK3FFW.bookings.FL_SK621_20260320.status: "confirmed" → "cancelled"',
                'reservations.ZK3FFW.bookings.FL_SK703_20260325: added {"fare_class": "main_cabin',
                'reservations.ZK3FFW.status: "confirmed" → "changed"',
            ]
        pairs += 1
    ran("databases before and after", pairs)
