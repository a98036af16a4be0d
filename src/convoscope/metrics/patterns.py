"""Regular expressions that come with the data: compiled once, and only those that come to an end."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import NamedTuple

LONGEST_TEXT = 10_000
"""Characters of a text that a pattern of the data is tried on."""
LONGEST_PATTERN = 1_000
_MOST_STEPS = 10**7


class BadPattern(ValueError):
    """A pattern that cannot be used, with the reason in words."""


class Checked(NamedTuple):
    """A pattern that may be tried, on texts up to a length."""

    pattern: re.Pattern[str]
    longest: int


@lru_cache(maxsize=256)
def checked(text: str, flags: int = 0) -> Checked:
    """The pattern of a text. Refused with `BadPattern`: what is none, and what might never come to an end.

    Python cannot stop a search that has begun. A repeat of something whose length varies, such as
    `(a+)+`, can be cut into passes in more ways than can ever be tried, and so can a repeated choice
    whose branches begin alike; both are refused, unless a literal marks off one pass from the next, as
    the comma does in `(\\w+,)*`. Repeats that run into one another, such as `.*.*.*`, take n³ steps: the
    longest text follows from how many do. This is caution, not a proof.
    """
    if len(text) > LONGEST_PATTERN:
        raise BadPattern(f"longer than {LONGEST_PATTERN} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a pattern of the data that Python finds odd is not ours to mend
            pattern = re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern(str(error) or type(error).__name__) from None
    if pattern.flags & re.VERBOSE:
        raise BadPattern("a pattern with blanks that do not count is not supported")
    joined = _Scan(text).repeats_joined()
    return Checked(pattern, min(LONGEST_TEXT, int(_MOST_STEPS ** (1 / joined))))


class _Group:
    """What is known of a group, while the scan is inside it and as the atom that it then is."""

    def __init__(self, atomic: bool = False) -> None:
        self.atomic = atomic
        self.loops: list[str] = []
        """What it holds as often as it likes, or not at all; "" for a group."""
        self.unbounded = False
        self.deep = False
        """A group in it is repeated whose passes nothing marks off."""
        self.tangled = False
        """Two of these may share the same characters in several ways."""
        self.since: set[str] = set()
        """The literals since the last of these."""
        self.needed: set[str] = set()
        """The literals that every pass through it meets."""
        self.starts: list[str] = [""]
        """The literal that each branch begins with; "" for anything else."""
        self.empty = True

    def add(self, start: str) -> None:
        """One more atom of the branch."""
        if self.empty:
            self.starts[-1] = start.casefold()
            self.empty = False

    def branch(self) -> None:
        self.starts.append("")
        self.empty = True

    @property
    def alike(self) -> bool:
        """It has branches that may begin with the same character."""
        return len(self.starts) > 1 and ("" in self.starts or len(set(self.starts)) < len(self.starts))

    def need(self, literal: str) -> None:
        self.needed.add(literal)
        self.since.add(literal)

    def vary(self, atom: str) -> None:
        """One more atom whose number varies; "" for a group."""
        self.tangled |= bool(self.loops) and not _parted(self.loops[-1:], self.since)
        self.loops.append(atom)
        self.since.clear()

    def may_be_repeated(self, without_end: bool) -> None:
        """Refuses where the passes through it could be told apart in too many ways."""
        if self.alike and without_end:
            raise BadPattern("a repeated choice whose branches begin alike may never come to an end")
        if (without_end or self.unbounded or self.deep) and not self.marked_off:
            raise BadPattern("a repeat inside a repeat may never come to an end")

    @property
    def marked_off(self) -> bool:
        """It is always of one length, or a literal tells one pass through it from the next."""
        if len(self.starts) > 1:
            return not self.loops
        return not self.loops or (not self.tangled and "" not in self.loops and _parted(self.loops, self.needed))


class _Scan:
    """One walk through the text of a pattern that Python has already accepted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open = [_Group()]
        self.last_loop = ""
        self.marks: set[str] = set()
        """The literals since then."""
        self.joined = 1

    def repeats_joined(self) -> int:
        """How many repeats may run into one another; refuses what may not end."""
        while self.at < len(self.text):
            self._step()
        return self.joined

    def _step(self) -> None:
        one = self.text[self.at]
        if one == "(":
            self._enter()
        elif one == ")":
            self._leave()
        elif one == "|":
            self.at += 1
            self.open[-1].branch()
        elif one in "^$":
            self.at += 1
        else:
            self._character(one)

    def _enter(self) -> None:
        opening = _OPENING.match(self.text, self.at)
        assert opening is not None
        self.at = opening.end()
        if not opening[0].endswith(")"):  # a comment, flags and a back reference are closed at once
            self.open.append(_Group(atomic=opening[0] == "(?>"))

    def _leave(self) -> None:
        self.at += 1
        inner = self.open.pop()
        self.open[-1].add("")
        self._repeated(inner, "")
        if not inner.atomic:
            self.open[-1].unbounded |= inner.unbounded
            self.open[-1].deep |= inner.deep
            if inner.loops or inner.alike:
                self.open[-1].vary("")

    def _character(self, one: str) -> None:
        found = _ATOM.match(self.text, self.at)
        atom = one if found is None else found[0]
        self.at += len(atom)
        literal = _literal(atom)
        self.open[-1].add(literal)
        if not self._repeated(None, atom) and literal:
            self.open[-1].need(literal)
            self.marks.add(literal)

    def _repeated(self, inner: _Group | None, atom: str) -> bool:
        """The quantifier that follows an atom; whether there is one."""
        found = _QUANTIFIER.match(self.text, self.at)
        if found is None:
            return False
        self.at = found.end()
        sign, mode = found[0][0], found["mode"]
        if sign in "*?{":
            self.open[-1].starts[-1] = ""  # it may be left out: the branch may begin with what follows
            if inner is not None and not inner.loops:
                self.marks.clear()
        most = {"*": None, "+": None, "?": 1}.get(sign, _most(found))
        if mode == "+":
            return True
        without_end = most is None or most > _MANY
        if inner is not None and not inner.atomic and most != 1:
            inner.may_be_repeated(without_end)
            self.open[-1].deep |= not inner.marked_off
        if sign != "{" or found["comma"]:
            self.open[-1].vary(atom)
        if without_end:
            self.open[-1].unbounded = True
            if inner is None or not inner.loops:
                self._join(atom or ".")
        return True

    def _join(self, loop: str) -> None:
        """One more repeat: it runs into the last one, unless a literal stands between that the last one cannot meet."""
        if self.last_loop and not _parted([self.last_loop], self.marks):
            self.joined += 1
        self.last_loop = loop
        self.marks.clear()


def _literal(atom: str) -> str:
    """The one character that an atom stands for; "" where it stands for several."""
    if len(atom) == 1:
        return "" if atom == "." else atom
    return _ESCAPES.get(atom, "") if atom[1:].isalnum() or len(atom) > 2 else atom[1]


def _most(found: re.Match[str]) -> int | None:
    if not found["comma"]:
        return int(found["least"] or 0)
    return int(found["most"]) if found["most"] else None


def _parted(loops: list[str], marks: set[str]) -> bool:
    """Whether one of the marks is something that none of the loops can meet."""
    return any(all(not re.fullmatch(loop, mark, re.IGNORECASE | re.DOTALL) for loop in loops) for mark in marks)


_MANY = 10
_OPENING = re.compile(r"\((?:\?(?:#[^)]*\)|P=\w+\)|P<\w+>|<?[=!]|>|\(\w+\)|[aiLmsux-]+[:)]|:))?")
_ATOM = re.compile(r"\\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|[0-9]{1,3}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r"}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\})(?P<mode>[?+]?)")
