"""Words that say that something which was promised is done. English."""

from __future__ import annotations

import re
from functools import lru_cache

_DONE = r"(?:done|sorted(?: out)?|taken care of|dealt with|completed|finished)"
_BEFORE = r"(?:(?:just|now|already|all|been|both) )*"
_IS = r"(?:(?:'s|'re|'ve)|(?: is| are| was| were| has| have))"
_MODAL = r"(?:will|would|should|could|must|might|may|not|never)"
_OPEN = re.compile(rf"\b(?:once|when|until|if|after|as soon as|{_MODAL})\b[^,;]*$")
"""What is said before such words and makes them a plan, a condition or a denial."""
_IRREGULAR = {
    "bring": "brought", "build": "built", "buy": "bought", "cancel": "cancel(?:l)?ed", "do": "done", "drop": "dropped",
    "find": "found", "get": "got(?:ten)?", "give": "given", "hold": "held", "keep": "kept", "leave": "left",
    "let": "let", "make": "made", "pay": "paid", "plan": "planned", "put": "put", "read": "read", "refer": "referred",
    "reset": "reset", "ring": "rung", "see": "seen", "send": "sent", "set": "set", "ship": "shipped", "speak": "spoken",
    "stop": "stopped", "submit": "submitted", "swap": "swapped", "take": "taken", "tell": "told",
    "transfer": "transferred", "write": "written",
}  # fmt: skip
_QUOTES = str.maketrans({"’": "'", "‘": "'"})


def says_done(text: str, promise: str) -> bool:
    """Whether a text says that a promise, written as an instruction, was kept: "I've sent it", "that's done"."""
    words = " ".join(text.translate(_QUOTES).lower().split())
    return any(not _OPEN.search(_sentence_before(words, one.start())) for one in _pattern(promise).finditer(words))


def _sentence_before(text: str, place: int) -> str:
    return re.split(r"[.!?]", text[:place])[-1]


@lru_cache(1024)
def _pattern(promise: str) -> re.Pattern[str]:
    verb = re.match(r"\W*([a-z]+)", promise.lower())
    done = f"(?:{_DONE}|{participle(verb[1])})" if verb else _DONE
    return re.compile(
        rf"\b(?:all {_DONE}|(?!{_MODAL}\b)\w+{_IS} {_BEFORE}{done}|(?:i|we) (?:just|already) {done})\b(?! to\b)"
    )


def participle(verb: str) -> str:
    """The form of a verb that goes with "have", as a pattern."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if re.search(r"[^aeiou]y$", verb) else f"{verb}ed"
