"""Files that are damaged at random: each has a number that its samples carry, or a reason; nothing is raised."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from convoscope.conversation import AudioFile, Conversation, Participant, Track
from convoscope.metrics.audio import sound as metrics
from convoscope.resources.sound import RecordingError
from convoscope.scores.observation import MEASURED
from support import sounds

from convoscope.audio.decode import read_header  # isort: skip  after the check for the extra
from convoscope.audio.files import FileTrack  # isort: skip
from convoscope.audio.ogg_pages import ogg_fault  # isort: skip
from convoscope.audio.resource import Recordings  # isort: skip


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3"])
def test_damage_is_a_reason(tmp_path: Path, ending: str) -> None:
    chance = random.Random(ending)
    wave = sounds.said("Good morning. I would like a lemon cake for Saturday, please.", "rms")
    whole = sounds.write(tmp_path / f"whole.{ending}", wave, 0 * wave).read_bytes()
    speakers = (Participant("bot", "assistant"), Participant("caller", "user"))
    outcomes: set[str] = set()
    for number in range(24):
        damaged = bytearray(whole)
        if number % 3 == 0:
            for _ in range(chance.randint(1, 40)):
                damaged[chance.randrange(400 if number % 2 else len(damaged))] = chance.randrange(256)
        elif number % 3 == 1:
            del damaged[chance.randrange(len(damaged)) :]
        else:
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.randrange(5000)] = bytes(chance.randrange(5000))
        file = tmp_path / f"{number}.{ending}"
        file.write_bytes(damaged)
        track = Track(path=str(file), channels=("bot", "caller"))
        conversation = Conversation(id="c", participants=speakers, recording=AudioFile(tracks=(track,)))
        for metric in (metrics.audio_breakage, metrics.assistant_volume_rms):
            [observation] = metric(conversation, recording=Recordings())
            outcomes.add(observation.reason or MEASURED)
            assert (observation.value is None) == bool(observation.reason)
    assert "recording_not_readable" in outcomes


def test_what_decodes_mp3_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wave = sounds.noise(10.0)
    whole = sounds.write(tmp_path / "c.mp3", wave).read_bytes()
    middle = len(whole) // 2
    (tmp_path / "c.mp3").write_bytes(whole[:middle] + bytes(range(7, 250)) * 20 + whole[middle + 5000 :])
    file = tmp_path / "c.mp3"
    with pytest.raises(RecordingError, match="damaged at byte"):
        FileTrack(file, read_header(file), 0).read()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ending", ["ogg", "opus"])
def test_pages_of_ogg_that_are_missing_or_changed_are_a_reason(tmp_path: Path, ending: str) -> None:
    """What decodes Ogg hides both: a file without its second half is a shorter call, and a broken page is left out."""
    wave = sounds.noise(6.0)
    kind = {"subtype": "OPUS", "format": "OGG"} if ending == "opus" else {}
    file = sounds.write(tmp_path / f"c.{ending}", wave, **kind)
    whole = file.read_bytes()
    assert ogg_fault(file) == ""
    pages = [at for at in range(len(whole)) if whole.startswith(b"OggS", at)]
    assert len(pages) > 4
    file.write_bytes(whole[: pages[-1]])  # whole pages, and not the last
    assert ogg_fault(file) == "cut short: its last page is missing"
    file.write_bytes(whole[: pages[-1] + 40])
    assert ogg_fault(file) == f"cut short: the page at byte {pages[-1]:,} is not whole"
    file.write_bytes(whole[: pages[3]] + whole[pages[4] :])
    assert ogg_fault(file) == f"damaged: page 4 follows page 2, at byte {pages[3]:,}"
    damaged = bytearray(whole)
    damaged[pages[3] + 200] ^= 1
    file.write_bytes(damaged)
    assert ogg_fault(file) == f"damaged: the page at byte {pages[3]:,} is not as it was written"
    with pytest.raises(RecordingError, match="damaged"):
        read_header(file)
    file.write_bytes(whole + b"TAG" + bytes(125))  # what players write behind a file
    assert ogg_fault(file) == ""
    file.write_bytes(whole + whole)  # one stream after the other
    assert ogg_fault(file) == ""
