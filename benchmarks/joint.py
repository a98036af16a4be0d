"""Whether questions about an item lose anything if they go in one request: joint beside single answers."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from convoscope.analysis.judge_check import pairs_of
from convoscope.conversation import Conversation
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import known
from convoscope.resources.judge import AskedOnce
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import answered

ROOT = Path(__file__).parents[1]
MODEL = "smollm2-135m"
GROUPS = {
    ("agent.goal_achievement", "agent.conversation_coherence"): 8,
    ("answer.factual_accuracy", "answer.claim_verification", "answer.hallucination_detection"): 3,
    (
        "telephony.appropriate_call_termination",
        "conversation.knowledge_retention",
        "telephony.conversation_context_coherence",
    ): 2,
}
"""Metrics whose rubrics show the same, and how many pairs of `judge check` they are asked about."""
TOKENS = 150
"""Where an answer to one question is cut; to several, so many times that."""
LEAST = 30
"""Scores with a value in both forms, below which nothing is said of what joint questions lose."""


class Asked(NamedTuple):
    """Scores of all items, and how long they took."""

    scores: list[Observation]
    seconds: float

    @property
    def unusable(self) -> str:
        reasons = Counter(score.reason for score in self.scores if score.value is None)
        return f"{sum(reasons.values())} ({', '.join(f'{reason} {count}' for reason, count in reasons.most_common())})"


def run(groups: Mapping[tuple[str, ...], int] = GROUPS) -> None:
    """Ask a small model about the pairs of each group, one question at a time and all in one request."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.model_server import model_server  # type: ignore[import-not-found]
    from support.weights import fetch  # type: ignore[import-not-found]

    with model_server(fetch(MODEL), context=4096) as server:
        print(f"{MODEL}, temperature 0: single questions beside joint ones")
        for names, most in groups.items():
            pairs = [pair for name in names for pair in pairs_of(name)][:most]
            items = [pair.conversation(which) for pair in pairs for which in ("good", "bad")]
            alone = asyncio.run(_asked(server.openai, names, items, joint=False))
            together = asyncio.run(_asked(server.openai, names, items, joint=True))
            print("  " + _compared(names, alone, together), flush=True)


def _compared(names: Sequence[str], alone: Asked, together: Asked) -> str:
    pairs = list(zip(alone.scores, together.scores, strict=True))
    both = [
        (one.value, other.value, (one.details or {})["passes_at"])
        for one, other in pairs
        if one.value is not None and other.value is not None
    ]
    equal = sum(one == other for one, other, _ in both)
    same_side = sum((one >= mark) == (other >= mark) for one, other, mark in both)
    lost = sum(one.value is not None and other.value is None for one, other in pairs)
    return (
        f"{', '.join(names)}: {len(pairs)} scores; without a value single {alone.unusable}, "
        f"joint {together.unusable}; agreement: n {len(both)} with a value in both, of these {equal} equal, "
        f"{same_side} on the same side of the mark; {alone.seconds:.0f} s single, {together.seconds:.0f} s joint\n"
        f"    joint questions: {decision(len(both), equal, lost)}"
    )


def decision(both: int, equal: int, lost: int) -> str:
    """Whether questions may go together. Only what is known to lose nothing may.

    `lost` are the scores that have a value in a question of their own, and none in a joint one.
    """
    losses = [f"{both - equal} of {both} scores differ"] if equal < both else []
    losses += [f"values lost: {lost}"] if lost else []
    if losses:
        return f"off: {', '.join(losses)}"
    return "on, they lose nothing" if both >= LEAST else f"off, {both} scores are too few to say, it takes {LEAST}"


async def _asked(judge: str, names: Sequence[str], items: Sequence[Conversation], *, joint: bool) -> Asked:
    tokens = TOKENS * (len(names) if joint else 1)
    settings = JudgeSettings(max_concurrency=1, seconds=900, max_answer_tokens=tokens, use_cache=False)
    instrument = Instrument(judge, settings)
    asked = AskedOnce(instrument, joint_metrics=names if joint else ())
    began = time.perf_counter()
    scores: list[Observation] = []
    for item in items:
        for name in names:
            declared = known(name)
            assert isinstance(declared, Metric)
            scores += await answered(declared, item, {"judge": asked})
    await instrument.aclose()
    return Asked(scores, time.perf_counter() - began)


if __name__ == "__main__":
    run(dict.fromkeys(list(GROUPS)[:1], 1))
