"""The words that speech uses for numbers, letters, months and money, and words that are written in two ways."""

from __future__ import annotations


def listed(words: str) -> list[str]:
    """The words between blanks: a long list reads better as one line."""
    return words.split()


def _counted(words: str, first: int, step: int = 1) -> dict[str, int]:
    return {word: first + step * index for index, word in enumerate(listed(words))}


DIGITS = {word: str(value) for value, word in enumerate(listed("zero one two three four five six seven eight nine"))}
DIGITS["niner"] = "9"
TEENS = _counted("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen", 10)
TENS = _counted("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10) | {"fourty": 40}
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
SMALL = {**{word: int(digit) for word, digit in DIGITS.items()}, **TEENS, **TENS}
"""Every word for a number below a hundred that is one word."""

UNIT_ORDINALS = _counted("first second third fourth fifth sixth seventh eighth ninth", 1)
ORDINALS = {
    **UNIT_ORDINALS,
    **_counted(
        "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth", 10
    ),
    **_counted("twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth", 20, 10),
}
ORDINAL_WORDS = {value: word for word, value in UNIT_ORDINALS.items()}

MONTHS = listed("january february march april may june july august september october november december")
MONTH_SHORT = {month[:3]: month for month in MONTHS if month != "may"} | {"sept": "september"}

WEEKDAYS = listed("monday tuesday wednesday thursday friday saturday sunday")

NATO = {
    word: word[0]
    for word in listed(
        "alpha alfa bravo charlie delta echo foxtrot golf hotel india juliet juliett kilo lima mike november oscar "
        "papa quebec romeo sierra tango uniform victor whiskey whisky xray yankee zulu zee zed"
    )
}

CURRENCIES = {
    **dict.fromkeys(listed("dollar dollars usd bucks"), "dollars"),
    **dict.fromkeys(listed("euro euros eur"), "euros"),
    **dict.fromkeys(listed("pound pounds gbp"), "pounds"),
}
CURRENCY_CODES = frozenset(("usd", "eur", "gbp"))
SIGNS = {"$": "dollars", "€": "euros", "£": "pounds"}

REPEATS = {"double": 2, "triple": 3}


def ordinal(value: int) -> str:
    """25 → 25th. Below ten it stays a word, as "first" and "second" are mostly prose."""
    return ORDINAL_WORDS.get(value) or numbered(value)


def numbered(value: int) -> str:
    """5 → 5th."""
    suffix = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{suffix}"


# British and American. Only pairs that sound the same: aluminium and aluminum, or learnt and learned, are not here.
_OUR = listed(
    "arbour armour behaviour colour favour flavour harbour honour humour labour neighbour odour rumour vapour"
)
_RE = listed("centimetre centre fibre kilometre litre metre millilitre millimetre theatre")
_ISE = listed(
    "agonise apologise authorise capitalise categorise customise emphasise finalise generalise initialise itemise "
    "localise maximise memorise minimise mobilise modernise normalise optimise organise personalise prioritise "
    "realise recognise reorganise specialise standardise summarise symbolise synchronise utilise visualise"
)
_DOUBLED = listed("cancel counsel dial fuel label level marvel model signal total travel tunnel")
_OTHER_PAIRS = dict(
    pair.split(":")
    for pair in listed(
        "ageing:aging analyse:analyze analysed:analyzed analysing:analyzing axe:ax catalogue:catalog "
        "catalogues:catalogs cheque:check cheques:checks cosy:cozy defence:defense dialogue:dialog dialogues:dialogs "
        "disc:disk discs:disks draught:draft enquire:inquire enquiry:inquiry enquiries:inquiries enrol:enroll "
        "enrols:enrolls favourite:favorite favourites:favorites fulfil:fulfill fulfils:fulfills grey:gray "
        "instalment:installment instalments:installments judgement:judgment kerb:curb licence:license "
        "licences:licenses manoeuvre:maneuver mould:mold neighbourhood:neighborhood offence:offense "
        "organisation:organization organisations:organizations plough:plow practise:practice practised:practiced "
        "practising:practicing programme:program programmes:programs sceptical:skeptical storey:story "
        "traveller:traveler travellers:travelers tyre:tire tyres:tires woollen:woolen"
    )
)


def _pairs() -> dict[str, str]:
    pairs = dict(_OTHER_PAIRS)
    for word in _OUR:
        american = f"{word[:-3]}or"
        pairs |= {f"{word}{end}": f"{american}{end}" for end in ("", "s", "ed", "ing", "able")}
    for word in _RE:
        pairs |= {f"{word}{end}": f"{word[:-2]}er{end}" for end in ("", "s")}
    for word in _ISE:
        pairs |= {f"{word[:-2]}s{end}": f"{word[:-2]}z{end}" for end in ("e", "es", "ed", "er", "ing")}
    for word in _DOUBLED:
        pairs |= {f"{word}l{end}": f"{word}{end}" for end in ("ed", "ing")}
    return pairs


SPELLINGS = {"ok": "okay", "mister": "mr", "missus": "mrs", **_pairs()}
"""Each word that has another way of being written, with the one that counts for both."""
