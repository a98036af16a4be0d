"""What a log's reason for the end of a conversation says, by a table of reasons and words."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.identifiers import snake_case

VOICEMAIL, IVR, HANDED_OVER, BROKEN, NO_ANSWER = "voicemail", "ivr", "handed_over", "broken", "no_answer"
SILENCE, USER_LEFT, OTHER = "silence", "user_left", "other"
_IN_WORDS = {
    USER_LEFT: "user hung up",
    "hung_up": "hung up",
    "agent_ended": "agent ended it",
    HANDED_OVER: "handed over",
    "transfer_failed": "transfer failed",
    VOICEMAIL: "mailbox answered",
    IVR: "phone menu answered",
    NO_ANSWER: "not answered",
    SILENCE: "silence",
    "limit": "limit of time or turns",
    "completed": "came to an end of their own",
    "not_done": "task failed",
    "closed": "closed by the program",
    "disconnected": "disconnected",
    BROKEN: "integration broke",
    OTHER: "another reason",
}
KINDS = tuple(_IN_WORDS)
_FIELDS = frozenset(
    f"{end}_{reason}"
    for end in ("ended", "end", "call_end", "ending", "disconnection", "disconnect", "termination", "hangup", "close")
    for reason in ("reason", "cause")
)
"""Fields that hold a reason for the end. `stop_reason` and `finish_reason` are those of a model's reply."""
_SIP_FAILED = re.compile(r"_sip(?:_[a-z]+){0,3}_5[0-9]{2}_")
_NAME = re.compile(r"\{([a-z_]+)\}")


class _Rule(NamedTuple):
    kind: str
    any: re.Pattern[str]
    with_: re.Pattern[str] | None
    without: re.Pattern[str] | None

    def holds(self, folded: str) -> bool:
        if self.any.search(folded) is None or (self.with_ is not None and self.with_.search(folded) is None):
            return False
        return self.without is None or self.without.search(folded) is None


@lru_cache(maxsize=4096)
def kind_of_reason(reason: str) -> str:
    """What a reason says: one of `KINDS`; nothing for no reason."""
    name = snake_case(reason[:200]).removeprefix("cr_")
    if not name:
        return ""
    exact, rules = _table()
    if name in exact:
        return exact[name]
    folded = f"_{name}_"
    if _SIP_FAILED.search(folded) or "fault_" in folded:
        return BROKEN
    return next((rule.kind for rule in rules if rule.holds(folded)), OTHER)


@cached_on_argument
def stated_reason(conversation: Conversation) -> str:
    """The reason that the log gives for the end; also where the reader has no use for its field."""
    if conversation.outcome.ended_reason:
        return conversation.outcome.ended_reason
    metadata = conversation.extras.get("metadata")
    for place in (conversation.extras, metadata if isinstance(metadata, dict) else {}, conversation.outcome.extras):
        for name, value in place.items():
            if isinstance(value, str) and value and _is_reason_field(name):
                return value
    return ""


@lru_cache(maxsize=4096)
def _is_reason_field(name: str) -> bool:
    return snake_case(name[:80]) in _FIELDS


def words_of_kind(kind: str, *, is_chat: bool = False) -> str:
    """What a kind of end is called in a sentence."""
    return "user left" if is_chat and kind == USER_LEFT else _IN_WORDS[kind]


@cache
def _table() -> tuple[dict[str, str], tuple[_Rule, ...]]:
    data: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    words: dict[str, str] = data["words"]

    def pattern(text: str | None) -> re.Pattern[str] | None:
        if text is None:
            return None
        phrases = _NAME.sub(lambda name: words[name[1]], text).split()
        return re.compile("_(?:" + "|".join(map(re.escape, phrases)) + ")(?=_)")

    rules = [
        _Rule(one["kind"], pattern(one["any"]), pattern(one.get("with")), pattern(one.get("without")))  # type: ignore[arg-type]
        for one in data["rule"]
    ]
    return data["exact"], tuple(rules)


__all__ = ["KINDS", "kind_of_reason", "stated_reason", "words_of_kind"]
