"""English words that are written in two ways and sound the same, each with the one that counts for both."""

from __future__ import annotations

from convoscope.text.spoken.vocabulary import listed

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
_OTHERS = {
    "ageing": "aging",
    "analyse": "analyze",
    "analysed": "analyzed",
    "analysing": "analyzing",
    "axe": "ax",
    "catalogue": "catalog",
    "catalogues": "catalogs",
    "cheque": "check",
    "cheques": "checks",
    "cosy": "cozy",
    "defence": "defense",
    "dialogue": "dialog",
    "dialogues": "dialogs",
    "disc": "disk",
    "discs": "disks",
    "draught": "draft",
    "enquire": "inquire",
    "enquiry": "inquiry",
    "enquiries": "inquiries",
    "enrol": "enroll",
    "enrols": "enrolls",
    "favourite": "favorite",
    "favourites": "favorites",
    "fulfil": "fulfill",
    "fulfils": "fulfills",
    "grey": "gray",
    "instalment": "installment",
    "instalments": "installments",
    "judgement": "judgment",
    "kerb": "curb",
    "licence": "license",
    "licences": "licenses",
    "manoeuvre": "maneuver",
    "mould": "mold",
    "neighbourhood": "neighborhood",
    "offence": "offense",
    "organisation": "organization",
    "organisations": "organizations",
    "plough": "plow",
    "practise": "practice",
    "practised": "practiced",
    "practising": "practicing",
    "programme": "program",
    "programmes": "programs",
    "sceptical": "skeptical",
    "storey": "story",
    "traveller": "traveler",
    "travellers": "travelers",
    "tyre": "tire",
    "tyres": "tires",
    "woollen": "woolen",
}


def _pairs() -> dict[str, str]:
    pairs = dict(_OTHERS)
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
"""Each word that has another way of being written, with the one that stands for both."""
