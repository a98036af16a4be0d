"""Names, codes, amounts and dates between the text and the sound: what convicts, and what does not."""

from pathlib import Path

import pytest

from convoscope.audio.recognise import FasterWhisper, is_installed, whisper_model
from convoscope.audio.resource import Recordings
from convoscope.conversation import Segment, Text
from convoscope.metrics.audio.meant_entities import doubt_of
from convoscope.resources import Recognised
from convoscope.scores.observation import Observation
from metrics.test_spoken_words import AGENT, agent, ask, call, caller, only
from support.chats import told
from support.tapes import Reader, Tape, Tapes, spoken
from support.two_voices import Spoken, record
from support.weights import weights_file

NAME = "audio.spoken_entities"
WEIGHTS = weights_file("whisper-tiny.en").parent


def check(text: str, heard: str, probability: float | None = 0.9, again: str | None = None) -> list[tuple[str, object]]:
    second = None if again is None else spoken(again, 0)
    reader = Reader(*spoken(heard, 0, probability), again=second)
    return told(ask(NAME, call(agent(text)), Tapes(AGENT), reader))


class TestAFact:
    @pytest.mark.parametrize(
        ("text", "heard"),
        [
            ("That is $150 in all.", "that is one hundred fifty dollars in all"),
            ("Your code is ZK3 then.", "your code is z k three then"),
            ("We come on March 14th then.", "we come on march fourteenth then"),
            ("It opens at 7:30 pm today.", "it opens at seven thirty p m today"),
            ("Your visit is on 12/03/2026 then.", "your visit is on december third twenty twenty six then"),
            ("Your visit is on 12/03/2026 then.", "your visit is on march twelfth twenty twenty six then"),
            ("Your visit is on 12/3 then.", "your visit is on december 3rd then"),
            ("It is due on 03.12.2026 then.", "it is due on december 3, 2026 then"),
            ("It costs $0.99 with tax.", "it costs 99 cents with tax"),
            ("It costs €19,99 with tax.", "it costs 19 euros and 99 cents with tax"),
            ("It costs $1.5 million in all.", "it costs one and a half million dollars in all"),
            ("It costs $2.50 with tax.", "it costs two fifty with tax"),
            ("It takes 2-3 days in all.", "it takes two to three days in all"),
            ("It takes 20-25 minutes in all.", "it takes 20 to 25 minutes in all"),
            ("We help you 24/7 on the phone.", "we help you twenty-four seven on the phone"),
            ("Your postcode is 02139 in here.", "your postcode is oh two one three nine in here"),
            ("It opens at 10 am for you.", "it opens at ten in the morning for you"),
            ("This is version 2.0 of it.", "this is version two point oh of it"),
            ("Add 1/2 cup of milk.", "add half a cup of milk"),
            ("It is -5 degrees here.", "it is minus five degrees here"),
            ("It costs 1½ dollars in all.", "it costs one and a half dollars in all"),
            ("Take ½ tablet twice a day.", "take half a tablet twice a day"),
            ("Add 2¾ cups of milk.", "add two and three quarters cups of milk"),
            ("It is 0.5% in all.", "it is half a percent in all"),
            ("It is 20°C here now.", "it is 20 degrees celsius here now"),
            ("It is -5°C here now.", "it is minus five degrees here now"),
            ("It opens at 14:30 then.", "it opens at half past two then"),
            ("It opens at 14:30 then.", "it opens at two thirty p m then"),
            # As recognisers write "nine thirty", too.
            ("It opens at 9:30 then.", "it opens at 9.30 then"),
            ("It opens at 9:30 pm then.", "it opens at 9.30 p.m. then"),
            ("It opens at 14:30 then.", "it opens at 2.30 p.m. then"),
            ("It costs 100k in all.", "it costs one hundred thousand in all"),
            ("It costs $3/kg in all.", "it costs three dollars a kilo in all"),
        ],
    )
    def test_in_another_form_is_right(self, text: str, heard: str) -> None:
        assert check(text, heard) == [("utterance 0", 1.0)]

    @pytest.mark.parametrize(
        ("text", "heard"),
        [
            ("You have 50 points left.", "you have 15 points left"),
            ("That is $142.50 in all.", "that is $42.50 in all"),
            ("We come on June 15th then.", "we come on june 25th then"),
            ("Your code is ZK3471 now.", "your code is zk3491 now"),
            ("My name is Susan today.", "my name is peter today"),
            ("Your visit is on 12/03/2026 then.", "your visit is on december 13, 2026 then"),
            ("It costs $0.99 with tax.", "it costs 89 cents with tax"),
            ("It takes 2-3 days in all.", "it takes two to four days in all"),
            ("Your postcode is 02139 in here.", "your postcode is 02149 in here"),
            ("It opens at 10 am for you.", "it opens at 10 in the evening for you"),
            ("Please call 555-0142 for that.", "please call 555-0152 for that"),
            ("It costs $450 with tax.", "it costs £450 with tax"),
            ("It costs 1½ dollars in all.", "it costs eleven two dollars in all"),
            ("Take ½ tablet twice a day.", "take 12 tablet twice a day"),
            ("It is 20°C here now.", "it is 20 degrees fahrenheit here now"),
            ("It opens at 14:30 then.", "it opens at 2:30 a.m. then"),
            ("It opens at 9:30 then.", "it opens at 9.13 then"),
            ("It costs $9.30 with tax.", "it costs $9.13 with tax"),
            ("It costs $2,500 with tax.", "it costs $250 with tax"),
            ("It costs $250 with tax.", "it costs $2,500 with tax"),
            ("Turn left after 1.5 miles then.", "turn left after 15 miles then"),
            ("We grew 0.5% in all.", "we grew 5% in all"),
            ("It is -5 degrees here.", "it is 5 degrees here"),
            ("We grew 3.5% in all.", "we grew 35 percent in all"),
        ],
    )
    def test_that_is_another_one_is_wrong(self, text: str, heard: str) -> None:
        assert check(text, heard) == [("utterance 0", 0.0)]

    @pytest.mark.parametrize(
        ("text", "heard", "differs"),
        [
            (
                "The deposit of $300 and the rent of $900 are due.",
                "the deposit of $900 and the rent of $300 are due",
                [("$300", "$900", 1.2), ("$900", "$300", 3.2)],
            ),
            (
                "It costs 20 dollars, not 30 dollars.",
                "it costs 30 dollars not 20 dollars",
                [("20 dollars", "30 dollars", 0.8), ("30 dollars", "20 dollars", 2.0)],
            ),
            # Said twice and heard once: the second is the one that is lost. The first is right.
            ("I have booked 2 rooms for 2 nights.", "i have booked two rooms for ten nights", [("2", "ten", 2.4)]),
            ("I have booked 2 rooms for 2 nights.", "i have booked ten rooms for two nights", [("2", "ten", 1.2)]),
            (
                "You have between 2 and 5 days to pay.",
                "you have between five and two days to pay",
                [("2", "five", 1.2), ("5 days", "two days", 2.0)],
            ),
        ],
    )
    def test_in_the_wrong_order_is_wrong(self, text: str, heard: str, differs: list[tuple[str, str, float]]) -> None:
        one = only(NAME, call(agent(text)), Tapes(AGENT), Reader(*spoken(heard, 0)))
        assert one.details is not None
        # Each word takes 0.4 seconds.
        found = [(fact["meant"], fact["spoken"], round(fact["start"], 1)) for fact in one.details["differs"]]
        assert found == differs
        assert one.denominator == 2

    def test_that_moved_with_its_words_is_right(self) -> None:
        assert check(
            "The deposit of $300 and the rent of $900 are due.", "the rent of $900 and the deposit of $300 are due"
        ) == [("utterance 0", 1.0)]
        assert check("On March 3rd it is $5 a day.", "it is $5 a day on march 3rd") == [("utterance 0", 1.0)]

    def test_in_the_wrong_order_is_open_if_the_second_hearing_has_the_right_one(self) -> None:
        again = "the deposit of $300 and the rent of $900 are due"
        heard = "the deposit of $900 and the rent of $300 are due"
        assert check(again, heard, again=again) == [("utterance 0", "unmeasured: recogniser_unsure")]

    @pytest.mark.parametrize(
        ("text", "heard"),
        [
            ("It costs $1,250 with tax.", "it costs $150 with tax"),  # "twelve hundred fifty", as tiny.en writes it
            ("Please call 555-0142 for that.", "please call 5-5-5-1-4-2 for that"),
            ("Please call 555-0169 for that.", "please call 555-1699 for that"),
            ("Your postcode is 02139 in here.", "your postcode is 2139 in here"),
            ("Your postcode is 03962 in here.", "your postcode is of three nine six to in here"),
            ("On 12/03/2026 we come.", "on december 3, 2020, 26 we come"),
            ("It takes 2-3 days in all.", "it takes 23 days in all"),
            ("We grew 0.5% in all.", "we grew boy 5% in all"),  # "point five", as tiny.en writes it
            ("It costs $2.50 with tax.", "it costs $250 with tax"),
            ("It is -5 degrees here.", "it is mine 5 degrees here"),
        ],
    )
    def test_of_nearly_the_same_figures_is_open(self, text: str, heard: str) -> None:
        assert check(text, heard) == [("utterance 0", "unmeasured: recogniser_unsure")]

    def test_is_shown_without_the_punctuation_of_the_sentence(self) -> None:
        one = only(NAME, call(agent("You pay $50, and go.")), Tapes(AGENT), Reader(*spoken("you pay $15, and go", 1)))
        assert one.details is not None
        assert [(fact["meant"], fact["spoken"]) for fact in one.details["differs"]] == [("$50", "$15")]

    def test_that_is_wrong_has_its_moment(self) -> None:
        conversation = call(agent("You have 50 points left."))
        one = only(NAME, conversation, Tapes(AGENT), Reader(*spoken("you have 15 points left", 1)))
        assert one.details is not None
        # The third word, of 0.4 seconds each, from second 1 on.
        assert one.details["differs"] == [{"kind": "amount", "meant": "50", "spoken": "15", "start": 1.8, "end": 2.2}]
        assert (one.details["meant"], one.details["spoken"]) == ("You have 50 points left.", "you have 15 points left")
        assert one.details["by"] == "reader:test"
        assert one.details["words"][2] == {"text": "15", "start": 1.8, "end": 2.2}

    def test_times_are_those_of_the_conversation(self) -> None:
        tape = Tape("agent", "assistant", (0, 10))
        tape.offset = 100.0
        one = only(NAME, call(agent("You have 50 points.")), Tapes(tape), Reader(*spoken("you have 15 points", 1)))
        assert one.details is not None
        assert one.details["differs"][0]["start"] == 101.8

    @pytest.mark.parametrize(
        ("probability", "again", "why"),
        [
            (0.4, None, "unsure"),
            (0.9, "you have 50 points left", "heard at the second time"),
            (0.9, "you have 16 points left", "heard otherwise at the second time"),
        ],
    )
    def test_that_the_recogniser_may_have_misheard_convicts_no_voice(
        self, probability: float, again: str | None, why: str
    ) -> None:
        reader = Reader(
            *spoken("you have 15 points left", 0, probability), again=None if again is None else spoken(again, 0)
        )
        one = only(NAME, call(agent("You have 50 points left.")), Tapes(AGENT), reader)
        assert (one.status, one.reason, one.detail) == ("unmeasured", "recogniser_unsure", why)

    def test_that_is_open_is_in_no_denominator(self) -> None:
        # June 15th is right; 50 is open: 1 of 1.
        words = [*spoken("on june 15th you have", 0), *spoken("15", 2.0, 0.2), *spoken("points", 2.4)]
        conversation = call(agent("On June 15th you have 50 points."))
        one = only(NAME, conversation, Tapes(AGENT), Reader(*words))
        assert (one.value, one.denominator) == (1.0, 1.0)
        assert one.details is not None
        assert one.details["undecided"] == [
            {"kind": "amount", "meant": "50", "spoken": "15", "start": 2.0, "end": 2.4, "why": "unsure"}
        ]

    def test_that_is_open_has_its_moment_where_all_are_open(self) -> None:
        # The third word, of 0.4 seconds each.
        one = only(
            NAME, call(agent("It costs $1,250 with tax.")), Tapes(AGENT), Reader(*spoken("it costs $150 with", 0))
        )
        assert (one.value, one.reason) == (None, "recogniser_unsure")
        assert one.details is not None
        (open_,) = one.details["undecided"]
        assert (open_["meant"], open_["spoken"], open_["start"], open_["end"]) == ("$1,250", "$150", 0.8, 1.2)

    def test_does_not_begin_in_the_silence_before_it(self) -> None:
        # The recogniser lets the word begin at 0.1, and the voice begins at 0.3.
        tape = Tape("agent", "assistant", (0.3, 10))
        one = only(NAME, call(agent("50 points are left.")), Tapes(tape), Reader(*spoken("15 points are left", 0.1)))
        assert one.details is not None
        assert one.details["differs"][0]["start"] == 0.3

    def test_of_a_recogniser_without_probabilities_is_taken_at_its_word(self) -> None:
        assert check("You have 50 points left.", "you have 15 points left", None) == [("utterance 0", 0.0)]

    @pytest.mark.parametrize(
        ("type", "meant", "heard", "why"),
        [
            ("name", "Leicester", "Lester", "sounds alike"),
            ("name", "Susan", "Suzanne", "sounds alike"),
            ("name", "Siobhán", "Shevon", "no pronunciation is known"),
            ("confirmation_code", "BK3", "PK3", "may be the same code"),  # B and P
            ("confirmation_code", "K7M", "case 7M", "may be the same code"),
            ("amount", "$50", "fifteen", ""),
            ("amount", "$50", "fifty", "may be the same figures"),
            ("amount", "$50", "the", "no figure was heard"),
            ("email", "anna@example.com", "hannah@example.com", "an address has many spellings"),
        ],
    )
    def test_may_be_the_same_after_all(self, type: str, meant: str, heard: str, why: str) -> None:
        assert doubt_of(type, meant, heard) == why


def timed(*rows: tuple[str, float]) -> list[Recognised]:
    """Words of 0.4 seconds each, in rows that begin at a moment."""
    return [word for text, start in rows for word in spoken(text, start)]


def hear(text: str, *rows: tuple[str, float], speech: tuple[float, float] = (0, 20)) -> Observation:
    return only(NAME, call(agent(text)), Tapes(Tape("agent", "assistant", speech)), Reader(*timed(*rows)))


TICKET = "Your ticket for the boat costs $142.50, and you pay it at the gate."


class TestAFactThatIsLeftOut:
    def test_between_two_words_is_missing(self) -> None:
        # "costs and" takes 0.8 s, as any two words here: there is no time for the amount.
        one = hear(TICKET, ("your ticket for the boat costs and you pay it at the gate", 0))
        assert (one.value, one.denominator) == (0.0, 1.0)
        assert one.details is not None
        (missing,) = one.details["differs"]
        assert (missing["meant"], missing["spoken"], missing["start"], missing["end"]) == ("$142.50", "", 2.4, 2.4)

    def test_is_not_missing_if_there_is_time_for_it(self) -> None:
        # 3 seconds of speech between "costs" and "and" that the recogniser did not write.
        one = hear(TICKET, ("your ticket for the boat costs", 0), ("and you pay it at the gate", 5.4))
        assert (one.value, one.reason, one.detail) == (None, "recogniser_unsure", "unsure")

    def test_is_missing_if_the_time_is_silence(self) -> None:
        words = timed(("your ticket for the boat costs", 0), ("and you pay it at the gate", 3.0))
        tape = Tape("agent", "assistant", (0, 2.4), (3.0, 6.0))
        assert only(NAME, call(agent(TICKET)), Tapes(tape), Reader(*words)).value == 0.0

    def test_at_the_end_of_all_speech_is_missing(self) -> None:
        one = hear("You can pay all of it now for $142.50.", ("you can pay all of it now for", 0), speech=(0, 3.2))
        assert (one.value, one.denominator) == (0.0, 1.0)

    def test_at_the_end_is_not_missing_if_speech_goes_on(self) -> None:
        one = hear("You can pay all of it now for $142.50.", ("you can pay all of it now for", 0), speech=(0, 7.0))
        assert (one.value, one.reason) == (None, "recogniser_unsure")

    def test_with_its_sentences_is_missing(self) -> None:
        # 5 of 14 words are heard, and no time is before them. 12 is right, 142.50 and 7:30 pm are not.
        text = "Your ticket costs $142.50. It leaves at 7:30 pm. Please be at gate 12."
        heard = Reader(*spoken("please be at gate 12", 0))
        one = only(NAME, call(agent(text, segments=(Segment(0.0, 10.0),))), Tapes(AGENT), heard)
        assert (one.value, one.denominator) == (1 / 3, 3.0)
        # Without times, it may be the recording of another call.
        one = hear(text, ("please be at gate 12", 0))
        assert (one.value, one.reason) == (None, "log_does_not_fit_sound")

    def test_in_words_that_are_unsure_is_open(self) -> None:
        words = [
            *spoken("your ticket for the boat", 0),
            *spoken("costs and", 2.0, 0.4),
            *spoken("you pay it at the gate", 2.8),
        ]
        one = only(NAME, call(agent(TICKET)), Tapes(AGENT), Reader(*words))
        assert (one.value, one.detail) == (None, "unsure")

    def test_that_is_heard_at_the_second_time_is_open(self) -> None:
        reader = Reader(
            *spoken("your ticket for the boat costs and you pay it at the gate", 0),
            again=spoken("the boat costs $142.50 and you pay", 1.0),
        )
        one = only(NAME, call(agent(TICKET)), Tapes(AGENT), reader)
        assert (one.value, one.detail) == (None, "heard at the second time")


class TestAFactThatIsAdded:
    TEXT = "Your ticket for the boat is ready, and you pay it at the gate."

    def test_between_words_of_the_text_is_wrong(self) -> None:
        one = hear(self.TEXT, ("your ticket for the boat is ready for $99 and you pay it at the gate", 0))
        assert (one.value, one.denominator) == (0.0, 1.0)
        assert one.details is not None
        # The ninth word: from 3.2 s on.
        assert one.details["differs"] == [
            {"kind": "amount", "meant": "", "spoken": "$99", "start": pytest.approx(3.2), "end": pytest.approx(3.6)}
        ]

    def test_right_behind_a_fact_of_the_text_is_wrong(self) -> None:
        # $72 is right, "32 dollars" is added: 1 of 2.
        one = hear("Each call costs $72 on this plan.", ("each call costs $72 and $32 dollars on this plan", 0))
        assert (one.value, one.denominator) == (0.5, 2.0)

    @pytest.mark.parametrize(
        ("text", "heard"),
        [
            ("Your visit is at 6 pm on Tuesday.", "your visit is at 6pm and $22 on tuesday"),
            ("Your code is LF4185.", "your code is lf 4185 and $92"),
            ("Each call costs $0.72 on this plan.", "each call costs 72 cents and 32 dollars on this plan"),
        ],
    )
    def test_right_behind_one_in_another_form_is_wrong(self, text: str, heard: str) -> None:
        one = hear(text, (heard, 0))
        assert one.details is not None
        assert [(fact["meant"], fact["kind"]) for fact in one.details["differs"]] == [("", "amount")]

    def test_behind_a_pause_may_be_of_another_utterance(self) -> None:
        one = hear(self.TEXT, ("your ticket for the boat is ready and you pay it at the gate", 0), ("it is $99", 8))
        assert (one.status, one.reason) == ("not_applicable", "no_entities")

    def test_that_the_script_has_elsewhere_is_not_added(self) -> None:
        # The 1st of July, in another order; and an amount that is said twice.
        assert check("From 1st of July you pay $19 a month.", "from july 1st you pay $19 19 dollars a month") == [
            ("utterance 0", 1.0)
        ]

    def test_that_repeats_the_end_of_a_fact_is_noise(self) -> None:
        assert check("It comes to $28.20 with tax.", "it comes to $28.20 and 20 cents with tax") == [
            ("utterance 0", 1.0)
        ]

    def test_of_one_figure_is_noise(self) -> None:
        one = hear(self.TEXT, ("your ticket for the boat is ready 2 and you pay it at the gate", 0))
        assert one.reason == "no_entities"

    def test_that_is_not_heard_again_does_not_count(self) -> None:
        reader = Reader(
            *spoken("your ticket for the boat is ready for $99 and you pay it at the gate", 0),
            again=spoken("the boat is ready for you and you pay", 1.2),
        )
        assert only(NAME, call(agent(self.TEXT)), Tapes(AGENT), reader).reason == "no_entities"


class TestAnUtterance:
    def test_without_a_fact_is_not_applicable(self) -> None:
        assert check("How can I help?", "how can i help") == [("utterance 0", "not_applicable: no_entities")]

    def test_that_was_not_heard_is_not_judged(self) -> None:
        # Nothing of it is in the sound: that is another matter, and not a wrong number.
        observations = ask(
            NAME,
            call(agent("A very good morning to you."), agent("You have 50 points left.")),
            Tapes(AGENT),
            Reader(*spoken("a very good morning to you", 0)),
        )
        assert told(observations)[1] == ("utterance 1", "unmeasured: utterance_not_recognised")

    def test_that_was_cut_off_lacks_nothing_behind_the_cut(self) -> None:
        conversation = call(agent("On June 15th you have 50 points left.", cut_off_by="user"))
        one = only(NAME, conversation, Tapes(AGENT), Reader(*spoken("on june 15th you have", 0)))
        assert (one.value, one.denominator) == (1.0, 1.0)
        assert one.details is not None
        (cut,) = one.details["differs"]
        assert (cut["kind"], cut["meant"], cut["start"]) == ("cut", "50 points left.", 2.0)

    def test_has_what_the_other_side_heard_beside_it(self) -> None:
        conversation = call(agent("You have 50 points.", heard=Text("you have 15 points")))
        one = only(NAME, conversation, Tapes(AGENT), Reader(*spoken("you have 50 points", 0)))
        assert one.details is not None
        assert one.details["heard"] == "you have 15 points"
        assert (one.value, one.details["differs"]) == (1.0, [])
        assert one.details["heard_by_log"] == [{"kind": "amount", "meant": "50", "heard": "15"}]


CALLER = Tape("user", "user", (0, 10))


class TestTheCaller:
    def test_is_heard_alike(self) -> None:
        conversation = call(caller("for june 12th please"))
        heard = Reader(*spoken("For June 12th please", 0))
        assert told(ask("audio.heard_entities", conversation, Tapes(CALLER), heard)) == [("utterance 0", 1.0)]
        assert told(ask("audio.heard_words", conversation, Tapes(CALLER), heard)) == [("utterance 0", 1.0)]

    def test_is_heard_by_log(self) -> None:
        conversation = call(caller("for june 20th please"))
        one = only("audio.heard_entities", conversation, Tapes(CALLER), Reader(*spoken("For June 12th please", 0)))
        assert one.value == 0.0
        assert one.details is not None
        (differing,) = one.details["differs"]
        assert (differing["kind"], differing["spoken"]) == ("date", "June 12th")
        assert (differing["start"], differing["end"]) == (0.4, 1.2)

    def test_words_of_which_the_recogniser_is_unsure_do_not_count(self) -> None:
        conversation = call(caller("i want to book"))
        words = [*spoken("i want to", 0), *spoken("cook", 1.2, 0.3)]
        # "cook" is a guess: three of three.
        assert told(ask("audio.heard_words", conversation, Tapes(CALLER), Reader(*words))) == [("utterance 0", 1.0)]

    def test_whose_words_were_lost(self) -> None:
        one = only("audio.heard_words", call(caller("")), Tapes(CALLER), Reader(*spoken("i want to book", 0)))
        assert (one.value, one.denominator) == (0.0, 4.0)

    def test_whose_words_convoscope_wrote_is_compared_with_nothing(self) -> None:
        conversation = call(caller("i want to book"), extras={"transcribed_by": "faster-whisper:tiny.en"})
        from convoscope.metrics.registry import known

        declared = known("audio.heard_words")
        assert declared is not None
        unmet = [need.code for need in declared.needs if need.present and not need.present(conversation)]  # type: ignore[union-attr]
        assert unmet == ["no_transcript"]


@pytest.mark.skipif(not is_installed(), reason="pip install 'convoscope[whisper]' is not done")
@pytest.mark.skipif(not (WEIGHTS / "model.bin").is_file(), reason="no weights of Whisper tiny.en")
def test_real_voices_and_a_real_recogniser(tmp_path: Path) -> None:
    turns = [
        Spoken("caller", "When do you deliver, and how much is it?"),
        Spoken(
            "agent",
            "Your total is $42.50 including tax.",
            "Your total is forty two dollars and fifty cents including tax.",
        ),
        Spoken("caller", "And when will it be here?"),
        Spoken("agent", "We deliver on June 22nd in the morning.", "We deliver on June third in the morning."),
    ]
    conversation = record(turns, tmp_path / "call.wav")
    recogniser = FasterWhisper(whisper_model(str(WEIGHTS)))
    right, wrong = ask(NAME, conversation, Recordings(), recogniser)
    words = ask("audio.heard_words", conversation, Recordings(), recogniser)
    recogniser.close()
    assert (right.subject.id, right.value) == ("1", 1.0)
    assert (wrong.subject.id, wrong.value) == ("3", 0.0)
    assert wrong.details is not None
    (differing,) = wrong.details["differs"]
    assert (differing["kind"], differing["meant"]) == ("date", "June 22nd")
    start, end = conversation.sounds(conversation.utterances[3])[0]
    assert start <= differing["start"] < differing["end"] <= end
    assert [one.value for one in words] == [1.0, 1.0]
