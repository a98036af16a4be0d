"""What the page makes of figures: lines of the verdict, suggested targets, equal figures, bars of differences."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from browser.walks import make_run, versions
from convoscope.analysis.answer.model import Clause
from convoscope.analysis.compare.model import ComparedFigure
from convoscope.conversation import Conversation
from convoscope.metrics import CONVERSATION, HIGHER, LOWER, Observation, measured, metric
from convoscope.report.page import write_page
from convoscope.report.page.compare import _bar as bar_of
from convoscope.report.page.overview import VerdictPart, verdict_line
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.chats import agent, chat, user


def facts_of(run: Run) -> dict[str, Any]:
    text = (run.folder / "report.html").read_text(encoding="utf-8")
    packed = re.search(r'id="facts">([^<]+)<', text)
    assert packed is not None
    facts: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return facts


class TestALineOfTheVerdict:
    def test_of_a_target_what_follows_judges(self) -> None:
        clause = Clause(lead="3 of 9 reach it", rest=", below the target of 80 %; 1 is handed over.", tone="bad")
        assert verdict_line(clause) == [
            VerdictPart("3 of 9 reach it", True, ""),
            VerdictPart(", below the target of 80 %", True, "bad"),
            VerdictPart("; 1 is handed over.", False, ""),
        ]

    @pytest.mark.parametrize("tone", ["good", "bad"])
    def test_of_a_claim_the_words_before_its_numbers_judge(self, tone: Any) -> None:
        assert verdict_line(Clause(lead="v2 replies sooner", rest=": 1 s, was 2 s.", tone=tone)) == [
            VerdictPart("v2 replies sooner", True, tone),
            VerdictPart(": 1 s, was 2 s.", False, ""),
        ]

    def test_without_a_judgement_nothing_has_a_colour(self) -> None:
        assert verdict_line(Clause(lead="No call was lost", rest=".")) == [
            VerdictPart("No call was lost", True, ""),
            VerdictPart(".", False, ""),
        ]


def number_of(conversation: Conversation) -> int:
    return int(conversation.id)


@metric("mine.wait", version=1, observes=CONVERSATION, unit="s", better=LOWER, importance=9)
def wait(conversation: Conversation) -> Observation:
    """How long is the wait?"""
    return measured(conversation, 2.3 if conversation.dimensions["agent"] == "v2" else 4.0)


@metric("mine.again", version=1, observes=CONVERSATION, unit="s", better=LOWER)
def again(conversation: Conversation) -> Observation:
    """How long is the same wait, under another name?"""
    return measured(conversation, 2.3 if conversation.dimensions["agent"] == "v2" else 4.0)


@metric("mine.even", version=1, observes=CONVERSATION, unit="share", better=HIGHER, importance=8)
def even(conversation: Conversation) -> Observation:
    """Is its number even?"""
    return measured(conversation, float(number_of(conversation) % 2 == 0))


@metric("mine.odd", version=1, observes=CONVERSATION, unit="share", better=HIGHER)
def odd(conversation: Conversation) -> Observation:
    """Is its number odd: as many, and never the same?"""
    return measured(conversation, float(number_of(conversation) % 2 == 1))


@metric("mine.zero", version=1, observes=CONVERSATION, unit="share", better=HIGHER)
def zero(conversation: Conversation) -> Observation:
    """What never happens?"""
    return measured(conversation, 0.0)


@metric("mine.nil", version=1, observes=CONVERSATION, unit="share", better=HIGHER)
def nil(conversation: Conversation) -> Observation:
    """What else never happens?"""
    return measured(conversation, 0.0)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """40 chats of v1, then 40 of v2."""
    chats = [
        chat(user("hi", 1), agent("hello", 2), id=str(at), dimensions={"agent": "v1" if at < 40 else "v2"})
        for at in range(80)
    ]
    metrics = [wait, again, even, odd, zero, nil]
    run = score(chats, metrics=metrics, out=tmp_path_factory.mktemp("own") / "run", workers=1, by=[["agent"]])
    write_page(run)
    return facts_of(run)


class TestASuggestedTarget:
    def test_it_is_what_the_better_version_reaches_rounded(self, facts: dict[str, Any]) -> None:
        (card,) = (one for one in facts["overview"]["cards"] if one["name"] == "mine.wait")
        trial = card["trial"]
        # v2 has 2.3 s, and 2.5 is the next round number that it reaches; all together have 3.15 s.
        assert (trial["source"], trial["target"]) == ("v2 has 2.30 s", "≤ 2.50 s")
        assert trial["option"] == "--target 'mine.wait <= 2.5'"
        assert trial["verdict"] == "missed"

    def test_without_a_better_group_there_is_no_suggestion(self, facts: dict[str, Any]) -> None:
        cards = {one["name"]: one for one in facts["overview"]["cards"]}
        # Both versions have as many even numbers.
        assert "trial" not in cards["mine.even"]


class TestEqualFigures:
    def test_the_second_names_the_first(self, facts: dict[str, Any]) -> None:
        same = {row["name"]: row.get("same", "") for family in facts["figures"]["families"] for row in family["rows"]}
        # As many numbers are even as are odd, and they are never the same; what never happens proves nothing.
        assert same == {
            "mine.wait": "",
            "mine.again": "mine.wait",
            "mine.even": "",
            "mine.odd": "",
            "mine.zero": "",
            "mine.nil": "",
        }


class TestTheBarOfADifference:
    @staticmethod
    def figure(better: Any, low: float | None, high: float | None) -> ComparedFigure:
        return ComparedFigure(
            metric="m",
            label="m",
            unit="s",
            better=better,
            importance=1,
            side="v2",
            finding="open",
            difference=1.0,
            low=low,
            high=high,
        )

    def test_more_of_what_should_be_more_is_to_the_right(self) -> None:
        bar = bar_of(self.figure(HIGHER, -1.0, 2.0))
        assert bar is not None
        # The scale reaches to 1.1 times the larger end, 2.2: 50 + 50 / 2.2 and so on.
        assert (bar.low, bar.value, bar.high) == (27.27, 72.73, 95.45)

    def test_more_of_what_should_be_less_is_to_the_left(self) -> None:
        bar = bar_of(self.figure(LOWER, -1.0, 2.0))
        assert bar is not None
        assert (bar.low, bar.value, bar.high) == (4.55, 27.27, 72.73)

    def test_an_open_end_reaches_to_the_edge(self) -> None:
        bar = bar_of(self.figure(LOWER, 0.5, None))
        assert bar is not None
        assert (bar.low, bar.high) == (0, 27.27)  # 0.5 of 1.1 is 22.73 to the left

    def test_without_an_interval_there_is_none(self) -> None:
        assert bar_of(self.figure(HIGHER, None, None)) is None


def test_a_cause_says_how_many_of_each_version_it_lost(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", list(versions()))
    (cause,) = facts_of(run)["overview"]["remaining"]
    assert cause["lost"] == 28  # without a single cause they are in the last line, and have no shares
    assert "versions" not in cause
