"""The letter of a choice in an answer, by what is around it. To compile these takes a tenth of a second."""

from __future__ import annotations

import re

from convoscope.metrics.answer.multiple_choice import CUE, DRESS, IS, LINK
from convoscope.text.comparison import UNSPACED

_WORD = f"[^\\W_{UNSPACED}]"
_ALONE = f"(?<!{_WORD})(?<!\\w[-'’])"
_END = f"(?!{_WORD}|['’-]\\w)"


def _letter(name: str) -> str:
    return f"{_ALONE}(?P<{name}>[A-Ja-j]){_END}"


STATED = re.compile(
    rf"{CUE}{LINK}{DRESS}{_letter('answered')}"
    rf"|\b(?:cho(?:o)?se|pick(?:ed)?|select(?:ed)?|(?:go(?:ing)?|went|stick(?:ing)?)\s+with|opt(?:ed|ing)?\s+for)"
    rf"\s+{DRESS}{_letter('taken')}"
    rf"|\b(?:it['’]s|(?:it|that|this)\s+{IS}|must\s+be|has\s+to\s+be|therefore,?|thus,?|hence,?)\s+"
    rf"{DRESS}{_letter('concluded')}"
    rf"|{_letter('praised')}[\"'”’)\]*_`]*\s+(?:is|was|must\s+be|seems|looks)\s+(?:\w+ly\s+)?(?:the\s+)?"
    r"(?:correct|right|best|true|answer)\b"
    rf"|\\boxed\{{\s*(?:\\text\{{)?{_letter('boxed')}",
    re.IGNORECASE,
)
MARKED = re.compile(
    rf"(?:\*\*|__)\s*\(?{_letter('bold')}(?:\)?[.):]|\)?\s*(?:\*\*|__))"
    rf"|\({_letter('round')}\)|\[{_letter('square')}\]"
    rf"|\b(?:[Oo]ption|[Cc]hoice|[Ll]etter|[Aa]lternative)\s+{_letter('option')}"
)
LONE_LINE = re.compile(rf"^[^\w\n]*{_letter('letter')}[^\w\n]*$", re.MULTILINE)
LINE_START = re.compile(rf"^[^\w\n]*{_letter('letter')}[).:\]]\s", re.MULTILINE)
LETTER_ALONE = re.compile(_letter("letter"))
CAPITAL = re.compile(f"{_ALONE}(?P<letter>[A-J]){_END}")
SMALL = re.compile(f"{_ALONE}(?P<letter>[a-j]){_END}")
