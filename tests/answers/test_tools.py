"""Answers about tools: what failed is never a success, and what says neither is never a number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command_line import convoscope
from support.scenarios import Scenario, chat, check, each, said, tool

GOOD = {"order_id": "A7", "items": ["teapot"], "total": 20}


def asks(n: int, *results: Any, name: str = "lookup") -> dict[str, Any]:
    """A chat in which the agent calls a tool once for each result."""
    used = [message for k, one in enumerate(results) for message in tool(one, name, f"t{k}", order=n, try_=k)]
    return chat(f"Where is order {n}?", *used, said("assistant", f"I looked at order {n}."), id=f"c{n}")


def chats(*of_each: tuple[int, Any], name: str = "lookup") -> dict[str, list[dict[str, Any]]]:
    """Chats with one tool call each: so many with this result, so many with that."""
    results = [one for count, one in of_each for _ in range(count)]
    return {"chats.jsonl": [asks(n, one, name=name) for n, one in enumerate(results)]}


FAILURES: dict[str, Any] = {
    "an HTTP line": "HTTP 503 Service Unavailable",
    "a code as a number": {"code": 500, "message": "internal"},
    "a list of errors": {"errors": [{"message": "backend down"}]},
    "a time-out in words": "Request timed out",
    "success as a text": {"success": "false"},
    "isError": {"isError": True, "content": [{"type": "text", "text": "boom"}]},
    "a status as a number": {"status": 500},
    "a traceback": 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 7',
    "a gRPC line": "rpc error: code = Unavailable desc = connection refused",
    "an exit code": {"stdout": "", "stderr": "no", "exit_code": 2},
    "an error inside of a good answer": {"statusCode": 200, "body": '{"error": "backend down"}'},
    "data beside errors": {"data": {"order": None}, "errors": [{"message": "resolver failed"}]},
    "a page of a proxy": "<html><head><title>502 Bad Gateway</title></head><body></body></html>",
    "a literal of Python": "{'status': 'error', 'message': 'backend down'}",
}

SCENARIOS = [
    Scenario(
        "every tool reports an error",
        "Every tool call failed.",
        chats((30, {"error": "backend down"})),
        says=[r"tool calls that succeed 0\.0 %"],
        figures={"tools.success": 0.0},
        counts={"tools.success": 30},
        conversations=30,
    ),
    *(
        Scenario(
            f"failure by {name}",
            "Every tool call failed; it read as 100 % before.",
            chats((12, content)),
            options=["--target", "tools.success >= 95%"],
            figures={"tools.success": 0.0},
            counts={"tools.success": 12},
            code=1,
        )
        for name, content in FAILURES.items()
    ),
    Scenario(
        "data that speaks of errors",
        "All lookups worked: one order failed, a product has the code 500, nothing is wrong with the calls.",
        chats(
            (4, {"order_id": "A1", "status": "failed", "items": [1]}),
            (4, {"code": 500, "name": "Widget", "price": 3}),
            (4, {"errors": 0, "passed": 33, "error": None}),
            (4, {"balance": 404}),
            (4, [{"level": "error", "message": "disk full"}, {"level": "info", "message": "ok"}]),
        ),
        options=["--target", "tools.success >= 95%"],
        figures={"tools.success": 1.0, "tools.success.inferred_rate": 1.0},
        counts={"tools.success": 20},
    ),
    Scenario(
        "a FAQ about errors",
        "The search worked each time; the articles are about errors.",
        chats(
            (6, "Error codes: E05 means that the filter is clogged. E06 means that there is no water."),
            (6, "If the payment failed, or the connection was refused, ask the customer to try another card."),
            name="search_faq",
        ),
        figures={"tools.success": 1.0},
        counts={"tools.success": 12},
    ),
    Scenario(
        "results that say neither",
        "Nobody can say whether these calls worked.",
        chats((10, "queued"), (10, "T-4711"), (5, "[]"), (5, "")),
        options=["--target", "tools.success >= 95%"],
        never=[r"tool calls that succeed [\d.]+ % "],
        figures={"tools.success": None},
        counts={"tools.success": 0},
        code=3,
    ),
    Scenario(
        "only the failures say so",
        "Five of a hundred calls failed; of the others it is not known. Neither 0 % nor 95 % is known.",
        chats((5, "Error: queue is full"), (95, "queued"), name="submit_job"),
        options=["--target", "tools.success >= 95%"],
        never=[r"tool calls that succeed [\d.]+ % "],
        figures={"tools.success": None},
        code=3,
    ),
    Scenario(
        "nearly all failed, one says nothing",
        "At least 30 of 31 calls failed.",
        chats((30, "Error: backend down"), (1, "")),
        options=["--target", "tools.success >= 95%"],
        figures={"tools.success": 0.0},
        counts={"tools.success": 30},
        code=1,
    ),
    Scenario(
        "failures beside one success and many that do not say",
        "Six of 61 calls say how they went, so that neither 16.7 % nor any other share is known.",
        chats((5, "Error: queue is full"), (1, {"success": True}), (55, "queued"), name="submit_job"),
        options=["--target", "tools.success >= 95%"],
        says=[r"undetermined: too few results stated"],
        never=[r"tool calls that succeed +[\d.]+ % +[\d.]+ to", r"tool errors that stay"],
        figures={"tools.success": None, "tools.unrecovered_errors": None},
        code=3,
    ),
    Scenario(
        "inferred successes beside some that do not say",
        "Forty calls returned an order, and ten do not say: all that are known worked, by their data alone.",
        chats((40, GOOD), (10, "queued")),
        says=[r"tool calls that succeed +100\.0 % .* n 40 .*40 of 40 inferred, 80 % covered"],
        figures={"tools.success": 1.0, "tools.unrecovered_errors": 0.0},
        counts={"tools.success": 40, "tools.unrecovered_errors": 40},
    ),
    Scenario(
        "some successes are inferred",
        "All thirty calls worked; seventeen show it by their data alone.",
        chats((17, GOOD), (13, {"success": True})),
        says=[r"tool calls that succeed +100\.0 % .*17 of 30 inferred"],
        figures={"tools.success": 1.0},
        counts={"tools.success": 30},
    ),
    Scenario(
        "all successes are stated",
        "All thirty calls say that they worked.",
        chats((30, {"success": True})),
        says=[r"tool calls that succeed +100\.0 %"],
        never=[r"inferred"],
        figures={"tools.success": 1.0},
    ),
    Scenario(
        "no error is known of calls that do not say",
        "Whether these tools failed is not known.",
        chats((30, "queued")),
        says=[r"read 30 conversations"],
        never=[r"tool errors that stay"],
        figures={"tools.success": None, "tools.unrecovered_errors": None},
    ),
    Scenario(
        "failures in words that no list has whole",
        "Every call failed.",
        chats(
            (5, {"status": "ERROR: database down"}),
            (5, {"status": "DEADLINE_EXCEEDED"}),
            (5, {"code": 14, "message": "unavailable"}),
            (5, ["Error: db down"]),
            (5, "upstream connect error or disconnect/reset before headers"),
            (5, {"http": {"status": 503}}),
        ),
        says=[r"tool calls that succeed +0\.0 % .*bad"],
        never=[r"inferred"],
        figures={"tools.success": 0.0},
        counts={"tools.success": 30},
    ),
    Scenario(
        "half stated, half inferred",
        "All calls worked: ten say so, ten return an order, and ten do not say.",
        chats((10, {"success": True}), (10, GOOD), (10, "queued")),
        figures={"tools.success": 1.0, "tools.success.inferred_rate": 0.5},
        counts={"tools.success": 20},
    ),
    Scenario(
        "one bad result in ten",
        "Nine of ten calls worked.",
        chats((18, GOOD), (2, "503 Service Unavailable")),
        options=["--target", "tools.success >= 95%"],
        figures={"tools.success": 0.9},  # 18 of 20
        counts={"tools.success": 20},
        code=1,
    ),
    Scenario(
        "a house rule",
        "By the rule of this house `NAK` means failure: 5 of 20 failed.",
        chats((5, {"ack": "NAK", "ref": 9}), (15, {"ack": "ACK", "ref": 9})),
        options=["--tool-failed", r'"ack":\s*"NAK"'],
        figures={"tools.success": 0.75},  # 15 of 20
        counts={"tools.success": 20},
    ),
    Scenario(
        "a house rule that is no pattern",
        "The pattern cannot be used.",
        chats((1, GOOD)),
        options=["--tool-failed", "(NAK"],
        says=[r"--tool-failed '\(NAK' cannot be used"],
        code=2,
    ),
    Scenario(
        "failures in other languages, in XML, of vendors",
        "Every lookup failed; each of these read as a success.",
        chats(
            (4, "Die Bestellung konnte nicht geladen werden."),
            (4, {"erfolg": False, "meldung": "Server nicht erreichbar"}),
            (4, "<response><status>error</status><message>Order locked</message></response>"),
            (4, {"detail": [{"loc": ["body", "x"], "msg": "field required", "type": "value_error.missing"}]}),
            name="get_order",
        ),
        options=["--target", "tools.success >= 95%"],
        says=[r"tool calls that succeed 0\.0 %"],
        figures={"tools.success": 0.0},
        counts={"tools.success": 16},
        code=1,
    ),
    Scenario(
        "an act that returns what is no booking",
        "Whether a table was booked is not said: a flag, a question, an unknown language, half of a batch.",
        chats(
            (4, {"available": False}),
            (4, {"missing": ["name"]}),
            (4, "De tafel kon niet worden geboekt in Utrecht"),
            (4, [{"ok": True}, {"ok": False}]),
            name="book_table",
        ),
        options=["--target", "tools.success >= 95%"],
        never=[r"tool calls that succeed \d"],
        figures={"tools.success": None},
        code=3,
    ),
    Scenario(
        "a tool that recovers",
        "The tool failed once and then worked in each chat.",
        {"chats.jsonl": [asks(n, "HTTP 503 Service Unavailable", GOOD) for n in range(10)]},
        figures={"tools.success": 0.5, "tools.unrecovered_errors": 0.0},
        counts={"tools.success": 20},
    ),
    Scenario(
        "a tool that never recovers",
        "The tool failed twice in each chat and never worked.",
        {"chats.jsonl": [asks(n, "HTTP 503 Service Unavailable", {"status": 503}) for n in range(10)]},
        figures={"tools.success": 0.0, "tools.unrecovered_errors": 1.0},
        counts={"tools.success": 20},
    ),
    Scenario(
        "a transfer that failed",
        "Nobody was put through, and the user got no answer.",
        {
            "chats.jsonl": [
                chat(f"A person, please ({n}).", *tool("HTTP 503 Service Unavailable", "transfer_to_human"), id=f"c{n}")
                for n in range(6)
            ]
        },
        figures={"tools.success": 0.0, "agent.unanswered_turns": 1.0},
    ),
    Scenario(
        "a transfer that worked",
        "Every user was put through.",
        {
            "chats.jsonl": [
                chat(f"A person, please ({n}).", *tool("Transfer successful", "transfer_to_human"), id=f"c{n}")
                for n in range(6)
            ]
        },
        figures={"tools.success": 1.0, "agent.unanswered_turns": 0.0},
    ),
]


@each(SCENARIOS)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("HTTP 503 Service Unavailable", "no (http 503)"),
        (GOOD, "yes, inferred (returned data)"),
        ("queued", "not stated: tool result says neither"),
        ({"status": "ok"}, "yes (status: ok)"),
    ],
)
def test_show_says_how_a_result_was_read(content: Any, says: str, tmp_path: Path) -> None:
    log = tmp_path / "chats.jsonl"
    log.write_text(json.dumps(asks(1, content)) + "\n")
    assert convoscope("score", log, "--out", tmp_path / "run").code == 0
    shown = " ".join(convoscope("show", tmp_path / "run", "c1", "--full").out.split())
    assert says in shown


def test_the_cause_of_a_lost_chat_is_the_tool_that_failed(tmp_path: Path) -> None:
    log = tmp_path / "chats.jsonl"
    lost = [{**asks(n, "HTTP 503 Service Unavailable"), "resolved": False} for n in range(8)]
    won = [{**asks(n + 8, GOOD), "resolved": True} for n in range(8)]
    log.write_text("".join(json.dumps(one) + "\n" for one in (*lost, *won)))
    ended = convoscope("score", log, "--label", "resolved", "--out", tmp_path / "run")
    assert "8 of the 8 lost chats: lookup fails" in " ".join(ended.out.split())
