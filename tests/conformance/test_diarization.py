"""RTTM files that others made: against themselves, with other names, without a speaker, in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from convoscope.analysis.benchmark.audio import DiarizationSettings, SpeakerTime, compare_speech, read_rttm


def recordings(path: Path) -> list[list[SpeakerTime]]:
    """The speech of each recording that a file is of."""
    lines = (line.split() for line in path.read_text().splitlines())
    names = {fields[1] for fields in lines if len(fields) > 1 and fields[0] == "SPEAKER"}
    return [speech for name in sorted(names) if (speech := read_rttm(path, name))]


def covered(speech: Iterable[SpeakerTime]) -> int:
    """The time in which at least one of these speaks, counted once."""
    time = last = 0
    for one in sorted(speech, key=lambda one: one.start):
        time += max(0, one.end - max(one.start, last))
        last = max(last, one.end)
    return time


def test_every_reference_is_scored_as_it_must_be(
    shared: Callable[[str], Path], ran: Callable[[str, int], None]
) -> None:
    references = [one for path in sorted(shared("data/diarization").glob("*.rttm")) for one in recordings(path)]
    for reference in references:
        assert compare_speech(reference, reference).errors == 0
        renamed = [one._replace(speaker=f"x{one.speaker}") for one in reference]
        assert compare_speech(renamed, reference)[:3] == (0, 0, 0)
        silence = compare_speech([], reference)
        assert silence.missed == silence.errors == silence.total
        assert set(silence.jaccard) == {1}
        first = reference[0].speaker
        times = {
            name: covered(one for one in reference if one.speaker == name)
            for name in {one.speaker for one in reference}
        }
        alone = [one for one in reference if one.speaker == first]
        assert compare_speech(alone, reference).missed == sum(times.values()) - times[first]
        # Everybody is one: where several speak at once, all but one are missed. The one is taken for who speaks
        # most: where that one is silent, the time is confused.
        merged = compare_speech([one._replace(speaker="x") for one in reference], reference)
        assert merged.missed == sum(times.values()) - covered(reference)
        assert merged.confusion == covered(reference) - max(times.values())
        late = [one._replace(start=one.start + 100_000, end=one.end + 100_000) for one in reference]
        assert compare_speech(late, reference).errors > 0
        assert compare_speech(late, reference, DiarizationSettings(collar=0.2)).errors == 0
    ran("recordings of RTTM files", len(references))
