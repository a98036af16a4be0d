"""Answers about single messages: which field is the id of their conversation."""

from __future__ import annotations

from pathlib import Path

from support.scenarios import Scenario, check, each, said, tool

ASK, REPLY = "Where is my order, please?", "It left the warehouse this morning."


def rows(field: str, metadata: bool = False) -> list[dict[str, object]]:
    """Ten calls of two messages, with their ids in this field."""
    return [
        {**({"metadata": {field: f"s{n}"}} if metadata else {field: f"s{n}"}), **said(role, text)}
        for n in range(10)
        for role, text in (("user", f"Where is order {n}?"), ("assistant", f"Order {n} is on its way."))
    ]


ID_NAMES = "call_sid callSid callsid call_id session dialogueId dialogue_id dialog_ref conversation chat sessionID"
ROWS = [
    Scenario(
        f"ids in {field}",
        "Ten calls of one question each.",
        {"rows.jsonl": rows(field)},
        says=["read 10 conversations", "20 records joined by the id"],
        counts={"agent.unanswered_turns": 10},
        conversations=10,
    )
    for field in ID_NAMES.split()
] + [
    Scenario(
        "ids in the metadata of single messages",
        "Ten calls of one question each.",
        {"rows.jsonl": rows("call_sid", metadata=True)},
        says=["read 10 conversations"],
        conversations=10,
    ),
    Scenario(
        "ids by a name that is not known",
        "Probably ten chats; the file does not say so.",
        {"rows.jsonl": rows("vorgang")},
        says=["read 1 conversation ", "1 conversation may be several .*'vorgang' may be their id"],
        conversations=1,
    ),
    Scenario(
        "the same batch in each row",
        "One chat of ten questions; the batch is the same for all.",
        {"rows.jsonl": [{**row, "vorgang": "b"} for row in rows("vorgang")]},
        says=["read 1 conversation "],
        never=["may be several"],
        conversations=1,
    ),
    *(
        Scenario(
            f"a {field} in each row",
            "One chat of ten questions; the field says how far it is.",
            {"rows.jsonl": rows(field)},
            says=["read 1 conversation "],
            never=["may be several"],
            conversations=1,
        )
        for field in ("turn", "turn_id", "state")
    ),
    Scenario(
        "the id of a tool call in a row",
        "One chat; call_id belongs to the tool.",
        {
            "rows.jsonl": [
                said("user", ASK),
                tool("shipped")[0],
                {**tool("shipped")[1], "call_id": "t1"},
                said("assistant", REPLY),
            ]
        },
        says=["read 1 conversation "],
        never=["not used", "no conversation id"],
        conversations=1,
    ),
    Scenario(
        "a sentence in a field called chat",
        "One chat; the field holds words, not an id.",
        {"rows.jsonl": [{**said("user", ASK), "chat": "a b"}, {**said("assistant", REPLY), "chat": "c d"}]},
        says=["read 1 conversation "],
        conversations=1,
    ),
]


@each(ROWS)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)
