"""`convoscope transcribe`: recordings with words, kept in a file."""

from pathlib import Path

import pytest

import convoscope
from convoscope.conversation import AudioFile, Conversation, Track
from convoscope.conversation.serial import from_json, to_json
from support.command_line import convoscope as run_command
from support.two_voices import HAS_FLITE, Spoken, record
from support.weights import weights_file

pytest.importorskip("soundfile", reason="the extra audio is not installed: pip install 'convoscope[audio]'")
pytest.importorskip("faster_whisper", reason="the extra whisper is not installed: pip install 'convoscope[whisper]'")
WEIGHTS = weights_file("whisper-tiny.en").parent
pytestmark = [
    pytest.mark.skipif(not HAS_FLITE, reason="flite is not installed: apt-get install flite"),
    pytest.mark.skipif(not (WEIGHTS / "model.bin").is_file(), reason="no weights of Whisper tiny.en"),
]


def test_words_are_kept_and_can_be_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    call = record(
        [Spoken("caller", "How much do I owe?"), Spoken("agent", "Your total is forty dollars now.")],
        tmp_path / "call.wav",
    )
    # What the log of a bare recording would be: who is heard when, and no words.
    silent = {"intended": None, "spoken": None, "heard": None}
    import msgspec

    wordless = msgspec.structs.replace(
        call, timeline=tuple(msgspec.structs.replace(one, **silent) for one in call.utterances)
    )
    (tmp_path / "call.json").write_bytes(to_json(wordless))
    recogniser = f"faster-whisper:{WEIGHTS}"
    command = ["transcribe", "call.json", "--recogniser", recogniser, "--out", "words.jsonl"]
    ended = run_command(*command, cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "words.jsonl: 1 conversation\n")
    written = from_json((tmp_path / "words.jsonl").read_bytes().splitlines()[0])
    asked, answered = (one.heard.text.lower() for one in written.utterances if one.heard is not None)
    assert "how much do i owe" in asked
    assert "40" in answered
    assert written.extras["transcribed_by"].startswith("faster-whisper:whisper-tiny.en@")
    # What is there is not overwritten.
    again = run_command(*command, cwd=tmp_path)
    assert (again.code, again.err.splitlines()[0]) == (2, "error: words.jsonl exists")
    # Words of a recogniser are no texts that were meant: nothing is compared with itself.
    scored = run_command(
        *("score", "call.json", "--recogniser", recogniser, "--json", "--out", "run"),
        *("-m", "audio.spoken_entities,audio.heard_words,conversation.turns"),
        cwd=tmp_path,
    )
    figures = {one["metric"]: one["value"] for one in scored.json["summary"]["metrics"]}
    assert figures == {"conversation.turns": 1.0}


def test_a_program_gets_conversations(tmp_path: Path) -> None:
    """A recording with words, what cannot be written down by its id, and a log that keeps its words."""
    record([Spoken("caller", "How much do I owe?")], tmp_path / "call.wav", channels=1)
    (tmp_path / "log.json").write_text('[{"role": "user", "content": "Hi"}]')
    gone = Conversation(id="gone", recording=AudioFile(tracks=(Track(path=str(tmp_path / "gone.wav")),)))
    given = [*convoscope.read(tmp_path / "call.wav"), *convoscope.read(tmp_path / "log.json"), gone]
    written, refused = convoscope.transcribe(given, f"faster-whisper:{WEIGHTS}", cache=False)
    assert [one.id for one in written] == ["call", "log"]
    heard = " ".join(one.heard.text for one in written[0].utterances if one.heard is not None)
    assert "how much do i owe" in heard.lower()
    assert written[1] == given[1]
    assert list(refused) == ["gone"]
    with pytest.raises(convoscope.ConvoscopeError, match="no such recogniser"):
        convoscope.transcribe(given, "siri")


def test_it_says_where_it_is_not_known_who_speaks(tmp_path: Path) -> None:
    said = [Spoken("caller", "How much do I owe?"), Spoken("agent", "Your total is forty dollars now.")]
    record(said, tmp_path / "call.wav", channels=1)
    recogniser = f"faster-whisper:{WEIGHTS}"
    ended = run_command("transcribe", "call.wav", "--recogniser", recogniser, "--out", "words.jsonl", cwd=tmp_path)
    assert ended.code == 0
    assert "1 conversation of one channel: it is not known who speaks" in " ".join(ended.err.split())


def test_it_counts_apart_what_was_not_heard(tmp_path: Path) -> None:
    """A log keeps its words, a silent file has no speech, and files are named as seen from the output."""
    (tmp_path / "calls").mkdir()
    record([Spoken("caller", "How much do I owe?"), Spoken("agent", "Forty dollars.")], tmp_path / "calls/call.wav")
    import soundfile

    soundfile.write(tmp_path / "calls/silent.wav", [0.0] * 16_000, 16_000)
    recogniser = f"faster-whisper:{WEIGHTS}"
    command = ["transcribe", "calls", "--recogniser", recogniser, "--out", "new/folder/words.jsonl"]
    ended = run_command(*command, cwd=tmp_path)
    assert ended.code == 0
    assert ended.out == (
        "new/folder/words.jsonl: 2 conversations: 1 heard, 1 without speech; who is who is unknown (--speaker)\n"
    )
    written = [from_json(line) for line in (tmp_path / "new/folder/words.jsonl").read_bytes().splitlines()]
    paths = [track.path for one in written for track in one.recording.tracks]
    assert paths == ["../../calls/call.wav", "../../calls/silent.wav"]
    again = [one.recording.tracks[0].path for one in convoscope.read(tmp_path / "new/folder/words.jsonl")]
    assert again == [str(tmp_path / "calls/call.wav"), str(tmp_path / "calls/silent.wav")]

    (tmp_path / "log.json").write_text('[{"role": "user", "content": "Hi"}]')
    kept = run_command("transcribe", "log.json", "--recogniser", recogniser, "--out", "kept.jsonl", cwd=tmp_path)
    assert kept.out == "kept.jsonl: 1 conversation: 1 kept its words\n"
    (tmp_path / "file").write_text("")
    refused = run_command("transcribe", "log.json", "--recogniser", recogniser, "--out", "file/x.jsonl", cwd=tmp_path)
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: file cannot be made: File exists")
