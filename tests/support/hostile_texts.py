"""Tries every regular expression and text function of ours on texts of 100,000 characters that are meant to be slow.

Run as a process of its own by `test_hostile_texts.py`. Each trial is told before it begins; one that takes far more
time than any text can be worth ends the process, and what was told last is to blame.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import convoscope

LENGTH = 100_000
HANGS = 15.0
"""Seconds of the processor. Time that grows with the length takes a hundredth of it."""

SUSPICIOUS = 0.05
"""Seconds for a tenth of the length. Time that grows with the square takes a hundredth of HANGS there: 0.15."""

Text = Any
"""A text, or bytes for a pattern of bytes."""
CALLS = "search|match|fullmatch|finditer|findall|sub|subn|split"
HELD = {
    "convoscope.ingest.formats.pipecat": ["fullmatch"],
    "convoscope.metrics.answer.forms": ["match", "fullmatch"],
}
"""How patterns are used that have no name of their own."""
BOUNDED = {
    "convoscope.metrics.answer.multiple_choice._RULED_OUT_BEFORE",  # the 60 characters before a letter
    "convoscope.metrics.answer.multiple_choice._WRONG",  # 12 characters
    "convoscope.text.patterns._TOKEN",  # patterns of up to 1,000 characters
    "convoscope.text.patterns._TOKEN_OF_CLASS",
}


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(convoscope.__path__, "convoscope."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def patterns_in(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """The patterns that a value of a module is made of."""
    if isinstance(value, re.Pattern):
        yield value
        return
    inside: Iterable[Any] = ()
    if isinstance(value, dict):
        inside = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = value
    elif inspect.isfunction(value):
        inside = [cell.cell_contents for cell in value.__closure__ or ()]
    elif type(value).__module__.startswith("convoscope"):
        inside = vars(value).values() if hasattr(value, "__dict__") else ()
    if depth < 4:
        for one in inside:
            yield from patterns_in(one, depth + 1)


def patterns() -> dict[str, list[re.Pattern[Any]]]:
    found: dict[str, list[re.Pattern[Any]]] = {}
    for module in modules():
        for name, value in vars(module).items():
            if not name.startswith("__") and (inside := list(patterns_in(value))):
                found[f"{module.__name__}.{name}"] = inside
    return found


def ways(name: str) -> set[str]:
    """How a pattern is used in its module: by its name, or out of what holds it; else anywhere in a text."""
    module, _, short = name.rpartition(".")
    source = inspect.getsource(importlib.import_module(module))
    used = re.findall(rf"\b{short}\.({CALLS})\(", source) or HELD.get(module, ["finditer"])
    return {one if one in ("match", "fullmatch") else "finditer" for one in used}


def texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Runs of what the pattern mentions, alone, behind its words, and with an end that does not fit."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    plain = re.sub(r"\\[a-zA-Z]", "", source)
    signs = dict.fromkeys("a0 \n_.é(" + "".join(one for one in plain if not one.isalnum())[:60])
    words = [one for one in dict.fromkeys(re.findall(r"[A-Za-z]{2,}", plain)) if len(one) > 1][:2]
    units = [*list(signs)[:20], "a ", "a.", "1,", " -", *(f"{word} " for word in words)]
    for unit in units:
        yield unit * (length // len(unit)) + "\0"
    for word in words:
        yield word + " " * length + "\0"
        yield f"{word} is" + " " * length


FUNCTION_UNITS = (
    *("a", "1", "(", ".", "_", " ", "\n", "é", "好", "\u0301", "[", "`", "A-", "1-", "a b c ", "1 alfa "),
    *("a@b.", "at dot ", "answer is ", "one hundred and ", "flight 472. ", "q\u0301 ", "…a", "'a", "a: "),
)


def functions() -> dict[str, Callable[[str], object]]:
    from convoscope.harmless import clean, one_line
    from convoscope.metrics.answer import forms
    from convoscope.metrics.answer import multiple_choice as choices
    from convoscope.metrics.audio import word_accuracy as transcripts
    from convoscope.metrics.tools import call_checks as tools
    from convoscope.metrics.voice.transcription import word_errors
    from convoscope.report.table import plain
    from convoscope.report.text_diff import difference
    from convoscope.text import comparison as answer_text
    from convoscope.text import folding
    from convoscope.text.folding import compact, likeness, resemble, similarity
    from convoscope.text.spoken import check_entities, entities, normalise

    nobody = transcripts.Speakers(frozenset({"agent"}), frozenset({"user"}))
    return {
        "count_words": answer_text.count_words,
        "tokens": answer_text.tokens,
        "sentences": answer_text.sentences,
        "long_sentences": lambda text: answer_text.long_sentences(text, 3),
        "normal": answer_text.normalised_words,
        "comparable": folding.comparable,
        "f1": lambda text: answer_text.f1_of(text, text[::-1]),
        "accuracy": lambda text: answer_text.accuracy_of(text, text[: LENGTH // 2]),
        "exact_match": lambda text: answer_text.exact_match_of(text, text, collapse=True, case_sensitive=False),
        "choice": lambda text: choices.choice_accuracy_of(text, "B", choices=(text[:1000], "Paris")),
        "multi_pattern": lambda text: choices.multi_pattern_of(text, "b"),
        "form": forms.form_of,
        "transcript": lambda text: transcripts.transcript_lines(text, nobody),
        "words of an error": tools._words,
        "ending": folding.snake_case,
        "normalise": normalise,
        "normalise, Chinese": lambda text: normalise(text, "zh"),
        "entities": entities,
        "hear": lambda text: check_entities(text, text[: -LENGTH // 10]),
        "word_errors": lambda text: word_errors(text, text[: LENGTH // 2], "en"),
        "compact": compact,
        "likeness": lambda text: likeness(text, text[: LENGTH // 2 : -1]),
        "similarity": lambda text: similarity(text, text[::-1]),
        "resemble": lambda text: resemble(text, text[::-1] + "y"),
        "difference": lambda text: difference(text, text[::-1]),
        "one_line": one_line,
        "clean": clean,
        "markdown": plain,
        **{f"form {form.name}": form.fault for form in forms.FORMS.values()},
    }


def tried(name: str, text: Text, trial: Callable[[Any], object]) -> float:
    """Try it; returns the seconds of the processor that it took."""
    sys.stdout.write(f"{name} {text[:12]!r}\n")
    sys.stdout.flush()
    signal.setitimer(signal.ITIMER_VIRTUAL, HANGS)
    with suppress(ValueError, RecursionError):  # a form that cannot be checked
        trial(text)
    return HANGS - signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0]


def try_patterns() -> None:
    done = set()
    for name, several in patterns().items():
        for pattern in several:
            for way in sorted(ways(name)) if name not in BOUNDED else ():
                # A pattern that other modules import is one pattern.
                if (pattern, way) not in done:
                    done.add((pattern, way))
                    try_pattern(f"{name}.{way} {pattern.pattern!r}", pattern, way)


def try_pattern(name: str, pattern: re.Pattern[Any], way: str) -> None:
    """A tenth of the length first: only a text that takes suspiciously long there is worth the whole."""
    call = pattern.findall if way == "finditer" else getattr(pattern, way)
    for short, whole in zip(texts(pattern, LENGTH // 10), texts(pattern, LENGTH), strict=True):
        if tried(name, fitting(pattern, short), call) > SUSPICIOUS:
            tried(name, fitting(pattern, whole), call)


def fitting(pattern: re.Pattern[Any], text: str) -> Text:
    return text if isinstance(pattern.pattern, str) else text.encode()


def try_functions() -> None:
    for name, function in functions().items():
        for unit in FUNCTION_UNITS:
            short, whole = (unit * (length // len(unit)) + "x" for length in (LENGTH // 10, LENGTH))
            if tried(name, short, function) > SUSPICIOUS:
                tried(name, whole, function)


if __name__ == "__main__":
    {"patterns": try_patterns, "functions": try_functions}[sys.argv[1]]()
    sys.stdout.write("done\n")
