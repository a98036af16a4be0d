"""A call plays its recording. A second is asserted on the media element: the recording begins 1 s before the log."""

from __future__ import annotations

import re
import shutil
import threading
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import convoscope
from browser import recorded
from browser.conftest import Look
from browser.looking import View
from browser.recorded import FILE_NAME
from browser.test_hostile import unharmed
from convoscope.runs.run import Run

NEAR = 0.06
"""Seconds: an address has three digits behind the point, and a sample of a compressed file is not met exactly."""
PAUSED = "() => [...document.querySelectorAll('audio')].every((one) => one.paused)"


@pytest.fixture(scope="session")
def calls(runs: Path) -> Run:
    return recorded.recorded(runs)


def opened(look: Look, run: Run | Path, id: str, **window: object) -> View:
    view = look(run, **window)
    # Each jump of any media element, as the browser reports it.
    view.page.evaluate(
        "() => { window.went = []; "
        "document.addEventListener('seeked', ({ target }) => went.push(target.currentTime), true); }"
    )
    view.open(id)
    return view


def goes_to(view: View, second: float) -> None:
    """Wait until the media element is at a second of its file."""
    view.page.wait_for_function("(second) => Math.abs(went.at(-1) - second) < 0.06", arg=second)


def plays(view: View) -> None:
    view.page.wait_for_function(
        "() => [...document.querySelectorAll('audio')].some((one) => !one.paused && one.readyState > 1)"
    )


def asked_for(view: View, *names: str) -> None:
    """Nothing but the recording was loaded, and nothing else went wrong."""
    heard = view.heard()
    assert {url.rpartition("/")[2] for url in heard.requests} == set(names)
    assert heard._replace(requests=[], answers=[]) == type(heard)([], [], [], [], [], [])


def turn(view: View, words: str) -> Locator:
    return view.page.locator(".tu", has_text=words)


WAV = "call%20%231%20100%25%20%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E%20%27%C3%A9%27%3F.wav"


class TestPlaying:
    def test_a_turn_plays_from_its_first_second(self, look: Look, calls: Run) -> None:
        """The caller speaks from 13 s of the file; on the page, 12 s after the first word."""
        view = opened(look, calls, "two channels")
        view.was_quiet()  # nothing is loaded before the first click
        turn(view, "What about the dog?").locator(".text").click()
        goes_to(view, 13.0)
        plays(view)
        expect(turn(view, "What about the dog?")).to_have_class(re.compile("now"))
        expect(view.page.locator("#now")).to_have_text(re.compile(r"^0:1[2-5]\.\d$"))
        view.page.get_by_role("button", name="Pause").first.click()
        view.page.wait_for_function(PAUSED)
        asked_for(view, WAV)

    def test_times_chips_marks_and_lanes_go_there(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "two channels")
        page = view.page
        turn(view, "I have booked").locator(".tm").click()
        goes_to(view, 5.0)
        assert view.address == "#/call/two%20channels/4"
        chips = page.get_by_role("group", name="What the lanes mark")
        chips.get_by_role("button", name="2 dropouts, 0.3 s").click()
        goes_to(view, 10.0)
        chips.get_by_role("button", name="2 dropouts").click()
        goes_to(view, 11.0)
        chips.get_by_role("button", name="1 overlap, 1.0 s").click()
        goes_to(view, 13.0)
        chips.get_by_role("button", name="1 silence, longest 4.0 s").click()
        goes_to(view, 16.0)
        page.get_by_role("button", name="no sound at 0:20.0").click()
        goes_to(view, 21.0)
        # The lanes are as long as the recording, 28 s: a quarter of their width is 7 s of the file.
        lane = page.locator(".lane.wv").first
        box = lane.bounding_box()
        assert box is not None
        lane.click(position={"x": box["width"] / 4, "y": 40})
        page.wait_for_function("() => Math.abs(went.at(-1) - 7) < 0.1")
        asked_for(view, WAV)

    def test_marks_that_are_near_share_a_name_and_the_axis_has_whole_steps(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "two channels")
        # The dropouts at 10 and 11 s of 28 s are 4 % of the width apart.
        expect(view.page.locator(".mk button", has_text="2 dropouts")).to_have_count(1)
        expect(view.page.locator(".mk button", has_text=re.compile("^dropout$"))).to_have_count(0)
        # From −1 s to 27 s in at most six steps: of 5 s.
        assert view.page.locator(".axis span").all_inner_texts() == ["0:00", "0:05", "0:10", "0:15", "0:20", "0:25"]
        expect(view.page.locator(".ql b")).to_have_text("2.1 of 5")
        # The reasons of the sound: the fact is at 10 s of the file, the barge-in at 5.5 s.
        reasons = view.page.locator(".why-l li").all_inner_texts()
        assert [text for text in reasons if text[0].isdigit()] == [
            "0:09.0\n€142.50 arrived as forty two fifty",
            "0:04.5\n1 barge-in lost",
            "0:09.0\n2 dropouts, 0.3 s",
        ]

    def test_keys(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "two channels")
        page = view.page
        # From the beginning of the recording: the second mark is the first dropout.
        page.keyboard.press("]")
        page.keyboard.press("]")
        page.keyboard.press(" ")
        goes_to(view, 10.0)
        plays(view)
        page.keyboard.press(" ")
        page.wait_for_function(PAUSED)
        page.keyboard.press("[")
        goes_to(view, 5.5)
        page.keyboard.press("ArrowRight")
        goes_to(view, 10.5)
        page.keyboard.press("ArrowLeft")
        goes_to(view, 5.5)
        page.keyboard.press(".")
        assert page.evaluate("document.querySelector('audio').playbackRate") == 1.25
        page.keyboard.press(",")
        page.keyboard.press(",")
        assert page.evaluate("document.querySelector('audio').playbackRate") == 0.75
        assert page.evaluate(PAUSED)
        page.keyboard.press("1")
        page.wait_for_selector("main[data-screen=overview]")
        page.keyboard.press("5")
        view.shows("two channels")
        asked_for(view, WAV)

    def test_an_address_with_a_second_waits_there_in_silence(self, look: Look, calls: Run) -> None:
        view = look(calls, "#/call/two%20channels/8")
        expect(view.page.locator("#now")).to_have_text("0:08.0")
        expect(turn(view, "That is")).to_have_class(re.compile("now"))
        assert view.page.locator("audio").count() == 0

    def test_another_call_is_silent(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "two channels")
        view.page.get_by_role("button", name="Play").first.click()
        plays(view)
        view.page.evaluate("window.before = document.querySelector('audio')")
        view.open("no recording")
        assert view.page.evaluate("window.before.paused")
        asked_for(view, WAV)

    def test_a_file_for_each_side_plays_in_step(self, look: Look, calls: Run) -> None:
        """At 13 s both files play, no more than a quarter of a second apart; from 25 s on there is only the agent's."""
        view = opened(look, calls, "two files")
        page = view.page
        turn(view, "What about the dog?").locator(".text").click()
        page.wait_for_function(
            "() => { const all = [...document.querySelectorAll('audio')]; return all.length === 2 "
            "&& all.every((one) => !one.paused && one.currentTime > 13.1) "
            "&& Math.abs(all[0].currentTime - all[1].currentTime) < 0.25; }"
        )
        lane = page.locator(".lane.wv").first
        box = lane.bounding_box()
        assert box is not None
        lane.click(position={"x": box["width"] * 26 / 28, "y": 40})
        page.wait_for_function("() => Math.abs(went.at(-1) - 26) < 0.1")
        playing = "() => [...document.querySelectorAll('audio')].map((one) => [one.src.split('/').pop(), one.paused])"
        assert dict(page.evaluate(playing)) == {"agent.wav": False, "user.wav": True}
        asked_for(view, "agent.wav", "user.wav")

    def test_the_word_that_is_played_is_marked(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "two channels")
        view.page.keyboard.press("]")
        view.page.keyboard.press("]")
        # The first dropout is at 10.0 s of the file: the second word, from 9.625 to 10.25.
        expect(view.page.locator(".w.on")).to_have_text("is")


class TestWhatIsShown:
    def test_two_channels(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "two channels")
        expect(view.page.locator("figcaption")).to_contain_text("recording, two channels")
        assert view.page.locator(".lanes .ln").all_inner_texts()[:3] == ["Caller", "Agent", "quality"]
        # The agent speaks 3 + 5 + 5 s, of which the second from 13 to 14 is both; the caller 3 + 3 s.
        wide = view.page.evaluate(
            "() => [...document.querySelectorAll('.lanes .wv svg')].map((one) => one.querySelectorAll('path').length)"
        )
        assert wide == [2, 2]
        expect(view.page.locator(".lane .mark.not_in_sound")).to_have_count(1)
        expect(view.page.locator(".lane .mark.barge_in_lost")).to_have_count(1)
        assert view.page.locator(".lane .q").count() == 2
        expect(view.page.get_by_role("button", name="sound quality (MOS) worst 2.10")).to_be_visible()
        unharmed(view)

    def test_meant_and_spoken_where_an_amount_differs(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "two channels")
        assert view.page.locator(".three").count() == 1
        block = view.page.locator(".three")
        expect(block.locator(".e")).to_have_text("€142.50")
        expect(block.locator(".x")).to_have_text("forty two fifty")
        expect(block).to_contain_text("€142.50 arrived as forty two fifty. Heard by faster-whisper:tiny.en.")

    def test_one_channel(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "one channel")
        expect(view.page.locator("figcaption")).to_contain_text("one channel; sides from the times of the log")
        assert view.page.locator(".lanes .wv").count() == 1
        turn(view, "Dogs travel free").locator(".text").click()
        goes_to(view, 20.0)
        asked_for(view, "mono.wav")

    def test_without_a_recording(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "no recording")
        assert view.page.locator(".play").count() == 0
        assert view.page.locator(".lanes svg").count() == 0
        expect(view.page.locator(".counts")).to_contain_text("1 overlap, 1.0 s")
        view.page.get_by_role("button", name="1 silence, longest 4.0 s").click()
        expect(turn(view, "What about the dog?")).to_have_class(re.compile("now"))

    def test_a_file_that_cannot_be_read(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "broken")
        expect(view.page.locator(".banner")).to_contain_text("broken.wav")
        assert view.page.locator(".play").count() == 0
        expect(view.page.locator(".lane .a").first).to_be_visible()

    def test_an_address_is_not_loaded(self, look: Look, calls: Run) -> None:
        view = opened(look, calls, "remote")
        expect(view.page.locator("figcaption")).to_contain_text("--fetch-audio")
        assert view.page.locator(".play").count() == 0

    def test_a_clock_of_its_own(self, look: Look, calls: Run) -> None:
        """The log has wall clock times, and does not say when the recording began: turns are shown, not played."""
        view = opened(look, calls, "apart")
        expect(view.page.locator("figcaption").first).to_contain_text("when it began is not in the log")
        # The lost barge-in is on the caller's waveform, and what the times of the log show is no chip.
        # The lanes have the names that the transcript has.
        shown = view.page.locator("figure, .lanes").first
        expect(shown).to_contain_text("Agent")
        expect(shown).not_to_contain_text("agent")
        caller = view.page.locator(".lane.wv").nth(1)
        expect(caller.locator(".mark.barge_in_lost")).to_have_count(1)
        expect(view.page.locator(".counts")).not_to_contain_text("silence")
        turn(view, "Dogs travel free").locator(".text").click()
        assert view.page.locator("audio").count() == 0
        view.page.get_by_role("button", name="Play").first.click()
        plays(view)
        asked_for(view, WAV)

    @pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390), ("light", 320)])
    def test_it_fits_and_can_be_read(self, look: Look, calls: Run, scheme: str, width: int) -> None:
        view = opened(look, calls, "two channels", scheme=scheme, width=width, height=400)
        assert view.beyond() == []
        assert view.faint() == []
        assert view.page.locator(".slim").is_hidden()
        view.page.evaluate("scrollTo(0, document.body.scrollHeight)")
        expect(view.page.locator(".slim")).to_be_visible()
        assert view.beyond() == []


def test_the_keyboard_reaches_all_of_it(look: Look, calls: Run) -> None:
    walk = opened(look, calls, "two channels").walk("Tab")
    assert walk.unreached == []
    assert walk.unseen == []


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def policy(page: Path) -> str:
    """From where a page may play sound; "" from nowhere."""
    found = re.search(r"media-src ([^;]*);", unescape(page.read_text()[:2000]))
    return found[1] if found else ""


class TestWhereRecordingsAre:
    def test_in_the_page(self, look: Look, calls: Run, tmp_path: Path) -> None:
        """The recording is in the page: it plays from anywhere, and nothing is loaded."""
        page = tmp_path / "alone.html"
        made = convoscope.write_page(calls, page, embed_audio=True)
        assert made.notes == ()
        assert policy(page) == "blob:"
        view = opened(look, page, "two channels")
        turn(view, "That is").locator(".text").click()
        goes_to(view, 9.0)
        plays(view)
        assert {url.partition(":")[0] for url in view.heard().requests} <= {"blob"}

    def test_in_the_run(self, look: Look, calls: Run, tmp_path: Path) -> None:
        """A run that was moved away from its recordings plays the copies."""
        run = Run.open(shutil.copytree(calls.folder, tmp_path / "run"))
        convoscope.write_page(run, with_audio=True)
        copies = sorted(path.name for path in (run.folder / "audio").iterdir())
        # One for two calls that have the same recording, one of one channel, two; their names are their content.
        assert len(copies) == 4
        assert all(re.fullmatch(r"[0-9a-f]{24}\.wav", name) for name in copies)
        run.folder.rename(tmp_path / "moved")
        view = opened(look, tmp_path / "moved" / "report.html", "two channels")
        turn(view, "That is").locator(".text").click()
        goes_to(view, 9.0)
        (name,) = {url.rpartition("/")[2] for url in view.heard().requests}
        assert name in copies

    def test_beside_the_page(self, calls: Run, examples: Run) -> None:
        """A link is relative; the page of a run without recordings may play nothing."""
        assert policy(examples.folder / "report.html") == ""
        assert policy(calls.folder / "report.html") == "'self' file:"
        assert (calls.folder.parent / "sounds" / FILE_NAME).is_file()

    def test_a_server_that_sends_whole_files_only(self, browser: Browser, calls: Run) -> None:
        """Python's own server knows no byte ranges. Nothing is played from a wrong second; a sentence says why."""
        handler = partial(SilentHandler, directory=str(calls.folder.parent))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/recorded/report.html#/call/one%20channel")
            page.locator(".tu", has_text="Dogs travel free").locator(".text").click()
            expect(page.locator("figure [role=status]")).to_contain_text("HTTP Range")
            assert page.evaluate(PAUSED)
            page.close()
            server.shutdown()

    def test_a_recording_that_went_away(self, look: Look, calls: Run, tmp_path: Path) -> None:
        """The page was written, then the recording was moved: a sentence says so where it was to be played."""
        folder = tmp_path / "run"
        shutil.copytree(calls.folder, folder)
        view = opened(look, folder / "report.html", "one channel")
        turn(view, "Dogs travel free").locator(".text").click()
        expect(view.page.locator("figure [role=status]")).to_contain_text("cannot play mono.wav")
        view.heard()
