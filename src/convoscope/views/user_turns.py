"""What the user said, turn by turn, and whether the agent replied: in a message, through a tool, or with an error.

The turns of `conversation.turns` hold all that the user says until the agent speaks; an agent that ignores nine
questions has one such turn. Here each of the nine is one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unicodedata import category

import msgspec

from convoscope.conversation import ASSISTANT, USER, Conversation, Json, Time, ToolCall, ToolResult, Utterance
from convoscope.conversation.events import is_media
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.folding import name_words, snake_case
from convoscope.text.lexicon import word_lists
from convoscope.text.patterns import lazy_pattern
from convoscope.text.result_words import LONGEST_SHORT, statement
from convoscope.views.end_reasons import BROKEN, has_handed_over, kind_of_reason
from convoscope.views.tool_outcomes import has_failed, tool_outcome

_SPEECH = word_lists(Path(__file__).with_name("speech_tools.toml"))
_SPEAKS, _USERS, _LOOKS = (_SPEECH[name] for name in ("speaks", "users", "looks"))
_MESSENGERS, _CHANNELS, _MESSAGES = (_SPEECH[name] for name in ("messengers", "channels", "messages"))
_ELSEWHERE, _MESSAGE_FIELDS, _RECIPIENTS = (_SPEECH[name] for name in ("elsewhere", "message_fields", "recipients"))
_SENDS = _SPEAKS | _SPEECH["sends"]
_FEW_WORDS = 3


def speech_of(call: ToolCall, named: Collection[str] = ()) -> str:
    """What a call says to the user, where it is speech for certain or its tool is named; else nothing."""
    arguments = call.arguments
    if call.name not in named:
        return _message_of(arguments) if _is_speech_name(call.name) else ""
    if not isinstance(arguments, Mapping):
        return arguments if isinstance(arguments, str) else ""
    texts = {snake_case(str(key)): value for key, value in arguments.items() if isinstance(value, str)}
    messages = [value for key, value in texts.items() if key in _MESSAGE_FIELDS]
    return max(messages or texts.values(), key=len, default="")


def may_speak(call: ToolCall) -> bool:
    """Whether a call looks like speech to the user, without being it for certain.

    A message that is sent by a messenger or another channel may go to the user, also where a recipient is named.
    """
    words = frozenset(name_words(call.name))
    if words & _ELSEWHERE or not isinstance(call.arguments, dict):
        return False
    texts = {snake_case(str(key)): value for key, value in call.arguments.items()}
    by_channel = bool(words & (_MESSENGERS | _CHANNELS))
    if not by_channel and not _RECIPIENTS.isdisjoint(texts):
        return False
    named = by_channel or bool(words & (_SPEAKS | _MESSAGES)) or bool(words & _USERS and words & _SENDS)
    return any(
        isinstance(value, str) and len(value.split()) >= _FEW_WORDS and (named or key in _MESSAGE_FIELDS)
        for key, value in texts.items()
    )


def speaks_by_tool(conversation: Conversation) -> bool:
    """Whether the agent speaks by calls of a tool in most of its turns, and not by messages."""
    with_text = with_call = turns = 0
    text = call = False
    for event in conversation.timeline:
        if type(event) is ToolCall:
            call = call or bool(speech_of(event))
        elif type(event) is Utterance and event.meant().strip():
            role = conversation.roles[event.speaker]
            if role == ASSISTANT:
                text = True
            elif role == USER:
                with_text, with_call, turns = with_text + text, with_call + call, turns + (text or call)
                text = call = False
    with_text, with_call, turns = with_text + text, with_call + call, turns + (text or call)
    return with_call > 0 and 2 * with_text < turns


@lru_cache(maxsize=4096)
def _is_speech_name(name: str) -> bool:
    words = name_words(name)
    if not words or not (_ELSEWHERE | _CHANNELS).isdisjoint(words) or words[0] in _LOOKS:
        return False
    if "to" in words[:-1] and words[words.index("to") + 1] not in _USERS | _MESSENGERS | {"the"}:
        return False
    if len(words) == 1:
        return words[0] in _SPEAKS
    words_of_name = frozenset(words)
    objects = _USERS | _MESSENGERS
    return bool(words_of_name & _SENDS) and bool(words_of_name & objects | (words_of_name - {words[0]}) & _MESSAGES)


def _message_of(arguments: Json) -> str:
    """The one text that is the message; nothing where there is another text, or a recipient."""
    if not isinstance(arguments, Mapping):
        return ""
    message = ""
    for key, value in arguments.items():
        name = snake_case(str(key))
        if name in _RECIPIENTS:
            return ""
        if not isinstance(value, str) or not value.strip():
            continue
        if name in _MESSAGE_FIELDS and not message:
            message = value
        elif len(value.split()) > 1:
            return ""
    return message


_NO_TEXT = frozenset(("null", "none", "undefined", "nan", "nil", "[object object]", "{}", "[]", '""', "no_output"))
_MAY_BE_ERROR = (
    *("error", "exception", "fail", "fault", "traceback", "panic", "goroutine", "upstream", "time", "unavailable"),
    *("gateway", "forbidden", "request", "limit", "deadline", "exhausted", "hang up", "reset", "refused", "null"),
    *("none", "undefined", "nan", "nil", "object", "{", "[", "fehler", "erreur", "erro", "fallo"),
    *("エラー", "ошибка", "错误", "錯誤", "오류"),
)
_ERROR_NUMBER = r"[45]\p{Nd}\p{Nd}"
"""A reply without one of these, and without a number from 400 to 599, is no error."""
_TURKISH = str.maketrans("İı", "ii")
_ANSWERS = frozenset(("answer", "reply", "response", "content", "text", "speech", "utterance", "output", "say"))
_SPEAKS_TO_THE_USER = lazy_pattern(
    r"[?？]|(?<![\w.])(?:i|i'm|i'll|we|we're|you|your|yours|please|sorry|us|our|my|let's|means|if|sie|ihr|ihre|ihrer|bitte"
    r"|wir|ich|vous|votre|veuillez|nous|je|usted|su|por favor|você|seu|sua|lo siento|desculpe)(?![\w/.-])",
    re.IGNORECASE,
)
_OF_MACHINES = lazy_pattern(
    r"error|exception|failure|fault|traceback|goroutine|panic|[45]\d\d|server|gateway|time-?d?[ -]?out|upstream|socket"
    r"|econn|etimed|max retries|deadline|rate[ -]limit|too many requests|resource_exhausted|unavailable\b|connection"
    r"|fehler|erreur|erro|fallo|エラー|ошибка|错误|錯誤|오류",
    re.IGNORECASE,
)
_TRANSPORT = lazy_pattern(
    r"upstream|socket hang|econn|etimed|max retries|deadline exceeded|rate[ -]limit|too many requests|broken pipe"
    r"|connection (?:\w+ ){0,2}(?:refused|reset|aborted)|getaddrinfo|bad gateway|internal server error",
    re.IGNORECASE,
)
_TRACE = lazy_pattern(
    r"Traceback \(most recent call last\)|goroutine \d+ \[running\]|^[ \t]+at [^\s(]+\([^\s:]*:\d+", re.MULTILINE
)
_FEW_LETTERS, _LONGEST_TRACE = 24, 4_000


@lru_cache(maxsize=4096)
def is_error_text(text: str) -> bool:
    """Whether a whole reply is what a system writes when it fails: `502 Bad Gateway`, `{"error": …}`, `null`."""
    content = text.strip()
    if not _may_be_error(content[:LONGEST_SHORT]):
        return False
    if len(content) < _FEW_LETTERS and content.casefold() in _NO_TEXT:
        return True
    if content[0] in "{[":
        return _is_error_object(content)
    words = statement(content)
    if words.failed and words.is_strong and _TRACE.search(content, 0, _LONGEST_TRACE):
        return True
    if len(content) > LONGEST_SHORT or _SPEAKS_TO_THE_USER.search(content.replace("’", "'")):
        return False
    if words.failed and (_OF_MACHINES if words.is_strong else _TRANSPORT).search(words.sign):
        return True
    return _TRANSPORT.match(content) is not None


def _may_be_error(text: str) -> bool:
    """Whether a text holds anything that each error holds, be it a reply or many of them. It costs little."""
    folded = text.lower() if text.isascii() else text.translate(_TURKISH).casefold()
    return _error_signs().search(folded.encode("utf-8", "replace")) is not None


@cache
def _error_signs() -> Any:
    """An engine that reads a text once, however many signs there are: Python's own tries each at each character."""
    import re2

    return re2.compile("|".join((*map(re.escape, _MAY_BE_ERROR), _ERROR_NUMBER)))


def _is_error_object(content: str) -> bool:
    """Whether a reply in JSON is nothing but an error."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    if not isinstance(value, dict) or not _ANSWERS.isdisjoint(map(str.lower, value)):
        return False
    outcome = tool_outcome(ToolResult(seq=0, result=value))
    return outcome.failed and outcome.is_strong


PAUSE = 4.0
"""Seconds. Who goes on so soon is still in the same turn: a reply with a tool call would not even be late."""
_NOT_FOR_THE_AGENT = frozenset(("backchannel", "vocal_tic", "non_directed"))
_QUESTION = ("?", "？", "؟", "՞", "፧")
_AFTER_MARK = " \t\n\"'”’»)]}*_"
_LEFT_WAITING = frozenset(("inactivity", "inactive", "silence", "idle", "timeout", "timed"))
Reply = Literal["yes", "no", "ended", "unknown", "by_tool", "not_read", "wordless"]
"""Whether the agent spoke before the user did again; at the end, whether a reply was still to come.

`by_tool`: it did not, but called a tool that looks as if it spoke. `not_read`: the log has something of the agent
there that could not be read. `wordless`: no words are known of what the user said while the agent was speaking: it may
have been a murmur.
"""
_WORD = lazy_pattern(r"[^\W_]")


class UserTurn(NamedTuple):
    """What the user said in one go."""

    utterances: tuple[Utterance, ...]
    reply: Reply
    used_tool: bool
    """The agent called a tool before the next utterance."""

    @property
    def text(self) -> str:
        if len(self.utterances) == 1:
            return self.utterances[0].meant().strip()
        return " ".join(filter(None, (one.meant().strip() for one in self.utterances)))

    @property
    def is_question(self) -> bool:
        return is_question(self.text)


def is_question(text: str) -> bool:
    return text.rstrip(_AFTER_MARK).endswith(_QUESTION)


@cached_on_argument
def user_turns(conversation: Conversation) -> list[UserTurn]:
    """The user's turns in their order. Backchannels, and what is said to others, do not count."""
    turns: list[UserTurn] = []
    utterances: list[Utterance] = []
    calls: list[ToolCall] = []
    without: dict[int, list[ToolCall]] = {}
    """By turn without a reply: what the agent called instead."""
    spoke = handed_over = failed = False
    roles = conversation.roles
    # Most conversations hold no sign of an error: one look at all replies is enough.
    may_fail = _may_be_error(
        "\n".join([one.meant() for one in conversation.utterances if roles[one.speaker] == ASSISTANT])
    )
    for event in conversation.timeline:
        if type(event) is ToolCall:
            calls.append(event)
            handed_over = handed_over or has_handed_over(conversation, event)
        if type(event) is not Utterance or not _has_content(event):
            continue
        role = roles[event.speaker]
        if role == ASSISTANT:
            if not _says_something(event, may_fail):
                failed = failed or is_error_text(event.meant())
                continue
            spoke = True
            if utterances:
                reply: Reply = "not_read" if event.extras and _is_illegible(event) else "yes"
                turns.append(UserTurn(tuple(utterances), reply, bool(calls)))
                utterances = []
        elif role == USER and event.manner not in _NOT_FOR_THE_AGENT:
            if utterances and not _goes_on(conversation, utterances[-1], event):
                without[len(turns)] = calls
                reply = "wordless" if _is_over_agent(conversation, utterances) else "no"
                turns.append(UserTurn(tuple(utterances), reply, bool(calls)))
                utterances = []
            if not utterances:
                handed_over, failed, calls = False, False, []
            utterances.append(event)
    if utterances:
        last, outcome = UserTurn(tuple(utterances), "unknown", bool(calls)), conversation.outcome
        # Who is put through to a person gets no more words of the agent.
        if handed_over and not outcome.error:
            reply = "yes"
        else:
            reply = reply_at_end(last.text, outcome.ended_reason, spoke=spoke and not failed and not outcome.error)
            if not outcome.error:
                without[len(turns)] = calls
        turns.append(last._replace(reply=reply))
    _mark_speech_by_tools(conversation, turns, without)
    return turns


def _mark_speech_by_tools(
    conversation: Conversation, turns: list[UserTurn], without: Mapping[int, list[ToolCall]]
) -> None:
    """Say of turns without a reply that a tool may have given one, where the agent hardly speaks otherwise."""
    spoken = [
        number
        for number, calls in without.items()
        if any(may_speak(call) and not has_failed(conversation, call) for call in calls)
    ]
    if len(spoken) > sum(turn.reply == "yes" for turn in turns):
        for number in spoken:
            turns[number] = turns[number]._replace(reply="by_tool")


def breakdown(conversation: Conversation) -> str:
    """What kept a conversation from being one: its integration broke, or the agent never spoke; empty for neither.

    It broke where the log has an error of the conversation, or names one as the reason of its end. A user who hangs up
    or whose client disconnects broke nothing.
    """
    outcome = conversation.outcome
    if outcome.error or kind_of_reason(outcome.ended_reason) == BROKEN:
        return "integration_broke"
    turns = user_turns(conversation)
    if not turns or any(turn.reply == "by_tool" for turn in turns):
        return ""
    has_spoken = any(
        conversation.roles[utterance.speaker] == ASSISTANT and _has_content(utterance) and _says_something(utterance)
        for utterance in conversation.utterances
    )
    return "" if has_spoken else "agent_never_spoke"


def _is_over_agent(conversation: Conversation, utterances: list[Utterance]) -> bool:
    """Whether sounds of the user without words all begin while the agent speaks."""
    if any(one.meant().strip() or not one.segments for one in utterances):
        return False
    agent = [
        span
        for one in conversation.utterances
        if conversation.roles[one.speaker] == ASSISTANT
        for span in conversation.sounds(one)
    ]
    starts = [min(start for start, _ in conversation.sounds(one)) for one in utterances]
    return all(any(begin <= start < end for begin, end in agent) for start in starts)


def _has_content(utterance: Utterance) -> bool:
    if utterance.meant().strip() or utterance.segments:
        return True
    return bool(utterance.received().strip()) or utterance.is_unread


def _says_something(utterance: Utterance, may_fail: bool = True) -> bool:
    """Whether a message of the agent is a reply: "...", "-" and "502 Bad Gateway" are not, a picture and "👍" are.

    `may_fail`: it may be such an error.
    """
    text = utterance.meant()
    if _WORD.search(text) or utterance.segments:
        return not (may_fail and is_error_text(text))
    text += utterance.received()
    return utterance.is_unread or any(character.isalnum() or category(character) == "So" for character in text)


def _is_illegible(utterance: Utterance) -> bool:
    """Whether it may or may not be a reply: it could not be read, and it is no picture, sound or file."""
    if not utterance.is_unread:
        return False
    parts = utterance.extras.get("content")
    return not (type(parts) is list and any(map(is_media, parts)))


def _goes_on(conversation: Conversation, earlier: Utterance, later: Utterance) -> bool:
    """Whether two utterances follow so soon that no reply could be between them, or are of two people in a group."""
    if earlier.speaker != later.speaker:
        return True
    end, start = end_of(earlier), start_of(later)
    wait = None if end is None or start is None else conversation.elapsed(end, start)
    if wait is None or wait >= PAUSE:
        return False
    # Sounds may touch or overlap. Messages of one moment have a clock that says nothing.
    return wait > 0 or bool(earlier.segments and later.segments)


def reply_at_end(text: str, ended_reason: str, *, spoke: bool) -> Reply:
    """A user who says goodbye and leaves is owed no reply; one who was left waiting, or never got any, is.

    `text` is what the user said last, `spoke` whether the agent ever did.
    """
    reason = name_words(ended_reason)
    if not spoke or not _LEFT_WAITING.isdisjoint(reason) or kind_of_reason(ended_reason) == BROKEN:
        return "no"
    if reason:
        return "ended"
    return "no" if is_question(text) else "unknown"


AT_END: dict[Reply, str] = {
    "no": "no_reply",
    "ended": "user_left",
    "unknown": "end_unknown",
    "by_tool": "may_speak_by_tool",
    "not_read": "reply_not_read",
    "wordless": "words_unknown",
}
"""Why the last turn of the user has no reply, as a reason code."""


def start_of(utterance: Utterance) -> Time | None:
    """When an utterance began to sound; else when it was logged."""
    if utterance.segments:
        first = min(utterance.segments, key=lambda segment: segment.start)
        return Time(first.start, first.clock)
    return utterance.time


def end_of(utterance: Utterance) -> Time | None:
    """When the sound of an utterance ended; else when it was logged."""
    if utterance.segments:
        last = max(utterance.segments, key=lambda segment: segment.end)
        return Time(last.end, last.clock)
    if utterance.time is not None and utterance.time.until is not None:
        return Time(utterance.time.until, utterance.time.clock)
    return utterance.time
