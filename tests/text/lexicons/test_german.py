"""German: what each list finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from support.lexicons import finds, objects


@pytest.mark.parametrize(
    "text",
    [
        "Das ist nicht, was ich gefragt habe.",
        "Das habe ich Ihnen doch schon gesagt!",
        "das hab ich dir schon gesagt",
        "Sie hören mir nicht zu.",
        "Du verstehst mich nicht",
        "Das stimmt nicht.",
        "Sind Sie sicher?",
        "Das hilft mir nicht.",
        "Zum dritten Mal: ich will mein Geld",
        "das ist doch laecherlich",
        "Wie gesagt, es geht um die Rechnung.",
        "Ich verstehe, aber ich brauche das heute.",
    ],
)
def test_objection(text: str) -> None:
    assert objects("de", text)


@pytest.mark.parametrize(
    "text",
    [
        "Mein Drucker funktioniert nicht mehr.",
        "Wo ist meine Bestellung?",
        "Das ist nicht schlimm.",
        "Vielen Dank für Ihre Hilfe!",
        "Nein danke, das war alles.",
        "Ich habe den Artikel nicht bekommen.",
        "Die Rechnung ist falsch gedruckt worden?",
        "Ja, das stimmt.",
        "Nein, das war alles.",
        "Das bereits bezahlte Paket fehlt.",
    ],
)
def test_no_objection(text: str) -> None:
    assert not objects("de", text)


@pytest.mark.parametrize(
    "text",
    [
        "Vielen Dank!",
        "danke schoen",
        "Das war sehr hilfreich",
        "Ihnen auch einen schönen Tag",
    ],
)
def test_thanks(text: str) -> None:
    assert finds("de", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Danke für nichts.",
        "Das war nicht hilfreich",
        "Bitte stornieren Sie das.",
    ],
)
def test_no_thanks(text: str) -> None:
    assert not finds("de", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Leider geht das nicht.",
        "Das ist leider nicht möglich.",
        "Ich kann Ihnen dabei nicht helfen.",
        "Es tut mir leid, aber das darf ich nicht.",
        "Wir können das nicht erstatten.",
        "Ein Umtausch ist leider ausgeschlossen.",
    ],
)
def test_refusal(text: str) -> None:
    assert finds("de", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "Ich kann Ihnen gern helfen.",
        "Ihre Bestellung ist unterwegs.",
        "Kann ich sonst noch etwas für Sie tun?",
        "Leider kostet der blaue Stuhl jetzt 20 Euro mehr.",
        "Leider habe ich Sie akustisch schlecht verstanden. Ihr Code, bitte?",
        "Ja. Matratzen können wir leider nicht zurücknehmen, Sofas schon.",
        "Es tut mir leid, aber welche der Bestellungen meinen Sie?",
        "Das können wir leider erst am Montag liefern.",
    ],
)
def test_no_refusal(text: str) -> None:
    assert not finds("de", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "Ich verbinde Sie mit einem Kollegen.",
        "Sie werden jetzt weitergeleitet.",
        "Ein Mitarbeiter meldet sich bei Ihnen.",
    ],
)
def test_hand_over(text: str) -> None:
    assert finds("de", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Möchten Sie mit einem Mitarbeiter sprechen?",
        "Ich prüfe das für Sie.",
        "Ich kann Sie leider nicht weiterleiten.",
    ],
)
def test_no_hand_over(text: str) -> None:
    assert not finds("de", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Tschüss!",
        "Auf Wiedersehen",
        "tschuess",
        "Das war alles, danke.",
    ],
)
def test_goodbye(text: str) -> None:
    assert finds("de", "goodbye", text)


@pytest.mark.parametrize(
    "text",
    [
        "Ist das alles?",
        "Ich möchte das Paket bis morgen haben.",
    ],
)
def test_no_goodbye(text: str) -> None:
    assert not finds("de", "goodbye", text)
