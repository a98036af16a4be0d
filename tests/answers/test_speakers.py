"""Answers about speakers: the roles that labels say in several languages."""

from __future__ import annotations

from pathlib import Path

from support.command_line import convoscope
from support.scenarios import Scenario, check, each

SPEAKERS = [
    *(("Kunde", "Agent"), ("Nutzer", "Mitarbeiter"), ("Anruferin", "Assistent"), ("cliente", "agente")),
    *(("Usuario", "Asistente"), ("client", "conseiller"), ("Utilisateur", "Service client"), ("顧客", "オペレーター")),
    *(("usuário", "atendente"), ("お客様", "担当者"), ("Cliente", "Atención al cliente")),
]


def six_rows(user: str, agent: str) -> str:
    """Six chats of a question and its reply as CSV."""
    chats = (f"c{n},{user},Wo ist Bestellung {n}?\nc{n},{agent},Sie ist unterwegs.\n" for n in range(6))
    return "conversation_id,role,content\n" + "".join(chats)


ROLES = (
    [
        Scenario(
            f"rows of {user} and {agent}",
            "Six users ask, six get a reply.",
            {"rows.csv": six_rows(user, agent)},
            never=["unknown role", "word of the user"],
            figures={"agent.unanswered_turns": 0.0},
            counts={"agent.unanswered_turns": 6},
            conversations=6,
        )
        for user, agent in SPEAKERS
        if " " not in agent
    ]
    + [
        Scenario(
            f"lines of {user} and {agent}",
            "The user asks twice, the agent replies twice.",
            {
                "call.txt": f"{user}: Wo ist meine Bestellung?\n{agent}: Sie ist unterwegs.\n"
                f"{user}: Und wann kommt sie an?\n{agent}: Am Montag.\n"
            },
            never=["unknown role"],
            figures={"agent.unanswered_turns": 0.0},
            counts={"agent.unanswered_turns": 2},
            conversations=1,
        )
        for user, agent in SPEAKERS
    ]
    + [
        Scenario(
            "full-width colons",
            "The user asks, the agent replies.",
            {
                "call.txt": "お客様：注文はどこですか。\nオペレーター：発送しました。\n"
                "お客様：いつですか。\nオペレーター：明日です。\n"
            },
            never=["unknown role"],
            counts={"agent.unanswered_turns": 2},
            conversations=1,
        ),
        Scenario(
            "rows of a role that is not known",
            "Six chats; who Klant is, is not known.",
            {"rows.csv": six_rows("Klant", "Agent")},
            says=["6 messages of a speaker of unknown role .*'Klant'"],
        ),
        Scenario(
            "lines of a role that is not known",
            "Who Klant is, is not known.",
            {"call.txt": "Klant: Waar is het?\nAgent: Onderweg.\nKlant: Wanneer komt het?\nAgent: Maandag.\n"},
            says=["1 speaker of unknown role .*Klant"],
            figures={"agent.unanswered_turns": None},
        ),
    ]
)


@each(ROLES)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)


def test_unknown_speaker_is_not_shown_as_the_agent(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    text = "Klant: Waar is het?\nAgent: Onderweg.\nKlant: Wanneer komt het?\nAgent: Maandag.\n"
    (tmp_path / "logs" / "call.txt").write_text(text)
    convoscope("score", tmp_path / "logs", "--out", tmp_path / "run")
    shown = convoscope("show", tmp_path / "run", "call").out
    assert "other  Waar is het?" in shown
    assert "agent  Onderweg." in shown
