"""The list: worst first, searched and filtered to exactly what the run's own tables hold."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.given import CHATS, asked
from convoscope.analysis.words import because_texts, key_text, lost_text, value_text
from convoscope.conversation import DIMENSIONS
from convoscope.runs.ranking import headlines, worst_and_broken
from convoscope.runs.run import Run

AT_ONCE = 100
EVERYBODY = 10_000
STATUSES = {"v": "measured", "u": "unmeasured", "n": "not_applicable", "e": "error"}


@cache
def order(run: Run) -> list[str]:
    return [one.conversation for several in worst_and_broken(run, EVERYBODY) for one in several]


def some(run: Run, condition: str, *values: object) -> list[str]:
    """Conversations of which SQL says so, worst first."""
    found = set(asked(run, f"SELECT conversation FROM {{conversations}} WHERE {condition}", *values))
    return [id for id in order(run) if id in found]


def scored(run: Run, condition: str, *values: object) -> list[str]:
    found = set(asked(run, f"SELECT conversation FROM {{conversation_scores}} WHERE {condition}", *values))
    return [id for id in order(run) if id in found]


@pytest.fixture(params=["examples", "shop"])
def run(request: pytest.FixtureRequest) -> Run:
    run: Run = request.getfixturevalue(request.param)
    return run


class TestOrder:
    def test_worst_first_as_the_terminal_has_it(self, look: Look, run: Run) -> None:
        view = look(run)
        view.lists(order(run)[:AT_ONCE])
        view.counts(run.summary.conversations)

    def test_every_place_has_its_reasons_in_the_same_words(self, look: Look, run: Run) -> None:
        rows = look(run).rows.evaluate_all(
            "all => all.map((row) => [...row.querySelectorAll('.why li')].map((one) => one.textContent))"
        )
        standings = convoscope.worst(run, AT_ONCE)
        told = [because_texts("", one.because, lost_text(one))[:2] for one in standings]
        wrong = [
            (standing.conversation, row, lines)
            for standing, row, lines in zip(standings, rows, told, strict=True)
            if lines and [line for line in row if not line.startswith("the integration broke")] != lines
        ]
        assert wrong == []

    def test_more_are_shown_when_asked_for(self, look: Look, shop: Run) -> None:
        view = look(shop)
        total = CHATS + 4
        for shown in (100, 200, total):
            view.lists(order(shop)[:shown])
            more = view.page.get_by_role("button", name="Show more")
            if shown < total:
                expect(more).to_have_text(f"Show more: {min(AT_ONCE, total - shown)} of {total - shown} left")
                more.click()
            else:
                expect(more).to_be_hidden()

    def test_a_new_filter_begins_at_the_top_again(self, look: Look, shop: Run) -> None:
        view = look(shop)
        view.page.get_by_role("button", name="Show more").click()
        expect(view.rows).to_have_count(200)
        view.choose("trial", "1")
        expect(view.rows).to_have_count(AT_ONCE)


class TestSearch:
    def test_by_id(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.search.fill("FERRY-11")
        view.lists([id for id in order(examples) if id.startswith("ferry-11")])

    def test_by_a_word_that_was_said(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.search.fill("Squeaks")
        view.lists(["bike-desk-031/trial-2"])
        expect(view.rows.locator("mark")).to_have_text("squeaks")
        expect(view.rows).to_contain_text("the rear brake squeaks")

    def test_by_words_across_what_was_heard_differently(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.search.fill("the rear break squeaks so add")  # as heard; the break is marked there as an insertion
        view.lists(["bike-desk-031/trial-2"])

    def test_by_a_tool_its_arguments_and_its_error(self, look: Look, examples: Run) -> None:
        view = look(examples)
        for words in ("get_part_price", "rear_brake_pads", "the price list did not answer"):
            view.search.fill(words)
            view.lists(["bike-desk-031/trial-2"])

    def test_by_a_dimension(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.search.fill("broken-teapot")
        view.lists(some(examples, "scenario_id = 'broken-teapot'"))

    def test_what_nobody_said_finds_nothing_and_says_so(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.search.fill("zeppelin")
        view.lists([])
        view.counts(0)

    def test_the_marked_letters_are_the_ones_that_were_sought(self, look: Look, shop: Run) -> None:
        view = look(shop)
        view.search.fill("needle")
        view.lists(["istanbul-call"])
        expect(view.rows.locator("mark")).to_have_text("needle")

    def test_typing_quickly_ends_with_what_was_typed_last(self, look: Look, shop: Run) -> None:
        view = look(shop)
        for word in ("question", "friday", "agent-1", "Question 0 of 12", "of 22"):
            view.search.fill("")
            view.search.press_sequentially(word)
        fresh = look(shop, "#find?" + urlencode({"text": "of 22"}))
        expect(fresh.said).not_to_contain_text("Searching")
        assert len(fresh.ids) >= 11  # of 22 and of 220 to 229
        view.lists(fresh.ids)
        view.page.wait_for_timeout(300)
        assert view.ids == fresh.ids
        assert view.said.inner_text() == fresh.said.inner_text()

    def test_a_filter_set_while_a_search_runs_counts_for_it(self, look: Look, shop: Run) -> None:
        view = look(shop)
        view.search.press_sequentially("friday")
        view.choose("trial", "1")
        fresh = look(shop, "#find?" + urlencode({"text": "friday", "by.trial": "1"}))
        expect(fresh.said).not_to_contain_text("Searching")
        view.lists(fresh.ids)
        assert set(view.ids) < set(some(shop, "trial = '1'"))

    def test_a_conversation_opened_right_after_typing_stays_open(self, look: Look, examples: Run) -> None:
        view = look(examples)
        first = order(examples)[0]
        view.page.evaluate(
            """() => {
              const search = document.querySelector("input[type=search]");
              search.value = "teapot";
              search.dispatchEvent(new InputEvent("input", { bubbles: true }));
              document.querySelector("#list a").click();
            }"""
        )
        view.shows(first)
        view.page.wait_for_timeout(400)
        assert view.address == f"#conversation={first}"
        view.reload()
        view.shows(first)


class TestFilters:
    def test_every_metric_with_every_status_as_the_tables_have_it(self, look: Look, run: Run) -> None:
        view = look(run)
        cases = [(one, code) for one in headlines(run.summary) for code in STATUSES]
        said = view.follow(["#find?" + urlencode({"metric": one.key, "status": code}) for one, code in cases])
        judges = "judge = '(computed)' OR metric = 'shop.judged'"
        columns = "[metric, variant, status, conversation]"
        rows = asked(run, f"SELECT DISTINCT {columns} FROM {{all_conversation_scores}} WHERE {judges}")
        counts = Counter((key_text(metric, variant), status) for metric, variant, status, _ in rows)
        wrong = [
            f"{one.key} {STATUSES[code]}: {counts[one.key, STATUSES[code]]}, but {words}"
            for (one, code), words in zip(cases, said, strict=True)
            if not words.startswith(f"{counts[one.key, STATUSES[code]]} conversation")
        ]
        assert wrong == []

    def test_every_value_of_every_dimension_as_the_tables_have_it(self, look: Look, examples: Run) -> None:
        view = look(examples)
        columns = ", ".join(f"['{name}', \"{name}\"]" for name in DIMENSIONS)
        rows = asked(examples, f"SELECT unnest([{columns}]) FROM {{conversations}}")
        counts = Counter((name, value) for name, value in rows if value is not None)
        offered = [name for name in DIMENSIONS if len([one for one, _ in counts if one == name]) > 1]
        for name in offered:
            choices = view.field(name).or_(view.field(name.replace("_", " "))).locator("option").all_text_contents()
            assert choices == ["any", *sorted(value for one, value in counts if one == name)]
        cases = [case for case in counts if case[0] in offered]
        said = view.follow(["#find?" + urlencode({f"by.{name}": value}) for name, value in cases])
        told = [f"{name} {value}: {words}" for (name, value), words in zip(cases, said, strict=True)]
        wrong = [text for case, text in zip(cases, told, strict=True) if f": {counts[case]} conversation" not in text]
        assert wrong == []

    def test_a_metric_puts_its_worst_first_and_says_the_value(self, look: Look, run: Run) -> None:
        view = look(run)
        for one in headlines(run.summary):
            if one.better == "neither" or not scored(run, "metric = ? AND status = 'measured'", one.metric):
                continue
            view.choose("Metric", one.key)
            view.choose("Status", "measured")
            direction = "" if one.better == "higher" else "DESC"
            rows = asked(
                run,
                "SELECT value FROM {conversation_scores} "
                f"WHERE {one.condition} AND status = 'measured' ORDER BY value {direction}",
            )
            told = [f"{one.key}: {value_text(value, one.unit)}" for value in rows][:AT_ONCE]
            expect(view.rows).to_have_count(len(told))
            assert view.rows.locator(".why li:first-child").all_inner_texts() == told

    def test_a_metric_that_broke(self, look: Look, shop: Run) -> None:
        view = look(shop)
        view.choose("Status", "error")
        view.lists(scored(shop, "status = 'error'"))
        view.choose("Metric", "shop.fragile")
        view.lists(scored(shop, "metric = 'shop.fragile' AND status = 'error'"))
        expect(view.rows.first).to_contain_text("shop.fragile: error: metric raised")

    def test_an_integration_that_broke(self, look: Look, shop: Run) -> None:
        view = look(shop)
        view.choose("Status", "integration broke")
        view.lists(["broken-call"])

    def test_a_dimension_with_many_values_is_typed(self, look: Look, shop: Run) -> None:
        view = look(shop)
        view.field("domain").fill("D22")
        view.lists(some(shop, "domain LIKE 'd22%'"))
        view.counts(11)  # d22 and d220 to d229

    def test_together_they_narrow(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.choose("agent", "clover")
        view.choose("flow", "damaged_parcel")
        clover = some(examples, "agent = 'clover' AND flow = 'damaged_parcel'")
        view.lists(clover)
        view.search.fill("sencha")
        view.lists(["chat-2111"])
        view.choose("Status", "unmeasured")
        view.lists([id for id in ["chat-2111"] if id in scored(examples, "status = 'unmeasured'")])

    def test_clear_brings_everything_back(self, look: Look, examples: Run) -> None:
        view = look(examples, "#find?" + urlencode({"text": "tea", "by.agent": "clover", "status": "v"}))
        view.page.get_by_role("button", name="Clear").click()
        view.lists(order(examples))
        expect(view.search).to_have_value("")
        for label in ("Metric", "Status", "agent"):
            expect(view.field(label)).to_have_value("")
        assert view.address in ("", "#conversations")


class TestAddress:
    def test_filters_stand_in_the_address_and_come_back_with_it(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.choose("Metric", "tools.success")
        view.choose("Status", "measured")
        view.choose("agent", "clover")
        view.search.fill('teapot & "mug" + 100% #1?')
        view.lists([])
        view.search.fill("teapot")
        expect(view.rows).not_to_have_count(0)
        expect(view.said).not_to_contain_text("Searching")
        view.page.wait_for_function("location.hash.includes('text=teapot')")
        ids, said = view.ids, view.said.inner_text()
        other = look(examples, view.address)
        view.reload()
        for one in (view, other):
            one.lists(ids)
            assert one.said.inner_text() == said
            expect(one.search).to_have_value("teapot")
            for label, chosen in (("agent", "clover"), ("Status", "measured"), ("Metric", "tools.success")):
                assert one.field(label).evaluate("one => one.selectedOptions[0].text") == chosen

    def test_odd_letters_survive(self, look: Look, examples: Run) -> None:
        view = look(examples)
        odd = '100% + "mug" & #1? ü=/\\'
        view.search.fill(odd)
        view.lists([])
        view.page.wait_for_function("location.hash.includes('text=')")
        view.reload()
        expect(view.search).to_have_value(odd)

    def test_the_edges_of_a_bar_are_said_and_can_be_let_go(self, look: Look, examples: Run) -> None:
        view = look(examples, "#find?metric=tools.success&low=0&high=0.5&last=0")
        view.counts(len(scored(examples, "metric = 'tools.success' AND value >= 0 AND value < 0.5")))
        expect(view.said).to_contain_text("tools.success from 0.0 % to 50.0 %")
        view.choose("Metric", "any")
        view.counts(24)
        expect(view.said).not_to_contain_text("from 0.0 %")

    MANGLED = (
        "#nowhere",
        "#find?",
        "#find?metric=nothing&status=nothing",
        "#find?metric=timing.response_latency&low=1",
        "#find?metric=timing.response_latency&high=1",
        "#find?metric=tools.success&low=x&high=y",
        "#find?by.flow=nothing&by.nothing=x",
        "#conversation=",
        "#conversation=%E0%A4%A",
        "#conversation=chat-2101&turn=999",
        "#conversation=chat-2101&turn=%22%3E",
        "#__proto__",
        "#search",
        "#story-0",
    )

    def test_an_address_that_somebody_mangled_breaks_nothing(self, look: Look, examples: Run) -> None:
        view = look(examples)
        faults = {}
        for address in self.MANGLED:
            view.page.goto("about:blank")
            view.page.goto(view.url + address)
            view.page.wait_for_timeout(100)
            shown = view.page.get_by_role("main").inner_text()
            wrong = re.findall(r"NaN|undefined|null|\[object", shown) + view.heard().errors
            if wrong or view.page.locator("html[data-ready]").count() == 0:
                faults[address] = wrong
        assert faults == {}
