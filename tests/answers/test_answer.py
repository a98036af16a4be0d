"""What the answer says of figures, labels, clocks and order: attempts to mislead it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.ended_chats import FEW, cells, timed, turns
from support.scenarios import Record, Scenario, chat, check, each, said, tool


def booked(id: str, scenario: str, *calls: tuple[str, dict[str, Any]], **fields: Any) -> Record:
    """A trial of a scenario that called these tools."""
    used = [one for at, (name, arguments) in enumerate(calls) for one in tool({"id": 7}, name, f"t{at}", **arguments)]
    return chat("I need a flight.", *used, said("assistant", "All is done."), id=id, scenario_id=scenario, **fields)


DOWN = "Error: backend down"


def asked(number: int, *results: str) -> Record:
    """A chat in which tools gave these results, and the agent replied."""
    used = [one for at, text in enumerate(results) for one in tool(text, "lookup", f"t{at}", order=number)]
    return chat(f"Where is order {number}?", *used, said("assistant", f"Order {number}: I see."), id=f"c{number}")


FIGURES = [
    Scenario(
        "every tool fails beside figures of zero",
        "No tool call succeeded.",
        {"a.jsonl": [asked(number, DOWN) for number in range(60)]},
        says=[r"tool calls that succeed 0\.0 % .* n 60 bad"],
        figures={"tools.success": 0.0},
    ),
    Scenario(
        "one variant of a score is bad",
        "Nothing that was retrieved has a word of the truth, and no answer has one; each variant has its own name.",
        {
            "a.jsonl": [
                {
                    "agent_task": "When does it open?",
                    "agent_response": "Blue elephants dance",
                    "ground_truth": f"It opens at nine, number {number}",
                    "retrieval_query": ["opening hours"],
                    "retrieved_context": [["the moon is far"]],
                }
                for number in range(3)
            ]
        },
        says=[
            r"contextual precision, lexi\S* 0\.000 .* below its mark",
            r"contextual recall, lexical 0\.000 .* below its mark",
        ],
        never=["more bad figure"],
    ),
    Scenario(
        "few tool calls, all failed, among many good chats",
        "The three tool calls failed; that they are few hides nothing.",
        {"a.jsonl": [asked(number, DOWN) if number < 3 else asked(number) for number in range(60)]},
        says=[r"tool calls that succeed 0\.0 % .* n 3 "],
    ),
    Scenario(
        "few tool calls, some failed, among many good chats",
        "Two of five tool calls failed; 55 chats without tools hide nothing.",
        {"a.jsonl": [asked(n, *((DOWN if n < 2 else '{"state": "sent"}',) if n < 5 else ())) for n in range(60)]},
        says=[r"tool calls that succeed 60\.0 % .* n 5\b"],
    ),
    Scenario(
        "the agent declines always",
        "The agent did nothing but decline.",
        {"a.jsonl": [chat(f"Cancel order {n}.", "I am sorry, I cannot do that.", id=f"c{n}") for n in range(15)]},
        says=[r"handed over or declined 100\.0 % .* n 15 notable"],
    ),
    Scenario(
        "half declines",
        "The agent declines every other request; whether it should is not known.",
        {
            "a.jsonl": [
                chat(f"Cancel order {n}.", "I am sorry, I cannot." if n % 2 else "It is cancelled.", id=f"c{n}")
                for n in range(30)
            ]
        },
        says=[r"handed over or declined 50\.0 % .{0,30}notable"],
        never=[" bad"],
    ),
    Scenario(
        "all is well",
        "Nothing is bad.",
        {"a.jsonl": [asked(number, '{"state": "sent"}') for number in range(30)]},
        says=[r"turns without a reply 0\.0 %"],
        never=[" bad", "more bad figure", "notable"],
    ),
    Scenario(
        "many turns of five scenarios",
        "The turns are of five scenarios only.",
        {
            "a.jsonl": [
                timed(f"c{n}", *turns(10, 2.0 + n % 3), scenario_id=f"s{n % 5}", trial=str(n)) for n in range(15)
            ]
        },
        says=[r"turns without a reply .* n 150 in 5 scenarios"],
    ),
    Scenario(
        "one giant",
        "600 of 720 turns are of one chat, which sets the slowest 5 %.",
        {
            "a.jsonl": [
                timed("c-17", *turns(600, 9.0)),
                *(timed(f"c{n}", *turns(4, 2.0)) for n in range(30)),
            ]
        },
        says=[r"83 % of the values behind “wait for a reply, slowest 5 %”.* are of one chat, c-17\."],
    ),
    Scenario(
        "no giant",
        "All chats are about as long.",
        {"a.jsonl": [timed(f"c{n}", *turns(3 + n % 3, 2.0)) for n in range(30)]},
        never=["of the values behind"],
    ),
    Scenario(
        "counts, not a rate of a hundred",
        "204 of 304 chats were resolved.",
        {"a.jsonl": cells(({"version": "v1"}, 304, 204))},
        options=("--label", "resolved"),
        says=[r"^204 of 304 chats reach their goal \(67 %\)\."],
        never=["of 100 chats"],
    ),
]


def with_status(*statuses: str) -> dict[str, list[Record]]:
    return {
        "a.jsonl": [chat(f"Where is it, {n}?", "On its way.", id=f"c{n}", status=one) for n, one in enumerate(statuses)]
    }


STATUS = ("--label", "status", *FEW)
LABELS = [
    Scenario(
        "a status that is mostly open",
        "14 are resolved; of the 26 that are open or pending nothing is known.",
        with_status(*["resolved"] * 14, *["open"] * 13, *["pending"] * 13),
        options=STATUS,
        says=[
            r"^14 of 40 chats reach their goal; whether any was lost is not known\.",
            "26 chats have a `status` that is neither good nor bad: `open` 13, `pending` 13\\.",
        ],
        never=["No chat was lost"],
    ),
    Scenario(
        "a status that is resolved, failed or open",
        "14 of 20 known ends are good; 6 chats are open.",
        with_status(*["resolved"] * 14, *["failed"] * 6, *["open"] * 6),
        options=STATUS,
        says=[
            r"^14 of 20 chats reach their goal \(70 %\); how 6 others ended is not known\.",
            "6 chats have a `status` that is neither good nor bad: `open` 6\\.",
        ],
    ),
    Scenario(
        "one chat is open",
        "3 of 5 known ends are good; 1 chat is open.",
        with_status(*["resolved"] * 3, *["failed"] * 2, "open"),
        options=STATUS,
        says=[r"^3 of 5 chats reach their goal \(60 %\); how 1 other ended is not known\."],
        never=["1 others"],
    ),
    Scenario(
        "a status that is never good or bad",
        "No value says how a chat ended.",
        with_status(*["open"] * 9, "waiting"),
        options=STATUS,
        says=["10 chats have a `status` that is neither good nor bad: `open` 9, `waiting` 1\\."],
        never=["No chat was lost", "reach their goal"],
    ),
    Scenario(
        "some chats have no status",
        "The 5 that have a status are resolved.",
        {
            "a.jsonl": [
                chat("Hi there.", f"Hello {n}.", id=f"c{n}", **({"status": "resolved"} if n < 5 else {}))
                for n in range(9)
            ]
        },
        options=STATUS,
        says=["^No chat was lost, of 5 whose end is known"],
        never=["neither good nor bad"],
    ),
]

CLOCKS = [
    Scenario(
        "the agent's clock is two hours ahead in some chats",
        "In 12 chats the clocks disagree; elsewhere replies take 2 s.",
        {"a.jsonl": [timed(f"c{n}", *turns(3, 2.0 + n % 2, agent=7200.0 if n < 12 else 0.0)) for n in range(40)]},
        options=FEW,
        says=[r"In 12 of 40 chats the times of user and agent disagree by about 2 h: waits are not measured there"],
        never=[r"7,20\d"],
        counts={"timing.response_latency": 28 * 3},
    ),
    Scenario(
        "the user's clock is two hours ahead",
        "No wait can be measured, and it is said.",
        {"a.jsonl": [timed(f"c{n}", *turns(3, 2.0, user=7200.0)) for n in range(30)]},
        options=FEW,
        says=["In 30 of 30 chats the times of user and agent disagree by about 2 h"],
        figures={"timing.response_latency": None},
    ),
    Scenario(
        "the user's clock is ahead in chats of one question",
        "Replies are dated before the questions.",
        {"a.jsonl": [timed(f"c{n}", *turns(1, 2.0, user=3600.0)) for n in range(30)]},
        options=FEW,
        says=["In 30 of 30 chats replies are dated before what they answer: waits are not measured there"],
        figures={"timing.response_latency": None},
    ),
    Scenario(
        "the agent's clock is ahead in chats of one question",
        "Every reply comes two hours and two seconds later, which is a zone of time.",
        {"a.jsonl": [timed(f"c{n}", *turns(1, 2.0, agent=7200.0)) for n in range(30)]},
        options=FEW,
        says=["In 30 of 30 chats the agent seems to reply just after 2 h: its clock may be ahead by that"],
    ),
    Scenario(
        "one true wait of two hours",
        "One reply took two hours: it counts, and it is named.",
        {
            "a.jsonl": [
                timed("slow", *list(turns(2, 2.0))[:3], ("assistant", "Here it is.", 7400.0), ("user", "Ok.", 7500.0)),
                *(timed(f"c{n}", *turns(3, 2.0)) for n in range(30)),
            ]
        },
        options=FEW,
        # asked at 60 s, answered at 7,400 s: 2.04 h
        says=[r"The longest wait, 2 h, is in slow; the median is 2\.0 s\."],
        never=["disagree"],
        counts={"timing.response_latency": 2 + 90},
    ),
    Scenario(
        "users who go away for hours",
        "The user pauses, the agent does not: waits are 2 s.",
        {
            "a.jsonl": [
                timed(
                    f"c{n}",
                    ("user", "One question first.", 0.0),
                    ("assistant", "Go ahead, please do.", 2.0),
                    ("user", "I was away, sorry.", 9000.0),
                    ("assistant", "No problem at all for us.", 9002.0),
                )
                for n in range(25)
            ]
        },
        options=FEW,
        figures={"timing.response_latency": 2.0},
        never=["disagree", "longest wait", "clock"],
    ),
    Scenario(
        "a true slow desk",
        "Replies take hours, each another time: that is how it is.",
        {
            "a.jsonl": [
                timed(f"c{n}", ("user", "Where is it?", 0.0), ("assistant", "On its way to you.", 4000.0 + 611.0 * n))
                for n in range(25)
            ]
        },
        options=FEW,
        # 4,000 to 18,664 s in steps of 611: the mean is 4,000 + 12 × 611
        figures={"timing.response_latency": 4000.0 + 12 * 611.0},
        never=["disagree", "clock"],
    ),
]

BOOK = ("book_flight", {"flight": "HAT1"})
OTHER = ("book_flight", {"flight": "HAT9"})
LOOK = ("search_flights", {"day": "May 1"})
ORDER = [
    Scenario(
        "one trial books another flight",
        "Four trials book one flight, the fifth books another.",
        {"a.jsonl": [booked(f"t{n}", "s1", LOOK, OTHER if n == 3 else BOOK, trial=str(n)) for n in range(5)]},
        worst=["t3"],
        says=["trial 4 of the 4 other trials of its scenario made other changes t3"],
    ),
    Scenario(
        "trials that only look elsewhere",
        "Trials search for other days, and change the same.",
        {
            "a.jsonl": [
                booked(f"t{n}", "s1", ("search_flights", {"day": f"May {n}"}), BOOK, trial=str(n)) for n in range(5)
            ]
        },
        never=["made other changes"],
    ),
    Scenario(
        "the same arguments written otherwise",
        "2 and 2.0, hat1 and HAT1 are the same booking.",
        {
            "a.jsonl": [
                booked("a", "s1", ("book_flight", {"flight": "HAT1", "seats": 2}), trial="0"),
                booked("b", "s1", ("book_flight", {"seats": 2.0, "flight": "hat1"}), trial="1"),
                booked("c", "s1", ("book_flight", {"flight": "HAT1", "seats": "2"}), trial="2"),
            ]
        },
        never=["made other changes"],
    ),
    Scenario(
        "a label leads, whatever the trials do",
        "The labelled failure comes first, though it did what most did.",
        {
            "a.jsonl": [
                booked(f"t{n}", "s1", OTHER if n == 3 else BOOK, trial=str(n), resolved=n != 1) for n in range(5)
            ]
        },
        options=("--label", "resolved"),
        worst=["t1"],
        never=["made other changes"],
    ),
    Scenario(
        "neither outcome nor trials",
        "Nothing says which chat failed; some were slower.",
        {"a.jsonl": [timed(f"c{n}", *turns(2, 30.0 if n == 7 else 2.0)) for n in range(20)]},
        worst=["c7"],
        says=["rough wait for a reply 30.00 s, worse than 19 of 20 c7"],
        never=["worst", "failed"],
    ),
    Scenario(
        "a scenario that nothing changes",
        "No trial changed anything: nothing tells them apart.",
        {"a.jsonl": [booked(f"t{n}", "s1", LOOK, trial=str(n)) for n in range(4)]},
        never=["made other changes"],
    ),
]


@each([*FIGURES, *LABELS, *CLOCKS, *ORDER])
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)


ADDED = '''
from convoscope import Conversation, metric
from convoscope.metrics import CONVERSATION, COUNT, HIGHER, Observation, measured

@metric("mine.letters", version=1, observes=CONVERSATION, unit=COUNT, better=HIGHER, importance=9)
def letters(conversation: Conversation) -> Observation:
    """How many letters does the id have?"""
    return measured(conversation, float(len(conversation.id)))
'''


def test_an_added_metric_does_not_change_the_order(tmp_path: Path) -> None:
    """By letters, `c0` would come before `c10`; the slow chat comes first all the same."""
    chats = [timed(f"c{n}", *turns(2, 30.0 if n == 12 else 2.0)) for n in range(14)]
    (tmp_path / "mine.py").write_text(ADDED)
    files = {"a.jsonl": chats}
    check(
        Scenario(
            "added",
            "The slow chat is the roughest.",
            files,
            ("--metrics-from", tmp_path / "mine.py"),
            worst=["c12", "c0"],
        ),
        tmp_path / "plain",
    )


def test_an_added_metric_with_a_target_does(tmp_path: Path) -> None:
    chats = [timed(f"c{n}", *turns(2, 30.0 if n == 12 else 2.0)) for n in range(14)]
    (tmp_path / "mine.py").write_text(ADDED)
    options = ("--metrics-from", tmp_path / "mine.py", "--target", "mine.letters >= 3")
    # c0 to c9 have two letters, and the target asks for three: 10 of 14 miss it.
    scenario = Scenario(
        "asked", "Ids of two letters miss the target.", {"a.jsonl": chats}, options, worst=["c0"], code=1
    )
    check(scenario, tmp_path / "asked")
