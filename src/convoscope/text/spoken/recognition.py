"""Whether a fact that was said is in what was heard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken.entities import SpokenEntity, entities, kind_of
from convoscope.text.spoken.fact_order import FactSite, inside, is_inside, nearby_words, out_of_order, sites
from convoscope.text.spoken.normal import normalise
from convoscope.text.spoken.short_forms import DECIMALS
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
    """A fact of a text, where it is, and the ways in which it may be said, the likeliest first."""

    start: int
    end: int
    ways: tuple[str, ...]
    sort: str
    """Only facts of one sort are taken for each other."""


def spoken_fact(entity: SpokenEntity, *ways: str) -> SpokenFact:
    """A fact that may also be said in other ways than its canonical one."""
    sort = entity.type if entity.type in ("date", "time") else kind_of(entity.type)
    return SpokenFact(*entity.span, (entity.canonical, *ways), f"{sort} {_has_figures(entity.canonical)}")


class _Form(NamedTuple):
    """A fact as letters and digits without gaps, and its currency."""

    text: str
    currency: str


_Pair = tuple[float, int, int, int, int]
"""How far two are from each other, which of those said and of those matches they are, and where both are in a row."""
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

    def check_all(self, intended: str, spoken: Sequence[SpokenFact]) -> list[RecognisedFact]:
        """Look for the facts of one turn, each between the words around it.

        One that is heard elsewhere moved there with the words around it, or another one was said for it.
        """
        forms = [[form for way in fact.ways for form in _forms(way)[:1]] for fact in spoken]
        sites = self._sites(intended, spoken)
        spans = self._paired(forms, sites, [fact.start / len(intended) for fact in spoken])
        swapped = dict(self._swapped(spoken, sites, spans))
        for number in swapped:
            self._taken.difference_update(spans[number] or ())
        verdicts = []
        for number, fact in enumerate(spoken):
            instead = swapped.get(number)
            if spans[number] is None:
                middle = int(fact.start / len(intended) * len(self._parts))
                around = range(max(middle - _FAR, 0), min(middle + _FAR, len(self._parts)))
                instead = self._closest(fact.ways[0], forms[number], around)
            verdicts.append(RecognisedFact(spans[number] is not None and number not in swapped, instead))
        return verdicts

    def _sites(self, intended: str, spoken: Sequence[SpokenFact]) -> list[FactSite]:
        parts, owned, done = list[str](), list[range](), 0
        for fact in spoken:
            parts += filter(None, map(_part, normalise(intended[done : fact.start])))
            first = len(parts)
            parts += filter(None, map(_part, normalise(fact.ways[0])))
            owned.append(range(first, len(parts)))
            done = fact.end
        parts += filter(None, map(_part, normalise(intended[done:])))
        return sites(parts, owned, self._parts)

    def _paired(
        self, forms: Sequence[Sequence[_Form]], sites: Sequence[FactSite], positions: Sequence[float]
    ) -> list[range | None]:
        """For each fact the span where it was heard: where it should be, else the nearest one that is left."""
        spans: list[range | None] = [None] * len(forms)
        alike: dict[_Form, list[int]] = {}
        for number, ways in enumerate(forms):
            for form in ways[:1]:
                alike.setdefault(form, []).append(number)
        everywhere = range(len(self._parts))
        for form, numbers in alike.items():
            matches = list(self._spans(form))
            by_window = [(window, [*group]) for window, group in groupby(numbers, lambda one: sites[one].window)]
            for window, group in [*by_window, (everywhere, numbers)]:
                left = [number for number in group if spans[number] is None]
                free = [span for span in inside(matches, window) if self._taken.isdisjoint(span)]
                for index, span in _nearest([positions[number] for number in left], free, len(self._parts)):
                    spans[left[index]] = self._take(span)
        for number, ways in enumerate(forms):
            if spans[number] is None:
                matches = [span for form in ways[1:] for span in self._spans(form)]
                here = [span for span in matches if is_inside(span, sites[number].window)]
                for span in [*here, *matches][:1]:
                    spans[number] = self._take(span)
        return spans

    def _take(self, span: range) -> range:
        self._taken.update(span)
        return span

    def _swapped(
        self, spoken: Sequence[SpokenFact], sites: Sequence[FactSite], spans: Sequence[range | None]
    ) -> Iterator[tuple[int, str]]:
        """The facts that are heard elsewhere, with what is heard between the words that were around them."""
        suspects = out_of_order(spans)
        suspects |= {n for n, span in enumerate(spans) if span is not None and not is_inside(span, sites[n].window)}
        if not suspects:
            return
        known = {index for span in spans for index in span or ()}
        others: dict[str, list[range]] = {}
        for number in suspects:
            others.setdefault(spoken[number].sort, []).append(spans[number] or range(0))
        for same in others.values():
            same.sort(key=lambda span: span.start)
        indices = [index for index, part in enumerate(self._parts) if _has_figures(part) and index not in known]
        figures = [range(index, index + 1) for index in indices]
        for number in sorted(suspects):
            span, words, window = spans[number] or range(0), sites[number].words, sites[number].window
            same_sort = inside(others[spoken[number].sort], window)
            unknown = inside(figures, window) if _has_figures(spoken[number].ways[0]) else []
            best = words.alike(nearby_words(self._parts, span, known))
            for other in (*same_sort, *unknown):
                if other != span and words.alike(nearby_words(self._parts, other, known)) > best:
                    yield number, " ".join(self._tokens[other.start : other.stop + bool(self._unit(other.stop))])
                    break

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
    return tuple(map(FactCheck, named, FactChecker(heard).check_all(intended, [*map(spoken_fact, named)])))


def check_fact(intended: str, heard: str) -> RecognisedFact:
    """Whether one fact is in one heard text. For several facts of a turn ask one `FactChecker`."""
    return FactChecker(heard).check(intended)


def _nearest(positions: list[float], spans: list[range], length: int) -> list[tuple[int, range]]:
    """Pairs of what was said and what was matches; where too little was matches, the nearest ones."""
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
    """Two of a row as a pair; None where both were said or both were matches."""
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


def _has_figures(text: str) -> bool:
    return any(map(str.isdigit, text))


def _part(token: str) -> str:
    """What of a token is compared: no currency, no signs but those of a mailbox, no ending of an ordinal."""
    if token.isalpha() and token not in _NOT_PLAIN:
        return token
    if token in _SILENT:
        return ""
    if "@" in token or token in DECIMALS:  # 1/2 is not 12
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
