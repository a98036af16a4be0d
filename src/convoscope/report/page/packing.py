"""The conversations in the page: a list of them, and the worst in full, as many as there is room for."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from convoscope.analysis.words import counted
from convoscope.report.page.call import CallMaker, CallRank
from convoscope.report.page.index import MAX_LISTED, Index, ListFacts, make_index
from convoscope.runs.conversations import records
from convoscope.runs.ranking import Ranking
from convoscope.runs.run import Run

_MB = 1_000_000
_MAX_ONE = 2 * _MB
_MAX_UNFOLDED = 64 * _MB
"""What a search would have to unfold."""
_WORDS = 600
"""Letters that say how much of the run is here."""
_TAGS = 60
"""Letters around each packed conversation."""


class Packed(NamedTuple):
    """The list and the conversations in full, packed, and how much of the run that is."""

    listing: str
    stories: dict[int, str]
    """By their place in the list."""
    listed: int
    bounds: list[str]


def pack(run: Run, facts: ListFacts, ranking: Ranking, wanted: int, room: int) -> Packed:
    """The list first, in at most half of the room; then the worst conversations that fit."""
    total = len(ranking.order)
    listed = min(MAX_LISTED, total)
    index = make_index(run, facts, ranking, ranking.order[:listed].tolist())
    folded = _index(index, ())
    while len(folded) > room // 2 and listed > 1:
        listed //= 2
        index = make_index(run, facts, ranking, ranking.order[:listed].tolist())
        folded = _index(index, ())
    wanted = min(wanted, total)
    # The list also says which are here in full: room for all that were asked for.
    folded = _index(index, range(min(wanted, listed)))
    stories = _fill(run, facts, ranking, min(wanted, listed), room - len(folded) - _WORDS)
    folded = _index(index, list(stories))
    return Packed(folded, stories, listed, _bounds(facts.noun, total, listed, len(stories)))


def _index(index: Index, full: Sequence[int]) -> str:
    return fold(msgspec.json.encode({"index": index, "full": list(full)}))


def _fill(run: Run, facts: ListFacts, ranking: Ranking, wanted: int, room: int) -> dict[int, str]:
    """The worst conversations in full, but those that are too large for what is left."""
    stories: dict[int, str] = {}
    unfolded = _MAX_UNFOLDED
    for place, body in _stories(run, facts, ranking, wanted):
        folded = fold(body)
        if len(folded) + _TAGS <= min(room, _MAX_ONE) and len(body) <= unfolded:
            room -= len(folded) + _TAGS
            unfolded -= len(body)
            stories[place] = folded
    return stories


def _stories(run: Run, facts: ListFacts, ranking: Ranking, wanted: int) -> Iterator[tuple[int, bytes]]:
    calls = CallMaker(run.summary, facts.noun)
    for place, record in enumerate(records(run, ranking.order[:wanted].tolist())):
        number = record.number
        rank = CallRank(facts.outcomes[number], facts.why[number], ranking.because(number))
        yield place, msgspec.json.encode(calls.call(record, rank))


def _bounds(noun: str, total: int, listed: int, full: int) -> list[str]:
    """How much of the run the page holds, in sentences."""
    if full == total:
        return [f"All {counted(total, noun)} {'is' if total == 1 else 'are'} here in full."]
    lines = [f"Words of {full:,} of {counted(total, noun)} are in this page; `convoscope show ID` has the rest."]
    if listed < total:
        lines.append(
            f"The list holds the worst {listed:,}; {total - listed:,} are left out, `convoscope sql` finds them."
        )
        lines.append("Figures, causes and counts are over all.")
    lines.append("`convoscope report --conversations N --max-mb M` makes a larger page.")
    return lines


def fold(body: bytes) -> str:
    """Packed, and in letters that mean nothing to HTML."""
    return base64.b64encode(gzip.compress(body, compresslevel=6, mtime=0)).decode()
