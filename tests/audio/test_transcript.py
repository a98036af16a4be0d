"""A recording without words becomes a conversation with words."""

import asyncio
from typing import Any

from convoscope.audio.transcript import has_no_words, transcribed
from convoscope.conversation import AudioFile, Clock, Conversation, Participant, Segment, Text, Track, Utterance
from convoscope.conversation.events import Marker, Time
from convoscope.conversation.serial import from_json, to_json
from support.tapes import Reader, Tape, Tapes, spoken

CLOCK = Clock(id="audio", kind="audio", offset=0.0)
SOUND = AudioFile(tracks=(Track(path="call.wav"),))


def said(seq: int, speaker: str, start: float, end: float, **facts: Any) -> Utterance:
    return Utterance(seq=seq, speaker=speaker, segments=(Segment(start, end),), **facts)


def two_sides(*utterances: Utterance) -> Conversation:
    people = (Participant("channel 1", ""), Participant("channel 2", ""))
    return Conversation(id="c", participants=people, clocks=(CLOCK,), timeline=utterances, recording=SOUND)


def write_down(conversation: Conversation, recording: Tapes, reader: Reader) -> Conversation:
    return asyncio.run(transcribed(conversation, recording, reader))  # type: ignore[arg-type]


def test_each_channel_has_its_words_in_its_utterances() -> None:
    conversation = two_sides(
        said(0, "channel 1", 0.0, 2.0), said(1, "channel 2", 3.0, 4.0), said(2, "channel 1", 6.0, 7.0)
    )
    tapes = Tapes(Tape("channel 1", "", (0, 2), (6, 7)), Tape("channel 2", "", (3, 4)))
    heard = [*spoken("who is there", 0.2, 0.5), *spoken("me", 3.2, 0.75), *spoken("come in", 6.1, 0.5)]
    written = write_down(conversation, tapes, Reader(*heard))
    assert [(one.speaker, one.heard and one.heard.text) for one in written.utterances] == [
        ("channel 1", "who is there"),
        ("channel 2", "me"),
        ("channel 1", "come in"),
    ]
    second = written.utterances[1].heard
    assert second is not None
    assert (second.source, second.confidence) == ("reader:test@1", 0.75)
    assert written.extras["transcribed_by"] == "reader:test@1"
    assert not has_no_words(written)
    assert from_json(to_json(written)) == written


def test_an_utterance_in_which_nothing_is_heard_has_an_empty_text() -> None:
    written = write_down(two_sides(said(0, "channel 1", 0.0, 2.0)), Tapes(Tape("channel 1", "", (0, 2))), Reader())
    (one,) = written.utterances
    assert one.heard == Text("", source="reader:test@1")


def test_one_channel_has_utterances_of_an_unknown_speaker() -> None:
    speech = [Marker(seq=0, name="speech", time=Time(0.0, "audio", 2.0))]
    conversation = Conversation(id="c", clocks=(CLOCK,), timeline=tuple(speech), recording=SOUND)
    # A pause of 1.8 s, from 1.2 to 3.0, parts two utterances.
    heard = [*spoken("who is there", 0.0), *spoken("come in", 3.0)]
    written = write_down(conversation, Tapes(Tape("", "", (0, 4))), Reader(*heard))
    assert [(one.speaker, one.heard and one.heard.text) for one in written.utterances] == [
        ("unknown", "who is there"),
        ("unknown", "come in"),
    ]
    assert written.roles == {"unknown": ""}
    assert [event.seq for event in written.timeline] == [0, 1, 2]


def test_a_log_with_words_has_words() -> None:
    assert not has_no_words(two_sides(said(0, "channel 1", 0.0, 2.0, spoken=Text("hello"))))
    assert not has_no_words(Conversation(id="c"))  # no recording
    assert has_no_words(two_sides(said(0, "channel 1", 0.0, 2.0)))
