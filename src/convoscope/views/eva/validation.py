"""Which of the agent's logged replies were really spoken, and how far (voice logs, 3.6(2))."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from convoscope.views.eva.call_state import Entry
from convoscope.views.eva.labels import without_labels

_LEAST_CHARACTERS = 20


class _Reduction(dict[int, str | None]):
    """For str.translate: letters and digits in lower case, nothing else; filled as characters are met."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        self[code] = kept = character.lower() if character.isalnum() else None
        return kept


_REDUCTION = _Reduction()
_TYPOGRAPHY = "’‘“”–—…"


def spoken(trace: list[Entry], segments: dict[int, list[str]]) -> list[Entry]:
    """The trace without what was never sent to the speech engine; what was sent in part is cut."""
    reduced: dict[int, list[str]] = {}
    kept: list[Entry] = []
    for entry in trace:
        if entry.audited:
            turn = entry.turn
            if turn not in reduced:
                reduced[turn] = [_reduce(without_labels(segment)) for segment in segments.get(turn, ())]
            text = _spoken_part(entry.content or "", reduced[turn])
            if text is not None:
                entry.content = text
            elif not entry.nudge:
                continue
        kept.append(entry)
    return kept


def _spoken_part(text: str, segments: list[str]) -> str | None:
    """The text as far as the segments hold it; None where they do not."""
    plain = without_labels(text)
    whole = _reduce(plain)
    if not whole:
        return None
    if any(whole in segment for segment in segments) or whole in "".join(segments):
        return text

    def is_unsaid(length: int) -> bool:
        start = whole[:length]
        return not any(segment.startswith(start) for segment in segments)

    lengths = list(accumulate([len(_reduce(word)) for word in plain.split()]))
    words = bisect_left(lengths, True, key=is_unsaid)
    if not words or lengths[words - 1] < _LEAST_CHARACTERS:
        return None
    # Counted without labels, applied with them: a label at the front costs words of the text.
    return " ".join(text.split()[:words])


def _reduce(text: str) -> str:
    if not text.isascii():
        # translate is ten times as fast on ASCII, and these few signs are most of what else speech texts hold.
        for sign in _TYPOGRAPHY:
            text = text.replace(sign, "")
    return text.translate(_REDUCTION)
