"""The lists of hand-overs: what an agent says when it puts the user through, and what it says when it does not."""

from __future__ import annotations

import pytest

from convoscope.text.lexicon import folded_phrases, lexicon
from convoscope.views.end_reasons import hands_over, passes_on


def found(language: str, text: str) -> str:
    words = lexicon(language)
    assert words is not None
    return words.find("hand_over", folded_phrases(text))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "One moment, I am transferring you to a colleague."),
        ("en", "A live agent will be with you shortly."),
        ("de", "Einen Moment, ich verbinde Sie mit einer Kollegin."),
        ("de", "Sie werden jetzt weitergeleitet."),
        ("es", "Un momento, le paso con un compañero."),
        ("es", "Su llamada está siendo transferida."),
        ("fr", "Je vous mets en relation avec un conseiller."),
        ("fr", "Vous allez être transféré."),
        ("pt", "Vou transferir você para um atendente."),
        ("pt", "Sua ligação está sendo transferida."),
        ("ja", "担当者におつなぎいたします。"),
    ],
)
def test_put_through(language: str, text: str) -> None:
    assert found(language, text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I cannot transfer you to a colleague."),
        ("en", "Would you like me to transfer you to a colleague?"),
        ("en", "The money was transferred to your account."),
        ("de", "Ich kann Sie leider nicht mit einem Kollegen verbinden."),
        ("de", "Der Betrag wurde überwiesen."),
        ("es", "No puedo transferir su llamada."),
        ("es", "La transferencia llega mañana."),
        ("fr", "Je ne peux pas vous transférer."),
        ("fr", "Le virement arrive demain."),
        ("pt", "Não posso transferir a sua ligação."),
        ("pt", "A transferência chega amanhã."),
        ("ja", "担当者におつなぎしましょうか。"),
        ("ja", "お荷物は明日届きます。"),
    ],
)
def test_not_put_through(language: str, text: str) -> None:
    assert not found(language, text)


@pytest.mark.parametrize(
    ("tool", "on", "to_person"),
    [
        ("transfer_to_human_agents", True, True),
        ("escalateToSupervisor", True, True),
        ("handoff_to_booking", True, False),
        ("transferCall", True, False),
        ("hand-off", True, False),
        ("transfer_money", False, False),
        ("transfer_to_agent_account", False, False),
        ("get_order", False, False),
    ],
)
def test_by_the_name_of_a_tool(tool: str, on: bool, to_person: bool) -> None:
    assert (passes_on(tool), hands_over(tool)) == (on, to_person)
