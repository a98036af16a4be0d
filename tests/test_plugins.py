"""A reader and a metric from an outside package, by entry point, with no change to ours."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.command_line import Ended
from support.command_line import convoscope as run_command

MODULE = '''
"""A package of somebody else."""

import json

from convoscope.conversation import Conversation, Participant, Text, Utterance
from convoscope.ingest.reader import Detection, Reader
from convoscope.metrics import CONVERSATION, COUNT, LOWER, measured, metric


class Sheet(Reader):
    """Two files of one conversation: what was asked, what was answered."""

    name = "sheet"
    title = "Question and answer sheets"

    def detect_folder(self, folder):
        if {"asked.json", "answered.json"} <= folder.names:
            return Detection(0.9, "asked.json and answered.json are there")
        return None

    def build(self, group, notes):
        events = []
        for name, speaker in (("asked.json", "user"), ("answered.json", "assistant")):
            for text in json.loads((group.path / name).read_text()):
                events.append(Utterance(seq=len(events), speaker=speaker, intended=Text(text, name)))
        notes.inferred("order_of_files")
        people = (Participant("user", "user"), Participant("assistant", "assistant"))
        yield Conversation(id=group.name, participants=people, timeline=tuple(events))


@metric("theirs.shouting", version=1, observes=CONVERSATION, unit=COUNT, better=LOWER)
def shouting(conversation):
    """How many utterances are in capitals?"""
    return measured(conversation, sum(conversation.text(one).isupper() for one in conversation.utterances))


READER = Sheet()
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder that looks like site-packages with the outside package installed."""
    site = tmp_path / "site"
    info = site / "theirs-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "theirs.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[convoscope.readers]\nsheet = theirs:READER\n[convoscope.metrics]\ntheirs = theirs\n"
    )
    return site


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Three calls, each a folder with two files."""
    for number, answer in enumerate(("Yes.", "NO!", "LOUD")):
        folder = tmp_path / "calls" / f"call-{number}"
        folder.mkdir(parents=True)
        (folder / "asked.json").write_text(json.dumps(["Is it open?"]))
        (folder / "answered.json").write_text(json.dumps([answer]))
    return tmp_path / "calls"


def command(site: Path, *arguments: object, cwd: Path) -> Ended:
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return run_command(*arguments, cwd=cwd, PYTHONPATH=path)


def test_both_are_listed(site: Path, tmp_path: Path) -> None:
    assert "theirs.shouting" in command(site, "metrics", cwd=tmp_path).out
    assert "Question and answer sheets" in command(site, "formats", cwd=tmp_path).out


def test_a_folder_of_several_files_is_one_conversation(site: Path, calls: Path, tmp_path: Path) -> None:
    ended = command(site, "score", calls, "-m", "turns,shouting", "--workers", "2", "--json", cwd=tmp_path)
    assert ended.code == 0
    summary = ended.json["summary"]
    assert summary["conversations"] == 3
    (shouting,) = [figure for figure in summary["metrics"] if figure["metric"] == "theirs.shouting"]
    # "NO!" and "LOUD" of three: 2 / 3
    assert shouting["value"] == pytest.approx(2 / 3)
    report = ended.json["read_report"]
    assert report["files"]["call-1"]["why"] == "asked.json and answered.json are there"
    assert report["inferred"]["order_of_files"]["count"] == 3


def test_a_bad_folder_is_a_problem_and_the_rest_goes_on(site: Path, calls: Path, tmp_path: Path) -> None:
    (calls / "call-1" / "answered.json").write_text("[")
    ended = command(site, "score", calls, "-m", "turns", "--json", cwd=tmp_path)
    assert ended.code == 0
    assert ended.json["summary"]["conversations"] == 2
    assert "call-1" in ended.err


def test_a_package_that_cannot_be_loaded_is_a_warning(site: Path, tmp_path: Path) -> None:
    (site / "theirs.py").write_text("raise ImportError('half installed')")
    ended = command(site, "metrics", cwd=tmp_path)
    assert ended.code == 0
    assert "half installed" in ended.err
    assert "answer.f1" in ended.out
