"""The conversations in the page: a list of them, and the worst in full, as many as there is room for."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from convoscope.analysis.words import counted, place_text
from convoscope.report.page.index import Index, make_index
from convoscope.report.story import story, worth_telling
from convoscope.runs.conversations import records
from convoscope.runs.ranking import Ranking
from convoscope.runs.run import Run

MAX_LISTED = 20_000
"""Conversations that the list knows; what lies behind them is in the figures and charts all the same."""
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
    bounds: str


def pack(run: Run, ranking: Ranking, wanted: int, room: int) -> Packed:
    """The list first, in at most half of the room; then the worst conversations that fit."""
    total = len(ranking.order)
    listed = min(MAX_LISTED, total)
    index = make_index(run, ranking, ranking.order[:listed].tolist())
    folded = _index(run, ranking, index, ())
    while len(folded) > room // 2 and listed > 1:
        listed //= 2
        index = make_index(run, ranking, ranking.order[:listed].tolist())
        folded = _index(run, ranking, index, ())
    wanted = min(wanted, total)
    # The list also says which are here in full: room for all that were asked for.
    folded = _index(run, ranking, index, range(min(wanted, listed)))
    stories = _fill(run, ranking, min(wanted, listed), room - len(folded) - _WORDS)
    folded = _index(run, ranking, index, list(stories))
    return Packed(folded, stories, listed, _bounds(total, listed, wanted, len(stories)))


def _index(run: Run, ranking: Ranking, index: Index, full: Sequence[int]) -> str:
    about = {"name": run.name, "place": place_text(run), "conversations": len(ranking.order), "full": list(full)}
    return fold(msgspec.json.encode({"run": about, "index": index}))


def _fill(run: Run, ranking: Ranking, wanted: int, room: int) -> dict[int, str]:
    """The worst conversations in full, but those that are too large for what is left."""
    stories: dict[int, str] = {}
    unfolded = _MAX_UNFOLDED
    for place, body in _stories(run, ranking, wanted):
        folded = fold(body)
        if len(folded) + _TAGS <= min(room, _MAX_ONE) and len(body) <= unfolded:
            room -= len(folded) + _TAGS
            unfolded -= len(body)
            stories[place] = folded
    return stories


def _stories(run: Run, ranking: Ranking, wanted: int) -> Iterator[tuple[int, bytes]]:
    worth = worth_telling(run.summary)
    for place, record in enumerate(records(run, ranking.order[:wanted].tolist())):
        yield place, msgspec.json.encode(story(record, run.summary, ranking.because(record.number), worth))


def _bounds(total: int, listed: int, wanted: int, full: int) -> str:
    """How much of the run the page holds, in words."""
    if full == total:
        return f"All {counted(total, 'conversation')} {'is' if total == 1 else 'are'} here in full."
    others = "all others with their scores" if listed == total else f"the worst {listed:,} with their scores"
    if full:
        verb = "is" if full == 1 else "are"
        words = f"{full:,} of {counted(total, 'conversation')} {verb} here in full, the worst first, {others}"
    else:
        words = f"None of {counted(total, 'conversation')} is here in full; the list has the scores of "
        words += "all" if listed == total else f"the worst {listed:,}"
    hint = "`convoscope report --conversations N` makes a page with more"
    if full < wanted:
        words += f". {wanted - full:,} of the worst {wanted:,} did not fit, or were too large for any page"
        hint = "`convoscope report --max-mb N` makes a larger page, and `convoscope show` prints any of them"
    if listed < total:
        words += f". {total - listed:,} more are left out of the list; `convoscope show` prints any of them by its id, "
        words += "and `convoscope sql` finds them"
    return f"{words}. Figures and charts are over all. {hint}."


def fold(body: bytes) -> str:
    """Packed, and in letters that mean nothing to HTML."""
    return base64.b64encode(gzip.compress(body, compresslevel=6, mtime=0)).decode()
