"""The words of a text with their places, and the stretches in which letters and numbers are said one by one."""

from __future__ import annotations

import re

from convoscope.text.spoken.vocabulary import MONTHS, NATO, ORDINALS, REPEATS, SCALES, SMALL, TENS

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_DIGIT = re.compile(r"[0-9]")
_JOINS = re.compile(r"[\s-]*|\s*(?:\.\.\.|…)\s*")
_LISTED = re.compile(r"[\s,-]*")
_NUMBER_WORDS = frozenset((*SMALL, *SCALES, *ORDINALS)) - {"second"}
_BEFORE_SECOND = frozenset((*TENS, *MONTHS))
_LINKS = frozenset(("second", *REPEATS, "and", "point", "oh"))
_EXPLAIN = frozenset(("as", "for", "like"))
_SENTENCE_ENDS = frozenset(".!?:")
_AS_IN = ["as", "in"]
_AREA, _AREA_END = (" (", "("), (") ", ")", ")-")
"""Around the area code of a phone number."""
_AHEAD = 5
"""Words behind a radio word in which another letter is looked for."""


class Words:
    """The words of a text, as written, in small letters, and where they stand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found = list(_WORD.finditer(text))
        self.written = [found[0] for found in self._found]
        self.small = [word.lower() for word in self.written]
        if "’" in text:
            self.small = [word.replace("’", "'") for word in self.small]

    def __len__(self) -> int:
        return len(self.written)

    def start(self, place: int) -> int:
        return self._found[place].start()

    def end(self, place: int) -> int:
        return self._found[place].end()

    def near(self, start: int, end: int) -> list[str]:
        """The words from one place to another in small letters, as many as there are."""
        return self.small[max(start, 0) : max(end, 0)]

    def word(self, place: int) -> str:
        """A word in small letters, empty beyond the ends."""
        return self.small[place] if 0 <= place < len(self.small) else ""

    def gap(self, place: int) -> str:
        """What stands between a word and the one before it."""
        return self.text[self._found[place - 1].end() : self._found[place].start()]

    def between(self, start: int, end: int) -> str:
        """The text from the first word to the one before `end`."""
        return self.text[self.start(start) : self.end(end - 1)]

    def begins(self, place: int) -> bool:
        """Whether a word stands at the beginning of a sentence, where anything has a capital."""
        return place == 0 or not _SENTENCE_ENDS.isdisjoint(self.gap(place))

    def is_name(self, place: int) -> bool:
        """Whether a word has a capital and is longer than a letter."""
        if not 0 <= place < len(self.written):
            return False
        word = self.written[place]
        return len(word) > 1 and word[0].isupper()


def stretch(words: Words, start: int) -> int:
    """Where a stretch of numbers and single letters ends; `start` itself where there is none."""
    end, most = start, len(words.small)
    explained, lettered = False, False  # "as" was said so far, a letter was said
    while end < most and (end == start or _goes_on(words, end, explained=explained)):
        step = _piece(words, start, end, lettered=lettered)
        if not step:
            break
        spoken = words.near(end, end + step)
        explained, lettered = explained or "as" in spoken, lettered or any(map(_is_letter, spoken))
        end += step
    return min(end, most)


def _goes_on(words: Words, place: int, *, explained: bool) -> bool:
    """Whether a number or code may go on with a word: after a blank, a hyphen, a hesitation, in 4:30 and 1,200."""
    gap = words.gap(place)
    if gap == " ":
        return True
    before, word = words.written[place - 1], words.written[place]
    if gap in (":", ".", ","):
        half_day = gap == "." and before.lower() in ("a", "p") and word.lower() == "m"
        return half_day or (before.isdigit() and word[0].isdigit() and (gap != "," or len(word) == 3))
    if before.isdigit() and len(word) == 3 and word.isdigit() and gap in _AREA:
        return True
    if before.isdigit() and len(before) == 3 and word.isdigit() and gap in _AREA_END:
        return True
    return (_LISTED if explained else _JOINS).fullmatch(gap) is not None


def _piece(words: Words, start: int, place: int, *, lettered: bool) -> int:
    """Of how many words the letter or number at a place is; 0 where there is none."""
    word = words.small[place]
    begun = place > start
    if word in _NUMBER_WORDS or (not word.isalpha() and _DIGIT.search(word)):
        alone = word in SCALES and not begun
        return 0 if alone else _with_example(words, place)
    if len(word) == 1:
        return _letter(words, place, begun=begun)
    if word in NATO:
        return int(_is_radio(words, place, begun=begun, lettered=lettered))
    return int(word in _LINKS and _links(words, place, begun=begun))


def _links(words: Words, place: int, *, begun: bool) -> bool:
    """Words that belong to a number but are none: `double` seven, one hundred `and` five, one `point` two."""
    word, following = words.small[place], words.word(place + 1)
    if word == "second":
        return words.word(place - 1) in _BEFORE_SECOND
    if word in REPEATS:
        return following in SMALL or len(following) == 1
    if word == "and":
        return begun and following in SMALL and words.word(place - 1) in ("hundred", "thousand")
    if word == "point":
        return begun and _is_number(following) and _is_number(words.word(place - 1))
    return word == "oh" and begun


def _is_number(word: str) -> bool:
    return word in SMALL or word.isdigit()


def _with_example(words: Words, place: int) -> int:
    """N, the four words N as in November, or the three words N for November."""
    following = words.small[place + 1 : place + 3]
    if len(following) < 2 or following[0] not in _EXPLAIN:
        return 1
    if following == _AS_IN:
        return 4
    return 3 if following[0] != "as" and NATO.get(following[1]) == words.small[place] else 1


def _letter(words: Words, place: int, *, begun: bool) -> int:
    """A single letter; `a` and `I` are words of their own unless others stand beside them."""
    word, following = words.written[place], words.word(place + 1)
    length = _with_example(words, place)
    if word not in ("a", "A", "I") or length > 1:
        return length if word.isalpha() else 0
    if not begun:
        letters = [one for one in words.near(place + 1, place + 3) if len(one) == 1 or one in SMALL or one in NATO]
        return int(len(letters) == 2 and word.isupper())
    if word == "a":
        return int(following == "m" or words.written[place - 1].islower())
    letters_before = [len(one) for one in words.near(place - 2, place)] == [1, 1]
    return int(word == "A" or len(following) == 1 or letters_before)


def _is_radio(words: Words, place: int, *, begun: bool, lettered: bool) -> bool:
    """Whether a word of the radio alphabet is a letter here: with another letter in the stretch, or in a seat."""
    last = words.word(place - 1) if begun else ""
    if words.small[place] == "november":  # a month, unless right behind a letter
        return _is_letter(last)
    right_behind = len(last) == 1 and last.isalpha()
    if right_behind or lettered or _letter_follows(words, place):
        return True
    before = words.near(place - 4, place)
    return begun and ("seat" in before or "row" in before)


def _letter_follows(words: Words, place: int) -> bool:
    """Whether behind a radio word, and some numbers, another letter is said: foxtrot two `bravo`."""
    following = words.near(place + 1, place + 1 + _AHEAD)
    behind = next((word for word in following if not _is_number(word)), "")
    return _is_letter(behind) and words.gap(place + 1) in (" ", "-", ", ")


def _is_letter(word: str) -> bool:
    """Whether a word is a letter for sure, or a radio word: no article, no pronoun."""
    return word in NATO or (len(word) == 1 and word.isalpha() and word not in "ai")
