"""The page opens from disk, asks nothing of anybody, and answers three questions with the run's own figures."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.given import CHATS, PARTS, asked
from browser.looking import Cells, View, cells
from convoscope.analysis.targets import observed, run_checks, target_text
from convoscope.analysis.words import (
    coverage_text,
    interval_text,
    name_text,
    points_text,
    reason_text,
    reasons_text,
    value_text,
)
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.statistics.summary import Figure

SILENT = {"examples": {"answer.accuracy@choice"}, "<img src=x onerror=window.pwned=1>": {"timing.response_latency"}}
"""What could be measured nowhere, by the name of the run: no example is multiple choice, and spells have no clock."""


def figures(view: View) -> list[Cells]:
    return cells(view.section("Metrics").get_by_role("table"))


class TestOpening:
    """`look` itself fails a test whose page logs, throws, asks the network, breaks its policy or opens a dialog."""

    def test_title_says_the_run_and_how_much_is_in_it(self, look: Look, examples: Run) -> None:
        assert look(examples).page.title() == "examples: 24 conversations · Convoscope"

    def test_three_questions_come_first(self, look: Look, examples: Run) -> None:
        headings = look(examples).section("24 conversations in examples").get_by_role("heading")
        assert headings.all_inner_texts() == [
            "24 conversations in examples",
            "How good?",
            "How sure?",
            "Where does it break?",
        ]

    def test_the_policy_allows_the_pages_own_code_and_nothing_else(self, look: Look, examples: Run) -> None:
        policy = look(examples).page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
        assert policy is not None
        allowed = dict(one.split(" ", 1) for one in policy.split("; "))
        assert allowed["default-src"] == "'none'"
        assert allowed["script-src"].startswith("'sha256-")
        assert "unsafe" not in policy
        assert "http" not in policy

    def test_a_second_opening_is_the_same(self, look: Look, examples: Run) -> None:
        view = look(examples)
        first = view.page.locator("body").aria_snapshot()
        view.reload()
        assert view.page.locator("body").aria_snapshot() == first

    def test_worst_conversations_are_a_click_away(self, look: Look, examples: Run) -> None:
        view = look(examples)
        first = convoscope.worst(examples, 1)[0].conversation
        view.section("24 conversations in examples").get_by_role("link", name=first).click()
        view.shows(first)


class TestFigures:
    @pytest.fixture(params=["examples", "shop", "hostile"])
    def run(self, request: pytest.FixtureRequest) -> Run:
        run: Run = request.getfixturevalue(request.param)
        return run

    def test_every_figure_of_the_summary_stands_in_the_table_as_the_terminal_says_it(
        self, look: Look, run: Run
    ) -> None:
        summary = msgspec.json.decode((run.folder / "summary.json").read_bytes(), type=Summary)
        expected = [told(figure, summary) for figure in summary.figures if figure.key not in folded(run)]
        assert [shown(row) for row in figures(look(run))] == expected

    def test_a_question_stands_with_every_headline(self, look: Look, run: Run) -> None:
        text = look(run).section("Metrics").inner_text()
        missing = {one.metric for one in run.summary.declared if plain(one.question) not in plain(text)}
        assert missing == folded(run)

    def test_parts_of_metrics_open_with_a_click(self, look: Look, examples: Run) -> None:
        view = look(examples)
        section = view.section("Metrics")
        section.get_by_text("Parts of these metrics").click()
        expect(section.get_by_role("table")).to_have_count(2)
        parts = cells(section.get_by_role("table").nth(1))
        summary = examples.summary
        expected = [told(figure, summary) for figure in summary.figures if figure.metric.startswith(PARTS)]
        assert [shown(row) for row in parts] == expected
        assert len(expected) == 4

    def test_metrics_that_had_nothing_to_measure_are_named_with_the_reason(self, look: Look, hostile: Run) -> None:
        section = look(hostile).section("Metrics")
        expect(section).to_contain_text("Nothing to measure here for:")
        assert section.get_by_role("listitem").all_inner_texts() == ["timing.response_latency (no clock)"]

    def test_what_has_no_value_has_a_dot_and_a_reason(self, look: Look, hostile: Run) -> None:
        row = next(row for row in figures(look(hostile)) if row.head == "test.raises")
        assert row.by_column["value"] == "· metric raised"
        assert row.by_column["95 % interval"] == "·"
        assert row.by_column["not measured, and why"] == "44 metric raised"


def folded(run: Run) -> set[str]:
    """Metrics without a row: parts of another, and one that had nothing to measure."""
    names = {declared.name for declared in run.summary.declared}
    return {name for name in names if name.startswith(PARTS)} | SILENT.get(run.name, set())


def plain(text: str) -> str:
    """Blanks are as HTML has them, and control characters are not told apart."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def told(figure: Figure, summary: Summary) -> list[str]:
    value = value_text(figure.value, figure.unit)
    if figure.value is None:
        value += f" {reason_text(figure.reason)}"
    if figure.ten is not None:
        value += f" of 10: {points_text(figure.ten, summary.by_key[figure.key])}"
    better = {"higher": "higher", "lower": "lower"}.get(figure.better, "")
    facts = [
        name_text(figure),
        value,
        interval_text(figure),
        f"{figure.n:,}",
        coverage_text(figure, observed(figure, summary)),
        better,
    ]
    return [plain(one) for one in [*facts, reasons_text(figure, observed(figure, summary))]]


def shown(row: Cells) -> list[str]:
    columns = ("value", "95 % interval", "n", "coverage", "better", "not measured, and why")
    return [plain(one) for one in [row.head, *(row.by_column[column] for column in columns)]]


class TestTargets:
    TARGETS = ("tools.success >= 60%", "response_latency p95 < 1 s", "answer.f1 > 0.4")

    @pytest.fixture
    def held(self, examples: Run, tmp_path: Path) -> Path:
        return convoscope.write_page(examples, tmp_path / "held.html", targets=self.TARGETS).path

    def test_without_a_target_there_is_no_column_and_no_verdict(self, look: Look, examples: Run) -> None:
        view = look(examples)
        assert "target" not in figures(view)[0].by_column
        expect(view.page.get_by_text("No target is declared.")).to_be_visible()

    def test_targets_stand_with_their_figures(self, look: Look, examples: Run, held: Path) -> None:
        rows = {row.head: row.by_column["target"] for row in figures(look(held))}
        signs = {"met": "✓", "missed": "✗", "undetermined": "?"}
        checks = run_checks(examples, self.TARGETS)
        assert len(checks) == 3
        for one in checks:
            target = target_text(one.target, one.figure.unit)
            words = f"{target} {signs[one.verdict.outcome]} {one.verdict.words}"
            assert rows.pop(name_text(one.figure)).replace(",", "") == words.replace(",", "")
        assert set(rows.values()) == {""}

    def test_verdicts_answer_how_good(self, look: Look, examples: Run, held: Path) -> None:
        view = look(held)
        outcomes = [one.verdict.outcome for one in run_checks(examples, self.TARGETS)]
        assert outcomes == ["met", "missed", "met"]
        summary = view.section("24 conversations in examples")
        expect(summary.get_by_text("2 of 3 targets met")).to_be_visible()
        verdicts = [text.split()[1] for text in summary.locator("li .verdict").all_inner_texts()]
        assert sorted(verdicts) == sorted(outcomes)


class TestGroups:
    def test_flow_agent_and_scenario_are_there(self, look: Look, examples: Run) -> None:
        groups = look(examples).section("Groups")
        titles = [one.replace("_", " ").rpartition(" ")[0] for one in groups.locator("summary").all_inner_texts()]
        titles = [one.rpartition(" ")[0] for one in titles]  # "by flow 5 groups"
        assert set(titles) >= {"by flow", "by flow and agent", "by agent", "by scenario id"}

    def test_small_ones_are_counted(self, look: Look, forty: Run) -> None:
        groups = look(forty).section("Groups")
        # Every second of the forty has one of seven scenarios: two or three conversations each.
        expect(groups).to_contain_text(
            "By scenario_id: 7 groups of fewer than 5 (20 conversations) left out; --by scenario_id has them."
        )
        assert not any("scenario" in title for title in groups.locator("summary").all_inner_texts())

    @pytest.mark.parametrize("name", ["examples", "shop"])
    def test_the_link_of_every_group_lists_exactly_its_conversations(
        self, look: Look, request: pytest.FixtureRequest, name: str
    ) -> None:
        run: Run = request.getfixturevalue(name)
        view = look(run)
        view.unfold()
        links: list[list[str]] = (
            view.section("Groups")
            .locator("tbody tr")
            .evaluate_all(
                "rows => rows.map((row) => [row.querySelector('a').getAttribute('href'), row.cells[1].textContent])"
            )
        )
        sizes = [one.conversations for one in run.summary.groups]
        # A dimension of hundreds of values shows fifty of them.
        assert sorted(int(count.replace(",", "")) for _, count in links)[-10:] == sorted(sizes)[-10:]
        said = view.follow([link for link, _ in links])
        wrong = [
            f"{link}: {count} in the group, but {words}"
            for (link, count), words in zip(links, said, strict=True)
            if not words.startswith(f"{count} conversation")
        ]
        assert wrong == []

    def test_a_click_on_a_group_shows_its_conversations_worst_first(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.section("Groups").get_by_role("link", name="clover", exact=True).click()
        members = asked(examples, "SELECT conversation FROM {conversations} WHERE agent = 'clover'")
        view.lists([one.conversation for one in convoscope.worst(examples, 99) if one.conversation in members])
        expect(view.rows.first).to_be_in_viewport()

    def test_the_same_group_can_be_chosen_again(self, look: Look, examples: Run) -> None:
        view = look(examples)
        link = view.section("Groups").get_by_role("link", name="clover", exact=True)
        link.click()
        expect(view.rows.first).to_be_in_viewport()
        link.scroll_into_view_if_needed()
        link.click()
        expect(view.rows.first).to_be_in_viewport()


class TestReadingAndReceipt:
    def test_what_could_not_be_read_is_shown_with_file_and_line(self, look: Look, shop: Run) -> None:
        view = look(shop)
        told = view.section(f"{CHATS + 4} conversations in shop run").get_by_text("2 problems in reading").first
        expect(told).to_contain_text("what could not be read is in no number")
        rows = view.section("What reading did").get_by_role("table").first.locator("tbody tr")
        assert rows.locator("td:first-child").all_inner_texts() == ["chats.jsonl:231", "chats.jsonl:232"]
        problems = shop.read_report.problems
        for row, problem in zip(rows.all(), problems, strict=True):
            expect(row).to_contain_text(problem.message)
            expect(row).to_contain_text(problem.hint)

    def test_the_link_in_the_banner_leads_there(self, look: Look, shop: Run) -> None:
        view = look(shop)
        view.page.get_by_role("link", name="see which").click()
        expect(view.section("What reading did").get_by_role("heading", name="Not read")).to_be_in_viewport()

    def test_repairs_are_counted(self, look: Look, examples: Run) -> None:
        reading = look(examples).section("What reading did")
        expect(reading.get_by_role("row", name="tool arguments kept as text 1 ")).to_be_visible()

    def test_the_receipt_has_the_hashes_of_receipt_json(self, look: Look, examples: Run) -> None:
        receipt = json.loads((examples.folder / "receipt.json").read_text())
        view = look(examples)
        view.unfold()
        section = view.section("Receipt")
        for name, value in (("run", "run_id"), ("input", "input_hash"), ("settings", "config_hash")):
            assert (
                section.get_by_role("row")
                .filter(has=view.page.get_by_role("rowheader", name=name, exact=True))
                .locator("td")
                .first.inner_text()
                == receipt[value]
            )
        inputs = section.get_by_role("table").filter(has=view.page.get_by_role("columnheader", name="sha256"))
        assert [row.by_column["sha256"] for row in cells(inputs)] == [one["sha256"] for one in receipt["inputs"]]

    def test_a_valid_run_has_no_banner(self, look: Look, examples: Run) -> None:
        assert look(examples).page.get_by_role("alert").count() == 0

    def test_an_invalid_run_says_so_before_all_numbers(self, look: Look, forty: Run, tmp_path: Path) -> None:
        run = convoscope.score(list(forty.conversations())[:5], out=tmp_path / "spoiled", workers=1)
        run.invalidate("the <b>clock</b> of the recorder was wrong", superseded_by="monday-2")
        convoscope.write_page(run)
        view = look(run)
        alert = view.page.get_by_role("alert")
        expect(alert).to_contain_text("This run is marked invalid")
        expect(alert).to_contain_text("the <b>clock</b> of the recorder was wrong. Superseded by monday-2.")
        expect(alert).to_be_in_viewport()
        above = view.page.get_by_role("heading", name="How good?")
        assert alert.bounding_box()["y"] < above.bounding_box()["y"]  # type: ignore[index]
