"""What the name of a tool, an act or an intent says is done: search, book, request, inform (dialogue, 1.8 and 1.9)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from convoscope.text.folding import name_words, split_camel

SEARCH, BOOK, REQUEST, INFORM, OTHER = "search", "book", "request", "inform", "other"

BOOKING_VERBS = ("book", "reserve", "buy", "purchase", "rent", "order", "schedule")
_NOUNS_TOO = frozenset({"purchase", "rent", "order", "schedule"})
"""They are verbs only at the start of a name: `order_pizza`, but not `user_order`."""
_MAKING_VERBS = frozenset({"make", "create", "place", "confirm", "complete", "submit", "add"})
_BOOKING_NOUNS = frozenset(
    {"booking", "reservation", "purchase", "order", "appointment", "rental", "ticket", "tickets"}
)
"""After a verb of making, what is made is a booking: `make_hotel_booking`."""
_THINGS_BOOKED = frozenset({"room", "rooms", "table", "tables", "seat", "seats", "visit", "slot", "it", "a", "the"})
"""They name no domain: `book_table` books in the domain that the turn is about."""
_READS = frozenset(
    {"find", "search", "look", "lookup", "get", "list", "query", "check", "show", "fetch", "read", "retrieve"}
    | {"browse"}
)
_TELLS = frozenset({"inform", "recommend", "offer", "suggest", "answer", "provide", "explain", "present"})
_ASKS = frozenset({"request", "ask", "clarify", "elicit", "prompt"})
_OTHER_VERBS = frozenset(
    {"cancel", "change", "update", "delete", "remove", "send", "transfer", "calculate", "verify", "modify", "refund"}
)
_ABOUT_RECORDS = frozenset(
    {"status", "details", "detail", "info", "information", "history", "availability", "options", "policy", "policies"}
)
"""As the last word: `order_status` and `booking_details` read a record, and book nothing."""

_BOTH = frozenset({SEARCH, INFORM})
"""Results shown to the user are both a search and an inform."""
_OF_VERBS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_READS, frozenset({SEARCH})),
    **dict.fromkeys(_TELLS, _BOTH),
    **dict.fromkeys(_ASKS, frozenset({REQUEST})),
    **dict.fromkeys(_OTHER_VERBS, frozenset({OTHER})),
}
_BOOKED = frozenset({"book", "booked", "offerbooked", "notifysuccess"})
_OF_KINDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_BOOKED, frozenset({BOOK})),
    **dict.fromkeys(("nobook", "notifyfailure"), frozenset({BOOK, INFORM})),
    **dict.fromkeys(("inform", "informcount", "recommend", "select", "offer", "nooffer", "offerbook"), _BOTH),
    **dict.fromkeys(("request", "confirm", "offerintent", "ask", "requestalts"), frozenset({REQUEST})),
    **dict.fromkeys(
        [
            *("reqmore", "goodbye", "bye", "thank", "thankyou", "thanks", "greet", "greeting", "welcome"),
            *("acknowledge", "affirm", "negate", "affirmintent", "negateintent", "informintent"),
        ],
        frozenset({INFORM}),
    ),
}
"""The kinds of acts of MultiWOZ and SGD. "No, it is full" is a booking that was tried; greetings acknowledge."""
_DELIVERS_NOTHING = frozenset({"nooffer", "nobook", "notifyfailure"})
_GENERAL, _BOOKING = "general", "booking"
_NOTHING: frozenset[str] = frozenset()


class ToolUse(NamedTuple):
    """What a tool does by its name: whether it books, in which domain, and what it does. Nothing: it does not say."""

    books: bool
    domain: str = ""
    actions: frozenset[str] = _NOTHING

    @property
    def is_known(self) -> bool:
        return bool(self.actions)


_UNKNOWN = ToolUse(False)


@lru_cache(4096)
def tool_use(name: str) -> ToolUse:
    """`book_hotel`, `bookHotel`, `hotel.book`, `make_hotel_booking` and `ReserveHotel` book: the first verb decides.

    The rest of the name is the domain. A last word such as `status` makes the verb before it a noun.
    """
    words = name_words(name)
    if not words:
        return _UNKNOWN
    last = words[-1]
    if last in _ABOUT_RECORDS or (len(words) > 1 and last in _READS):
        first = _OF_VERBS.get(words[0], _NOTHING)  # `request_info` asks
        return ToolUse(False, _domain(words[:-1]), first or frozenset({SEARCH}))
    for place, word in enumerate(words):
        rest = (*words[:place], *words[place + 1 :])
        if word in BOOKING_VERBS and (place == 0 or word not in _NOUNS_TOO):
            return ToolUse(True, _domain(rest), frozenset({BOOK}))
        if word in _MAKING_VERBS and not _BOOKING_NOUNS.isdisjoint(rest):
            return ToolUse(True, _domain(rest), frozenset({BOOK}))
        if word in _OF_VERBS:
            return ToolUse(False, _domain(rest), _OF_VERBS[word])
    return _UNKNOWN


def _domain(words: tuple[str, ...]) -> str:
    return "_".join([word for word in words if word not in _BOOKING_NOUNS and word not in _THINGS_BOOKED])


@lru_cache(4096)
def act_name(act_type: str) -> str:
    """The name of an act in small letters. The words of `BookHotel` stay apart; `OfferBooked` is one kind."""
    plain = act_type.strip()
    folded = plain.casefold()
    return folded if _kind(folded) in _OF_KINDS else split_camel(plain, "_").casefold()


def _kind(act_type: str) -> str:
    """What an act does, in one word: `Hotel-Inform`, `INFORM`, `REQ_MORE`."""
    return act_type.rpartition("-")[2].replace("_", "").replace(" ", "")


class _ActUse(NamedTuple):
    """What an act does, in which domain, and whether it says that something was booked."""

    actions: frozenset[str]
    domain: str = ""
    books: bool = False
    delivers: bool = False
    """It may give the user something: no greeting, no question, no "there is none"."""


@lru_cache(4096)
def _act_use(act_type: str) -> _ActUse:
    """Of acts such as `Hotel-Inform` and `INFORM` the kind is known; others are read like the name of a tool."""
    name = act_name(act_type)
    kind, domain = _kind(name), name.rpartition("-")[0]
    if kind not in _OF_KINDS and domain != _GENERAL:
        use = tool_use(name)
        if use.is_known:
            return _ActUse(use.actions, use.domain, use.books, not use.actions <= {REQUEST, OTHER})
        words = name_words(name)
        kind, domain = (words[-1], "_".join(words[:-1])) if words else ("", "")  # `train_offerbooked`
    actions = frozenset({INFORM}) if domain == _GENERAL else _OF_KINDS.get(kind, _NOTHING)
    delivers = bool(actions - {REQUEST, INFORM}) and kind not in _DELIVERS_NOTHING
    return _ActUse(actions, "" if domain == _BOOKING else domain, kind in _BOOKED and domain != _GENERAL, delivers)


def actions_of(act_type: str) -> frozenset[str]:
    """What an act does: search, book, request or inform. Nothing where its name does not say."""
    return _act_use(act_type).actions


def is_booking(act_type: str) -> bool:
    """Whether an act says that something has been booked: Booking-Book, NOTIFY_SUCCESS, book_hotel."""
    return _act_use(act_type).books


def delivers(act_type: str) -> bool:
    """Whether an act may give the user something: no greeting, no question, no "there is none"."""
    return _act_use(act_type).delivers


def named_domain(act_type: str) -> str:
    """The domain that an act names; "" where it is that of the turn, as of `Booking-Book` and `INFORM`."""
    return _act_use(act_type).domain


@lru_cache(65536)
def actions_of_all(act_types: frozenset[str]) -> frozenset[str]:
    """What several acts do."""
    return frozenset().union(*map(actions_of, act_types))


@lru_cache(65536)
def books(act_types: frozenset[str]) -> bool:
    """Whether one of the acts books something, or tried to."""
    return BOOK in actions_of_all(act_types)


@lru_cache(65536)
def actions_taken(act_types: frozenset[str], calls: tuple[str, ...]) -> frozenset[str]:
    """All that the agent does in a turn, by its acts and its tools."""
    return actions_of_all(act_types).union(*[tool_use(call).actions for call in calls])


ACT_UNKNOWN, TOOL_UNKNOWN = "act_unknown", "tool_unknown"


@lru_cache(65536)
def unknown_doing(act_types: frozenset[str], calls: tuple[str, ...]) -> str:
    """Why it cannot be told what else the agent does: an act or a tool whose name does not say. Else nothing."""
    if not all(map(actions_of, act_types)):
        return ACT_UNKNOWN
    return "" if all(tool_use(call).is_known for call in calls) else TOOL_UNKNOWN


@lru_cache(65536)
def does_tell(names: tuple[str, ...]) -> bool:
    """Whether the names of tools tell that something was booked, or that nothing was."""
    uses = [tool_use(name) for name in names]
    return any(use.books for use in uses) or (bool(uses) and all(use.is_known for use in uses))


@lru_cache(65536)
def do_tell(act_types: frozenset[str]) -> bool:
    """Whether acts tell that something was booked, or that nothing was. No act at all books nothing."""
    return any(map(is_booking, act_types)) or all(map(actions_of, act_types))


@lru_cache(4096)
def intent_books(intent: str) -> tuple[bool, str]:
    """Whether an intent is one to book, and what it names: `book_hotel`, `make_reservation`, `reserverestaurant`."""
    use = tool_use(intent)
    if use.is_known:
        return use.books, use.domain
    verb = next((verb for verb in BOOKING_VERBS if intent.startswith(verb)), "")
    if verb and not intent.endswith(tuple(_ABOUT_RECORDS)):
        return True, intent.removeprefix(verb).lstrip("_")
    return False, intent.partition("_")[2] or intent
