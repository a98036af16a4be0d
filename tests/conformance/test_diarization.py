"""RTTM files that others made: against themselves, with other names, without a speaker, in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from convoscope.analysis.benchmark.diarization import DiarizationSettings, compare_speech, read_rttm


def test_every_reference_is_scored_as_it_must_be(
    shared: Callable[[str], Path], ran: Callable[[str, int], None]
) -> None:
    places = sorted(shared("data/diarization").glob("*.rttm"))
    for place in places:
        reference = read_rttm(place)
        assert compare_speech(reference, reference).errors == 0
        renamed = [one._replace(speaker=f"x{one.speaker}") for one in reference]
        assert compare_speech(renamed, reference)[:3] == (0, 0, 0)
        silence = compare_speech([], reference)
        assert silence.missed == silence.errors == silence.total
        assert set(silence.jaccard) == {1}
        first = reference[0].speaker
        alone = [one for one in reference if one.speaker == first]
        without = sum(one.end - one.start for one in reference if one.speaker != first)
        assert compare_speech(alone, reference).missed == without
        # Everybody is one: the time of all but the one who speaks most is confused, nothing is missed.
        merged = compare_speech([one._replace(speaker="x") for one in reference], reference)
        times = {
            name: sum(one.end - one.start for one in reference if one.speaker == name)
            for name in {one.speaker for one in reference}
        }
        assert (merged.missed, merged.confusion) == (0, sum(times.values()) - max(times.values()))
        late = [one._replace(start=one.start + 100_000, end=one.end + 100_000) for one in reference]
        assert compare_speech(late, reference).errors > 0
        assert compare_speech(late, reference, DiarizationSettings(collar=0.2)).errors == 0
    ran("RTTM files", len(places))
