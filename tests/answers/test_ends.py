"""Answers about ends that are easily misread: flags, topics, announcements, failed transfers, regret."""

from __future__ import annotations

from pathlib import Path

from support.ends import GREETING, TALK, retell, served
from support.scenarios import Scenario, chat, check, each, said, tool

ENDS = [
    Scenario(
        "an error that is only a flag",
        "Two chats have an error, and the log does not say which.",
        {"a.jsonl": [*(served(n, error=n < 2) for n in range(8))]},
        says=[r"2 chats broke off with an error that says nothing about the agent: the log gives no message"],
        never=[r"True"],
    ),
    Scenario(
        "a help desk for voicemail",
        "The status is the topic: people talk with the agent.",
        {"a.jsonl": [served(n, status="voicemail") for n in range(8)]},
        never=["reached a mailbox"],
        counts={"conversation.turns": 8},
    ),
    Scenario(
        "the announcement of a carrier",
        "Nobody was reached in eight of ten calls.",
        {
            "a.json": [
                *(
                    retell(
                        n,
                        "agent_hangup",
                        ("user", "The person you are calling is not available at the moment."),
                        ("agent", GREETING),
                    )
                    for n in range(8)
                ),
                *(retell(n, "user_hangup", *TALK) for n in (8, 9)),
            ]
        },
        says=[r"8 of 10 calls reached a mailbox and are left out of all averages"],
        never=[r"n 10\b"],
    ),
    Scenario(
        "a transfer that found nobody",
        "No user was handed over: no agents were online.",
        {
            "a.jsonl": [
                chat(
                    said("user", f"I want to talk to a human being about order {n} now please."),
                    *tool("no agents online", "transfer_to_human_agents", "t1"),
                    said("assistant", "I am sorry, there is no one at the moment. Please call again tomorrow."),
                    id=f"c{n}",
                )
                for n in range(8)
            ]
        },
        says=[r"do not say how the chats ended"],
        never=[r"8 handed over", r"handed over 8"],
    ),
    Scenario(
        "regret is no refusal",
        "The agent answers every question, with regret.",
        {
            "a.jsonl": [
                chat(
                    f"Do you have the blue chair number {n}?",
                    "Unfortunately the blue chair is sold out, but I reserved the red one for you as you wished.",
                    "Great, thank you!",
                    "You are welcome.",
                    id=f"c{n}",
                )
                for n in range(8)
            ]
        },
        says=[r"8 conversations"],
        figures={"agent.declined": 0},
    ),
]


@each(ENDS)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)
