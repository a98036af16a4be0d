"""Mail addresses and sites that are said in words."""

from __future__ import annotations

import re

from convoscope.text.spoken.vocabulary import listed

TOP_LEVEL = frozenset(
    listed("com org net edu gov ac io co ai info biz de uk us fr eu ca au nz ch jp cn kr br mx nl se dk fi pl pt za")
)
_SITE = re.compile(r"[a-z0-9]+(?:\.[a-z0-9]+)*\.(?:" + "|".join(sorted(TOP_LEVEL)) + ")")
_LINKS = {"dot": ".", "underscore": "_", "dash": "-", "hyphen": "-", "plus": "+"}
NOBODY = frozenset(
    listed(
        "a an at me us him her it it's them you look looking is are was be here there or and find "
        "to on my the mail email address"
    )
)
"""Words before `at` that are no mailbox: "look at example.com"."""
_PART = re.compile(r"[a-z0-9][a-z0-9._+-]*")


def fold_addresses(words: list[str]) -> list[str]:
    """`example dot com` is example.com, `john dot doe at example dot com` is john.doe@example.com."""
    if "dot" in words:
        words = _sites(words)
    if "at" not in words or "." not in "".join(words):
        return words
    out: list[str] = []
    for word in words:
        out.append(word)
        if "." in word and out[-2:-1] == ["at"] and _SITE.fullmatch(word):
            _join_mail(out)
    return out


def _sites(words: list[str]) -> list[str]:
    """All of a site before any mailbox: behind `mail dot co` there may stand `dot uk`."""
    out: list[str] = []
    for word in words:
        out.append(word)
        if word in TOP_LEVEL and out[-2:-1] == ["dot"]:
            _join_site(out)
    return out


def _join_site(out: list[str]) -> None:
    """Take in `mail dot example dot` in front of the `com` at the end."""
    start = len(out) - 1
    while start >= 2 and out[start - 1] == "dot" and _PART.fullmatch(out[start - 2]) and out[start - 2] not in _LINKS:
        start -= 2
    site = ".".join(word for word in out[start:] if word != "dot")
    if _SITE.fullmatch(site):
        out[start:] = [site]


def _join_mail(out: list[str]) -> None:
    """Take in `john underscore doe 99 at` in front of the site at the end."""
    start = len(out) - 3
    if start < 0 or out[start] in NOBODY or not _is_part(out[start]):
        return
    while start and (before := _part_before(out, start)) < start:
        start = before
    mailbox = "".join(_LINKS.get(word, word) for word in out[start:-2])
    out[start:] = [f"{mailbox}@{out[-1]}"]


def _part_before(out: list[str], start: int) -> int:
    """Where the part of a mailbox before the one at `start` begins: behind a link, or the name before a number."""
    if out[start - 1] in _LINKS:
        return start - 2 if start >= 2 and _is_part(out[start - 2]) else start
    name = out[start - 1]
    named = out[start].isdecimal() and name.isalpha() and _is_part(name)
    # RankedMetric a link any word is part of a mailbox.
    return start - 1 if named and (name not in NOBODY or (start >= 2 and out[start - 2] in _LINKS)) else start


def _is_part(word: str) -> bool:
    return word not in _LINKS and _PART.fullmatch(word) is not None
