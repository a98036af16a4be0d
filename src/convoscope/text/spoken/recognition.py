"""Whether a fact that was said is in what was heard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise
from typing import NamedTuple

from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken.entities import SpokenEntity, entities
from convoscope.text.spoken.normal import normalise
from convoscope.text.spoken.vocabulary import CURRENCIES, ORDINALS

_UNITS = frozenset(CURRENCIES.values())
_SILENT = frozenset((*CURRENCIES, "o'clock", "the", "of"))
"""Words that a fact may lose: 450 for $450 is heard rightly, £450 is not."""
_NOT_PLAIN = _SILENT | ORDINALS.keys()
_GLOSS = lazy_pattern(r"\(([^()]*)\)(?![\s-]*[0-9])")  # no area code of a phone number
_ORDINAL = lazy_pattern(r"([0-9]+)(?:st|nd|rd|th)")
_SIGNS = lazy_pattern(r"[^a-z0-9@]+")
_HALF_DAYS = frozenset(("am", "pm"))
_ALIKE = 49.0
"""Above this share of equal characters a span of words is taken for what the fact was heard as."""


_WIDEST = 12
"""In tokens; a longer span is not looked for."""
_FAR = 60
"""In tokens; what a fact was heard as is looked for this far around its position."""
_LONGER = 3.1
"""A span that is so many times longer, or shorter, than a fact cannot be above `_ALIKE`."""


class RecognisedFact(NamedTuple):
    """Whether a fact was heard rightly, and the canonical tokens heard for it: its own, others, or none."""

    correct: bool
    instead: str | None
    """What was heard instead of it; None where it was heard rightly, or nothing like it was heard."""


class FactCheck(NamedTuple):
    """A fact that was said, and how it was heard."""

    entity: SpokenEntity
    heard: RecognisedFact


class SpokenFact(NamedTuple):
    """Something said, and how far into the turn: 0 at its beginning, 1 at its end."""

    text: str
    position: float


class _Form(NamedTuple):
    """A fact as letters and digits without gaps, and its currency."""

    text: str
    currency: str


_Pair = tuple[float, int, int, int, int]
"""How far two are from each other, which of those said and of those found they are, and where both are in a row."""
_Candidate = tuple[str, int, int]
"""Parts put together, the first token of them, and the one behind the last."""


class FactChecker:
    """The heard text of a turn. Each span of it can answer for one fact only."""

    def __init__(self, text: str) -> None:
        self._tokens = _without_restarts(normalise(text))
        self._parts = list(map(_part, self._tokens))
        self._starts: dict[str, list[int]] = {}
        for index, part in enumerate(self._parts):
            if part:
                self._starts.setdefault(part, []).append(index)
        self._lengths = sorted(set(map(len, self._starts)))
        self._text = "".join(self._parts)
        self._offsets = [0, *accumulate(map(len, self._parts))]
        self._ends = {self._offsets[index + 1]: index + 1 for index, part in enumerate(self._parts) if part}
        """The token behind each position of the text where one ends."""
        self._taken: set[int] = set()

    def check(self, intended: str) -> RecognisedFact:
        """Look for a fact, given in any of its forms; brackets in it hold other forms of the same."""
        for form in _forms(intended):
            index = next(self._spans(form), None)
            if index is not None:
                self._taken.update(index)
                return RecognisedFact(correct=True, instead=None)
        return RecognisedFact(correct=False, instead=self._closest(intended, _forms(intended), range(len(self._parts))))

    def check_all(self, spoken: Sequence[SpokenFact]) -> list[RecognisedFact]:
        """Look for the facts of one turn, each with its position between 0, the beginning, and 1, the end.

        Where a fact was said more often than it was heard, those are right that are nearest to it.
        """
        verdicts: dict[int, RecognisedFact] = {}
        alike: dict[_Form, list[int]] = {}
        forms = [_forms(fact.text) for fact in spoken]
        for number, fact_forms in enumerate(forms):
            for form in fact_forms[:1]:
                alike.setdefault(form, []).append(number)
        for form, numbers in alike.items():
            spans = list(self._spans(form))
            for number, indices in _nearest([spoken[number].position for number in numbers], spans, len(self._parts)):
                self._taken.update(indices)
                verdicts[numbers[number]] = RecognisedFact(correct=True, instead=None)
        for number, fact in enumerate(spoken):
            if number not in verdicts:
                middle = int(fact.position * len(self._parts))
                around = range(max(middle - _FAR, 0), min(middle + _FAR, len(self._parts)))
                verdicts[number] = RecognisedFact(False, self._closest(fact.text, forms[number], around))
        return [verdicts[number] for number in range(len(spoken))]

    def _spans(self, form: _Form) -> Iterator[range]:
        """The spans of free tokens whose letters and digits, put together, are those wanted."""
        wanted = form.text
        beginnings = (wanted[:length] for length in self._lengths if length <= len(wanted))
        starts = sorted(start for beginning in beginnings for start in self._starts.get(beginning, ()))
        done = 0
        for start in starts:
            end = self._match(wanted, start) if start >= done else 0
            # No other currency than that of the fact is named behind what was heard.
            if end and (not form.currency or self._unit(end) in ("", form.currency)):
                yield range(start, end)
                done = end

    def _unit(self, index: int) -> str:
        return self._tokens[index] if index < len(self._tokens) and self._tokens[index] in _UNITS else ""

    def _match(self, wanted: str, start: int) -> int:
        index = self._offsets[start]
        end = self._ends.get(index + len(wanted), 0)
        if not end or not self._text.startswith(wanted, index) or not self._taken.isdisjoint(range(start, end)):
            return 0
        return end

    def _closest(self, intended: str, forms: Sequence[_Form], indices: range) -> str | None:
        """The span of free tokens that begins at one of some indices and is most like a fact."""
        from rapidfuzz import fuzz, process

        if not forms:
            return None
        wanted = forms[0].text
        width = min(len(normalise(intended)) + 2, _WIDEST)
        candidates: list[_Candidate] = []
        for start in indices:
            if self._parts[start] and start not in self._taken:
                self._add_from(start, width, len(wanted), candidates)
        best = process.extractOne(wanted, [one[0] for one in candidates], scorer=fuzz.ratio, score_cutoff=_ALIKE)
        if best is None:
            return None
        _, start, end = candidates[best[2]]
        return " ".join(self._tokens[start : end + bool(self._unit(end))])

    def _add_from(self, start: int, width: int, length: int, spans: list[_Candidate]) -> None:
        """Add the free spans from a position on that are neither much shorter nor much longer than a fact."""
        text = ""
        for end, part in enumerate(self._parts[start : start + width], start):
            text += part
            if end in self._taken or len(text) > length * _LONGER:
                return
            if len(text) * _LONGER >= length:
                spans.append((text, start, end + 1))


def check_entities(intended: str, heard: str) -> tuple[FactCheck, ...]:
    """The facts of a turn as intended, each with whether it is in the turn as heard."""
    named = entities(intended)
    spoken = [SpokenFact(entity.canonical, entity.start / len(intended)) for entity in named]
    return tuple(map(FactCheck, named, FactChecker(heard).check_all(spoken)))


def check_fact(intended: str, heard: str) -> RecognisedFact:
    """Whether one fact is in one heard text. For several facts of a turn ask one `FactChecker`."""
    return FactChecker(heard).check(intended)


def _nearest(positions: list[float], spans: list[range], length: int) -> list[tuple[int, range]]:
    """Pairs of what was said and what was found; where too little was found, the nearest ones."""
    if len(spans) >= len(positions):
        return list(enumerate(spans[: len(positions)]))
    chosen: list[tuple[int, range]] = []
    # The two that are nearest to each other are always side by side among those that are left.
    row = sorted(
        [(position, number, -1) for number, position in enumerate(positions)]
        + [(span.start / length, -1, order) for order, span in enumerate(spans)]
    )
    before, behind = list(range(-1, len(row) - 1)), list(range(1, len(row) + 1))
    pairs = [_pair(row, one, one + 1) for one in range(len(row) - 1)]
    waiting = [pair for pair in pairs if pair is not None]
    heapify(waiting)
    paired: set[int] = set()
    while waiting:
        _, number, order, first, second = heappop(waiting)
        if first in paired or second in paired:
            continue
        chosen.append((number, spans[order]))
        paired |= {first, second}
        left, right = before[first], behind[second]
        if left >= 0:
            behind[left] = right
        if right < len(row):
            before[right] = left
        if left >= 0 and right < len(row) and (pair := _pair(row, left, right)) is not None:
            heappush(waiting, pair)
    return chosen


def _pair(row: Sequence[tuple[float, int, int]], first: int, second: int) -> _Pair | None:
    """Two of a row as a pair; None where both were said or both were found."""
    (here, *first_ids), (there, *second_ids) = row[first], row[second]
    number, order = map(max, first_ids, second_ids)
    return None if number < 0 or order < 0 else (there - here, number, order, first, second)


def _forms(intended: str) -> list[_Form]:
    """The fact, and what is in brackets behind it, as letters and digits without gaps."""
    written = [intended]
    if "(" in intended:
        glosses = [form for gloss in _GLOSS.findall(intended) for form in gloss.split("/")]
        written = [_GLOSS.sub(" ", intended), *glosses]
    spoken = [_without_restarts(normalise(form)) for form in written]
    forms = [_Form("".join(map(_part, tokens)), next(filter(_UNITS.__contains__, tokens), "")) for tokens in spoken]
    return [form for form in forms if form.text]


def _part(token: str) -> str:
    """What of a token is compared: no currency, no signs but those of a mailbox, no ending of an ordinal."""
    if token.isalpha() and token not in _NOT_PLAIN:
        return token
    if token in _SILENT:
        return ""
    if "@" in token:
        return token
    if token in ORDINALS:
        return str(ORDINALS[token])
    if token.isalnum() and not token[0].isdigit():
        return token
    ordinal = _ORDINAL.fullmatch(token)
    return ordinal[1] if ordinal else _SIGNS.sub("", token)


def _without_restarts(tokens: Sequence[str]) -> list[str]:
    """`skyway 4 472` is skyway 472 begun twice; `10 ock am` is a time with a mangled o'clock."""
    finished = []
    for token, following in pairwise(tokens):
        if following.isdecimal():
            is_restart = token.isdecimal() and following != token and following.startswith(token)
        else:
            is_restart = following in _HALF_DAYS and token[0] == "o" and token.endswith("ck")
        finished += [] if is_restart else [token]
    return [*finished, *tokens[-1:]]
