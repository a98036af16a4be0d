"""Names, labels and reasons as logs spell them: `Max turns`, `max-turns`, `max_turns`, `maxTurns`."""

from __future__ import annotations

import re
from functools import lru_cache

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS = re.compile(r"[^\W_]+")


def split_camel(text: str, separator: str) -> str:
    """`maxTurns` with a separator between its words."""
    return _CAMEL.sub(separator, text)


@lru_cache(maxsize=4096)  # reasons and names of states repeat from conversation to conversation
def name_words(text: str) -> tuple[str, ...]:
    """The words of a name, in small letters, however they are put together."""
    return tuple(_WORDS.findall(split_camel(text, " ").casefold()))


@lru_cache(maxsize=4096)
def snake_case(text: str) -> str:
    """`Max turns`, `max-turns` and `maxTurns` are `max_turns`."""
    return "_".join(name_words(text))


def folded_name(name: str) -> str:
    """`Book repair`, `book-repair` and `book_repair` are one name; capital letters part no words."""
    return "_".join(name.casefold().replace("_", " ").replace("-", " ").split())


def folded_label(name: str) -> str:
    """`AI_agent` and `ai  agent` are one label; a hyphen is a part of a name."""
    return " ".join(name.replace("_", " ").casefold().split())


__all__ = ["folded_label", "folded_name", "name_words", "snake_case", "split_camel"]
