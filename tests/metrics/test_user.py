"""user.*: pushback and effort."""

import pytest
from msgspec.structs import replace

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

    def test_a_person_who_is_asked_for_again_in_other_words(self) -> None:
        first = user("I would like to talk to a person.")
        asks = agent("I can help you with that. Which order is it?")
        assert _signs(first, asks, user("Agent!!"), asks, user("4711")) == [1.0, 0.0]
        # asked for once, or a table for one
        assert _signs(user("A table for one person."), asks, user("A human, please.")) == [0.0]

    def test_no_is_the_answer_to_a_question_and_objects_to_a_statement(self) -> None:
        no = user("No, I want the other one.")
        assert _signs(user("hi there"), agent("Do you want this one?"), no) == [0.0]
        assert _signs(user("hi there"), agent("I have ordered this one."), no) == [1.0]

    @pytest.mark.parametrize(
        ("question", "statement", "words"),
        [
            ("Does it work now?", "I have reset it.", "No, it still doesn't work."),
            ("Have you tried to restart it?", "Please restart it.", "I already tried that."),
            ("Do you agree to the fee?", "There is a fee of 5 euros.", "I don't agree."),
            ("Funktioniert es jetzt?", "Ich habe es neu gestartet.", "nein es geht immer noch nicht"),
            ("¿Funciona ahora?", "Lo he reiniciado ahora mismo.", "no, sigue sin funcionar"),
            ("Est-ce que ça marche maintenant ?", "Je l'ai redémarré pour vous.", "non ca marche toujours pas"),
            ("Está funcionando agora?", "Eu reiniciei o aparelho para você.", "não, continua sem funcionar"),
        ],
    )
    def test_an_answer_to_a_question_is_none(self, question: str, statement: str, words: str) -> None:
        if statement != "Please restart it.":  # the agent asks for something: an answer again
            assert _signs(user("hi there"), agent(statement), user(words)) == [1.0]
        assert _signs(user("hi there"), agent(question), user(words)) == [0.0]

    @pytest.mark.parametrize(
        ("declines", "words"),
        [
            ("I am unable to refund it. Is there anything else?", "I understand, but I was charged twice."),
            ("Das ist leider nicht möglich. Kann ich sonst etwas tun?", "verstehe, aber ich hab doppelt bezahlt"),
            ("No es posible. ¿Algo más?", "entiendo pero me cobraron dos veces"),
            ("Ce n'est pas possible. Autre chose ?", "je comprends mais j'ai payé deux fois"),
            ("Não é possível. Mais alguma coisa?", "entendo mas paguei duas vezes"),
            ("返金できません。他にございますか？", "わかりますが、二回払いました"),
        ],
    )
    def test_a_refusal_is_no_question_even_where_it_asks(self, declines: str, words: str) -> None:
        assert _signs(user("hi there"), agent(declines), user(words)) == [1.0]

    def test_an_offer_that_is_turned_down_is_none(self) -> None:
        words = user("I appreciate the offer, but please tell me about my booking.")
        assert _signs(user("hi there"), agent("I can give you a voucher of 50 dollars."), words) == [0.0]

    @pytest.mark.parametrize(
        "words",
        [
            'The screen shows "that is wrong" when I log in.',
            "Da steht „das ist falsch“ auf dem Bildschirm.",
            "Il y a écrit « c'est faux » sur la page.",
            "画面に「違います」と出ます。",
            "My husband says that is wrong, is it?",
            "If this doesn't help I will call back.",
            "Sorry, did I say Friday? I meant to say Thursday.",
        ],
    )
    def test_what_is_quoted_or_supposed_is_none(self, words: str) -> None:
        assert _signs(user("hi there"), agent("Your order was sent on Monday."), user(words)) == [0.0]

    def test_what_the_user_says_first_after_a_greeting_is_none(self) -> None:
        conversation = chat(agent("Hi! How can I help you?"), user("This is ridiculous, my parcel is not here."))
        assert [one for _, one in told(observe(pushback, conversation))] == [0.0]
        statement = "We have sent your new card to the address in Bonn, as you asked us to do on Monday last week."
        conversation = chat(agent(statement), user("That's not my address."))
        assert [one for _, one in told(observe(pushback, conversation))] == [1.0]

    @pytest.mark.parametrize(
        ("words", "value"),
        [
            ("??", 1.0),
            ("?", 1.0),
            ("👍", 0.0),
            ("...", 0.0),
            ("WRONG 😡", 1.0),
            ("THATS NOT WHAT I ASKED!!!", 1.0),
            ("nein, that's not what I asked", 1.0),
            ("ok thanks but thats not what i asked for 🙄", 1.0),
            ("u didnt answr my question, r u sure its monday", 1.0),
            ("thanks 😊 bye", 0.0),
        ],
    )
    def test_as_people_write(self, words: str, value: float) -> None:
        opening = user("Where is my parcel? It should have been here on Monday.")
        assert _signs(opening, agent("It was sent on Monday."), user(words)) == [value]

    def test_numbers_that_answer_a_question_are_facts(self) -> None:
        leave = user("I need to leave after 14:45.")
        assert _signs(leave, agent("I have 9 trains. When do you want to arrive?"), leave) == [0.0]

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

    def test_pictures_have_no_words(self) -> None:
        conversation = chat(replace(user(""), extras={"content": [{"type": "image"}]}), agent("I see a cat."))
        assert [one for _, one in told(observe(effort, conversation))] == ["not_applicable: no_user_text"]
