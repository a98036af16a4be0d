"""Where in what was heard a fact of a text should be, and what is around it there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from convoscope.text.spoken.vocabulary import listed

_NEAR, _FAR = 2, 6
"""So many words on each side say which of two facts is meant, looked for in so many tokens."""
_LITTLE = frozenset(listed("a an and are at be but by for in is it of on or per so that the this was with your you"))
"""Words that are around any fact."""


class NearbyWords(NamedTuple):
    """The words next to a span, up to the next fact."""

    before: frozenset[str]
    behind: frozenset[str]

    def alike(self, other: NearbyWords) -> int:
        """How many words are on the same side of both."""
        return len(self.before & other.before) + len(self.behind & other.behind)


class FactSite(NamedTuple):
    """Where a fact should be in what was heard, and what is around it in the text."""

    window: range
    words: NearbyWords


def sites(text: Sequence[str], entities: Sequence[range], heard: Sequence[str]) -> list[FactSite]:
    """For each fact of a text where it should be: between the words around it that were heard as they are."""
    from rapidfuzz.distance import Levenshtein

    owned = {index for fact in entities for index in fact}
    number = {part: index for index, part in enumerate(dict.fromkeys((*text, *heard)))}
    steps = Levenshtein.opcodes([number[part] for part in text], [number[part] for part in heard])
    anchors = [
        (one, other)
        for step in steps
        if step.tag == "equal"
        for one, other in zip(range(step.src_start, step.src_end), range(step.dest_start, step.dest_end), strict=True)
        if one not in owned
    ]
    result, behind = list[FactSite](), 0
    for fact in entities:
        while behind < len(anchors) and anchors[behind][0] < fact.start:
            behind += 1
        first = anchors[behind - 1][1] + 1 if behind else 0
        last = anchors[behind][1] if behind < len(anchors) else len(heard)
        result.append(FactSite(range(first, last), nearby_words(text, fact, owned)))
    return result


def nearby_words(parts: Sequence[str], span: range, entities: Collection[int]) -> NearbyWords:
    """The words next to a span of a text; `entities` are the parts that belong to one."""
    before = range(span.start - 1, max(span.start - 1 - _FAR, -1), -1)
    behind = range(span.stop, min(span.stop + _FAR, len(parts)))
    return NearbyWords(*(frozenset([*_words(parts, side, entities)][:_NEAR]) for side in (before, behind)))


def _words(parts: Sequence[str], indices: range, entities: Collection[int]) -> Iterator[str]:
    for index in indices:
        if index in entities or any(map(str.isdigit, parts[index])):
            return
        if parts[index] and parts[index] not in _LITTLE:
            yield parts[index]


def is_inside(span: range, window: range) -> bool:
    """Whether a span is all in another one."""
    return window.start <= span.start and span.stop <= window.stop


def inside(spans: Sequence[range], window: range) -> list[range]:
    """Those of some spans, in their order, that are all in another one."""
    first, last = (bisect_left(spans, end, key=lambda span: span.start) for end in (window.start, window.stop))
    return [span for span in spans[first:last] if is_inside(span, window)]


def out_of_order(spans: Sequence[range | None]) -> set[int]:
    """Which of the spans begin before an earlier one, or behind a later one."""
    starts = [(index, span.start) for index, span in enumerate(spans) if span is not None]
    highest = [*accumulate((start for _, start in starts), max)]
    lowest = [*accumulate((start for _, start in reversed(starts)), min)][::-1]
    rows = zip(starts, highest, lowest, strict=True)
    return {index for (index, start), high, low in rows if start < high or start > low}
