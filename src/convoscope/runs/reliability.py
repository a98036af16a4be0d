"""Whether a figure rests on a judge, and whether that judge agrees with people well enough to decide anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from convoscope.conversation.lazy import cached_on_argument
from convoscope.judging.calibrations import NOT_CALIBRATED, Agreement
from convoscope.judging.rubrics import Rubric, rubrics
from convoscope.metrics.declaration import Target
from convoscope.metrics.registry import parent_metric
from convoscope.runs.summary import Summary
from convoscope.scores.judges import FUNCTION, is_panel, kind_of, model_of, speakers
from convoscope.statistics.summary import Figure

_MOST_NAMED = 3
LEAST_ANSWERED = 0.9
"""Of what a judge was asked about, the share that must have a verdict: with less, its figure claims nothing."""


class JudgeReliability(NamedTuple):
    """Who judged a figure, and what is known of how far they agree with people."""

    judge: str
    text: str
    """`κ 0.61 (0.48 to 0.72), 69 labels`, `not calibrated`; nothing for people."""
    is_reliable: bool
    agreement: Agreement | None = None

    @property
    def is_human(self) -> bool:
        return kind_of(self.judge) == "human"

    @property
    def doubt(self) -> str:
        """Why a gate cannot be decided by it; empty where it can."""
        return "" if self.is_reliable else f"the judge {self.judge} is {self.text}"


def rubrics_of(summary: Summary, folders: tuple[str, ...] = ()) -> dict[str, Rubric]:
    """All rubrics by name: ours, those of the user's folders, and those of scorers of the user's own in a run."""
    return {**rubrics(folders), **{one.metric: one.own_rubric for one in summary.declared if one.own_rubric}}


def judged_metrics(summary: Summary) -> dict[str, Rubric]:
    """The rubrics by the metrics that they serve; of two for one metric, the one with its name."""
    known = list(rubrics_of(summary).values())
    return {
        **{rubric.measures: rubric for rubric in known},
        **{rubric.measures: rubric for rubric in known if rubric.is_main},
    }


def has_judges(summary: Summary) -> bool:
    """Whether a metric with a rubric has a score of any judge."""
    judged = {one.metric for one in summary.figures if not one.judge.startswith("(")}
    return bool(judged) and not judged.isdisjoint(judged_metrics(summary))


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


def is_doubtful(summary: Summary, key: str, judge: str) -> bool:
    """Whether what a figure says rests on a judge that is not calibrated: it is neither good nor bad."""
    figure = _headlines(summary).get((key, judge))
    known = None if figure is None else reliability(summary, figure)
    return known is not None and not known.is_reliable


@cached_on_argument
def _by_key(summary: Summary) -> dict[str, list[Figure]]:
    """The figures of each metric, by all its judges, that are no reduction of another kind."""
    by_key: dict[str, list[Figure]] = {}
    for figure in summary.figures:
        if not figure.reduction:
            by_key.setdefault(figure.key, []).append(figure)
    return by_key


@cached_on_argument
def _headlines(summary: Summary) -> dict[tuple[str, str], Figure]:
    """The first figure of each metric by each judge that is no reduction of another kind."""
    return {(one.key, one.judge): one for one in reversed(summary.figures) if not one.reduction}


def _of_judge(summary: Summary, figure: Figure) -> JudgeReliability:
    if kind_of(figure.judge) == "human":
        return JudgeReliability(figure.judge, "", True)
    known = (one for one in summary.calibrations if (one.metric, one.judge) == (figure.key, figure.judge))
    agreement = next(known, None)
    if agreement is None:
        return JudgeReliability(figure.judge, NOT_CALIBRATED + _other_calibration(summary, figure), False)
    return JudgeReliability(figure.judge, agreement.text, agreement.is_calibrated, agreement)


def _other_calibration(summary: Summary, figure: Figure) -> str:
    """`, though openai/large is`: what a calibration of the same metric is of."""
    if kind_of(figure.judge) != "model" or is_panel(figure.judge):
        return ""
    others = [one for one in summary.calibrations if one.metric == figure.key and one.is_calibrated]
    same = [one for one in others if model_of(one.judge) == model_of(figure.judge)]
    if same:
        versions = ", ".join(sorted({str(one.version) for one in same}))
        return f", though it is with version {versions} of the rubric or other settings"
    named = [one.judge for one in others if kind_of(one.judge) == "model" and not is_panel(one.judge)]
    # A function of one program is no judge that another could ask.
    models = sorted({model_of(judge) for judge in named if not judge.startswith(FUNCTION)})[:_MOST_NAMED]
    return f", though {' and '.join(models)} {'is' if len(models) == 1 else 'are'}" if models else ""


def _speaking(summary: Summary, key: str) -> list[Figure]:
    """The headline of a metric: the panel's where there is one, else of each judge."""
    figures = _by_key(summary).get(key, [])
    who = speakers(one.judge for one in figures)
    return [one for one in figures if one.judge in who]


def judged_figures(summary: Summary) -> list[tuple[Figure, JudgeReliability]]:
    """The headlines that models or other programs judged, each with what is known of them; no parts, no twice.

    A panel speaks for its judges, unless it is not calibrated and one of them is.
    """
    names = {declared.name for declared in summary.declared}
    by_key: dict[str, list[tuple[Figure, JudgeReliability]]] = {}
    for figure in summary.figures:
        known = reliability(summary, figure) if not figure.judge.startswith("(") else None
        if known is None or known.is_human or figure.value is None or figure.reduction:
            continue
        if not parent_metric(figure.metric, names):
            by_key.setdefault(figure.key, []).append((figure, known))
    shown = []
    for pairs in by_key.values():
        who = speaking_judges(pairs)
        shown += [pair for pair in pairs if pair[0].judge in who]
    return shown


def speaking_judges(pairs: Iterable[tuple[Figure, JudgeReliability | None]]) -> set[str]:
    """Of the judges of one metric those that speak for it: a panel, but the calibrated where the panel is not."""
    known = {figure.judge: one is None or one.is_reliable for figure, one in pairs}
    who = speakers(known)
    panels = {judge for judge in who if is_panel(judge)}
    members = {judge for judge, is_reliable in known.items() if is_reliable and judge not in who}
    if members and not any(known[judge] for judge in panels):
        return who - panels | members
    return who


def claims_nothing(summary: Summary, figure: Figure, *, trust_judges: bool = False) -> bool:
    """Whether a figure rests on a judge that is not calibrated, or that left out many verdicts."""
    known = reliability(summary, figure)
    if known is None or known.is_human:
        return False
    return is_thin(figure) or not (trust_judges or known.is_reliable)


def calibration_mark(summary: Summary, figure: Figure) -> str:
    """`calibrated`, `not calibrated`; nothing where no judge is behind a figure, or people are."""
    known = reliability(summary, figure)
    if known is None or known.is_human:
        return ""
    return "calibrated" if known.is_reliable else NOT_CALIBRATED


def is_thin(figure: Figure) -> bool:
    """Whether many verdicts are missing."""
    return min(figure.coverage or 0.0, figure.subject_coverage) < LEAST_ANSWERED


def missing_verdicts(summary: Summary, figure: Figure, target: Target) -> str:
    """Why verdicts that are missing leave a target open, where the figure itself has no bounds; empty where not."""
    coverage = min(figure.coverage or 0.0, figure.subject_coverage)
    known = reliability(summary, figure) if figure.value is not None and coverage < 1 else None
    if figure.value is None or figure.bounds is not None or known is None or known.is_human:
        return ""
    scale = None if figure.reduction else _scale(summary, figure)
    if scale is not None:
        low, high = sorted(figure.value * coverage + end * (1 - coverage) for end in scale)
        if target.is_met_by(low) == target.is_met_by(high):
            return ""
    elif not is_thin(figure):
        return ""
    return f"{100 * (1 - coverage):.0f} % of the verdicts are missing"


def _scale(summary: Summary, figure: Figure) -> tuple[float, float] | None:
    """The worst and the best value of one verdict, where they are known."""
    declared = summary.by_key.get(figure.key)
    ten = declared.ten_points if declared is not None else None
    if ten is not None and ten.of == "value" and ten.falls is None:
        return ten.zero, ten.ten
    raw = next((one for one in rubrics_of(summary).values() if one.measures == figure.key and one.is_raw), None)
    return None if raw is None else (float(raw.low), float(raw.high))
