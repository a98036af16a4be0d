"""How right the metrics that read words are: precision, recall and the agreement of readers, on labelled turns.

`python -m benchmarks.objections` prints them. All readers are language models. The labels name file, path and hash; the
texts are looked up in the shared data, and a text that is not there is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.labelled_turns import LabelledReply, LabelledTurn, labelled_replies, labelled_turns
from benchmarks.tool_results import SHARED, Share
from convoscope.metrics.agent import declined
from convoscope.metrics.user import pushback
from convoscope.text.lexicon import folded_phrases, lexicon

LABELS = Path(__file__).parents[1] / "tests/conformance/labels"
USERS = LABELS / "user-turns.jsonl"
SECOND_READER = LABELS / "user-turns-second.jsonl"
AGENTS = LABELS / "agent-turns.jsonl"
DRAWN = ("seeded", "both", "drawn")
"""Samples that were drawn at random. The others are hits of a rule: they say nothing of what it misses."""
LISTS = (("thanks", "thanks"), ("goodbye", "goodbye"), ("agent_declines", "refusal"))
"""A label of a user turn, and the list that should find it, in the turn or in what the agent said before."""


class Look(NamedTuple):
    """What a reader says of a turn, what the rule says, and whether the turn was drawn at random."""

    is_right: bool
    is_hit: bool
    is_drawn: bool


class Quality(NamedTuple):
    """Of all hits that are right, and of all drawn turns that are found. None where there is nothing to count."""

    precision: Share | None
    recall: Share | None

    def __str__(self) -> str:
        return f"precision {self.precision or 'unmeasured'}; recall {self.recall or 'unmeasured'}"


def quality(looks: Sequence[Look]) -> Quality:
    hits = [look.is_right for look in looks if look.is_hit]
    drawn = [look.is_hit for look in looks if look.is_right and look.is_drawn]
    return Quality(_share(hits), _share(drawn))


def pushback_looks(turns: Iterable[LabelledTurn]) -> list[Look]:
    return [Look(_objects(one.label), _is_pushback(one), one.label["sample"] in DRAWN) for one in turns]


def list_looks(turns: Iterable[LabelledTurn], label: str, purpose: str) -> list[Look]:
    """Of drawn turns alone: hits were drawn for another rule."""
    read = [one for one in turns if one.label[label] is not None and one.label["sample"] in DRAWN]
    return [Look(one.label[label], _finds(purpose, one.reply if "agent" in label else one.text), True) for one in read]


def declined_looks(replies: Iterable[LabelledReply]) -> list[Look]:
    return [
        Look(
            one.label["declines"] or one.label["hands_over"],
            any(score.value == 1 for score in declined(one.conversation)),
            one.label["sample"] in DRAWN,
        )
        for one in replies
    ]


def hand_over_looks(replies: Iterable[LabelledReply]) -> list[Look]:
    return [
        Look(one.label["hands_over"], _finds("hand_over", one.text), one.label["sample"] in DRAWN) for one in replies
    ]


def kappa(first: Sequence[object], second: Sequence[object]) -> float | None:
    """Cohen's κ of two readers; None where chance alone makes them agree."""
    n = len(first)
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / n if n else 0.0
    chance = sum(first.count(value) * second.count(value) for value in {*first, *second}) / n**2 if n else 1.0
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def both_readers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The labels of both readers, of the turns that both read."""
    first = {_key(label): label for label in _lines(USERS)}
    return [(first[_key(label)], label) for label in _lines(SECOND_READER) if _key(label) in first]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _key(label: dict[str, Any]) -> tuple[str, str, str]:
    return label["file"], label["path"], label["sha256"]


def _objects(label: Any) -> bool:
    return bool(label["objects"] or label["asks_again"])


def _is_pushback(turn: LabelledTurn) -> bool:
    """What the metric says of the turn that holds the utterance."""
    first = next(one.user[0].seq for one in turn.conversation.turns if turn.seq in {said.seq for said in one.user})
    return any(one.value == 1 for one in pushback(turn.conversation) if one.subject.position == first)


def _finds(purpose: str, text: str) -> bool:
    known = lexicon("en")
    return known is not None and bool(known.find(purpose, folded_phrases(text)))


def _share(hits: Sequence[bool]) -> Share | None:
    return Share(sum(hits), len(hits)) if hits else None


def run(data: Path = SHARED / "data") -> None:
    turns, replies = list(labelled_turns(USERS, data)), list(labelled_replies(AGENTS, data))
    print(
        f"{len(turns)} of {len(_lines(USERS))} user turns and {len(replies)} of {len(_lines(AGENTS))} of agents found"
    )
    looks = pushback_looks(turns)
    print("user.pushback, all hits:      ", quality(looks))
    print("user.pushback, drawn turns:   ", quality([look for look in looks if look.is_drawn]))
    for label, purpose in LISTS:
        print(f"list {purpose:<10}, drawn turns: ", quality(list_looks(turns, label, purpose)))
    looks = declined_looks(replies)
    print("agent.declined, all hits:     ", quality(looks))
    print("agent.declined, drawn turns:  ", quality([look for look in looks if look.is_drawn]))
    print("list hand_over, all hits:     ", quality(hand_over_looks(replies)))
    pairs = both_readers()
    readings = {"objects or asks again": _objects} | {
        name: lambda label, name=name: label[name]
        for name in ("objects", "asks_again", "thanks", "goodbye", "agent_declines")
    }
    for name, read in readings.items():
        first, second = [read(one) for one, _ in pairs], [read(other) for _, other in pairs]
        value = kappa(first, second)
        agreed = sum(a == b for a, b in zip(first, second, strict=True))
        print(f"two readers, {name}: agree on {agreed} of {len(pairs)}, κ {'-' if value is None else f'{value:.2f}'}")


if __name__ == "__main__":
    run()
