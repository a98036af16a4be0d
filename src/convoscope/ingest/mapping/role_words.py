"""Words of logs for who speaks, and what they mean. A word that may mean several things means nothing."""

from __future__ import annotations

import re

from convoscope.ingest.mapping.fields import words_of
from convoscope.ingest.record import ROLES

_NEUTRAL = re.compile(
    r"messages?|msg|text|utter(ance)?|said|says?|speaks|spoke|speech|turn|input|query|question|answer|reply|response"
    r"|transcript|transcribed|output|content|web|chat|live|final|team|the|an?|of|by|from|on|line|en|\d+"
)
"""Words beside a role that change nothing: `user_message`, `agent.said`."""
_USER = re.compile(
    r"users?|usr|cust|customers?|clients?|contacts?|guests?|visitors?|callers?|humans?|buyers?|patients?|shoppers?"
    r"|consumers?|requesters?|passengers?|subscribers?|students?"
)
_AGENT = re.compile(
    r"\w*bots?|agents?|assist(ants?)?|advis[eo]rs?|operators?|support|reps?|representatives?|ai|llm|helpdesk"
    r"|service|staff|concierge|copilot|csr"
)
_DIRECTIONS = {
    **dict.fromkeys(("in", "inbound", "incoming"), "user"),
    **dict.fromkeys(("out", "outbound", "outgoing"), "assistant"),
}
_SYSTEM = re.compile(r"system|sys|developer|platform")
_TOOL = re.compile(r"tools?|functions?|api")
_KNOWN = (("user", _USER), ("assistant", _AGENT), ("system", _SYSTEM), ("tool", _TOOL))
NO_SPEECH = re.compile(
    r"notes?|internal|private|whisper|memo|drafts?|events?|status|activity|activities|logs?|debug|notifications?"
    r"|assign(ed|ment)?|joined|left|typing|errors?|summary|metadata|tags?|audit|hidden|deleted"
)
"""Words for entries that no one says to another: notes of colleagues, events, drafts."""


def role_of(word: str) -> str:
    """Our word for a role; "" where it is not known. Of several words the last decides: customer service is the agent.

    >>> [role_of(word) for word in ("Customer", "VoiceBot", "Customer Service", "user_message", "UserGuide", "Ann")]
    ['user', 'assistant', 'assistant', 'user', '', '']
    """
    key = word.strip().casefold()
    if key in ROLES or key in _DIRECTIONS:
        return ROLES.get(key) or _DIRECTIONS[key]
    words = [one for one in words_of(word) if not _NEUTRAL.fullmatch(one)]
    if not words or any(map(NO_SPEECH.fullmatch, words)):
        return ""
    last = ROLES.get(words[-1])
    return last or next((meant for meant, pattern in _KNOWN if pattern.fullmatch(words[-1])), "")


def is_no_speech(word: str) -> bool:
    """Whether entries of this kind are notes or events, and no speech."""
    return any(map(NO_SPEECH.fullmatch, words_of(word)))
