"""The names and words by which tool results are read: of fields, of statuses, of tools."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from convoscope.text.identifiers import name_words


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Fields


GOOD_FLAG, BAD_FLAG = "good flag", "bad flag"
ERROR = "error"
"""What went wrong; empty where nothing did."""
WEAK_ERROR = "weak error"
"""The type or code of an error, or data about one."""
STATUS = "status"
"""A word or number: of the call, or of the thing returned."""
TYPE, HTTP, EXIT = "type", "http", "exit"
CODE = "code"
"""Of an error, or of a product."""
TEXT = "text"
DESCRIPTION = "description"
"""A message, or a description of the thing returned."""
WRAPPED = "wrapped"
"""What the tool returned, inside of what carries it."""
FOUND = "found"
"""Whether a search found anything."""
META = "meta"
"""About the request."""

_NAMES = {
    GOOD_FLAG: "success ok succeeded issuccess successful issuccessful isok worked",
    BAD_FLAG: "iserror haserror haserrors failed isfailed isfailure hasfailed timedout istimeout",
    ERROR: (
        "error errors err exception exceptions fault faultstring traceback stacktrace errormessage errormsg"
        " errordescription errordetail errordetails errorinfo lasterror toolerror failure"
        " fehler fehlermeldung erreur errore erro fallo"
    ),
    WEAK_ERROR: "errortype errorcode errorname errno errorreason failurereason exceptiontype failuretype",
    STATUS: "status outcome state responsestatus callstatus resultstatus executionstatus toolstatus",
    TYPE: "type kind object",
    HTTP: "statuscode httpstatus httpstatuscode httpcode responsecode httpresponsecode",
    CODE: "code resultcode responsecode grpccode",
    EXIT: "exitcode exitstatus returncode retcode",
    TEXT: "message msg detail reason responsemessage resultmessage responsemsg resultmsg statusmessage"
    " statustext statusdescription hint stderr",
    DESCRIPTION: "title description details info note",
    WRAPPED: (
        "result results output outputs response data content body value payload structuredcontent toolresponse"
        " functionresponses functionresponse functionresult returnvalue toolresult text stdout http"
        " httpresponse apiresponse rawresponse"
    ),
    FOUND: "found isfound wasfound",
    META: (
        "requestid traceid correlationid spanid timestamp tool toolname apiname function functionname callid toolcallid"
        " tooluseid retryafter durationms elapsedms latencyms took jsonrpc version path instance method"
        " interrupted isimage nooutputexpected annotations meta"
    ),
}
_FIELDS = {name: field for field, names in _NAMES.items() for name in names.split()}
_LONGEST = 40


@lru_cache(maxsize=4096)
def field_of(key: str) -> str | None:
    """What a field is by its name; None of data."""
    if len(key) > _LONGEST:
        return None
    return _FIELDS.get(key.replace("_", "").replace("-", "").replace(" ", "").lower())


# Statuses

BAD_WORDS = _words(
    "error errored failed failure fail fault exception ko nok unauthorized unauthorised forbidden timeout timed_out"
    " internal_error server_error not_ok bad_request unsuccessful invalid_request crashed"
)
BAD_OF_THINGS = _words("rejected denied declined unavailable invalid aborted not_found refused blocked")
"""Words that are more often the status of an order or a payment than that of a call."""
ERROR_WORDS = _words("error exception failure fault internal_error server_error errored")
"""Words that are hardly ever the status of a thing."""
GRPC_CODES = _words("UNAVAILABLE NOT_FOUND ABORTED")
"""Those of the words above that are also codes of gRPC, which writes them in capitals."""
GOOD_WORDS = _words(
    "success succeeded successful ok okay completed complete done created updated deleted confirmed booked saved sent"
    " approved processed finished passed delivered added removed refunded issued"
)
PENDING_WORDS = _words(
    "pending queued processing in_progress submitted accepted received scheduled initiated started running waiting"
    " cancelled canceled"
)
"""Words that say neither: it is not done yet, or something is cancelled, by this call or before it."""
DONE_WORDS = _words(
    "booked sent created updated deleted cancelled canceled confirmed completed accepted processed transferred saved"
    " approved executed delivered refunded paid charged scheduled added removed applied verified authenticated reserved"
)
"""Fields of tools that act: `{"booked": false}` says that they did not."""
NO_ERROR = _words("0 false no none null nil n/a na ok success - [] {}") | {"", "no error", "no errors"}
"""What `error` says where there was none."""
EMPTY_WORDS = _words("null none nil undefined {} [] \"\" '' n/a")
TRUE, FALSE = _words("true yes 1"), _words("false no 0")


# Tools


class ToolKind(NamedTuple):
    """What the name of a tool says about its answers."""

    reads: bool
    """It looks something up."""
    acts: bool
    """It changes something."""
    counts: bool
    """Its answer is a number."""
    runs: bool
    """Its answer is what a program prints."""
    status: bool
    """Its answer is the status of something."""
    errors: bool
    """It looks up errors, or codes of them."""
    availability: bool
    """It says whether something can be had."""


_READS = _words(
    "get search find list lookup look check calculate compute fetch query read describe show retrieve view"
    " count identify browse translate convert summarize summarise extract detect classify inspect estimate"
    " quote compare ask info details faq weather knowledge retrieval grep cat calculator"
)
_ACTS = _words(
    "book cancel create update delete remove add send pay charge refund transfer escalate issue assign change"
    " modify set submit process schedule reschedule rebook reserve register activate deactivate enable disable"
    " toggle apply redeem place make post put write save store record notify email call open close reset"
    " approve reject grant block unblock execute trigger start stop restart purchase buy confirm checkout"
    " authenticate login verify"
)
_COUNTS = _words(
    "calculate compute calculator count convert sum total balance price rate amount number distance"
    " temperature score quantity stock cost fee tax duration age length size"
)
_RUNS = _words("bash shell terminal python cmd console powershell ipython notebook interpreter")
_LONGEST_NAME = 200


@lru_cache(maxsize=1024)
def tool_kind(tool: str) -> ToolKind:
    """What the name of a tool says; its first verb decides what it does."""
    words = name_words(tool[:_LONGEST_NAME])
    verb = next((word for word in words if word in _READS or word in _ACTS), "")
    known, acts = frozenset(words), verb in _ACTS
    return ToolKind(
        reads=verb in _READS,
        acts=acts,
        counts=not known.isdisjoint(_COUNTS),
        runs=not known.isdisjoint(_RUNS),
        status=not acts and not known.isdisjoint(("status", "state")),
        errors=not acts and not known.isdisjoint(("error", "errors", "fault", "faults", "log", "logs")),
        availability=not known.isdisjoint(("check", "availability", "available", "stock", "inventory", "slots")),
    )
