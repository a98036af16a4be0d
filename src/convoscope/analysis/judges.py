"""Whether a figure rests on a judge, and whether that judge agrees with people well enough to decide a gate."""

from __future__ import annotations

from typing import NamedTuple

from convoscope.judging.calibrations import NOT_CALIBRATED, Agreement
from convoscope.judging.rubrics import rubrics
from convoscope.runs.summary import Summary
from convoscope.scores.judges import kind_of, speakers
from convoscope.statistics.summary import Figure


class JudgeReliability(NamedTuple):
    """Who judged a figure, and what is known of how far they agree with people."""

    judge: str
    text: str
    """`κ 0.61 (0.48 to 0.72), 69 labels`, `not calibrated`; nothing for people."""
    is_reliable: bool
    agreement: Agreement | None = None

    @property
    def doubt(self) -> str:
        """Why a gate cannot be decided by it; empty where it can."""
        return "" if self.is_reliable else f"the judge {self.judge} is {self.text}"


def has_judges(summary: Summary) -> bool:
    """Whether a metric with a rubric has a score of any judge."""
    judged = {one.metric for one in summary.figures if not one.judge.startswith("(")}
    return bool(judged) and not judged.isdisjoint(rubric.measures for rubric in rubrics().values())


def reliability(summary: Summary, figure: Figure) -> JudgeReliability | None:
    """What is known of the judge behind a figure; None where no judge is behind it.

    What people say needs no calibration. What a model says does, also where it came with the logs (`external:`). A
    panel is a judge of its own. A figure that is computed from judged ones is as reliable as the least of them.
    """
    if not figure.judge.startswith("("):
        return _of_judge(summary, figure)
    declared = summary.by_key.get(figure.key)
    behind = [
        reliability(summary, source)
        for name in (declared.inputs if declared is not None else ())
        for source in _speaking(summary, name)
    ]
    judged = [one for one in behind if one is not None]
    return min(judged, key=lambda one: one.is_reliable, default=None)


def _of_judge(summary: Summary, figure: Figure) -> JudgeReliability:
    if kind_of(figure.judge) == "human":
        return JudgeReliability(figure.judge, "", True)
    known = (one for one in summary.calibrations if (one.metric, one.judge) == (figure.key, figure.judge))
    agreement = next(known, None)
    if agreement is None:
        return JudgeReliability(figure.judge, NOT_CALIBRATED, False)
    return JudgeReliability(figure.judge, agreement.text, agreement.is_calibrated, agreement)


def _speaking(summary: Summary, key: str) -> list[Figure]:
    """The headline of a metric: the panel's where there is one, else of each judge."""
    figures = [one for one in summary.figures if one.key == key and not one.reduction]
    who = speakers(one.judge for one in figures)
    return [one for one in figures if one.judge in who]
