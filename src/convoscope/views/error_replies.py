"""Replies that are error texts of the system: the user got no answer.

What an error is, is the definition of tool results. It is applied with care: a sentence of the agent that speaks to
somebody, or about errors, is a reply.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from convoscope.conversation import ToolResult
from convoscope.text.result_words import LONGEST_SHORT, statement
from convoscope.views.tool_outcomes import tool_outcome

_NOTHING = frozenset(("null", "none", "undefined", "nan", "nil", "[object object]", "{}", "[]", '""', "no_output"))
_MAY_BE_ERROR = re.compile(
    r"error|exception|fail|fault|traceback|panic|goroutine|upstream|time|unavailable|gateway|forbidden|request|limit"
    r"|deadline|exhausted|hang up|reset|refused|[45]\d\d|null|none|undefined|nan|nil|object|\{|\[|fehler|erreur"
    r"|erro|fallo"
    r"|エラー|ошибка|错误|錯誤|오류",
    re.IGNORECASE,
)
_ANSWERS = frozenset(("answer", "reply", "response", "content", "text", "speech", "utterance", "output", "say"))
_SPEAKS_TO_SOMEBODY = re.compile(
    r"[?？]|(?<![\w.])(?:i|i'm|i'll|we|we're|you|your|yours|please|sorry|us|our|my|let's|means|if|sie|ihr|ihre|ihrer|bitte"
    r"|wir|ich|vous|votre|veuillez|nous|je|usted|su|por favor|você|seu|sua|lo siento|desculpe)(?![\w/.-])",
    re.IGNORECASE,
)
_OF_MACHINES = re.compile(
    r"error|exception|failure|fault|traceback|goroutine|panic|[45]\d\d|server|gateway|time-?d?[ -]?out|upstream|socket"
    r"|econn|etimed|max retries|deadline|rate[ -]limit|too many requests|resource_exhausted|unavailable\b|connection"
    r"|fehler|erreur|erro|fallo|エラー|ошибка|错误|錯誤|오류",
    re.IGNORECASE,
)
_TRANSPORT = re.compile(
    r"upstream|socket hang|econn|etimed|max retries|deadline exceeded|rate[ -]limit|too many requests|broken pipe"
    r"|connection (?:\w+ ){0,2}(?:refused|reset|aborted)|getaddrinfo|bad gateway|internal server error",
    re.IGNORECASE,
)
_TRACE = re.compile(
    r"Traceback \(most recent call last\)|goroutine \d+ \[running\]|^[ \t]+at [^\s(]+\([^\s:]*:\d+", re.MULTILINE
)
_FEW_LETTERS, _LONGEST_TRACE = 24, 4_000


@lru_cache(maxsize=4096)
def is_error_text(text: str) -> bool:
    """Whether a whole reply is what a system writes when it fails: `502 Bad Gateway`, `{"error": …}`, `null`."""
    content = text.strip()
    if not content or not _MAY_BE_ERROR.search(content, 0, LONGEST_SHORT):
        return False
    if len(content) < _FEW_LETTERS and content.casefold() in _NOTHING:
        return True
    if content[0] in "{[":
        return _is_error_object(content)
    words = statement(content)
    failed, is_strong = words is not None and words.stated == "failed", words is not None and words.is_strong
    if failed and is_strong and _TRACE.search(content, 0, _LONGEST_TRACE):
        return True
    if len(content) > LONGEST_SHORT or _SPEAKS_TO_SOMEBODY.search(content.replace("’", "'")):
        return False
    if words is not None and failed and (_OF_MACHINES if is_strong else _TRANSPORT).search(words.sign):
        return True
    return _TRANSPORT.match(content) is not None


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


__all__ = ["is_error_text"]
