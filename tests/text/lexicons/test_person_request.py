"""How users ask for a person instead of the agent."""

from __future__ import annotations

import pytest

from convoscope.text.lexicon import PERSON_REQUEST, folded_phrases, lexicon

ASKED = {
    "en": [
        "I want to speak to a person.",
        "A human please!",
        "Agent!!",
        "representative",
        "Let me talk to a real person",
        "can you transfer me to an agent",
        "get me a supervisor",
        "give me a human",
        "I need a human being",
        "operator please",
        "just connect me with someone",
    ],
    "de": [
        "Ich möchte mit einem Mitarbeiter sprechen",
        "Einen Menschen bitte!",
        "Mitarbeiter!",
        "verbinden Sie mich bitte",
        "Kann ich mit jemandem sprechen",
        "ich will mit einem echten menschen reden",
        "Mensch bitte",
    ],
    "es": [
        "Quiero hablar con una persona",
        "Un humano por favor",
        "¡Operador!",
        "páseme con un agente",
        "necesito hablar con alguien",
        "quiero un agente humano",
    ],
    "fr": [
        "Je veux parler à un humain",
        "Un conseiller s'il vous plaît",
        "Passez-moi un conseiller",
        "je voudrais parler à quelqu'un",
        "Opérateur !",
    ],
    "pt": [
        "Quero falar com um atendente",
        "Atendente!",
        "quero falar com alguém",
        "um humano por favor",
        "me transfira para um atendente",
    ],
    "ja": [
        "担当者と話したいです",
        "オペレーターにつないでください",
        "人間と話したい",
        "オペレーターをお願いします",
        "担当者に代わってください",
    ],
}
NOT_ASKED = {
    "en": [
        "I am a real estate agent",
        "Two persons please",
        "a table for one person",
        "My agent booked it",
        "I spoke to a friend",
        "the person at the desk said so",
        "Is this for one person?",
    ],
    "de": ["für eine Person", "Der Mitarbeiter war nett", "Zwei Personen bitte", "Ich bin Mitarbeiter dort"],
    "es": ["para una persona", "soy agente inmobiliario", "dos personas por favor"],
    "fr": ["pour une personne", "deux personnes s'il vous plaît", "je suis agent immobilier"],
    "pt": ["para uma pessoa", "duas pessoas por favor", "sou agente de viagens"],
    "ja": ["二人です", "大人一人お願いします", "担当者の名前は田中です"],
}


@pytest.mark.parametrize(("language", "text"), [(code, text) for code, texts in ASKED.items() for text in texts])
def test_asked_for(language: str, text: str) -> None:
    assert _finds(language, text)


@pytest.mark.parametrize(("language", "text"), [(code, text) for code, texts in NOT_ASKED.items() for text in texts])
def test_not_asked_for(language: str, text: str) -> None:
    assert not _finds(language, text)


def _finds(language: str, text: str) -> bool:
    words = lexicon(language)
    assert words is not None
    return bool(words.find(PERSON_REQUEST, folded_phrases(text)))
