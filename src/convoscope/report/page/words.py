"""What was meant, what was spoken and what was heard, for an utterance where these differ in a fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.words import counted, cut_text
from convoscope.harmless import clean, one_line
from convoscope.report.speech_lanes import clock_text
from convoscope.runs.conversations import KeptConversation

OF_ENTITIES = ("audio.spoken_entities", "audio.heard_entities")
"""Metrics whose marks say how many facts arrived."""
_TEXTS = ("meant", "spoken", "heard")
_LONGEST = 2_000
_MOST = 4
"""Differences in the sentence; all are marked in the texts."""
_MOST_WORDS = 2_000


class TextDifference(msgspec.Struct, frozen=True):
    """A fact that did not arrive as it was, as details have it. A text that is unknown is None."""

    kind: str
    meant: str | None = None
    spoken: str | None = None
    heard: str | None = None
    start: float | None = None


class SpokenWord(msgspec.Struct, frozen=True):
    """A word and when it is heard."""

    text: str
    start: float
    end: float


class ThreeTexts(msgspec.Struct, frozen=True):
    """The details of one utterance (docs/guides/sound.md)."""

    differs: list[TextDifference] = []
    meant: str | None = None
    spoken: str | None = None
    heard: str | None = None
    words: list[SpokenWord] = []
    by: str = ""
    undecided: list[TextDifference] = []
    """Facts of which it is open whether they were spoken as they were meant."""
    heard_by_log: list[TextDifference] = []
    """Facts that the log's recogniser wrote otherwise, be they spoken rightly or not."""
    decided: int = 0
    """How many facts are right or wrong for sure."""

    @property
    def is_worth_showing(self) -> bool:
        """Whether a fact differs between two of the texts, or may."""
        return bool(self.differs or self.undecided or self.heard_by_log)


class TextBlock(msgspec.Struct, frozen=True, omit_defaults=True):
    """The texts as rows of pieces, each with its tone, and one sentence."""

    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    sum: str = ""
    words: tuple[tuple[float, float] | None, ...] = ()
    """When each word of the text that is shown is heard; None where that is not known."""


class FactRemark(NamedTuple):
    """What became of one fact, and at which second of the recording."""

    second: float
    text: str
    is_open: bool


def text_blocks(record: KeptConversation) -> dict[int, ThreeTexts]:
    """By the number of the event: the details of utterances that have these texts."""
    texts: dict[int, ThreeTexts] = {}
    for score in record.scores:
        details, subject = score.observation.details, score.observation.subject
        if subject.kind == "utterance" and isinstance(details, Mapping) and "differs" in details:
            known, seq = _read(details), subject.position
            # Of several metrics the one that found something counts.
            if known is not None and seq is not None and not (seq in texts and texts[seq].is_worth_showing):
                decided = int(score.observation.denominator or 0)
                texts[seq] = msgspec.structs.replace(known, decided=decided)
    return texts


def _read(details: Mapping[str, Any]) -> ThreeTexts | None:
    try:
        return msgspec.convert(details, ThreeTexts)
    except msgspec.ValidationError:
        return None


def fact_remarks(texts: ThreeTexts) -> Iterator[FactRemark]:
    """The facts that arrived wrong, and those that may have."""
    heard = {one.meant: one.heard for one in texts.heard_by_log}
    for known in texts.differs:
        if (
            known.kind != "cut"
            and known.start is not None
            and (text := _difference_text(known, heard.get(known.meant)))
        ):
            yield FactRemark(known.start, text, False)
    for doubtful in texts.undecided:
        if doubtful.start is not None:
            yield FactRemark(doubtful.start, _doubt_text(doubtful), True)


def fact_chips(texts: ThreeTexts) -> Iterator[tuple[str, bool]]:
    """How many facts arrived wrong, and how many may have; and whether that is bad."""
    wrong, open_ = sum(one.kind != "cut" for one in texts.differs), len(texts.undecided)
    if wrong and texts.decided:
        verb = "arrived wrong" if texts.meant is not None else "written otherwise"
        of = f"{wrong} of {texts.decided} names and numbers" if texts.decided > 1 else "1 name or number"
        yield f"{of} {verb}", True
    if open_:
        yield f"{counted(open_, 'fact')} may be wrong: listen", False


def text_block(texts: ThreeTexts, shown: str, shift: Callable[[float], float]) -> TextBlock | None:
    """What is shown of an utterance; without a difference only the times of the shown words, if they are known."""
    words = tuple(_timed(shown, texts.words[:_MOST_WORDS], shift))
    if not any(words):
        words = ()
    if not texts.is_worth_showing:
        return TextBlock(words=words) if words else None
    rows = []
    for name in _TEXTS:
        text = getattr(texts, name)
        if text is not None:
            rows.append((name, tuple(_pieces(clean(cut_text(text, _LONGEST)), name, texts))))
    return TextBlock(tuple(rows), _sentence(texts, shift), words)


def _timed(
    shown: str, words: Sequence[SpokenWord], shift: Callable[[float], float]
) -> Iterator[tuple[float, float] | None]:
    """The times of the words of a text, as far as a recogniser heard the same, or as many others between these."""
    tokens = shown.split()[:_MOST_WORDS]
    times: list[tuple[float, float] | None] = [None] * len(tokens)
    matcher = SequenceMatcher(None, [*map(_letters, tokens)], [_letters(one.text) for one in words], autojunk=False)
    for tag, first, last, begin, end in matcher.get_opcodes():
        if tag == "equal" or (tag == "replace" and last - first == end - begin):
            for token, word in zip(range(first, last), words[begin:end], strict=True):
                times[token] = shift(word.start), shift(word.end)
    yield from times


def _letters(word: str) -> str:
    return "".join(filter(str.isalnum, word)).casefold()


def _pieces(text: str, name: str, texts: ThreeTexts) -> Iterator[tuple[str, str]]:
    """The text with the facts that differ marked: as they were at first, and wrong from then on."""
    marked: list[tuple[int, int, str]] = []
    for tone, differences in (("x", texts.differs), ("x", texts.heard_by_log), ("m", texts.undecided)):
        for difference in differences:
            wanted = clean(getattr(difference, name) or "")
            begin = text.find(wanted) if wanted else -1
            # The same words twice: each difference has one of its own.
            while begin >= 0 and any(begin < end and start < begin + len(wanted) for start, end, _ in marked):
                begin = text.find(wanted, begin + 1)
            if begin >= 0:
                is_first = name == next(one for one in _TEXTS if getattr(difference, one) is not None)
                own = "gone" if difference.kind == "cut" else "e" if is_first else tone
                marked.append((begin, begin + len(wanted), own))
    at = 0
    for start, end, tone in sorted(marked):
        yield "", text[at:start]
        yield tone, text[start:end]
        at = end
    yield "", text[at:]


def _sentence(texts: ThreeTexts, shift: Callable[[float], float]) -> str:
    heard = {one.meant: one.heard for one in texts.heard_by_log}
    parts = [_difference_text(one, heard.pop(one.meant, None)) for one in texts.differs]
    parts += [_difference_text(one, None) for one in texts.heard_by_log if one.meant in heard]
    doubts = []
    for doubtful in texts.undecided:
        where = f": listen at {clock_text(shift(doubtful.start))}" if doubtful.start is not None else ""
        doubts.append(_doubt_text(doubtful) + where)
    parts = [*filter(None, [*parts, *doubts])]
    more = len(parts) - _MOST
    parts = [*parts[:_MOST], *([f"{more:,} more differ"] if more > 0 else [])]
    by = f" Heard by {one_line(texts.by, 80)}." if texts.by else ""
    return ", ".join(parts) + "." + by if parts else by.strip()


def _doubt_text(difference: TextDifference) -> str:
    wanted, other = [_shown(one) for name in _TEXTS if (one := getattr(difference, name)) is not None][:2]
    return f"{wanted} may have arrived as {other}" if other else f"{wanted} may be missing"


def _difference_text(difference: TextDifference, heard: str | None) -> str:
    """What became of a fact, step by step; `heard` is what the log's recogniser wrote of it."""
    known = [_shown(one) for name in _TEXTS if (one := getattr(difference, name)) is not None]
    if difference.kind == "cut":
        return f"“{known[0] if known else ''}” was not spoken"
    if len(known) < 2:
        return ""
    if not known[-1]:
        return f"{known[0]} did not arrive"
    if heard is not None and difference.heard is None:
        return f"{known[0]} was spoken as {known[-1]} and heard as {_shown(heard) or 'nothing'}"
    verb = "arrived as"
    if difference.heard is not None and (difference.spoken is None or difference.meant is None):
        verb = "was heard as" if difference.spoken is None else "was written as"
    return f"{known[0] or 'nothing'} {verb} {known[-1]}"


def _shown(text: str | None) -> str:
    return one_line(text or "", 80).rstrip(" .,;:!?")
