"""Answers about logs that lie, hide or come with other things: what was not read is said, and nothing is steered."""

from __future__ import annotations

from pathlib import Path

from support.scenarios import Scenario, chat, check, each

CHATS = [chat(f"Where is parcel {n}?", "It is on its way.", id=f"c{n}") for n in range(12)]
MAP = '[conversation]\nmessages = "talk"\nid = "no"\n[message]\nrole = "who"\ntext = "said"\n'
TALK = [
    {"no": n, "talk": [{"who": "user", "said": f"Where is parcel {n}?"}, {"who": "bot", "said": "On its way."}]}
    for n in range(12)
]
HOSTILE = "\x1b[2J\u202e##[command]ok\n::error::x"

SCENARIOS = [
    Scenario(
        "an archive lies among the logs",
        "Twelve chats; the archive beside them was not opened.",
        {"chats.jsonl": CHATS, "older.zip": "PK\x03\x04 and more"},
        says=[r"older\.zip: is a ZIP archive, which is not opened"],
        conversations=12,
    ),
    Scenario(
        "strictly, an archive among the logs",
        "The archive was not opened, so nothing may be said of all logs.",
        {"chats.jsonl": CHATS, "older.zip": "PK\x03\x04 and more"},
        options=["--strict"],
        says=[r"error: 1 problem older\.zip: is a ZIP archive"],
        code=2,
    ),
    Scenario(
        "strictly, a flow that is cut off",
        "The flow cannot be read.",
        {"chats.jsonl": CHATS, "flow.yaml": "flow: order\nstates:\n  - name: a\n   next: [\n"},
        options=["--strict"],
        says=[r"flow\.yaml.*is not YAML"],
        code=2,
    ),
    Scenario(
        "strictly, subtitles without a single good cue",
        "The only cue has no time: nothing of the call can be read.",
        {"chats.jsonl": CHATS, "call.srt": "1\n00:00:xx,000 --> 00:00:02,000\nHello there\n"},
        options=["--strict"],
        says=[r"call\.srt"],
        code=2,
    ),
    Scenario(
        "notes and pictures beside the logs are no problem",
        "Twelve chats, and files that are no logs.",
        {"chats.jsonl": CHATS, "README.md": "# Week 7\n", "notes.txt": "Recorded on Monday.\n"},
        options=["--strict"],
        never=["error"],
        conversations=12,
    ),
    Scenario(
        "names steer no terminal",
        "The ids of these chats are commands for terminals and servers.",
        {"chats.jsonl": [chat("Where is it?", "On its way.", id=f"{HOSTILE}{n}") for n in range(12)]},
        never=["\x1b", "\u202e", r"##\[command"],
        conversations=12,
    ),
    Scenario(
        "a mapping with a byte-order mark",
        "Twelve chats, read by a mapping that an editor saved with a mark.",
        {"talk.jsonl": TALK, "map.toml": "\ufeff" + MAP},
        options=["--map", "{folder}/map.toml"],
        conversations=12,
    ),
    Scenario(
        "a mapping that is no TOML",
        "A YAML file cannot be the mapping.",
        {"talk.jsonl": TALK, "map.yaml": "role: who\n"},
        options=["--map", "{folder}/map.yaml"],
        says=[r"a mapping is a TOML file"],
        never=["there is no such file"],
        code=2,
    ),
    Scenario(
        "one line with a NUL",
        "Eleven chats; the twelfth is damaged.",
        {
            "a.jsonl": "".join(
                f'{{"id": "c{n}", "messages": [{{"role": "user", "content": "Where is parcel {n}?"}}, '
                f'{{"role": "assistant", "content": "On its way."}}]}}' + ("\n" if n else "\0\n")
                for n in range(12)
            )
        },
        says=[r"a\.jsonl:1"],
        conversations=11,
    ),
    Scenario(
        "nothing but a picture",
        "There is no log in it.",
        {"picture.json": "\x00\x01\x02\x03PNG" * 20},
        says=[r"picture\.json: is a binary file"],
        code=2,
    ),
]


@each(SCENARIOS)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path, own_process=True)
