"""Dates, times, money and percentages, each in one form."""

from __future__ import annotations

import re

from convoscope.text.spoken.vocabulary import (
    CURRENCIES,
    CURRENCY_CODES,
    MONTH_SHORT,
    MONTHS,
    ORDINALS,
    ordinal,
)

_MONTHS = frozenset(MONTHS)
_MONTH_STARTS = frozenset((*MONTHS, *MONTH_SHORT))
_DAY = re.compile(r"([0-9]{1,2})(st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_DAY_POINTS = {"noon": "pm", "midnight": "am"}
_QUARTERS = {"half": 30, "quarter": 15}
_LONG = range(8, 16)
"""Digits of a phone number with its country."""
_TIME_WORDS = frozenset(("am", "pm", "m", "clock", "oclock", *_DAY_POINTS))
_UNIT_WORDS = frozenset((*CURRENCIES, "cents", "cent", "point", "plus", *_TIME_WORDS, *_QUARTERS))


def fold_dates(words: list[str]) -> list[str]:
    """`march 25`, `25th of march` and `the twenty fifth of march` are march 25th."""
    if _MONTH_STARTS.isdisjoint(words):
        return words
    places = [place for place, word in enumerate(words) if word in _MONTH_STARTS]
    out: list[str] = []
    done = 0
    for place in places:
        out += words[done:place]
        done = place + 1
        day = _day(words[done]) if done < len(words) else 0
        month = MONTH_SHORT.get(words[place], words[place])
        if day:
            out += [month, ordinal(day)]
            done += 1
            continue
        # "The first may go" has no month in it, "the first may 2026" has.
        sure = month != "may" or (done < len(words) and _YEAR.fullmatch(words[done]) is not None)
        day = _take_day_before(out, sure=sure) if month in _MONTHS else 0
        out += [month, ordinal(day)] if day else [words[place]]
    return out + words[done:]


def _take_day_before(out: list[str], *, sure: bool) -> int:
    """The day in front of a month, taken away from `out` with its `the` and `of`."""
    of = out[-1:] == ["of"]
    place = len(out) - (2 if of else 1)
    if place < 0 or (not of and not sure):
        return 0
    day = _day(out[place])
    if not day or (place and out[place - 1] in _MONTHS):
        return 0
    del out[place:]
    if out and out[-1] == "the":
        out.pop()
    return day


def _day(word: str) -> int:
    match = _DAY.fullmatch(word)
    value = int(match[1]) if match else ORDINALS.get(word, 0)
    return value if value <= 31 else 0


def fold_units(words: list[str]) -> list[str]:
    """Times, money and decimals, whose unit stands behind the number or code."""
    if _UNIT_WORDS.isdisjoint(words):
        return words
    places = [place for place, word in enumerate(words) if word in _UNIT_WORDS]
    out: list[str] = []
    done = 0
    for place in places:
        if place < done:
            continue
        out += words[done:place]
        done = _unit(words, place, out)
    return out + words[done:]


def _unit(words: list[str], place: int, out: list[str]) -> int:
    word = words[place]
    following = words[place + 1] if place + 1 < len(words) else ""
    number = out[-1] if out and _NUMBER.fullmatch(out[-1]) else ""
    if word in _TIME_WORDS and _time(word, out):
        return place + 1
    if word == "point" and number and following.isdecimal() and following.isascii() and "." not in number:
        out[-1] = f"{number}.{following}"
        return place + 2
    if word in _QUARTERS:
        return _quarter(words, place, out)
    if word == "plus" and len(following) in _LONG and following.isdecimal():
        while out[-1:] == ["plus"]:
            out.pop()
        return place + 1
    if word in CURRENCIES:
        return _money(words, place, out, number)
    if word in ("cent", "cents"):
        return _cents(place, out, word, number)
    out.append(word)
    return place + 1


def _time(word: str, out: list[str]) -> bool:
    """Fold a word of the clock; whether it is one here."""
    if word in ("m", "am", "pm"):
        _half_day(word, out)
    elif word in _DAY_POINTS:
        _day_point(word, out)
    elif word == "oclock" or out[-1:] == ["o"]:
        out[len(out) - (word == "clock") :] = ["o'clock"]
    else:
        return False
    return True


def _day_point(word: str, out: list[str]) -> None:
    """`noon`, `12 noon` and `12 o'clock noon` are 12 pm."""
    if out[-2:] == ["12", "o'clock"]:
        out.pop()
    if out[-1:] != ["12"]:
        out.append("12")
    out.append(_DAY_POINTS[word])


def _quarter(words: list[str], place: int, out: list[str]) -> int:
    """`half past 4` is 430, `a quarter to 5` is 445."""
    side, hour = (*words[place + 1 : place + 3], "", "")[:2]
    word = words[place]
    if not _is_hour(hour) or (side != "past" and (side != "to" or word == "half")):
        out.append(word)
        return place + 1
    if out[-1:] == ["a"]:
        out.pop()
    start = int(hour) if side == "past" else (int(hour) - 2) % 12 + 1
    out.append(f"{start}{_QUARTERS[word] if side == 'past' else 60 - _QUARTERS[word]}")
    return place + 3


def _half_day(word: str, out: list[str]) -> None:
    """`4 p m`, `4 o'clock pm`, `4 00 pm` and `400 pm` are 4 pm; `4.30 pm` and `4 30 pm` are 430 pm."""
    end = len(out)
    if word == "m":
        half = out[-1:]
        word, end = ("".join(half) + word, end - 1) if half in (["a"], ["p"]) else (word, end)
    if end and out[end - 1] == "o'clock":
        end -= 1
    clock = _clock(out[max(0, end - 2) : end])
    if word == "m" or not clock:
        out.append(word[-1] if len(out) > end and out[-1] != "o'clock" else word)
        return
    hour, taken = clock
    out[end - taken :] = [hour, word]


def _clock(words: list[str]) -> tuple[str, int] | None:
    """The time at the end of some words, and of how many words it is."""
    last = words[-1] if words else ""
    if not last or not _NUMBER.fullmatch(last):
        return None
    taken = 1
    if last.isdecimal() and len(last) == 2 and len(words) > 1 and _is_hour(words[-2]) and last < "60":
        last, taken = words[-2] + last, 2
    elif last.count(".") == 1 and len(last.split(".")[1]) == 2 and _is_hour(last.split(".")[0]):
        last = last.replace(".", "")
    if len(last) in (3, 4) and last.endswith("00") and _is_hour(last[:-2]):
        last = last[:-2]
    return last, taken


def _is_hour(word: str) -> bool:
    return word.isdecimal() and len(word) <= 2 and 1 <= int(word) <= 12


def _money(words: list[str], place: int, out: list[str], number: str) -> int:
    """`usd 115`, `115 dollar` and `115 dollars` are 115 dollars."""
    unit, following = CURRENCIES[words[place]], words[place + 1] if place + 1 < len(words) else ""
    if number:
        out[-1] = number.removesuffix(".00")
        out.append(unit)
        return place + 1
    if words[place] in CURRENCY_CODES and _NUMBER.fullmatch(following):
        out += [following.removesuffix(".00"), unit]
        return place + 2
    out.append(words[place])
    return place + 1


def _cents(place: int, out: list[str], word: str, number: str) -> int:
    """`12 dollars and 50 cents` is 12.50 dollars; `per cent` is percent."""
    if out[-1:] == ["per"]:
        out[-1] = "percent"
        return place + 1
    before = out[:-1]
    if before[-1:] == ["and"]:
        before.pop()
    whole = before[-2] if len(before) >= 2 and before[-1] in CURRENCIES.values() else ""
    if number.isdecimal() and len(number) <= 2 and whole.isdecimal() and whole.isascii():
        out[:] = [*before[:-2], f"{whole}.{int(number):02}", before[-1]]
    else:
        out.append("cents" if number else word)
    return place + 1
