"""What short texts state: that a tool failed, worked, is on its way or found nothing, or that a promise was kept.

The patterns take linear time and see the beginning of a text. A long text is data that may speak of errors, so that
only how it begins counts. A short text is searched as a whole, unless it explains ("if the payment failed …").
German, Spanish, French, Portuguese and Japanese have patterns of their own. A short text in a language without
patterns is never taken for data: it may say that the call failed."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple

from convoscope.text.language import is_plainly, language_of
from convoscope.text.patterns import lazy_pattern

KNOWN_LANGUAGES = ("en", "de", "es", "fr", "pt", "ja")
"""Languages in which failures are known by their words."""
LONGEST_SHORT = 300
"""Characters of a text that is read as a message as a whole."""
LONGEST_READ = 2_000
"""Characters of a text that are looked at."""
_LONGEST_REMEMBERED = 60
Stated = Literal["", "failed", "succeeded", "pending", "nothing_found"]


class Statement(NamedTuple):
    """What a text states, and the words that say so; nothing where it says neither."""

    stated: Stated = ""
    sign: str = ""
    is_strong: bool = False
    """It begins as failures do; what is around it does not matter."""

    @property
    def failed(self) -> bool:
        return self.stated == "failed"


_NEITHER = Statement()


def statement(text: str, *, is_status: bool = False, is_passage: bool = False) -> Statement:
    """What a text states.

    `is_status`: the tool returns the status of something. `is_passage`: it returns texts that others wrote.
    """
    read = _remembered if len(text) <= _LONGEST_REMEMBERED else _statement
    return read(text, is_status, is_passage)


def _statement(text: str, is_status: bool, is_passage: bool) -> Statement:
    start = text[: LONGEST_READ + 1].strip()
    if "\x1b" in start:
        start = _COLOURS.sub("", start)
    lower = start.lower()
    short = len(start) <= LONGEST_SHORT
    defines = is_passage and short and _DEFINES.search(lower)
    if not defines and (match := _begins_as_failure(start, lower, short)):
        return Statement("failed", _shown(match[0]), is_strong=True)
    if match := _HTTP_GOOD.match(lower):
        return Statement("succeeded", _shown(match[0]))
    if is_status:
        match = _TRANSPORT.search(lower) if short and not _EXPLAINS.search(lower) else None
        return Statement("failed", _shown(match[0])) if match else _NEITHER
    if short:
        return _phrase(lower)
    heading = lower.partition("\n")[0]
    words = _NEITHER if is_passage or len(heading) > LONGEST_SHORT else _phrase(heading)
    return words if words.stated in ("failed", "nothing_found") else _NEITHER


_remembered = lru_cache(maxsize=4096)(_statement)


def _phrase(lower: str) -> Statement:
    """What the words of a short message state, in English or another language."""
    may_be_english = not _SIGNS.isdisjoint(_WORD.findall(lower))
    stated, sign = (may_be_english and _english_phrase(lower)) or _other_phrase(without_accents(lower)) or ("", "")
    return Statement(stated, _shown(sign))


def _english_phrase(lower: str) -> tuple[Stated, str] | None:
    if match := _NOTHING_FOUND.search(lower):
        return "nothing_found", match[0]
    if not _EXPLAINS.search(lower):
        for pattern in (_FAILS, _TRANSPORT, _HTTP_BAD):
            for match in pattern.finditer(lower):
                if not _is_negated(lower, match):
                    return "failed", match[0]
    if match := _PENDING.search(lower):
        return "pending", match[0]
    match = _WORKED.match(lower) or _WORKED_SOMEWHERE.search(lower)
    return ("succeeded", match[0]) if match and not _DOUBT.search(lower) else None


def _other_phrase(text: str) -> tuple[Stated, str] | None:
    if match := _OTHER_NOTHING_FOUND.search(text):
        return "nothing_found", match[0]
    if (match := _OTHER_FAILS.search(text)) and not _OTHER_EXPLAINS.search(text):
        return "failed", match[0]
    match = _OTHER_WORKED.search(text)
    return ("succeeded", match[0]) if match and not _OTHER_NEGATION.search(text) else None


def _is_negated(lower: str, match: re.Match[str]) -> bool:
    return _NEGATION.search(lower, max(0, match.start() - 24), match.start()) is not None


def failure_hint(text: str) -> str:
    """The words of a short text that failures are spoken of with; empty where it has none, or where it explains."""
    if len(text) > LONGEST_SHORT:
        return ""
    lower = text.lower()
    match = next((each for each in _HINTS.finditer(lower) if not _is_negated(lower, each)), None)
    if match is None or (_EXPLAINS.search(lower) and not _GIVES_UP.search(lower)):
        return ""
    return _shown(match[0])


def doubt(text: str, *, may_be_name: bool = False) -> str:
    """Why a short text may not be what was asked for: it denies, it speaks of failure, its language is not known.

    `may_be_name`: few words may be a name, which is of no language.
    """
    if hint := failure_hint(text):
        return hint
    lower = text.lower()
    if (match := _DENIES.search(lower)) and len(_SENTENCE.findall(text)) < 2:
        return _shown(match[0])
    plain = without_accents(lower)
    if match := _OTHER_NEGATION.search(plain) or _OTHER_HINTS.search(plain):
        return match[0]
    words = _ANY_WORD.findall(text)
    if may_be_name and len(words) <= _LONGEST_NAME:
        return ""
    if not words:
        return ""
    language = language_of(text)
    if language:
        return "" if language in KNOWN_LANGUAGES else f"in a language that is not known: {language}"
    values = sum(not word.isalpha() or word.isupper() for word in words)
    if 2 * values >= len(words) or any(is_plainly(known, text) for known in KNOWN_LANGUAGES):
        return ""
    return "in a language that is not known"


def carries_values(text: str) -> bool:
    """Whether a text carries what was looked up: a number, a name, an explanation. `Socket hang up` has none."""
    if _VALUE.search(text) or len(_SENTENCE.findall(text)) > 1:
        return True
    lower = text.lower()
    return _EXPLAINS.search(lower) is not None and not _GIVES_UP.search(lower)


@lru_cache(maxsize=4096)
def without_accents(text: str) -> str:
    """Letters without their accents; kana keep their marks."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _begins_as_failure(start: str, lower: str, short: bool) -> re.Match[str] | None:
    match = _FAILURE_BEGINS.match(lower) or _EXCEPTION_BEGINS.match(start) or _REASON_LINE.match(lower)
    if match:
        return match
    if ("exit" in lower or "return" in lower) and (
        match := _EXIT_CODE.search(lower, max(0, len(start) - 200)) or _EXIT_CODE.match(lower)
    ):
        return match
    if ("raceback" in start or "goroutine" in start or "\n    at " in start) and (match := _TRACEBACK.search(start)):
        return match
    if ("Error: " in start or "Exception: " in start) and (match := _LAST_LINE.search(start)):
        return match
    # The lines of a short text: `Result:` and below it `Error: no such card`.
    return _FAILURE_LINE.search(lower) if short and start.count("\n") < 3 else None


def _shown(words: str) -> str:
    return " ".join(words.split()).strip(" :-,(")[:60]


# Beginnings of failures

_NO_ERROR = r"(?!\s*[:=]\s*(?:0|none|no|null|false|nil|n/?a|ok|\[\]|\{\}|\"\"|''|-)\s*(?:$|[\n,;.!]))"
_DECORATION = r"[\W_]{0,6}"
_AFTER_ERROR = (
    r"(?=\s*(?:[:!.,;(\[\]–—]|-\s|\d|$|\n)|\s+(?:while|when|in|at|from|on|with|during|code|occurred|calling|\w+ing)\b)"
)
_ADJECTIVES = (
    r"(?:(?:an?|the|unexpected|unknown|internal|fatal|critical|tool|api|server|system|runtime|network|database|db"
    r"|validation|http|syntax|parse|parsing|connection|backend|service|request|execution|authentication|timeout|unhandled"
    r"|uncaught|sql|json|type|value|remote|upstream|application|function|mcp|php|soap|rpc)[\s_-]+){0,4}"
)
_FAILURE_BEGINS = lazy_pattern(
    rf"{_DECORATION}(?:{_ADJECTIVES}(?:error|exception|failure){_NO_ERROR}{_AFTER_ERROR}"
    rf"|errors{_NO_ERROR}\s*[:=]\s*(?!\d)\S"
    r"|(?:npm )?err[:!]|ora-\d{5}:|sqlstate\[|msg \d+, level \d+"
    r"|(?:tool|function|method|endpoint|command) \S{1,60} (?:was |is )?not (?:found|available|defined|registered)"
    r"|\S{1,60} is not a (?:valid|known) (?:tool|function|command)|no (?:tool|function) (?:named|called)\b"
    r"|failed(?=\s+(?:to|with|because|due|after|while|on|in|for|as|at)\b|\s*[:!.,;(\-]|\s*$)"
    r"|(?:sorry,?\s+)?(?:but\s+)?(?:(?:i|we|it|the \w+)\s+)?(?:(?:was|am|are|were|is)\s+)?(?:unable|not able)\s+to\b"
    r"|(?:sorry,?\s+)?(?:(?:i|we)\s+)?(?:could(?: not|n['’]t)|can(?:not| not|['’]t))\s+(?!be\b)\w"
    r"|invalid\s+\w|missing\s+(?:required|mandatory|parameter|argument|field)"
    r"|unknown\s+(?:tool|function|command|method|error|action)\b|unauthori[sz]ed\b|unauthenticated\b"
    r"|forbidden\b|bad request\b|bad gateway\b|gateway time-?out\b|method not allowed\b|not found\W*$"
    r"|access (?:is |was )?denied"
    r"|permission (?:to [^.\n]{1,80} )?(?:has been |was |is )?(?:denied|rejected)|no such (?:file|tool|function|method)"
    r"|(?:(?:the )?(?:request|operation|connection|call|query|tool|read|gateway|server|api) )?time(?:d[ -]?|-)?out\b"
    r"(?! (?:is|are|of|in|can|for)\b)"
    r"|(?:fehler|erreur|erro|fallo|ошибка|エラー|错误|錯誤|오류)\s*[:：!]"
    r"|make(?:\[\d+\])?: \*\*\* |rejected\b|fatal:|panic:|(?:operation |request "
    r"|call )?(?:was )?aborted\b|segmentation fault"
    r"|<(?:\?xml[^>]{0,100}\?>\s*<)?(?:\w+[:_-])?(?:\w+[_-])?(?:error|fault|exception)s?\b"
    r"|<(?:!doctype[^>]{0,100}>\s*<)?(?:html|head)[^>]{0,100}>\s*(?:<head[^>]{0,50}>\s*)?<title>\s*(?:[45]\d\d|error)\b"
    r")",
)
_EXCEPTION_BEGINS = lazy_pattern(
    r"[\W_]{0,6}(?:Uncaught |Unhandled |Caught |Caused by: |Exception in thread \"[^\"\n]{0,60}\" )?"
    r"(?:[A-Za-z_$][\w$]{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Timeout|Fault|Failure)"
    r"(?=[:()]|\s*$|\s*\n| at | \d{3}\b)"
    r"|(?:[A-Za-z_]\w{0,40}\.){1,6}(?:errors|exceptions)\.[A-Z]\w{0,60}:|[^\n]{1,200} \([A-Z]\w{0,40}Error\)\s*(?:$|\n)"
    r"|[\W_]{0,4}(?:rpc error: code = (?!OK\b)\w+|(?:grpc\.)?StatusCode\.(?!OK\b)[A-Z_]+"
    r"|(?:UNAVAILABLE|DEADLINE_EXCEEDED|UNAUTHENTICATED|PERMISSION_DENIED|RESOURCE_EXHAUSTED|NOT_FOUND|INVALID_ARGUMENT"
    r"|FAILED_PRECONDITION|UNIMPLEMENTED|DATA_LOSS|OUT_OF_RANGE)(?=[:\s]|$)|(?:INTERNAL|UNKNOWN|ABORTED|CANCELLED):"
    r"|E(?:CONNREFUSED|CONNRESET|TIMEDOUT|NOENT|ACCES|HOSTUNREACH|NOTFOUND|PIPE)\b"
    r"|thread '[^'\n]{0,60}' panicked at)"
)
_TRACEBACK = lazy_pattern(
    r"(?:^|\n)\s{0,8}(?:Traceback \(most recent call last\)|goroutine \d+ \[running\]"
    r"|[A-Z][\w.]{0,80}(?:Error|Exception)?: [^\n]{0,300}\n\s{2,8}at \S)"
)
_LAST_LINE = lazy_pattern(r"\n(?:[A-Za-z_]\w{0,40}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception): [^\n]{0,500}$")
_REASONS = (
    r"(?:bad request|unauthori[sz]ed|payment required|forbidden|(?:page )?not found|method not allowed|not acceptable"
    r"|request time-?out|conflict|gone|payload too large|unsupported media type|unprocessable \w+|too many requests"
    r"|internal server error|not implemented|bad gateway|service (?:temporarily )?unavailable|gateway time-?out"
    r"|client error|server error)"
)
_CODED = r"(?:http(?:/\d(?:\.\d)?)?(?:\s+(?:error|status(?:\s+code)?))?|status(?:[ _]?code)?|(?:error|response)\s+code)"
_REASON_LINE = lazy_pattern(
    rf"{_DECORATION}(?:{_CODED}[\s:=#]{{1,3}}[45]\d\d\b|(?:error\s+)?[45]\d\d\W{{1,3}}{_REASONS}\b|{_REASONS}\W*$"
    r"|response\s*\[[45]\d\d\])",
)
_HTTP_BAD = lazy_pattern(
    rf"\b(?:{_CODED}(?:\s+of)?[\s:=#(]{{1,3}}[45]\d\d\b|[45]\d\d\W{{1,3}}{_REASONS}\b)", re.IGNORECASE
)
_HTTP_GOOD = lazy_pattern(
    rf"{_DECORATION}(?:{_CODED}[\s:=#]{{1,3}}20[013456]\b|20[01456]\s+(?:ok|created|no content)\b)", re.IGNORECASE
)
_EXIT_CODE = lazy_pattern(
    r"\b(?:(?:process |command )?exit(?:ed)?(?: with)?[ _]?(?:code|status)|return ?code|exited with)[\s:=]{1,3}"
    r"-?[1-9]\d{0,9}\b",
)
_FAILURE_LINE = lazy_pattern(
    rf"\n{_DECORATION}(?:error|exception|failed){_NO_ERROR}\s*[:!]"
    r"|(?:^|\n)\W{0,3}(?:status|result|outcome)\s*[:=]\s*[\"']?(?:error|failed|failure|fail)\b"
    r"|(?:^|\n)\W{0,3}(?:success|ok)\s*[:=]\s*(?:false|no|0)\b",
)

# Phrases of short messages

_SUBJECT = (
    r"(?:request|operation|transaction|lookup|search|execution|job|query|command|tool|call|api|booking|upload|download"
    r"|authentication|login|verification|connection|update|cancellation|reservation|transfer|refund|fetch|server|service"
    r"|backend|system|it|this|that)"
)
_DONE = (
    r"(?:created|updated|deleted|removed|added|sent|booked|cancell?ed|stored|recorded|reserved|registered|transferr?ed"
    r"|delivered|processed|generated|analy[sz]ed|applied|assigned|saved|completed|confirmed|changed|refunded|issued|paid"
    r"|activated|deactivated|enabled|disabled|notified|entered|uploaded|scheduled|rescheduled|modified|placed|approved"
    r"|set|reset|written|executed|merged|installed|logged|connected|pulled up)"
)
_FAILS = lazy_pattern(
    r"\b(?:timed[ -]?out|time-?out (?:after|error|exceeded|occurred|while|waiting|reached)|request time-?out"
    r"|connection (?:was |is |has been )?(?:refused|reset|closed|aborted|lost|failed|dropped)|broken pipe"
    r"|rate[ -]limit(?:ed| \w+ (?:exceeded|reached)| exceeded| reached| hit)|too many requests"
    r"|(?:quota|limit) (?:has been |was )?exceeded|(?:permission|access) (?:was |is |has been )?denied"
    r"|(?:service|server|backend|system|api|host|db|database) (?:is )?(?:currently |temporarily )?"
    r"(?:unavailable|down|unreachable|offline)"
    r"|(?:service|tool|system|server) (?:is )?not available|max retries exceeded|network is unreachable"
    r"|no route to host|name or service not known|getaddrinfo failed|certificate.verify.failed"
    r"|deadline exceeded|context cancell?ed"
    r"|(?:payment|card|transaction|charge) (?:was |has been |is )?(?:declined|denied|rejected|failed)"
    r"|(?:tool|function|command|step|task) \S{1,60} (?:has |was )?(?:failed|errored|crashed|not found)"
    r"|internal server error|bad gateway|something went wrong|out of memory|segmentation fault|stack overflow"
    r"|(?:could|can)(?: not|not|n['’]t) (?:\w+ ){0,2}?(?:connect|reach|find|complete|process|load|verify|access"
    r"|retrieve|fetch|be (?:found|completed|processed|reached|loaded|verified|booked|cancell?ed|updated|created|sent"
    r"|retrieved|executed|made|saved|done|parsed))"
    r"|unable to|failed to|failed with|failed due|failed(?=:(?!\s*(?:\d|none)))"
    rf"|{_SUBJECT} (?:has |have |was |did )?(?:failed|errored|crashed|aborted|rejected|denied|unsuccessful)"
    r"|has been (?:rejected|denied|declined|refused)"
    r"|(?:error|exception) (?:has |was )?(?:occurred|raised|thrown|encountered)"
    r"|(?:with|had|has|encountered|parsing|introduced|caused|raised) (?!no |zero |0 )(?:[1-9]\d* |an? |some |several "
    r"|multiple |new )?(?:\w+ )?errors?\b|e(?:connrefused|connreset|timedout|hostunreach|notfound)"
    r"|not (?:authori[sz]ed|permitted|allowed) to|no such file|command not found|is not recognized as|syntax error"
    rf"|unsuccessful|(?:not|n['’]t|never) (?:been |be )?(?:successful(?:ly)?|succeed(?:ed)?|{_DONE}))\b",
)
_TRANSPORT = lazy_pattern(
    r"\b(?:connection (?:was |is |has been )?(?:refused|reset|closed|aborted|lost|dropped)|connect error|broken pipe"
    r"|(?:request|connection|gateway|read|query|operation) (?:has )?timed[ -]?out|socket hang up|no healthy upstream"
    r"|too many (?:requests|connections)|rate[ -]limit(?:ed| exceeded| reached| hit)|max retries exceeded"
    r"|network is unreachable|no route to host|name or service not known|getaddrinfo failed|deadline exceeded"
    r"|internal server error|bad gateway|something went wrong|technical difficult(?:y|ies)|out of memory"
    r"|(?:disconnect/)?reset before headers|service (?:is )?(?:currently |temporarily )?unavailable)\b",
)
"""Failures of the way to a tool: also a tool that returns the status of something does not mean a thing by them."""
_HINTS = lazy_pattern(
    r"\b(?:\w{0,30}errors?(?!\s?[:=]\s?(?:none|null|no|0)\b)|err|fail(?:s|ed|ure|ures|ing)?|reset|refused|missing|required|invalid|unavailable|upstream|difficult(?:y|ies)"
    r"|hang up|too many|denied|unreachable|unexpected(?:ly)?|unsupported|forbidden|exceed(?:s|ed)"
    r"|abort(?:ed|ing)?|crash(?:ed)?"
    r"|disconnect(?:ed)?|unauthori[sz]ed|rejected|exceptions?|time-?out|timed[ -]out|overloaded|outage|maintenance"
    r"|malformed|undefined|corrupt(?:ed)?|illegal|sorry|unfortunately|apologi[sz]e|trouble|broken|unable|offline|unhealthy"
    r"|unresponsive|retry|try again|went wrong|persists|not (?:supported|implemented|responding"
    r"|reachable|allowed|permitted"
    r"|authori[sz]ed|valid|recogni[sz]ed|connected|configured|ready|enough)|(?:cannot|could not)(?! be)"
    r"|couldn['’]t|no longer"
    r"|(?:technical|network) (?:problems?|issues?)|lost|locked|disabled|busy|overdue|insufficient|ineligible"
    r"|placeholder|mock(?:ed)?|simulated|dry[ -]run|expired|restricted|interrupted|terminated|killed|suspended|oops"
    r"|todo"
    r"|throttl\w{2,4}|lacks?|wrong|mismatch|unknown|expected \S{1,20} (?:arg|param|val)\w{2,8}"
    r"|did(?: not|n['’]t)|sqlstate|ora-\d{3,6}"
    r"|(?:got|received|returned|status|http(?:/\d(?:\.\d)?)?) [345]\d\d)\b|\berr!",
)
_LONGEST_NAME = 3
_DENIES = lazy_pattern(
    r"\b(?:no|not|none|never|already|nothing|nobody|neither|cannot|null|nil|nan|without|please)\b"
    r"|n['’]t\b|\b(?:found|has|have|are|is|with|returned|matched) (?:0|zero)\b|\?\W*$"
)
_GIVES_UP = lazy_pattern(
    r"\b(?:persists?|try again later|later try|contact (?:the |your |our |an )?(?:support|admin\w*))\b"
)
_VALUE = lazy_pattern(
    r"\d|[^\W\d_a-z]{2}|[a-z0-9,;:)\"'’] ['\"(]?(?!I\b)[A-Z]|[^\x00-\u024f]{4}|\b(?:two|three|four|five"
    r"|six|seven|eight|nine|ten)\b"
)
_SENTENCE = lazy_pattern(r"\w{2}[.!](?:\s|$)")
_NEGATION = lazy_pattern(r"\b(?:no|not|never|without|zero|0|n['’]t|any)\W{1,2}(?:\w+\W)?(?:or )?$")
_EXPLAINS = lazy_pattern(
    r"\b(?:if|when(?:ever)?|in case|means|mean|caused by|how to|to fix|troubleshoot\w*|typically|usually|policies"
    r"|our policy|faq|customers|article|guide|step \d|ticket \w+:)\b|^\[?\d{4}-\d\d-\d\d",
)
_DEFINES = lazy_pattern(
    r"\b(?:means?|stands for|indicates|is (?:shown|caused|returned)|occurs|bedeutet|significa|signifie)\b"
)
_NOTHING_FOUND = lazy_pattern(
    r"^\W{0,4}(?:there (?:are|is|were|was) )?(?:no|0|zero) (?:[\w'’-]+ ){0,4}?"
    r"(?:(?:results?|match(?:es|ing)?|records?|entries|items|hits)\b(?! (?:of|for the))"
    r"|(?:\S+ ){0,2}?(?:found|available|match|free|left|in stock)\b)"
    r"|^\W{0,4}(?:nothing|none) (?:was |were )?(?:found|to show)|^\W{0,4}(?:no [\w'’#-]+ (?:[\w'’#-]+ ){0,5}exists?\b"
    r"|no such (?!file|tool|function|method)\w|(?:found|returned) (?:0|no|zero) \w)"
    r"|^(?:[\w'’#-]+ ){1,5}(?:was |were |could )?not (?:be )?found\W*$"
    r"|\b(?:data|results?|information|records?|test) (?:[\w'’-]+ ){0,6}?(?:is |are )?not available\b"
    r"|^(?:[\w'’#-]+ ){1,6}(?:does not|doesn['’]t|do not) exist\W*$",
)
_PENDING = lazy_pattern(
    r"\b(?:queued|enqueued|pending|in progress|in the queue|processing|being processed|submitted|delegated|received"
    r"|acknowledged|initiated|please wait|will be \w+ed|on its way|awaiting|waiting for)\b",
)
_WORKED = lazy_pattern(
    r"[\W_]{0,4}(?:ok|okay|done|success(?:ful|full?y|fuly)?|succeeded|complete|finished|all good"
    r"|yes, done|query ok, [1-9]"
    rf"|{_DONE})\b(?!\s*\?)(?!\s+\w+\s*:\s*\d)",
)
_WORKED_SOMEWHERE = lazy_pattern(
    r"\b(?:success(?:ful|full?y|fuly)?|succeeded"
    rf"|(?:has|have|was|were|is|are) (?:been |now )?(?:\w+ly )?(?:{_DONE}|available)|now (?:on|off)"
    rf"|{_DONE} (?:to|at|on|for|in|by|with|from|without)|all set)\b|\b{_DONE}[.!]*$",
)
_DOUBT = lazy_pattern(
    r"\b(?:tool|call|execution|request|operation|job|task|action|query) (?:\S+ )?(?:was|is|has been|got) cancell?ed\b"
    r"|\b(?:tool|function|feature|service|endpoint|account) (?:is|was|has been) (?:disabled|deactivated)\b"
    r"|\b(?:nothing|none|no one|would|already|dry[ -]run)\b"
    r"|\b(?:not|n['’]t|never|unless|if|whether|un\w+|no longer|fail\w*)\b|\?\W*$"
)

_COLOURS = lazy_pattern(r"\x1b\[[0-9;]{0,20}m")
_WORD = lazy_pattern(r"[a-z0-9]+")
_SIGN_WORDS = (
    "socket upstream connect headers difficulty difficulties retries route service tool system server"
    " max network name getaddrinfo certificate deadline context payment card"
    " transaction charge function command step task timed time timeout connection broken rate too quota limit"
    " permission access unavailable down unreachable offline internal bad something memory segmentation stack"
    " could can cannot couldn unable failed fail errored crashed aborted rejected unsuccessful denied declined"
    " refused error errors exception not no t never file command econnrefused econnreset etimedout"
    " ehostunreach enotfound http status code zero 0 nothing none exist available found queued enqueued"
    " pending progress queue processing processed submitted delegated received acknowledged initiated wait"
    " will its scheduled awaiting waiting ok okay done success successful successfully successfuly succeeded"
    " complete finished all yes on off created updated deleted removed added sent booked canceled cancelled"
    " stored recorded reserved registered transfered transferred delivered generated analyzed analysed applied"
    " assigned saved completed confirmed changed refunded issued paid activated deactivated enabled disabled"
    " notified entered uploaded rescheduled modified placed approved set reset written executed merged"
    " installed logged connected pulled syntax"
)
_SIGNS = frozenset(_SIGN_WORDS.split()) | frozenset(str(code) for code in range(400, 600))
"""A short text without any of these words states nothing."""

# The same in German, Spanish, French, Portuguese and Japanese

_ACCENTS = lazy_pattern("[\u0300-\u036f]")
_ANY_WORD = lazy_pattern(r"[^\W_]+")
_OTHER_FAILS = lazy_pattern(
    # German
    r"\b(?:fehler (?:ist )?(?:aufgetreten|beim|bei der|im)|fehlgeschlagen|gescheitert|abgesturzt|zeituberschreitung"
    r"|(?:konnten?|kann|konnen) (?:[\w-]{1,30} ){0,6}?nicht (?:\w+ )?(?:werden|geladen|erreicht|gefunden|verarbeitet)"
    r"|(?:dienst|server|system|datenbank|api|schnittstelle|verbindung)\b[^.]{0,40}"
    r"\bnicht (?:erreichbar|verfugbar|moglich)"
    r"|zugriff (?:wurde )?verweigert|keine (?:verbindung|berechtigung)"
    # Spanish
    r"|(?:ocurrio|ha ocurrido|se produjo|se ha producido|hubo) un (?:error|fallo|problema)"
    r"|error (?:al|interno|inesperado)"
    r"|no se (?:ha |han )?(?:pudo|pudieron|puede|pueden|podido)|no fue posible|ha fallado|acceso denegado"
    r"|(?:servicio|servidor|sistema)\b[^.]{0,40}\bno (?:esta disponible|responde|disponible)|tiempo de espera agotado"
    # French
    r"|(?:une )?erreur (?:s'est|est|interne|inattendue|lors|de)|a echoue|echec (?:de|du|lors)|impossible (?:de |d')"
    r"|n['’]a pas pu|n['’]ont pas pu|acces refuse|delai (?:d'attente )?depasse"
    r"|(?:service|serveur|systeme)\b[^.]{0,40}\b(?:indisponible|ne repond pas|injoignable)"
    # Portuguese
    r"|ocorreu um (?:erro|problema)|erro (?:ao|interno|inesperado)|nao foi possivel|nao (?:pode|podem) ser"
    r"|falha (?:ao|na|no)|falhou|acesso negado"
    r"|(?:servico|servidor|sistema)\b[^.]{0,40}\b(?:indisponivel|nao responde|fora do ar))"
    # Japanese
    r"|エラーが(?:発生|起き)|に?失敗しました|できませんでした|(?:接続|利用|処理|取得)できません|タイムアウトしました"
)
_OTHER_NOTHING_FOUND = lazy_pattern(
    r"\b(?:(?:nicht|nichts) gefunden|keine? (?:[\w-]{1,30} ){0,6}?(?:gefunden|vorhanden|treffer|ergebnisse)"
    r"|existiert nicht|no (?:se )?(?:encontr\w{1,12}|hay resultados|existe)"
    r"|ningun[ao]? (?:\w{1,20} ){0,4}?encontrad[oa]|sin resultados"
    r"|aucune? (?:\w{1,20} ){0,4}?(?:trouve|resultat)\w{0,3}|introuvables?|n['’]existe pas|pas (?:ete )?trouvee?s?"
    r"|nao (?:foi |foram )?encontrad\w{1,3}|nao existe|nenhum[a]? (?:\w{1,20} ){0,4}?encontrad\w{1,3})\b"
    r"|見つかりません|存在しません|該当(?:なし|する[^。]{0,20}ありません)"
)
_OTHER_WORKED = lazy_pattern(
    r"\b(?:erfolgreich|(?:wurden?|ist|sind) (?:[\w-]{1,30} ){0,5}?(?:gebucht|gespeichert|erstellt|storniert"
    r"|aktualisiert|gesendet|geandert|angelegt|bestatigt|reserviert|geloscht|erstattet)"
    r"|con exito|exitosamente|correctamente"
    r"|(?:ha sido|fue|esta) (?:confirmad|reservad|cread|actualizad|cancelad|enviad|guardad)[oa]|reserva confirmada"
    r"|avec succes|(?:a|ont) (?:bien )?ete (?:confirme|reserve|cree|envoye|modifie|annule|enregistre)\w{0,3}"
    r"|com sucesso|foi (?:confirmad|reservad|criad|atualizad|cancelad|enviad|salv)[oa])\b"
    r"|(?:完了|成功|予約|確定|送信|登録|更新|変更|作成|キャンセル)(?:し|され)ました"
)
_OTHER_NEGATION = lazy_pattern(
    r"\b(?:nicht|nichts|keine?[mnrs]?|ohne|nie|niemals|ningun[ao]?|nunca|tampoco|aucune?|pas|jamais|nao|nenhum[a]?|sem)\b"
    r"|\bno (?:se|es|esta|fue|ha|hay|hemos|puede|existe|responde|disponible|encontrad[oa]|tiene)\b"
    r"|ません|なかった|ない(?:です|。|$)|不可|なし"
)
_OTHER_HINTS = lazy_pattern(
    r"\b(?:\w{0,20}fehler\w{0,6}|fehlt|fehlen|abgelehnt|abgelaufen|abgebrochen|verweigert|gesperrt|ungultige?[rsn]?|gescheitert"
    r"|storung|zeituberschreitung|wartung\w{0,10}|problemen?|erneut|spater|leider"
    r"|fallo|fallid[oa]|rechazad[oa]|bloquead[oa]|problemas?|mantenimiento|mas tarde"
    r"|de nuevo|caducad[oa]|expirad[oa]|denegad[oa]|invalid[oa]|agotad[oa]"
    r"|erreurs?|echec|echoue|est refusee?|a expire|expiree|invalide|indisponibles?|malheureusement"
    r"|problemes?|interdite?s?|reessayer|plus tard|bloquee?"
    r"|erros?|falha|falhou|recusad[oa]|negad[oa]|manutencao|novamente"
    r"|mais tarde|indisponivel|infelizmente|errore|fallit[oa]|scadut[oa])\b"
    r"|エラー|失敗|メンテナンス|無効|拒否|期限切れ|错误|失败|錯誤|오류|실패|ошибк"
)
_OTHER_EXPLAINS = lazy_pattern(
    r"\b(?:wenn|falls|sobald|bedeutet|si|cuando|significa|quand|lorsque|signifie|quando|caso)\b|場合|とき"
)


# Promises, in English

_PROMISE_DONE = r"(?:done|sorted(?: out)?|taken care of|dealt with|completed|finished)"
_PROMISE_BEFORE = r"(?:(?:just|now|already|all|been|both) )*"
_PROMISE_IS = r"(?:(?:'s|'re|'ve)|(?: is| are| was| were| has| have))"
_MODAL = r"(?:will|would|should|could|must|might|may|not|never)"
_OPEN = lazy_pattern(rf"\b(?:once|when|until|if|after|as soon as|{_MODAL})\b[^,;]*$")
"""What is said before such words and makes them a plan, a condition or a denial."""
_IRREGULAR = {
    "bring": "brought", "build": "built", "buy": "bought", "cancel": "cancel(?:l)?ed", "do": "done", "drop": "dropped",
    "find": "found", "get": "got(?:ten)?", "give": "given", "hold": "held", "keep": "kept", "leave": "left",
    "let": "let", "make": "made", "pay": "paid", "plan": "planned", "put": "put", "read": "read", "refer": "referred",
    "reset": "reset", "ring": "rung", "see": "seen", "send": "sent", "set": "set", "ship": "shipped", "speak": "spoken",
    "stop": "stopped", "submit": "submitted", "swap": "swapped", "take": "taken", "tell": "told",
    "transfer": "transferred", "write": "written",
}  # fmt: skip
_QUOTES = str.maketrans({"’": "'", "‘": "'"})


def says_done(text: str, promise: str) -> bool:
    """Whether a text says that a promise, written as an instruction, was kept: "I've sent it", "that's done"."""
    words = " ".join(text.translate(_QUOTES).lower().split())
    starts = (match.start() for match in _promise_pattern(promise).finditer(words))
    return any(not _OPEN.search(re.split(r"[.!?]", words[:start])[-1]) for start in starts)


@lru_cache(1024)
def _promise_pattern(promise: str) -> re.Pattern[str]:
    verb = re.match(r"\W*([a-z]+)", promise.lower())
    done = f"(?:{_PROMISE_DONE}|{participle(verb[1])})" if verb else _PROMISE_DONE
    return lazy_pattern(
        rf"\b(?:all {_PROMISE_DONE}|(?!{_MODAL}\b)\w+{_PROMISE_IS} {_PROMISE_BEFORE}{done}"
        rf"|(?:i|we) (?:just|already) {done})\b(?! to\b)"
    )


def participle(verb: str) -> str:
    """The form of a verb that goes with "have", as a pattern."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if re.search(r"[^aeiou]y$", verb) else f"{verb}ed"
