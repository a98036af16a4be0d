"""Metrics of an answer against the truth. Each is made by a function that takes its options, for variants of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import cleandoc
from typing import Any

from convoscope.conversation import Conversation
from convoscope.conversation.events import Json
from convoscope.errors import DeclarationError
from convoscope.metrics.answer.multiple_choice import (
    LETTERS,
    compared_by_patterns,
    is_multiple_choice,
    offered_by,
    picked_of,
)
from convoscope.metrics.declaration import RATIO, SHARE, Measure, Metric, item_metric
from convoscope.metrics.item_fields import missing, needs_of
from convoscope.metrics.needs import Need
from convoscope.metrics.perturbations import ANSWERED_BADLY
from convoscope.scores.observation import NOT_APPLICABLE, Observation, failed, measured, not_applicable, unmeasured
from convoscope.text.comparison import (
    TOKENIZERS,
    Comparison,
    Tokenize,
    accuracy_of,
    exact_match_of,
    is_tokenizer,
    overlap_of,
)
from convoscope.text.patterns import BadPattern, PatternCheck, UnsupportedPattern, Untried, checked
from convoscope.views.items import Case, cases


def _is_multiple_choice(case: Case) -> bool:
    # Of a blank truth there is another thing to be said.
    truth = case.expected.ground_truth
    return (truth is not None and not truth.strip()) or is_multiple_choice(truth, case.extras.get("context"))


MULTIPLE_CHOICE = Need(
    "not_multiple_choice",
    "context.choices",
    "`choices` in the `context` of the items, or a ground truth that is a letter from A to J",
    lambda conversation: any(map(_is_multiple_choice, cases(conversation))),
    status_if_missing=NOT_APPLICABLE,
)
_FLAGS = re.IGNORECASE | re.MULTILINE


def exact_match_metric(
    variant: str, *, strip: bool = True, collapse: bool = False, case_sensitive: bool = True
) -> Metric:
    """`answer.exact_match` with other options: see `exact_match_of`."""

    def exact_match(conversation: Conversation) -> list[Observation]:
        """Is the answer the expected one, to the letter?

        1 if answer and ground truth are equal after trimming blanks at both ends, else 0; case counts,
        how an accented letter is composed does not.
        The answer is the last thing that the agent says; for an item, the item's own answer. An answer
        without words scores 0; where the log holds none, it is unmeasured. An empty truth is not
        applicable.

        >>> chat = example("user: Capital?", "assistant: Paris", expected={"ground_truth": "Paris"})
        >>> value("answer.exact_match", chat)
        1.0
        """
        return _compared(conversation, "exact_match", compare)

    def compare(_: Case, of: Comparison) -> float | None:
        return exact_match_of(of.answer, of.truth, strip=strip, collapse=collapse, case_sensitive=case_sensitive)

    changed_options = _changed(strip=(strip, True), collapse=(collapse, False), case_sensitive=(case_sensitive, True))
    return _declared("exact_match", variant, exact_match, changed_options, version=2, unit=SHARE)


def accuracy_metric(variant: str, *, answer_pattern: str | None = None) -> Metric:
    """`answer.accuracy` of what a pattern finds in the answer: see `accuracy_of`."""
    declared = None if answer_pattern is None else _pattern_of_a_declaration(answer_pattern)

    def accuracy(conversation: Conversation) -> list[Observation]:
        """Does the answer say what is true?

        1 if the ground truth is in the answer as whole words, which it does where both are equal;
        else the share of the truth's words that the answer has, repeats counted. Case, punctuation at
        the edges, runs of blanks and ways of writing one character (NFKC) do not count.
        Where the item's context has an `answer_pattern`, only what it finds is the answer. Which answer
        is compared: see `answer.exact_match`. An empty truth is not applicable.

        >>> truth = {"ground_truth": "Paris and London"}  # two of its three words
        >>> round(value("answer.accuracy", example("user: Capitals?", "assistant: London, Paris.", expected=truth)), 3)
        0.667
        """
        return _compared(conversation, "accuracy", compare)

    def compare(case: Case, of: Comparison) -> float | Observation | None:
        pattern = declared
        context = case.extras.get("context")
        if type(context) is dict and context.get("answer_pattern") is not None:
            try:
                pattern = _pattern(context["answer_pattern"])
            except BadPattern as error:
                return _unusable(case, "answer_pattern", error)
        if pattern is None:
            return of.accuracy()
        try:
            return accuracy_of(of.answer, of.truth, pattern=pattern)
        except Untried as error:
            return unmeasured(case.subject, f"answer_{error.code}", str(error))

    return _declared(
        "accuracy", variant, accuracy, _changed(answer_pattern=(answer_pattern, None)), version=2, unit=RATIO
    )


def choice_accuracy_metric(variant: str, *, choices: Sequence[str] = ()) -> Metric:
    """`answer.accuracy@choice` with choices for items that bring none: see `choice_accuracy_of`."""

    def choice_accuracy(conversation: Conversation) -> list[Observation]:
        """Does the answer pick the right choice?

        1 if the letter that the answer picks, or the text of a choice that it gives, is the right one;
        else 0, also where it picks none. The choices are `choices` of the item's context. The truth is
        a letter A to J, the text of a choice or its position counted from 0, else `answer_index` of the
        context says it. A letter that is stated goes before one that is merely there; one that is
        ruled out does not count. Where there are no choices and the truth is no letter, it is not
        applicable; where the truth is not among the choices, the item contradicts itself: unmeasured.

        >>> chat = example("user: A or B?", "assistant: The answer is B.", expected={"ground_truth": "B"})
        >>> value("answer.accuracy@choice", chat)
        1.0
        """
        return _compared(conversation, "accuracy", compare)

    def compare(case: Case, of: Comparison) -> float | Observation | None:
        answer, truth = of.answer, of.truth
        offered = offered_by(case.extras.get("context"), choices)
        chosen, right = picked_of(answer, truth, choices=offered.choices, answer_index=offered.answer_index)
        if right is not None:
            details = {"chosen": _letter(chosen), "right": _letter(right)}
            return measured(case.subject, 1.0 if chosen == right else 0.0, details=details)
        if not truth.strip():
            return None
        if offered.choices:
            return unmeasured(case.subject, "truth_not_a_choice", truth[:200])
        return not_applicable(case.subject, "not_multiple_choice")

    needs = () if choices else (MULTIPLE_CHOICE,)
    changed_options = _changed(choices=(tuple(choices), ()))
    return _declared("accuracy", variant, choice_accuracy, changed_options, version=2, unit=SHARE, needs=needs)


def multi_pattern_accuracy_metric(
    variant: str, *, patterns: Sequence[str] | None = None, choices: Sequence[str] = (), case_sensitive: bool = False
) -> Metric:
    """`answer.multi_pattern_accuracy` with other options: see `multi_pattern_of`."""
    declared = None if patterns is None else tuple(map(_pattern_of_a_declaration, patterns))

    def multi_pattern_accuracy(conversation: Conversation) -> list[Observation]:
        """Is the truth among the answers that can be read out of the response?

        1 if any candidate equals the ground truth, else 0. Candidates are the whole answer, each of its
        lines, what it states ("Answer: …", "the answer is …", **…**), and letters A to J that are
        alone; where the item's context has `patterns`, what these find instead. Case, blanks and
        punctuation at the edges do not count. Where the context has `choices`, the letter and the text
        of the right one are as good as the truth. An empty truth is not applicable.

        >>> chat = example("user: Capital?", "assistant: The answer is Paris.", expected={"ground_truth": "paris"})
        >>> value("answer.multi_pattern_accuracy", chat)
        1.0
        """
        return _compared(conversation, "multi_pattern_accuracy", compare)

    def compare(case: Case, of: Comparison) -> float | Observation | None:
        context = case.extras.get("context")
        if declared is None and not choices and type(context) is not dict:
            return 0.0 if of.lacks_a_word else compared(of)
        try:
            tried = _patterns(context, declared)
        except BadPattern as error:
            return _unusable(case, "patterns", error)
        offered, index = offered_by(context, choices)
        try:
            return compared(of, patterns=tried, choices=offered, answer_index=index)
        except Untried as error:
            return unmeasured(case.subject, f"answer_{error.code}", str(error))

    compared = partial(compared_by_patterns, case_sensitive=case_sensitive)
    changed_options = _changed(
        patterns=(patterns, None), choices=(tuple(choices), ()), case_sensitive=(case_sensitive, False)
    )
    return _declared("multi_pattern_accuracy", variant, multi_pattern_accuracy, changed_options, version=2, unit=SHARE)


def f1_metric(variant: str, *, case_sensitive: bool = False, tokenize: Tokenize = "auto") -> Metric:
    """`answer.f1` with other options: see `f1_of`."""
    if not is_tokenizer(tokenize):
        hint = f"one of {', '.join(map(repr, TOKENIZERS))}, or a function of a text"
        raise DeclarationError(f"answer.f1@{variant}: tokenize cannot be {tokenize!r}", hint=hint)

    def f1(conversation: Conversation) -> list[Observation]:
        """How many words do answer and truth share?

        Words in small letters, repeats counted; a number is one word, and so is each character of a
        writing that sets no blanks (Chinese, Japanese, Thai, Lao, Khmer, Burmese). P = shared ÷ words of
        the answer, R = shared ÷ words of the truth, F1 = 2PR ÷ (P + R); 0 where they share none. Which
        answer is compared: see `answer.exact_match`. A truth without words is not applicable.

        >>> chat = example("user: Capital?", "assistant: It is Paris", expected={"ground_truth": "Paris"})
        >>> value("answer.f1", chat)  # P = 1/3, R = 1
        0.5
        """
        return _compared(conversation, "f1", compare)

    def compare(case: Case, of: Comparison) -> float | Observation | None:
        overlap = of.overlap if usual else overlap_of(of.answer, of.truth, **options)
        if overlap is None:
            return None
        details = {"precision": overlap.precision, "recall": overlap.recall}
        return measured(case.subject, overlap.f1, details=details)

    options: Any = {"case_sensitive": case_sensitive, "tokenize": tokenize}
    usual = not case_sensitive and tokenize == "auto"
    changed_options = _changed(case_sensitive=(case_sensitive, False), tokenize=(tokenize, "auto"))
    return _declared("f1", variant, f1, changed_options, version=4, unit=RATIO)


def _compared(
    conversation: Conversation, scorer: str, compare: Callable[[Case, Comparison], float | Observation | None]
) -> list[Observation]:
    """Each case that has both an answer and a truth is compared; of the others, the missing field is named.

    What compares gives a value, None where the truth is empty, or an observation that says more.
    """
    observations: list[Observation] = []
    for case in cases(conversation):
        comparison = case.comparison
        if comparison is None:
            field = missing(case, scorer)
            observations.append(unmeasured(case.subject, f"no_{field}", str(field)))
            continue
        result = compare(case, comparison)
        if result is None:
            observations.append(not_applicable(case.subject, "empty_ground_truth"))
        elif isinstance(result, Observation):
            observations.append(result)
        else:
            observations.append(measured(case.subject, result))
    return observations


def _letter(index: int | None) -> str | None:
    return None if index is None else LETTERS[index] if index < len(LETTERS) else str(index)


# Patterns, declared or brought by an item


def _patterns(context: Json, declared: Sequence[PatternCheck] | None) -> Sequence[PatternCheck] | None:
    """The patterns to try: those of the item where it brings some. Refused with `BadPattern`."""
    patterns = context.get("patterns") if isinstance(context, dict) else None
    if patterns is None:
        return declared
    return [_pattern(one) for one in (patterns if isinstance(patterns, list | tuple) else [patterns])]


def _pattern(pattern: Json) -> PatternCheck:
    if not isinstance(pattern, str):
        raise BadPattern(f"{pattern!r} is no text")
    return checked(pattern, _FLAGS)


def _pattern_of_a_declaration(text: str) -> PatternCheck:
    try:
        return checked(text, _FLAGS)
    except BadPattern as error:
        raise DeclarationError(
            f"{text!r} is not a pattern that can be used: {error}", hint="correct the pattern"
        ) from None


def _unusable(case: Case, field: str, error: BadPattern) -> Observation:
    """A pattern that is not valid is a fault of the item; one that cannot be tried here is not."""
    observation_of = unmeasured if isinstance(error, UnsupportedPattern) else failed
    return observation_of(case.subject, error.reason, f"{field}: {error}")


# Declarations


def _changed(**options: tuple[object, object]) -> Mapping[str, object]:
    """The options that are not as usual, for the definition; each is given with what is usual."""
    return {name: value for name, (value, usual) in options.items() if value != usual}


def _declared(
    scorer: str,
    variant: str,
    measure: Measure,
    options: Mapping[str, object],
    *,
    version: int,
    unit: str,
    needs: tuple[Need, ...] = (),
) -> Metric:
    if options:
        listed = ", ".join(f"{name} = {value!r}" for name, value in options.items())
        description, *example = cleandoc(measure.__doc__ or "").partition("\n\n>>>")
        measure.__doc__ = "".join((description, f"\n\nHere with {listed}.", *example))
    label, importance = _LABELS[scorer]
    return item_metric(
        f"answer.{scorer}",
        version=version,
        unit=unit,
        needs=(*needs_of(scorer), *needs),
        variant=variant,
        label=label,
        importance=importance,
        sensitive_to=ANSWERED_BADLY,
    )(measure)


_LABELS: Mapping[str, tuple[str, int]] = {
    "accuracy": ("answers right", 8),
    "exact_match": ("answers right to the letter", 6),
    "f1": ("words shared with the truth", 6),
    "multi_pattern_accuracy": ("answers right in any form", 5),
}
"""How a scorer is called in an answer, and how much it matters."""


exact_match = exact_match_metric("")
accuracy = accuracy_metric("")
accuracy_choice = choice_accuracy_metric("choice")
multi_pattern_accuracy = multi_pattern_accuracy_metric("")
f1 = f1_metric("")
