"""The framework's log: what was sent to the speech engine, freed of previews and joined into runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")

SPOKEN = "tts_text"
WRITTEN = "llm_response"
# Speech engines get words, which a blank parts again; models stream pieces that hold their own blanks.
_JOINTS = {SPOKEN: " ", WRITTEN: ""}


class FrameworkLine(NamedTuple):
    """One line of the log: turn_start, turn_end, tts_text or llm_response."""

    ms: int | None
    kind: str
    text: str
    interrupted: bool | None = None
    """Of turn_end: whether the user ended it."""


class LogColumns(NamedTuple):
    """The same of many lines, column by column."""

    times: Sequence[int | None]
    kinds: Sequence[str]
    texts: Sequence[str]
    interrupted: Sequence[bool | None]

    @classmethod
    def of(cls, lines: Sequence[FrameworkLine]) -> LogColumns:
        return cls(*zip(*lines, strict=True)) if lines else cls((), (), (), ())

    def lines(self) -> list[FrameworkLine]:
        return list(map(FrameworkLine, *self))

    def spoken(self) -> str:
        """What was sent to the speech engine, in one."""
        return " ".join(without(list(self.texts), [at for at, kind in enumerate(self.kinds) if kind != SPOKEN]))


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
    if not _phrases(sent):
        return sent
    times = Counter([line.ms for line in sent if line.kind == SPOKEN])
    sent = without(
        sent, [place for place in _phrases(sent) if times[sent[place].ms] > 1 and sent[place].ms is not None]
    )
    return without(sent, [place for place in _phrases(sent) if _is_spelt_out(sent, place)])


def runs(lines: LogColumns) -> list[TextRun]:
    """Texts of one kind that no turn boundary parts, as one text each (voice logs, 3.1 step 2 d)."""
    times, kinds, texts, interrupted = lines
    parts = tuple(zip(times, texts, strict=True))
    joined: list[TextRun] = []
    end = 0
    for kind, group in groupby(kinds):
        start, end = end, end + len(list(group))
        joint = _JOINTS.get(kind)
        if joint is not None:
            joined.append(TextRun(kind, times[start], joint.join(texts[start:end]), parts[start:end], None))
        else:
            joined += [TextRun(kind, *parts[at], (parts[at],), interrupted[at]) for at in range(start, end)]
    return joined


def _phrases(lines: list[FrameworkLine]) -> list[int]:
    """Where more than a word was sent at once."""
    return [place for place, line in enumerate(lines) if " " in line.text and line.kind == SPOKEN]


def without(column: list[Item], places: list[int]) -> list[Item]:
    """The same list without some places, of which there are few."""
    for place in reversed(places):
        del column[place]
    return column


def _is_spelt_out(lines: list[FrameworkLine], place: int) -> bool:
    """The phrase's words follow it, one a line, with no turn boundary between."""
    phrase = lines[place].text
    words = phrase.split()
    following = lines[place + 1 : place + 1 + len(words)]
    return (
        len(following) == len(words)
        and all(later.kind == SPOKEN and " " not in later.text for later in following)
        and " ".join([later.text for later in following]) == phrase
    )
