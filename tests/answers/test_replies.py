"""Answers about replies: where a log has them, and what is none."""

from __future__ import annotations

from pathlib import Path

from support.scenarios import Scenario, chat, check, each, said, tool


def growing(field: str) -> list[dict[str, object]]:
    """Four chats of five calls; each call holds the messages so far, and the reply in this field."""
    calls: list[dict[str, object]] = []
    for number in range(4):
        texts: list[str] = []
        for turn in range(5):
            texts.append(f"What about point {turn} of order {number}?")
            reply = f"Point {turn} of order {number} is fine."
            calls.append(chat(*texts, **{field: reply}))
            texts.append(reply)
    return calls


def asked(number: int) -> list[dict[str, object]]:
    return [said("user", f"Where is order {number}?")]


REPLIES = [
    Scenario(
        f"the reply as text in {field}",
        "Eight questions, each with its reply.",
        {"chats.jsonl": [{"messages": asked(n), field: f"Order {n} is on its way."} for n in range(8)]},
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 8},
        conversations=8,
    )
    for field in ("response", "answer", "output", "completion")
] + [
    Scenario(
        "growing histories with the reply in answer",
        "Four chats of five questions; each question has its reply.",
        {"calls.jsonl": growing("answer")},
        says=["read 4 conversations", "16 records merged"],
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 20},
        conversations=4,
    ),
    Scenario(
        "input with messages and output with text",
        "Two questions in two shapes, each with its reply.",
        {
            "a.jsonl": [{"input": {"messages": asked(1)}, "output": {"text": "It is here.", "tokens": 4}}],
            "b.jsonl": [{"input": asked(2), "output": "It is there."}],
        },
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 2},
    ),
    Scenario(
        "a response of blanks",
        "Eight questions; no reply has a word.",
        {"chats.jsonl": [{"messages": asked(n), "response": " "} for n in range(8)]},
        figures={"agent.unanswered_turns": 1.0},
        conversations=8,
    ),
    Scenario(
        "an answer beside a chat that has its reply",
        "One question, one reply; the field holds no second reply.",
        {"chats.jsonl": [chat("What is 6 times 7?", "It is 42.", answer="42")]},
        figures={"agent.unanswered_turns": 0.0},
        conversations=1,
    ),
]

REPLIES += [
    Scenario(
        "replies that are errors of the system",
        "Nobody got an answer: the server failed, each time in other words.",
        {
            "a.jsonl": [
                chat(f"Where is order {number}?", said("assistant", text), id=f"c{number}")
                for number, text in enumerate(
                    ["Internal Server Error", '{"error": "model overloaded"}', "null", "502 Bad Gateway"]
                )
            ]
        },
        says=["turns without a reply +100.0 %.* n 4"],
        figures={"agent.unanswered_turns": 1.0},
    ),
    Scenario(
        "messages of a messenger",
        "The agent answers by WhatsApp, by the one tool that it has.",
        {
            "a.jsonl": [
                chat(
                    f"Where is order {number}?",
                    *tool("ok", "send_whatsapp", text=f"Order {number} is on its way."),
                    id=f"c{number}",
                )
                for number in range(4)
            ]
        },
        figures={"agent.unanswered_turns": 0.0},
    ),
]


@each(REPLIES)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)
