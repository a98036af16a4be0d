"""The page of labels in the real browser: by keyboard from the first question to the file that calibrates a judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.given import SPELLS
from browser.looking import View
from browser.test_hostile import unharmed
from convoscope.analysis.calibration import calibrate_run
from convoscope.analysis.labelling import AT_RANDOM, DISAGREE, WAVER, SheetRow, choose_rows
from convoscope.analysis.run_labels import read_run_labels
from convoscope.errors import UsageError
from convoscope.metrics import example
from convoscope.report.label import write_sheet
from convoscope.runs.run import Run
from support.judge_server import JudgeServer, judge_server
from support.judged_items import FULL, item
from support.judged_runs import by_grade, judged_run

GRADES = [1 + index % 3 for index in range(12)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    with judge_server() as running:
        running.answer = by_grade
        yield running


def sheet(look: Look, run: Run, count: int, folder: Path, **window: Any) -> tuple[View, list[SheetRow]]:
    rows = choose_rows(run, count)
    return look(write_sheet(run, rows, folder).page, **window), rows


def saved(view: View, button: str, path: Path) -> Path:
    with view.page.expect_download() as download:
        view.page.get_by_role("button", name=button).click()
    download.value.save_as(path)
    assert view.heard().errors == []  # the file is no request to anywhere; the browser counts it as one
    return path


def test_labels_go_round(look: Look, server: JudgeServer, tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", server.openai, GRADES)
    view, rows = sheet(look, run, 12, tmp_path / "sheet")
    assert len(rows) == 12
    view.page.get_by_label("Your name").fill("Ines, =1+1")
    view.page.keyboard.press("Escape")
    expect(view.page.get_by_role("heading", level=1)).to_have_text(run.summary.by_key["judged.faithfulness"].question)
    # The first is rated one below what the judge says, or above; all others as the judge does.
    by_call = dict(zip((f"call-{index:02}" for index in range(12)), GRADES, strict=True))
    given = [by_call[row.conversation] for row in rows]
    given[0] = 2 if given[0] != 2 else 3
    view.page.keyboard.press("n")
    view.page.keyboard.type('a note, with "2" in it')
    view.page.keyboard.press("Escape")
    for rating in given:
        view.page.keyboard.press(str(rating))
    expect(view.page.get_by_role("heading", level=1)).to_have_text("12 of 12 labelled.")
    for button, name in (("Save CSV", "labels.csv"), ("Save JSON lines", "labels.jsonl")):
        labels = read_run_labels(saved(view, button, tmp_path / name))
        assert [(one.conversation, one.rating, one.rater) for one in labels.labels] == [
            (row.conversation, float(rating), "Ines, =1+1") for row, rating in zip(rows, given, strict=True)
        ]
        (found,) = calibrate_run(run, labels).judges
        assert (found.labels, found.accuracy) == (12, pytest.approx(11 / 12))


def test_turns_are_marked_and_rated(look: Look, server: JudgeServer, tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", server.openai, [1, 2], metrics="judged.conciseness")
    view, rows = sheet(look, run, 4, tmp_path / "sheet")
    marked = view.page.locator(".w1.rated .text")
    # Two calls of two turns in which the agent speaks: first the fee, then good bye.
    words = {"0": "Good evening. The fee is nine crowns.", "1": "Good bye."}
    turns = sorted({row.turn for row in rows})
    assert len(rows) == 4
    for row in rows:
        expect(marked).to_have_text(words[str(turns.index(row.turn))])
        view.page.keyboard.press("3")
    labels = read_run_labels(saved(view, "Save CSV", tmp_path / "labels.csv")).labels
    assert sorted((one.conversation, one.turn) for one in labels) == sorted(
        (row.conversation, row.turn) for row in rows
    )


def test_the_verdict_of_the_judge_is_hidden_until_a_label_is_given(
    look: Look, server: JudgeServer, tmp_path: Path
) -> None:
    run = judged_run(tmp_path / "run", server.openai, [1, 1, 1])
    view, _ = sheet(look, run, 3, tmp_path / "sheet")
    aside = view.page.get_by_role("complementary")
    expect(aside).to_contain_text("hidden until you have given your label")
    expect(aside).not_to_contain_text("openai/tiny")
    view.page.keyboard.press("3")
    expect(aside).to_contain_text("You: 3. The judge: openai/tiny 1.")
    view.page.keyboard.press("u")
    expect(view.page.locator("#content")).to_contain_text("0 of 3 labelled, this is number 1")
    expect(aside).not_to_contain_text("openai/tiny")
    view.page.keyboard.press("ArrowRight")
    view.page.keyboard.press("ArrowRight")
    view.page.keyboard.press("ArrowLeft")
    expect(view.page.locator("#content")).to_contain_text("this is number 2")
    # A digit that is not on the scale is no rating.
    view.page.keyboard.press("7")
    expect(view.page.locator("#content")).to_contain_text("0 of 3 labelled")
    # What was labelled is still there when the page is opened again.
    view.page.keyboard.press("2")
    view.reload()
    expect(view.page.locator("#content")).to_contain_text("1 of 3 labelled")


def test_an_item_is_shown_as_the_judge_sees_it(look: Look, server: JudgeServer, tmp_path: Path) -> None:
    """A score from 1 to 10: a 1 may be the beginning of ten, so it waits for Enter; of 9 nothing else begins."""
    server.answer = lambda prompt, schema: {"reasoning": "so", "quote": "", "score": 8}
    items = [item(f"item-{index}") for index in range(4)]
    run = convoscope.score(
        items, judge=server.openai, metrics="agent.task_progression", out=tmp_path / "run", workers=1
    )
    view, rows = sheet(look, run, 4, tmp_path / "sheet")
    words = view.page.get_by_role("region", name="What is rated")
    for field in ("agent_role", "agent_task", "agent_response", "system_prompt"):
        expect(words).to_contain_text(FULL[field])
    expect(view.page.get_by_role("complementary")).to_contain_text("9 and 10: fully.")
    assert view.faint() == []
    assert view.beyond() == []
    # The first gets 10, the second 1, the third 9; the fourth is left while its 1 may still go on.
    view.page.keyboard.press("1")
    expect(view.page.locator("#content")).to_contain_text("0 of 4 labelled, this is number 1")
    view.page.keyboard.press("5")  # no rating is 15
    view.page.keyboard.press("0")
    view.page.keyboard.press("1")
    view.page.keyboard.press("Enter")
    view.page.keyboard.press("9")
    view.page.keyboard.press("1")
    view.page.keyboard.press("ArrowLeft")
    expect(view.page.locator("#content")).to_contain_text("3 of 4 labelled, this is number 3")
    labels = read_run_labels(saved(view, "Save CSV", tmp_path / "labels.csv")).labels
    assert [(one.conversation, one.rating) for one in labels] == [
        (rows[0].conversation, 10.0),
        (rows[1].conversation, 1.0),
        (rows[2].conversation, 9.0),
    ]


def test_hostile_logs_stay_text(look: Look, server: JudgeServer, tmp_path: Path) -> None:
    calls = [
        example(f"user: {spell}", f"assistant: {spell}", id=spell, agent={"instructions": spell, "role": spell})
        for spell in dict.fromkeys(SPELLS)
    ]
    run = convoscope.score(calls, judge=server.openai, metrics="judged.faithfulness", out=tmp_path / "run", workers=1)
    view, rows = sheet(look, run, len(calls), tmp_path / "sheet")
    for row in rows:
        view.unfold()
        unharmed(view)
        assert view.page.locator(".w1 .text").last.evaluate("one => one.textContent") == row.conversation
        assert view.page.locator("aside .mono").first.evaluate("one => one.textContent") == row.conversation
        view.page.keyboard.press("2")
    labels = read_run_labels(saved(view, "Save CSV", tmp_path / "labels.csv")).labels
    assert {one.conversation for one in labels} == {row.conversation for row in rows}
    assert calibrate_run(run, read_run_labels(tmp_path / "labels.csv")).left_out == {}


@pytest.mark.parametrize(
    ("width", "height", "scheme"), [(1280, 900, "light"), (1280, 900, "dark"), (390, 844, "light")]
)
def test_it_fits_and_can_be_read(
    look: Look, server: JudgeServer, tmp_path: Path, width: int, height: int, scheme: Any
) -> None:
    run = judged_run(tmp_path / "run", server.openai, GRADES, metrics="judged.faithfulness,judged.conciseness")
    view, rows = sheet(look, run, 6, tmp_path / "sheet", width=width, height=height, scheme=scheme)
    for _ in rows:
        assert view.beyond() == []
        assert view.faint() == []
        view.page.keyboard.press("2")
    assert view.beyond() == []
    assert view.faint() == []


def test_what_is_worth_a_label(server: JudgeServer, tmp_path: Path) -> None:
    asked: dict[str, int] = {}

    def wavering(prompt: str, schema: Any) -> Any:
        def shift(id: str) -> int:
            asked[id] = asked.get(id, 0) + 1
            return -1 if id in ("call-01", "call-04") and asked[id] % 2 else 0

        return by_grade(prompt, schema, shift)

    def stricter(prompt: str, schema: Any) -> Any:
        return by_grade(prompt, schema, lambda call: -2 if call in ("call-02", "call-05") else 0)

    with judge_server() as other:
        server.answer, other.answer = wavering, stricter
        judges = [server.openai, other.openai.replace("tiny", "small")]
        run = judged_run(tmp_path / "run", judges, [1 + index % 3 for index in range(40)], repeats=2)
    rows = choose_rows(run, 9, seed=1)
    chosen = {row.conversation: row.chosen for row in rows}
    # A third of nine is drawn at random from all; the rest are the hard ones: two and two, as far as not drawn.
    hard = {"call-02": DISAGREE, "call-05": DISAGREE, "call-01": None, "call-04": None}
    assert len(rows) == 9
    assert hard.keys() <= chosen.keys()
    assert sum(reason == AT_RANDOM for reason in chosen.values()) == 9 - sum(chosen[call] != AT_RANDOM for call in hard)
    assert {chosen[call] for call in hard} <= {DISAGREE, WAVER, AT_RANDOM}
    assert choose_rows(run, 9, seed=1) == rows
    assert {row.conversation for row in choose_rows(run, 9, seed=2)} != {row.conversation for row in rows}
    # What was labelled is not asked for again.
    labelled = {(row.conversation, row.turn, row.rubric.name) for row in rows}
    again = choose_rows(run, 40, seed=1, without=labelled)
    assert len(again) == 31
    every = {(f"call-{index:02}", "", "faithfulness") for index in range(40)}
    with pytest.raises(UsageError, match="all judgements of the run are labelled"):
        choose_rows(run, 9, without=every)
    assert not labelled & {(row.conversation, row.turn, row.rubric.name) for row in again}
