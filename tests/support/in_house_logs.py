"""Invented logs of in-house formats, and by hand what was said in each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

ASK, REPLY, THANKS, BYE = "Where is my parcel?", "It comes on Monday.", "Thank you very much.", "You are welcome."
CHAT = [f"user: {ASK}", f"assistant: {REPLY}", f"user: {THANKS}", f"assistant: {BYE}"]
OTHER = ["user: I want to cancel it.", "assistant: That is done now."]


def lines(*records: Any) -> str:
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records)


def turns(role: str, text: str, user: str, agent: str, **more: Callable[[int], Any]) -> list[dict[str, Any]]:
    """The four messages of CHAT under other names; `more` are fields by the number of the message."""
    said = [(user, ASK), (agent, REPLY), (user, THANKS), (agent, BYE)]
    return [
        {role: who, text: words, **{name: value(number) for name, value in more.items()}}
        for number, (who, words) in enumerate(said)
    ]


class InHouse(NamedTuple):
    """A log, and what was said in it."""

    name: str
    file: str
    content: str
    said: list[list[str]]


OTHER_TURNS = [
    {"from": "guest", "msg": "I want to cancel it."},
    {"from": "helper bot", "msg": "That is done now."},
]
CALL = {"name": "track", "arguments": '{"no": 7}'}
TRACKED = ['track({"no": 7})', '-> {"day": "Monday"}']
READ = [
    InHouse(
        "a list deep in a document",
        "export.json",
        json.dumps({"meta": {"v": 2}, "payload": {"data": {"session": {"log": turns("who", "say", "caller", "bot")}}}}),
        [CHAT],
    ),
    InHouse(
        "batches of conversations of messages",
        "batches.json",
        json.dumps(
            {
                "batches": [
                    {"day": "mon", "chats": [{"ref": "a1", "lines": turns("from", "msg", "guest", "helper bot")}]},
                    {"day": "tue", "chats": [{"ref": "b1", "lines": OTHER_TURNS}]},
                ]
            }
        ),
        [CHAT, OTHER],
    ),
    InHouse(
        "messages in an object by number",
        "numbered.json",
        json.dumps({"turns": {f"t{n}": one for n, one in enumerate(turns("spk", "utt", "usr", "sys"), 1)}}),
        [CHAT],
    ),
    InHouse(
        "pairs of a role and a text",
        "pairs.jsonl",
        lines({"id": "p1", "talk": [["customer", ASK], ["agent", REPLY], ["customer", THANKS], ["agent", BYE]]}),
        [CHAT],
    ),
    InHouse(
        "a CSV with a column for the speaker",
        "calls.csv",
        "Call ID,Party,Words\n"
        f"c1,Customer,{ASK}\nc1,Service Agent,{REPLY}\nc2,Customer,I want to cancel it.\n"
        "c2,Service Agent,That is done now.\n",
        [CHAT[:2], OTHER],
    ),
    InHouse(
        "a CSV with a column for each side",
        "pairs.csv",
        f"session,customer_says,bot_says\ns1,{ASK},{REPLY}\ns1,{THANKS},{BYE}\n",
        [CHAT],
    ),
    InHouse(
        "JSON lines of messages of interleaved conversations",
        "stream.jsonl",
        lines(
            {"session_id": "a", "ts": 1767348000123, "direction": "inbound", "body": ASK},
            {"session_id": "b", "ts": 1767348001123, "direction": "inbound", "body": "I want to cancel it."},
            {"session_id": "a", "ts": 1767348002123, "direction": "outbound", "body": REPLY},
            {"session_id": "b", "ts": 1767348003123, "direction": "outbound", "body": "That is done now."},
        ),
        [CHAT[:2], OTHER],
    ),
    InHouse(
        "messages with times and no conversation",
        "one.jsonl",
        lines(*turns("speaker", "text", "visitor", "chatbot", timestamp=lambda n: f"2026-01-02T10:00:0{n}Z")),
        [CHAT],
    ),
    InHouse(
        "an event stream with types",
        "events.jsonl",
        lines(
            {"type": "session.started", "session_id": "s", "at": "2026-01-02T10:00:00Z"},
            {"type": "user.message", "session_id": "s", "at": "2026-01-02T10:00:01Z", "data": {"text": ASK}},
            {"type": "bot.message", "session_id": "s", "at": "2026-01-02T10:00:02Z", "data": {"text": REPLY}},
            {"type": "user.message", "session_id": "s", "at": "2026-01-02T10:00:03Z", "data": {"text": THANKS}},
            {"type": "bot.message", "session_id": "s", "at": "2026-01-02T10:00:04Z", "data": {"text": BYE}},
        ),
        [["[message_without_text]", *CHAT]],
    ),
    InHouse(
        "an event stream with calls and results as events",
        "agent.jsonl",
        lines(
            {
                "run": "r1",
                "steps": [
                    {"kind": "message", "role": "user", "text": ASK},
                    {"kind": "tool_call", "name": "track", "arguments": {"no": 7}, "call_id": "c1"},
                    {"kind": "tool_output", "call_id": "c1", "output": {"day": "Monday"}},
                    {"kind": "message", "role": "assistant", "text": REPLY},
                ],
            }
        ),
        [[CHAT[0], *TRACKED, CHAT[1]]],
    ),
    InHouse(
        "calls in a list of a message, with names of their own",
        "bot.jsonl",
        lines(
            {
                "conversation": "x1",
                "entries": [
                    {"actor": "customer", "utterance": ASK},
                    {
                        "actor": "agent",
                        "utterance": REPLY,
                        "api_calls": [{"method": "track", "kwargs": {"no": 7}, "output": {"day": "Monday"}}],
                    },
                    {"actor": "customer", "utterance": THANKS},
                ],
            }
        ),
        [[CHAT[0], CHAT[1], *TRACKED, CHAT[2]]],
    ),
    InHouse(
        "results in a list beside the calls",
        "loop.jsonl",
        lines(
            {
                "id": "l1",
                "steps": [
                    {"source": "user", "message": ASK},
                    {
                        "source": "agent",
                        "message": REPLY,
                        "tool_calls": [{"tool_call_id": "c1", "function_name": "track", "arguments": {"no": 7}}],
                        "observation": {"results": [{"source_call_id": "c1", "content": '{"day": "Monday"}'}]},
                    },
                ],
            }
        ),
        [[CHAT[0], CHAT[1], *TRACKED]],
    ),
    InHouse(
        "parts with calls, and results in messages of the user",
        "blocks.json",
        json.dumps(
            {
                "transcript": [
                    {"role": "user", "content": ASK},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "text", "text": "I look it up."},
                            {"type": "tool_use", "id": "u1", "name": "track", "input": {"no": 7}},
                        ],
                    },
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "tool_use_id": "u1", "content": '{"day": "Monday"}'}],
                    },
                    {"role": "assistant", "content": [{"type": "text", "text": REPLY}]},
                ],
                "release": 4,
            }
        ),
        [[CHAT[0], "assistant: I look it up.", *TRACKED, CHAT[1]]],
    ),
    InHouse(
        "messages of a tool, and arguments as text",
        "tools.jsonl",
        lines(
            {
                "case_no": 5,
                "history": [
                    {"by": "client", "txt": ASK},
                    {"by": "assistant", "txt": "", "fn_calls": [{"id": "c1", **CALL}]},
                    {"by": "tool", "txt": '{"day": "Monday"}', "call_id": "c1"},
                    {"by": "assistant", "txt": REPLY},
                ],
            }
        ),
        [[CHAT[0], *TRACKED, CHAT[1]]],
    ),
    InHouse(
        "a ticket with private notes",
        "tickets.json",
        json.dumps(
            {
                "tickets": [
                    {
                        "no": 17,
                        "comments": [
                            {"author": "customer", "body": ASK, "is_private": False},
                            {"author": "agent", "body": "He called twice already, be nice.", "is_private": True},
                            {"author": "agent", "body": REPLY, "is_private": False},
                        ],
                    }
                ]
            }
        ),
        [CHAT[:2]],
    ),
    InHouse(
        "a ticket with public and internal entries",
        "desk.json",
        json.dumps(
            {
                "ticket": "T-9",
                "entries": [
                    {"visibility": "public", "sender": "client", "message": ASK},
                    {"visibility": "internal", "sender": "agent", "message": "Ask the warehouse about it."},
                    {"visibility": "public", "sender": "agent", "message": REPLY},
                ],
            }
        ),
        [CHAT[:2]],
    ),
    InHouse(
        "a speaker that is a note",
        "notes.jsonl",
        lines(
            {
                "id": "n1",
                "feed": [
                    {"who": "customer", "what": ASK},
                    {"who": "internal note", "what": "The parcel was lost once before."},
                    {"who": "agent", "what": REPLY},
                ],
            }
        ),
        [CHAT[:2]],
    ),
    InHouse(
        "newest first",
        "feed.json",
        json.dumps(
            {"feed": turns("from", "text", "user", "bot", sent_at=lambda n: f"2026-01-02T10:00:0{n}+00:00")[::-1]}
        ),
        [CHAT],
    ),
    InHouse(
        "not in order",
        "shuffled.json",
        json.dumps(
            {
                "items": [
                    turns("from", "text", "user", "bot", at=lambda n: 1767348000 + n)[index] for index in (2, 0, 3, 1)
                ]
            }
        ),
        [CHAT],
    ),
    InHouse(
        "marks that steer a program",
        "ivr.jsonl",
        lines(
            {
                "call": "c9",
                "log": [
                    {"speaker": "caller", "text": ASK},
                    {"speaker": "ivr bot", "text": REPLY},
                    {"speaker": "caller", "text": "[HANGUP]"},
                ],
            }
        ),
        [[*CHAT[:2], "[control_text]"]],
    ),
    InHouse(
        "instructions of the agent",
        "prompted.jsonl",
        lines(
            {
                "run_id": "r",
                "dialog": [
                    {"speaker": "system", "line": "You answer questions about parcels. " * 10},
                    *turns("speaker", "line", "human", "ai"),
                ],
            }
        ),
        [CHAT],
    ),
    InHouse(
        "what the platform writes into a chat",
        "widget.jsonl",
        lines(
            {
                "chat_id": "w",
                "events": [
                    *turns("author", "text", "visitor", "operator")[:2],
                    {"author": "system", "text": "The operator left."},
                ],
            }
        ),
        [[*CHAT[:2], "[system_message]"]],
    ),
    InHouse(
        "keys and words in German",
        "gespraeche.json",
        json.dumps(
            {
                "gespräche": [
                    {
                        "vorgang": "V1",
                        "verlauf": [
                            {"sprecher": "Kunde", "äußerung": "Wo ist mein Paket?"},
                            {"sprecher": "Berater", "äußerung": "Es kommt am Montag."},
                        ],
                    }
                ]
            }
        ),
        [["user: Wo ist mein Paket?", "assistant: Es kommt am Montag."]],
    ),
    InHouse(
        "rows in Spanish, with a number of the case",
        "casos.csv",
        "expediente;quien;mensaje;hora\n"
        "E-1;cliente;¿Dónde está mi pedido?;2026-01-02 10:00:00\nE-1;agente;Llega el lunes.;2026-01-02 10:00:05\n"
        "E-2;cliente;Quiero cancelarlo, ya.;2026-01-02 11:00:00\nE-2;agente;Ya está hecho.;2026-01-02 11:00:05\n",
        [
            ["user: ¿Dónde está mi pedido?", "assistant: Llega el lunes."],
            ["user: Quiero cancelarlo, ya.", "assistant: Ya está hecho."],
        ],
    ),
    InHouse(
        "a person beside customer and bot",
        "handover.jsonl",
        lines(
            {
                "id": "h",
                "msgs": [
                    *turns("name", "text", "Customer", "Bot"),
                    {"name": "Maria", "text": "Maria here, hello."},
                ],
            }
        ),
        [[*CHAT, "Maria: Maria here, hello."]],
    ),
    InHouse(
        "examples of a prompt beside the talk",
        "few_shots.jsonl",
        lines(
            {
                "id": "f",
                "few_shot_examples": [
                    {"role": "user", "content": "What is the capital of France?"},
                    {"role": "assistant", "content": "It is called Paris."},
                ],
                "turns": turns("role", "content", "user", "assistant"),
            }
        ),
        [CHAT],
    ),
    InHouse(
        "lists of metadata beside the talk",
        "meta.json",
        json.dumps(
            {
                "participants": [{"role": "user", "name": "Ann Smith Jones"}, {"role": "bot", "name": "Help bot two"}],
                "tags": [{"type": "topic", "value": "where is it"}, {"type": "mood", "value": "a bit angry"}],
                "turns": turns("role", "text", "user", "bot"),
            }
        ),
        [CHAT],
    ),
    InHouse(
        "settings of a model in each message",
        "settings.jsonl",
        lines(
            {
                "id": "m",
                "turns": turns(
                    "role", "text", "user", "bot", model=lambda n: {"name": "large-1", "parameters": {"temperature": n}}
                ),
            }
        ),
        [CHAT],
    ),
    InHouse(
        "a parent that is the message before",
        "linked.jsonl",
        lines(
            {
                "id": "c",
                "turns": turns(
                    "role", "text", "user", "bot", id=lambda n: f"m{n}", parent_id=lambda n: f"m{n - 1}" if n else None
                ),
            }
        ),
        [CHAT],
    ),
    InHouse(
        "JSON in a cell",
        "cells.csv",
        'conversation_id,messages\nj1,"' + json.dumps(turns("role", "text", "user", "bot")).replace('"', '""') + '"\n',
        [CHAT],
    ),
    InHouse(
        "words that grow until they are final",
        "asr.jsonl",
        lines(
            {
                "call_id": "g",
                "transcripts": [
                    {"speaker": "caller", "text": "Where is", "is_final": False},
                    {"speaker": "caller", "text": ASK, "is_final": True},
                    {"speaker": "agent", "text": REPLY, "is_final": True},
                ],
            }
        ),
        [CHAT[:2]],
    ),
    InHouse(
        "a column for each side, and a side in each row",
        "sides.csv",
        f"Chat,Customer,Agent\n1,{ASK},\n1,,{REPLY}\n1,{THANKS},\n1,,{BYE}\n",
        [CHAT],
    ),
    InHouse(
        "numbers that fall",
        "numbered_down.json",
        json.dumps({"msgs": turns("from", "text", "user", "bot", seq=lambda n: n)[::-1]}),
        [CHAT],
    ),
    InHouse(
        "Japanese",
        "ja.jsonl",
        lines(
            {
                "会話": "1",
                "発言": [
                    {"話者": "お客様", "内容": "荷物はどこですか。"},
                    {"話者": "オペレーター", "内容": "月曜日に届きます。"},
                ],
            }
        ),
        [["user: 荷物はどこですか。", "assistant: 月曜日に届きます。"]],
    ),
    InHouse(
        "proposals that were not sent",
        "assist.jsonl",
        lines(
            {
                "id": "a",
                "items": [
                    {"type": "message", "from": "customer", "text": ASK},
                    {"type": "suggested_reply", "from": "agent", "text": "It was lost, sorry about that."},
                    {"type": "message", "from": "agent", "text": REPLY},
                ],
            }
        ),
        [CHAT[:2]],
    ),
    InHouse(
        "a summary beside the talk",
        "summed.json",
        json.dumps(
            {
                "summaries": [
                    {"role": "user", "text": "The user asks for a parcel."},
                    {"role": "agent", "text": "The agent gives a day."},
                ],
                "turns": turns("role", "text", "user", "agent"),
            }
        ),
        [CHAT],
    ),
    InHouse(
        "a transcript in a text",
        "voice.jsonl",
        lines(
            {"call": "v", "transcript": f"Agent: Hello.\nCustomer: {ASK}\nI wait since Friday.\nAgent: {REPLY}"},
            {"call": "w", "transcript": f"Agent: Good day.\nCustomer: {OTHER[0][6:]}\nAgent: {OTHER[1][11:]}"},
        ),
        [
            ["assistant: Hello.", f"user: {ASK}\nI wait since Friday.", CHAT[1]],
            ["assistant: Good day.", *OTHER],
        ],
    ),
    InHouse(
        "a transcript in a list of lines",
        "lines.json",
        json.dumps({"call": {"log": [f"Caller: {ASK}", f"Bot: {REPLY}", f"Caller: {THANKS}", f"Bot: {BYE}"]}}),
        [CHAT],
    ),
    InHouse(
        "a flag for the side",
        "flags.jsonl",
        lines(
            {
                "thread": "f",
                "items": [
                    {"from_customer": True, "text": ASK},
                    {"from_customer": False, "text": REPLY},
                    {"from_customer": True, "text": THANKS},
                ],
            }
        ),
        [CHAT[:3]],
    ),
    InHouse(
        "questions and answers with calls between them",
        "exchanges.jsonl",
        lines(
            {
                "session": "q",
                "exchanges": [
                    {"user_content": {"parts": [{"text": ASK}]}, "reply": {"parts": [{"text": REPLY}]}},
                    {"user_content": {"parts": [{"text": THANKS}]}, "reply": {"parts": [{"text": BYE}]}},
                ],
            }
        ),
        [CHAT],
    ),
]
