"""What an agent does, by the names of its tools and acts, and whether its rules allow it (dialogue, 1.8 and 1.9)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from convoscope.text.folding import name_words, split_camel

if TYPE_CHECKING:
    from convoscope.metrics.dialogue.turns import DialogueTurn, State

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
_INFORMS = frozenset({"inform", "recommend", "offer", "suggest", "answer", "provide", "explain", "present"})
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
    **dict.fromkeys(_INFORMS, _BOTH),
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


class NamedUse(NamedTuple):
    """What a tool or an act does by its name: whether it books, in which domain, and which actions it takes.

    No actions: the name does not say.
    """

    books: bool
    domain: str = ""
    """"" where it is that of the turn, as of `Booking-Book` and `INFORM`."""
    actions: frozenset[str] = _NOTHING
    delivers: bool = False
    """It may give the user something: no greeting, no question, no "nothing was found"."""


_UNKNOWN = NamedUse(False)


@lru_cache(4096)
def tool_use(name: str) -> NamedUse:
    """`book_hotel`, `bookHotel`, `hotel.book`, `make_hotel_booking` and `ReserveHotel` book: the first verb decides.

    The rest of the name is the domain. A last word such as `status` makes the verb before it a noun.
    """
    words = name_words(name)
    if not words:
        return _UNKNOWN
    last = words[-1]
    if last in _ABOUT_RECORDS or (len(words) > 1 and last in _READS):
        first = _OF_VERBS.get(words[0], _NOTHING)  # `request_info` asks
        return _named_use(first or frozenset({SEARCH}), words[:-1])
    for index, word in enumerate(words):
        rest = (*words[:index], *words[index + 1 :])
        is_booking_verb = word in BOOKING_VERBS and (index == 0 or word not in _NOUNS_TOO)
        if is_booking_verb or (word in _MAKING_VERBS and not _BOOKING_NOUNS.isdisjoint(rest)):
            return _named_use(frozenset({BOOK}), rest)
        if word in _OF_VERBS:
            return _named_use(_OF_VERBS[word], rest)
    return _UNKNOWN


def _named_use(actions: frozenset[str], rest: tuple[str, ...]) -> NamedUse:
    domain = "_".join([word for word in rest if word not in _BOOKING_NOUNS and word not in _THINGS_BOOKED])
    return NamedUse(BOOK in actions, domain, actions, not actions <= {REQUEST, OTHER})


@lru_cache(4096)
def act_name(act_type: str) -> str:
    """The name of an act in lower case. The words of `BookHotel` stay apart; `OfferBooked` is one kind."""
    plain = act_type.strip()
    folded = plain.casefold()
    return folded if _kind(folded) in _OF_KINDS else split_camel(plain, "_").casefold()


def _kind(act_type: str) -> str:
    """What an act does, in one word: `Hotel-Inform`, `INFORM`, `REQ_MORE`."""
    return act_type.rpartition("-")[2].replace("_", "").replace(" ", "")


@lru_cache(4096)
def act_use(act_type: str) -> NamedUse:
    """Of acts such as `Hotel-Inform` and `INFORM` the kind is known; others are read like the name of a tool."""
    name = act_name(act_type)
    kind, domain = _kind(name), name.rpartition("-")[0]
    if kind not in _OF_KINDS and domain != _GENERAL:
        use = tool_use(name)
        if use.actions:
            return use
        words = name_words(name)
        kind, domain = (words[-1], "_".join(words[:-1])) if words else ("", "")  # `train_offerbooked`
    actions = frozenset({INFORM}) if domain == _GENERAL else _OF_KINDS.get(kind, _NOTHING)
    return NamedUse(
        books=kind in _BOOKED and domain != _GENERAL,
        domain="" if domain == _BOOKING else domain,
        actions=actions,
        delivers=bool(actions - {REQUEST, INFORM}) and kind not in _DELIVERS_NOTHING,
    )


@lru_cache(65536)
def actions_taken(act_types: frozenset[str], calls: tuple[str, ...]) -> frozenset[str]:
    """All that the agent does in a turn, by its acts and its tools."""
    uses = (*map(act_use, act_types), *map(tool_use, calls))
    return frozenset().union(*[use.actions for use in uses])


ACT_UNKNOWN, TOOL_UNKNOWN = "act_unknown", "tool_unknown"


@lru_cache(65536)
def unknown_doing(act_types: frozenset[str], calls: tuple[str, ...]) -> str:
    """Why it is unknown what else the agent does: an act or a tool whose name does not say. Else ""."""
    if not all(act_use(type).actions for type in act_types):
        return ACT_UNKNOWN
    return "" if all(tool_use(call).actions for call in calls) else TOOL_UNKNOWN


@lru_cache(65536)
def _say_booking(use_of: Callable[[str], NamedUse], names: Collection[str]) -> bool:
    """Whether names of acts or tools say that something was booked, or that nothing was."""
    uses = [use_of(name) for name in names]
    return any(use.books for use in uses) or all(use.actions for use in uses)


@lru_cache(4096)
def intent_books(intent: str) -> tuple[bool, str]:
    """Whether an intent is one to book, and what it names: `book_hotel`, `make_reservation`, `reserverestaurant`."""
    use = tool_use(intent)
    if use.actions:
        return use.books, use.domain
    verb = next((verb for verb in BOOKING_VERBS if intent.startswith(verb)), "")
    if verb and not intent.endswith(tuple(_ABOUT_RECORDS)):
        return True, intent.removeprefix(verb).lstrip("_")
    return False, intent.partition("_")[2] or intent


PolicyRules = Mapping[str, tuple[str, ...]]
"""The slots that must be filled before something is booked, by domain."""

BOOKING_RULES: PolicyRules = {
    "hotel": ("name", "bookday", "bookpeople", "bookstay"),
    "restaurant": ("name", "bookday", "bookpeople", "booktime"),
}
"""The seed's rules."""

ANY = "any"
"""Where no rule says when a booking is complete, whatever the agent does to get on with it is right."""

_NO_STATE: State = {}


class Attempt(NamedTuple):
    """A booking that the agent performed, and what its domain still lacked."""

    domain: str
    missing: tuple[str, ...]


def missing_slots(state: State, domain: str, rules: PolicyRules) -> tuple[str, ...]:
    """What a domain's rule wants and the state lacks."""
    required = rules.get(domain)
    if required is None:
        return ()
    filled = state.get(domain, _NO_STATE)
    return tuple([slot for slot in required if slot not in filled])


def booking_attempts(turn: DialogueTurn, rules: PolicyRules = BOOKING_RULES) -> tuple[Attempt, ...]:
    """The bookings that the agent performs in this turn: one in each domain that an act or a tool names.

    A booking that names no domain, such as `Booking-Book`, is in the domain that the turn is about; of several, in the
    one that lacks least. What the turn is about is taken from the truth where there is one, so that a wrong routing is
    charged to routing alone. Where a tool booked, such an act reports on it.
    """
    tools, acts = bookings_named(turn.predicted.act_types, turn.calls)
    if not tools and not acts:
        return ()
    about = turn.booked or turn.truth.domains or turn.predicted.domains or ("",)
    state = turn.predicted.state or _NO_STATE
    named = sorted({_booked_domain(domain, about, rules) for domain in tools + acts if domain})
    attempts = [Attempt(domain, missing_slots(state, domain, rules)) for domain in named]
    if "" in tools or ("" in acts and not tools):
        others = [domain for domain in about if domain not in named]
        ruled = [domain for domain in others if domain in rules] or others
        bare = [Attempt(domain, missing_slots(state, domain, rules)) for domain in ruled]
        attempts += bare if len(bare) < 2 else [min(bare, key=lambda attempt: len(attempt.missing))]
    return tuple(attempts)


def no_doing(turn: DialogueTurn) -> str:
    """Why it is unknown whether the agent books: nothing says what it does, or names do not say."""
    is_acting = turn.predicted.acts is not None
    if is_acting and _say_booking(act_use, turn.predicted.act_types):
        return ""
    if turn.calls and _say_booking(tool_use, turn.calls):
        return ""
    return ACT_UNKNOWN if is_acting else TOOL_UNKNOWN if turn.calls else "not_predicted"


def _booked_domain(name: str, about: tuple[str, ...], rules: PolicyRules) -> str:
    """The domain that the name of a booking means: one of the turn, else one that has a rule, else itself."""
    domain = domain_among(name, about)
    return domain if domain in about else domain_among(name, tuple(rules))


@lru_cache(65536)
def bookings_named(act_types: frozenset[str], calls: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The domains that tools and acts that book name; "" for one that names none."""
    tools = [use.domain for use in map(tool_use, calls) if use.books]
    return tuple(tools), tuple([use.domain for use in map(act_use, act_types) if use.books])


@lru_cache(65536)
def domain_among(name: str, domains: tuple[str, ...]) -> str:
    """The domain that a part of an act, a tool or an intent means: `restaurant` is `Restaurants_2` where a turn is
    about that. A name that means none of them is a domain of its own.
    """
    if name in domains:
        return name
    stems = {domain.rstrip("_0123456789").removesuffix("s"): domain for domain in reversed(domains)}
    return next((domain for stem, domain in stems.items() if stem and stem in name), name)


def expected_action(
    intents: frozenset[str],
    state: State | None,
    rules: PolicyRules = BOOKING_RULES,
    domains: tuple[str, ...] | None = None,
) -> str:
    """What the agent ought to do, from the truth: the user's intents, and whether the slots of a booking are filled.

    Without an intent it ought to acknowledge. A booking comes before a search.
    """
    booking = goal_domains(intents, domains).bookings
    if not booking:
        return SEARCH if intents else INFORM
    ruled = [domain for domain in booking if domain in rules]
    if not ruled:
        return ANY
    return REQUEST if any(missing_slots(state or _NO_STATE, domain, rules) for domain in ruled) else BOOK


class GoalDomains(NamedTuple):
    """The domains that the user wants to book in, and those in which they look for something."""

    bookings: frozenset[str]
    searches: frozenset[str]


@lru_cache(65536)
def goal_domains(intents: frozenset[str], domains: tuple[str, ...] | None = None) -> GoalDomains:
    """What intents are about, in a turn about these domains: `book_hotel`, `ReserveRestaurant` in `Restaurants_2`."""
    bookings: set[str] = set()
    searches: set[str] = set()
    for intent in intents:
        is_booking_goal, name = intent_books(intent)
        (bookings if is_booking_goal else searches).add(_goal_domain(name, domains or ()))
    return GoalDomains(frozenset(bookings), frozenset(searches))


def _goal_domain(name: str, domains: tuple[str, ...]) -> str:
    """A turn about one domain alone is about it, whatever its intents are called."""
    domain = domain_among(name, domains)
    return domains[0] if domain not in domains and len(domains) == 1 else domain


def does_right(expected: str, taken: Collection[str]) -> bool:
    """Whether what the agent does is, or includes, what is expected."""
    return bool(taken) if expected == ANY else expected in taken
