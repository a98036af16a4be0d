"""Whether questions about an item lose anything if they go in one request: joint beside single answers."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

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
GROUPS = (
    ("answer.factual_accuracy", "answer.claim_verification", "answer.hallucination_detection"),
    ("agent.goal_achievement", "agent.conversation_coherence"),
)
"""Metrics whose rubrics show the same."""


def run(groups: Sequence[Sequence[str]] = GROUPS, pairs: int = 1) -> None:
    """Ask a small model about the pairs of each group, one question at a time and all in one request."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.model_server import model_server  # type: ignore[import-not-found]
    from support.weights import fetch  # type: ignore[import-not-found]

    with model_server(fetch(MODEL), context=4096) as server:
        print(f"{MODEL}, temperature 0: single questions beside joint ones")
        for names in groups:
            items = [pair.conversation(which) for pair in pairs_of(names[0])[:pairs] for which in ("good", "bad")]
            single, alone = asyncio.run(_asked(server.openai, names, items, joint=False))
            joint, together = asyncio.run(_asked(server.openai, names, items, joint=True))
            both = [(one.value, other.value) for one, other in zip(single, joint, strict=True)]
            measured = [(one, other) for one, other in both if one is not None and other is not None]
            equal = sum(one == other for one, other in measured)
            values = [sum(score.value is not None for score in scores) for scores in (single, joint)]
            print(
                f"  {', '.join(names)}: {len(both)} scores; with a value single {values[0]}, joint {values[1]}, "
                f"both {len(measured)}; equal {equal}; {alone:.1f} s single, {together:.1f} s joint"
            )


async def _asked(
    judge: str, names: Sequence[str], items: Sequence[Conversation], *, joint: bool
) -> tuple[list[Observation], float]:
    settings = JudgeSettings(max_concurrency=1, seconds=900, max_answer_tokens=400, use_cache=False)
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
    return scores, time.perf_counter() - began
