"""One conversation: everything the log says of it, where it happened, and the ways in, out and onward."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

import convoscope
from browser.conftest import Look
from browser.looking import View
from convoscope.analysis.words import because_texts, lost_text
from convoscope.runs.run import Run

CALL = "bike-desk-031/trial-2"
"""A recorded call with three texts for most of what was said, overlaps, tools, and times of three clocks."""
FLOW = "vet-0907"
"""A chat that walks through the states of a flow."""
CUT = "chat-2109"
"""A chat whose tool arguments break off."""


@pytest.fixture(scope="module")
def opened(browser: Browser, examples: Run) -> Iterator[View]:
    view = View(browser, examples.folder / "report.html")
    view.open(CALL)
    yield view
    view.close()


@pytest.fixture
def call(opened: View) -> Iterator[View]:
    """The call, for tests that only read."""
    yield opened
    opened.was_quiet()


@pytest.fixture
def own_call(look: Look, examples: Run) -> View:
    """The call, in a window of the test's own."""
    view = look(examples)
    view.open(CALL)
    return view


def event(view: View, text: str) -> Locator:
    """The innermost thing that happened and says so."""
    return view.article.locator("[id^=event-]").filter(has_text=text).first


def step(view: View, key: str) -> Locator:
    """The link that a key stands for."""
    return view.article.locator(f"[aria-keyshortcuts={key}]")


def score(view: View, metric: str) -> Locator:
    table = view.article.get_by_role("complementary").get_by_role("table").first
    return table.get_by_role("row").filter(has=view.page.get_by_role("rowheader", name=metric, exact=True))


class TestWaysIn:
    def test_by_a_click_in_the_list(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.rows.get_by_role("link").filter(has_text=CALL).click()
        view.shows(CALL)
        assert view.address == "#conversation=bike-desk-031%2Ftrial-2"
        assert view.page.title() == f"{CALL} · examples"
        expect(view.section("Metrics")).to_be_hidden()

    def test_by_its_address(self, look: Look, examples: Run) -> None:
        look(examples, "#conversation=bike-desk-031%2Ftrial-2").shows(CALL)

    def test_by_the_address_of_a_turn(self, look: Look, shop: Run) -> None:
        view = look(shop, "#conversation=long-call&turn=50")
        view.shows("long-call")
        expect(view.turn(50).get_by_role("heading")).to_be_in_viewport()
        bar = view.page.get_by_role("banner").bounding_box()
        title = view.turn(50).get_by_role("heading").bounding_box()
        assert bar is not None
        assert title is not None
        assert bar["y"] + bar["height"] <= title["y"] < 450  # below the bar, in the upper half of the window

    def test_a_turn_has_a_link_to_itself(self, own_call: View) -> None:
        own_call.turn(4).get_by_role("link", name="Turn 4").click()
        assert own_call.address == "#conversation=bike-desk-031%2Ftrial-2&turn=4"
        own_call.shows(CALL)
        expect(own_call.turn(4).get_by_role("heading")).to_be_in_viewport()

    def test_an_unknown_id_says_so(self, look: Look, examples: Run) -> None:
        view = look(examples, "#conversation=nobody%20%3Cb%3E")
        expect(view.said).to_have_text("The conversation nobody <b> is not listed in this page.")
        expect(view.said).to_be_in_viewport()
        assert len(view.ids) == 24

    def test_every_conversation_opens(self, look: Look, examples: Run) -> None:
        view = look(examples)
        for one in convoscope.worst(examples, 99):
            view.open(one.conversation)
            expect(view.article.get_by_role("heading", name="Scores")).to_be_attached()
            because = view.article.get_by_role("list").first.get_by_role("listitem").all_inner_texts()
            expected = because_texts("", one.because, lost_text(one))
            assert because[: len(expected)] == expected

    def test_one_without_an_event_says_so(self, look: Look, shop: Run) -> None:
        view = look(shop, "#conversation=silent-call")
        expect(view.article).to_contain_text("The log holds no event of this conversation.")

    def test_one_whose_integration_broke_says_so_and_why(self, look: Look, shop: Run) -> None:
        view = look(shop, "#conversation=broken-call")
        expect(view.article.get_by_text("integration broke").first).to_be_in_viewport()
        expect(view.article).to_contain_text("the telephone line broke")


class TestWaysOut:
    def test_the_link_back_leads_to_the_list_as_it_was(self, look: Look, examples: Run) -> None:
        view = look(examples, "#find?by.agent=clover")
        before = view.ids
        view.rows.get_by_role("link").first.click()
        view.shows(before[0])
        view.article.get_by_role("link", name="All conversations").click()
        expect(view.article).to_be_hidden()
        view.lists(before)
        assert view.address == "#find?by.agent=clover"

    def test_so_does_escape(self, look: Look, examples: Run) -> None:
        view = look(examples, "#find?by.agent=clover")
        view.rows.get_by_role("link").first.click()
        view.shows(view.ids[0])
        view.page.keyboard.press("Escape")
        expect(view.article).to_be_hidden()
        view.counts(6)

    def test_so_does_the_browsers_own_button(self, look: Look, examples: Run) -> None:
        view = look(examples, "#find?by.agent=clover")
        first, second = view.ids[:2]
        view.rows.get_by_role("link").first.click()
        view.shows(first)
        view.page.keyboard.press("j")
        view.shows(second)
        view.page.go_back()
        view.shows(first)
        view.page.go_back()
        expect(view.article).to_be_hidden()
        view.counts(6)
        view.page.go_forward()
        view.shows(first)

    def test_back_leads_to_the_place_in_the_list_that_was_left(self, look: Look, shop: Run) -> None:
        view = look(shop)
        row = view.rows.nth(60)
        row.scroll_into_view_if_needed()
        row.get_by_role("link").click()
        view.shows(view.ids[60])
        view.page.go_back()
        expect(view.article).to_be_hidden()
        expect(row).to_be_in_viewport()

    def test_neighbours_are_those_of_the_list(self, look: Look, examples: Run) -> None:
        view = look(examples, "#find?by.agent=clover")
        ids = view.ids
        view.rows.get_by_role("link").nth(1).click()
        view.shows(ids[1])
        step(view, "j").click()
        view.shows(ids[2])
        step(view, "k").click()
        view.shows(ids[1])
        for key, id in (("j", ids[2]), ("j", ids[3]), ("k", ids[2]), ("k", ids[1]), ("k", ids[0])):
            view.page.keyboard.press(key)
            view.shows(id)

    def test_there_is_nothing_before_the_first_and_after_the_last(self, look: Look, examples: Run) -> None:
        view = look(examples, "#find?by.agent=clover")
        ids = view.ids
        for id, key in ((ids[0], "k"), (ids[-1], "j")):
            view.open(id)
            assert step(view, key).get_attribute("aria-disabled") == "true"
            assert step(view, key).get_attribute("href") is None
            view.page.keyboard.press(key)
            view.shows(id)

    def test_slash_leads_to_the_search(self, own_call: View) -> None:
        own_call.page.keyboard.press("/")
        expect(own_call.search).to_be_focused()
        expect(own_call.search).to_have_value("")
        expect(own_call.article).to_be_hidden()

    def test_after_slash_the_same_conversation_can_be_opened_again(self, own_call: View) -> None:
        own_call.page.keyboard.press("/")
        expect(own_call.search).to_be_focused()
        own_call.rows.get_by_role("link").filter(has_text=CALL).click()
        own_call.shows(CALL)

    def test_letters_in_the_search_are_letters(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.search.press_sequentially("j/k")
        expect(view.search).to_have_value("j/k")
        expect(view.article).to_be_hidden()

    def test_keys_of_the_browser_are_left_alone(self, own_call: View) -> None:
        own_call.page.keyboard.press("Control+j")
        own_call.shows(CALL)


class TestTexts:
    def test_what_was_meant_said_and_heard_stand_together_with_their_differences(self, call: View) -> None:
        said = call.turn(2).locator("[id^=event-]").filter(has_text="It's KW714.")
        readings = said.locator("p")
        expect(readings).to_have_count(3)
        for kind in ("intended", "spoken", "heard, 81 % sure"):
            expect(said.get_by_text(kind, exact=True)).to_be_visible()
        for place, gone, came in ((1, "KW714.", "K W, seven one four."), (2, "seven one four.", "7 1 4")):
            assert "".join(readings.nth(place).get_by_role("deletion").all_inner_texts()).strip() == gone
            assert "".join(readings.nth(place).get_by_role("insertion").all_inner_texts()).strip() == came

    def test_differences_are_told_by_more_than_colour(self, call: View) -> None:
        for role, mark in (("insertion", "border-bottom-style"), ("deletion", "text-decoration-line")):
            style = call.article.get_by_role(role).first.evaluate(  # type: ignore[arg-type]
                "(one, name) => getComputedStyle(one).getPropertyValue(name)", mark
            )
            assert style in ("solid", "line-through")

    def test_equal_texts_stand_once(self, call: View) -> None:
        said = call.turn(0).locator("[id^=event-]")
        expect(said.get_by_text("intended and spoken")).to_be_visible()
        assert [text.strip() for text in said.locator("p").all_inner_texts()].count(
            "Kestrel Cycle Works, service desk. What can I do for you?"
        ) == 1

    def test_who_spoke_and_when_stands_with_it(self, call: View) -> None:
        head = call.turn(1).locator("[id^=event-]").first.inner_text().replace("\n", " ")
        assert head.startswith("Tunde Oyelaran user 4.2 s")  # 4.6 s, and the call begins at 0.4 s

    def test_who_was_cut_off_is_marked(self, call: View) -> None:
        said = call.turn(2).locator("[id^=event-]").filter(has_text="down for Tuesday")
        expect(said.get_by_text("cut off", exact=True)).to_be_visible()
        expect(said.get_by_role("definition")).to_have_text("Tunde Oyelaran")

    def test_sound_without_words_is_told(self, call: View) -> None:
        expect(event(call, "no words in the log")).to_contain_text("a door in the background")


class TestMachinery:
    def test_a_tool_call_shows_arguments_result_and_time(self, call: View) -> None:
        told = facts(event(call, "reschedule_job"))
        assert told["arguments"] == '{"job_number":"KW714","slot":"2026-01-15T08:30","add_parts":["rear_brake_pads"]}'
        assert told["result"] == '{"status":"ok","price":113}'
        assert told["success"] == "yes"
        assert told["took"].startswith("1 s")

    def test_a_failed_tool_is_marked_with_its_error(self, call: View) -> None:
        failed = event(call, "the price list did not answer within 1 s")
        expect(failed.get_by_text("failed", exact=True)).to_be_visible()
        assert facts(failed)["success"] == "no"
        assert call.article.get_by_text("failed", exact=True).count() == 1

    def test_states_guards_and_slots_of_a_flow(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.open(FLOW)
        heads = [" ".join(text.split()) for text in view.article.locator("[id^=event-] .head").all_inner_texts()]
        assert heads[0] == "enters state greet 0.0 s"
        assert "fills slot species 6.2 s" in heads
        assert "guard pet_is_known 6.3 s" in heads
        assert "leaves state greet → collect_pet 6.4 s" in heads
        assert facts(event(view, "greet → collect_pet"))["because"] == "pet_named"

    def test_what_a_part_reported_of_itself(self, call: View) -> None:
        reported = call.turn(2).locator("[id^=event-]").filter(has_text="reported by")
        assert facts(reported) == {"latency": "1.6"}

    def test_a_repair_stands_where_it_happened(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.open(CUT)
        broken = event(view, "order_replacement")
        expect(broken.get_by_text("repaired: tool arguments kept as text")).to_be_visible()
        expect(broken).to_contain_text("support.jsonl:9")
        assert facts(broken)["arguments, not valid JSON"] == '{"order": "HT-3318", "item": "teapot"'


def facts(happening: Locator) -> dict[str, str]:
    told: dict[str, str] = happening.evaluate("(one) => looking.facts(one)")
    return told


class TestScores:
    def test_what_every_metric_says_of_the_whole(self, call: View, examples: Run) -> None:
        table = call.article.get_by_role("complementary").get_by_role("table").first
        names = table.get_by_role("rowheader").all_inner_texts()
        # No example is multiple choice.
        declared = [one.metric for one in examples.summary.declared]
        assert names == [name for name in declared if name != "answer.accuracy@choice"]
        expect(score(call, "tools.success")).to_contain_text("75.0 %")
        expect(score(call, "timing.response_latency")).to_contain_text("1.02 s")
        expect(score(call, "answer.f1")).to_contain_text("unmeasured: no ground truth")

    def test_with_the_evidence(self, call: View) -> None:
        row = score(call, "timing.response_latency")
        row.get_by_text("evidence").click()
        expect(row.get_by_role("definition").first).to_be_visible()
        # Five waits, of which the interrupted one has no value; the greeting has none to wait for.
        assert "turns measured" in row.inner_text()

    def test_a_latency_stands_at_its_turn(self, call: View) -> None:
        expect(call.turn(2)).to_contain_text("timing.response_latency 1.60 s")
        expect(call.turn(3)).to_contain_text("timing.response_latency not applicable: agent interrupted")

    def test_the_score_of_a_tool_stands_at_its_call(self, call: View) -> None:
        expect(event(call, "the price list did not answer")).to_contain_text("tools.success 0.0 %")

    def test_a_judges_reason_and_points(self, look: Look, shop: Run) -> None:
        view = look(shop, "#conversation=chat-00003")
        row = view.article.get_by_role("row").filter(has_text="shop.judged")
        row.get_by_text("evidence").click()
        for words in ("4.00 points", "ann", "because of line 2", '{"tone":4}', "7.5"):  # 4 of 1 to 5 is 7.5 of 10
            expect(row).to_contain_text(words)

    def test_a_metric_that_broke_says_how(self, look: Look, shop: Run) -> None:
        view = look(shop, "#conversation=chat-00007")
        expect(view.article.get_by_role("row").filter(has_text="shop.fragile")).to_contain_text(
            re.compile("error: metric raised: .*sevens are not for me")
        )


class TestTimeline:
    def test_a_lane_for_each_speaker_and_for_tools(self, call: View) -> None:
        lanes = timeline(call)
        assert {name: len(spans) for name, spans in lanes.items()} | {"overlaps, silence": 0} == {
            "Kestrel service desk": 7,
            "Tunde Oyelaran": 8,  # two of what he says have a pause, and one is no word
            "tools": 4,
            "overlaps, silence": 0,
        }

    def test_states_have_a_lane(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.open(FLOW)
        assert "states greet: 0.0 to 6.4 s" in timeline(view)["states"]

    def test_overlaps_and_silence_are_drawn_and_said(self, call: View) -> None:
        between = timeline(call)["overlaps, silence"]
        overlaps = [tip for tip in between if tip.startswith("both speak")]
        # 20.2 to 20.8 and 23.7 to 24.1, from the first sound at 0.4.
        assert overlaps == ["both speak for 0.60 s at 19.8 s", "both speak for 0.40 s at 23.3 s"]
        assert any(tip == "silence of 3.10 s at 33.8 s" for tip in between)  # 34.2 to 37.3
        figure = call.article.get_by_role("figure")
        expect(figure).to_contain_text("2 overlaps of 1.0 s in all")
        expect(figure).to_contain_text("longest silence 3.1 s at 33.8 s")

    def test_every_span_can_be_seen(self, look: Look, examples: Run) -> None:
        view = look(examples)
        for id in (CALL, FLOW, CUT):
            view.open(id)
            assert view.article.locator("figure svg").evaluate_all("(all) => looking.outside(all)") == []

    def test_pointing_at_a_span_tells_who_and_when(self, call: View) -> None:
        call.article.locator("figure rect[data-tip^='Tunde Oyelaran: 25.']").last.hover()
        expect(call.page.get_by_role("tooltip")).to_have_text(re.compile(r"Tunde Oyelaran: 25\.5( to 25\.6)? s"))

    def test_a_click_on_a_span_aims_at_what_was_said(self, own_call: View) -> None:
        target = event(own_call, "Perfect, thanks a lot. Bye!")
        expect(target).not_to_be_in_viewport()
        plain = target.evaluate("one => getComputedStyle(one).backgroundColor")
        own_call.article.locator("figure rect[data-tip^='Tunde Oyelaran']").last.click()
        expect(target).to_be_in_viewport()
        assert target.evaluate("one => getComputedStyle(one).backgroundColor") != plain

    def test_it_aims_well_in_a_long_conversation(self, look: Look, shop: Run) -> None:
        for second in (300, 500, 100):
            view = look(shop, "#conversation=long-call")
            view.article.locator(f"figure rect[data-tip^='user: {second}.0']").click()
            expect(event(view, f"Line {second // 10}?")).to_be_in_viewport()

    def test_the_place_of_the_sound(self, call: View) -> None:
        lane = call.article.get_by_role("figure").get_by_text("assistant.wav")
        expect(lane).to_contain_text("recorded; not in this page")

    def test_without_times_there_is_no_timeline_and_it_says_why(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.open("chat-2104")
        expect(view.article).to_contain_text("Nothing that was said or done has a time, so there is no timeline.")
        assert view.article.get_by_role("figure").count() == 0


def timeline(view: View) -> dict[str, list[str]]:
    """Each lane of the timeline with what its spans say."""
    lanes: dict[str, list[str]] = view.article.locator("figure svg").evaluate_all("(all) => looking.lanes(all)")
    return lanes
