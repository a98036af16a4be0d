"""Conversations without a dialogue: silence, mailboxes, menus; and what only looks like them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from convoscope.conversation import (
    AudioFile,
    Clock,
    Conversation,
    Expected,
    Item,
    Marker,
    Outcome,
    Participant,
    Segment,
    SlotFilled,
    StateEntered,
    Text,
    Track,
    Utterance,
)
from convoscope.metrics.needs import DIALOGUE
from convoscope.metrics.registry import installed
from convoscope.scoring.profiles import Profiles, plan
from convoscope.views.flow.endings import outcome_of
from convoscope.views.machines import is_silence, no_dialogue
from support.chats import agent, chat, user
from support.flow_conversations import entered

GREETING = agent("Hello, how can I help?")


class TestNobodySpoke:
    def test_a_greeting_alone(self) -> None:
        conversation = chat(GREETING)
        assert no_dialogue(conversation) == "no_user_speech"
        assert outcome_of(conversation).name == "no_user_speech"

    def test_a_label_of_the_user_does_not_bring_it_back(self) -> None:
        """It is counted beside the others, and in no rate."""
        assert outcome_of(chat(GREETING, outcome=Outcome(completed=True))).done is None

    @pytest.mark.parametrize("text", ["", " ", "...", "…", "[silence]", "(No speech)", "<noise>", "*beep*", "[無音]"])
    def test_marks_of_silence_are_no_words(self, text: str) -> None:
        assert is_silence(text)

    @pytest.mark.parametrize("text", ["ok", "👍", "?", "[inaudible]", "(laughs) yes", "silence", "はい", "..!a", "7"])
    def test_everything_else_is(self, text: str) -> None:
        assert not is_silence(text)

    def test_sound_of_the_user_without_a_transcript_is_speech(self) -> None:
        """The recogniser died: the user was not heard, but spoke."""
        sound = Utterance(seq=1, speaker="user", segments=(Segment(1.0, 2.0, "wall"),))
        conversation = chat(GREETING, user("x"))
        heard = Conversation(
            id="a",
            participants=conversation.participants,
            clocks=(_clock(),),
            timeline=(conversation.timeline[0], sound),
        )
        assert no_dialogue(heard) == ""

    def test_an_empty_message_is_no_speech(self) -> None:
        empty = Marker(seq=1, name="message_without_text", value={"role": "user", "name": "Ann", "metadata": {}})
        greeted = chat(GREETING, user("x"))
        conversation = Conversation(id="a", participants=greeted.participants, timeline=(greeted.timeline[0], empty))
        assert no_dialogue(conversation) == "no_user_speech"

    @pytest.mark.parametrize(
        "event",
        [
            SlotFilled(seq=1, slot="name", value="Ann"),
            Marker(seq=1, name="dtmf", participant="user", value="1"),
            Marker(seq=1, name="user_started_speaking", participant="user"),
            Marker(seq=1, name="message_without_text", value={"role": "user", "sticker": "cat-7"}),
        ],
        ids=["slot", "key", "speaking", "unread"],
    )
    def test_whatever_the_user_does_is_an_answer(self, event: Any) -> None:
        greeted = chat(GREETING, user("x"))
        conversation = Conversation(id="a", participants=greeted.participants, timeline=(greeted.timeline[0], event))
        assert no_dialogue(conversation) == ""

    def test_a_flow_that_went_on_had_an_answer(self) -> None:
        assert no_dialogue(chat(GREETING, *(entered(name) for name in ("a", "b")))) == ""
        assert no_dialogue(chat(GREETING, entered("a"))) == "no_user_speech"

    def test_a_log_without_utterances_says_nothing_about_speech(self) -> None:
        states = Conversation(
            id="a", timeline=(StateEntered(seq=0, state="ask"),), outcome=Outcome(ended_reason="hangup")
        )
        assert no_dialogue(states) == ""

    def test_a_call_that_nobody_took(self) -> None:
        assert (
            no_dialogue(Conversation(id="a", outcome=Outcome(ended_reason="customer-did-not-answer")))
            == "no_user_speech"
        )

    def test_speakers_of_unknown_role_may_be_the_user(self) -> None:
        speaker = Participant("s1", "unknown")
        greeted = chat(GREETING)
        words = Utterance(seq=1, speaker="s1", spoken=Text("Hi"))
        conversation = Conversation(
            id="a", participants=(*greeted.participants, speaker), timeline=(*greeted.timeline, words)
        )
        assert no_dialogue(conversation) == ""

    def test_an_integration_that_broke_is_a_fault_and_no_silence(self) -> None:
        for outcome in (Outcome(error="no backend"), Outcome(ended_reason="pipeline-error")):
            assert no_dialogue(chat(GREETING, outcome=outcome)) == ""

    def test_items_to_be_judged_are_left_alone(self) -> None:
        item = Item(id="1", expected=Expected(ground_truth="x"))
        assert no_dialogue(chat(GREETING, items=(item,))) == ""


class TestMachines:
    @pytest.mark.parametrize("reason", ["voicemail_reached", "voicemail", "machine_end_beep"])
    def test_the_reason_for_the_end_says_it(self, reason: str) -> None:
        conversation = chat(GREETING, user("Hi, this is Bob."), outcome=Outcome(ended_reason=reason))
        assert no_dialogue(conversation) == "voicemail"

    def test_a_dialogue_is_one_whatever_a_field_says(self) -> None:
        turns = [one for n in range(3) for one in (user(f"Question {n}"), agent("Answer"))]
        assert no_dialogue(chat(*turns, outcome=Outcome(ended_reason="voicemail_reached"))) == ""

    @pytest.mark.parametrize(
        ("fields", "kind"),
        [
            ({"AnsweredBy": "machine_start"}, "voicemail"),
            ({"answered_by": "fax"}, "voicemail"),
            ({"answered_by": "human"}, ""),
            ({"in_voicemail": True}, "voicemail"),
            ({"in_voicemail": False}, ""),
            ({"machine_detection": "enabled"}, ""),
            ({"metadata": {"disposition": "Voicemail"}}, "voicemail"),
            ({"is_ivr": "yes"}, "ivr"),
            ({"subject": "voicemail"}, ""),
        ],
    )
    def test_fields_of_any_vendor(self, fields: dict[str, Any], kind: str) -> None:
        assert no_dialogue(chat(GREETING, user("Hello."), extras=fields)) == kind

    @pytest.mark.parametrize("fields", [{"status": "voicemail"}, {"outcome": "voicemail"}, {"result": "ivr"}])
    def test_a_bare_field_of_a_chat_may_be_its_topic(self, fields: dict[str, Any]) -> None:
        asked = (user("How do I delete a message?"), agent("Open the settings."))
        assert no_dialogue(chat(*asked, extras=fields)) == ""
        assert no_dialogue(chat(*asked, outcome=Outcome(final_status="voicemail"))) == ""
        assert no_dialogue(chat(*asked, extras=fields, pipeline="cascade")) == next(iter(fields.values()))
        assert no_dialogue(chat(GREETING, extras=fields)) == next(iter(fields.values()))

    @pytest.mark.parametrize(
        "text",
        [
            "The person you are calling is not available at the moment.",
            "Hey, it's Tom, I can't come to the phone. You know what to do. Beep.",
            "Hi. The person you're calling is using a screening service from Google. Go ahead and say your name and "
            "why you're calling.",
            "Please record your name and reason for calling.",
            "Der gewünschte Teilnehmer ist zurzeit nicht erreichbar.",
            "Die Person, die Sie anrufen, ist momentan nicht erreichbar.",
            "La persona a la que llama no está disponible en este momento.",
            "La personne que vous appelez n'est pas disponible.",
            "A pessoa para quem você ligou não está disponível.",
            "おかけになった番号は現在使われておりません。",
        ],
    )
    def test_announcements_of_mailboxes_and_carriers(self, text: str) -> None:
        assert no_dialogue(chat(user(text), agent("Hello, this is Anna."), agent("Are you there?"))) == "voicemail"

    @pytest.mark.parametrize(
        "text",
        [
            "You have reached 555 0134. No one is available to take your call.",
            "Hey it's Jen, leave a message. Beep.",
            "Hi there, you've got Ben's phone. I'm tied up, so drop me a message and I'll ring you later.",
            "The mailbox is full and cannot accept any messages at this time. Goodbye.",
            "We're sorry, your call cannot be completed as dialed. Please check the number.",
            "The subscriber is not reachable at the moment. Please try again later.",
            "Thank you for calling Acme Dental. Our office is closed. Our hours are Monday to Friday.",
            "Guten Tag, Sie sind verbunden mit Familie Kurz. Sprechen Sie bitte nach dem Piep.",
            "Ihr Gesprächspartner ist zurzeit nicht erreichbar, wird aber per SMS informiert.",
            "Ha llamado al contestador de Luis. Deje su nombre y su número.",
            "El teléfono al que llama está apagado o fuera de cobertura.",
            "Votre correspondant est injoignable pour le moment.",
            "Bonjour, je suis absente, laissez-moi votre nom et votre numéro après le bip.",
            "O cliente está fora da área de cobertura ou desligado.",
            "Oi, aqui é o Rui, deixe uma mensagem depois do bip.",
            "ただいま電話に出ることができません。後ほどおかけ直しください。",
        ],
    )
    def test_by_two_parts_of_their_words(self, text: str) -> None:
        assert no_dialogue(chat(agent("Hello, this is Anna."), user(text), agent("Are you there?"))) == "voicemail"

    @pytest.mark.parametrize(
        "text",
        [
            "I left a message after the beep yesterday and nobody called back.",
            "Your call center is unavailable all day and the app is no better.",
            "You are calling too early, try again later.",
            "I'm calling because the number you gave me is not in service.",
            "Thanks for calling, yes I am interested but my husband is not available.",
            "The mailbox at my house was stolen, please leave the parcel with the neighbor.",
            "Leave the package with my neighbor and I'll get back to you.",
            "Sorry I missed your call earlier, I can talk now.",
            "Ihr Techniker war nicht erreichbar, die Nachricht kam nicht an.",
            "Ich habe Ihnen auf die Mailbox gesprochen.",
            "Su llamada llega tarde, el módem está apagado.",
            "Votre appel tombe mal, je ne suis pas disponible.",
            "Sua ligação caiu, o modem está desligado.",
            "留守番電話にメッセージを残しました。",
        ],
    )
    def test_people_who_speak_about_them(self, text: str) -> None:
        assert no_dialogue(chat(agent("Hello, this is Anna."), user(text), agent("I see."))) == ""

    def test_screening_in_three_turns(self) -> None:
        screened = "The person you're calling is using a screening service. Say your name and why you're calling."
        turns = (user(screened), agent("Anna of Lakeside."), user("Please stay on the line."), agent("Yes."))
        assert no_dialogue(chat(*turns, user("They are not available right now. Goodbye."))) == "voicemail"
        assert no_dialogue(chat(*turns, user("Hi, Tom here."))) == ""

    @pytest.mark.parametrize(
        "text",
        [
            "I am the person you are calling about the dryer.",
            "He can't come to the phone, he is asleep.",
            "I get that the person you are calling is not available. What is wrong with my line?",
            "Sorry, the red one is not available right now.",
            "Ich bin die Person, die Sie anrufen wollten.",
            "Soy la persona a la que llama usted.",
            "Je suis la personne que vous appelez.",
            "Sou a pessoa para quem você ligou.",
            "電話に出られなくてすみません。",
        ],
    )
    def test_people_who_speak_like_them(self, text: str) -> None:
        assert no_dialogue(chat(GREETING, user(text), agent("I see."))) == ""


class TestInNoAverage:
    def test_no_metric_applies(self) -> None:
        metrics = installed().resolve(None)
        for conversation, code in ((chat(GREETING), "no_user_speech"), (_mailbox(), "voicemail")):
            profile = Profiles(metrics).of(conversation)
            assert not profile.ready
            assert {absence.status for absence in profile.absent.values()} == {"not_applicable"}
            reasons = {absence.reason.removeprefix("input_") for absence in profile.absent.values()}
            assert reasons == {code}

    def test_the_agents_sound_needs_no_user(self) -> None:
        """With a recording, what asks for nothing but the sound is measured; a mailbox is no call of an agent."""
        metrics = installed().resolve(["audio.mos", "audio.longest_silence", "agent.words_per_turn"])
        resources = frozenset(["convoscope.resources.sound.Recording"])
        recording = AudioFile(tracks=(Track(path="call.wav"),))

        def ready(conversation: Conversation) -> set[str]:
            recorded = msgspec.structs.replace(conversation, recording=recording)
            return {one.key.partition("@")[0] for _, one in Profiles(metrics, resources).of(recorded).ready}

        assert ready(chat(GREETING)) == {"audio.mos", "audio.longest_silence"}
        assert ready(_mailbox()) == set()

    def test_the_plan_says_so(self) -> None:
        (planned,) = plan(
            installed().resolve(["agent.words_per_turn"]), [_mailbox(), chat(user("Hi"), agent("Hello"))]
        ).metrics
        assert (planned.applies_to, [one.code for one in planned.missing]) == (1, ["voicemail"])

    def test_there_are_three(self) -> None:
        assert [need.code for need in DIALOGUE] == ["no_user_speech", "voicemail", "ivr"]


def _mailbox() -> Conversation:
    return chat(GREETING, user("You have reached the voicemail of Bob. Leave a message after the tone."))


def _clock() -> Clock:
    return Clock(id="wall", kind="audio")
