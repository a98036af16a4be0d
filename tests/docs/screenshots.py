"""`make screenshots`: the pictures of the page in docs/images, taken of the demo and of a spoken call in a browser."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal, get_args

import soundfile
from playwright.sync_api import Browser, sync_playwright

import convoscope
from convoscope.conversation import to_json
from convoscope.demo import make_calls, write_logs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser.looking import chromium  # noqa: E402 (tests are no package)
from support.two_voices import RATE, Spoken, record  # noqa: E402
from support.weights import weights_file  # noqa: E402

Scheme = Literal["light", "dark"]
IMAGES = ROOT / "docs" / "images"
CALL = "v1-live-03"
"""A call that is lost while a tool takes its time."""
PLACES = {"page": "#/overview", "flow": "#/breaks", "conversation": f"#/call/{CALL}", "compare": "#/compare"}


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        logs = Path(folder) / "logs"
        write_logs(list(make_calls()), logs)
        run = convoscope.score(logs, out=Path(folder) / "demo", by=[["agent"]])
        page = (run.folder / "report.html").as_uri()
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        for scheme in get_args(Scheme):
            for name, place in PLACES.items():
                _picture(browser, page + place, IMAGES / f"{name}-{scheme}.png", scheme, (1400, 1160))
        _picture(browser, page + "#/overview", IMAGES / "phone-light.png", "light", (390, 844))
        page = _spoken_call(Path(folder)).as_uri()
        for scheme in get_args(Scheme):
            _picture(browser, f"{page}#/call/skerry-42/18", IMAGES / f"sound-{scheme}.png", scheme, (1400, 1000))
        browser.close()


TURNS = (
    Spoken("agent", "Good morning, Skerry Lines. What can I do for you?"),
    Spoken("caller", "Hi, I need to move our crossing to a later day, with the van."),
    Spoken("agent", "Sure. What is your booking number?"),
    Spoken("caller", "It is four seven one nine."),
    Spoken(
        "agent",
        "The crossing to Sandwick costs 50 euros. Is that right?",
        "The crossing to Sandwick costs 15 euros. Is that right?",
    ),
    Spoken("caller", "Fifteen? I paid more than that."),
    Spoken("agent", "Your fare stays the same. Which day would you like?"),
    Spoken("caller", "The seventeenth, please."),
    Spoken("agent", "There are two sailings on that day. The first one takes vans."),
)
"""An invented call. The voice says 15 where the text says 50."""


def _spoken_call(folder: Path) -> Path:
    """The page of a call that flite speaks, with a dropout, heard by a recogniser."""
    sounds = folder / "calls"
    sounds.mkdir()
    call = record(TURNS, sounds / "skerry-42.wav", id="skerry-42")
    samples, _ = soundfile.read(sounds / "skerry-42.wav")
    begin = round((call.utterances[6].segments[0].start + 0.7) * RATE)
    samples[begin : begin + RATE // 5] = 0
    soundfile.write(sounds / "skerry-42.wav", samples, RATE)
    other = record([*TURNS[:4], *TURNS[-3:]], sounds / "skerry-43.wav", id="skerry-43")
    (folder / "spoken.jsonl").write_bytes(to_json(call) + b"\n" + to_json(other) + b"\n")
    metrics = ["audio.mos", "audio.audio_breakage", "audio.spoken_entities", "voice", "agent.words_per_turn"]
    recogniser = f"faster-whisper:{weights_file('whisper-tiny.en').parent}"
    run = convoscope.score(folder / "spoken.jsonl", metrics=metrics, out=folder / "spoken", recogniser=recogniser)
    return run.folder / "report.html"


def _picture(browser: Browser, address: str, file: Path, scheme: Scheme, window: tuple[int, int]) -> None:
    context = browser.new_context(viewport={"width": window[0], "height": window[1]}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_selector("html[data-ready]")
    tab.screenshot(path=file)
    context.close()


if __name__ == "__main__":
    main()
