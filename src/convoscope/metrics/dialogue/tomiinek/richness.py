"""How varied responses are: length, entropy, type-token ratio, distinct n-grams (dialogue, 4)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum, log2
from typing import NamedTuple

_TOKEN = re.compile(r"[\w']+|[^\w\s]")
SEGMENT = 50


class Richness(NamedTuple):
    """Figures over all responses together. None where there is too little text."""

    mean_length: float | None
    """Tokens in a response."""
    entropy: float | None
    """Bits in a token."""
    conditional_entropy: float | None
    """Bits in a token, where the token before it is known."""
    msttr: float | None
    """The mean share of distinct tokens in segments of fifty."""
    distinct_unigrams: int
    distinct_bigrams: int
    distinct_trigrams: int


def richness(responses: Iterable[str]) -> Richness:
    """The richness of responses. N-grams do not reach from one response into the next; segments do."""
    tokens = [_TOKEN.findall(response) for response in responses]
    unigrams, bigrams, trigrams = (_grams(tokens, size) for size in (1, 2, 3))
    single, double = _entropy(unigrams), _entropy(bigrams)
    firsts = _entropy(Counter(gram[0] for gram in bigrams.elements()))
    return Richness(
        mean_length=sum(map(len, tokens)) / len(tokens) if tokens else None,
        entropy=single,
        conditional_entropy=None if double is None or firsts is None else double - firsts,
        msttr=_msttr([token for row in tokens for token in row]),
        distinct_unigrams=len(unigrams),
        distinct_bigrams=len(bigrams),
        distinct_trigrams=len(trigrams),
    )


def _grams(rows: Iterable[Sequence[str]], size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(row[place : place + size]) for row in rows for place in range(len(row) - size + 1))


def _entropy(grams: Counter[tuple[str, ...]] | Counter[str]) -> float | None:
    total = sum(grams.values())
    return fsum(-count / total * log2(count / total) for count in grams.values()) if total else None


def _msttr(tokens: Sequence[str]) -> float | None:
    segments = [tokens[start : start + SEGMENT] for start in range(0, len(tokens) - SEGMENT + 1, SEGMENT)]
    return fsum(len(set(segment)) / SEGMENT for segment in segments) / len(segments) if segments else None
