"""Portuguese: what each list finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from support.lexicons import finds, objects


@pytest.mark.parametrize(
    "text",
    [
        "Isso não é o que eu pedi.",
        "isso nao e o que eu perguntei",
        "Já lhe disse.",
        "eu ja falei isso",
        "Você não está me ouvindo.",
        "Tem certeza?",
        "Isso é ridículo.",
        "Está errado, isso não é verdade",
        "Não concordo.",
        "Pela terceira vez, cancele",
        "Entendo, mas preciso disso hoje.",
        "O senhor tem certeza?",
    ],
)
def test_objection(text: str) -> None:
    assert objects("pt", text)


@pytest.mark.parametrize(
    "text",
    [
        "Minha impressora não funciona.",
        "Onde está meu pedido?",
        "Muito obrigada pela ajuda.",
        "Não, obrigado, é só isso.",
        "O pacote não chegou.",
        "Sim, está correto.",
        "O valor da fatura mudou, por quê?",
    ],
)
def test_no_objection(text: str) -> None:
    assert not objects("pt", text)


@pytest.mark.parametrize(
    "text",
    [
        "Muito obrigado!",
        "obrigada",
        "valeu",
        "agradeço a ajuda",
    ],
)
def test_thanks(text: str) -> None:
    assert finds("pt", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Obrigado por nada",
        "Quero cancelar",
    ],
)
def test_no_thanks(text: str) -> None:
    assert not finds("pt", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Infelizmente não é possível.",
        "Não posso ajudar com isso.",
        "Desculpe, mas não dá.",
        "nao temos acesso a esses dados",
        "O bilhete não é reembolsável.",
    ],
)
def test_refusal(text: str) -> None:
    assert finds("pt", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "Posso ajudar com isso.",
        "Em que mais posso ajudar?",
        "Seu pedido está a caminho.",
        "Infelizmente a cadeira azul custa 20 reais a mais.",
        "Desculpe, mas qual dos pedidos?",
        "Lamento informar que o pedido chega na sexta.",
    ],
)
def test_no_refusal(text: str) -> None:
    assert not finds("pt", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "Vou transferi-lo para um atendente.",
        "Estou transferindo sua ligação.",
        "Um atendente vai entrar em contato.",
    ],
)
def test_hand_over(text: str) -> None:
    assert finds("pt", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Deseja falar com um atendente?",
        "Vou verificar agora.",
    ],
)
def test_no_hand_over(text: str) -> None:
    assert not finds("pt", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Tchau",
        "até logo",
        "Era só isso, obrigado.",
    ],
)
def test_goodbye(text: str) -> None:
    assert finds("pt", "goodbye", text)


@pytest.mark.parametrize(
    "text",
    [
        "Preciso para amanhã.",
        "É só isso que tem?",
    ],
)
def test_no_goodbye(text: str) -> None:
    assert not finds("pt", "goodbye", text)
