"""Databases of real records: the hashes that came with them are found again, and what changed can be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from convoscope.conversation.databases import canonical, changes, database_hash, is_hash_of


def test_stored_hashes(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    checked = 0
    for folder in sorted(shared("data/voice-logs").iterdir()):
        if not (folder / "result.json").is_file():
            continue
        result = json.loads((folder / "result.json").read_text())
        for moment in ("initial", "final"):
            database, stored = folder / f"{moment}_scenario_db.json", result.get(f"{moment}_scenario_db_hash")
            if database.is_file() and stored:
                content = json.loads(database.read_text())
                assert is_hash_of(stored, content), f"{folder.name}, {moment}"
                content["_current_date"] = "1970-01-01"
                assert not is_hash_of(stored, content), f"{folder.name}, {moment}, with another date"
                checked += 1
    ran("stored database hashes", checked)


def test_what_a_real_call_changed(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    pairs = 0
    for first in sorted(shared("data/voice-logs").glob("*/initial_scenario_db.json")):
        before = json.loads(first.read_text())
        after = json.loads(first.with_name("final_scenario_db.json").read_text())
        assert bool(changes(before, after)) == (database_hash(before) != database_hash(after))
        assert changes(after, canonical(after)) == ()
        if first.parent.name == "real_record_1.1.2":
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
