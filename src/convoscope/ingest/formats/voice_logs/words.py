"""What was sent to the speech engine, put right by the model's replies: its order, and words logged twice.

Words reach the log one by one, so that a late stamp or a moved line puts one in a wrong place, and
many share an instant. The model's replies hold the same words once and in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, groupby, pairwise
from operator import eq
from typing import NamedTuple

from convoscope.ingest.formats.voice_logs.framework import FrameworkLine, LogColumns, runs
from convoscope.ingest.formats.voice_logs.record_order import agree, by_time, steadied
from convoscope.ingest.report import Notes
from convoscope.text.folding import compact

_SPOKEN = "tts_text"
_NEAR = 12
"""Lines by which a word may be away from where the reply has it."""
_BREAK = 3
_TELLING = 12
"""Letters and digits that must be found of a reply before a place is taken for its own."""


def in_order(lines: list[FrameworkLine], replies: Sequence[str], name: str, notes: Notes) -> list[FrameworkLine]:
    """In the order, of file or of times, in which more replies are found whole."""
    times = [line.ms for line in lines]
    if agree(times):
        return lines
    sorted_by_time = [lines[place] for place in by_time(times)]
    written = [text for reply in replies if (text := compact(reply))]
    if _whole_replies(lines, written) > _whole_replies(sorted_by_time, written):
        notes.repaired("late_timestamp", f"{name}: times that contradict the order of its lines were left out")
        return [line._replace(ms=ms) for line, ms in zip(lines, steadied(times), strict=True)]
    notes.repaired("out_of_order", f"{name}: its lines were put in the order of their times")
    return sorted_by_time


def _whole_replies(lines: Sequence[FrameworkLine], written: Sequence[str]) -> tuple[int, int]:
    """How many replies are found whole, and how many of them within one turn: a word may slip over a boundary."""
    sent = _sent(lines)
    texts = [compact(run.text) for run in runs(LogColumns.of(lines)) if run.kind == _SPOKEN]
    within = sum(any(reply in text for text in texts) for reply in written)
    return sum(reply in sent for reply in written), within


def mended(
    lines: LogColumns, replies: Sequence[str], heard: Sequence[str], name: str, notes: Notes, *, moved: bool
) -> LogColumns:
    """Words where the replies have them, each once. Nothing is touched where the replies are found as they are.

    What no reply holds, a greeting say, may still be told by what the caller heard. `moved`: the
    order of the lines was in doubt.
    """
    texts = [(key, reply) for reply in replies if (key := compact(reply))]
    written = {key for key, _ in texts}
    sent = compact(lines.spoken())
    doubled = _are_doubled(lines, written)
    if not sent or not (moved or doubled or any(reply not in sent for reply in written)):
        return lines
    # Of words that were logged twice each stands beside its neighbours, and says nothing of its place.
    spoken = _Spoken(lines.lines(), () if doubled else written)
    for key, reply in texts:
        if doubled or key not in sent:
            spoken.take(key, reply)
    for text in heard if doubled or moved else ():
        if (key := compact(text)) and (doubled or key not in sent):
            spoken.take(key, text, whole=True)
    return LogColumns.of(_halved(spoken.lines(name, notes), written, name, notes))


def _sent(lines: Sequence[FrameworkLine]) -> str:
    return compact(" ".join([line.text for line in lines if line.kind == _SPOKEN]))


def _are_doubled(lines: LogColumns, written: Iterable[str]) -> bool:
    """Whether a word follows itself in an instant, and no reply has it so."""
    texts, kinds = lines.texts, lines.kinds
    again = compress(range(len(texts)), map(eq, texts, texts[1:]))
    for place in [place for place in again if kinds[place] == _SPOKEN]:
        before, after = (tuple(column[at] for column in lines) for at in (place, place + 1))
        if before == after:
            near = range(max(0, place - 2), min(len(texts), place + 4))
            around = compact(" ".join([texts[at] for at in near if kinds[at] == _SPOKEN]))
            if not any(around in reply for reply in written):
                return True
    return False


class _WordMatch(NamedTuple):
    """Places of words, in the order of a reply, and how much of the reply they are."""

    places: list[int]
    length: int
    jumps: int = 0
    """Lines that lie between words which follow each other."""


class _Spoken:
    """The words of a log, taken reply by reply."""

    def __init__(self, lines: list[FrameworkLine], replies: Iterable[str]) -> None:
        self._lines = lines
        self._replies = tuple(replies)
        self._keys = {
            place: key for place, line in enumerate(lines) if line.kind == _SPOKEN and (key := compact(line.text))
        }
        self._order = list(self._keys)
        self._places: dict[str, list[int]] = {}
        for place, key in self._keys.items():
            self._places.setdefault(key, []).append(place)
        self._longest = max(map(len, self._places), default=0)
        self._rank = {place: rank for rank, place in enumerate(self._order)}
        self._used: set[int] = set()
        self._moved: list[list[int]] = []
        self._repeated: set[int] = set()
        self._written: dict[int, str] = {}

    def take(self, reply: str, text: str, *, whole: bool = False) -> None:
        """Find the words of a reply, and note what of them is out of place or there twice."""
        best = _WordMatch([], 0)
        self._written = _beginnings(text)
        for place in self._beginning(reply):
            if place not in self._used:
                match = self._follow(reply, self._rank[place])
                best = max(best, match, key=lambda one: (one.length, -one.jumps))
                if best.length == len(reply) and not best.jumps:
                    break
        if best.length < (len(reply) if whole else min(_TELLING, len(reply))):
            return
        self._used.update(best.places)
        if best.places != sorted(best.places):
            self._moved.append(best.places)
        reply_lines = {(self._lines[place].text, self._lines[place].ms) for place in best.places}
        first, last = self._rank[min(best.places)], self._rank[max(best.places)]
        for place in self._order[max(0, first - 1) : last + 3]:
            line = self._lines[place]
            if place not in self._used and (line.text, line.ms) in reply_lines:
                self._repeated.add(place)

    def _beginning(self, reply: str) -> list[int]:
        """Where words stand that the reply could begin with, in their order."""
        lengths = range(1, min(self._longest, len(reply)) + 1)
        return sorted(place for length in lengths for place in self._places.get(reply[:length], ()))

    def _follow(self, reply: str, rank: int) -> _WordMatch:
        """The words of a reply from a place on, each the nearest to where it should stand."""
        places: list[int] = []
        taken: set[int] = set()
        at = jumps = 0
        while at < len(reply):
            near = range(max(0, rank - _NEAR), min(len(self._order), rank + _NEAR + 1))
            fitting = [
                one
                for one in near
                if (place := self._order[one]) not in self._used
                and place not in taken
                and reply.startswith(self._keys[place], at)
                and (one == rank or not places or not self._is_in_place(one))
            ]
            if not fitting:
                after_lost = self._after_lost_word(reply, at, rank)
                if after_lost is None:
                    break
                at = after_lost
                continue
            word, wanted = self._written.get(at, ""), rank
            rank = min(fitting, key=lambda one: self._unfit(one, wanted, word))
            jumps += abs(rank - wanted) if places else 0
            place = self._order[rank]
            places.append(place)
            taken.add(place)
            at += len(self._keys[place])
            rank += 1
        if at < len(reply):
            # A reply that breaks off does not go on with a like word of the next.
            while len(places) > 1 and abs(self._rank[places[-1]] - self._rank[places[-2]]) > _BREAK:
                at -= len(self._keys[places.pop()])
        return _WordMatch(places, at, jumps)

    def _is_in_place(self, rank: int) -> bool:
        """Whether some reply has a word beside the same word as the log: then it is not missing elsewhere."""
        keys = [self._keys[place] for place in self._order[max(0, rank - 1) : rank + 2]]
        return any(before + after in reply for before, after in pairwise(keys) for reply in self._replies)

    def _after_lost_word(self, reply: str, at: int, rank: int) -> int | None:
        """Where the reply goes on in the log after a word that was lost; None where it does not."""
        coming = next((begin for begin in sorted(self._written) if begin > at), None)
        if coming is None or rank >= len(self._order):
            return None
        return coming if reply.startswith(self._keys[self._order[rank]], coming) else None

    def _unfit(self, candidate: int, rank: int, word: str) -> tuple[bool, int, int]:
        """Words of the very spelling first (`One` is not `one`), then the nearest, then the longest."""
        place = self._order[candidate]
        return self._lines[place].text.strip() != word, abs(candidate - rank), -len(self._keys[place])

    def lines(self, name: str, notes: Notes) -> list[FrameworkLine]:
        """The lines with each reply's words in its order, and none of them twice."""
        instead: dict[int, list[FrameworkLine]] = {}
        for places in self._moved:
            times = steadied([self._lines[place].ms for place in places])
            words = [self._lines[place]._replace(ms=ms) for place, ms in zip(places, times, strict=True)]
            instead.update({place: [] for place in places})
            instead[min(places)] = words
            notes.repaired("out_of_order", f"{name}: {len(words)} words were put in the order of the model's reply")
        if self._repeated:
            notes.repaired("duplicate_record", f"{name}: {len(self._repeated)} words sent to the speech engine")
            instead.update({place: [] for place in self._repeated})
        if not instead:
            return self._lines
        return [one for place, line in enumerate(self._lines) for one in instead.get(place, [line])]


def _beginnings(text: str) -> dict[int, str]:
    """The words of a text by where they begin in its letters and digits."""
    words: dict[int, str] = {}
    at = 0
    for word in text.split():
        words.setdefault(at, word)
        at += len(compact(word))
    return words


def _halved(lines: list[FrameworkLine], written: Iterable[str], name: str, notes: Notes) -> list[FrameworkLine]:
    """A text that no reply holds, and in which every word stands twice, has each once."""
    halved: list[FrameworkLine] = []
    for is_spoken, stretch in groupby(lines, key=lambda line: line.kind == _SPOKEN):
        doubled = list(stretch)
        pairs = [(line, len(list(group))) for line, group in groupby(doubled)]
        if is_spoken and all(count == 2 for _, count in pairs) and not any(_sent(doubled) in one for one in written):
            notes.repaired("duplicate_record", f"{name}: {len(pairs)} words sent to the speech engine")
            doubled = [line for line, _ in pairs]
        halved += doubled
    return halved
