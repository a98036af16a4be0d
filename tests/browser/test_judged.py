"""Opinions of judges on the page: the quote is marked in its turn, disagreements can be filtered for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.given import SPELLS
from browser.test_hostile import unharmed
from convoscope.analysis.labelling import choose_rows
from convoscope.conversation import Outcome
from convoscope.errors import UsageError
from convoscope.metrics import example
from convoscope.runs.run import Run
from support.command_line import convoscope_here as command
from support.judge_server import judge_server
from support.judged_runs import QUOTE, by_grade, judged_run, write_labels

GRADES = [1 + index % 3 for index in range(12)]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Twelve calls by two judges, calibrated by one rubric of two; they disagree about the last two."""
    folder = tmp_path_factory.mktemp("judged")
    with pytest.MonkeyPatch.context() as patch, judge_server() as first, judge_server() as second:
        patch.setenv("CONVOSCOPE_CACHE", str(folder / "cache"))
        first.answer = by_grade
        second.answer = lambda prompt, schema: by_grade(prompt, schema, lambda call: -2 if call >= "call-10" else 0)
        judges = [first.openai, second.openai.replace("tiny", "small")]
        metrics = "judged.faithfulness,judged.conciseness"
        judged_run(folder / "run", judges, GRADES, metrics=metrics, repeats=2)
        labels = write_labels(folder / "labels.jsonl", GRADES)
        least = ("--least-labels", 12)
        assert command("judge", "calibrate", folder / "run", "--labels", labels, *least).code == 0
        yield Run.open(folder / "run")


def test_a_judged_score_shows_what_it_rests_on(look: Look, judged: Run) -> None:
    view = look(judged)
    view.open("call-00")
    card = view.page.get_by_role("region", name="Judged")
    expect(card).to_contain_text("Keeps to what it knows1 of 3✕ fails, the mark is 2")
    # The deciding one is open, the other closed.
    expect(card.locator("details[open]")).to_have_count(1)
    expect(card.locator("details[open] .quo").first).to_contain_text(QUOTE)
    expect(card).to_contain_text("No source.")
    expect(card).to_contain_text("κ 1.00 (1.00 to 1.00), 12 labels")
    expect(card).to_contain_text("asked 2 times: 1, 1")
    # Two judges, each asked twice.
    expect(card.locator("details[open] .d")).to_have_count(4)
    expect(view.page.locator("mark")).to_have_text(QUOTE)
    card.locator("details[open] .quo").first.click()
    expect(view.page.locator(".tu.now")).to_contain_text(QUOTE)
    # What is not calibrated has neither verdict nor colour.
    short = card.locator("details").filter(has_text="Keeps it short")
    expect(short).to_contain_text("not calibrated")
    expect(short.locator("summary .bad, summary .good")).to_have_count(0)


def test_disagreements_have_a_filter(look: Look, judged: Run) -> None:
    view = look(judged, "#/calls")
    view.page.get_by_role("button", name="Judges disagree").click()
    view.counts("2 of 12 chats")
    assert sorted(view.ids) == ["call-10", "call-11"]
    view.reload()
    view.counts("2 of 12 chats")
    # Of 3 and 1 the median is 2.
    view.open("call-11")
    expect(view.page.get_by_role("region", name="Judged")).to_contain_text("but the panel disagrees: 1 to 3")


def test_figures_say_who_judged_them(look: Look, judged: Run) -> None:
    view = look(judged)
    # Of two judges the panel speaks.
    expect(view.main).to_contain_text("judged by a panel, κ ")
    expect(view.main).to_contain_text("2 judged figures, 1 calibrated: convoscope judge calibrate compares")
    view.show("metrics")
    row = view.page.locator("tr.r").filter(has_text="judged.faithfulness [openai/tiny").first
    expect(row.locator(".chip")).to_have_text("calibrated")
    row.click()
    expect(view.page.get_by_role("complementary")).to_contain_text("κ 1.00 (1.00 to 1.00), 12 labels")


def test_the_judges_have_a_screen(look: Look, judged: Run) -> None:
    view = look(judged, "#/metrics")
    view.page.get_by_role("link", name="Judges 2").click()
    table = view.page.get_by_role("region", name="Calibration").last
    tiny = table.locator("tr").filter(has_text="openai/tiny").filter(has_text="Faithfulness")
    # People fail grade 1, four of twelve calls; the judge says what they say.
    expect(tiny).to_contain_text("100 %")
    expect(tiny).to_contain_text("0 of 40 of 8")
    expect(tiny.locator("b.good")).to_have_text("✓ calibrated")
    short = table.locator("tr").filter(has_text="Conciseness")
    expect(short).to_have_count(3)
    expect(short.locator(".good, .bad")).to_have_count(0)
    expect(view.page.get_by_role("region", name="Disagreements").last).to_contain_text("openai/small 1, openai/tiny 3")
    # The page does not show where its maker keeps runs: the command says where it is called.
    expect(view.main).to_contain_text("convoscope judge label run, in the folder that holds the run")
    view.page.get_by_role("link", name="call-11").first.click()
    expect(view.page.get_by_role("region", name="Judged")).to_be_visible()


@pytest.mark.parametrize(
    ("width", "height", "scheme"), [(1280, 900, "light"), (1280, 900, "dark"), (390, 844, "light")]
)
def test_it_fits_and_can_be_read(look: Look, judged: Run, width: int, height: int, scheme: Any) -> None:
    view = look(judged, "#/judges", width=width, height=height, scheme=scheme)
    expect(view.main).to_contain_text("1 of 2 judged figures can be relied on.")
    assert view.beyond() == []
    assert view.faint() == []
    for id in ("call-00", "call-11"):
        view.open(id)
        view.unfold()
        assert view.beyond() == []
        assert view.faint() == []


def test_what_a_judge_writes_stays_text(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    spells = list(dict.fromkeys(SPELLS))
    calls = [
        example("user: Hello?", f"assistant: {spell} said", id=f"call-{n}", outcome=Outcome(completed=False))
        for n, spell in enumerate(spells)
    ]

    def hostile(prompt: str, schema: dict[str, Any]) -> Any:
        answer = by_grade(prompt, schema)
        fault = {"rating": 1, "flagged": True, "quote": "said", "explanation": "".join(spells)}
        answer["dimensions"] = dict.fromkeys(answer["dimensions"], fault)
        return answer

    with judge_server() as server:
        server.answer = hostile
        run = convoscope.score(calls, judge=server.openai, metrics="judged.faithfulness", out=tmp_path / "r", workers=1)
    view = look(run)
    expect(view.main).to_contain_text("Judge openai/tiny, not calibrated, gives 1 of 3 (faithfulness): “")
    unharmed(view)
    view.show("judges")
    unharmed(view)
    for number, _ in enumerate(spells):
        view.open(f"call-{number}")
        view.unfold()
        unharmed(view)


def test_without_a_usable_answer_nothing_is_relied_on(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call, two rubrics, no answer on the scale: nothing to rely on, and nothing that a label could calibrate."""
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    call = example("user: Hello?", "assistant: Until six.", id="call-0")
    names = "judged.faithfulness,judged.conciseness"
    with judge_server() as server:
        server.answer = lambda prompt, schema: {"no": "verdict"}
        run = convoscope.score([call], judge=server.openai, metrics=names, out=tmp_path / "r", workers=1)
    view = look(run, "#/judges")
    line = "2 judged figures, none has a value: 2 of 2 questions without a usable answer."
    expect(view.main).to_contain_text(line)
    assert view.page.get_by_role("region", name="Worth labelling").count() == 0
    with pytest.raises(UsageError, match="has nothing to label"):
        choose_rows(run)
    view.open("call-0")
    scores = view.page.get_by_role("complementary", name="Scores")
    expect(scores).to_contain_text("No other score has a value")
