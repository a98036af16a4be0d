"""How far a small local model agrees with people, asked for scores and asked yes/no, beside the published judges."""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from convoscope.analysis.calibration import calibrate
from convoscope.analysis.labelled_calls import LabelledCall, read_labels
from convoscope.judging.calibrations import Agreement
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.judging.rubrics import Rubric

ROOT = Path(__file__).parents[1]
LABELS = ROOT.parent / "shared" / "data" / "judge-labels"
MODEL = "qwen2.5-coder-1.5b"
SEED = 27
PUBLISHED = {"faithfulness": (83.9, 80.7), "conversation_progression": (79.9, 78.2), "conciseness": (92.3, 83.8)}
"""Accuracy and macro F1 in percent, as others published them for judges on twice as many labels."""
CALLS = {"conciseness": 6, "conversation_progression": 4, "faithfulness": 4}
"""Labelled calls that are drawn: one takes a minute or two on one core."""


def run() -> None:
    """Draw labelled calls, ask about them in both forms, and compare."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.model_server import model_server  # type: ignore[import-not-found]
    from support.weights import fetch  # type: ignore[import-not-found]

    if not LABELS.is_dir():
        print(f"no labelled calls in {LABELS}: not measured")
        return
    with model_server(fetch(MODEL), context=12288) as server:
        print(f"{MODEL} (Q4_K_M) on one core, {datetime.now(UTC):%Y-%m-%d}, temperature 0, sample by seed {SEED}")
        for name, count in CALLS.items():
            rubric, calls = read_labels(LABELS / f"{name}.jsonl", None)
            drawn = random.Random(SEED).sample(calls, count)
            _compare(server.openai, rubric, drawn, len(calls))


def _compare(judge: str, rubric: Rubric, drawn: list[LabelledCall], of: int) -> None:
    labels = sum(len(call.labels) for call in drawn)
    print(f"{rubric.name}: {len(drawn)} of {of} calls, {labels} labels")
    for form in ("scores", "yesno"):
        settings = JudgeSettings(form=form, max_concurrency=1, seconds=900, max_answer_tokens=1000)
        began = time.perf_counter()
        result = calibrate(Instrument(judge, settings), rubric, drawn)
        _print(form, result, labels, time.perf_counter() - began)
    accuracy, f1 = PUBLISHED[rubric.name]
    print(f"  published, whole set: accuracy {accuracy} %, macro F1 {f1} %")


def _print(form: str, result: Agreement, labels: int, seconds: float) -> None:
    def percent(value: float | None) -> str:
        return "·" if value is None else f"{value:.1%}"

    def between(ends: tuple[float, float] | None, form: str) -> str:
        return "no interval" if ends is None else f"{ends[0]:{form}} to {ends[1]:{form}}"

    right = sum(row[index] for index, row in enumerate(result.confusion))
    lost = ", ".join(f"{count} {reason}" for reason, count in sorted(result.unanswered.items())) or "none"
    kappa = "·" if result.kappa is None else f"{result.kappa:.2f}"
    print(
        f"  {form:7} right {right} of {labels} labels ({result.labels} answered; without an answer: {lost}); "
        f"{seconds:,.0f} s"
    )
    print(
        f"          of those answered: accuracy {percent(result.accuracy)} "
        f"({between(result.accuracy_interval, '.1%')}), macro F1 {percent(result.macro_f1)}, "
        f"kappa {kappa} ({between(result.kappa_interval, '.2f')}); always the commonest: {percent(result.majority)}"
    )
    low, high = result.ratings[0], result.ratings[-1]
    print(f"          people in rows, judge in columns, {low:g} to {high:g}: {result.confusion}", flush=True)


if __name__ == "__main__":
    run()
