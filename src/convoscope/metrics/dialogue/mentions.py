"""The names and details that an agent mentions, and which of them are not in the database (dialogue, 1.6 and 1.9)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from convoscope.conversation.annotations import Act
from convoscope.metrics.dialogue.venues import (
    ADDRESS,
    KEPT,
    NAME,
    PHONE,
    POSTCODE,
    REFERENCE,
    VenueDatabase,
    comparable,
    plain_words,
)

_DAYS = """monday tuesday wednesday thursday friday saturday sunday weekday weekdays weekend today tonight tomorrow
yesterday morning mornings noon afternoon afternoons evening evenings night nights midnight day days week weeks month
january february march april may june july august september october november december christmas easter am pm hour
hours minute minutes time times date dates early earlier earliest late later latest now soon then"""

_FOODS = """african american asian australasian australian bistro brazilian breakfast british cantonese caribbean
catalan chinese corsican cuban danish dinner drink drinks dish dishes eastern english eritrean european food french
fusion gastropub german greek halal hungarian indian indonesian international irish italian jamaican japanese korean
kosher lebanese lunch malaysian meal meals mediterranean menu mexican modern moroccan north oriental persian pizza
polish polynesian portuguese romanian russian scandinavian scottish seafood singaporean south spanish steakhouse sushi
swedish swiss takeaway tea thai traditional turkish tuscan unusual vegan vegetarian venetian vietnamese welsh world
coffee"""

_VENUES = """accommodation address area areas attraction attractions bar bus cab car centre center church cinema city
club college department entertainment guesthouse guest gallery hospital hostel hotel hotels house lodging location
lodgings museum museums neighbourhood nightclub option options park place places police pool pub region restaurant
restaurants room rooms side site sites sports spot spots station swimming table tables taxi taxis theatre theater
ticket tickets town train trains type venue venues east west central downtown northern southern western"""

_OFFERS = """available bargain best better big bigger booking bookings budget busy cheap cheaper cheapest choice
choices close closer closest cost different entrance excellent expensive fee fine fixed free full good great high
internet large larger less lovely low luxury main many moderate moderately more most near nearby nearest next nice
open parking people person popular price priced prices pricerange quality quiet range rated rating request reservation
reservations search service similar small smaller specific stay star stars stop such top wi fi wifi type upscale
well"""

_SMALL = """a about above after again ahead all almost already also alternative alternatives always am an and another
any anyone anything are around as at away back be because been before being below between both but by can come could
couple criteria dear do does done down each either else even ever every everyone everything few first for from get
give given go going group had has have he hello help her here hers hi him his how however i if in information instead
into is it its itself just know last leave let like list located look looking lot make maybe me mine moment much my
name need neither never no none nor not nothing number of off offers ok okay on once one ones only onto or
order other others our ours out over own part party per perhaps phone please preference preferences public put
question questions quite rather ready really right same second see seem selection serves several shall she should
simply since slightly so some someone something sometime somewhere still stick sure take than thank thanks
that the their theirs them themselves there these they thing things third this those though three through till to too
transport travel trip try two under until up upon us use very via visit want was way we what whatever when where
wherever whether which while who whom whose why will with within without would yes yet you your yours yourself"""

_LITTLE = frozenset((*_SMALL.split(), "nobody", "somebody"))
ORDINARY = _LITTLE.union(" ".join((_DAYS, _FOODS, _VENUES, _OFFERS)).split())
_ENDINGS = ("ing", "ly")


def is_little(word: str) -> bool:
    """Whether a word in lower case ends a name: "golden dragon in the north"."""
    return word in _LITTLE


def is_ordinary(word: str, others: frozenset[str] = frozenset()) -> bool:
    """Whether a word in lower case is no part of a name: one of these, of `others`, or a word with a digit."""
    if word in ORDINARY or word in others or word.endswith(_ENDINGS):
        return True
    return not word.isalpha() and any(letter.isdigit() for letter in word)


_ACT_SLOTS = {
    "name": NAME,
    "phone": PHONE,
    "addr": ADDRESS,
    "address": ADDRESS,
    "post": POSTCODE,
    "postcode": POSTCODE,
    "ref": REFERENCE,
    "reference": REFERENCE,
}
_DETAIL_SLOTS = {form: field for slot, field in _ACT_SLOTS.items() for form in (slot, slot.title(), slot.upper())}
_SAYS = frozenset({"inform", "recommend", "select", "offerbook", "offerbooked", "book", "offer"})
_NO_DETAIL = frozenset({None, "", "?", "none"})

_NUMBER = re.compile(r"\+?[0-9][0-9 ()-]{7,}[0-9]")
_POSTCODE = re.compile(r"\b[a-z]{1,2}[0-9][a-z0-9]?\s?[0-9][a-z]{2}\b")
_LEAST_DIGITS, _MOST_DIGITS = 9, 13
_CALLS = frozenset({"call", "dial", "ring", "tel", "telephone", "phone"})
_LOCAL_DIGITS = 6
"""A shorter number is one of a phone where the reply says to call it."""
_LOCAL = re.compile(
    r"\b(?:call|dial|ring|tel|telephone|phone)\b[ :.]{0,3}"
    r"(?:(?:them|it|us|number|no|is|at|on)\b[ :.]{0,3}){0,4}(\+?[0-9][0-9 ()-]{4,}[0-9])",
    re.IGNORECASE,
)
_STREETS = frozenset(
    {"street", "road", "avenue", "lane", "way", "drive", "square", "terrace", "crescent", "parade", "row", "gardens"}
)
_MOST_WORDS_OF_A_STREET = 3
_BETWEEN = frozenset({"on", "at", "in", "for", "is", "and", "from", "to", "near", "along", "by", "off", "down", "with"})
"""Words after a number that is not of a house: "for 2 on Mill Road"."""
_REFERENCES = frozenset({"reference", "ref", "confirmation"})
_BEFORE_A_CODE = frozenset({"number", "no", "code", "is", "your", "the", "it", "was", "for", "booking"})
_CODE_LENGTHS = range(5, 13)
_CUES = frozenset({"recommend", "suggest", "try", "called", "named", "booked", "about"})
_SIGNS = _CUES | _CALLS | _STREETS | _REFERENCES
"""Most replies hold none of these words, and are looked at once."""
_NO_SIGNS: frozenset[str] = frozenset()
_ASKING = ("how ", "what ")
_SENTENCE = 60
_DENIAL = re.compile(r"(?:\b(?:no|not|nothing|none|any|anything|cannot|unable)\b|n't\b)[^.!?;]*$")
_WORD = re.compile(r" ([\w'&]+)")
_LEADING = frozenset({"you", "at", "into", "the", "visiting", "trying"})
_JOINING = frozenset({"and", "of", "the", "&", "'s"})
_MOST_WORDS = 8
_FEW = 8

_DIGITS = b"0123456789"
_SEPARATOR = KEPT.encode()
_NO_DIGITS = bytes([code for code in range(256) if code not in _DIGITS and code != 0])
_SHAPES = bytes([0x39 if code in _DIGITS else 0x61 if chr(code).isalpha() else code for code in range(256)])
_CODE_SHAPE = b"9aa"
_CODE_SHAPES = (b"99aa", b"9 9aa", b"9a9aa", b"9a 9aa")


class Mention(NamedTuple):
    """A name or a detail of a venue that an agent mentions, and whether the database bears it out."""

    field: str
    value: str
    is_known: bool


Reply = tuple[str, list[str], int, bool]
"""A reply, its words, how many digits it holds, and whether it may hold a postcode."""


def read_replies(responses: Sequence[str]) -> list[Reply]:
    """The replies of a dialogue, read together: most of the time goes into the start of a text."""
    joined = KEPT.join(responses)
    if joined.count(KEPT) >= len(responses):
        responses = [text.replace(KEPT, " ") for text in responses]
        joined = KEPT.join(responses)
    encoded = joined.encode("ascii", "replace")
    digits = encoded.translate(None, _NO_DIGITS).split(_SEPARATOR)
    shapes = encoded.translate(_SHAPES)
    coded = [False] * len(responses)
    if _CODE_SHAPE in shapes:
        coded = [_CODE_SHAPE in shape and _is_coded(shape) for shape in shapes.split(_SEPARATOR)]
    words = [text.split() for text in plain_words(joined).split(KEPT)]
    return list(zip(responses, words, list(map(len, digits)), coded, strict=False))


def _is_coded(shape: bytes) -> bool:
    return any(code in shape for code in _CODE_SHAPES)


def mentions_in(
    reply: Reply,
    acts: Sequence[Act] | None,
    venues: VenueDatabase,
    named: dict[str, None],
    domains: Collection[str] | None,
) -> tuple[tuple[Mention, ...], int]:
    """The names and details in a reply and in its acts, and how many of them the database does not have.

    A detail belongs to the venues that the reply names, or else to those `named` earlier in the dialogue, to which
    this reply's are added. Phones and addresses are not looked up in a turn about a domain without records, such as
    taxis, which go anywhere, nor references in a database without.
    """
    response, words, digits, has_code = reply
    names: list[Mention] = []
    if not venues.key_words.isdisjoint(words):
        names = [_mention(name) for name in venues.names_among(words)]
    signs = _NO_SIGNS if _SIGNS.isdisjoint(words) else _SIGNS.intersection(words)
    details: list[tuple[str, str]] = []
    if signs:
        cues = signs & _CUES
        if cues:
            names += [_named_venue(name, venues) for name in names_after_cues(response, cues, venues.ordinary)]
        if venues.known[REFERENCE] and signs & _REFERENCES:
            details += [(REFERENCE, code) for code in _codes_in(response, words)]
    if has_code or digits >= _LEAST_DIGITS or (signs and digits):
        details += _details_in(response, words, digits, has_code, signs)
    for field, value in _details_of_acts(acts) if acts else ():
        if field == NAME:
            names.append(_named_venue(value, venues))
        else:
            details.append((field, comparable(field, value)))
    if details:
        owners = [name.value for name in names if name.is_known] or list(named)
        names += _judged(_once(details), owners, acts, venues, domains)
    if not names:
        return (), 0
    mentions = tuple(names) if len(names) == 1 else tuple(dict.fromkeys(names))
    unknown = 0
    for field, value, is_known in mentions:
        if not is_known:
            unknown += 1
        elif field == NAME:
            named[value] = None
    return mentions, unknown


def _details_of_acts(acts: Sequence[Act]) -> list[tuple[str, str]]:
    """Names and details that acts give, as they are written."""
    return [
        (_DETAIL_SLOTS[slot.slot], str(slot.value))
        for act in acts
        for slot in act.slots
        if slot.slot in _DETAIL_SLOTS and slot.value not in _NO_DETAIL and _gives_details(act.type)
    ]


def _once(details: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """An address that is a part of another one is the same, given once in words and once by an act."""
    addresses = {value for field, value in details if field == ADDRESS}
    if not 1 < len(addresses) <= _FEW:  # a reply with very many of them is no reply to anybody
        return details
    return [
        (field, value)
        for field, value in details
        if field != ADDRESS or not any(value != other and f" {value} " in f" {other} " for other in addresses)
    ]


def _judged(
    details: Sequence[tuple[str, str]],
    owners: Sequence[str],
    acts: Sequence[Act] | None,
    venues: VenueDatabase,
    domains: Collection[str] | None,
) -> list[Mention]:
    """Details that can be looked up, each with whether one of their owners has it."""
    ignored = () if venues.known[REFERENCE] else (REFERENCE,)
    if not venues.unjudged.isdisjoint([*(domains or ()), *[_act_domain(one.type) for one in acts or ()]]):
        ignored = (*ignored, PHONE, ADDRESS)
    return [Mention(*one, venues.has(*one, owners)) for one in details if one[0] not in ignored]


def names_after_cues(response: str, cues: Iterable[str], ordinary: frozenset[str]) -> list[str]:
    """What a reply names after a cue, such as "I recommend The Golden Dragon", in its order."""
    names = {}
    for cue in cues:
        for form in (cue, cue.capitalize()):
            position = response.find(form)
            while position >= 0:
                name = _name_at(response, position + len(form), ordinary, is_booked=cue == "booked")
                if name and _is_cue(response, position, cue):
                    names[position] = name
                position = response.find(form, position + 1)
    return [names[position] for position in sorted(names)]


def _is_cue(response: str, position: int, cue: str) -> bool:
    """Whether a cue is here as a word of its own, and not in a denial: "there is nothing called Zanzibar"."""
    before = response[max(position - _SENTENCE, 0) : position].lower()
    if before[-1:].isalnum() or (cue == "about" and not before.endswith(_ASKING)):
        return False
    return _DENIAL.search(before) is None


def _name_at(response: str, position: int, ordinary: frozenset[str], is_booked: bool) -> str:
    """The name that begins here; "" where no name does.

    In capitals it goes as far as they do, and one of its words must be no ordinary one: "Saturday Evening" is no
    venue. In lower case it goes to the next little word, and must begin with a word that is not ordinary: "golden
    dragon", not "something cheaper". After "booked" such a name needs an "at": much else can be booked.
    """
    if response[position : position + 1] != " ":
        return ""
    words: list[str] = []
    while len(words) < _MOST_WORDS and (match := _WORD.match(response, position)) is not None:
        words.append(match[1])
        position = match.end()
    led = [word.casefold() for word in takewhile(lambda word: word.casefold() in _LEADING, words)]
    rest = words[len(led) :]
    if not rest:
        return ""
    if rest[0][0].isupper():
        run = list(takewhile(lambda word: word[0].isupper() or word in _JOINING, rest))
        is_name = any(not is_ordinary(word.casefold(), ordinary) for word in run)
    else:
        run = list(takewhile(lambda word: word in _JOINING or word in ordinary or not is_little(word), rest))
        is_name = not is_ordinary(rest[0], ordinary) and not (is_booked and "at" not in led)
    while run and run[-1] in _JOINING:
        run.pop()
    article = ["the"] if led[-1:] == ["the"] else []
    return " ".join([*article, *run]) if is_name and run else ""


@lru_cache(65536)
def _mention(name: str) -> Mention:
    """A name that the database has."""
    return Mention(NAME, name, True)


def _named_venue(value: str, venues: VenueDatabase) -> Mention:
    name = venues.name_of(value)
    return _mention(name) if name is not None else Mention(NAME, value.casefold(), False)


@lru_cache(4096)
def _gives_details(act_type: str) -> bool:
    return act_type.casefold().rpartition("-")[2] in _SAYS


@lru_cache(4096)
def _act_domain(act_type: str) -> str:
    return act_type.casefold().partition("-")[0]


def _details_in(
    response: str, words: list[str], digits: int, has_code: bool, signs: frozenset[str]
) -> list[tuple[str, str]]:
    """Phone numbers, postcodes and addresses in a text that holds digits."""
    details = []
    if digits >= _LEAST_DIGITS:
        for match in _NUMBER.finditer(response):
            number = comparable(PHONE, match[0])
            if _LEAST_DIGITS <= len(number) <= _MOST_DIGITS:
                details.append((PHONE, number))
    if digits >= _LOCAL_DIGITS and not details and signs & _CALLS:
        numbers = [comparable(PHONE, match[1]) for match in _LOCAL.finditer(response)]
        details += [(PHONE, number) for number in numbers if len(number) >= _LOCAL_DIGITS]
    if has_code:
        details += [(POSTCODE, comparable(POSTCODE, match[0])) for match in _POSTCODE.finditer(response.casefold())]
    if signs & _STREETS:
        details += [(ADDRESS, address) for address in _addresses_in(words)]
    return details


def _addresses_in(words: list[str]) -> Iterator[str]:
    """A number of a house, one to three words, and a word for a street: "12 baker street"."""
    for end in [position for position, word in enumerate(words) if word in _STREETS]:
        for start in range(end - 2, max(end - 2 - _MOST_WORDS_OF_A_STREET, -1), -1):
            if words[start][0].isdigit():
                if _BETWEEN.isdisjoint(words[start + 1 : end]):
                    yield " ".join(words[start : end + 1])
                break


def _codes_in(response: str, words: list[str]) -> Iterator[str]:
    """What is given as a reference: a word with a digit, or in capitals, after the word "reference"."""
    for position in [position for position, word in enumerate(words) if word in _REFERENCES]:
        code = next((word for word in words[position + 1 : position + 6] if word not in _BEFORE_A_CODE), "")
        is_code = any(letter.isdigit() for letter in code) or code.upper() in response
        if len(code) in _CODE_LENGTHS and is_code:
            yield comparable(REFERENCE, code)
