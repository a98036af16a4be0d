"""Spanish: what each list finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from support.lexicons import finds, objects


@pytest.mark.parametrize(
    "text",
    [
        "Eso no es lo que pedí.",
        "eso no es lo que pregunte",
        "Ya se lo dije.",
        "ya te lo he dicho",
        "No me está escuchando.",
        "¿Está seguro?",
        "estas segura?",
        "Eso es ridículo.",
        "Usted no me entiende",
        "No estoy de acuerdo.",
        "Por tercera vez: cancelen el pedido",
        "Entiendo, pero lo necesito hoy.",
    ],
)
def test_objection(text: str) -> None:
    assert objects("es", text)


@pytest.mark.parametrize(
    "text",
    [
        "Mi impresora no funciona.",
        "¿Dónde está mi pedido?",
        "Muchas gracias por su ayuda.",
        "No, gracias, eso es todo.",
        "El paquete no ha llegado.",
        "Sí, es correcto.",
        "No tengo el número",
        "La dirección está equivocada en mi factura.",
    ],
)
def test_no_objection(text: str) -> None:
    assert not objects("es", text)


@pytest.mark.parametrize(
    "text",
    [
        "¡Muchas gracias!",
        "gracias",
        "Le agradezco su ayuda",
        "ha sido muy amable",
    ],
)
def test_thanks(text: str) -> None:
    assert finds("es", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Gracias por nada",
        "Quiero cancelar mi pedido",
    ],
)
def test_no_thanks(text: str) -> None:
    assert not finds("es", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Lo siento, pero no puedo hacerlo.",
        "Lamentablemente no es posible.",
        "No podemos reembolsar el importe.",
        "no tengo acceso a esa informacion",
        "Lo siento, pero no puedo.",
        "Lamentablemente, el billete no es reembolsable.",
    ],
)
def test_refusal(text: str) -> None:
    assert finds("es", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "Puedo ayudarle con eso.",
        "¿En qué más puedo ayudarle?",
        "Su pedido está en camino.",
        "Lamentablemente la silla azul cuesta ahora 20 euros más.",
        "Lo siento, pero ¿cuál de los dos pedidos?",
        "Me temo que lloverá el viernes.",
    ],
)
def test_no_refusal(text: str) -> None:
    assert not finds("es", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "Le paso con un compañero.",
        "Le voy a transferir con un agente.",
        "Un agente se pondrá en contacto... un especialista le llamará mañana.",
    ],
)
def test_hand_over(text: str) -> None:
    assert finds("es", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "¿Quiere que le transfiera a un agente?",
        "Lo compruebo ahora mismo.",
    ],
)
def test_no_hand_over(text: str) -> None:
    assert not finds("es", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Adiós",
        "hasta luego",
        "Eso es todo, gracias.",
    ],
)
def test_goodbye(text: str) -> None:
    assert finds("es", "goodbye", text)


@pytest.mark.parametrize(
    "text",
    [
        "¿Es eso todo?",
        "Necesito el paquete para mañana.",
    ],
)
def test_no_goodbye(text: str) -> None:
    assert not finds("es", "goodbye", text)
