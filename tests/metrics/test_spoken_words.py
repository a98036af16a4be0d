"""Words, pronunciation and gibberish in the sound of a call, by what a recogniser hears."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from convoscope.audio.side_words import LONGEST, Clip, cut
from convoscope.conversation import AudioFile, Clock, Conversation, Segment, Text, Track, Utterance
from convoscope.metrics.audio.spoken_words import said_errors, segments_of
from convoscope.metrics.registry import known
from convoscope.metrics.voice.transcription import word_errors
from convoscope.resources import Recognised, Sound
from convoscope.resources.sound import Span
from convoscope.scores.observation import Observation
from support.chats import UNPLACED, chat
from support.tapes import Reader, Tape, Tapes, spoken


def agent(text: str, **facts: Any) -> Utterance:
    return Utterance(seq=UNPLACED, speaker="agent", intended=Text(text), **facts)


def caller(heard: str, **facts: Any) -> Utterance:
    return Utterance(seq=UNPLACED, speaker="user", heard=Text(heard), **facts)


def call(*lines: Utterance, **facts: Any) -> Conversation:
    return chat(*lines, recording=AudioFile(tracks=(Track(path="call.wav"),)), **facts)


def ask(name: str, conversation: Conversation, recording: Any, recogniser: Any) -> list[Observation]:
    declared: Any = known(name)
    return list(asyncio.run(declared.ask(conversation, recording=recording, recogniser=recogniser)))


def only(name: str, conversation: Conversation, recording: Any, recogniser: Any) -> Observation:
    (one,) = ask(name, conversation, recording, recogniser)
    return one


AGENT = Tape("agent", "assistant", (0, 10))


class TestWordAccuracy:
    def test_counts_words_of_all_utterances(self) -> None:
        # your table is booked for friday → your cable is for friday now: 1 substituted, 1 deleted, 1 inserted of 6;
        # good bye → good bye: 3 errors of 8 words.
        conversation = call(agent("Your table is booked for Friday."), agent("Good bye."))
        heard = [*spoken("your cable is for friday now", 0), *spoken("good bye", 5)]
        one = only("audio.word_accuracy@recogniser", conversation, Tapes(AGENT), Reader(*heard))
        assert (one.value, one.numerator, one.denominator) == (5 / 8, 5, 8)
        assert one.details is not None
        assert (one.details["substitutions"], one.details["deletions"], one.details["insertions"]) == (1, 1, 1)
        # The six words of the first utterance, of 0.4 seconds each.
        assert [(each["start"], each["end"]) for each in one.details["moments"]] == [(0.0, 2.4)]
        assert one.details["by"] == "reader:test"

    def test_is_not_below_zero(self) -> None:
        yes = agent("Yes.", segments=(Segment(0.0, 10.0),))
        one = only("audio.word_accuracy@recogniser", call(yes), Tapes(AGENT), Reader(*spoken("no no no", 0)))
        assert (one.value, one.numerator, one.denominator) == (0.0, 0.0, 1.0)

    def test_what_was_cut_off_was_not_meant_to_arrive(self) -> None:
        # Three words were heard before the cut: the other three are no errors.
        conversation = call(agent("Your table is booked for Friday.", cut_off_by="user"))
        one = only("audio.word_accuracy@recogniser", conversation, Tapes(AGENT), Reader(*spoken("your table is", 0)))
        assert (one.value, one.denominator) == (1.0, 3.0)

    def test_without_a_text_of_the_agent(self) -> None:
        conversation = call(Utterance(seq=UNPLACED, speaker="agent", heard=Text("Good bye.")))
        declared: Any = known("audio.word_accuracy@recogniser")
        unmet = [need.code for need in declared.needs if need.present and not need.present(conversation)]
        assert "no_intended_text" in unmet

    @pytest.mark.parametrize(
        ("tapes", "reason"),
        [
            (Tapes(), "recording_not_found"),
            (Tapes(Tape("", "", (0, 5)), Tape("", "", (5, 9))), "speakers_unknown"),
            (Tapes(Tape("user", "user", (0, 5))), "no_track_of_speaker"),
            (Tapes(Tape("", "", (0, 5))), "speakers_unknown"),  # one channel, and a log without times
            (Tapes(Tape("agent", "assistant")), "too_little_speech"),
        ],
    )
    def test_what_cannot_be_heard_has_a_reason(self, tapes: Tapes, reason: str) -> None:
        one = only("audio.word_accuracy@recogniser", call(agent("Good bye.")), tapes, Reader())
        assert (one.value, one.reason) == (None, reason)

    def test_a_recogniser_that_does_not_know_the_language_is_not_asked(self) -> None:
        reader = Reader(*spoken("guten tag", 0))
        reader.languages = ("en",)  # type: ignore[attr-defined]
        conversation = call(agent("Guten Tag, was kann ich heute für Sie tun?"), extras={"language": "de"})
        one = only("audio.word_accuracy@recogniser", conversation, Tapes(AGENT), reader)
        assert (one.status, one.reason, reader.clips) == ("unmeasured", "language_not_supported", [])

    def test_english_words_beside_a_foreign_language_are_heard(self) -> None:
        """Few words of the agent, and many of the caller in French: the agent's are plainly English."""
        lines = [
            caller("Bonjour, je voudrais savoir combien je dois payer pour le billet du bateau."),
            agent("Your ticket costs ten dollars."),
        ]
        reader = Reader(*spoken("your ticket costs ten dollars", 0))
        one = only("audio.pronunciation_audio", call(*lines), Tapes(AGENT), reader)
        assert (one.value, one.reason) == (1.0, "")
        french = [lines[0], agent("Votre billet coûte dix dollars, et le bateau part à huit heures.")]
        one = only("audio.pronunciation_audio", call(*french), Tapes(AGENT), reader)
        assert one.reason == "language_not_supported"

    def test_of_both_sides_in_one_channel_the_times_say_what_is_whose(self) -> None:
        lines = [
            agent("Good morning.", segments=(Segment(0.0, 1.0),)),
            caller("hello", segments=(Segment(2.0, 3.0),)),
            agent("Who is it?", segments=(Segment(4.0, 5.0),)),
            agent("Hello?", segments=(Segment(6.0, 7.0),)),
            caller("me", segments=(Segment(6.5, 7.5),)),  # over the agent: it is unknown whose words these are
        ]
        heard = [*spoken("good morning", 0.1), *spoken("hello", 2.1), *spoken("who is it", 4), *spoken("me", 6.6)]
        tape = Tape("", "", (0, 1), (2, 3), (4, 5), (6, 7.5))
        one = only("audio.word_accuracy@recogniser", call(*lines), Tapes(tape), Reader(*heard))
        # good morning, who is it: five words, none of them wrong. The last utterance is left out.
        assert (one.value, one.denominator) == (1.0, 5.0)

    def in_one_channel(self, shift: float, *speech: tuple[float, float]) -> Observation:
        """Four turns of a second each, two of the agent, logged so much later than the sound is said to be."""
        said = [("agent", "Good morning."), ("user", "hello"), ("agent", "Who is it?"), ("user", "me")]
        lines = [
            (agent if who == "agent" else caller)(text, segments=(Segment(start, start + 1.0),))
            for (who, text), start in zip(said, (shift, 3 + shift, 5 + shift, 9 + shift), strict=True)
        ]
        # Wherever it is asked, it hears words: recognisers do so in silence, too.
        words = [*spoken("good morning", 0.1), *spoken("hello", 3.1), *spoken("who is it", 5), *spoken("me", 9.1)]
        return only("audio.word_accuracy@recogniser", call(*lines), Tapes(Tape("", "", *speech)), Reader(*words))

    def test_in_one_channel_a_log_with_a_shifted_clock_cuts_where_the_turns_are_heard(self) -> None:
        """By its own times, 2 s late, the agent's second turn would be a part of the caller's."""
        one = self.in_one_channel(2.0, (0, 1), (3, 4), (5, 6), (9, 10))
        assert (one.value, one.denominator) == (1.0, 5.0)

    def test_in_one_channel_a_log_of_another_call_cuts_nothing(self) -> None:
        one = self.in_one_channel(0.0, (20, 20.4), (21.2, 23.9), (30, 39), (41, 41.3))
        assert (one.value, one.reason) == (None, "log_does_not_fit_sound")

    def test_of_another_call_says_nothing_of_the_voice(self) -> None:
        """Three turns of the agent on its own track: neither their times nor their words are in the recording."""
        texts = ["Good morning.", "Who is it?", "Your table is booked."]
        lines = [
            agent(text, segments=(Segment(start, start + 1.0),)) for text, start in zip(texts, (1, 5, 9), strict=True)
        ]
        tape = Tape("agent", "assistant", (20, 29), (31, 31.5), (40, 48), (50, 51))
        other = Reader(*spoken("dogs travel free of charge on all of our boats", 21))
        one = only("audio.word_accuracy@recogniser", call(*lines), Tapes(tape), other)
        assert (one.value, one.reason) == (None, "log_does_not_fit_sound")
        # Without times, nothing says that it is this call.
        untimed = only("audio.word_accuracy@recogniser", call(*map(agent, texts)), Tapes(tape), other)
        assert (untimed.value, untimed.reason) == (None, "log_does_not_fit_sound")
        # Nor does a recogniser that hears no word in half a minute of speech.
        nothing = only("audio.word_accuracy@recogniser", call(*map(agent, texts)), Tapes(tape), Reader())
        assert (nothing.value, nothing.reason) == (None, "log_does_not_fit_sound")
        # The same words at other times are those of this call, whatever its clock says.
        same = Reader(*spoken("good morning", 20), *spoken("who is it", 24), *spoken("your table is booked", 41))
        assert only("audio.word_accuracy@recogniser", call(*lines), Tapes(tape), same).value == 1.0

    def test_in_one_channel_a_turn_without_a_voice_has_no_words(self) -> None:
        # "Who is it?" is logged from 5 to 6 s, and no voice is heard there: three of five words are lost.
        one = self.in_one_channel(0.0, (0, 1), (3, 4), (9, 10))
        assert (one.numerator, one.denominator) == (2.0, 5.0)

    @pytest.mark.parametrize("channels", [1, 2])
    @pytest.mark.parametrize(
        "metric", ["word_accuracy@recogniser", "pronunciation_audio", "spoken_entities", "gibberish", "heard_words"]
    )
    def test_of_a_silent_recording_there_is_no_number(self, tmp_path: Path, metric: str, channels: int) -> None:
        pytest.importorskip("soundfile", reason="the extra audio is not installed")
        from convoscope.audio.resource import Recordings
        from support import sounds

        file = sounds.write(tmp_path / "call.wav", *[sounds.silence(12)] * channels)
        lines = [
            agent("That is $50.", segments=(Segment(1.0, 4.0),)),
            caller("fine", segments=(Segment(5.0, 8.0),)),
        ]
        clock = Clock(id="audio", kind="audio", offset=0.0)
        conversation = chat(*lines, recording=AudioFile(tracks=(Track(path=str(file)),)), clocks=(clock,))
        heard = [Recognised(word, 0.0, 0.4, 0.9) for word in ["thanks", "for", "watching"]]
        [one] = ask(f"audio.{metric}", conversation, Recordings(), Reader(*heard))
        assert (one.value, one.reason) == (None, "recording_silent")


class TestWordsInOneForm:
    @pytest.mark.parametrize(
        ("text", "heard"),
        [
            ("We open at 9:00.", "we open at nine"),
            ("It costs $2.50.", "it costs two fifty"),
            ("It costs $0.99.", "it costs 99 cents"),
            ("It costs €19.99.", "it costs 19 euros 99"),
            ("Due on 12/03/2026.", "due on december third twenty twenty six"),
            ("From 1st of July.", "from july first"),
            ("It is 4x faster.", "it is four times faster"),
            ("Order #12345 is here.", "order number one two three four five is here"),
            ("It is -5 degrees.", "it is minus five degrees"),
            ("Another 5 km.", "another five kilometers"),
            ("Dr. Smith is in.", "doctor smith is in"),
            ("Apt 4B.", "apartment four b"),
            ("Your code is K7M4QX.", "your code is k seven m four q x"),
            ("We help 24/7 here.", "we help twenty four seven here"),
            ("Take 1½ tablets.", "take one and a half tablets"),
            ("Take ½ a tablet.", "take half a tablet"),
            ("It is 20°C.", "it is twenty degrees celsius"),
            ("It is 20°C.", "it is twenty degrees"),
            ("Take 10 mg.", "take ten milligrams"),
            ("Another 1 km.", "another one kilometer"),
            ("Ask for ext. 12.", "ask for extension twelve"),
            ("Earn 100k now.", "earn one hundred thousand now"),
            ("Go to 12 St. John St.", "go to twelve saint john street"),
            ("5 kg for $3/kg.", "five kilos for three dollars a kilo"),
            ("We open at 14:30.", "we open at half past two"),
            ("I'll call, it's late, we can't.", "i will call it is late we cannot"),
            ("I will call.", "i'll call"),
        ],
    )
    def test_have_no_errors(self, text: str, heard: str) -> None:
        assert said_errors(text, heard, "en").all == 0

    @pytest.mark.parametrize(
        ("text", "heard", "wrong"),
        [
            ("It costs $2.50.", "it costs two sixty", 2),  # 2.50 dollars: another number, and no unit
            ("It costs $450.", "it costs £450", 1),
            ("Due on 12/03/2026.", "due on december fourth twenty twenty six", 1),
            ("We open at nine.", "we open nine", 1),
            ("It costs 1½ dollars.", "it costs eleven two dollars", 1),
            ("Take ½ tablet.", "take twelve tablet", 1),
            ("It is 20°C.", "it is 20 degrees fahrenheit", 1),
            ("In 2-3 days.", "in 23 days", 3),  # 2 to 3: two are missing, one is another
        ],
    )
    def test_have_those_that_there_are(self, text: str, heard: str, wrong: int) -> None:
        assert said_errors(text, heard, "en").all == wrong

    def test_of_another_language_are_left_as_they_are(self) -> None:
        assert said_errors("um 9:00", "um neun", "de") == word_errors("um 9:00", "um neun", "de")


def pronounced(text: str, heard: str) -> Observation:
    return only("audio.pronunciation_audio", call(agent(text)), Tapes(AGENT), Reader(*spoken(heard, 0)))


class TestPronunciation:
    def test_counts_phones_and_not_words(self) -> None:
        # LEICESTER and LESTER have the same five phones.
        one = pronounced("Good morning, Leicester.", "good morning lester")
        assert (one.value, one.denominator) == (1.0, 14.0)  # G UH D, M AO R N IH NG, L EH S T ER

    def test_has_errors_where_the_phones_differ(self) -> None:
        # L EH S T ER → IY S T ER: L is missing, EH is another. 2 of 3 + 6 + 5 phones.
        one = pronounced("Good morning, Lester.", "good morning easter")
        assert (one.value, one.numerator, one.denominator) == (12 / 14, 12.0, 14.0)
        assert one.details is not None
        (moment,) = one.details["moments"]
        assert (moment["start"], moment["end"]) == (0.8, 1.2)
        assert moment["text"] == "lester: L EH S T ER → IY S T ER (easter)"

    def test_leaves_out_what_was_not_heard_and_what_is_not_in_the_dictionary(self) -> None:
        # "Kovalchick" is in no dictionary; of the last two words nothing is heard. HH IY R.
        one = pronounced("Good morning here, Kowalczyk, we call.", "good morning here kovalchick")
        assert (one.value, one.denominator) == (1.0, 12.0)
        assert one.details is not None
        assert one.details["not_heard"] + len(one.details["without_phones"]) >= 1

    def test_of_another_sentence_is_unknown(self) -> None:
        # One word of six is in both.
        one = pronounced("Your ticket costs money, and leaves.", "our office is open and quiet")
        assert (one.value, one.reason) == (None, "log_does_not_fit_sound")

    def test_leaves_out_an_utterance_less_than_half_of_which_is_heard(self) -> None:
        lines = (
            agent("Good morning, Lester.", segments=(Segment(0.0, 3.0),)),
            agent("The boat leaves at nine from here.", segments=(Segment(4.0, 10.0),)),
        )
        heard = [*spoken("good morning lester", 0), *spoken("go at", 4)]
        one = only("audio.pronunciation_audio", call(*lines), Tapes(AGENT), Reader(*heard))
        assert one.details is not None
        assert (one.value, one.denominator, one.details["utterances_not_recognised"]) == (1.0, 14.0, 1)

    def test_of_one_short_word_is_no_number(self) -> None:
        one = pronounced("Good.", "good")
        assert (one.value, one.reason, one.detail) == (
            None,
            "no_phones",
            "3 phones of words that are in the dictionary",
        )

    def test_of_short_words_that_recognisers_confuse_says_nothing(self) -> None:
        # IH N heard as AE N D: 3 + 6 + 5 phones without it.
        one = pronounced("Good morning in Lester.", "good morning and lester")
        assert one.details is not None
        assert (one.value, one.denominator, one.details["short_words"]) == (1.0, 14.0, 1)

    @pytest.mark.parametrize(
        ("text", "heard", "others"),
        [
            (
                "Good morning until then, Anna Kowalski.",
                "good morning until then peter hoffmann",
                2,
            ),  # 11 of 11 phones differ
            ("Good morning until Tuesday.", "good morning until thursday", 1),  # 2 of 5, and another day
            ("Good morning at fifteen.", "good morning at fifty", 1),  # 1 of 6, and another number
        ],
    )
    def test_of_another_word_says_nothing(self, text: str, heard: str, others: int) -> None:
        one = pronounced(text, heard)
        assert one.details is not None
        assert (one.value, one.details["errors"], one.details["moments"]) == (1.0, 0, [])
        assert one.details["other_words"] == others

    def test_of_a_unit_says_nothing(self) -> None:
        one = pronounced("Good morning, it is 20°C here.", "good morning it is 20 degrees celsius here")
        assert one.details is not None
        assert (one.value, one.details["without_phones"]) == (1.0, ["20", "c"])

    def test_without_a_word_of_the_dictionary(self) -> None:
        one = only("audio.pronunciation_audio", call(agent("Zqxbrt.")), Tapes(AGENT), Reader(*spoken("zqxbrt", 0)))
        assert (one.value, one.reason) == (None, "no_phones")


class TestGibberish:
    def nonsense(self, again: str, probability: float = 0.7) -> Observation:
        first = "the war of men is at the end of a long way to go"
        reader = Reader(*spoken(first, 0, probability), again=spoken(again, 0.8))
        return only("audio.gibberish", call(agent("Hello.")), Tapes(Tape("agent", "assistant", (0, 6))), reader)

    def test_whose_words_are_others_in_another_cut_is_no_number(self) -> None:
        one = self.nonsense("we have some more of those and they will never come back")
        assert (one.value, one.reason) == (None, "recogniser_unsure")
        assert one.detail == "6.0 of 6.0 s are heard otherwise at the second time"

    def test_whose_words_are_the_same_in_another_cut_is_speech(self) -> None:
        assert self.nonsense("men is at the end of a long way to go").value == 0.0

    def test_of_sure_words_is_not_heard_again(self) -> None:
        assert self.nonsense("we have some more of those", 0.95).value == 0.0

    def test_in_one_clip_leaves_the_others(self) -> None:
        # 4 of 10 s are heard otherwise; of the other 6 none is flagged.
        words = [*spoken("good morning this is the office of the harbour here", 1, 0.95)]
        words += spoken("it was never so much of the men and go", 20, 0.7)
        tape = Tape("agent", "assistant", (0, 6), (20, 24))

        class Guessing(Reader):
            async def recognise(self, sound: Sound) -> Sequence[Recognised]:
                heard = await super().recognise(sound)
                return heard if len(self.clips) < 3 else spoken("who is there at all or not", 0)

        one = only("audio.gibberish", call(agent("Hello.")), Tapes(tape), Guessing(*words))
        assert (one.value, one.denominator) == (0.0, pytest.approx(6.0))
        assert one.details is not None
        assert one.details["open_seconds"] == pytest.approx(4.0)

    def test_is_speech_that_the_recogniser_does_not_write(self) -> None:
        # Two clips, 6 and 2 seconds of speech; nothing is heard of the second: 2 ÷ 8.
        tape = Tape("agent", "assistant", (0, 6), (20, 22))
        one = only("audio.gibberish", call(agent("Hello.")), Tapes(tape), Reader(*spoken("we are here now", 1)))
        assert one.value == pytest.approx(2 / 8)
        assert one.details is not None
        (moment,) = one.details["moments"]
        assert moment["text"] == "no words"
        assert moment["start"] <= 20.0
        assert moment["end"] >= 22.0

    def test_under_three_seconds_says_nothing(self) -> None:
        tape = Tape("agent", "assistant", (0, 2.9))
        one = only("audio.gibberish", call(agent("Hello.")), Tapes(tape), Reader(*spoken("hello", 0)))
        assert (one.status, one.reason) == ("not_applicable", "too_little_speech")

    def test_of_the_caller_takes_the_callers_side(self) -> None:
        tapes = Tapes(AGENT, Tape("user", "user", (0, 4)))
        one = only("audio.gibberish@caller", call(agent("Hello."), caller("hi")), tapes, Reader())
        assert (one.value, one.denominator) == (1.0, 4.0)

    @pytest.mark.parametrize(
        ("text", "probability", "fault"),
        [
            ("we are closed on sunday", 0.9, ""),
            ("we are closed on sunday", 0.36, "unsure"),  # ln 0.36 = −1.02
            ("we are closed on sunday", 0.37, ""),  # ln 0.37 = −0.99
            ("we are closed on sunday", None, ""),
            ("blar grblx sunday", 0.9, "unknown words"),  # two of three
            ("blar sunday", 0.9, ""),  # one of two
            ("blar kowalczyk closed", 0.9, ""),  # the log has the name
            ("and then " * 12, 0.9, "repeats itself"),
        ],
    )
    def test_has_its_signs(self, text: str, probability: float | None, fault: str) -> None:
        words = tuple(spoken(text, 0, probability))
        (segment,) = segments_of(Clip(0.0, 10.0, 8.0, words), {"kowalczyk"})
        assert (segment.fault, segment.speech) == (fault, 8.0)

    def test_all_speech_of_a_clip_is_in_one_of_its_segments(self) -> None:
        words = (*spoken("we are closed.", 0), *spoken("blar grblx", 5))
        segments = list(segments_of(Clip(0.0, 10.0, 8.0, words), ()))
        assert [one.fault for one in segments] == ["", "unknown words"]
        assert sum(one.speech for one in segments) == pytest.approx(8.0)


class TestClips:
    def test_end_in_pauses_and_are_not_too_long(self) -> None:
        tape = Tape("agent", "assistant", (0.0, 3.0), (3.5, 9.0), (12.0, 100.0), seconds=120.0)
        clips = list(cut(tape, tape.speech()))  # type: ignore[arg-type]
        # The pause of 0.5 s is within a clip, that of 3 s is not; a margin of 0.25 s around each.
        assert clips[0] == Span(0.0, 9.25)
        assert clips[1].start == 11.75
        assert clips[-1].end == 100.25
        assert all(one.end - one.start <= LONGEST + 0.25 + 1e-6 for one in clips)
        # No speech is lost where a long one is cut.
        assert all(one.end == other.start for one, other in pairwise(clips[1:]))

    def test_of_speech_close_together_do_not_overlap(self) -> None:
        tape = Tape("agent", "assistant", *((10.0 * n, 10.0 * n + 8.9) for n in range(5)))
        clips = list(cut(tape, tape.speech()))  # type: ignore[arg-type]
        assert all(one.end <= other.start for one, other in pairwise(clips))
