"""Key entities against the labels of people: on the half of the calls that we looked at, and on the other.

A call is in the half that the rules were made with when the hash of its first turn is even.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from convoscope.text.spoken import FactCheck, check_entities, check_fact, normalise
from convoscope.text.spoken.vocabulary import DIGITS, SMALL, TENS

LABELS = "data/judge-labels/key_entity_transcription.jsonl"
HALVES = ("tuned on", "held out")


class Agreement(NamedTuple):
    """With the spans given: labels, and how many of them the baseline and we agree with."""

    labels: int
    plain: int
    ours: int


class Search(NamedTuple):
    """With the spans to be found."""

    labels: int
    found: int
    matched: int
    agreed: int

    @property
    def precision(self) -> float:
        return self.matched / self.found

    @property
    def recall(self) -> float:
        return self.matched / self.labels


def plain(text: str) -> str:
    """The baseline: number words below a hundred as digits, small letters, no punctuation, no blanks."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    said: list[str] = []
    for place, word in enumerate(words):
        if word in DIGITS and place and words[place - 1] in TENS and word != "zero":
            said[-1] = str(TENS[words[place - 1]] + int(DIGITS[word]))
        elif word not in ("dollar", "dollars"):
            said.append(str(SMALL.get(word, word)))
    return "".join(said)


def half(call: dict[str, Any]) -> str:
    first = next(iter(call["user_tts"]), "")
    return HALVES[hashlib.sha256(first.encode()).digest()[-1] % 2]


def agreement(calls: list[dict[str, Any]]) -> Agreement:
    labels = [entity for call in calls for turn in call["labels"] for entity in turn["entities"]]
    labels = [entity for entity in labels if not entity.get("skipped") and _is_labelled(entity)]
    pairs = [(entity["value"], entity["transcribed_value"], entity["correct"]) for entity in labels]
    by_plain = sum((plain(value) == plain(heard)) == correct for value, heard, correct in pairs)
    ours = sum(check_fact(value, heard).correct == correct for value, heard, correct in pairs)
    return Agreement(len(labels), by_plain, ours)


def _is_labelled(entity: dict[str, Any]) -> bool:
    return isinstance(entity.get("correct"), bool) and isinstance(entity.get("transcribed_value"), str)


def forms(value: str) -> list[str]:
    """A labelled value, without what stands in brackets, and that alone."""
    said = [re.sub(r"\([^()]*\)", " ", value), *re.findall(r"\(([^()/]*)", value)]
    return ["".join(normalise(one)) for one in said]


def turns(call: dict[str, Any]) -> Iterator[tuple[list[dict[str, Any]], tuple[FactCheck, ...]]]:
    """The labels and our findings of each turn that was heard; `turn_id` counts both lists from 0."""
    for number, (said, heard) in enumerate(zip(call["user_tts"], call["transcription"], strict=False)):
        labels = [entity for turn in call["labels"] if turn["turn_id"] == number for entity in turn["entities"]]
        labels = [entity for entity in labels if not entity.get("skipped") and _is_labelled(entity)]
        yield labels, check_entities(said or "", heard or "")


def search(calls: list[dict[str, Any]]) -> Search:
    labelled = found = matched = agreed = 0
    for labels, checked in (turn for call in calls for turn in turns(call)):
        canonical = ["".join(one.entity.canonical.split()) for one in checked]
        taken: set[int] = set()
        for label in labels:
            for place, ours in enumerate(canonical):
                if place not in taken and any(
                    form and (form in ours or ours in form) for form in forms(label["value"])
                ):
                    taken.add(place)
                    agreed += checked[place].heard.correct == label["correct"]
                    break
        labelled, found, matched = labelled + len(labels), found + len(checked), matched + len(taken)
    return Search(labelled, found, matched, agreed)


def test_agreement_with_people(
    shared: Callable[[str], Path], ran: Callable[[str, int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [json.loads(line) for line in shared(LABELS).read_text().splitlines() if line.strip()]
    with capsys.disabled():
        print()  # noqa: T201
        for name in HALVES:
            chosen = [call for call in calls if half(call) == name]
            given, searched = agreement(chosen), search(chosen)
            if given.labels >= 30:
                print(report(name, given, searched))  # noqa: T201
                assert given.ours > given.plain, f"{name}: plain comparison agrees with people as often"
                assert given.ours / given.labels > 0.97
                assert searched.recall > 0.85
                assert searched.precision > 0.8
    ran("labelled key entities", agreement(calls).labels)


def report(name: str, given: Agreement, searched: Search) -> str:
    return (
        f"key entities, {name}, {given.labels} labels. "
        f"Spans given: plain comparison {given.plain / given.labels:.1%}, ours {given.ours / given.labels:.1%}. "
        f"Spans found: precision {searched.precision:.1%}, recall {searched.recall:.1%}, "
        f"verdicts agree {searched.agreed / searched.matched:.1%}."
    )
