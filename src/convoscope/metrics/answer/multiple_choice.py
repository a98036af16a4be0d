"""Multiple choice: which letter an answer picks, which is right, and candidates that patterns find in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from convoscope.conversation.events import Json
from convoscope.text.comparison import Comparison, candidate, occurs, positions_of
from convoscope.text.folding import comparable, comparable_as_written, compatible, folded
from convoscope.text.patterns import PatternCheck, lazy_pattern

LETTERS = "ABCDEFGHIJ"


class Picked(NamedTuple):
    """Indexes of choices, counted from 0: the one that the answer picks, and the right one. None is "unknown"."""

    chosen: int | None
    right: int | None


def picked_of(answer: str, truth: str, *, choices: Sequence[str] = (), answer_index: int | None = None) -> Picked:
    """What the answer picks, and what would be right.

    >>> picked_of("It is not A but B", "B")
    Picked(chosen=1, right=1)
    """
    right = right_choice(truth, choices, answer_index)
    if right is None:
        return Picked(None, None)
    chosen = chosen_of(answer, choices)
    listed = chosen is not None and max(chosen, right) < len(choices)
    if chosen is not None and listed and comparable(choices[chosen]) == comparable(choices[right]):
        chosen = right  # the same choice, listed twice
    return Picked(chosen, right)


def choice_accuracy_of(
    answer: str, truth: str, *, choices: Sequence[str] = (), answer_index: int | None = None
) -> float | None:
    """1 if the answer picks the right choice, else 0. None where it is no multiple choice, or its truth is no choice.

    >>> choice_accuracy_of("Answer: B", "Paris", choices=["London", "Paris"])
    1.0
    """
    chosen, right = picked_of(answer, truth, choices=choices, answer_index=answer_index)
    return None if right is None else float(chosen == right)


def right_choice(truth: str, choices: Sequence[str] = (), answer_index: int | None = None) -> int | None:
    """The index of the right choice: the truth is the text of one, a letter A to J, or an index counted from 0.

    Where two choices have the same text, and where the truth is not one of these, `answer_index` says it.
    """
    wanted = comparable(truth)
    if not wanted:
        return None
    if choices and (same := _indexes_of(wanted, choices)):
        return answer_index if answer_index in same else same[0]
    if len(wanted) <= _LONGEST_NAME and (letter := _NAMED_LETTER.fullmatch(wanted)) is not None:
        return LETTERS.index(letter[1].upper())
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 3 and int(wanted) < len(choices):
        return int(wanted)
    return answer_index if answer_index is not None and 0 <= answer_index < len(choices) else None


def _indexes_of(wanted: str, choices: Sequence[str]) -> list[int]:
    """The indexes of the choices with this text, which may have their letter before it."""
    return [
        index for index, text in enumerate(choices) if wanted in (comparable(text), comparable(labelled(index, text)))
    ]


def chosen_of(answer: str, choices: Sequence[str] = ()) -> int | None:
    """The index of the choice that the answer picks; None where it picks none, or does not say which.

    1. The answer is the text of a choice.
    2. A letter is stated: "Answer: B", "the answer is B", "I choose B", "B is correct"; the last one counts.
    3. A letter is marked: **B**, (B), option B; or is alone on a line.
    4. The text of exactly one choice is in the answer.
    5. A letter begins a line, or is alone among the words.

    In 3 and 5 it must be the only such letter, but for those on lines of their own, where the last one
    counts; where several are marked, 5 does not help. A letter or a text that is ruled out ("not A",
    "Paris is wrong") does not count, nor does the article "a".
    """
    from convoscope.metrics.answer import choice_patterns as patterns  # they take long to compile

    texts = [comparable(text) for text in choices]
    whole = comparable(answer)
    if whole and whole in texts:
        return texts.index(whole)
    text = compatible(answer)
    marked = set(_letters(text, patterns.MARKED))
    letter = _last(text, patterns.STATED) or _only(marked) or _last(text, patterns.LONE_LINE)
    if letter is None and texts:
        plain_answer = " ".join(folded(answer).split())
        occurring = [one for one in dict.fromkeys(texts) if one and occurs(one, plain_answer)]
        longest = [one for one in occurring if not any(one != other and occurs(one, other) for other in occurring)]
        candidates = [one for one in longest if _is_meant(one, plain_answer)]
        if len(candidates) == 1:
            return texts.index(candidates[0])
    if letter is None and not marked:
        alone = (
            _only(set(_letters(text, pattern))) for pattern in (patterns.LINE_START, patterns.CAPITAL, patterns.SMALL)
        )
        letter = next(filter(None, alone), None)
    return None if letter is None else LETTERS.index(letter)


def is_multiple_choice(truth: str | None, context: Json) -> bool:
    """Whether there is something to choose from: choices of the context, or a truth that is a letter."""
    if isinstance(context, dict) and offered_by(context).choices:
        return True
    return truth is not None and right_choice(truth) is not None


def labelled(index: int, text: str) -> str:
    """A choice as it is often written out: "B) Paris"."""
    return f"{LETTERS[index]}) {text}" if index < len(LETTERS) else text


class Offered(NamedTuple):
    """The choices of an item, and the index of the right one where the item says it."""

    choices: Sequence[str] = ()
    answer_index: int | None = None


def offered_by(context: Json, choices: Sequence[str] = ()) -> Offered:
    """`choices` and `answer_index` of an item's context; the given choices where it has none.

    Choices are a list of texts, of `{"text": …}` or `{"label": …}`, or a map from letters to texts; a
    letter written before the text ("B) Paris") is not part of it.
    """
    if not isinstance(context, dict):
        return Offered(tuple(choices))
    listed = context.get("choices")
    if isinstance(listed, dict):
        listed = [listed[key] for key in sorted(listed)]
    if isinstance(listed, list | tuple) and listed:
        choices = [_without_label(number, _choice_text(one)) for number, one in enumerate(listed)]
    index = context.get("answer_index")
    if isinstance(index, str) and index.strip().isdecimal() and len(index) < 9:
        index = int(index)
    return Offered(tuple(choices), index if isinstance(index, int) and not isinstance(index, bool) else None)


def _choice_text(choice: Json) -> str:
    if isinstance(choice, dict):
        choice = next(
            (choice[key] for key in ("text", "label", "content", "value") if isinstance(choice.get(key), str)), ""
        )
    return "" if choice is None else str(choice)


def _without_label(index: int, text: str) -> str:
    label = _LABEL.match(text)
    if label is not None and index < len(LETTERS) and label[1].upper() == LETTERS[index]:
        return text[label.end() :]
    return text


def multi_pattern_of(
    answer: str,
    truth: str,
    *,
    patterns: Sequence[re.Pattern[str] | PatternCheck] | None = None,
    choices: Sequence[str] = (),
    answer_index: int | None = None,
    case_sensitive: bool = False,
) -> float | None:
    """1 if any candidate that the patterns find in the answer is the truth, else 0. None for a blank truth.

    The answer itself is always a candidate. Of a pattern, every match gives one: its first group that
    took part, or all of it. A candidate is compared with the truth after NFKC, in small letters unless
    `case_sensitive`, with single blanks, without punctuation at its edges. Where choices are given, the
    letter and the text of the right one are the truth too.

    >>> multi_pattern_of("I say Rome. Answer: Paris", "paris"), multi_pattern_of("Paris it may be", "paris")
    (1.0, 0.0)
    """
    return compared_by_patterns(
        Comparison(answer, truth),
        patterns=patterns,
        choices=choices,
        answer_index=answer_index,
        case_sensitive=case_sensitive,
    )


def compared_by_patterns(
    of: Comparison,
    *,
    patterns: Sequence[re.Pattern[str] | PatternCheck] | None = None,
    choices: Sequence[str] = (),
    answer_index: int | None = None,
    case_sensitive: bool = False,
) -> float | None:
    """The same of a comparison, whose folded texts other metrics need too."""
    answer, truth = of.answer, of.truth
    if case_sensitive:
        alike, given, wanted = comparable_as_written, comparable_as_written(answer), comparable_as_written(truth)
    else:
        alike, (given, wanted) = comparable, of.folded
    if not wanted:
        return None
    if patterns is None and not choices and wanted not in given:
        return 0.0  # whatever a pattern can find is in the text
    right = {wanted}
    if choices:
        index = right_choice(truth, choices, answer_index)
        if index is not None and index < len(choices):
            right |= {alike(choices[index]), alike(LETTERS[index : index + 1])} - {""}
    if given in right:
        return 1.0
    if patterns is not None:
        return float(any(alike(candidate(found)) in right for one in patterns for found in one.finditer(answer)))
    for text in right:
        if text in given:
            break
    else:  # whatever a pattern can find is in the text
        return 0.0
    for text in _candidates(answer, of.folded[0], min(map(len, right)) == 1):
        if alike(text) in right:
            return 1.0
    return 0.0


def _candidates(answer: str, given: str, letters: bool) -> Iterator[str]:
    """What our own patterns find; those whose signs are not in the text are not tried, nor letters for no letter."""
    text = compatible(answer)
    for sign, patterns in _CLUES:
        if sign in given:
            for pattern in patterns:
                for match in pattern.finditer(text):
                    yield match[1]
    if "\n" in text:
        yield from text.split("\n")
    if letters:
        from convoscope.metrics.answer import choice_patterns

        for match in choice_patterns.LETTER_ALONE.finditer(text):
            if not _is_article(text, match):
                yield match["letter"]


def _is_meant(wanted: str, given: str) -> bool:
    """Whether the text of a choice is in an answer where it is not ruled out."""
    for start in positions_of(wanted, given):
        before, end = given[max(0, start - 60) : start], start + len(wanted)
        if not (_RULED_OUT_BEFORE.search(before) or _RULED_OUT_AFTER.match(given, end)):
            return True
    return False


def _last(text: str, pattern: re.Pattern[str]) -> str | None:
    return next(reversed(list(_letters(text, pattern))), None)


def _only(letters: set[str]) -> str | None:
    return next(iter(letters)) if len(letters) == 1 else None


def _letters(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The letters that a pattern finds, without articles and without those that are ruled out."""
    for match in pattern.finditer(text):
        start, end = match.span(match.lastgroup or 0)
        ruled_out = (
            _RULED_OUT_BEFORE.search(text[max(0, start - 60) : start])
            or _RULED_OUT_AFTER.match(text, end)
            or _WRONG.search(text[max(0, match.start() - 12) : match.start()])
        )
        if not ruled_out and not _is_article(text, match):
            yield text[start:end].upper()


def _is_article(text: str, match: re.Match[str]) -> bool:
    """Whether an "a" or an "I" is a word of the sentence and no letter of a choice."""
    start, end = match.span(match.lastgroup or 0)
    if text[start:end] not in "aAiI":
        return False
    next_word = _NEXT_WORD.match(text, end)
    return next_word is not None and not _AFTER_A_LETTER[text[start].lower()].fullmatch(next_word[1].lower())


DRESS = r"(?:(?:the\s+)?(?:option|choice|letter|answer|alternative)\s+)?[\"'“‘(\[{*_`$\\]*(?:(?:boxed|text)\{)*"
IS = r"(?:is|was|are|would\s+be|should\s+be|must\s+be|will\s+be|has\s+to\s+be)\b(?:\s++\w+ly\b)?"
_CUES = ("answer", "choice", "option", "result", "solution")
CUE = rf"\b(?:{'|'.join(_CUES)})(?:\s++(?:to|for)\s++[^.:\n]{{1,40}}?)?"
LINK = rf"\s*+(?:\b{IS}\s*+[:=]?|[-=]+>|→|[:=]|[-–—])\s*+"
_RULED_OUT_BEFORE = lazy_pattern(
    r"(?:\b(?:not|never|neither|nor|rather\s+than|instead\s+of|except(?:\s+for)?|unlike|cannot\s+be"
    r"|(?:exclud|eliminat|rul)\w+(?:\s+out)?|n['’]t(?:\s+be)?)|n['’]t(?:\s+be)?)\s+"
    rf"(?:[A-J]\s+(?:or|nor|and)\s+)*{DRESS}$",
    re.IGNORECASE,
)
_RULED_OUT_AFTER = lazy_pattern(
    r"[\"'”’)\]*_`]*\s+(?:(?:is|was|does|would|could|can|are)(?:n['’]t|\s+not)\b|can['’]t\b|cannot\b"
    r"|(?:is|was|seems|looks|are)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false|out|eliminated)\b|\((?:wrong|incorrect)\))",
    re.IGNORECASE,
)
_WRONG = lazy_pattern(r"\b(?:wrong|incorrect|worst|false|bad)\s+$", re.IGNORECASE)
_NEXT_WORD = re.compile(r"[^\S\n]+([^\W\d_]+)")
_AFTER_A_LETTER = {
    "a": re.compile(
        "is|was|are|as|and|or|but|nor|because|since|for|seems|looks|would|must|should|can|cannot|fits|has"
        "|with|which|that|if|so|then|not"
    ),
    "i": re.compile("is|because|since|and|or|but|nor"),
}
"""Words that follow the letter of a choice rather than an article or a pronoun."""
_NAMED_LETTER = lazy_pattern(r"(?:(?:option|choice|answer|letter)\s+)?\(?([a-j])\)?")
_LONGEST_NAME = len("choice (a)")
_LABEL = re.compile(r"\(?([A-Ja-j])[).:]\s+")
_STATED_TEXTS = tuple(
    lazy_pattern(f"{CUE}{LINK}{rest}", re.IGNORECASE)
    for rest in (r"(\S+)", r"([^\n]+?)(?=[.!?;](?:\s|$)|\n|$)", r"([^\n]+)")
)
_CLUES: tuple[tuple[str, tuple[re.Pattern[str], ...]], ...] = (
    *((cue, _STATED_TEXTS) for cue in _CUES),
    ("**", (re.compile(r"\*\*([^*\n]+)\*\*"),)),
    ("__", (re.compile(r"__([^_\n]+)__"),)),
    ("`", (re.compile(r"`([^`\n]+)`"),)),
    ("boxed", (re.compile(r"\\boxed\{([^{}\n]+)\}"),)),
)
"""Our own patterns, each with the sign without which it can find nothing."""
