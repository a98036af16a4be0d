"""Words that an agent uses without naming a venue: what follows "I recommend" and is none of these may be a name."""

from __future__ import annotations

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

_PLACES = """accommodation address area areas attraction attractions bar bus cab car centre center church cinema city
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
name need neither never no nobody none nor not nothing number of off offers ok okay on once one ones only onto or
order other others our ours out over own part party per perhaps phone please preference preferences public put
question questions quite rather ready really right same second see seem selection serves several shall she should
simply since slightly so some somebody someone something sometime somewhere still stick sure take than thank thanks
that the their theirs them themselves there these they thing things third this those though three through till to too
transport travel trip try two under until up upon us use very via visit want was way we what whatever when where
wherever whether which while who whom whose why will with within without would yes yet you your yours yourself"""

ORDINARY = frozenset(" ".join((_DAYS, _FOODS, _PLACES, _OFFERS, _SMALL)).split())
_LITTLE = frozenset(_SMALL.split())
_ENDINGS = ("ing", "ly")


def is_little(word: str) -> bool:
    """Whether a word in small letters ends a name: "golden dragon in the north"."""
    return word in _LITTLE


def is_ordinary(word: str, others: frozenset[str] = frozenset()) -> bool:
    """Whether a word in small letters is no part of a name: one of these, of `others`, or a word with a digit."""
    if word in ORDINARY or word in others or word.endswith(_ENDINGS):
        return True
    return not word.isalpha() and any(letter.isdigit() for letter in word)
