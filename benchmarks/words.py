"""What it costs to find the language of a chat and to read its words, in units of `json.loads` of its record.

`python -m benchmarks.words`. CPU time, the least of several rounds; each round times the unit and the work one after
the other, as a busy machine changes its speed. Reading and turns, which all metrics share, are not part of it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

from benchmarks.chats import chats
from convoscope.conversation import ASSISTANT, USER, Conversation, Participant, Text, Utterance
from convoscope.metrics.agent import declined
from convoscope.metrics.user import pushback
from convoscope.text import language
from convoscope.views.languages import languages_of

LIMIT = 2
"""Units a chat that finding the languages of both speakers may cost."""
_PEOPLE = (Participant(USER, USER), Participant(ASSISTANT, ASSISTANT))
_WORDS = (
    "the a order parcel moved house address change please confirm thanks delivery monday friday street lane north"
    " refund card box tea pot broken yes no maybe number code"
)


def run(count: int = 100, rounds: int = 15) -> None:
    kinds = {"sentences": list(chats(count)), "words drawn at random": _random_chats(count)}
    work: dict[str, Callable[[Sequence[Conversation]], object]] = {
        "language of both speakers": _languages,
        "user.pushback": lambda many: [pushback(one) for one in many],
        "agent.declined": lambda many: [declined(one) for one in many],
    }
    for kind, records in kinds.items():
        for name, do in work.items():
            unit, cost = _times(records, do, rounds)
            aim = f", limit {LIMIT}" if do is _languages else ""
            print(f"{name}, chats of {kind}: {cost / unit:.1f} times json.loads ({1e6 * unit:.0f} µs){aim}")
    print()


def _languages(many: Sequence[Conversation]) -> None:
    for conversation in many:
        spoken = languages_of(conversation)
        spoken.of_role(USER)
        spoken.of_role(ASSISTANT)


def _times(records: Sequence[Any], do: Callable[[Sequence[Conversation]], object], rounds: int) -> tuple[float, float]:
    """The least seconds of one record: of json.loads, and of the work."""
    lines = [json.dumps(record) for record in records]
    units, costs = [], []
    for _ in range(rounds):
        began = process_time()
        for line in lines:
            json.loads(line)
        units.append(process_time() - began)
        many = [_conversation(record) for record in records]
        language.forget_languages()
        began = process_time()
        do(many)
        costs.append(process_time() - began)
    return min(units) / len(records), min(costs) / len(records)


def _conversation(record: Any) -> Conversation:
    said = [one for one in record["messages"] if one["role"] in (USER, ASSISTANT) and one.get("content")]
    timeline = tuple(
        Utterance(seq=place, speaker=one["role"], intended=Text(one["content"])) for place, one in enumerate(said)
    )
    conversation = Conversation(id="chat", participants=_PEOPLE, timeline=timeline)
    assert conversation.turns
    return conversation


def _random_chats(count: int, seed: int = 7) -> list[dict[str, object]]:
    """Twelve turns of words in no order: few are common, so the model is asked. It is the worst case."""
    draw = random.Random(seed)

    def say(words: int) -> str:
        return " ".join(draw.choices(_WORDS.split(), k=words)).capitalize() + "."

    def messages() -> list[dict[str, object]]:
        both = (("user", 11), ("assistant", 18)) * 6
        return [
            {"role": role, "content": say(words), "timestamp": 1.7e9 + 5 * place}
            for place, (role, words) in enumerate(both)
        ]

    return [{"id": f"chat{number}", "model": "m1", "messages": messages()} for number in range(count)]


if __name__ == "__main__":
    run()
