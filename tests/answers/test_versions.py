"""What the answer says of versions and groups: attempts to mislead it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from support.ended_chats import FEW, cells, ended, timed, turns
from support.scenarios import Record, Scenario, chat, check, each

NO_CLAIM = (r"(completes|replies|does|has|talks|leaves|meets) [a-z ]*(more|fewer|sooner|later|better|worse)",)
"""Of versions: what is not said where nothing differs."""
VERSION = ("--by", "version", "--label", "resolved", *FEW)
EASY_HARD = {(v, d): {"version": v, "domain": d} for v in ("v1", "v2") for d in ("easy", "hard")}

VERSIONS = [
    Scenario(
        "better in each domain, worse together, and few",
        "v2 has more hard chats; within domains nothing is decided.",
        {
            "a.jsonl": cells(
                (EASY_HARD["v1", "easy"], 90, 81),
                (EASY_HARD["v1", "hard"], 10, 3),
                (EASY_HARD["v2", "easy"], 10, 10),
                (EASY_HARD["v2", "hard"], 90, 36),
            )
        },
        options=VERSION,
        says=[r"[Ww]ithin domain.* no clear difference yet .*easy 100\.0 %, was 90\.0 %; hard 40\.0 %, was 30\.0 %"],
        never=["completes fewer", "is worse"],
    ),
    Scenario(
        "better in each domain, worse together, and many",
        "Within each domain v2 is better; it has more hard chats.",
        {
            "a.jsonl": cells(
                (EASY_HARD["v1", "easy"], 300, 270),
                (EASY_HARD["v1", "hard"], 100, 30),
                (EASY_HARD["v2", "easy"], 100, 100),
                (EASY_HARD["v2", "hard"], 300, 130),
            )
        },
        options=VERSION,
        says=[
            r"Within each domain v2 completes more chats than v1: .*hard 43\.3 %, was 30\.0 %",
            r"easy 100\.0 %, was 90\.0 %",
            # (100 + 130) ÷ 400 and (270 + 30) ÷ 400
            r"Together they say the opposite \(chats that reach their goal 57\.5 %, was 75\.0 %\)",
            "because v2 has more hard chats",
        ],
        never=["completes fewer"],
    ),
    Scenario(
        "waits that are shorter in each domain, longer together",
        "Within each domain v2 replies sooner.",
        {
            "a.jsonl": [
                timed(f"{v}{d}{n}", *turns(1, wait + 0.01 * (n % 7)), version=v, domain=d)
                for v, d, size, wait in (
                    ("v1", "easy", 40, 1.0),
                    ("v1", "hard", 10, 6.0),
                    ("v2", "easy", 10, 0.5),
                    ("v2", "hard", 40, 5.0),
                )
                for n in range(size)
            ]
        },
        options=("--by", "version", *FEW),
        says=["Within each domain v2 replies sooner than v1"],
        never=["replies later"],
    ),
    Scenario(
        "the domain decides which version is better",
        "v2 is better at booking and worse at billing.",
        {
            "a.jsonl": cells(
                ({"version": "v1", "domain": "booking"}, 100, 50),
                ({"version": "v1", "domain": "billing"}, 60, 54),
                ({"version": "v2", "domain": "booking"}, 60, 57),
                ({"version": "v2", "domain": "billing"}, 100, 40),
            )
        },
        options=VERSION,
        says=["depends on the domain: .*booking 95.0 %, was 50.0 %", "billing 40.0 %, was 90.0 %"],
        never=["completes (more|fewer) chats than v1:"],
    ),
    Scenario(
        "each version has a language of its own",
        "v2 is German only, v1 English only: the reason cannot be known.",
        {
            "a.jsonl": cells(
                ({"version": "v1", "language": "en"}, 50, 45), ({"version": "v2", "language": "de"}, 50, 20)
            )
        },
        options=("--by", "language", *VERSION),
        says=["but their languages differ too, so the cause cannot be separated"],
        never=["completes fewer"],
    ),
    Scenario(
        "a true difference with the same mix",
        "v2 completes fewer chats, whatever the domain.",
        {
            "a.jsonl": cells(
                (EASY_HARD["v1", "easy"], 50, 48),
                (EASY_HARD["v1", "hard"], 50, 40),
                (EASY_HARD["v2", "easy"], 50, 30),
                (EASY_HARD["v2", "hard"], 50, 20),
            )
        },
        options=VERSION,
        # 88 and 50 of 100
        says=[r"v2 completes fewer chats than v1: chats that reach their goal 50\.0 %, was 88\.0 %\."],
        never=["[Ww]ithin", "Together"],
    ),
    Scenario(
        "no difference",
        "Both resolve three of four.",
        {"a.jsonl": cells(({"version": "v1"}, 40, 30), ({"version": "v2"}, 40, 30))},
        options=VERSION,
        says=["No clear difference yet in whether v2 completes more chats than v1"],
        never=[r"v2 completes (more|fewer) chats than v1:", "Like the"],
    ),
    Scenario(
        "what is better and what is worse",
        "v2 replies sooner and completes fewer chats.",
        {
            "a.jsonl": [
                timed(f"{v}{n}", *turns(2, wait + 0.1 * (n % 5)), version=v, resolved=n < good)
                for v, wait, good in (("v1", 4.0, 38), ("v2", 2.0, 15))
                for n in range(40)
            ]
        },
        options=VERSION,
        says=["v2 completes fewer chats than v1: ", "v2 replies sooner than v1: wait for a reply 2.20 s, was 4.20 s"],
        never=["is better than"],
    ),
    Scenario(
        "replies sooner, and completion is open",
        "v2 replies sooner; whether it completes more cannot be said.",
        {
            "a.jsonl": [
                timed(f"{v}{n}", *turns(2, wait + 0.1 * (n % 5)), version=v, resolved=n < 30)
                for v, wait in (("v1", 4.0), ("v2", 2.0))
                for n in range(40)
            ]
        },
        options=VERSION,
        says=["v2 replies sooner than v1", "No clear difference yet in whether v2 completes more chats than v1"],
    ),
    Scenario(
        "pairs show what the whole hides",
        "Each scenario waits half a second less with v2.",
        {
            "a.jsonl": [
                timed(f"{v}{n}", *turns(1, 1.0 + 2 * n - less + 0.01 * (n % 3)), version=v, scenario_id=f"s{n}")
                for v, less in (("v1", 0.0), ("v2", 0.5))
                for n in range(20)
            ]
        },
        options=("--by", "version", *FEW),
        says=["v2 replies sooner than v1: .*in 20 shared scenarios"],
    ),
    Scenario(
        "scenarios that only one version has",
        "In the twelve shared scenarios both are equal; v2 also has twenty that all fail.",
        {
            "a.jsonl": [
                *(
                    ended(f"{v}{n}", n % 2 == 0, version=v, scenario_id=f"s{n}")
                    for v in ("v1", "v2")
                    for n in range(12)
                ),
                *(ended(f"x{n}", False, version="v2", scenario_id=f"x{n}") for n in range(20)),
            ]
        },
        options=VERSION,
        says=[r"No clear difference yet in whether v2 completes more chats than v1 \(12 shared scenarios\)"],
        never=["completes fewer"],
    ),
    Scenario(
        "each version was tried on scenarios of its own",
        "The scenarios differ, so the versions cannot be compared.",
        {
            "a.jsonl": [
                ended(f"{v}{n}-{t}", n % 10 < good, version=v, scenario_id=f"{v}-{n}", trial=str(t))
                for v, good in (("v1", 9), ("v2", 3))
                for n in range(10)
                for t in range(4)
            ]
        },
        options=VERSION,
        says=["v1 and v2 were tried on different scenarios: they cannot be compared"],
        never=NO_CLAIM,
    ),
    Scenario(
        "the tenth version comes after the ninth",
        "v10 is worse than v9; what v2 did is long ago.",
        {"a.jsonl": cells(*(({"version": v}, 50, good) for v, good in (("v2", 20), ("v9", 45), ("v10", 20))))},
        options=VERSION,
        says=["v10 completes fewer chats than v9"],
        never=["v9 completes", "v2 completes"],
    ),
    Scenario(
        "versions by date",
        "November is better than October.",
        {
            "a.jsonl": cells(
                *(({"version": v}, 50, good) for v, good in (("2026-11-02", 48), ("2026-9-30", 10), ("2026-10-05", 20)))
            )
        },
        options=VERSION,
        says=["2026-11-02 completes more chats than 2026-10-05"],
    ),
    Scenario(
        "too few",
        "Four chats of v2 say nothing.",
        {"a.jsonl": cells(({"version": "v1"}, 40, 38), ({"version": "v2"}, 4, 0))},
        options=VERSION,
        says=["4 chats of v2 are too few to compare v2 with v1"],
        never=["completes fewer"],
    ),
]

BY_CHANNEL = ("--by", "channel", "--label", "resolved", *FEW)
GROUPS = [
    Scenario(
        "a channel with more hard chats",
        "The app is no worse: it is ahead in both domains, and has the hard chats.",
        {
            "a.jsonl": cells(
                ({"channel": "web", "domain": "booking"}, 100, 90),
                ({"channel": "web", "domain": "billing"}, 20, 6),
                ({"channel": "app", "domain": "booking"}, 20, 20),
                ({"channel": "app", "domain": "billing"}, 100, 40),
            )
        },
        options=("--by", "domain", *BY_CHANNEL),
        says=[
            r"No clear difference yet within domain: app \(n 120\), web \(n 120\)\.",
            # Within channels billing is at 30 and 40 %, booking at 90 and 100 %, each channel weighing the same.
            r"domain billing: chats that reach their goal 35\.0 % against 95\.0 % of the others, within channel",
        ],
        never=["channel (app|web): chats that reach"],
    ),
    Scenario(
        "three agents, one of which has the hard chats",
        "Beta is ahead in both domains.",
        {
            "a.jsonl": cells(
                *(
                    ({"agent": agent, "domain": domain}, size, good)
                    for agent, domain, size, good in (
                        ("alpha", "booking", 100, 90),
                        ("alpha", "billing", 20, 6),
                        ("beta", "booking", 20, 20),
                        ("beta", "billing", 100, 40),
                        ("gamma", "booking", 50, 45),
                        ("gamma", "billing", 60, 18),
                    )
                )
            )
        },
        options=("--by", "agent", "--label", "resolved", *FEW),
        never=["agent beta: chats that reach", "Like the others"],
    ),
    Scenario(
        "a channel that is worse whatever the domain",
        "The app completes half, the web 88 %, with the same mix.",
        {
            "a.jsonl": cells(
                *(
                    ({"channel": channel, "domain": domain}, 50, good)
                    for channel, domain, good in (
                        ("web", "easy", 48),
                        ("web", "hard", 40),
                        ("app", "easy", 30),
                        ("app", "hard", 20),
                    )
                )
            )
        },
        options=BY_CHANNEL,
        says=[r"channel app: chats that reach their goal 50\.0 % against 88\.0 % of the others"],
        never=["within domain"],
    ),
    Scenario(
        "forty groups of noise",
        "The teams differ by chance alone.",
        {"a.jsonl": [ended(f"c{n}", random.Random(n).random() < 0.7, team=f"team{n % 40:02}") for n in range(480)]},
        options=("--by", "team", "--label", "resolved", "--full", *FEW),
        never=["Like the others", r"team\d\d: chats that reach"],
    ),
]

LABELLED = ("--label", "resolved", *FEW)
BETTER_IN_EACH = (("v1", "faq", 80, 72), ("v1", "refund", 20, 6), ("v2", "faq", 20, 20), ("v2", "refund", 80, 32))
"""90 and 100 % of one kind, 30 and 40 % of the other; together 78 and 52 %."""


def mixed(field: str, values: dict[str, Any] | None = None) -> list[Record]:
    """Versions that have another mix of the kinds that a field holds."""
    return [
        ended(f"{v}-{kind}-{n}", n < good, agent=v, metadata={field: (values or {}).get(kind, kind)})
        for v, kind, size, good in BETTER_IN_EACH
        for n in range(size)
    ]


def in_folders() -> dict[str, list[Record]]:
    return {
        f"{kind}/a.jsonl": [
            ended(f"{v}-{kind}-{n}", n < good, agent=v)
            for v, other, size, good in BETTER_IN_EACH
            if other == kind
            for n in range(size)
        ]
        for kind in ("faq", "refund")
    }


FIELDS = [
    Scenario(
        "a field of the record explains it",
        "v2 has more refunds; it is better in both intents.",
        {"a.jsonl": mixed("intent")},
        options=LABELLED,
        says=["Within intent, no clear difference yet", "faq 100.0 %, was 90.0 %", "refund 40.0 %, was 30.0 %"],
        never=["completes fewer"],
    ),
    Scenario(
        "a word of a list explains it",
        "v2 has fewer chats with the tag faq.",
        {"a.jsonl": mixed("tags", {"faq": ["faq", "en"], "refund": ["en"]})},
        options=LABELLED,
        says=["Within tags faq, no clear difference yet", "v2 has more chats without tags faq"],
        never=["completes fewer"],
    ),
    Scenario(
        "the folder explains it",
        "v2 has more chats of the folder refund.",
        in_folders(),
        options=LABELLED,
        says=["Within folder, no clear difference yet"],
        never=["completes fewer"],
    ),
    Scenario(
        "fields that come of the outcome explain nothing",
        "v2 completes more chats; those that fail are longer, go to a person and are marked so.",
        {
            "a.jsonl": [
                ended(
                    f"{v}-{n}",
                    n < good,
                    release=v,
                    turn_count=3 if n < good else 9,
                    geloest="ja" if n < good else "nein",
                )
                for v, good in (("v1", 20), ("v2", 50))
                for n in range(60)
            ]
        },
        options=LABELLED,
        # 20 and 50 of 60
        says=[r"v2 completes more chats than v1: chats that reach their goal 83\.3 %, was 33\.3 %\."],
        never=["[Ww]ithin"],
    ),
    Scenario(
        "a difference that the mix hides",
        "v2 is better at easy and at hard chats, and has more hard ones.",
        {
            "a.jsonl": [
                ended(f"{v}-{kind}-{n}", n < good, prompt_version=v, level=kind)
                for v, kind, size, good in (("1", 1, 80, 72), ("1", 5, 40, 4), ("2", 1, 40, 40), ("2", 5, 80, 36))
                for n in range(size)
            ]
        },
        options=LABELLED,
        # 76 of 120 both
        says=[
            "Within each level prompt version 2 completes more chats than 1",
            r"hardly differ \(.* 63.3 %, was 63.3 %\)",
        ],
        never=["than 1: chats that reach their goal"],
    ),
    Scenario(
        "each version has an intent of its own",
        "v1 has questions, v2 refunds: what makes the difference cannot be known.",
        {
            "a.jsonl": [
                ended(f"{v}-{n}", n < good, agent=v, intent=kind)
                for v, kind, good in (("v1", "faq", 54), ("v2", "refund", 24))
                for n in range(60)
            ]
        },
        options=LABELLED,
        says=["but their intents differ too, so the cause cannot be separated"],
        never=["completes fewer"],
    ),
    Scenario(
        "few of one version have a label",
        "Of v2 only 12 of 30 are known; it may be at 40 %.",
        {
            "a.jsonl": [ended(f"a{n}", n < 15, agent="v1") for n in range(30)]
            + [ended(f"b{n}", True, agent="v2") for n in range(12)]
            + [chat("Book it, please.", "It is booked now.", id=f"c{n}", agent="v2") for n in range(18)]
        },
        options=LABELLED,
        says=["No clear difference yet", "known for 12 of 30 chats of v2 and 30 of 30 of v1"],
        never=["v2 completes more chats than v1:"],
    ),
    Scenario(
        "as many of both versions have a label",
        "Of the chats that have a label, v2 completes more.",
        {
            "a.jsonl": [ended(f"{v}{n}", n < good, agent=v) for v, good in (("v1", 10), ("v2", 36)) for n in range(40)]
            + [
                chat("Book it, please.", "It is booked.", id=f"c{v}{n}", agent=v)
                for v in ("v1", "v2")
                for n in range(60)
            ]
        },
        options=LABELLED,
        says=[
            "Of the chats whose outcome is known, v2 completes more chats than v1",
            "known for 40 of 100 chats of v2",
        ],
    ),
    Scenario(
        "sixty chats of six users",
        "Three users had v1 and three v2: that says little of others.",
        {
            "a.jsonl": [
                ended(f"u{u}-{n}", u < 3, agent="v1" if u < 3 else "v2", user_id=f"u{u}")
                for u in range(6)
                for n in range(10)
            ]
        },
        options=LABELLED,
        says=["v1 has 3 users and v2 has 3 users: too few to compare v2 with v1", "n 60 .*of 6 users"],
        never=["completes fewer"],
    ),
    Scenario(
        "times in seconds and in milliseconds",
        "Half of the chats were logged in milliseconds: the agent replies within seconds.",
        {
            "a.jsonl": [
                {
                    "id": f"c{n}",
                    "agent": f"v{n % 2 + 1}",
                    "messages": [
                        {"role": "user", "content": f"Where is order {n}?", "timestamp": 0},
                        {
                            "role": "assistant",
                            "content": f"Order {n} is here.",
                            "timestamp": 3 * (1000 if n % 2 else 1),
                        },
                    ],
                }
                for n in range(30)
            ]
        },
        options=FEW,
        says=["In 15 of 30 chats waits are about 1,000 times as long as in the others"],
        never=["replies (later|sooner)", "slowest 5 %"],
    ),
]


@each([*VERSIONS, *FIELDS, *GROUPS])
def test_versions(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)
