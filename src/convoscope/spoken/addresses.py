"""Mail addresses and sites that are said in words."""

from __future__ import annotations

import re

from convoscope.spoken.vocabulary import listed

TOP_LEVEL = frozenset(listed("com org net edu gov io co ai info biz de uk us fr eu"))
_SITE = re.compile(r"[a-z0-9]+(?:\.[a-z0-9]+)*\.(?:" + "|".join(sorted(TOP_LEVEL)) + ")")
_LINKS = {"dot": ".", "underscore": "_", "dash": "-", "hyphen": "-", "plus": "+"}
_NOBODY = frozenset(listed("me us him her it them you look looking is are was be here there or and find"))
"""Words before `at` that are no mailbox: "look at example.com"."""
_PART = re.compile(r"[a-z0-9][a-z0-9._+-]*")


def fold_addresses(words: list[str]) -> list[str]:
    """`example dot com` is example.com, `john dot doe at example dot com` is john.doe@example.com."""
    if "dot" not in words and ("at" not in words or "." not in "".join(words)):
        return words
    out: list[str] = []
    for word in words:
        out.append(word)
        if word in TOP_LEVEL and out[-2:-1] == ["dot"]:
            _join_site(out)
        if out[-2:-1] == ["at"] and "." in out[-1] and _SITE.fullmatch(out[-1]):
            _join_mail(out)
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
    start = len(out) - 3
    if start < 0 or out[start] in _NOBODY or not _PART.fullmatch(out[start]):
        return
    while start >= 2 and out[start - 1] in _LINKS and _PART.fullmatch(out[start - 2]) and out[start - 2] not in _LINKS:
        start -= 2
    mailbox = "".join(_LINKS.get(word, word) for word in out[start:-2])
    out[start:] = [f"{mailbox}@{out[-1]}"]
