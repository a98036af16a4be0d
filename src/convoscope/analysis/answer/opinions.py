"""What a judge says of a lost conversation, in its own words and under its name: an opinion, never the cause itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from convoscope.analysis.answer.model import JudgeOpinion, Noun, metric_label
from convoscope.analysis.words import cut_text
from convoscope.judging.rubrics import Rubric
from convoscope.metrics.declaration import CONVERSATION
from convoscope.runs.database import SCORES, connect
from convoscope.runs.reliability import JudgeReliability, has_judges, judged_metrics, reliability
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.scores.judges import is_panel
from convoscope.scores.observation import MEASURED

_MOST_REASON = 120
_MOST_QUOTE = 90
_MOST_NAME = 60


class _Rated(NamedTuple):
    """A rating below its mark, and why."""

    where: str
    """`turn 3`; empty for the whole conversation."""
    rubric: Rubric
    known: JudgeReliability
    rating: float
    reason: str
    quote: str

    @property
    def order(self) -> tuple[bool, bool, float, str, str]:
        """Calibrated judges first, then the whole conversation, then the lowest on its scale."""
        share = (self.rating - self.rubric.low) / (self.rubric.high - self.rubric.low)
        return not self.known.is_reliable, bool(self.where), share, self.rubric.name, self.known.judge


def worst_opinions(run: Run, numbers: Iterable[int], noun: Noun) -> dict[int, JudgeOpinion]:
    """The gravest reason that a judge gives for a rating below its mark, of some conversations, by their number."""
    wanted = np.asarray(sorted(numbers), dtype=np.int64)
    if not len(wanted) or not has_judges(run.summary):
        return {}
    judges = _judges(run.summary)
    gravest: dict[int, _Rated] = {}
    with connect(run.folder) as connection:
        connection.register("wanted", {"number": wanted})
        rows = connection.execute(
            "SELECT number, subject_kind, subject, metric, judge, value, details "
            f"FROM {run.table(SCORES)} SEMI JOIN wanted USING (number) "
            f"WHERE status = '{MEASURED}' AND variant = '' AND details IS NOT NULL ORDER BY ALL"
        )
        while batch := rows.fetchmany(1000):
            for number, kind, subject, metric, judge, value, details in batch:
                about = judges.get((metric, judge))
                where = "" if kind == CONVERSATION else f"{kind} {subject}"
                rated = None if about is None else _rated(where, *about, value, details)
                if rated is not None and (number not in gravest or rated.order < gravest[number].order):
                    gravest[number] = rated
    return {number: _opinion(rated, run, noun) for number, rated in gravest.items()}


def _judges(summary: Summary) -> dict[tuple[str, str], tuple[Rubric, JudgeReliability]]:
    """By metric and judge: the rubric, and what is known of the judge. A panel has no words of its own."""
    by_metric = judged_metrics(summary)
    judges = {}
    for figure in summary.figures:
        rubric = by_metric.get(figure.key)
        known = reliability(summary, figure) if rubric is not None else None
        if rubric is not None and known is not None and not known.is_human and not is_panel(figure.judge):
            judges[figure.key, figure.judge] = rubric, known
    return judges


def _rated(where: str, rubric: Rubric, known: JudgeReliability, value: float | None, details: str) -> _Rated | None:
    """None for a rating that passes, and for one without a reason."""
    if value is None:
        return None
    given: Any = msgspec.json.decode(details)
    texts = {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}
    reason, quote = _words(texts, "reasoning"), _words(texts, "quote")
    scaled = _on_its_scale(rubric, given)
    rating = scaled.rating(value)
    if not (reason or quote) or scaled.passes(rating):
        return None
    return _Rated(where, scaled, known, rating, reason, quote)


def _on_its_scale(rubric: Rubric, given: Mapping[str, Any]) -> Rubric:
    """A rubric of the user's own may have another scale and mark, which the details have."""
    scale, passes_at = given.get("scale"), given.get("passes_at")
    if not (isinstance(scale, list) and len(scale) == 2 and isinstance(passes_at, int | float)):
        return rubric
    changed = rubric._replace(low=scale[0], high=scale[1])
    return changed._replace(passes_at=changed.rating(passes_at))


def _words(texts: Mapping[str, str], name: str) -> str:
    """On one line, and without the quotation marks that end what is quoted."""
    return " ".join(texts.get(name, "").replace("“", '"').replace("”", '"').split())


def _opinion(rated: _Rated, run: Run, noun: Noun) -> JudgeOpinion:
    declared = run.summary.by_key[rated.rubric.measures]
    return JudgeOpinion(
        judge=cut_text(rated.known.judge.partition("@")[0], _MOST_NAME),
        calibration=rated.known.text,
        of=metric_label(declared, noun),
        rating=f"{rated.rating:.3g} of {rated.rubric.high:g}",
        where=cut_text(rated.where, _MOST_NAME),
        reason=cut_text(rated.reason, _MOST_REASON),
        quote=cut_text(rated.quote, _MOST_QUOTE),
    )
