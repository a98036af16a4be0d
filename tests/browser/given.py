"""The runs whose pages are looked at, made from real logs by the real road."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import convoscope
from convoscope.conversation import (
    Agent,
    AudioFile,
    Clock,
    ComponentMetric,
    Conversation,
    Event,
    Expected,
    GuardEvaluated,
    Item,
    Label,
    Marker,
    Outcome,
    Participant,
    Retrieval,
    Scenario,
    Segment,
    SlotFilled,
    StateEntered,
    StateExited,
    Text,
    Time,
    Tool,
    ToolCall,
    ToolResult,
    Track,
    Utterance,
    to_json,
)
from convoscope.metrics import CONVERSATION, HIGHER, LOWER, TURN, Observation, Subject, TenPoints, measured, metric
from convoscope.runs.run import Run
from support.chats import agent, user
from support.chats import chat as told
from support.generated import chat, write_lines

EXAMPLES = Path(__file__).parents[2] / "examples"
FORMATS = ("convoscope", "openai-chat", "openai-responses")
PARTS = "tools.tool_call_validity."
"""What the names of those begin with that are part of another metric."""
METRICS = (
    "agent.repetition",
    "agent.words_per_turn",
    "answer.accuracy",
    "answer.accuracy@choice",
    "answer.exact_match",
    "answer.f1",
    "conversation.turns",
    "timing.response_latency",
    "tools.calls",
    "tools.success",
    "tools.tool_call_validity",
    *(f"{PARTS}{part}_rate" for part in ("bad_argument", "missing_argument", "rejected", "unknown_tool")),
)


def examples(folder: Path) -> Run:
    """Always the same few, however many examples there are. Their groups are small, and asked for."""
    for name in FORMATS:
        shutil.copytree(EXAMPLES / name, folder / "logs" / name)
    by = [["flow"], ["agent"], ["flow", "agent"], ["scenario_id"]]
    return convoscope.score(folder / "logs", metrics=METRICS, out=folder / "examples", workers=1, by=by)


# ---------------------------------------------------------------------- a shop, and forty chats

CHATS = 230
"""More than the list shows at once, and more values of a dimension than fit into a choice."""


def shop(folder: Path) -> Run:
    """`chats.jsonl` with two broken lines at its end, and a few calls that are odd in ways of their own."""
    logs = folder / "shop-logs"
    logs.mkdir()
    lines = []
    for number in range(CHATS):
        record = chat(number)
        facts = record.setdefault("metadata", {})
        facts["domain"] = f"d{number}"
        facts["trial"] = number % 2
        if number % 2 == 0 and number % 3:
            facts["agent"] = "agent, with a comma & an ampersand"
        lines.append(json.dumps(record))
    # Line 231 is cut off, line 232 is no conversation.
    lines += ['{"id": "cut", "messages": [{"role": "user", "con', '{"id": "no-messages", "messages": 7}']
    (logs / "chats.jsonl").write_text("\n".join(lines) + "\n")
    (logs / "calls.jsonl").write_bytes(b"\n".join(to_json(one) for one in _odd_calls()) + b"\n")
    by = [["flow"], ["agent"], ["flow", "agent"], ["scenario_id"], ["domain"]]
    return convoscope.score(logs, metrics=[*_USUAL, *_shop_metrics()], out=folder / "shop run", by=by, workers=1)


_USUAL = (
    "agent.repetition",
    "agent.words_per_turn",
    "answer.f1",
    "conversation.turns",
    "timing.response_latency",
    "tools.calls",
    "tools.success",
)


def _odd_calls() -> Iterator[Conversation]:
    long = [
        one for turn in range(60) for one in (user(f"Line {turn}?", 10.0 * turn), agent("Yes. " * 40, 10 * turn + 2.0))
    ]
    yield told(*long, id="long-call")
    # Lower case is longer than upper case in these letters.
    yield told(user("İİİİİİİİ find the needle here", 1), agent("Gladly.", 2), id="istanbul-call")
    yield told(user("Hello?", 1), id="broken-call", outcome=Outcome(error="the telephone line broke"))
    yield told(id="silent-call")


def _shop_metrics() -> list[Any]:
    def place(conversation: Conversation) -> int:
        return int(conversation.id.rpartition("-")[2]) if conversation.id.startswith("chat-") else 0

    @metric("shop.sixteenths", version=1, observes=CONVERSATION, unit="share", better=HIGHER)
    def sixteenths(conversation: Conversation) -> Observation:
        """What share lies half way between two roundings?"""
        return measured(conversation, (place(conversation) % 17) / 16)

    @metric("shop.large", version=1, observes=CONVERSATION, unit="s", better=LOWER)
    def large(conversation: Conversation) -> Observation:
        """How long, with more digits than a list keeps?"""
        return measured(conversation, 12_345.675 + place(conversation) * 1_000.125)

    @metric("shop.fragile", version=1, observes=CONVERSATION, unit="share", better=HIGHER)
    def fragile(conversation: Conversation) -> Observation:
        """What if a metric fails now and then?"""
        if place(conversation) % 10 == 7:
            raise RuntimeError("sevens are not for me")
        return measured(conversation, 1.0)

    @metric("shop.judged", version=1, observes=CONVERSATION, unit="points", better=HIGHER, ten=TenPoints(1, 5))
    def judged(conversation: Conversation) -> Observation:
        """How many points does Ann give?"""
        words = {"reason": "because of line 2", "points": {"tone": 4}}
        return measured(conversation, 1 + place(conversation) % 5, judge="ann", details=words)

    return [sixteenths, large, fragile, judged]


def forty(folder: Path) -> Run:
    log = write_lines(folder / "forty.jsonl", range(40))
    return convoscope.score(log, metrics=METRICS, out=folder / "forty", workers=1)


MANY = 20_500


def many(folder: Path) -> Run:
    log = write_lines(folder / "many.jsonl", range(MANY))
    return convoscope.score(log, metrics=["conversation.turns", "tools.success"], out=folder / "many", workers=2)


# ---------------------------------------------------------------------- hostile logs

SPELLS = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "</script><script>window.pwned=1</script>",
    '"><svg onload=window.pwned=1>',
    "' onmouseover='window.pwned=1' autofocus onfocus='window.pwned=1",
    "javascript:window.pwned=1",
    "--><!--<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "</title></style></noscript></template><img src=x onerror=window.pwned=1>",
    "{{7*7}}{% raw %}${7*7}#{7*7}",
    "line\u2028separators\u2029and\r\nbreaks\tand\x0bmore",
    "nul\x00bell\x07escape\x1b[31mdelete\x7fc1\x9b\ufffe\uffff",
    "\u202eright to left\u202c \u2067isolate\u2069 \u200bzero\u200d",
    "lone \" and ' and ` and \\",
    "&lt;b&gt;&amp;&#60;script&#62; %3Cscript%3E %00 %",
    "../../../etc/passwd?x=1&turn=2#conversation=other",
    "__proto__",
    "constructor",
    "👩‍👩‍👧‍👦🏴‍☠️" * 40,
    "شلونك 汉字" * 60,
    "x" * 5_000,
    "a&turn=0",
    " blanks  around ",
)


def hostile(folder: Path) -> Run:
    """Conversations, files, records that cannot be read and metrics: spells everywhere."""
    logs = folder / "hostile-logs"
    logs.mkdir()
    native = logs / "<img src=x onerror=window.pwned=1>.jsonl"
    native.write_bytes(b"\n".join(to_json(_cursed(spell)) for spell in SPELLS) + b"\n")
    (logs / '"><svg onload=window.pwned=1>.jsonl').write_text("\n".join(json.dumps(one) for one in _cursed_chats()))
    return convoscope.score(
        logs,
        metrics=[*_USUAL, *_cursed_metrics()],
        out=folder / "<img src=x onerror=window.pwned=1>",
        by=[["flow"], ["flow", "agent"], ["<script>window.pwned=1</script>"]],
        workers=1,
    )


def _cursed(spell: str) -> Conversation:
    """The spell wherever a text may stand."""
    return Conversation(
        id=spell,
        dimensions={
            "flow": spell,
            "agent": spell[:40],
            "<script>window.pwned=1</script>": spell,
            f"{spell[:60]}!": "name",
        },
        participants=(Participant("u", "user", spell), Participant("a", "assistant", spell)),
        clocks=(Clock(id="audio", kind="audio", source=spell),),
        agent=Agent(name=spell, role=spell, instructions=spell, tools=(Tool(name=spell),), models={spell: spell}),
        scenario=Scenario(goal={spell: spell}, persona=spell),
        expected=Expected(ground_truth=spell),
        items=(Item(id=spell),),
        timeline=tuple(_cursed_events(spell)),
        labels=(Label(name=spell, value=spell, rater=spell, notes=spell),),
        outcome=Outcome(error=spell, ended_reason=spell, final_status=spell),
        recording=AudioFile(tracks=(Track(path=spell), Track(url="javascript:window.pwned=1"))),
        extras={spell: [spell]},
    )


def _cursed_events(spell: str) -> Iterator[Event]:
    texts = {
        "intended": Text(spell, spell),
        "spoken": Text(f"{spell} b", spell),
        "heard": Text(f"c {spell}", spell, 0.5),
    }
    yield Utterance(seq=0, speaker="u", **texts, segments=(Segment(0, 2),), cut_off_by="a", extras={spell: spell})
    yield Utterance(seq=1, speaker="a", **texts, segments=(Segment(1, 3),), manner=spell)
    yield ToolCall(seq=2, name=spell, arguments={spell: [spell]}, call_id="1", time=Time(3, "audio"))
    yield ToolResult(seq=3, name=spell, call_id="1", result=spell, success=False, error=spell, time=Time(4, "audio"))
    yield ToolCall(seq=4, name=spell, raw_arguments=spell, time=Time(4, "audio"))
    yield StateEntered(seq=5, state=spell, time=Time(4, "audio"))
    yield StateExited(seq=6, state=spell, to_state=spell, reason=spell, time=Time(5, "audio"))
    yield GuardEvaluated(seq=7, guard=spell, result=spell, error=spell, state=spell)
    yield SlotFilled(seq=8, slot=spell, value=spell, state=spell)
    yield ComponentMetric(seq=9, component=spell, values={spell: spell}, label=spell, speech_id=spell)
    yield Retrieval(seq=10, query=spell, chunks=(spell,))
    yield Marker(seq=11, name=spell, participant="u", value=spell)


def _cursed_chats() -> Iterator[dict[str, Any]]:
    for place, spell in enumerate(SPELLS):
        call = {"id": "c", "type": "function", "function": {"name": spell, "arguments": spell}}
        yield {
            "id": f"chat {place} {spell}",
            spell or "x": spell,
            "messages": [
                {"role": "user", "content": spell, spell: spell},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": f"Error: {spell}"},
                {"role": spell, "content": spell},
            ],
        }
        yield {"id": spell, "messages": spell}


def _cursed_metrics() -> list[Any]:
    @metric("test.judged", version=1, observes=CONVERSATION, unit=f"points {SPELLS[1]}", better=HIGHER)
    def judged(conversation: Conversation) -> Iterator[Observation]:
        """<img src=x onerror=window.pwned=1> What do the judges say?"""
        for place, spell in enumerate(SPELLS[:3]):
            words = {conversation.id: conversation.id, "script": spell, "deep": {spell: [spell]}}
            yield measured(conversation, len(conversation.id) % 7 + place, judge=spell, details=words)

    @metric("test.turns", version=1, observes=TURN, unit="share", better=LOWER)
    def turns(conversation: Conversation) -> Iterator[Observation]:
        """What is said of turns?"""
        for turn in conversation.turns:
            yield measured(turn, 1.0, details={conversation.id: conversation.id})
        yield measured(Subject("state", conversation.id), 0.5)

    @metric("test.raises", version=1, observes=CONVERSATION, unit="share", better=LOWER)
    def raises(conversation: Conversation) -> Observation:
        """What does it raise?"""
        raise RuntimeError(conversation.id)

    return [judged, turns, raises]
