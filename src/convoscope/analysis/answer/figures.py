"""The few figures that matter most: what is bad first, then by importance and coverage, never by the alphabet.

A bad figure is never hidden: not behind a good one, not by a small number, not by a twin. It has a line, or is named.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from convoscope.analysis.answer.model import KeyFigure, Noun, Verdict, metric_label
from convoscope.analysis.targets import Check, target_text
from convoscope.analysis.words import counted, name_text, unrounded_text, value_text
from convoscope.judging.calibrations import NOT_CALIBRATED
from convoscope.metrics.declaration import HIGHER, LOWER, NEITHER, RATIO, SECONDS, SHARE, TenPoints
from convoscope.metrics.registry import PUBLISHED, parent_metric, whole_metrics
from convoscope.runs.reliability import JudgeReliability, claims_nothing, judged_figures, reliability, speaking_judges
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.scores.judges import PANEL, is_annotator, model_of
from convoscope.statistics.summary import Figure

MOST = 8
MOST_OF_A_FAMILY = 2
"""Good figures of one family, or of one component of the agent: they move together, two of them are enough."""
LEAST_N = 20
"""Figures of fewer values come after the others, and fill the lines that are left."""
LEAST_IMPORTANCE = 4
"""A bad figure of less importance gives way to good ones that matter more; without a line it is named below them."""
TARGET_COUNTS = 3
SLOWEST = "p95"
HALF = 0.5
NOTABLE = 0.2
"""From so much on, a share that is neither good nor bad is worth a line."""
LEAST_NOTABLE = 3
FEW = 0.05
FEW_CLUSTERS = 30
MANY_IN_A_CLUSTER = 5
NAMED = 4
"""So many bad figures without a line are named; the others are counted."""
INFERRED_PART = "inferred_rate"
"""The part of a metric that says how much of it is inferred."""
TWINS: tuple[frozenset[str], ...] = (
    frozenset(("agent.unanswered_turns", "agent.ignored_questions", "interaction.response_rate")),
    frozenset(
        (
            "timing.response_latency",
            "voice.response_speed",
            "latency.e2e_latency",
            "interaction.response_latency_mean",
            "flow.latency_p95",
            "flow.latency_mean",
            "state.latency_p95_ms",
        )
    ),
    frozenset(("outcome.success", "outcome.task_completion", "flow.completion", "dialogue.goal_completion")),
    frozenset(("answer.accuracy", "answer.accuracy@choice", "answer.exact_match", "answer.multi_pattern_accuracy")),
)
"""Figures that move together by definition: the same turns, waits, ends or answers by another rule. Of several that are
good one is enough. Equal values of different things are no twins."""


class ChosenFigures(NamedTuple):
    """The figures with a line each, and the bad ones without."""

    figures: tuple[KeyFigure, ...]
    more_bad: tuple[KeyFigure, ...]


class _Candidate(NamedTuple):
    figure: Figure
    declared: DeclaredMetric
    weight: float
    """Importance by coverage."""
    bad: bool
    notable: bool
    named: bool
    """A target names it."""
    claims_nothing: bool = False
    """A judge that is not calibrated says so, or one that left out many verdicts."""

    @property
    def spotless(self) -> bool:
        """As good as it can be: nothing to see here."""
        value, better = self.figure.value or 0.0, self.figure.better
        return (value <= 0 and better == LOWER) or (self.figure.unit in (SHARE, RATIO) and value >= 1 and not self.bad)

    @property
    def is_minor(self) -> bool:
        return self.declared.importance < LEAST_IMPORTANCE

    @property
    def importance(self) -> int:
        return self.declared.importance + (TARGET_COUNTS if self.named else 0)


def chosen_figures(
    summary: Summary, checks: Sequence[Check], noun: Noun, *, trust_judges: bool = False
) -> ChosenFigures:
    """At most eight, the bad ones first, then by importance, which a target raises.

    What a judge says that is not calibrated is neither good nor bad, unless judges are trusted. It comes last.
    """
    targets = {check.name: check for check in checks}
    doubtful = {name_text(one) for one in summary.figures if claims_nothing(summary, one, trust_judges=trust_judges)}
    candidates = _without_twins(list(_candidates(summary, targets, doubtful)))
    must = [one for one in candidates if one.named or one.notable or (one.bad and not one.is_minor)]
    must.sort(key=lambda one: (not one.bad, -one.importance, -one.weight))
    kept = must[:MOST]
    kept += _filled(kept, [one for one in candidates if one not in must], MOST - len(kept))
    hidden = [one for one in candidates if one.bad and one not in kept]

    def in_order(chosen: Sequence[_Candidate]) -> tuple[KeyFigure, ...]:
        ordered = sorted(chosen, key=lambda one: (not one.bad, one.claims_nothing, -one.importance, -one.weight))
        figures = ((one.figure, _key_figure(one, targets, noun, summary.clusters)) for one in ordered)
        return tuple(_with_judge(_with_inferred(made, summary), figure, summary) for figure, made in figures)

    return ChosenFigures(in_order(kept), in_order(hidden))


def _filled(kept: Sequence[_Candidate], others: Sequence[_Candidate], room: int) -> Iterator[_Candidate]:
    """What is good, as far as there is room: one of twins, two of a family; and what is bad and matters little.

    What is bad gives way to what matters more, never to what is spotless or matters as little. Few values come after
    many. Nothing is left out because its values are few. Where few metrics have a value, each has a line.
    """
    ordered = sorted(
        others,
        key=lambda one: (
            one.claims_nothing,
            one.spotless or one.is_minor,
            not one.bad,
            one.figure.n < LEAST_N,
            -one.weight,
        ),
    )
    are_few = _are_few({one.declared.metric for one in (*kept, *others)})
    families: dict[str, int] = {}
    taken = [twin_of(candidate.figure.key) for candidate in kept]
    for candidate in ordered:
        family, twin = candidate.declared.component or candidate.declared.family, twin_of(candidate.figure.key)
        if room > 0 and (candidate.bad or are_few):
            room -= 1
            yield candidate
        elif room > 0 and candidate.weight > 0 and families.get(family, 0) < MOST_OF_A_FAMILY and twin not in taken:
            families[family] = families.get(family, 0) + 1
            taken.append(twin)
            room -= 1
            yield candidate


def _are_few(measured: Collection[str]) -> bool:
    """Whether there is a line for every metric, as for those that `--metrics` names; parts count with their wholes."""
    return len(whole_metrics(measured)) <= MOST


def _without_twins(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Without the bad ones of which a more important twin is as bad or worse: that one speaks for both."""
    kept = list(candidates)
    for candidate in candidates:
        twins = [other for other in kept if other is not candidate and _speaks_for(other, candidate)]
        if candidate.bad and not candidate.named and twins:
            first = max(twins, key=lambda other: other.importance)
            kept[kept.index(first)] = first._replace(bad=True)
            kept.remove(candidate)
    return kept


def _speaks_for(candidate: _Candidate, other: _Candidate) -> bool:
    a, b = candidate.figure, other.figure
    is_twin = twin_of(a.key) == twin_of(b.key) and (a.unit, a.better) == (b.unit, b.better)
    no_better = (a.value or 0.0) <= (b.value or 0.0) if a.better == HIGHER else (a.value or 0.0) >= (b.value or 0.0)
    return is_twin and no_better and candidate.importance > other.importance


def twin_of(key: str) -> object:
    """What a figure moves together with by definition; itself where it has no twin."""
    return next((twins for twins in TWINS if key in twins), key)


def _candidates(summary: Summary, targets: dict[str, Check], doubtful: Collection[str]) -> Iterator[_Candidate]:
    """Headlines with a direction, of waits the slowest; notable shares without one; bad parts of good wholes."""
    known = {declared.name for declared in summary.declared}
    slowest = {one.key: one for one in summary.figures if one.reduction == SLOWEST and one.value is not None}
    measured: list[tuple[Figure, DeclaredMetric]] = []
    for figure in summary.figures:
        declared = summary.by_key.get(figure.key)
        if declared is not None and figure.value is not None:
            measured.append((figure, declared))
    measured = list(_speaking(measured, summary, targets))
    values = {declared.metric for _, declared in measured}
    are_few = _are_few(values)
    bad = {
        figure.key
        for figure, declared in measured
        if not figure.reduction and name_text(figure) not in doubtful and _is_bad(figure, declared, targets)
    }
    for figure, declared in measured:
        name = name_text(figure)
        if name in targets:
            yield _candidate(figure, declared, targets, doubtful, named=True)
            continue
        is_usual = figure.variant not in PUBLISHED and declared.observes != "group"
        if figure.reduction or not (is_usual or are_few):
            continue
        wholes = _wholes(declared, known, values)
        if figure.better == NEITHER:
            is_notable = name not in doubtful and _is_notable(figure, declared)
            if not wholes and (is_notable or are_few):
                yield _candidate(figure, declared, targets, doubtful, notable=is_notable)
        elif not wholes:
            slow = slowest.get(figure.key) if figure.unit == SECONDS else None
            is_shown = slow is not None and figure.key not in bad and name_text(slow) not in targets
            shown = slow if slow is not None and is_shown else figure
            yield _candidate(shown, declared, targets, doubtful)
        elif figure.key in bad and bad.isdisjoint(wholes):
            yield _candidate(figure, declared, targets, doubtful)


def _speaking(
    measured: Sequence[tuple[Figure, DeclaredMetric]], summary: Summary, targets: Collection[str]
) -> Iterator[tuple[Figure, DeclaredMetric]]:
    """Without the judges that a panel speaks for, and without a panel that is not calibrated where a judge of it is."""
    judged: dict[str, list[tuple[Figure, JudgeReliability | None]]] = {}
    for figure, _ in measured:
        if not figure.judge.startswith("(") and not figure.reduction:
            judged.setdefault(figure.key, []).append((figure, reliability(summary, figure)))
    speaking = {key: speaking_judges(pairs) for key, pairs in judged.items() if len(pairs) > 1}
    for figure, declared in measured:
        if figure.key not in speaking or figure.judge in speaking[figure.key] or name_text(figure) in targets:
            yield figure, declared


def _wholes(declared: DeclaredMetric, known: Iterable[str], measured: set[str]) -> set[str]:
    """What speaks for a figure: the metric that it is a part or a variant of, and what it is computed from."""
    parent = parent_metric(declared.name, set(known))
    own = {declared.name} if declared.variant else set()
    return {name for name in (*declared.inputs, *own, parent) if name in measured}


def _candidate(
    figure: Figure,
    declared: DeclaredMetric,
    targets: dict[str, Check],
    doubtful: Collection[str],
    *,
    named: bool = False,
    notable: bool = False,
) -> _Candidate:
    importance = declared.importance + (TARGET_COUNTS if named else 0)
    weight = importance * math.sqrt(_coverage(figure))
    # A target decides by itself what is sure enough.
    is_doubtful = name_text(figure) in doubtful
    bad = _is_bad(figure, declared, targets) and (named or not is_doubtful)
    return _Candidate(figure, declared, weight, bad, notable, named, is_doubtful)


def _is_bad(figure: Figure, declared: DeclaredMetric, targets: dict[str, Check]) -> bool:
    """A target is missed; else a pass mark is; else, of shares and scores, half or more of it went wrong."""
    check = targets.get(name_text(figure))
    if check is not None:
        return check.label == "missed"
    if figure.value is None or figure.better == NEITHER:
        return False
    if declared.ten_points is not None and figure.ten is not None:
        return figure.ten < declared.ten_points.passes_at
    if figure.better == HIGHER:
        return figure.unit in (SHARE, RATIO) and figure.value <= HALF
    return figure.unit == SHARE and figure.value >= HALF


def _is_notable(figure: Figure, declared: DeclaredMetric) -> bool:
    """A share without a direction that holds often, by its whole interval in more than a few."""
    return (
        figure.unit == SHARE
        and declared.importance >= LEAST_NOTABLE
        and (figure.value or 0.0) >= NOTABLE
        and figure.interval is not None
        and figure.interval.lowest > FEW
    )


def more_bad_text(figures: Sequence[KeyFigure]) -> str:
    """`3 more bad figures: …`; nothing where each has its line."""
    if not figures:
        return ""
    shown = [f"{one.label} {value_text(one.value, one.unit)}" for one in figures[:NAMED]]
    rest = f" and {len(figures) - NAMED:,} others" if len(figures) > NAMED else ""
    return f"{counted(len(figures), 'more bad figure')}: {'; '.join(shown)}{rest}"


def _label(candidate: _Candidate, noun: Noun) -> str:
    label = metric_label(candidate.declared, noun)
    return f"{label}, slowest 5 %" if candidate.figure.reduction == SLOWEST else label


def _coverage(figure: Figure) -> float:
    """The smaller of the conversations, and the turns, calls or items, that have a value."""
    return min(figure.coverage or 0.0, figure.subject_coverage)


def _key_figure(candidate: _Candidate, targets: dict[str, Check], noun: Noun, kind: str) -> KeyFigure:
    figure, declared = candidate.figure, candidate.declared
    check = targets.get(name_text(figure))
    mark = declared.ten_points
    return KeyFigure(
        name=name_text(figure),
        label=_label(candidate, noun),
        unit=figure.unit,
        better=figure.better,
        value=figure.value or 0.0,
        low=figure.interval.low if figure.interval else None,
        high=figure.interval.high if figure.interval else None,
        n=figure.n,
        coverage=_coverage(figure),
        target="" if check is None else target_text(check.target, figure.unit),
        verdict="" if check is None else _verdict(check),
        met=None if check is None else check.label == "met",
        passes=None if mark is None or figure.ten is None or candidate.claims_nothing else figure.ten >= mark.passes_at,
        bad=candidate.bad,
        remark=", ".join(filter(None, (_held(candidate, check), few_clusters(figure, kind, noun)))),
    )


def _with_judge(figure: KeyFigure, source: Figure, summary: Summary) -> KeyFigure:
    """With who judged it, and what is known of them."""
    judged = reliability(summary, source)
    if judged is None:
        return figure
    remark = ", ".join(filter(None, (figure.remark, "" if judged.is_reliable else NOT_CALIBRATED)))
    return msgspec.structs.replace(figure, judge=judged.judge, calibration=judged.text, remark=remark)


def judge_lines(figures: Sequence[KeyFigure], summary: Summary) -> Iterator[str]:
    """What is known of how far judges agree with people: of those behind the figures of an answer, and of all."""
    models: dict[str, dict[str, list[str]]] = {}
    for figure in figures:
        if figure.judge and figure.calibration not in ("", NOT_CALIBRATED):
            model = "a panel" if figure.judge.startswith(PANEL) else figure.judge.partition("@")[0]
            texts = models.setdefault(model, {})
            texts.setdefault(figure.calibration, []).append(figure.label)
    for model, texts in models.items():
        yield f"judged by {model}, " + "; ".join(f"{text}: {', '.join(labels)}" for text, labels in texts.items())
    judged = judged_figures(summary)
    for judge, number in Counter(figure.judge for figure, _ in judged if is_annotator(figure.judge)).items():
        figures_text = f"{counted(number, 'figure')} of what {model_of(judge)} found"
        yield f"{figures_text}, {NOT_CALIBRATED}: gold labels beside the logs compare it with people"
    judged = [pair for pair in judged if not is_annotator(pair[0].judge)]
    good = sum(known.is_reliable for _, known in judged)
    if good < len(judged):
        count = counted(len(judged), "judged figure")
        calibrated = f"{good:,} calibrated" if good else "not calibrated" if len(judged) == 1 else "none calibrated"
        yield f"{count}, {calibrated}: `convoscope judge calibrate` compares judges with people"


def _with_inferred(figure: KeyFigure, summary: Summary) -> KeyFigure:
    """`17 of 30 inferred`: of the tool calls that count, those whose success only the data show."""
    part = next((one for one in summary.figures if one.key == f"{figure.name}.{INFERRED_PART}"), None)
    inferred = 0 if part is None else round((part.value or 0.0) * part.n)
    if part is None or not inferred:
        return figure
    remark = f"{inferred:,} of {part.n:,} inferred"
    return msgspec.structs.replace(figure, remark=", ".join(filter(None, (figure.remark, remark))))


def _held(candidate: _Candidate, check: Check | None) -> str:
    """What a figure is held against: its pass mark, or one half; of one with a target, its digits where they matter."""
    figure, mark = candidate.figure, candidate.declared.ten_points
    if check is not None:
        return _exact(figure, check.target.value)
    if candidate.claims_nothing:
        return ""
    if candidate.notable:
        return "notable"
    if mark is not None and figure.ten is not None and figure.ten < mark.passes_at:
        exact = _exact(figure, value_at_mark(mark))
        return ", ".join(filter(None, (mark_text(mark, figure.unit, figure.better), exact)))
    return "bad" if candidate.bad else ""


def _exact(figure: Figure, mark: float) -> str:
    """More digits, where rounding makes the value look like the mark that it is held against."""
    exact = unrounded_text(figure.value or 0.0, mark, figure.unit)
    return "" if exact == value_text(figure.value or 0.0, figure.unit) else f"more exactly {exact}"


def value_at_mark(mark: TenPoints) -> float:
    """The value that is worth as many points as pass."""
    return mark.zero + mark.passes_at / 10 * (mark.ten - mark.zero)


def mark_text(mark: TenPoints, unit: str, better: str) -> str:
    """`longer than its limit of 1.76 s`, `below its mark of 70.0 %`: a value that does not pass, by its direction."""
    known = mark.of == "value" and mark.falls is None
    of = f" of {value_text(value_at_mark(mark), unit)}" if known else ""
    if better == LOWER:
        return f"{'longer than' if unit == SECONDS else 'above'} its limit{of}"
    return f"below its mark{of}"


def few_clusters(figure: Figure, kind: str, noun: Noun) -> str:
    """`in 5 scenarios`, `of 5 users`: few independent clusters of many values, which make the interval wide."""
    interval = figure.interval
    if interval is None or interval.clusters >= FEW_CLUSTERS or interval.clusters * MANY_IN_A_CLUSTER > figure.n:
        return ""
    if interval.clusters >= figure.samples_measured:  # without scenarios and users, the conversations are independent
        return f"in {counted(interval.clusters, noun)}"
    return (
        f"of {counted(interval.clusters, kind)}" if kind == "user" else f"in {counted(interval.clusters, 'scenario')}"
    )


def _verdict(check: Check) -> Verdict:
    if check.verdict.outcome == "undetermined":
        return "undetermined"
    if not check.verdict.sure:
        return "too close"
    return "met" if check.label == "met" else "missed"
