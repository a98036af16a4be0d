"""The recording of a conversation becomes tracks, or a reason."""

from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import (
    AudioFile,
    Clock,
    Conversation,
    Participant,
    Segment,
    Source,
    Text,
    Time,
    Track,
    Utterance,
)
from convoscope.resources import RecordingError
from support import sounds

np, soundfile = sounds.np, sounds.soundfile

from convoscope.audio.files import load_tracks  # noqa: E402  after the check for the extra
from convoscope.audio.speakers import sounds_of  # noqa: E402

SPEAKERS = (Participant("bot", "assistant"), Participant("caller", "user"))


def call(*tracks: Track, times: list[tuple[str, float, float]] = [], **facts: Any) -> Conversation:  # noqa: B006
    """A conversation with a recording, and utterances at these times."""
    ids = {"assistant": "bot", "user": "caller"}
    clock = facts.pop("clock", "audio")
    utterances = tuple(
        Utterance(seq=seq, speaker=ids[role], intended=Text("x"), segments=(Segment(start, end, clock),))
        for seq, (role, start, end) in enumerate(times)
    )
    kind = "audio" if clock == "audio" else "wall"
    return Conversation(
        id="c",
        participants=SPEAKERS,
        clocks=(Clock(id=clock, kind=kind),) if times else (),
        timeline=utterances,
        recording=AudioFile(tracks=tracks) if tracks else None,
        **facts,
    )


def reason_of(conversation: Conversation) -> str:
    with pytest.raises(RecordingError) as caught:
        load_tracks(conversation)
    return caught.value.reason


class TestFormats:
    @pytest.mark.parametrize(
        ("ending", "subtype", "rate"),
        [
            ("wav", "PCM_16", 16000),
            ("wav", "ULAW", 8000),
            ("wav", "ALAW", 8000),
            ("wav", "FLOAT", 48000),
            ("flac", "PCM_16", 44100),
            ("ogg", "VORBIS", 16000),
            ("opus", "OPUS", 48000),
            ("mp3", "MPEG_LAYER_III", 24000),
        ],
    )
    def test_a_tone_is_read_from_each(self, tmp_path: Path, ending: str, subtype: str, rate: int) -> None:
        format = {"opus": "OGG"}.get(ending)
        file = sounds.write(
            tmp_path / f"c.{ending}", sounds.tone(440, 2, rate=rate), rate=rate, subtype=subtype, format=format
        )
        [track] = load_tracks(call(Track(path=str(file))))
        assert track.rate == rate
        assert track.seconds == pytest.approx(2, abs=0.1)  # codecs of frames add up to two frames
        samples = track.read(0.5, 1.5, rate=16000)
        assert len(samples) == pytest.approx(16000, abs=2)
        # A second of 16,000 samples has bins of 1 Hz: the loudest is the tone.
        assert np.abs(np.fft.rfft(samples[:16000])).argmax() == pytest.approx(440, abs=1)

    def test_windows_hold_every_sample_once(self, tmp_path: Path) -> None:
        wave = sounds.noise(7.3)
        file = sounds.write(tmp_path / "c.wav", wave, subtype="FLOAT")
        [track] = load_tracks(call(Track(path=str(file))))
        windows = list(track.windows(2.0))
        assert [start for start, _ in windows] == [0.0, 2.0, 4.0, 6.0]
        assert np.array_equal(np.concatenate([samples for _, samples in windows]), wave)

    def test_an_hour_is_read_with_flat_memory(self, tmp_path: Path) -> None:
        file = tmp_path / "long.wav"
        size = 3600 * 8000 * 2
        format = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
        with file.open("wb") as stream:
            stream.write(b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + struct.pack("<I", 16) + format)
            stream.write(b"data" + struct.pack("<I", size))
            stream.truncate(44 + size)  # silence that takes no room on the disk
        [track] = load_tracks(call(Track(path=str(file))))
        tracemalloc.start()
        try:
            count = sum(len(samples) for _, samples in track.windows(10.0, rate=16000))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert count == pytest.approx(3600 * 16000, abs=100)
        # As floats the hour would take 230 MB; a window of 10 s takes 0.64 MB.
        assert peak < 10_000_000

    def test_what_has_no_header_is_refused_with_a_hint(self, tmp_path: Path) -> None:
        file = tmp_path / "c.ulaw"
        file.write_bytes(bytes(range(256)) * 100)
        with pytest.raises(RecordingError, match="is not a recording") as caught:
            load_tracks(call(Track(path=str(file))))
        assert caught.value.reason == "recording_not_readable"
        assert "ffmpeg -f mulaw" in caught.value.hint


class TestReasons:
    def test_no_recording(self) -> None:
        assert reason_of(call()) == "no_recording"
        assert reason_of(call(source=Source(format="standard-data"))) == "no_raw_complete_audio"

    def test_missing(self, tmp_path: Path) -> None:
        assert reason_of(call(Track(path=str(tmp_path / "gone.wav")))) == "recording_not_found"
        assert reason_of(call(Track(path="nul\0.wav"))) == "recording_not_found"

    def test_remote(self) -> None:
        assert reason_of(call(Track(url="https://127.0.0.1:1/a.wav"))) == "recording_remote"

    @pytest.mark.parametrize("content", [b"RIFF", b"no sound at all" * 50, b"\0" * 4000, b"ID3" + b"\xff" * 500])
    def test_broken(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "c.wav"
        file.write_bytes(content)
        assert reason_of(call(Track(path=str(file)))) == "recording_not_readable"

    def test_empty(self, tmp_path: Path) -> None:
        empty = tmp_path / "c.wav"
        empty.write_bytes(b"")
        assert reason_of(call(Track(path=str(empty)))) == "recording_empty"
        no_samples = sounds.write(tmp_path / "d.wav", sounds.silence(0))
        assert reason_of(call(Track(path=str(no_samples)))) == "recording_empty"

    def test_cut_short(self, tmp_path: Path) -> None:
        file = sounds.write(tmp_path / "c.wav", sounds.noise(3))
        file.write_bytes(file.read_bytes()[:-2000])
        with pytest.raises(RecordingError, match="2,000 bytes that its header announces are missing"):
            load_tracks(call(Track(path=str(file))))

    def test_numbers_that_are_none(self, tmp_path: Path) -> None:
        wave = sounds.noise(2)
        wave[20_000] = np.nan
        [track] = load_tracks(call(Track(path=str(sounds.write(tmp_path / "c.wav", wave, subtype="FLOAT")))))
        with pytest.raises(RecordingError, match="samples that are no numbers"):
            track.speech()
        wave[20_000] = 1e9
        [track] = load_tracks(call(Track(path=str(sounds.write(tmp_path / "d.wav", wave, subtype="FLOAT")))))
        with pytest.raises(RecordingError, match="full scale is 1"):
            track.read()

    def test_absurd_headers(self, tmp_path: Path) -> None:
        def header(channels: int, rate: int) -> bytes:
            data = b"\0\0" * 1000
            format = struct.pack("<HHIIHH", 1, channels, rate, rate * 2, 2, 16)
            chunks = b"fmt " + struct.pack("<I", 16) + format + b"data" + struct.pack("<I", len(data)) + data
            return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks

        file = tmp_path / "c.wav"
        for channels, rate in ((0, 16000), (1, 0), (1, 1), (1, 2_000_000_000)):
            file.write_bytes(header(channels, rate))
            assert reason_of(call(Track(path=str(file)))) == "recording_not_readable", (channels, rate)

    def test_what_is_no_file_is_not_opened(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe.wav"
        os.mkfifo(pipe)  # to open it would wait for a writer that never comes
        for path in (pipe, Path("/dev/zero"), tmp_path):
            assert reason_of(call(Track(path=str(path)))) == "recording_not_readable"

    def test_a_text_file_is_no_recording(self) -> None:
        assert reason_of(call(Track(path="/etc/passwd"))) == "recording_not_readable"

    def test_silence_has_no_speech(self, tmp_path: Path) -> None:
        [track] = load_tracks(call(Track(path=str(sounds.write(tmp_path / "c.wav", sounds.silence(5))))))
        assert track.speech() == ()


def in_room(wave: Any) -> Any:
    """Over a loudspeaker, in a room whose sound falls by 60 dB in 0.3 s."""
    size = round(0.25 * sounds.RATE)
    tail = sounds.noise(0.25, 1.0)[:size] * 10 ** (-3 * np.arange(size) / (0.3 * sounds.RATE))
    return np.convolve(wave, tail / np.sqrt((tail**2).sum()))[: len(wave)].astype(np.float32)


def delayed(wave: Any, seconds: float) -> Any:
    return np.roll(wave, round(seconds * sounds.RATE))  # it ends in silence


DAMAGES: dict[str, Any] = {
    "inverse": lambda agent, caller, both: (both, -both),
    "panned": lambda agent, caller, both: (0.4 * both, both),
    "late": lambda agent, caller, both: (both, delayed(both, 0.03)),
    "late and soft": lambda agent, caller, both: (both, 0.3 * delayed(both, 0.03)),
    "room": lambda agent, caller, both: (both, 0.9 * in_room(both)),
    "one is silent": lambda agent, caller, both: (both, 0 * both),
    "agent on both": lambda agent, caller, both: (both, agent),
    "agent is silent": lambda agent, caller, both: (caller, 0 * agent),
    "a bit of both on both": lambda agent, caller, both: (caller + 0.4 * agent, agent + 0.4 * caller),
    "a soft caller": lambda agent, caller, both: (0.03 * caller, agent),
}


class TestSides:
    LINES = (
        ("assistant", "Thank you for calling the city museum, how may I help you?", "slt"),
        ("user", "I would like to know when you open on Sunday.", "rms"),
        ("assistant", "On Sunday we open at ten and close at six in the evening.", "slt"),
        ("user", "And is there a discount for students?", "rms"),
        ("assistant", "Students pay half, if they show their card.", "slt"),
    )

    def wave(self, tmp_path: Path, *, agent_first: bool) -> tuple[str, list[tuple[str, float, float]]]:
        lines = [(role, sounds.said(text, voice)) for role, text, voice in self.LINES]
        agent, caller, times = sounds.call_of(*lines)
        channels = (agent, caller) if agent_first else (caller, agent)
        return str(sounds.write(tmp_path / "c.wav", *channels)), times

    @pytest.mark.parametrize("agent_first", [True, False])
    def test_the_log_names_them(self, tmp_path: Path, agent_first: bool) -> None:
        path, _ = self.wave(tmp_path, agent_first=agent_first)
        labels = ("agent", "user") if agent_first else ("user", "agent")
        tracks = load_tracks(call(Track(path=path, channels=labels)))
        expected = [("bot", "assistant", "stated"), ("caller", "user", "stated")]
        found = [(one.speaker, one.role, one.basis) for one in tracks]
        assert found == (expected if agent_first else expected[::-1])

    @pytest.mark.parametrize("agent_first", [True, False])
    @pytest.mark.parametrize("shift", [0.0, 1_700_000_000.0])
    def test_the_times_of_the_log_fit_one_way_round(self, tmp_path: Path, agent_first: bool, shift: float) -> None:
        path, times = self.wave(tmp_path, agent_first=agent_first)
        shifted = [(role, start + shift, end + shift) for role, start, end in times]
        tracks = load_tracks(call(Track(path=path), times=shifted, clock="audio" if not shift else "wall"))
        roles = [one.role for one in tracks]
        assert roles == (["assistant", "user"] if agent_first else ["user", "assistant"])
        assert {one.basis for one in tracks} == {"timeline"}
        assert {one.offset for one in tracks} == ({0.0} if not shift else {None})

    def test_the_side_of_a_channel_is_never_assumed(self, tmp_path: Path) -> None:
        path, _ = self.wave(tmp_path, agent_first=True)
        tracks = load_tracks(call(Track(path=path)))
        assert [(one.speaker, one.role, one.basis) for one in tracks] == [("", "", "unknown")] * 2

    def test_labels_that_the_times_contradict_name_no_one(self, tmp_path: Path) -> None:
        path, times = self.wave(tmp_path, agent_first=True)
        right = load_tracks(call(Track(path=path, channels=("agent", "user")), times=times))
        assert [(one.speaker, one.basis) for one in right] == [("bot", "stated"), ("caller", "stated")]
        swapped = call(Track(path=path, channels=("user", "agent")), times=times)
        assert [(one.speaker, one.role, one.basis) for one in load_tracks(swapped)] == [("", "", "contradicted")] * 2
        with pytest.raises(RecordingError, match="the wrong way round"):
            sounds_of(swapped, load_tracks(swapped), "assistant")
        # Times that fit nowhere say nothing against the labels.
        odd = [(role, 0.1 * number, 0.1 * number + 0.1) for number, (role, _, _) in enumerate(times)]
        tracks = load_tracks(call(Track(path=path, channels=("user", "agent")), times=odd))
        assert [one.basis for one in tracks] == ["stated"] * 2

    def test_times_that_do_not_fit_decide_nothing(self, tmp_path: Path) -> None:
        path, times = self.wave(tmp_path, agent_first=True)
        # All of the call in the first second: the log's times are not those of the sound.
        odd = [(role, 0.1 * number, 0.1 * number + 0.1) for number, (role, _, _) in enumerate(times)]
        assert {one.basis for one in load_tracks(call(Track(path=path), times=odd))} == {"unknown"}

    def test_one_sound_on_two_channels_is_no_side(self, tmp_path: Path) -> None:
        lines = [(role, sounds.said(text, voice)) for role, text, voice in self.LINES]
        agent, caller, times = sounds.call_of(*lines)
        path = str(sounds.write(tmp_path / "c.wav", agent + caller, agent + caller))
        [track] = load_tracks(call(Track(path=path, channels=("assistant", "user")), times=times))
        assert (track.speaker, track.role, track.basis) == ("", "", "unknown")

    def calls(self, tmp_path: Path, damage: str) -> tuple[Conversation, Conversation]:
        """A call whose channels hold more than they are said to, with times of the log and without."""
        lines = [(role, sounds.said(text, voice)) for role, text, voice in self.LINES]
        agent, caller, times = sounds.call_of(*lines)
        both = agent + caller
        left, right = DAMAGES[damage](agent, caller, both)
        peak = max(np.abs(left).max(), np.abs(right).max())
        path = str(sounds.write(tmp_path / f"{damage}.wav", 0.5 * left / peak, 0.5 * right / peak))
        track = Track(path=path, channels=("caller", "bot"))
        return call(track, times=times), call(track)

    @pytest.mark.parametrize("damage", ["inverse", "panned", "late", "room", "late and soft", "one is silent"])
    def test_where_all_are_on_one_channel_the_log_cuts_it(self, tmp_path: Path, damage: str) -> None:
        timed, untimed = self.calls(tmp_path, damage)
        [track] = load_tracks(timed)
        assert (track.speaker, track.role) == ("", "")
        [agent], [caller] = (sounds_of(timed, [track], role) for role in ("assistant", "user"))
        assert agent.basis == caller.basis == "segments"
        lengths = {
            role: sum(end - at for who, at, end in self.times() if who == role) for role in ("assistant", "user")
        }
        # Voice activity hears the pauses in a turn, and its edges to about 0.1 s.
        assert agent.seconds == pytest.approx(lengths["assistant"], rel=0.15)
        assert caller.seconds == pytest.approx(lengths["user"], rel=0.15)
        # Without times, the labels are no evidence: the sound speaks against them.
        for role in ("assistant", "user"):
            with pytest.raises(RecordingError) as caught:
                sounds_of(untimed, load_tracks(untimed), role)
            assert caught.value.reason in ("channels_not_separate", "speakers_unknown")

    def times(self) -> list[tuple[str, float, float]]:
        return sounds.call_of(*((role, sounds.said(text, voice)) for role, text, voice in self.LINES))[2]

    def test_a_side_that_is_heard_alone_on_its_channel_stays(self, tmp_path: Path) -> None:
        timed, _ = self.calls(tmp_path, "agent on both")
        mixed, own = load_tracks(timed)
        assert (mixed.role, mixed.basis, own.role, own.basis) == ("", "not_separate", "assistant", "stated")
        [agent], [caller] = (sounds_of(timed, [mixed, own], role) for role in ("assistant", "user"))
        assert (agent.track, agent.basis, caller.track, caller.basis) == (own, "stated", mixed, "segments")

    def test_a_silent_side_leaves_the_other_one_where_its_times_are(self, tmp_path: Path) -> None:
        timed, untimed = self.calls(tmp_path, "agent is silent")
        assert [(one.role, one.basis) for one in load_tracks(timed)] == [("user", "stated"), ("assistant", "stated")]
        [only] = load_tracks(untimed)
        assert only.basis == "not_separate"

    @pytest.mark.parametrize("damage", ["a bit of both on both", "a soft caller"])
    def test_sides_that_leak_are_still_sides(self, tmp_path: Path, damage: str) -> None:
        for conversation in self.calls(tmp_path, damage):
            assert [one.role for one in load_tracks(conversation)] == ["user", "assistant"]

    def test_a_file_for_each_side(self, tmp_path: Path) -> None:
        lines = [(role, sounds.said(text, voice)) for role, text, voice in self.LINES]
        agent, caller, _ = sounds.call_of(*lines)
        both = sounds.write(tmp_path / "mix.wav", agent + caller)
        one, other = sounds.write(tmp_path / "a.wav", agent), sounds.write(tmp_path / "u.wav", caller)
        tracks = load_tracks(
            call(
                Track(path=str(both), channels=("bot", "caller")),
                Track(path=str(other), channels=("user",)),
                Track(path=str(one), channels=("assistant",)),
            )
        )
        assert [(track.path.name, track.speaker) for track in tracks] == [("u.wav", "caller"), ("a.wav", "bot")]

    def test_when_the_recording_began(self, tmp_path: Path) -> None:
        path, times = self.wave(tmp_path, agent_first=True)
        tracks = load_tracks(call(Track(path=path, started=Time(1000.0, "wall")), times=times, clock="wall"))
        assert {one.offset for one in tracks} == {1000.0}
