"""One conversation: outcome and reasons first, then lanes, then what was said, then scores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.looking import View
from convoscope.conversation import Outcome, Segment, Text, Utterance
from convoscope.runs.run import Run
from support.chats import agent, chat, user

CALL = "bike-desk-031/trial-2"
"""A recorded call with three texts for most of what was said, overlaps, tools, and times of three clocks."""
FLOW = "vet-0907"
"""A chat that walks through the states of a flow, and is handed over after a tool has failed."""


@pytest.fixture
def call(look: Look, examples: Run) -> View:
    view = look(examples)
    view.open(CALL)
    return view


@pytest.fixture
def flow(look: Look, examples: Run) -> View:
    view = look(examples)
    view.open(FLOW)
    return view


class TestWaysInAndOn:
    def test_every_conversation_opens(self, look: Look, examples: Run) -> None:
        view = look(examples)
        for one in convoscope.worst(examples, 99):
            view.open(one.conversation)
            expect(view.page.get_by_role("complementary", name="Scores")).to_be_visible()

    def test_next_and_previous(self, look: Look, examples: Run) -> None:
        ids = [one.conversation for one in convoscope.worst(examples, 3)]
        view = look(examples)
        view.open(ids[0])
        assert view.page.locator("#previous").count() == 0
        view.page.keyboard.press("j")
        view.shows(ids[1])
        view.page.locator("#next").click()
        view.shows(ids[2])
        view.page.keyboard.press("k")
        view.shows(ids[1])

    def test_a_second_in_the_address_is_where_it_opens(self, look: Look, shop: Run) -> None:
        """Of 120 lines, the user says line 50 at 500 s."""
        view = look(shop, "#/call/long-call/500")
        view.shows("long-call")
        expect(view.page.locator(".tu.now")).to_contain_text("Line 50?")
        expect(view.page.locator(".tu.now")).to_be_in_viewport()

    def test_a_time_is_a_link_to_itself(self, call: View) -> None:
        link = call.page.locator("a.tm").nth(3)
        clock = link.inner_text()
        link.click()
        call.page.wait_for_selector(".tu.now")
        expect(call.page.locator(".tu.now .tm")).to_have_text(clock)


class TestWhatComesFirst:
    def test_the_outcome_and_the_place(self, flow: View) -> None:
        expect(flow.page.get_by_role("heading", level=1)).to_contain_text("Handed to a person in collect_visit")

    def test_reasons_with_the_time_of_the_deciding_one(self, flow: View) -> None:
        reasons = flow.page.locator(".why-l li")
        assert 1 <= reasons.count() <= 3
        expect(reasons.first).to_contain_text("book_visit failed")
        reasons.first.get_by_role("link").click()
        flow.page.wait_for_selector(".now")
        expect(flow.page.locator(".now")).to_be_in_viewport()

    def test_a_broken_integration_says_what_broke(self, look: Look, shop: Run) -> None:
        view = look(shop, "#/call/broken-call")
        expect(view.page.get_by_role("heading", level=1)).to_have_text(
            "The integration broke: the telephone line broke"
        )


class TestLanes:
    def test_who_spoke_when(self, call: View) -> None:
        lanes = call.page.locator(".lanes .ln").all_inner_texts()
        assert lanes[-2:] == ["tools", "states"] or "tools" in lanes
        assert call.page.locator(".lane .a").count() > 3
        assert call.page.locator(".lane .u").count() > 3
        expect(call.page.locator("figcaption")).to_contain_text("overlap")

    def test_without_a_recording_it_says_what_it_is_drawn_from(self, flow: View) -> None:
        expect(flow.page.locator("figcaption")).to_contain_text("drawn from the times of speech")

    def test_a_long_silence_stands_with_who_owes_the_answer(self, look: Look, tmp_path: Path) -> None:
        """The user ends at 2 s, the agent begins at 9 s: 7 s in which the agent owes a reply."""
        waits = Utterance(seq=0, speaker="user", heard=Text("Are you there?"), segments=(Segment(1, 2),))
        replies = Utterance(seq=1, speaker="agent", spoken=Text("Yes."), segments=(Segment(9, 10),))
        run = convoscope.score([chat(waits, replies, id="slow")], out=tmp_path / "run", workers=1)
        view = look(run)
        expect(view.page.locator(".gap")).to_have_text("7.0 s of silence")
        lane = view.page.locator(".lane").filter(has=view.page.locator(".si"))
        expect(lane).to_have_count(1)
        assert lane.locator(".a").count() == 1

    def test_without_times_there_are_none(self, look: Look, viewings: Run) -> None:
        view = look(viewings)
        view.open("call 0-00")
        expect(view.main).to_contain_text("Nothing that was said or done has a time")
        # On a phone the words begin where the name of the speaker does: no column is kept for times.
        view.page.set_viewport_size({"width": 390, "height": 844})
        name, words = view.page.locator(".tu .wh").first, view.page.locator(".tu > div").first
        left = [box["x"] for part in (name, words) if (box := part.bounding_box()) is not None]
        assert left[0] == left[1]


class TestWords:
    def test_what_was_said_and_what_was_heard_differ(self, call: View) -> None:
        assert call.page.locator(".heard ins").count() > 0
        assert call.page.locator(".heard del").count() > 0

    def test_tools_are_folded_to_name_time_and_result(self, flow: View) -> None:
        tool = flow.page.locator(".tc.x").filter(has_text="book_visit")
        expect(tool.locator("summary")).to_contain_text("failed")
        assert tool.get_attribute("open") is None
        tool.locator("summary").click()
        expect(tool).to_contain_text("arguments")

    def test_the_state_in_which_it_was_lost_is_marked(self, flow: View) -> None:
        expect(flow.page.locator(".stt.x")).to_have_text("collect_visitlost here")

    def test_chips_only_where_something_is_bad(self, flow: View) -> None:
        assert 0 < flow.page.locator(".chip.bad").count() < flow.page.locator(".tu").count()

    def test_a_long_conversation_comes_in_windows(self, look: Look, tmp_path: Path) -> None:
        lines = [
            one for turn in range(300) for one in (user(f"Line {turn}?", 10.0 * turn), agent("Yes.", 10 * turn + 2.0))
        ]
        run = convoscope.score(
            [chat(*lines, id="endless")], metrics=["conversation.turns"], out=tmp_path / "run", workers=1
        )
        view = look(run)
        assert view.page.evaluate("document.querySelectorAll('*').length") < 3_000
        view.page.get_by_role("button", name="Lines 151 to 300 of 600").click()
        expect(view.page.locator("#turns")).to_contain_text("Line 100?")


class TestScores:
    def test_bad_first_then_folds_with_counts(self, flow: View) -> None:
        scores = flow.page.get_by_role("complementary", name="Scores")
        heading = scores.get_by_role("heading").inner_text()
        bad = scores.locator(":scope > .s1").count()
        assert heading.startswith(f"{bad} score" if bad else "No score")
        other = scores.locator("summary").filter(has_text=re.compile(r"^\d+ (other )?scores?$"))
        expect(other).to_have_count(1)
        other.click()
        expect(scores.locator("details[open] .s1")).to_have_count(int(other.inner_text().split()[0]))

    def test_what_is_silent_says_why(self, flow: View) -> None:
        silent = flow.page.locator("summary").filter(has_text="no value")
        silent.click()
        assert flow.page.evaluate("looking.dots()") == []
        expect(flow.page.locator("details[open] .s1 .na")).to_have_count(int(silent.inner_text().split()[0]))


def test_a_lost_conversation_says_how_it_ended(look: Look, tmp_path: Path) -> None:
    outcome = Outcome(completed=False, ended_reason="customer_hung_up")
    run = convoscope.score([chat(user("Hm.", 1), id="gone", outcome=outcome)], out=tmp_path / "run", workers=1)
    view = look(run)
    expect(view.page.get_by_role("heading", level=1)).to_have_text("Lost: customer hung up")
