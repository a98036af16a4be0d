"""Answers about identity: which records are one conversation, and what was read of it."""

from __future__ import annotations

from pathlib import Path

from support.scenarios import Scenario, chat, check, each, said

HOUR = 3600.0
DAY = 24 * HOUR
START = 1_780_000_000.0


def timed(role: str, content: str, at: float, **fields: object) -> dict[str, object]:
    """One message with a time of the wall clock."""
    return said(role, content, timestamp=START + at, **fields)


ASK, REPLY = "Where is my order, please?", "It left the warehouse this morning."
FORTY = [chat(f"Where is order {n}?", f"Order {n} is on its way." if n % 5 else "I cannot see it.") for n in range(40)]
BY_VERSION = [chat(f"Where is order {n}?", f"Order {n} is here.", agent=f"v{1 + n % 2}") for n in range(40)]
PREFIX = [
    chat(ASK, REPLY, id="x1", resolved=False),
    chat(ASK, REPLY, "Thank you.", "You are welcome.", id="x2", resolved=True),
    chat("Do you open on Sunday?", "Yes, from ten to four.", id="x3", resolved=True),
]

TWO_TURNS = [
    timed("user", ASK, 0),
    timed("assistant", REPLY, 2),
    timed("user", "When will it be here?", 10),
    timed("assistant", "On Monday.", 12),
]


def session(field: str) -> list[dict[str, object]]:
    """Two questions, nine days apart, with the same id in this field."""
    return [
        {field: "s", **timed(role, text, at)}
        for start in (0, 9 * DAY)
        for role, text, at in (("user", ASK, start), ("assistant", REPLY, start + 2))
    ]


def calls_with_time(chats: int, turns: int, most: int) -> list[dict[str, object]]:
    """Calls of a model with the time in the system prompt, and at most so many messages of the history."""
    records: list[dict[str, object]] = []
    for number in range(chats):
        history: list[dict[str, object]] = []
        for turn in range(turns):
            history.append(said("user", f"Question {turn} about order {number}?"))
            answer = said("assistant", f"Answer {turn} about order {number}.")
            sent = [said("system", f"It is 10:{number}{turn} now."), *history[-most:]]
            records.append({"request": {"messages": sent}, "response": {"choices": [{"message": answer}]}})
            history.append(answer)
    return records


SCENARIOS = [
    Scenario(
        "calls with the time in the system prompt",
        "Four chats of five turns, each answered; 16 of the 20 calls are earlier states of them.",
        {"a.jsonl": calls_with_time(4, 5, most=100)},
        says=["read 4 conversations", "16 records merged"],
        figures={"agent.unanswered_turns": 0.0},
        conversations=4,
    ),
    Scenario(
        "calls with the last five messages",
        "Two chats of eight turns: each call goes on with the end of the one before it.",
        {"a.jsonl": calls_with_time(2, 8, most=5)},
        says=["read 2 conversations", "14 records merged", "turns without a reply .* n 16"],
        conversations=2,
    ),
    Scenario(
        "a chat that begins like another one",
        "Three chats with three ids; one of them was not resolved.",
        {"chats.jsonl": PREFIX},
        options=["--label", "resolved"],
        says=["read 3 conversations"],
        never=["merged"],
        conversations=3,
    ),
    Scenario(
        "one file under four names",
        "Forty chats; the other three files are copies.",
        {f"{name}.jsonl": FORTY for name in "abcd"},
        says=["read 40 conversations", "120 records dropped as copies"],
        conversations=40,
    ),
    Scenario(
        "equal chats in one file",
        "Twelve people said hi; nothing says that it was one.",
        {"chats.jsonl": [chat("hi", "hello")] * 12},
        says=["read 12 conversations", "11 records kept that equal another one"],
        never=["copies"],
        conversations=12,
    ),
    Scenario(
        "equal chats of one id",
        "The log was written twice; there are two chats.",
        {"chats.jsonl": [chat(ASK, REPLY, id=id) for id in ("a", "b", "a", "b", "a")]},
        says=["read 2 conversations", "3 records dropped as copies"],
        conversations=2,
    ),
    Scenario(
        "a copy that was stored later",
        "The same chat with the same id, shipped twice.",
        {
            "chats.jsonl": [
                chat(ASK, REPLY, id="a", timestamp="2026-03-19T21:03:10Z"),
                chat(ASK, REPLY, id="a", timestamp="2026-03-19T21:09:44.120Z"),
            ]
        },
        says=["read 1 conversation ", "1 record dropped as copies"],
        conversations=1,
    ),
    Scenario(
        "the same words at other times",
        "Two people asked the same on two days.",
        {"chats.jsonl": [chat(timed("user", ASK, at), timed("assistant", REPLY, at + 2)) for at in (0, DAY)]},
        says=["read 2 conversations"],
        never=["copies", "kept that equal"],
        conversations=2,
    ),
    Scenario(
        "one id of two tenants",
        "Two chats that happen to have one id.",
        {"north/chats.jsonl": [chat(ASK, REPLY, id=7)], "south/chats.jsonl": [chat("Hello?", "Hi there.", id="7")]},
        says=["read 2 conversations"],
        conversations=2,
    ),
    Scenario(
        "an id as a number and as a text",
        "One chat, exported twice.",
        {"a.jsonl": [chat(ASK, REPLY, id=7)], "b.jsonl": [chat(ASK, REPLY, id="7")]},
        says=["read 1 conversation ", "1 record dropped as copies"],
        conversations=1,
    ),
    Scenario(
        "two trials that went alike",
        "Two trials of one task, both count.",
        {"chats.jsonl": [chat(ASK, REPLY, scenario_id="t1", trial=trial) for trial in (0, 1)]},
        says=["read 2 conversations"],
        conversations=2,
    ),
    Scenario(
        "calls with ids of responses",
        "One chat of three turns, logged with each call.",
        {
            "calls.jsonl": [
                chat(*["a", "b", "c", "d", "e", "f"][:length], id=f"chatcmpl-{length}") for length in (4, 2, 6)
            ]
        },
        says=["read 1 conversation ", "2 records merged"],
        conversations=1,
    ),
    Scenario(
        "calls of one conversation in two files",
        "One chat whose calls were rotated into two files.",
        {
            "1.jsonl": [chat("a", "b", conversation_id="k")],
            "2.jsonl": [chat("a", "b", "c", "d", conversation_id="k")],
        },
        says=["read 1 conversation ", "1 record merged"],
        conversations=1,
    ),
    Scenario(
        "templated chats without ids",
        "Four chats; that one begins like another one does not make them calls.",
        {
            "chats.jsonl": [
                chat(ASK, REPLY),
                chat(ASK, REPLY, "Thanks.", "You are welcome."),
                chat("Do you open on Sunday?", "Yes.", "Until when?", "Until four."),
                chat("Can I pay by card?", "Yes.", "Which ones?", "All of them."),
            ]
        },
        says=["read 4 conversations"],
        never=["merged"],
        conversations=4,
    ),
    Scenario(
        "a field for the conversation that is empty",
        "The log does not say which message belongs to which conversation.",
        {
            "rows.jsonl": [
                said(role, text, conversation_id=None) for role, text in (("user", "Hi"), ("assistant", "Yes?"))
            ]
        },
        says=["has no conversation id"],
        code=2,
    ),
    Scenario(
        "replies as streams of events",
        "The agent answered both questions; the log has the answers as chunks.",
        {
            "calls.jsonl": [
                {
                    "request": {"messages": [said("user", ASK)]},
                    "response": {
                        "body": 'data: {"choices": [{"delta": {"content": "On "}}]}\n\n'
                        'data: {"choices": [{"delta": {"content": "Monday."}}]}\n\ndata: [DONE]\n'
                    },
                },
                {
                    "request": {"messages": [said("user", "And the refund?")]},
                    "response": 'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, '
                    '"delta": {"type": "text_delta", "text": "In three days."}}\n',
                },
            ]
        },
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 2},
        conversations=2,
    ),
    Scenario(
        "a streamed reply that cannot be read",
        "One question was answered; whether the other one was is not known.",
        {
            "calls.jsonl": [
                chat(ASK, REPLY, id="a"),
                {"id": "b", "request": {"messages": [said("user", ASK)]}, "response": 'data: {"x": 1}\n\n'},
            ]
        },
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 1},
        conversations=2,
    ),
    Scenario(
        "contents that are no text",
        "Of four turns of the user the last one has no reply.",
        {
            "chats.jsonl": [
                chat(said("user", content), said("assistant", REPLY), id=str(content)) for content in (7, [7], {"a": 1})
            ]
            + [chat(ASK, REPLY, said("user", True), id="last", error="the line broke")]
        },
        figures={"agent.unanswered_turns": 1 / 5},
        counts={"agent.unanswered_turns": 5},
        conversations=4,
    ),
    Scenario(
        "contents that are no text, strictly",
        "A value could not be read.",
        {"chats.jsonl": [chat(ASK, said("assistant", 7), id="a")]},
        options=["--strict"],
        says=["1 value that could not be used"],
        code=2,
    ),
    Scenario(
        "a picture of the user",
        "The user sent a picture, and the agent replied to it.",
        {
            "chats.jsonl": [
                chat(said("user", [{"type": "image_url", "image_url": {"url": "a.png"}}]), said("assistant", REPLY)),
                chat(ASK, said("assistant", [{"type": "image", "source": "b.png"}])),
            ]
        },
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 2},
        conversations=2,
    ),
    Scenario(
        "replies of three dots",
        "Three of four questions got no words; a thumb is a reply.",
        {"chats.jsonl": [chat(ASK, reply, "Hello?", "Yes.", id=reply) for reply in ("...", "…", "-", "👍")]},
        figures={"agent.unanswered_turns": 3 / 8},
        counts={"agent.unanswered_turns": 8},
    ),
    Scenario(
        "a session that returns after nine days",
        "Two conversations; nobody waited nine days for a reply.",
        {"rows.jsonl": session("session_id")},
        says=["read 2 conversations", "1 session split after a long silence"],
        never=["777,"],
        conversations=2,
    ),
    Scenario(
        "a ticket that goes on after nine days",
        "One ticket.",
        {"rows.jsonl": session("ticket_id")},
        says=["read 1 conversation "],
        never=["split"],
        conversations=1,
    ),
    Scenario(
        "a session whose gap is a setting",
        "The user allows ten days of silence.",
        {"rows.jsonl": session("session_id")},
        options=["--session-gap", 240],
        says=["read 1 conversation "],
        conversations=1,
    ),
    Scenario(
        "fifty messages of a session, and a gap of three days",
        "Two conversations, whatever the order of the lines.",
        {
            "rows.jsonl": [
                {"session_id": "s", **timed("user" if n % 2 == 0 else "assistant", f"Text {n}.", at)}
                for n, at in reversed([(n, n * 5 + (3 * DAY if n >= 20 else 0)) for n in range(50)])
            ]
        },
        says=["read 2 conversations", "1 session split"],
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 25},
        conversations=2,
    ),
    Scenario(
        "an export that is newest first",
        "The user asked twice, and the agent replied each time.",
        {"chats.jsonl": [chat(*reversed(TWO_TURNS), id="a"), chat(*TWO_TURNS, id="b")]},
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 4},
        conversations=2,
    ),
    Scenario(
        "an agent whose clock is behind",
        "The order of the messages is right, whatever the clock of the agent says.",
        {
            "chats.jsonl": [
                chat(
                    timed("user", ASK, 10),
                    timed("assistant", REPLY, 3),
                    timed("user", "When will it be here?", 20),
                    timed("assistant", "On Monday.", 13),
                )
            ]
        },
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 2},
    ),
    Scenario(
        "one conversation in two files in the order of neither name",
        "The question is in the second file.",
        {
            "a.jsonl": [{"conversation_id": "k", **timed("assistant", REPLY, 5)}],
            "b.jsonl": [{"conversation_id": "k", **timed("user", ASK, 0)}],
        },
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 1},
    ),
    Scenario(
        "server-sent events of something else",
        "This is no conversation.",
        {"events.txt": 'event: tick\ndata: {"n": 1}\n\nevent: tick\ndata: {"n": 2}\n'},
        says=["no conversation could be read"],
        code=2,
    ),
    Scenario(
        "a log with levels",
        "This is no conversation.",
        {"service.txt": "INFO: the server has started\nERROR: the file is gone\nINFO: the agent is there\n" * 3},
        says=["no conversation could be read"],
        code=2,
    ),
    Scenario(
        "one conversation as a record and as a table",
        "One chat, exported in two shapes.",
        {
            "chats.jsonl": [chat(ASK, REPLY, conversation_id="k1")],
            "rows.csv": f'conversation_id,role,content\nk1,user,"{ASK}"\nk1,assistant,{REPLY}\n'
            "k2,user,Hello?\nk2,assistant,Hi there.\n",
        },
        says=["read 2 conversations", "1 record dropped as copies"],
        conversations=2,
    ),
    Scenario(
        "messages as lines and as a table",
        "One chat of two messages, exported in two shapes.",
        {
            "rows.jsonl": [
                {"conversation_id": "k", **timed("user", ASK, 0)},
                {"conversation_id": "k", **timed("assistant", REPLY, 2)},
            ],
            "rows.csv": f'conversation_id,role,content,timestamp\nk,user,"{ASK}",1780000000\n'
            f"k,assistant,{REPLY},1780000002\n",
        },
        says=["read 1 conversation ", "2 records dropped as copies"],
        counts={"agent.unanswered_turns": 1},
        conversations=1,
    ),
    Scenario(
        "two bots by name",
        "One bot answers, the other one does not.",
        {
            "chats.jsonl": [
                chat(ASK, said("assistant", REPLY, name="bot_a"), "Thanks.", said("assistant", "Bye.", name="bot_a"))
                for _ in range(5)
            ]
            + [
                chat(ASK, said("user", "Hello?"), said("assistant", "One moment.", name="bot_b"), "Now?")
                for _ in range(5)
            ]
        },
        options=["--by", "agent", "--full"],
        says=["bot_a", "bot_b"],
        conversations=10,
    ),
    Scenario(
        "messages exported twice",
        "One chat of two messages; the second export holds them again.",
        {
            f"{day}.jsonl": [
                {"conversation_id": "k", **timed("user", ASK, 0)},
                {"conversation_id": "k", **timed("assistant", REPLY, 2)},
            ]
            for day in ("monday", "tuesday")
        },
        says=["read 1 conversation ", "2 records joined by the id", "2 records dropped as copies"],
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 1},
        conversations=1,
    ),
]


@each(SCENARIOS)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)


def test_copies_claim_nothing(tmp_path: Path) -> None:
    """Forty chats give no claim about two versions, and the same forty given four times give none either."""
    check(
        Scenario(
            "versions",
            "Nothing can be said about the versions.",
            {f"{name}.jsonl": BY_VERSION for name in "abcd"},
            options=["--by", "agent"],
            never=["is better than", "is worse than"],
            conversations=40,
        ),
        tmp_path,
    )
