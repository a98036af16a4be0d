"""Recordings without a log: what is read of them, and what is not claimed."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

import convoscope
from convoscope.analysis.words import reading_text, sides_text
from convoscope.audio.resource import Recordings
from convoscope.conversation import AudioFile, Conversation, Marker, Time, Track, Utterance
from convoscope.errors import NothingReadable, UsageError
from convoscope.metrics.audio.talk import overlap_share
from convoscope.metrics.registry import installed
from convoscope.report.speech_lanes import Ruler
from convoscope.report.story import shown_recording
from convoscope.resources.registry import RECORDING
from convoscope.scoring.profiles import plan
from support.logs import CHAT, write_json

EXAMPLE = Path(__file__).parents[2] / "examples" / "recording" / "bakery.ogg"
# Who speaks from when to when, as the sound was put together (channel 1 the caller, channel 2 the agent).
SPOKEN = {
    "channel 1": [(4.92, 8.45), (11.35, 12.83), (15.92, 18.57), (25.60, 26.36), (31.62, 32.99)],
    "channel 2": [(0.60, 4.12), (9.35, 14.92), (19.77, 23.50), (27.26, 30.92)],
}
NEAR = 0.2
"""Voice activity is sure of a beginning or end to about this."""


def read(*paths: Path, **options: object) -> tuple[list[Conversation], convoscope.ReadReport]:
    stream = convoscope.read([*paths], **options)  # type: ignore[arg-type]
    return list(stream), stream.report


def example(seconds: float = 10.0) -> tuple[NDArray[np.float32], int]:
    """The beginning of the example: the greeting, what the caller says, and the agent's first words."""
    samples, rate = soundfile.read(EXAMPLE, dtype="float32")
    return samples[: int(seconds * rate)], rate


@cache
def known_roles() -> Conversation:
    [call], _ = read(EXAMPLE, speakers={"user": "channel 1", "agent": "channel 2"})
    return call


def test_each_channel_has_its_utterances() -> None:
    [call], report = read(EXAMPLE)
    assert call.id == "bakery"
    assert [(one.name, one.role) for one in call.participants] == [("channel 1", "unknown"), ("channel 2", "unknown")]
    for who in call.participants:
        spans = [(one.segments[0].start, one.segments[-1].end) for one in call.utterances if one.speaker == who.id]
        assert len(spans) == len(SPOKEN[who.name])
        for found, true in zip(spans, SPOKEN[who.name], strict=True):
            assert found == pytest.approx(true, abs=NEAR)
    assert all(one.meant() == one.received() == "" for one in call.utterances)
    assert call.outcome.duration == pytest.approx(34.0, abs=0.1)  # the last word ends at 32.99 s, then 1 s
    assert [clock.source for clock in call.clocks] == ["voice activity"]
    assert {"speech_from_sound", "speaker_of_unknown_role"} <= report.inferred.keys()


def test_the_user_says_who_is_on_which_channel() -> None:
    call = known_roles()
    assert sorted(call.roles.values()) == ["assistant", "user"]
    # Greeting; four times the caller and then the agent; the last thank-you is without a reply.
    assert [bool(turn.user) for turn in call.turns] == [False, True, True, True, True]


def test_one_channel_is_speech_of_no_one_in_particular(tmp_path: Path) -> None:
    samples, rate = example()
    soundfile.write(tmp_path / "mono.wav", samples.mean(axis=1), rate)
    [call], _ = read(tmp_path / "mono.wav")
    assert call.participants == ()
    assert call.utterances == ()
    marks = [event for event in call.timeline if isinstance(event, Marker)]
    assert len(marks) == len(call.timeline) > 0
    assert {mark.name for mark in marks} == {"speech"}
    assert marks[0].time is not None
    assert marks[0].time.at == pytest.approx(0.60, abs=NEAR)


def test_the_same_on_both_channels_is_one_channel(tmp_path: Path) -> None:
    samples, rate = example()
    mono = samples.mean(axis=1)
    soundfile.write(tmp_path / "double.flac", np.stack((mono, mono), axis=1), rate)
    [call], _ = read(tmp_path / "double.flac")
    assert call.participants == ()


def test_the_same_recorded_twice_is_one_channel(tmp_path: Path) -> None:
    """Two lines with noise of their own, 30 dB below the voices: in a second of speech they correlate to 0.999,
    and in a pause not at all. Sides that leak into each other at 0.4 stay two: they are not of one level."""
    samples, rate = example()
    mono = samples.mean(axis=1)
    level = float(np.sqrt((mono**2).mean())) / 10 ** (30 / 20)
    noise = np.random.default_rng(5).normal(0.0, level, (len(mono), 2))
    soundfile.write(tmp_path / "twice.flac", mono[:, None] + noise, rate)
    [call], _ = read(tmp_path / "twice.flac")
    assert call.participants == ()
    soundfile.write(tmp_path / "leaks.flac", samples + 0.4 * samples[:, ::-1], rate)
    [call], _ = read(tmp_path / "leaks.flac")
    assert len(call.participants) == 2


def test_where_only_one_channel_has_speech_it_may_be_that_of_both(tmp_path: Path) -> None:
    samples, rate = example()
    samples[:, 1] = 0.0
    soundfile.write(tmp_path / "half.wav", samples, rate)
    [call], report = read(tmp_path / "half.wav", speakers={"agent": "channel 2", "user": "channel 1"})
    assert not [one for one in call.timeline if isinstance(one, Utterance)]
    assert "channels_not_separate" in report.set_aside
    assert sorted(call.roles.values()) == ["assistant", "user"]


def test_silence_is_a_call_without_speech(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "silent.wav", np.zeros((8_000 * 5, 2), np.float32), 8_000)
    [call], report = read(tmp_path / "silent.wav")
    assert call.timeline == ()
    assert "recording_silent" in report.inferred
    assert promised(call) == {"audio.mos": "recording_silent", "audio.speech_share": "recording_silent"}


def promised(call: Conversation) -> dict[str, str]:
    """What a plan says of two metrics of sound: a reason, or nothing where they can be measured."""
    planned = plan(installed().resolve(["audio.mos", "audio.speech_share"]), [call], frozenset([RECORDING])).metrics
    return {one.metric: "".join(gap.code for gap in one.missing) for one in planned if "@" not in one.metric}


def test_a_plan_promises_of_sound_what_is_measured(tmp_path: Path) -> None:
    """A bare recording was listened to when it was read: without speech, or without sides, less is promised."""
    noise = np.random.default_rng(0).normal(0, 0.1, (16_000 * 5, 2)).astype(np.float32)
    soundfile.write(tmp_path / "noise.wav", noise, 16_000)
    [call], _ = read(tmp_path / "noise.wav")
    assert promised(call) == {"audio.mos": "too_little_speech", "audio.speech_share": "too_little_speech"}
    [call], _ = read(EXAMPLE)
    assert promised(call) == {"audio.mos": "speakers_unknown", "audio.speech_share": ""}
    assert promised(known_roles()) == {"audio.mos": "", "audio.speech_share": ""}


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3", "aiff"])
def test_formats_are_known_by_their_first_bytes(tmp_path: Path, ending: str) -> None:
    samples, rate = example()
    written = tmp_path / f"call.{ending}"
    soundfile.write(written, samples, rate)
    # The name says nothing, but for MP3, whose frames begin as other files may.
    path = written if ending == "mp3" else written.rename(tmp_path / "call")
    [call], report = read(path)
    assert call.id == "call"
    assert [one.speaker[-1] for one in call.utterances] == ["2", "1", "2"]
    assert [file.format for file in report.files.values()] == ["recording"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("cut.wav", b"RIFF\x24\0\0\0WAVEfmt ", "is a recording that cannot be read"),
        ("text.wav", b"hello", "text.wav: is not a recording: its first bytes are text"),
        ("json.wav", b'{"a": 1}', "json.wav: is not a recording: its first bytes are text"),
        ("some.wav", bytes(range(256)), "is not a recording: its first bytes are of no known sound format"),
        (
            "call.m4a",
            b"\0\0\0\x20ftypM4A \0\0\0\0" + bytes(100),
            r"is an MP4 or M4A file, which is not opened \(ffmpeg",
        ),
        ("call.webm", b"\x1aE\xdf\xa3" + bytes(100), r"is a WebM or Matroska file, which is not opened \(ffmpeg"),
        # µ-law of speech has no null byte.
        ("call.alaw", bytes(range(128, 256)) * 40, r"without a header, so that its rate is unknown \(ffmpeg -f alaw"),
        ("call.ulaw", bytes(range(256)) * 40, r"without a header, so that its rate is unknown \(ffmpeg -f mulaw"),
    ],
)
def test_what_is_no_recording_is_called_by_its_name(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NothingReadable, match=words):
        read(tmp_path / name)


def test_beside_a_log_a_recording_is_no_conversation(tmp_path: Path) -> None:
    write_json(tmp_path / "chat.json", CHAT)
    shutil.copy(EXAMPLE, tmp_path / "bakery.ogg")
    for paths in ([tmp_path], [tmp_path / "chat.json", tmp_path / "bakery.ogg"]):
        calls, report = read(*paths)
        assert [call.source.format for call in calls] != ["recording"]
        assert len(calls) == 1
        assert report.problem_count == 0
        assert report.files["bakery.ogg"].skipped.startswith("is a recording beside logs")


def test_a_folder_of_recordings_is_a_conversation_each(tmp_path: Path) -> None:
    for name in ("a.ogg", "b.ogg"):
        samples, rate = example(5.0 if name == "a.ogg" else 9.0)
        soundfile.write(tmp_path / name, samples, rate)
    calls, _ = read(tmp_path)
    assert [call.id for call in calls] == ["a", "b"]


def test_without_the_extra_the_reader_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convoscope.audio.reader.is_installed", lambda: False)
    shutil.copy(EXAMPLE, tmp_path / "bakery.ogg")
    with pytest.raises(NothingReadable, match=r"pip install 'convoscope\[audio\]'"):
        read(tmp_path)


def test_the_channel_that_is_not_named_is_the_other_side() -> None:
    # Of two channels one is the agent's, so the other is the user's.
    [call], report = read(EXAMPLE, speakers={"agent": "channel 2"})
    assert {one.name: one.role for one in call.participants} == {"channel 1": "user", "channel 2": "assistant"}
    assert "channel 1_taken_as_user" in report.inferred
    assert "speaker_of_unknown_role" not in report.inferred
    [call], _ = read(EXAMPLE, speakers={"user": "channel 1"})
    assert {one.name: one.role for one in call.participants} == {"channel 1": "user", "channel 2": "assistant"}


def test_a_third_channel_keeps_all_unnamed_ones_unknown(tmp_path: Path) -> None:
    samples, rate = example()
    soundfile.write(tmp_path / "three.wav", np.column_stack((samples, samples[::-1, 0])), rate)
    [call], _ = read(tmp_path / "three.wav", speakers={"agent": "channel 2"})
    assert [one.role for one in call.participants] == ["unknown", "assistant", "unknown"]


def test_an_echo_of_the_agent_is_no_speech_of_the_caller(tmp_path: Path) -> None:
    # The agent (channel 2) is heard on the caller's channel, 0.12 s later and at a third: the same utterances are left.
    samples, rate = soundfile.read(EXAMPLE, dtype="float32")
    late = round(0.12 * rate)
    samples[late:, 0] += 0.3 * samples[:-late, 1]
    soundfile.write(tmp_path / "echo.wav", samples, rate)
    [call], report = read(tmp_path / "echo.wav", speakers={"agent": "channel 2"})
    assert "echo_left_out" in report.inferred
    names = {who.id: who.name for who in call.participants}
    begins = {name: [one.segments[0].start for one in call.utterances if names[one.speaker] == name] for name in SPOKEN}
    assert begins["channel 2"] == pytest.approx([start for start, _ in SPOKEN["channel 2"]], abs=NEAR)
    assert len(begins["channel 1"]) <= len(SPOKEN["channel 1"])
    assert all(any(abs(at - start) < 0.5 for start, _ in SPOKEN["channel 1"]) for at in begins["channel 1"])


def test_sides_without_names_have_shares_and_gaps() -> None:
    """By SPOKEN: channel 1 speaks 3.53 + 1.48 + 2.65 + 0.76 + 1.37 = 9.79 s, channel 2 16.48 s. The other side begins
    0.80, 0.90, 1.00, 1.20, 2.10, 0.90 and 0.70 s after the last word: 7 changes, and 0.90 s is the median."""
    [call], _ = read(EXAMPLE)
    observation = overlap_share.function(call, Recordings())
    talk = observation.details["talk"]
    first, second = (float(talk[f"channel {number}"].split()[0]) for number in (1, 2))
    assert first == pytest.approx(9.79, abs=5 * NEAR)
    assert second == pytest.approx(16.48, abs=4 * NEAR)
    gap, _, text = talk["gap"].partition(" s, ")
    assert float(gap) == pytest.approx(0.9, abs=NEAR)
    assert text == "median of 7 changes of side"


def test_the_next_step_is_a_command(tmp_path: Path) -> None:
    stream = convoscope.read(EXAMPLE)
    list(stream)
    command = 'convoscope score bakery.ogg --speaker agent="channel 1" (or "channel 2")'
    assert sides_text(stream.report) == f"who is on which channel is not known; {command} measures each side"
    known = convoscope.read(EXAMPLE, speakers={"user": "channel 1"})
    list(known)
    assert sides_text(known.report) == ""


def test_one_channel_has_no_speaker_to_name(tmp_path: Path) -> None:
    samples, rate = example(5.0)
    soundfile.write(tmp_path / "mono.wav", samples.mean(axis=1), rate)
    with pytest.raises(UsageError, match=r"--speaker: mono\.wav has one channel, so no speaker is known") as caught:
        read(tmp_path / "mono.wav", speakers={"agent": "channel 1"})
    assert "seen were" not in str(caught.value)


def test_its_moments_are_seconds_of_the_recording(tmp_path: Path) -> None:
    """Turns begin where they are heard, not at the first speech: 3 s of silence are before it."""
    samples, rate = example()
    soundfile.write(tmp_path / "call.wav", np.concatenate([np.zeros((3 * rate, 2)), samples]), rate)
    (call,), _ = read(tmp_path / "call.wav")
    ruler, first = Ruler(call), call.utterances[0].segments[0]
    assert first.start >= 3.0
    assert ruler.at(Time(first.start, first.clock)) == first.start


def test_the_read_report_counts_recordings_beside_a_log(tmp_path: Path) -> None:
    write_json(tmp_path / "chat.json", CHAT)
    shutil.copy(EXAMPLE, tmp_path / "bakery.ogg")
    _, report = read(tmp_path)
    assert reading_text(report) == "read 1 conversation from 1 file (openai-chat), with 1 recording"


def test_fields_that_decide_the_sides_are_not_unknown() -> None:
    stream = convoscope.read(EXAMPLE.parents[1] / "sound" / "items.jsonl")
    [call] = stream
    assert not [name for name in stream.report.unknown if "audio_channel" in name]
    assert call.recording is not None
    assert call.recording.extras["audio_channel_left"] == "user"


def test_a_page_does_not_show_folders() -> None:
    recording = AudioFile(
        tracks=(Track(path="/calls/ann/a.wav"), Track(path="b.wav")),
        extras={"recording_ambiguous": ["/calls/ann/c.wav"], "kept": "/x"},
    )
    assert shown_recording(recording) == AudioFile(
        tracks=(Track(path="a.wav"), Track(path="b.wav")), extras={"recording_ambiguous": ["c.wav"], "kept": "/x"}
    )
