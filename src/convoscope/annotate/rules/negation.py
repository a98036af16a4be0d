"""Whether what stands at a place of a sentence is negated."""

from __future__ import annotations

import re

_NEGATION = re.compile(
    r"(?:\b(?:not|never|no|without|nobody|cannot|hardly|neither|nor|don't|stop)\b|n't\b)", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"[,;:!?]| - |\b(?:but|because|so|although|though|or else|otherwise|if|unless)\b"
    r"|(?<!think )(?<!believe )(?<!saying )(?<!say )(?<!mean )\b(?:i|we)(?:'ll|'m|'re| will| am| are)\b(?! not)",
    re.IGNORECASE,
)
_REACH = 5
"""Words before a sign in which a negation still reaches it."""
_NO_NEGATION = re.compile(
    r"\bno,? (?:i|we|that|this|it|you)\b|\bnot only\b|\bwhy (?:don't|can't)\b|\b(?:no|without) (?:doubt|question)\b"
    r"|\b(?:not|n't) (?:saying|threatening) (?:that )?(?:i|we)?\b|\b(?:not|n't) want to (?:threaten|say)\b"
    r"|\b(?:can't|couldn't) (?:you|we|i)\b|\b(?:don't|doesn't|didn't) (?:you|they) (?:think|see)\b",
    re.IGNORECASE,
)


def is_negated(text: str, place: int) -> bool:
    """A negation shortly before a place, in the same clause: "I do not want to cancel"."""
    before = _NO_NEGATION.sub(" ", _CLAUSE.split(text[:place])[-1])
    near = " ".join(before.split()[-_REACH:])
    return _NEGATION.search(near) is not None
