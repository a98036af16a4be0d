"""Which language each speaker and each utterance is in: stated, detected, or by what else was said."""

from __future__ import annotations

import msgspec
import pytest

from convoscope.conversation import Conversation, Text
from convoscope.views.languages import languages_of
from support.chats import agent, chat, user

GERMAN = "Wo ist meine Bestellung, sie sollte gestern ankommen?"
ENGLISH = "Your order is on its way and will arrive soon."
FINNISH = "Missä tilaukseni on, sen piti saapua eilen?"
ARABIC = "أين طلبي؟ كان يجب أن يصل أمس"


def spoken(conversation: Conversation) -> list[str]:
    """The language of each utterance."""
    languages = languages_of(conversation)
    return [languages.of_text(conversation.text(one), one) for one in conversation.utterances]


@pytest.mark.parametrize(
    ("said", "languages"),
    [
        ([user(GERMAN), agent(ENGLISH), user("ja"), agent("ok")], ["de", "en", "de", "en"]),
        # a user who says little speaks what the agent speaks
        ([user("ok"), agent(ENGLISH), user("17")], ["en", "en", "en"]),
        # one who changes is read utterance by utterance
        ([user(GERMAN), agent(ENGLISH), user("No, I want to know where my order is now.")], ["de", "en", "en"]),
        ([user("ok"), agent("ok")], ["", ""]),
        ([user("when and where?"), agent("You get it there.")], ["en", "en"]),
        ([user(ARABIC), agent(ARABIC), user("نعم")], ["ar", "ar", "ar"]),
        ([user(ENGLISH), agent(ENGLISH), user("نعم")], ["en", "en", "und-Arab"]),
        # many words of no known language are not what the agent speaks
        ([user("xq zvv kkw qqq vvz xxk wqz kvq zzx qvk wxq"), agent(ENGLISH)], ["", "en"]),
    ],
)
def test_by_words(said: list[msgspec.Struct], languages: list[str]) -> None:
    assert spoken(chat(*said)) == languages


@pytest.mark.parametrize(
    ("facts", "language"),
    [
        ({"extras": {"language": "fi"}}, "fi"),
        ({"extras": {"metadata": {"locale": "fi-FI"}}}, "fi"),
        ({"dimensions": {"language": "Finnish"}}, "fi"),
        ({"extras": {"user": {"lang": "fin"}}}, "fi"),
        ({"extras": {"language": "auto"}}, "de"),
        # English is what many write where no one chose: plain words count more
        ({"extras": {"language": "en"}}, "de"),
    ],
)
def test_what_the_log_states(facts: dict[str, dict[str, str]], language: str) -> None:
    assert spoken(chat(user(GERMAN), agent(ENGLISH), **facts))[0] == language


def test_english_is_believed_where_the_words_say_nothing() -> None:
    assert spoken(chat(user("ok"), agent("ok"), extras={"language": "en-US"})) == ["en", "en"]


def test_an_utterance_that_states_its_language_is_believed() -> None:
    stated = msgspec.structs.replace(user(ENGLISH), heard=Text(ENGLISH, language="sv"))
    assert spoken(chat(stated, agent(ENGLISH))) == ["sv", "en"]


def test_the_whole_conversation_and_a_role() -> None:
    languages = languages_of(chat(user(GERMAN), agent(ENGLISH)))
    assert (languages.of_role("user"), languages.of_role("assistant"), languages.of_role("system")) == ("de", "en", "")
    assert languages_of(chat(user(FINNISH), agent(FINNISH))).of_all() == "fi"
