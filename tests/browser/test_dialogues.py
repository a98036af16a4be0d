"""Dialogue states on the page: what goes wrong where, and figures by the component that they test."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from convoscope.runs.run import Run
from support.logs import EXAMPLES, write_lines

DIALOGUES = EXAMPLES / "multiwoz" / "dialogues-2.1.json"
"""One dialogue of four turns about a hotel, BAY0001.json."""
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def bay(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The first turn is predicted, with a hostile area; the other three are missing."""
    folder = tmp_path_factory.mktemp("bay")
    slots = {"hotel": {"area": HOSTILE}}
    record = {"dialogue_id": "BAY0001", "turn_id": 0, "predicted_domain": "taxi", "predicted_slots": slots}
    predictions = write_lines(folder / "predictions.jsonl", record)
    metrics = ["dialogue.jga", "dialogue.domain_accuracy", "dialogue.slot_accuracy", "dialogue.slot_f1"]
    metrics += ["conversation.turns"]
    by = [["slot"]]
    return convoscope.score([DIALOGUES, predictions], metrics=metrics, out=folder / "run", workers=1, by=by)


class TestWhereStatesGoWrong:
    def test_it_counts_turns_and_slots(self, look: Look, bay: Run) -> None:
        panel = look(bay, "#/breaks").page.get_by_role("region", name="Where dialogue states go wrong")
        # The first has a wrong area and no parking, the others have nothing at all.
        expect(panel).to_contain_text("4 turns of 4 with a wrong state, in 1 dialogue.")
        panel.get_by_text("Slots by kind of error").click()
        area = panel.get_by_role("region", name="Slots by kind of error").get_by_role("row").filter(has_text="area")
        # Missing in turns 2 to 4, wrong in turn 1.
        expect(area.get_by_role("cell")).to_have_text(["hotel-area", "3", "1", "0", "0", "4"])

    def test_domains_are_taken_for_others(self, look: Look, bay: Run) -> None:
        panel = look(bay, "#/breaks").page.get_by_role("region", name="Where dialogue states go wrong")
        panel.get_by_text("Domains taken for others").click()
        rows = panel.get_by_role("region", name="Domains taken for others").get_by_role("row")
        expect(rows.nth(1).get_by_role("cell").nth(0)).to_have_text("hotel")

    def test_an_example_leads_to_its_turn(self, look: Look, bay: Run) -> None:
        view = look(bay, "#/breaks")
        panel = view.page.get_by_role("region", name="Where dialogue states go wrong")
        panel.get_by_text("The longest errors of each slot").click()
        table = panel.get_by_role("region", name="The longest errors of each slot")
        name = table.get_by_role("row").filter(has_text="hotel-name").first
        name.get_by_role("link").click()
        # The name is known from the second turn on, which is what the user says third: event 2.
        assert view.address.endswith("#/call/BAY0001.json/event-2")
        expect(view.page.locator(".tu.now")).to_have_count(1)
        expect(view.page.locator(".tu.now .wh")).to_have_text("User")

    def test_what_was_predicted_is_text(self, look: Look, bay: Run) -> None:
        view = look(bay, "#/breaks")
        panel = view.page.get_by_role("region", name="Where dialogue states go wrong")
        panel.get_by_text("The longest errors of each slot").click()
        expect(panel).to_contain_text(HOSTILE)
        assert view.page.locator("img").count() == 0

    def test_without_dialogue_metrics_there_is_none(self, look: Look, forty: Run) -> None:
        view = look(forty, "#/breaks")
        expect(view.page.get_by_role("region", name="Where dialogue states go wrong")).to_have_count(0)


class TestComponents:
    def test_figures_stand_under_the_component_that_they_test(self, look: Look, bay: Run) -> None:
        view = look(bay, "#/metrics")
        families = view.page.locator("tr.fam b")
        # Dialogue comes first, as it matters most; within it the way of a turn through the system counts.
        assert families.all_text_contents()[:3] == ["Dialogue: triage", "Dialogue: memory", "Conversation"]

    def test_a_figure_is_shown_by_slot(self, look: Look, bay: Run) -> None:
        view = look(bay, "#/metrics/dialogue.slot_f1")
        groups = view.page.get_by_role("complementary").locator(".mult")
        expect(groups).to_contain_text("hotel-area")
        assert groups.get_by_role("link").count() == 0  # the list of conversations knows no slots
