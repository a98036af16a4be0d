"""What a metric computes cannot change without a new fingerprint; how it is written down can."""

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from convoscope.metrics.registry import installed
from convoscope.metrics.signatures import computed, signature
from convoscope.views.eva.reading import _REDUCTION

METRIC = '''
"""A package of somebody."""

import re

from convoscope.conversation import Conversation
from convoscope.metrics import CONVERSATION, LOWER, NEITHER, Observation, Reduce, TenPoints, measured, metric
from convoscope.metrics.needs import TIMES, UTTERANCES
from convoscope.scores.reducers import MEAN, MEAN_OF_SUBJECTS, SUM, percentile

from somebody.words import count_words

_WORD = re.compile(r"[a-z]+")
LIMIT = 3


def _capped(count: int) -> int:
    """At most the limit."""
    return min(count, LIMIT)


@metric(
    "mine.words", version=1, observes=CONVERSATION, unit="words", better=NEITHER, needs=(UTTERANCES,),
    reduce=Reduce(MEAN),
)
def words(conversation: Conversation) -> Observation:
    """How many words are there?"""
    text = " ".join(turn.user_text for turn in conversation.turns)
    # Words of small letters only.
    return measured(conversation, _capped(count_words(text, _WORD)))
'''

HELPER = '''
"""Words."""


def count_words(text, pattern):
    """The words."""
    return len(tidy(pattern.findall(text)))


def tidy(words):
    return [word for word in words if word]


def unused():
    return 1
'''

Sign = Callable[..., str]


@pytest.fixture
def signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sign]:
    """Writes the package with a text replaced, imports it and signs its metric."""
    copies = itertools.count()

    def sign(*changes: tuple[str, str]) -> str:
        metric, helper = METRIC, HELPER
        for old, new in changes:
            assert (old in metric) != (old in helper), f"{old!r} must be in one of the two files"
            metric, helper = metric.replace(old, new), helper.replace(old, new)
        # Each copy in a folder of its own, all under one name: the name is part of what is signed.
        folder = tmp_path / str(next(copies)) / "somebody"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(metric)
        (folder / "words.py").write_text(helper)
        _forget()
        monkeypatch.syspath_prepend(folder.parent)
        module = importlib.import_module("somebody")
        assert module.__file__ == str(folder / "__init__.py")
        return signature(module.words)

    yield sign
    _forget()


def _forget() -> None:
    for name in ("somebody", "somebody.words"):
        sys.modules.pop(name, None)


def test_it_is_a_short_hash(signed: Sign) -> None:
    sha, digits = signed().split(":")
    assert sha == "sha256"
    assert len(digits) == 16
    assert int(digits, 16) >= 0


@pytest.mark.parametrize(
    "change",
    [
        ("    # Words of small letters only.\n", ""),
        ("# Words of small letters only.", "# Something else, at length."),
        ('"""How many words are there?"""', '"""How many words?\n\n    All of them.\n    """'),
        ('    """The words."""\n', ""),
        ('    """At most the limit."""\n', ""),
        (
            "    return measured(conversation, _capped(",
            "\n\n    return measured(\n        conversation,\n        _capped(",
        ),
        ("[word for word in words if word]", "[\n        word for word in words\n        if word\n    ]"),
        ("def unused():\n    return 1", "def unused():\n    return 2"),
        ("version=1", "version=2"),
        ("LIMIT = 3", "LIMIT = 1 + 2"),
    ],
    ids=[
        "comment removed",
        "comment changed",
        "docstring of the metric",
        "docstring of a helper elsewhere",
        "docstring of a helper here",
        "layout of the metric",
        "layout of a helper",
        "a function that it does not call",
        "version",
        "the same constant otherwise written",
    ],
)
def test_how_it_is_written_does_not_count(signed: Sign, change: tuple[str, str]) -> None:
    assert signed(change) == signed()


@pytest.mark.parametrize(
    "change",
    [
        ("turn.user_text", "turn.assistant_text"),
        ('" ".join', '"\\n".join'),
        ("min(count, LIMIT)", "max(count, LIMIT)"),
        ("len(tidy(pattern.findall(text)))", "len(set(tidy(pattern.findall(text))))"),
        ("[word for word in words if word]", "[word for word in words if len(word) > 1]"),
        ('r"[a-z]+"', 'r"[a-z0-9]+"'),
        ('r"[a-z]+")', 'r"[a-z]+", re.IGNORECASE)'),
        ("LIMIT = 3", "LIMIT = 4"),
        ('unit="words"', 'unit="count"'),
        ("better=NEITHER", "better=LOWER"),
        ("Reduce(MEAN)", "Reduce(SUM)"),
        ("Reduce(MEAN)", "Reduce(MEAN, MEAN_OF_SUBJECTS)"),
        ("reduce=Reduce(MEAN),", 'reduce=Reduce(MEAN), also={"p95": percentile(95)},'),
        ("needs=(UTTERANCES,)", "needs=(UTTERANCES, TIMES)"),
        ("reduce=Reduce(MEAN),", "reduce=Reduce(MEAN), ten=TenPoints(0, 100),"),
        ('"mine.words"', '"mine.length"'),
        ("reduce=Reduce(MEAN),", 'reduce=Reduce(MEAN), variant="mine",'),
    ],
    ids=[
        "body",
        "a text in the body",
        "a helper here",
        "a helper in another module of the package",
        "a helper of the helper",
        "a regular expression",
        "a flag of a regular expression",
        "a constant of a helper",
        "unit",
        "better",
        "reducer within",
        "reducer across",
        "a further reduction",
        "needs",
        "ten points",
        "name",
        "variant",
    ],
)
def test_what_it_computes_and_declares_does(signed: Sign, change: tuple[str, str]) -> None:
    assert signed(change) != signed()


def test_a_table_that_fills_itself_with_what_it_meets_counts_by_its_rule() -> None:
    wer = installed().declared["voice.stt_wer"]  # its view reads a table of letters that grows
    before = computed(wer)
    "Ünseen: ħellö".translate(_REDUCTION)
    assert ord("ħ") in _REDUCTION
    assert computed(wer) == before
