"""French: what each list finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from support.lexicons import finds, objects


@pytest.mark.parametrize(
    "text",
    [
        "Ce n'est pas ce que j'ai demandé.",
        "c est pas ce que je demande",
        "Je vous l'ai déjà dit.",
        "je te l'ai deja dit",
        "Vous ne m'écoutez pas.",
        "Êtes-vous sûr ?",
        "t'es sur?",
        "C'est ridicule.",
        "C’est faux",
        "Je ne suis pas d'accord.",
        "Pour la troisième fois, annulez",
        "Je comprends, mais j'en ai besoin aujourd'hui.",
    ],
)
def test_objection(text: str) -> None:
    assert objects("fr", text)


@pytest.mark.parametrize(
    "text",
    [
        "Mon imprimante ne marche plus.",
        "Où est ma commande ?",
        "Merci beaucoup pour votre aide.",
        "Non merci, c'est tout.",
        "Le colis n'est pas arrivé.",
        "Ce n'est pas grave.",
        "Oui, c'est exact.",
        "Non, je ne crois pas.",
    ],
)
def test_no_objection(text: str) -> None:
    assert not objects("fr", text)


@pytest.mark.parametrize(
    "text",
    [
        "Merci beaucoup !",
        "Je vous remercie",
        "vous avez été très aimable",
        "bonne journee",
    ],
)
def test_thanks(text: str) -> None:
    assert finds("fr", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Merci pour rien",
        "Je veux annuler",
    ],
)
def test_no_thanks(text: str) -> None:
    assert not finds("fr", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Malheureusement, ce n'est pas possible.",
        "Je ne peux pas vous aider.",
        "Je suis désolé, mais c'est interdit.",
        "je n'ai pas acces a ce dossier",
        "Ce billet n'est malheureusement pas remboursable.",
    ],
)
def test_refusal(text: str) -> None:
    assert finds("fr", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "Je peux vous aider.",
        "Comment puis-je vous aider ?",
        "Votre colis est en route.",
        "Malheureusement, la chaise bleue coûte 20 euros de plus.",
        "Je suis désolé, mais quelle commande est-ce ?",
        "Je crains que le colis arrive vendredi.",
    ],
)
def test_no_refusal(text: str) -> None:
    assert not finds("fr", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "Je vous transfère à un conseiller.",
        "Je vous mets en relation avec un collègue.",
        "Vous allez être transféré.",
    ],
)
def test_hand_over(text: str) -> None:
    assert finds("fr", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Souhaitez-vous parler à un conseiller ?",
        "Je vérifie tout de suite.",
    ],
)
def test_no_hand_over(text: str) -> None:
    assert not finds("fr", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Au revoir",
        "À bientôt !",
        "a bientot",
        "C'est tout, merci.",
    ],
)
def test_goodbye(text: str) -> None:
    assert finds("fr", "goodbye", text)


@pytest.mark.parametrize(
    "text",
    [
        "Est-ce tout ?",
        "Il me le faut pour demain.",
    ],
)
def test_no_goodbye(text: str) -> None:
    assert not finds("fr", "goodbye", text)
