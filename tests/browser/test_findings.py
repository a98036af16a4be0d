"""What annotators found, as the page shows it: the panel of what was left open, and places in a conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from convoscope.runs.run import Run
from support.logs import chat, write_lines


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder: Path = tmp_path_factory.mktemp("annotated")
    logs = write_lines(
        folder / "chats.jsonl",
        chat("quiet", "Where are you?", "In Leeds."),
        chat("worst", "My invoice is wrong and I'm going to sue you.", "Someone will call you tomorrow."),
        chat("other", "I have a question about my invoice.", "Yes?"),
        chat("parcel", "When will my parcel be delivered?", "Tomorrow."),
        chat("solved", "I want to speak to a manager.", "It is done.", "Great, that works.", "Bye."),
        chat("<b>deutsch</b>", "Ich möchte mein Geld zurück und ich bin nicht froh.", "Das ist nicht möglich."),
    )
    metrics = ["unresolved_risks", "unowned_actions", "topics_found", "topic_unresolved", "risk_unresolved"]
    run = convoscope.score(logs, metrics=metrics, annotate="rules", out=folder / "run", workers=1)
    convoscope.write_page(run)
    return run


def test_the_panel_leads_to_the_calls(look: Look, annotated: Run) -> None:
    view = look(annotated, "#/breaks")
    panel = view.page.get_by_role("region", name="What was left open")
    # Of six, one is German and was not looked at; "worst" has a threat and a promise of somebody.
    expect(panel).to_contain_text("1 of 5 conversations that were looked at (of 6) with an unresolved risk")
    expect(panel).to_contain_text("Found by rules.")
    panel.get_by_text("Unresolved risks").click()
    expect(panel.get_by_role("row").filter(has_text="high")).to_contain_text("compliance")
    panel.get_by_role("link", name="worst").first.click()
    expect(view.page.get_by_role("article", name="worst")).to_be_visible()
    view.was_quiet()


def test_each_finding_stands_where_it_was_found(look: Look, annotated: Run) -> None:
    view = look(annotated, "#/call/worst")
    said = view.page.locator(".tu").filter(has_text="My invoice is wrong")
    expect(said.locator(".chip.bad")).to_contain_text("found by rules: risk compliance, high, unresolved")
    expect(said).to_contain_text("found by rules: topic billing")
    promise = view.page.locator(".tu").filter(has_text="Someone will call")
    expect(promise).to_contain_text("found by rules: action Call the customer, of unknown, due tomorrow")
    # The words that tell the first of them are marked.
    expect(said.locator("mark")).to_have_text("invoice")
    view.was_quiet()


def test_the_list_of_findings_jumps_to_their_places(look: Look, annotated: Run) -> None:
    view = look(annotated, "#/call/worst")
    found = view.page.get_by_role("region", name="Found by rules")
    found.get_by_role("listitem").filter(has_text="action Call the customer").get_by_role("button").click()
    expect(view.page.locator(".tu.now")).to_contain_text("Someone will call")
    view.was_quiet()


def test_a_risk_that_was_dealt_with_says_where(look: Look, annotated: Run) -> None:
    view = look(annotated, "#/call/solved")
    asked = view.page.locator(".tu").filter(has_text="speak to a manager")
    expect(asked).to_contain_text("resolved later")
    # The agent's "It is done." comes first, and is no cue of the rules; the user's answer is.
    content = view.page.locator(".tu").filter(has_text="that works")
    expect(content).to_contain_text("found by rules: resolves escalation")


def test_figures_are_grouped_by_topic(look: Look, annotated: Run) -> None:
    view = look(annotated, "#/metrics/semantic.topic_unresolved")
    panel = view.page.get_by_role("complementary")
    # Of two chats on billing one has an unresolved risk; the one on delivery has none.
    expect(panel.locator(".mult")).to_contain_text("billing50.0 %")
    expect(panel.locator(".mult")).to_contain_text("delivery0.0 %")
