"""Text as it is written, cut into tokens as it is said: signs, brackets, separators inside numbers, addresses."""

from __future__ import annotations

import re
import unicodedata

from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken.short_forms import plain_fractions
from convoscope.text.spoken.vocabulary import DIGITS, MONTHS, NATO, SIGNS, SMALL, listed

TOP_LEVEL = frozenset(
    listed("com org net edu gov ac io co ai info biz de uk us fr eu ca au nz ch jp cn kr br mx nl se dk fi pl pt za")
)
_SITE = lazy_pattern(r"[a-z0-9]+(?:\.[a-z0-9]+)*\.(?:" + "|".join(sorted(TOP_LEVEL)) + ")")
_LINKS = {"dot": ".", "underscore": "_", "dash": "-", "hyphen": "-", "plus": "+"}
NO_MAILBOX = frozenset(
    listed(
        "a an at me us him her it it's them you look looking is are was be here there or and find "
        "to on my the mail email address"
    )
)
"""Words before `at` that are no mailbox: "look at example.com"."""
_PART = lazy_pattern(r"[a-z0-9][a-z0-9._+-]*")


def fold_addresses(words: list[str]) -> list[str]:
    """`example dot com` is example.com, `john dot doe at example dot com` is john.doe@example.com."""
    if "dot" in words:
        # All of a site before any mailbox: behind `mail dot co` there may be `dot uk`.
        sites: list[str] = []
        for word in words:
            sites.append(word)
            if word in TOP_LEVEL and sites[-2:-1] == ["dot"]:
                _join_site(sites)
        words = sites
    if "at" not in words or "." not in "".join(words):
        return words
    out: list[str] = []
    for word in words:
        out.append(word)
        if "." in word and out[-2:-1] == ["at"] and _SITE.fullmatch(word):
            _join_mail(out)
    return out


def _join_site(out: list[str]) -> None:
    """Take in `mail dot example dot` in front of the `com` at the end."""
    start = len(out) - 1
    while start >= 2 and out[start - 1] == "dot" and _is_part(out[start - 2]):
        start -= 2
    site = ".".join(word for word in out[start:] if word != "dot")
    if _SITE.fullmatch(site):
        out[start:] = [site]


def _join_mail(out: list[str]) -> None:
    """Take in `john underscore doe 99 at` in front of the site at the end."""
    start = len(out) - 3
    if start < 0 or out[start] in NO_MAILBOX or not _is_part(out[start]):
        return
    while start and (before := _part_before(out, start)) < start:
        start = before
    mailbox = "".join(_LINKS.get(word, word) for word in out[start:-2])
    out[start:] = [f"{mailbox}@{out[-1]}"]


def _part_before(out: list[str], start: int) -> int:
    """Where the part of a mailbox before the one at `start` begins: behind a link, or the name before a number."""
    if out[start - 1] in _LINKS:
        return start - 2 if start >= 2 and _is_part(out[start - 2]) else start
    name = out[start - 1]
    named = out[start].isdecimal() and name.isalpha() and _is_part(name)
    # After a link any word is part of a mailbox.
    return start - 1 if named and (name not in NO_MAILBOX or (start >= 2 and out[start - 2] in _LINKS)) else start


def _is_part(word: str) -> bool:
    return word not in _LINKS and _PART.fullmatch(word) is not None


MARK = "\x02"
"""Precedes a token that was written in capitals where it matters: `SK` before a number, `A` as a letter."""

BREAKS = ",.;:!?()"
_FOLDED = (
    dict.fromkeys("’‘ʼ′´", "'") | dict.fromkeys("“”«»", '"') | dict.fromkeys("‐‑‒−", "-") | dict.fromkeys("–—―…", ",")
)
_ACCENTS = lazy_pattern(r"(?<=[A-Za-z])[\u0300-\u036f]+")
_FOREIGN = lazy_pattern(r"[^\x00-\x7f]")

_TAG = lazy_pattern(r"\[[^\[\]]*\]")
_TLD = "|".join(sorted(TOP_LEVEL))
_DOTTED_MAIL = lazy_pattern(
    r"(?<![\w.+-])([a-z0-9][\w+-]*(?:\.[\w+-]+){0,8}) +at +([\w-]+(?:\.[\w-]+)+)(?![\w@+-]|\.\w)",
    re.IGNORECASE | re.ASCII,
)

_INITIALS = lazy_pattern(r"(?<![\w.@'-])(?:[A-Za-z]\.)+[A-Za-z](?![\w@'])\.?+(?![\w@])")
_PHONE_DOTS = lazy_pattern(r"(?:(?<![0-9.])(1)\.)?([0-9]{3})\.([0-9]{3})\.([0-9]{4})(?![0-9.])")
_COUNTRY_PHONE = lazy_pattern(
    r"(?<!\w)\+(?:1[ .-]?\(?[0-9]{3}\)?[ .-]?[0-9]{3}[ .-]?[0-9]{4}|[2-9](?:[ .()-]{0,2}[0-9]){7,14})(?!\w)"
)
_NO_DIGIT = lazy_pattern(r"[^0-9]+")
_MAY_DAY = lazy_pattern(r"(?:\b[Tt]he )?(?<![\w:./-])([0-9]{1,2})(?:st|nd|rd|th)? May\b(?! [0-9]{1,2}\b)")
_THOUSANDS = lazy_pattern(r"(?<![0-9,.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")
_MONEY = lazy_pattern(
    r"(?:\bUS)?([$€£]) ?([0-9]+(?:\.[0-9]+)?)((?: (?:thousand|million|billion)|[kmb]n?(?!\w))?)", re.IGNORECASE
)
_SCALE_LETTERS = {"k": " thousand", "m": " million", "mn": " million", "b": " billion", "bn": " billion"}
_NO_CENTS = lazy_pattern(r"\.00$")
_CLOCK = lazy_pattern(r"(?<![0-9:.])([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?(?![0-9:])")
_HALF_DAY = lazy_pattern(r"([0-9]{1,4})([ap])\.?m\b", re.IGNORECASE)
_HALF_BEHIND = lazy_pattern(r"\s*[ap]\W{0,2}m\b", re.IGNORECASE)
_ISO_DAY = lazy_pattern(r"(?<![0-9-])([0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9-])")
_SLASH_DAY = lazy_pattern(r"(?<![0-9/])([0-9]{1,2})/([0-9]{1,2})(?:/([0-9]{4}))?(?![0-9/])")
_DIGIT_GROUPS = lazy_pattern(r"(?<![\w./-])[0-9]+(?:-[0-9]+)+(?![\w/-])(?!\.[0-9])")
_CODE_GROUPS = lazy_pattern(r"(?<![\w./-])[A-Z0-9]{1,4}(?:-[A-Z0-9]{1,4})+(?![\w/-])(?!\.[0-9])")
_NO_CODE = frozenset(
    listed("AM PM OK ID TV NO AT TO IN ON IS OF BY OR IT WE MY SO DO GO UP AN AS BE HE IF ME HI")
)  # words in a text of capitals
_CAPITALS = lazy_pattern(
    # What is before is asked afterwards, so that the search can jump from capital to capital.
    r"[A-Z]{2}(?<!\w..)(?=[ -]+(?:[0-9]|(?i:" + "|".join(SMALL) + r")\b))"
    r"|A(?<![\w'].)(?:(?=[ -]+(?:[A-Z0-9]\b|(?i:" + "|".join([*DIGITS, *NATO]) + r")\b))|(?<=[a-z0-9] A)(?![\w']))"
)

_MAIL = lazy_pattern(r"(?<![\w.+-])[a-z0-9][\w.+-]*@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z0-9]+", re.IGNORECASE | re.ASCII)
_SITE_TOKEN = r"[a-z0-9]+(?:\.[a-z0-9]+){0,8}\.(?:" + _TLD + r")(?![\w'])"
_NUMBER_TOKEN = r"[0-9]+(?:[./][0-9]+)+(?![\w'])"
_LETTER = r"(?:[^\W_]|[^\x00-\x7f\s])"
_TOKEN = lazy_pattern(rf"{_SITE_TOKEN}|{_NUMBER_TOKEN}|{MARK}?{_LETTER}+(?:'{_LETTER}+)*|[,.;:!?()]")
_INSIDE = lazy_pattern(r"[./](?<=[a-z0-9].)(?=[a-z0-9])")
_MAYBE_MAIL = lazy_pattern(r" at +[\w-]+\.[a-z]", re.IGNORECASE | re.ASCII)
_MAYBE_INITIALS = lazy_pattern(r"\.[A-Za-z](?!\w)")
_EDGE_QUOTE = lazy_pattern(r"'(?:(?<![a-z0-9].)|(?![a-z0-9]))")
_SEPARATED = str.maketrans(
    {
        chr(code): "," if chr(code) in BREAKS else " "
        for code in range(128)
        if not chr(code).isalnum() and chr(code) not in (MARK, "'")
    }
)


def plain(text: str) -> str:
    """Quotes, dashes and wide letters as one keyboard has them; tags in square brackets gone."""
    if not text.isascii():
        text = _FOREIGN.sub(_folded, text)
        if not text.isascii():
            text = _scrubbed(text)
    if "[" in text:
        text = _TAG.sub(" ", text)
    return text


def cut(text: str) -> list[str]:
    """The tokens of a plain text in lower case, among them the punctuation at which a number must not go on."""
    if _MAYBE_MAIL.search(text):
        # A mailbox without a dot is left to the words.
        text = _DOTTED_MAIL.sub(lambda mail: f"{mail[1]}@{mail[2]}" if "." in mail[1] else mail[0], text)
    if "@" not in text:
        return _cut(text)
    tokens: list[str] = []
    done = 0
    for mail in _MAIL.finditer(text):
        tokens += [*_cut(text[done : mail.start()]), mail[0].lower()]
        done = mail.end()
    return tokens + _cut(text[done:])


def _cut(text: str) -> list[str]:
    text = _written_out(text).lower()
    if not text.isascii() or _INSIDE.search(text):
        tokens: list[str] = _TOKEN.findall(text.replace("€", " ").replace("£", " "))
        return tokens
    if "'" in text:
        text = _EDGE_QUOTE.sub(" ", text)
    return text.translate(_SEPARATED).replace(",", " , ").split()


def _folded(match: re.Match[str]) -> str:
    return _FOLDED.get(match[0], match[0])


def _scrubbed(text: str) -> str:
    """Compatible letters folded, lowered where lowering changes the length, other signs blank."""
    text = _FOREIGN.sub(_folded, unicodedata.normalize("NFKC", plain_fractions(text)))
    text = unicodedata.normalize("NFKC", "".join(one if one.isascii() else one.casefold() for one in text))
    return "".join(
        one if one.isascii() or one.isalnum() or one in SIGNS or unicodedata.category(one)[0] == "M" else " "
        for one in text
    )


def without_accents(text: str) -> str:
    """`café` is cafe: English writes its loan words both ways."""
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))


def _written_out(text: str) -> str:
    """English signs and separators as words. Each step looks first whether its sign is there at all."""
    text = text.replace(MARK, " ").replace("\n", " ").replace("\t", " ")
    if _MAYBE_INITIALS.search(text):
        text = _INITIALS.sub(lambda found: found[0].replace(".", ""), text)
    text = _CAPITALS.sub(lambda found: found[0] if found[0] in _NO_CODE else MARK + found[0], text)
    if _DIGIT.search(text):
        text = _numbers(text)
    return text.replace("%", " percent ").replace("&", " and ").replace("-", " ")


_DIGIT = lazy_pattern(r"[0-9]")
# What each step needs at the least. A search for a set of characters is fast, one behind a look back is not.
_COMMA_INSIDE = lazy_pattern(r"[0-9],[0-9]")
_DOT_INSIDE = lazy_pattern(r"[0-9]\.[0-9]")
_DASH_INSIDE = lazy_pattern(r"[A-Z0-9]-[A-Z0-9]")
_LETTER_BEHIND = lazy_pattern(r"[0-9][apAP]")


def _numbers(text: str) -> str:
    if "+" in text:
        text = _COUNTRY_PHONE.sub(lambda found: _NO_DIGIT.sub("", found[0]), text)
    if " May" in text:  # written small it may be the verb
        text = _MAY_DAY.sub(r"May \1", text)
    if "," in text and _COMMA_INSIDE.search(text):
        text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
    if any(sign in text for sign in SIGNS):
        text = _MONEY.sub(_money, text)
    if ":" in text:
        text = _CLOCK.sub(_clock, text)
    if "." in text and _DOT_INSIDE.search(text):
        text = _PHONE_DOTS.sub(r"\1\2\3\4", text)
    if _LETTER_BEHIND.search(text):
        text = _HALF_DAY.sub(_half_day, text)
    if "/" in text:
        text = _SLASH_DAY.sub(_slash_day, text)
    if "-" in text and _DASH_INSIDE.search(text):
        text = _ISO_DAY.sub(lambda found: _day(int(found[2]), int(found[3]), found[1]) or found[0], text)
        text = _DIGIT_GROUPS.sub(_digit_groups, text)
        text = _CODE_GROUPS.sub(_code_groups, text)
    return text


def _money(match: re.Match[str]) -> str:
    scale = _SCALE_LETTERS.get(match[3].lower(), match[3])
    return f" {_NO_CENTS.sub('', match[2])}{scale} {SIGNS[match[1]]} "


def _clock(match: re.Match[str]) -> str:
    hour, minute, second = match.groups(default="")
    if minute == "00" and not second:
        afternoon = 12 < int(hour) < 24 and not _HALF_BEHIND.match(match.string, match.end())
        return f"{int(hour) - 12} pm" if afternoon else f"{hour} o'clock"
    return f"{hour}{minute}{second}"


def _half_day(match: re.Match[str]) -> str:
    in_a_code = match.start() > 0 and match.string[match.start() - 1].isalnum()
    return match[0] if in_a_code else f"{match[1]} {match[2]}m"


def _slash_day(match: re.Match[str]) -> str:
    """3/25 and 25/3 can be one day only; 3/4 may be two days, or three quarters, and stays."""
    first, second = int(match[1]), int(match[2])
    if first > 12 >= second:
        first, second = second, first
    elif second <= 12 and first != second:
        return match[0]
    return _day(first, second, match[3] or "") or match[0]


def _day(month: int, day: int, year: str) -> str:
    return f"{MONTHS[month - 1]} {day} {year}" if 1 <= month <= 12 and 1 <= day <= 31 else ""


def _digit_groups(match: re.Match[str]) -> str:
    """Phone numbers and spelled digits are one number; 10-15 is a range."""
    lengths = [len(group) for group in match[0].split("-")]
    joined = set(lengths) == {1} or len(lengths) > 2 or lengths == [3, 4]
    return match[0].replace("-", "" if joined else " ")


def _code_groups(match: re.Match[str]) -> str:
    mixed = _DIGIT.search(match[0]) and not match[0].replace("-", "").isdigit()
    time = match[0].endswith(("-AM", "-PM")) and match[0][:-2].replace("-", "").isdigit()
    return match[0].replace("-", "") if mixed and not time else match[0]
