"""agent.*: what the agent says."""

import pytest

from convoscope.conversation import Conversation
from convoscope.metrics.agent import declined, repetition, words_per_turn
from convoscope.scoring.evaluate import observe
from convoscope.text.comparison import count_words, normalised_words, sentences
from support.chats import agent, call, chat, result, told, user

PIN = "Please enter your PIN now."


class TestWordsPerTurn:
    def test_words_of_all_that_the_agent_says_in_the_turn(self) -> None:
        conversation = chat(
            agent("Welcome to Marrow Bay!"),
            user("a table please"),
            agent("Of course."),
            agent("For how many?"),
            user("two"),
            agent("Done."),
        )
        # turn 0: Welcome to Marrow Bay; turn 1: Of course + For how many; turn 2: Done
        assert told(observe(words_per_turn, conversation)) == [("turn 0", 4.0), ("turn 1", 5.0), ("turn 2", 1.0)]

    def test_an_empty_utterance_of_the_agent_is_no_reply(self) -> None:
        conversation = chat(user("hi"), agent("  "), user("hello?"), agent("Yes?"))
        # nobody spoke between the two, so that they are one turn
        assert told(observe(words_per_turn, conversation)) == [("turn 1", 1.0)]

    @pytest.mark.parametrize("nothing", ["…", "-"])
    def test_a_turn_without_a_word_of_the_agent_is_not_applicable(self, nothing: str) -> None:
        conversation = chat(user("hi"), agent(nothing), user("hello?"), agent("Yes?"), user("bye"))
        assert told(observe(words_per_turn, conversation)) == [
            ("turn 1", "not_applicable: no_assistant_text"),
            ("turn 2", 1.0),
            ("turn 3", "not_applicable: no_assistant_text"),  # nobody replied
        ]

    def test_an_agent_that_never_speaks(self) -> None:
        conversation = chat(user("hi"), call("look_up"))
        assert told(observe(words_per_turn, conversation)) == [("conversation", "not_applicable: no_assistant_speech")]


class TestRepetition:
    def test_what_was_said_before_is_repeated(self) -> None:
        conversation = chat(
            agent(f"Good morning to you. {PIN}"),
            user("what?"),
            agent(f"I did not get that. {PIN}"),
            user("1234"),
            agent(PIN),
        )
        observations = observe(repetition, conversation)
        # turn 0: 2 sentences, both new; turn 1: 1 of 2 said before; turn 2: 1 of 1
        assert told(observations) == [("turn 0", 0.0), ("turn 1", 0.5), ("turn 2", 1.0)]
        assert [(one.numerator, one.denominator) for one in observations] == [(0, 2), (1, 2), (1, 1)]
        assert [one.details for one in observations] == [
            None,
            {"repeated": ["Please enter your PIN now"]},
            {"repeated": ["Please enter your PIN now"]},
        ]

    def test_also_within_one_turn(self) -> None:
        conversation = chat(user("hi"), agent(f"{PIN} {PIN} {PIN}"))
        # 3 sentences, of which the second and the third were said before
        assert told(observe(repetition, conversation)) == [("turn 1", pytest.approx(2 / 3))]

    def test_case_and_punctuation_do_not_matter(self) -> None:
        conversation = chat(user("hi"), agent(PIN), user("?"), agent("please, enter: your pin NOW!"))
        assert told(observe(repetition, conversation)) == [("turn 1", 0.0), ("turn 2", 1.0)]

    def test_a_sentence_counts_from_four_words_on(self) -> None:
        conversation = chat(user("hi"), agent("One two three. One two three four."), user("?"), agent("One two three."))
        # turn 1: only the second sentence counts, and is new; turn 2 has none that counts
        assert told(observe(repetition, conversation)) == [("turn 1", 0.0), ("turn 2", "not_applicable: no_sentence")]

    def test_an_apostrophe_does_not_make_a_fourth_word(self) -> None:
        sorry = "I'm so sorry."
        conversation = chat(user("hi"), agent(sorry), user("?"), agent(sorry))
        # I'm, so, sorry: three
        assert told(observe(repetition, conversation)) == [
            ("turn 1", "not_applicable: no_sentence"),
            ("turn 2", "not_applicable: no_sentence"),
        ]

    def test_each_utterance_ends_its_sentence(self) -> None:
        plain = "please enter your PIN now"
        conversation = chat(user("hi"), agent(plain), agent(plain))
        # Two sentences, though no stop parts them; the second was said before.
        assert told(observe(repetition, conversation)) == [("turn 1", 0.5)]

    def test_what_the_user_said_is_not_the_agents(self) -> None:
        conversation = chat(user(PIN), agent(PIN))
        assert told(observe(repetition, conversation)) == [("turn 1", 0.0)]

    def test_a_turn_without_a_reply_is_not_applicable(self) -> None:
        conversation = chat(user("hi"), agent(PIN), user("bye"))
        assert told(observe(repetition, conversation)) == [("turn 1", 0.0), ("turn 2", "not_applicable: no_sentence")]

    def test_an_agent_that_never_speaks(self) -> None:
        assert told(observe(repetition, chat(user("hi")))) == [("conversation", "not_applicable: no_assistant_speech")]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "count"),
        [
            ("", 0),
            ("one", 1),
            ("One, two -- three!", 3),
            ("I don't know", 3),
            ("I don’t know", 3),
            ("a state-of-the-art answer", 3),
            ("room 101", 2),
            ("naïve café", 2),
            ("line\nbreak", 2),
            ("नमस्ते दुनिया", 2),  # signs above and below a letter are part of it
            ("well-known", 1),
            ("—", 0),
            ("yes — no", 2),
        ],
    )
    def test_an_apostrophe_or_hyphen_inside_does_not_split(self, text: str, count: int) -> None:
        assert count_words(text) == count

    @pytest.mark.parametrize(
        ("text", "cut"),
        [
            ("", []),
            ("One. Two! Three? Four", ["One", "Two", "Three", "Four"]),
            ("It costs 3.50 today.", ["It costs 3.50 today"]),  # no blank after the point
            ("Well... yes", ["Well", "yes"]),
            ("One\nTwo\n\nThree", ["One", "Two", "Three"]),
            ("...", []),
        ],
    )
    def test_sentences_end_at_a_stop_before_a_blank_and_at_line_ends(self, text: str, cut: list[str]) -> None:
        assert sentences(text) == cut

    def test_texts_that_differ_in_punctuation_become_equal(self) -> None:
        assert normalised_words("  Yes,  PLEASE -- do! ") == "yes please do"
        assert normalised_words("STRASSE") == normalised_words("straße")


HANDS_OVER = "transfer_to_human_agents"


def declining(conversation: Conversation) -> float | str:
    ((_, only),) = told(observe(declined, conversation))
    return only


class TestDeclined:
    def test_hands_over_and_did_nothing(self) -> None:
        conversation = chat(user("cancel it"), call(HANDS_OVER), result(HANDS_OVER), agent("Please hold."))
        assert declining(conversation) == 1

    @pytest.mark.parametrize(
        "words",
        [
            "I’m sorry, that is not possible.",
            "Unfortunately, this ticket is final.",
            "I am unable to change it.",
            "We cannot do that.",
            "I will be transferring you to a colleague.",
        ],
    )
    def test_declines_in_the_end(self, words: str) -> None:
        assert declining(chat(user("cancel it"), agent(words))) == 1
        assert declining(chat(user("cancel it"), agent(words), user("ok"), agent("Goodbye."))) == 1

    def test_what_was_declined_long_ago_is_not_the_end(self) -> None:
        conversation = chat(
            user("cancel it"),
            agent("I cannot do that."),
            user("then move it"),
            agent("To when?"),
            user("May"),
            agent("Done."),
        )
        assert declining(conversation) == 0

    def test_who_did_something_did_not_give_up(self) -> None:
        done = [call("cancel_reservation"), result("cancel_reservation")]
        assert declining(chat(user("cancel it"), *done, agent("I'm sorry to see you go."))) == 0

    def test_looking_is_not_doing_and_a_failed_action_neither(self) -> None:
        looked = [call("get_reservation"), result("get_reservation")]
        failed = [call("cancel_reservation"), result("cancel_reservation", error="too late")]
        assert declining(chat(user("cancel it"), *looked, *failed, agent("I'm sorry, but I can't."))) == 1
        unknown = [call("cancel_reservation")]  # the log has no result
        assert declining(chat(user("cancel it"), *unknown, agent("I'm sorry, but I can't."))) == 1

    def test_an_ordinary_end(self) -> None:
        assert declining(chat(user("when does it open?"), agent("It opens at nine."))) == 0

    def test_the_evidence_is_what_was_said_or_called(self) -> None:
        (observation,) = declined(chat(user("cancel it"), agent("Sorry, but I cannot do that.")))
        assert observation.details == {"sign": "i cannot"}
