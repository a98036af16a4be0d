"""Answers about recordings without a log: what holds no speech is said to hold none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

import convoscope
from convoscope.analysis.answer.model import Outcomes
from convoscope.analysis.answer.verdict import make_verdict
from convoscope.conversation import AudioFile, Clock, Conversation, Text, Track
from convoscope.resources import Recognised, Sound
from support import sounds
from support.chats import agent, chat, user


def answer(tmp_path: Path) -> str:
    run = convoscope.score(tmp_path / "calls", out=tmp_path / "run", workers=1)
    made = convoscope.make_answer(run)
    return " ".join([*(clause.text for clause in made.verdict), *made.notes])


def test_one_recording_of_silence(tmp_path: Path) -> None:
    (tmp_path / "calls").mkdir()
    sounds.write(tmp_path / "calls" / "a.wav", sounds.silence(5))
    assert "The recording is silent: nothing is measured of its sound." in answer(tmp_path)


def test_recordings_of_silence_noise_and_speech(tmp_path: Path) -> None:
    (tmp_path / "calls").mkdir()
    sounds.write(tmp_path / "calls" / "a.wav", sounds.silence(5))
    sounds.write(tmp_path / "calls" / "b.wav", sounds.noise(5))
    speech = sounds.said("Good morning. I would like a lemon cake for Saturday, please, and a bread.", "rms")
    sounds.write(tmp_path / "calls" / "c.wav", speech)
    said = answer(tmp_path)
    assert "In 1 of 3 calls the recording is silent: nothing is measured of its sound." in said
    assert "In 1 of 3 calls the recording holds less than 3 s of speech: nothing is measured of its sound." in said


@pytest.mark.parametrize(
    ("outcomes", "is_heard", "words"),
    [
        (Outcomes(no_user_speech=1), True, "The call has no word of the user, so only sound is measured."),
        (Outcomes(no_user_speech=1), False, "The call has no word of the user, so nothing is measured."),
        (Outcomes(no_user_speech=2), True, "None of the 2 calls has a word of the user, so only sound is measured."),
    ],
)
def test_a_call_without_a_user_has_the_agents_sound(outcomes: Outcomes, is_heard: bool, words: str) -> None:
    clauses = make_verdict([], "call", outcomes, [], Counter(), is_heard=is_heard)
    assert [clause.text for clause in clauses] == [words]


def test_averages_but_those_of_sound_leave_silent_users_out() -> None:
    clauses = make_verdict([], "call", Outcomes(no_user_speech=1, unknown=1), [], Counter(), is_heard=True)
    words = "1 of 2 calls: the caller never spoke; it is left out of all averages but those of sound."
    assert words in [clause.text for clause in clauses]


class KnowsEnglish(convoscope.Recogniser):
    """A recogniser of English that hears nothing."""

    identity = "english/1"
    languages = ("en",)

    async def recognise(self, sound: Sound) -> list[Recognised]:
        del sound
        return []


def test_what_a_recogniser_does_not_know_is_not_called_words_without_blanks(tmp_path: Path) -> None:
    """A French and an English call: one figure hears the words of the recogniser's languages, and one English."""

    def call(id: str, words: str) -> Conversation:
        file = sounds.write(tmp_path / f"{id}.wav", sounds.said(words))
        said = msgspec.structs.replace(agent(words, sound=[(0, 4)]), intended=Text(words), spoken=None)
        return chat(
            user("OK."),
            said,
            id=id,
            clocks=[Clock(id="audio", kind="audio", offset=0.0)],
            recording=AudioFile(tracks=(Track(path=str(file), channels=("agent",)),)),
        )

    run = convoscope.score(
        [
            call("fr", "Votre billet coûte dix dollars, et le bateau part à huit heures du matin."),
            call("en", "Your ticket costs ten dollars, and the boat leaves at eight in the morning."),
        ],
        metrics=["audio.word_accuracy@recogniser", "audio.pronunciation_audio"],
        recogniser=KnowsEnglish(),
        out=tmp_path / "run",
        workers=1,
    )
    assert convoscope.make_answer(run).unread == (
        "1 of 2 calls is not in English: 1 figure does not read them; "
        "1 of 2 calls is in a language that the recogniser does not know: 1 figure does not read them"
    )
