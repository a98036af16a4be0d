"""Words of logs for who speaks, and what they mean. A word that may mean several things means nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from convoscope.ingest import speaker_labels
from convoscope.ingest.mapping.fields import words_of
from convoscope.ingest.record import ROLES

_NEUTRAL = re.compile(
    r"messages?|msg|text|utter(ance)?|said|says?|speaks|spoke|speech|turn|input|query|question|answer|reply|response"
    r"|transcript|transcribed|output|content|web|chat|live|final|team|results?|the|an?|of|by|from|on|line|en|\d+"
)
"""Words beside a role that change nothing: `user_message`, `agent.said`."""
_MORE = {
    "user": re.compile(
        r"usr|cust|contacts?|users|customers|clients|requesters?|shoppers?|consumers?|passengers?|students?"
    ),
    "assistant": re.compile(r"\w{0,40}bots?|agents|assist|assistants|staff|helpdesk|concierge|copilot|llm"),
    "system": re.compile(r"sys|platform"),
    "tool": re.compile(r"tools?|functions?|api|observation"),
}
"""What transcripts have no labels for."""
_DIRECTIONS = {
    **dict.fromkeys(("in", "inbound", "incoming"), "user"),
    **dict.fromkeys(("out", "outbound", "outgoing"), "assistant"),
}
_SIDE = re.compile(
    r"(is_|from_|by_|is_from_)?(?:(user|customer|client|visitor|guest|caller|incoming|inbound)|agent|outgoing|outbound)"
)
"""Flags that say which of two sides speaks. Who is no bot may be a user or a colleague: that is no such flag."""
_NO_SPEECH = re.compile(
    r"notes?|internal|private|whisper|memo|drafts?|events?|status|activity|activities|logs?|debug|notifications?"
    r"|assign(ed|ment)?|joined|left|typing|errors?|summary|metadata|tags?|audit|hidden|deleted|suggest(ed|ions?)"
    r"|proposals?|partial|interim"
)
"""Words for entries that are not said to anyone: notes of colleagues, events, drafts, what was only proposed."""


def role_of(word: str) -> str:
    """Our word for a role; "" where it is not known, or where it is of no speaker.

    >>> [role_of(word) for word in ("Customer", "VoiceBot", "Customer Service", "user_message", "UserGuide", "Ann")]
    ['user', 'assistant', 'assistant', 'user', '', '']
    """
    key = word.strip().casefold()
    if key in ROLES or key in _DIRECTIONS:
        return ROLES.get(key) or _DIRECTIONS[key]
    words = [one for one in words_of(word) if not _NEUTRAL.fullmatch(one)]
    if not words or is_no_speech(word):
        return ""
    # The last word says who it is: a user guide is no user.
    last = _single(words[-1])
    whole = speaker_labels.role_of(" ".join(words)) if last else ""
    return last if whole == speaker_labels.UNKNOWN and len(words) == 1 else _agreed(words, last, whole)


def role_in(field: str, word: str) -> str:
    """Our word for a role by the name of its field, too, which may be a flag that says which side speaks.

    >>> role_in("from_customer", "true"), role_in("outgoing", "false"), role_in("is_bot", "false")
    ('user', 'user', '')
    """
    side = _SIDE.fullmatch(field)
    if side is None or word not in ("true", "false"):
        return role_of(word)
    is_user = side[2] is not None
    return "user" if is_user == (word == "true") else "assistant"


def _agreed(words: list[str], last: str, whole: str) -> str:
    """The role of several words: what a transcript would take it for, or else the last, where no other says more."""
    if whole != speaker_labels.UNKNOWN:
        return whole
    return last if {_single(one) for one in words} <= {"", last} else ""


def _single(word: str) -> str:
    """The role of a single word."""
    role = speaker_labels.role_of(word)
    if role != speaker_labels.UNKNOWN:
        return role
    return ROLES.get(word) or next((meant for meant, pattern in _MORE.items() if pattern.fullmatch(word)), "")


def is_no_speech(word: str) -> bool:
    """Whether entries of this kind are notes or events, and no speech."""
    return any(map(_NO_SPEECH.fullmatch, words_of(word)))


def ambiguous_words(words: Iterable[str]) -> set[str]:
    """Words for a user that may mean an agent beside others: users of a desk with contacts, a human with users."""
    of_users = {word: word.strip().casefold() for word in words if role_of(word) == "user"}
    others = set(of_users.values()) - {"user", "human"}
    doubtful = {"user", "human"} if others else {"human"} if len(set(of_users.values())) > 1 else set[str]()
    return {word for word, key in of_users.items() if key in doubtful}
