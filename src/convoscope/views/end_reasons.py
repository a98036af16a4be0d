"""Why a conversation ended, and whether it was handed over to a person, by the log's own fields and tools.

`end_reasons.toml` and `hand_over.toml` hold the reasons and words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import ASSISTANT, USER, Conversation, Json, ToolCall, Utterance
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.folding import name_words, snake_case
from convoscope.text.lexicon import word_lists
from convoscope.text.patterns import lazy_pattern
from convoscope.views.result_fields import INFERRED, NOT_STATED
from convoscope.views.tool_outcomes import outcome_of_call

VOICEMAIL, IVR, HANDED_OVER, BROKEN, NO_ANSWER = "voicemail", "ivr", "handed_over", "broken", "no_answer"
SILENCE, USER_LEFT, OTHER = "silence", "user_left", "other"
_SHOWN = {
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
KINDS = tuple(_SHOWN)
_REASON_FIELDS = frozenset(
    f"{end}_{reason}"
    for end in ("ended", "end", "call_end", "ending", "disconnection", "disconnect", "termination", "hangup", "close")
    for reason in ("reason", "cause")
)
"""Fields that hold a reason for the end. `stop_reason` and `finish_reason` are those of a model's reply."""
_SIP_FAILED = lazy_pattern(r"_sip(?:_[a-z]+){0,3}_5[0-9]{2}_")
_NAME = lazy_pattern(r"\{([a-z_]+)\}")
_LONGEST_REASON, _LONGEST_FIELD, _LONGEST_VALUE, _LONGEST_RESULT = 200, 80, 60, 2_000


def named_values(conversation: Conversation) -> Iterator[tuple[str, Json]]:
    """What a log says of a whole conversation beside what the model names: in its record, its metadata, its labels."""
    extras = conversation.extras
    metadata = extras.get("metadata") if extras else None
    for fields in (extras, conversation.outcome.extras, conversation.dimensions, metadata):
        if fields and isinstance(fields, dict):
            yield from fields.items()
    for label in conversation.labels:
        if label.subject_kind == "conversation":
            yield label.name, label.value


# The reason


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
    name = snake_case(reason[:_LONGEST_REASON]).removeprefix("cr_")
    if not name:
        return ""
    exact, rules = _reason_table()
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
    for fields in (conversation.extras, metadata if isinstance(metadata, dict) else {}, conversation.outcome.extras):
        for name, value in fields.items():
            if isinstance(value, str) and value and snake_case(name[:_LONGEST_FIELD]) in _REASON_FIELDS:
                return value
    return ""


@lru_cache(maxsize=4096)
def folded_field(name: str) -> str:
    """The last part of a field's path, folded: `metadata.callStatus` is `call_status`."""
    return snake_case(name[:_LONGEST_FIELD].rpartition(".")[2])


def words_of_kind(kind: str, *, is_chat: bool = False) -> str:
    """The text of a kind of end in a sentence."""
    return "user left" if is_chat and kind == USER_LEFT else _SHOWN[kind]


@cache
def _reason_table() -> tuple[dict[str, str], tuple[_Rule, ...]]:
    data: dict[str, Any] = tomllib.loads(Path(__file__).with_name("end_reasons.toml").read_text(encoding="utf-8"))
    words: dict[str, str] = data["words"]

    def pattern(text: str) -> re.Pattern[str]:
        phrases = _NAME.sub(lambda name: words[name[1]], text).split()
        return lazy_pattern("_(?:" + "|".join(map(re.escape, phrases)) + ")(?=_)")

    rules = []
    for rule in data["rule"]:
        with_, without = (pattern(rule[name]) if name in rule else None for name in ("with", "without"))
        rules.append(_Rule(rule["kind"], pattern(rule["any"]), with_, without))
    return data["exact"], tuple(rules)


# Hand-over to a person

_HAND_OVER = word_lists(Path(__file__).with_name("hand_over.toml"))
_HAND_OVER_FIELDS = _HAND_OVER["flags"] | _HAND_OVER["statuses"]
_NEGATES = lazy_pattern(
    r"(?<!\w)(?:no|not|none|nobody|never|without|unavailable|offline|busy|closed|unable|cannot|can't|couldn't|isn't|"
    r"aren't|keine?|keinen|nicht|niemand|ning[uú]n|ninguno|ninguna|nadie|aucune?|personne|pas|nenhum|nenhuma|ningu[eé]m|"
    r"n[aã]o)(?!\w)|ません|いない|できない",
    re.IGNORECASE,
)


def passes_on(tool: str) -> bool:
    """Whether the name of a tool says that it passes the user on, to a person or to another agent."""
    words = name_words(tool)
    return not _HAND_OVER["passes_on"].isdisjoint(words) and _HAND_OVER["things"].isdisjoint(words)


@lru_cache(maxsize=4096)
def hands_over(tool: str) -> bool:
    """Whether the name of a tool says that it puts the user through to a person."""
    return passes_on(tool) and not _HAND_OVER["somebody"].isdisjoint(name_words(tool))


def has_handed_over(conversation: Conversation, call: ToolCall) -> bool:
    """Whether a call puts the user through to a person.

    One that failed does not. Where its result has words that negate and no flag of success ("no agents online"), it is
    not known, and does not count either.
    """
    if not hands_over(call.name):
        return False
    outcome = outcome_of_call(conversation, call)
    if outcome is None or outcome.failed:
        return outcome is None
    text = str(conversation.tool_results[call.seq].result)[:_LONGEST_RESULT].replace("’", "'")
    # Words may say that "nobody is available": only a flag or a code of an object states a success against them.
    is_stated = outcome.status != NOT_STATED and outcome.basis != INFERRED and text.lstrip()[:1] == "{"
    return is_stated or not _NEGATES.search(text)


@cached_on_argument
def handed_over_by(conversation: Conversation) -> str:
    """What says that the user was put through to a person; nothing where nothing does.

    A transfer that failed does not count, nor does one after which the agent goes on serving the user: that is a
    hand-over between programs.
    """
    outcome = conversation.outcome
    for name, stated in (("ended", stated_reason(conversation)), ("final status", outcome.final_status)):
        if stated and kind_of_reason(stated) == HANDED_OVER:
            return f"{name}: {stated}"
    for name, value in named_values(conversation):
        field = folded_field(name)
        if field not in _HAND_OVER_FIELDS:
            continue
        text = value[:_LONGEST_VALUE] if isinstance(value, str) else ""
        is_flagged = field in _HAND_OVER["flags"] and (value is True or snake_case(text) in _HAND_OVER["yes"])
        if is_flagged or (field in _HAND_OVER["statuses"] and text and kind_of_reason(text) == HANDED_OVER):
            return f"{name}: {str(value).lower() if isinstance(value, bool) else value}"
    call = hand_over_call(conversation) if conversation.contents.has_tool_calls else None
    return "" if call is None else f"tool: {call.name}"


def hand_over_call(conversation: Conversation) -> ToolCall | None:
    """The call of a tool that put the user through, after which the agent did not reply to the user."""
    call: ToolCall | None = None
    asked = False
    for event in conversation.timeline:
        if type(event) is ToolCall:
            if has_handed_over(conversation, event):
                call, asked = event, False
        elif call is not None and type(event) is Utterance and event.meant().strip():
            role = conversation.roles[event.speaker]
            if role == ASSISTANT and asked:
                call = None
            asked = asked or role == USER
    return call
