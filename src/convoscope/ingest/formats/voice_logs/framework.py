"""The framework's log: what was sent to the speech engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from convoscope.ingest.formats.voice_logs.lines import FrameworkLine, agree, by_time, in_order, steadied
from convoscope.ingest.report import Notes
from convoscope.text.folding import compact

SPOKEN = "tts_text"
WRITTEN = "llm_response"
# Speech engines get words, which a blank parts again; models stream pieces that hold their own blanks.
_JOINTS = {SPOKEN: " ", WRITTEN: ""}
_NEAR = 12
"""Lines by which a word may be away from where the reply has it."""
_BREAK = 3
_TELLING = 12
"""Characters that must be found of a reply before an index is taken for its own."""


class TextRun(NamedTuple):
    """Lines of one kind in a row, as one text; a turn boundary is a run of its own."""

    kind: str
    ms: int | None
    """Time of the first line."""
    text: str
    parts: tuple[tuple[int | None, str], ...]
    """Time and text of each line."""
    interrupted: bool | None


def without_previews(lines: Sequence[FrameworkLine]) -> list[FrameworkLine]:
    """What was really sent to the speech engine (voice logs, 3.1 step 2 a to c).

    Where anything was sent to the speech engine, what the model wrote does not count. A phrase is a
    preview if another text bears its time, or if its own words follow one by one.
    """
    if not any(line.kind == SPOKEN for line in lines):
        return list(lines)
    sent = [line for line in lines if line.kind != WRITTEN]
    times = Counter([line.ms for line in sent if line.kind == SPOKEN])
    sent = [line for line in sent if not (_is_phrase(line) and line.ms is not None and times[line.ms] > 1)]
    return [line for index, line in enumerate(sent) if not (_is_phrase(line) and _is_spelt_out(sent, index))]


def _is_phrase(line: FrameworkLine) -> bool:
    """Whether more than a word was sent at once."""
    return line.kind == SPOKEN and " " in line.text


def _is_spelt_out(lines: list[FrameworkLine], index: int) -> bool:
    """The phrase's words follow it, one a line, with no turn boundary between."""
    phrase = lines[index].text
    words = phrase.split()
    following = lines[index + 1 : index + 1 + len(words)]
    return (
        len(following) == len(words)
        and all(later.kind == SPOKEN and " " not in later.text for later in following)
        and " ".join([later.text for later in following]) == phrase
    )


def runs(lines: Sequence[FrameworkLine]) -> list[TextRun]:
    """Texts of one kind that no turn boundary parts, as one text each (voice logs, 3.1 step 2 d)."""
    joined: list[TextRun] = []
    for kind, group in groupby(lines, key=lambda line: line.kind):
        run = list(group)
        joint = _JOINTS.get(kind)
        if joint is None:
            joined += [TextRun(kind, line.ms, line.text, ((line.ms, line.text),), line.interrupted) for line in run]
        else:
            parts = tuple([(line.ms, line.text) for line in run])
            joined.append(TextRun(kind, run[0].ms, joint.join([text for _, text in parts]), parts, None))
    return joined


def lines_in_order(lines: list[FrameworkLine], replies: Sequence[str], name: str, notes: Notes) -> list[FrameworkLine]:
    """In the order, of file or of times, in which more replies are found whole."""
    times = [line.ms for line in lines]
    if agree(times):
        return lines
    sorted_by_time = [lines[index] for index in by_time(times)]
    written = [text for reply in replies if (text := compact(reply))]
    is_by_file = _whole_replies(lines, written) > _whole_replies(sorted_by_time, written)
    return in_order(lines, is_by_file, name, notes)


def _whole_replies(lines: Sequence[FrameworkLine], written: Sequence[str]) -> tuple[int, int]:
    """How many replies are found whole, and how many of them within one turn: a word may slip over a boundary."""
    sent = _sent(lines)
    texts = [compact(run.text) for run in runs(lines) if run.kind == SPOKEN]
    within = sum(any(reply in text for text in texts) for reply in written)
    return sum(reply in sent for reply in written), within


def corrected_lines(
    lines: list[FrameworkLine], replies: Sequence[str], heard: Sequence[str], name: str, notes: Notes, *, moved: bool
) -> list[FrameworkLine]:
    """Words where the replies have them, each once. Nothing is touched where the replies are found as they are.

    What no reply holds, a greeting for instance, may still be known by what the caller heard. `moved`: the
    order of the lines was in doubt.
    """
    texts = [(key, reply) for reply in replies if (key := compact(reply))]
    written = {key for key, _ in texts}
    sent = _sent(lines)
    doubled = _are_doubled(lines, written)
    if not sent or not (moved or doubled or any(reply not in sent for reply in written)):
        return lines
    # Of words that were logged twice each is next to its neighbours, which says nothing of its index.
    spoken = _Spoken(lines, () if doubled else written)
    for key, reply in texts:
        if doubled or key not in sent:
            spoken.take(key, reply)
    for text in heard if doubled or moved else ():
        if (key := compact(text)) and (doubled or key not in sent):
            spoken.take(key, text, whole=True)
    corrected: list[FrameworkLine] = []
    for is_spoken, span in groupby(spoken.lines(name, notes), key=lambda line: line.kind == SPOKEN):
        words = list(span)
        pairs = [(line, len(list(group))) for line, group in groupby(words)]
        # A text that no reply holds, and in which every word is there twice, has each once.
        if is_spoken and all(count == 2 for _, count in pairs) and not any(_sent(words) in key for key in written):
            notes.repaired("duplicate_record", f"{name}: {len(pairs)} words sent to the speech engine")
            words = [line for line, _ in pairs]
        corrected += words
    return corrected


def _sent(lines: Sequence[FrameworkLine]) -> str:
    return compact(" ".join([line.text for line in lines if line.kind == SPOKEN]))


def _are_doubled(lines: Sequence[FrameworkLine], written: Iterable[str]) -> bool:
    """Whether a word follows itself in an instant, and no reply has it so."""
    for index, (before, after) in enumerate(pairwise(lines)):
        if before.kind == SPOKEN and before == after:
            around = _sent(lines[max(0, index - 2) : index + 4])
            if not any(around in reply for reply in written):
                return True
    return False


class _WordMatch(NamedTuple):
    """Indexes of words, in the order of a reply, and how much of the reply they are."""

    indexes: list[int]
    length: int
    jumps: int = 0
    """Lines that lie between words which follow each other."""


class _Spoken:
    """The words of a log, taken reply by reply."""

    def __init__(self, lines: list[FrameworkLine], replies: Iterable[str]) -> None:
        self._lines = lines
        self._replies = tuple(replies)
        self._keys = {
            index: key for index, line in enumerate(lines) if line.kind == SPOKEN and (key := compact(line.text))
        }
        self._order = list(self._keys)
        self._indexes: dict[str, list[int]] = {}
        for index, key in self._keys.items():
            self._indexes.setdefault(key, []).append(index)
        self._longest = max(map(len, self._indexes), default=0)
        self._rank = {index: rank for rank, index in enumerate(self._order)}
        self._used: set[int] = set()
        self._moved: list[list[int]] = []
        self._repeated: set[int] = set()
        self._written: dict[int, str] = {}
        """The words of the reply that is looked for, by where they begin in its letters and digits."""

    def take(self, reply: str, text: str, *, whole: bool = False) -> None:
        """Find the words of a reply, and note what of them is out of its order or there twice."""
        best = _WordMatch([], 0)
        self._written = {}
        at = 0
        for word in text.split():
            self._written.setdefault(at, word)
            at += len(compact(word))
        lengths = range(1, min(self._longest, len(reply)) + 1)
        for index in sorted(index for length in lengths for index in self._indexes.get(reply[:length], ())):
            if index not in self._used:
                match = self._follow(reply, self._rank[index])
                best = max(best, match, key=lambda one: (one.length, -one.jumps))
                if best.length == len(reply) and not best.jumps:
                    break
        if best.length < (len(reply) if whole else min(_TELLING, len(reply))):
            return
        self._used.update(best.indexes)
        if best.indexes != sorted(best.indexes):
            self._moved.append(best.indexes)
        reply_lines = {(self._lines[index].text, self._lines[index].ms) for index in best.indexes}
        first, last = self._rank[min(best.indexes)], self._rank[max(best.indexes)]
        for index in self._order[max(0, first - 1) : last + 3]:
            line = self._lines[index]
            if index not in self._used and (line.text, line.ms) in reply_lines:
                self._repeated.add(index)

    def _follow(self, reply: str, rank: int) -> _WordMatch:
        """The words of a reply from an index on, each the nearest to where it should be."""
        indexes: list[int] = []
        taken: set[int] = set()
        at = jumps = 0
        while at < len(reply):
            near = range(max(0, rank - _NEAR), min(len(self._order), rank + _NEAR + 1))
            fitting = [
                one
                for one in near
                if (index := self._order[one]) not in self._used
                and index not in taken
                and reply.startswith(self._keys[index], at)
                and (one == rank or not indexes or not self._is_at_its_index(one))
            ]
            if not fitting:
                after_lost = self._after_lost_word(reply, at, rank)
                if after_lost is None:
                    break
                at = after_lost
                continue
            word, wanted = self._written.get(at, ""), rank
            rank = min(fitting, key=lambda one: self._unfit(one, wanted, word))
            jumps += abs(rank - wanted) if indexes else 0
            index = self._order[rank]
            indexes.append(index)
            taken.add(index)
            at += len(self._keys[index])
            rank += 1
        if at < len(reply):
            # A reply that breaks off does not go on with a like word of the next.
            while len(indexes) > 1 and abs(self._rank[indexes[-1]] - self._rank[indexes[-2]]) > _BREAK:
                at -= len(self._keys[indexes.pop()])
        return _WordMatch(indexes, at, jumps)

    def _is_at_its_index(self, rank: int) -> bool:
        """Whether some reply has a word next to the same word as the log: then it is not missing elsewhere."""
        keys = [self._keys[index] for index in self._order[max(0, rank - 1) : rank + 2]]
        return any(before + after in reply for before, after in pairwise(keys) for reply in self._replies)

    def _after_lost_word(self, reply: str, at: int, rank: int) -> int | None:
        """Where the reply goes on in the log after a word that was lost; None where it does not."""
        coming = next((begin for begin in sorted(self._written) if begin > at), None)
        if coming is None or rank >= len(self._order):
            return None
        return coming if reply.startswith(self._keys[self._order[rank]], coming) else None

    def _unfit(self, candidate: int, rank: int, word: str) -> tuple[bool, int, int]:
        """Words of the very spelling first (`One` is not `one`), then the nearest, then the longest."""
        index = self._order[candidate]
        return self._lines[index].text.strip() != word, abs(candidate - rank), -len(self._keys[index])

    def lines(self, name: str, notes: Notes) -> list[FrameworkLine]:
        """The lines with each reply's words in its order, and none of them twice."""
        instead: dict[int, list[FrameworkLine]] = {}
        for indexes in self._moved:
            times = steadied([self._lines[index].ms for index in indexes])
            timed = zip(indexes, times, strict=True)
            words = [msgspec.structs.replace(self._lines[index], ms=ms) for index, ms in timed]
            instead.update({index: [] for index in indexes})
            instead[min(indexes)] = words
            notes.repaired("out_of_order", f"{name}: {len(words)} words were put in the order of the model's reply")
        if self._repeated:
            notes.repaired("duplicate_record", f"{name}: {len(self._repeated)} words sent to the speech engine")
            instead.update({index: [] for index in self._repeated})
        return [word for index, line in enumerate(self._lines) for word in instead.get(index, [line])]
