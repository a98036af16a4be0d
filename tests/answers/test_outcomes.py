"""Answers about ends: nobody spoke, machines, hand-overs, hang-ups, labels, and speech through tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.ends import GREETING, TALK, retell, served
from support.scenarios import Record, Scenario, chat, check, each, said, tool

MAILBOX = "You have reached the voicemail of Bob Miller. Please leave a message after the tone."


def greeted(number: int, *more: str | dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A chat that the agent opens."""
    return chat(said("assistant", GREETING), *more, id=f"c{number}", **fields)


def by_tool(name: str, number: int, **arguments: Any) -> dict[str, Any]:
    """A chat in which the agent answers by calls of a tool, and never by a message."""
    return chat(
        said("user", f"Where is parcel {number}?"),
        *tool("ok", name, "t1", **arguments),
        said("user", "And when is it here?"),
        *tool("ok", name, "t2", **arguments),
        id=f"c{number}",
    )


def livekit(reason: str) -> str:
    """A session report of LiveKit in which the user spoke once."""
    items = [
        {"id": f"i{at}", "type": "message", "role": role, "content": [text], "created_at": 1_700_000_000.0 + 5 * at}
        for at, (role, text) in enumerate((("assistant", GREETING), ("user", "It is broken"), ("assistant", "I see.")))
    ]
    report = {"job_id": "j", "room_id": "r", "room": "room", "chat_history": {"items": items}, "close_reason": reason}
    return json.dumps({**report, "events": [], "options": {"allow_interruptions": True}, "timestamp": 1_700_000_030.0})


NOBODY_SPOKE = [
    Scenario(
        "callers hang up at the greeting",
        "Fourteen of fifteen users never said a word; one chat was held.",
        {"a.jsonl": [*(greeted(n) for n in range(14)), greeted(14, "Where is my parcel?", "It arrives tomorrow.")]},
        says=[r"14 of 15 chats: the user never spoke; they are left out of all averages"],
        never=[r"n 15\b"],
        counts={"agent.words_per_turn": 2, "conversation.turns": 1},
        conversations=15,
    ),
    Scenario(
        "silence as the recogniser writes it",
        "A mark of silence is no word of the user.",
        {"a.jsonl": [*(greeted(n, text) for n, text in enumerate(("[silence]", "...", "(no speech)"))), served(3)]},
        says=[r"3 of 4 chats: the user never spoke"],
        counts={"conversation.turns": 1},
    ),
    Scenario(
        "an emoji is an answer",
        "The user answered with a sign.",
        {"a.jsonl": [greeted(0, "👍"), served(1)]},
        never=["never spoke"],
        counts={"conversation.turns": 2},
    ),
    Scenario(
        "only the agent is logged",
        "Nothing is known of the users: the log holds the agent's side alone.",
        {"a.jsonl": [greeted(n) for n in range(12)]},
        says=[r"None of the 12 chats has a word of the user, so nothing is measured"],
        never=[r"100\.0 %", r"n 12\b"],
        figures={"outcome.conversation_correctly_finished": None, "agent.words_per_turn": None},
    ),
    Scenario(
        "a message of the user that could not be read",
        "The user wrote something that the log does not hold: that is no silence.",
        {"a.jsonl": [greeted(0, {**said("user", ""), "sticker": "cat-7"}), served(1)]},
        never=["never spoke"],
    ),
    Scenario(
        "messages of the user that are empty",
        "Four chats in which the user says nothing, and one with an answer.",
        {
            "a.jsonl": [
                *(greeted(n, said("user", ""), "Are you there?", said("user", " ")) for n in range(4)),
                served(9),
            ]
        },
        says=["4 of 5 chats: the user never spoke"],
    ),
    Scenario(
        "an agent that works by itself",
        "The task is in the instructions, and the agent works with tools: there is no user who could speak.",
        {
            "a.jsonl": [
                chat(
                    said("system", "Sort the tickets."),
                    *tool({"error": "down"}),
                    said("assistant", "Done."),
                    id=f"c{n}",
                )
                for n in range(5)
            ]
        },
        never=["never spoke", "word of the user"],
        figures={"tools.success": 0.0},
    ),
]

MACHINES = [
    Scenario(
        "mailboxes by words",
        "Two of five calls reached a mailbox; its greeting is no speech of a user.",
        {"a.jsonl": [*(greeted(n, MAILBOX) for n in range(2)), *(served(n) for n in range(2, 5))]},
        says=[r"2 of 5 chats reached a mailbox and are left out of all averages"],
        # "Where is parcel 2?" and "Thank you!": 4 + 2 words in each of three chats.
        figures={"user.effort": 6.0},
        counts={"user.effort": 3},
    ),
    Scenario(
        "a mailbox in each language",
        "Each of the six reached a mailbox.",
        {
            "a.jsonl": [
                *(
                    greeted(n, text)
                    for n, text in enumerate(
                        (
                            "Please leave a message after the beep.",
                            "Bitte hinterlassen Sie eine Nachricht nach dem Signalton.",
                            "En este momento no puedo atender. Deje su mensaje después del tono.",
                            "Bonjour, laissez un message après le bip.",
                            "Deixe seu recado após o sinal.",
                            "発信音の後にお名前とご用件をお話しください。",
                        )
                    )
                ),
                served(6),
            ]
        },
        says=[r"6 of 7 chats reached a mailbox"],
    ),
    Scenario(
        "a phone menu and nobody else",
        "The agent talked to a menu.",
        {
            "a.jsonl": [
                chat(
                    "Thank you for calling Acme. For sales, press 1. For support, press 2.",
                    "Support, please.",
                    "All of our agents are busy. Please stay on the line.",
                    id="ivr",
                ),
                served(1),
            ]
        },
        says=[r"1 of 2 chats reached a phone menu and is left out of all averages"],
        counts={"conversation.turns": 1},
    ),
    Scenario(
        "a menu, then a person",
        "A person came to the phone after the menu: that is a conversation.",
        {
            "a.jsonl": [
                chat(
                    "For sales, press 1. For support, press 2.",
                    "Support, please.",
                    "Hi, this is Tom, what can I do for you?",
                    "I need the opening hours.",
                    "Nine to five.",
                    id="person",
                )
            ]
        },
        never=["phone menu", "no average"],
        counts={"conversation.turns": 1},
    ),
    Scenario(
        "people who speak about mailboxes",
        "These are people with a question about their mailbox.",
        {
            "a.jsonl": [
                chat("My voicemail says leave a message after the tone, but it is full.", "I can help.", id="a"),
                chat("How do I change 'please leave a message after the beep'?", "In the settings.", id="b"),
                chat("I pressed 1 for billing and got you.", "You are right here.", id="c"),
                chat("Please hold while I find my card.", "Of course.", "It is 1234.", "Thanks.", id="d"),
            ]
        },
        never=["mailbox\\.", "reached a", "no average"],
        counts={"conversation.turns": 4},
    ),
    Scenario(
        "the log's own fields before words",
        "The log says that machines answered, whatever was said.",
        {
            "a.jsonl": [
                greeted(0, "Hi, this is Bob.", metadata={"AnsweredBy": "machine_end_beep"}),
                greeted(1, "Hello hello.", in_voicemail=True),
                greeted(2, "Yes.", call_outcome="voicemail"),
                greeted(3, "Yes, please.", "Fine.", metadata={"AnsweredBy": "human"}, in_voicemail=False),
            ]
        },
        says=[r"3 of 4 chats reached a mailbox"],
        counts={"conversation.turns": 1},
    ),
    Scenario(
        "a detector that was wrong",
        "A field says machine, but the user talked with the agent four times: that is a conversation.",
        {
            "a.jsonl": [
                greeted(
                    0,
                    "My dryer broke",
                    "Since when?",
                    "Monday",
                    "Which model?",
                    "A 300",
                    "Noted.",
                    "Thanks",
                    AnsweredBy="machine_start",
                )
            ]
        },
        never=["mailbox", "no average"],
        counts={"conversation.turns": 1},
    ),
]


def flow_log(start: int, *, hangup: bool) -> list[Record]:
    """A flow that logs states and no speech."""
    states = ("greet",) if hangup else ("greet", "ask", "confirm")
    events: list[Record] = [
        {"type": "StateEntered", "ts": at, "data": {"state": name}} for at, name in enumerate(states, start)
    ]
    end = {"completed": not hangup, "stop_reason": "hangup" if hangup else "terminal"}
    return [*events, {"type": "ConversationEnded", "ts": start + 9, "data": end}]


ENDINGS = [
    Scenario(
        "reasons of a voice platform",
        "All ten calls say how they ended, none whether the goal was reached.",
        {
            "calls.jsonl": [
                *(retell(n, "user_hangup", *TALK) for n in range(5)),
                *(retell(n, "call_transfer", *TALK) for n in range(5, 8)),
                *(retell(n, "voicemail_reached", ("agent", GREETING), ("user", MAILBOX)) for n in range(8, 10)),
            ]
        },
        says=[
            r"The logs say how 10 of 10 calls ended, not whether they reached their goal: "
            r"user hung up 5, handed over 3, mailbox answered 2\.",
            r"2 of 10 calls reached a mailbox and are left out of all averages",
        ],
        never=["do not say how"],
        counts={"outcome.conversation_correctly_finished": 8, "conversation.turns": 8},
    ),
    Scenario(
        "a reason in a field of a plain chat",
        "The log says how seven of nine chats ended.",
        {
            "a.jsonl": [
                *(served(n, end_reason="user closed the window") for n in range(4)),
                *(served(n, metadata={"endReason": "Transferred to human"}) for n in range(4, 6)),
                served(6, end_reason="escalation rejected"),
                *(served(n, finish_reason="stop") for n in range(7, 9)),
            ]
        },
        says=[
            r"The logs say how 7 of 9 chats ended, not whether they reached their goal: "
            r"user left 4, handed over 2, transfer failed 1\."
        ],
    ),
    Scenario(
        "calls that nobody answered",
        "Nobody took three of four calls.",
        {
            "calls.jsonl": [
                retell(0, "dial_no_answer"),
                retell(1, "dial_busy"),
                retell(2, "dial_no_answer", ("agent", GREETING)),
                retell(3, "user_hangup", *TALK),
            ]
        },
        says=[r"the caller never spoke", r"user hung up 1"],
        counts={"conversation.turns": 1},
    ),
    Scenario(
        "a caller who hangs up breaks nothing",
        "Every caller hung up after an answer; nothing broke.",
        {"calls.jsonl": [retell(n, "user_hangup", *TALK) for n in range(6)]},
        figures={"outcome.conversation_correctly_finished": 1.0},
        never=["broke"],
    ),
    Scenario(
        "a flow without speech",
        "Two of three flows came to their end; the log records no speech, so nobody was silent in it.",
        {f"call-{n}.jsonl": flow_log(100 * n, hangup=n == 2) for n in range(3)},
        says=[r"2 of 3 \w+ reach their goal"],
        never=["never spoke", "no average"],
        figures={"outcome.success": 2 / 3},
    ),
    Scenario(
        "a participant who disconnects",
        "The caller hung up after an answer.",
        {"session_report.json": livekit("CR_PARTICIPANT_DISCONNECTED")},
        says=[r"1 of 1 \w+ ended, not whether they reached their goal: user"],
        figures={"outcome.conversation_correctly_finished": 1.0, "outcome.conversation_completed_on_time": 1.0},
        never=["broke"],
    ),
    Scenario(
        "a session that broke",
        "The session ended with an error: that is a fault, and stays one.",
        {"session_report.json": livekit("CR_ERROR")},
        says=["broke"],
        figures={"outcome.conversation_correctly_finished": 0.0},
    ),
    Scenario(
        "handed over by a tool",
        "Three of eight users were put through; in one more the transfer failed.",
        {
            "a.jsonl": [
                *(
                    chat(
                        "I want a person.",
                        *tool("Transfer successful", "transfer_to_human_agents"),
                        "You are being transferred.",
                        id=f"t{n}",
                    )
                    for n in range(3)
                ),
                chat(
                    "I want a person.",
                    *tool({"error": "no agent available"}, "transfer_to_human_agents"),
                    "Nobody is free, sorry.",
                    id="failed",
                ),
                *(served(n) for n in range(4)),
            ]
        },
        says=[r"3 of 8 chats are handed over to a person; the logs do not say how the others ended"],
    ),
    Scenario(
        "a hand-over between programs",
        "Another program went on serving the user: nobody was put through to a person.",
        {
            "a.jsonl": [
                chat(
                    "I want a refund.",
                    *tool("ok", "transfer_to_refund_agent"),
                    "Refunds here, which order?",
                    "Order 12",
                    "It is refunded.",
                    id=f"c{n}",
                )
                for n in range(5)
            ]
        },
        never=["handed over"],
    ),
    Scenario(
        "handed over beside known outcomes",
        "Six of eight judged chats were resolved; two more were handed over, which is neither.",
        {
            "a.jsonl": [
                *(served(n, resolved=True) for n in range(6)),
                *(served(n, resolved=False) for n in range(6, 8)),
                *(served(n, transferred=True) for n in range(8, 10)),
            ]
        },
        options=["--label", "resolved"],
        says=[r"6 of 8 chats reach their goal \(75 %\); 2 of 10 are handed over to a person \(counted neither"],
        figures={"outcome.success": 0.75},
        counts={"outcome.success": 8},
    ),
]


def labelled(name: str, good: Any, bad: Any, share: int = 4, count: int = 20) -> dict[str, list[Record]]:
    """Chats of which every `share`-th has the bad value."""
    return {"a.jsonl": [served(n, **{name: bad if n % share == 0 else good}) for n in range(count)]}


def trials(*rewards: float, broken: float) -> dict[str, str]:
    """Runs of τ-bench, three trials of a task each, with these rewards; then a run that wrote nothing, with its own."""
    talk = [said("user", "Cancel order 7."), said("assistant", "It is cancelled."), said("user", "###STOP###")]
    runs = [(reward, talk) for reward in rewards] + [(broken, [])]
    fields = [
        {"task_id": n // 3, "trial": n % 3, "reward": one, "info": {}, "traj": t} for n, (one, t) in enumerate(runs)
    ]
    return {"runs.json": json.dumps(fields)}


BROKEN = [
    Scenario(
        f"a run that broke off, with the reward {reward:g}",
        "Two of five chats were done. The sixth broke off, which says nothing about the agent: one number, wherever.",
        trials(1, 1, 0, 0, 0, broken=reward),
        options=["--label", "reward"],
        says=[
            r"2 of 5 chats reach their goal \(40 %\)",
            r"chats that reach their goal 40\.0 % .* n 5\b.* 83 % covered",
            r"1 chat broke off with an error that says nothing about the agent",
        ],
        # The first task has three trials, of which two pass; the second has two left.
        figures={"outcome.success": 0.4, "outcome.success.pass_at@k3": 1.0, "outcome.success.pass_hat@k3": 0.0},
        counts={"outcome.success": 5, "outcome.success.pass_at@k3": 1},
        conversations=6,
    )
    for reward in (0.0, 1.0)
]

LABELS = [
    *BROKEN,
    Scenario(
        "a reward",
        "The reward says which chats were done.",
        labelled("reward", 1.0, 0.0),
        says=[r"`reward` has 1 in 15 and 0 in 5 of 20 chats: --label reward"],
    ),
    Scenario(
        "never a setting, never an expected answer",
        "Neither the option nor the expected answer says how a chat ended.",
        {
            "a.jsonl": [
                served(
                    n,
                    options={"allow_interruptions": n % 2 == 0},
                    target="yes" if n % 3 else "no",
                    expected={"resolved": n % 2 == 0},
                    stream=n % 2 == 0,
                    ground_truth="passed" if n % 2 else "failed",
                )
                for n in range(20)
            ]
        },
        never=["--label"],
    ),
    Scenario(
        "escalated, unasked",
        "A quarter of the chats was escalated; whether that is good is not said.",
        labelled("escalated", False, True),
        says=[r"--label 'escalated = false' or --label 'escalated = true'"],
        never=["reach their goal"],
    ),
    Scenario(
        "escalated as a label",
        "The word does not say which value is good: the command asks.",
        labelled("escalated", False, True),
        options=["--label", "escalated"],
        says=[r"nothing says which value is good: false in 15 and true in 5", r"--label 'escalated = false'"],
        never=["reach their goal"],
        code=2,
    ),
    Scenario(
        "a label with its value",
        "Fifteen of twenty chats were not escalated.",
        labelled("escalated", False, True),
        options=["--label", "escalated = false"],
        figures={"outcome.success": 0.75},
    ),
    Scenario(
        "a label as a list of values",
        "Closed and solved are a success: 15 of 20.",
        {"a.jsonl": [served(n, status=("open", "closed", "solved", "Solved")[n % 4]) for n in range(20)]},
        options=["--label", "status in closed, solved"],
        figures={"outcome.success": 0.75},
    ),
    Scenario(
        "a value that nobody has",
        "No chat has this value: the command says which there are.",
        labelled("status", "closed", "open"),
        options=["--label", "status = solved"],
        says=[r"no conversation has 'status = solved'", r"closed in 15 and open in 5"],
        code=2,
    ),
    Scenario(
        "grades of Inspect",
        "C is correct, I is not.",
        labelled("grade", "C", "I"),
        options=["--label", "grade"],
        figures={"outcome.success": 0.75},
    ),
    Scenario(
        "choices are no grades",
        "A, B and C are answers, and say neither pass nor fail.",
        {"a.jsonl": [served(n, grade="ABCD"[n % 4]) for n in range(20)]},
        options=["--label", "grade"],
        figures={"outcome.success": None},
    ),
    Scenario(
        "ratings are proposed with a mark",
        "A rating from 1 to 5 says something, from a mark on that the user chooses.",
        {"a.jsonl": [served(n, rating=1 + n % 5) for n in range(20)]},
        # 4 and 5: two of five.
        says=[r"`rating` has numbers from 1 to 5, 4 or more in 8 of 20 chats: --label 'rating >= 4'"],
        figures={"outcome.success": None},
    ),
    Scenario(
        "numbers of which less is better",
        "Whether more complaints are better is not said.",
        {"a.jsonl": [served(n, complaints=n % 3) for n in range(20)]},
        options=["--label", "complaints"],
        says=[r"nothing says whether more is better or worse"],
        code=2,
    ),
    Scenario(
        "an outcome in a header",
        "The header of each transcript says how it ended.",
        {
            f"t{n}.txt": f"Outcome: {'resolved' if n else 'unresolved'}\nDate: 2025-01-0{n + 1}\n\n"
            "Customer: My dryer is broken.\nAgent: I send a technician.\nCustomer: Thank you.\nAgent: Goodbye.\n"
            for n in range(4)
        },
        says=[r"`outcome` has resolved in 3 and unresolved in 1 of 4 \w+: --label outcome"],
    ),
]

SPEECH = [
    Scenario(
        "an agent that speaks by a tool",
        "Each turn was answered, through the tool.",
        {"a.jsonl": [by_tool("send_message_to_user", n, message=f"It arrives on day {n}.") for n in range(10)]},
        figures={"agent.unanswered_turns": 0.0},
        counts={"agent.unanswered_turns": 20, "tools.calls": 10},
    ),
    Scenario(
        "mail is no reply",
        "The agent sent mails and never answered in the chat.",
        {"a.jsonl": [by_tool("send_email", n, to="a@example.com", body="It arrives tomorrow.") for n in range(10)]},
        figures={"agent.unanswered_turns": 1.0},
    ),
    Scenario(
        "a tool that may speak",
        "The agent may speak by a tool of unknown name: whether it answered is not known.",
        {"a.jsonl": [by_tool("deliver", n, text="It arrives tomorrow.", voice="very soft") for n in range(10)]},
        says=[r"--speech-tool deliver"],
        figures={"agent.unanswered_turns": None},
    ),
    Scenario(
        "a tool that is named",
        "The user says that the tool speaks.",
        {"a.jsonl": [by_tool("deliver", n, text="It arrives tomorrow.", voice="very soft") for n in range(10)]},
        options=["--speech-tool", "deliver"],
        figures={"agent.unanswered_turns": 0.0},
        never=["--speech-tool"],
    ),
    Scenario(
        "a named tool that nobody calls",
        "The named tool is not in the log: the command says so.",
        {"a.jsonl": [served(n) for n in range(3)]},
        options=["--speech-tool", "delivr"],
        says=["--speech-tool delivr: no call"],
    ),
    Scenario(
        "an agent that talks and once is silent",
        "The agent answers by messages; the turn in which it only filed a text has no reply.",
        {
            "a.jsonl": [
                chat(
                    *("Hi", "Hello!", "My parcel is lost", "Which one?"),
                    said("user", "Number 12, what now?"),
                    *tool("ok", "submit", text="The user lost parcel 12."),
                    said("user", "Are you there?"),
                    said("assistant", "Yes."),
                    id=f"c{n}",
                )
                for n in range(5)
            ]
        },
        # One of four turns.
        figures={"agent.unanswered_turns": 0.25},
    ),
    Scenario(
        "a message that could not be sent",
        "The tool failed, so the user heard nothing.",
        {
            "a.jsonl": [
                chat(
                    said("user", "Where is it?"),
                    *tool({"error": "channel closed"}, "send_message_to_user", message="Here."),
                    said("user", "Hello?"),
                    id=f"c{n}",
                )
                for n in range(5)
            ]
        },
        figures={"agent.unanswered_turns": 1.0},
        counts={"agent.unanswered_turns": 10},
    ),
]


@each([*NOBODY_SPOKE, *MACHINES, *ENDINGS, *LABELS, *SPEECH])
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)
