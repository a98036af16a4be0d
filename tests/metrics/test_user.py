"""user.*: pushback and effort."""

import pytest

from convoscope.metrics.user import effort, pushback
from convoscope.scoring.evaluate import observe
from support.chats import agent, chat, told, user


def _signs(*events: object) -> list[float | str]:
    """What pushback says of each turn of the user after the first, which has no reply before it."""
    observed = [one for _, one in told(observe(pushback, chat(*events)))]
    assert observed[0] == "not_applicable: nothing_to_object_to"
    return observed[1:]


class TestPushback:
    @pytest.mark.parametrize(
        "words",
        [
            "That's not what I asked.",
            "I already told you my name.",
            "Are you sure?",
            "This is wrong",
            "It still doesn’t work.",
            "Das habe ich Ihnen schon gesagt.",
            "Eso no es lo que pedí.",
            "Ce n'est pas ce que j'ai demandé.",
            "Isso não é o que eu pedi.",
            "それは違います。",
        ],
    )
    def test_an_objection(self, words: str) -> None:
        assert _signs(user("hi"), agent("Done."), user(words), agent("ok")) == [1.0]

    def test_it_is_observed_at_the_words_of_the_user(self) -> None:
        conversation = chat(user("hi"), agent("Done."), user("That is wrong"), agent("ok"))
        assert [subject for subject, _ in told(observe(pushback, conversation))] == ["utterance 0", "utterance 2"]

    @pytest.mark.parametrize(
        "words",
        [
            "No, that's all.",
            "No thanks, I have all I need.",
            "Yes, that is right.",
            "It doesn't work for us any more.",
            "Mein Drucker funktioniert nicht mehr.",
        ],
    )
    def test_an_answer_or_a_problem_is_none(self, words: str) -> None:
        assert _signs(user("hello there"), agent("How can I help you?"), user(words), agent("ok")) == [0.0]

    def test_what_opens_the_conversation_is_none(self) -> None:
        conversation = chat(user("You did not answer my question. That is wrong."), agent("ok"))
        assert [one for _, one in told(observe(pushback, conversation))] == ["not_applicable: nothing_to_object_to"]

    def test_no_is_the_answer_to_a_question_and_objects_to_a_statement(self) -> None:
        no = user("No, I want the other one.")
        assert _signs(user("hi there"), agent("Do you want this one?"), no) == [0.0]
        assert _signs(user("hi there"), agent("I have ordered this one."), no) == [1.0]

    def test_asking_for_the_same_again(self) -> None:
        # content: cancel, flight; both of two
        again = user("I just want to cancel my flight")
        assert _signs(user("I want to cancel my flight"), agent("Why?"), again, agent("ok")) == [1.0]

    def test_another_thing_in_the_same_words_is_another_request(self) -> None:
        # content: address, hotel and phone, number, hotel: one of four
        other = user("What is the phone number of the hotel?")
        assert _signs(user("What is the address of the hotel?"), agent("Mill Road."), other) == [0.0]

    def test_another_number_is_another_request(self) -> None:
        other = user("Please cancel my order 4712 now")
        assert _signs(user("Please cancel my order 4711 now"), agent("Done."), other) == [0.0]

    @pytest.mark.parametrize(
        "words",
        [
            "Thank you so much for your great help",
            "Yes, please go ahead and book it",
            "Goodbye and have a wonderful day",
        ],
    )
    def test_courtesy_and_consent_may_be_said_again(self, words: str) -> None:
        assert _signs(user("hi"), agent("Welcome."), user(words), agent("Good."), user(words)) == [0.0, 0.0]

    def test_a_fact_that_the_agent_asks_for_again_is_an_answer(self) -> None:
        number = user("My order number is 4711.")
        assert _signs(user("hi"), agent("Your order?"), number, agent("Your order number?"), number) == [0.0, 0.0]

    def test_a_question_that_got_no_answer_is_asked_again(self) -> None:
        question = user("Where is my parcel with the tea pot?")
        assert _signs(question, agent("What is your name?"), user("Ada"), agent("Hello Ada."), question) == [0.0, 1.0]

    @pytest.mark.parametrize("question", ["What's my balance?", "Hoeveel?", "Kde je balík?"])
    def test_one_question_again_and_again_needs_no_language(self, question: str) -> None:
        turns = [one for _ in range(3) for one in (user(question), agent("Hm."))]
        assert _signs(*turns) == [1.0, 1.0]

    def test_japanese_without_blanks_is_asked_again(self) -> None:
        question = user("注文した商品はどこにありますか")
        assert _signs(question, agent("お名前は？"), question) == [1.0]

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            ("Tämä ei ole sitä mitä pyysin, olen todella vihainen.", "unmeasured: language_not_supported"),
            ("هذا ليس ما طلبته", "unmeasured: language_not_supported"),
            ("xq zvv kkw qqq vvz xxk wqz kvq zzx qvk wxq", "unmeasured: language_unknown"),
        ],
    )
    def test_other_languages_are_not_read(self, words: str, reason: str) -> None:
        assert _signs(user(words), agent(words), user(words)) == [reason]


class TestEffort:
    def test_counts_the_words_of_the_user(self) -> None:
        # hi, a table; a sign that is no word does not count
        conversation = chat(agent("hello"), user("hi"), agent("yes?"), user("a table"), agent("ok"), user("…"))
        assert [one for _, one in told(observe(effort, conversation))] == [3]

    def test_words_without_blanks_are_not_counted(self) -> None:
        conversation = chat(user("注文した商品はどこにありますか"), agent("お名前は？"))
        assert [one for _, one in told(observe(effort, conversation))] == ["unmeasured: language_not_supported"]
