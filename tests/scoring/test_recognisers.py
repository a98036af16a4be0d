"""Runs with a recogniser: by name, by hand, cached, on several processes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import convoscope
from convoscope import Recogniser
from convoscope.conversation.serial import to_json
from convoscope.resources import Recognised, Sound
from convoscope.resources.registry import RECOGNISER
from convoscope.runs.make import make_run
from support.command_line import convoscope as run_command
from support.two_voices import HAS_FLITE, Spoken, record

pytest.importorskip("soundfile", reason="the extra audio is not installed: pip install 'convoscope[audio]'")
pytestmark = pytest.mark.skipif(not HAS_FLITE, reason="flite is not installed: apt-get install flite")
METRICS = "audio.spoken_entities,audio.word_accuracy@recogniser"


class Always(Recogniser):
    """Hears the same in each clip, and counts clips."""

    identity = "always:fifty@1"

    def __init__(self) -> None:
        self.clips = 0

    async def recognise(self, sound: Sound) -> Sequence[Recognised]:
        self.clips += 1
        words = ["you", "have", "50", "points", "left", "now"]
        return [Recognised(word, 0.3 * n, 0.3 * (n + 1), 0.9) for n, word in enumerate(words)]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, points in enumerate(("50", "15")):
        asks = Spoken("caller", "How many points do I have?")
        turns = [asks, Spoken("agent", f"You have {points} points left now.", "You have fifty points left now.")]
        call = record(turns, folder / f"call{number}.wav", id=f"call{number}")
        (folder / f"call{number}.json").write_bytes(to_json(call))
    return folder


def values(run: convoscope.Run) -> dict[str, float | None]:
    return {one.metric: one.value for one in run.summary.metrics}


def test_a_clip_is_heard_once_in_all_runs(logs: Path, tmp_path: Path) -> None:
    recogniser = Always()
    run = make_run(logs, metrics=METRICS, recogniser=recogniser, out=tmp_path / "one", workers=1)
    # "You have 50 points" is right, "You have 15 points" is spoken as 50; one of 12 words differs.
    assert values(run) == {"audio.spoken_entities": 0.5, "audio.word_accuracy": pytest.approx(11 / 12)}
    assert run.receipt.config["resources"][RECOGNISER] == "always:fifty@1"
    heard = recogniser.clips
    assert heard > 0
    again = make_run(logs, metrics=METRICS, recogniser=recogniser, out=tmp_path / "two", workers=1)
    assert (values(again), recogniser.clips) == (values(run), heard)
    make_run(logs, metrics=METRICS, recogniser=recogniser, out=tmp_path / "three", workers=1, judge_cache=False)
    assert recogniser.clips > heard


def test_another_recogniser_is_another_run(logs: Path, tmp_path: Path) -> None:
    make_run(logs, metrics=METRICS, recogniser=Always(), out=tmp_path / "run", workers=1)
    other = Always()
    other.identity = "always:fifty@2"
    with pytest.raises(convoscope.ConvoscopeError, match="resources changed"):
        make_run(logs, metrics=METRICS, recogniser=other, out=tmp_path / "run", workers=1)


FILE = """
from convoscope import Recogniser, resource
from convoscope.resources import Recognised


class Always(Recogniser):
    identity = "mine:fifty@1"

    async def recognise(self, sound):
        words = "you have 50 points left now".split()
        return [Recognised(word, 0.3 * n, 0.3 * (n + 1)) for n, word in enumerate(words)]


@resource
def recogniser() -> Recogniser:
    return Always()
"""


def test_one_of_the_user_comes_with_a_file_and_works_in_several_processes(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    figures = []
    for workers in ("1", "2"):
        ended = run_command(
            *("score", str(logs), "--metrics-from", "mine.py", "-m", METRICS, "--json"),
            *("--workers", workers, "--out", f"run{workers}"),
            cwd=tmp_path,
        )
        figures.append({one["metric"]: one["value"] for one in ended.json["summary"]["metrics"]})
    assert figures[0] == figures[1]
    assert figures[0]["audio.spoken_entities"] == 0.5


def test_without_one_nothing_is_measured(logs: Path, tmp_path: Path) -> None:
    run = make_run(logs, metrics=METRICS, out=tmp_path / "run", workers=1)
    assert {one.reason for one in run.scores(all=True)} == {"no_recogniser"}


def test_an_unknown_one_is_refused_before_anything_is_read(logs: Path, tmp_path: Path) -> None:
    ended = run_command("score", str(logs), "--recogniser", "tiny.en", "--out", "run", cwd=tmp_path)
    assert ended.code == 2
    assert ended.err.startswith("error: --recogniser tiny.en: no such recogniser")
    assert not (tmp_path / "run").exists()


def test_what_it_heard_is_evidence(logs: Path, tmp_path: Path) -> None:
    run = make_run(logs, metrics=METRICS, recogniser=Always(), out=tmp_path / "run", workers=1)
    (wrong,) = [one for one in run.scores(METRICS.split(",", maxsplit=1)[0]) if one.value == 0.0]
    assert wrong.observation.details is not None
    (differing,) = wrong.observation.details["differs"]
    assert (differing["kind"], differing["meant"], differing["spoken"]) == ("amount", "15", "50")
