"""The seven labels that this reading writes into the texts (voice logs, 3.7)."""

from __future__ import annotations

import re

ASSISTANT_INTERRUPTS = "[assistant interrupts]"
USER_INTERRUPTS = "[user interrupts]"
CUT_OFF_BY_USER = "[likely cut off by user]"
CUT_OFF_BY_ASSISTANT = "[likely cut off by assistant]"
CUT_ITSELF_OFF = "[speaker likely cut itself off]"
LIKELY_INTERRUPTION = "[likely interruption]"
PAUSE = "[pause]"

LABELS = (
    ASSISTANT_INTERRUPTS,
    USER_INTERRUPTS,
    CUT_OFF_BY_USER,
    CUT_OFF_BY_ASSISTANT,
    CUT_ITSELF_OFF,
    LIKELY_INTERRUPTION,
    PAUSE,
)

_ANY_LABEL = re.compile("|".join(map(re.escape, LABELS)))


def without_labels(text: str) -> str:
    """The words alone."""
    return _ANY_LABEL.sub("", text) if "[" in text else text


def joined(existing: str | None, label: str, text: str) -> str:
    """The text after what stands already, the label between them; alone where nothing stands."""
    return f"{existing} {label} {text}" if existing else text
