"""The screen of judges: whether they can be believed, what they cost, where they disagree, what is worth a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from convoscope.analysis.answer.model import Noun, metric_label, sentence_start
from convoscope.analysis.labelling import choose_rows
from convoscope.analysis.words import NOTHING, counted, cut_text, percent_text, value_text
from convoscope.errors import UsageError
from convoscope.judging.rubrics import Rubric
from convoscope.report.page.figures import ScaledInterval
from convoscope.runs.database import SCORES, connect, quoted
from convoscope.runs.judging import ApartVerdicts, JudgingSummary
from convoscope.runs.reliability import (
    JudgeReliability,
    has_judges,
    is_thin,
    judged_figures,
    judged_metrics,
    reliability,
)
from convoscope.runs.run import Run
from convoscope.scores.judges import is_annotator, is_panel
from convoscope.scores.observation import ERROR
from convoscope.statistics.panels import REPEATS_STRADDLE
from convoscope.statistics.summary import Figure

_NO_ANSWER = (
    "verdict_unusable",
    "verdict_empty",
    "verdict_partial",
    "not_judged",
    "evidence_not_found",
    "not_on_scale",
    "budget_spent",
)
"""Why a judge that was asked has no verdict; what it was not asked about is not among them."""
_MOST_APART = 8
_MOST_NAME = 60


class JudgesTotal(msgspec.Struct, frozen=True, array_like=True):
    """A number about all judges of a run."""

    name: str
    value: str
    note: str


class JudgeRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure of one judge against labels of people."""

    label: str
    name: str
    """Of the figure."""
    judge: str
    value: str
    coverage: str
    """Of what should have a verdict, the share that has one."""
    thin: bool = False
    agrees: str = ""
    kappa: str = ""
    bar: ScaledInterval | None = None
    labels: str = "0"
    passes: str = ""
    """Of the labels that fail, those that the judge passes."""
    fails: str = ""
    """Of the labels that pass, those that the judge fails."""
    took: str = ""
    state: str
    tone: str = ""


class ApartRow(msgspec.Struct, frozen=True, array_like=True):
    """What judges do not agree about, and what each of them says."""

    conversation: str
    label: str
    verdicts: str


class QueueRow(msgspec.Struct, frozen=True, array_like=True):
    """Why some judgements are worth a label, how many, and of what."""

    count: int
    why: str
    of: str


class JudgesScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is known of the judges of a run."""

    line: str
    why: str = ""
    judges: int
    totals: list[JudgesTotal] = []
    rows: list[JudgeRow] = []
    apart: list[ApartRow] = []
    apart_line: str
    queue: list[QueueRow] = []
    command: str = ""


class _Counts(NamedTuple):
    """What became of the questions to one judge about one metric."""

    measured: int
    straddling: int
    silent: int
    cost: float | None
    tokens: float | None


def judges_screen(run: Run, noun: Noun, folder: str) -> JudgesScreen | None:
    """None for a run without a judge."""
    if not has_judges(run.summary):
        return None
    counts, judged = _counts(run), judged_metrics(run.summary)
    shown = [
        (figure, known)
        for figure in run.summary.figures
        if figure.key in judged
        and not figure.reduction
        and not figure.judge.startswith("(")
        and (known := reliability(run.summary, figure)) is not None
        and not known.is_human
        and _is_asked(figure, counts.get((figure.key, figure.judge)))
    ]
    if not shown:
        return None
    speaking = [pair for pair in judged_figures(run.summary) if not is_annotator(pair[0].judge)]
    good = sum(known.is_reliable for _, known in speaking)
    queue = list(_queue(run))
    return JudgesScreen(
        line=_line(good, len(speaking), [pair[0] for pair in shown], counts),
        why=_why([known for _, known in speaking]),
        judges=len({figure.judge.partition("@")[0] for figure, _ in shown if not is_panel(figure.judge)}),
        totals=list(_totals(run, noun, counts)),
        rows=[_row(run, noun, figure, known, counts.get((figure.key, figure.judge))) for figure, known in shown],
        apart=list(_apart(run, noun))[:_MOST_APART],
        apart_line=_apart_line(run.summary.judging),
        queue=queue,
        command=f"convoscope judge label {folder}" if queue else "",
    )


def _line(good: int, speaking: int, figures: list[Figure], counts: Mapping[tuple[str, str], _Counts]) -> str:
    """How many figures can be relied on; and how many have no value, because no answer could be used."""
    valued = {figure.key for figure in figures if figure.value is not None}
    silent = [figure for figure in figures if figure.key not in valued]
    asked = [counts[figure.key, figure.judge] for figure in silent if (figure.key, figure.judge) in counts]
    missing = sum(one.straddling + one.silent for one in asked)
    of = missing + sum(one.measured for one in asked)
    none = f"{missing:,} of {counted(of, 'question')} without a usable answer"
    without = len({figure.key for figure in silent})
    if not speaking:
        return f"{counted(without, 'judged figure')}, none has a value: {none}."
    more = f"; {without:,} more without a value: {none}" if without else ""
    return f"{good:,} of {counted(speaking, 'judged figure')} can be relied on{more}."


def _is_asked(figure: Figure, counts: _Counts | None) -> bool:
    """Whether there is a verdict, or one is missing: what applies to no conversation says nothing of a judge."""
    return figure.value is not None or (counts is not None and counts.straddling + counts.silent > 0)


def _why(known: list[JudgeReliability]) -> str:
    """Why others cannot: `2 have no labels; 1 may be < 0.4`."""
    reasons = Counter(
        "no labels" if one.agreement is None or not one.agreement.labels else one.agreement.verdict
        for one in known
        if not one.is_reliable
    )
    return f"Of the others: {'; '.join(f'{count:,} {reason}' for reason, count in reasons.items())}." if reasons else ""


def _row(run: Run, noun: Noun, figure: Figure, known: JudgeReliability, counts: _Counts | None) -> JudgeRow:
    agreement = known.agreement
    coverage = min(figure.coverage or 0.0, figure.subject_coverage) if figure.value is not None else 0.0
    row = JudgeRow(
        label=sentence_start(metric_label(run.summary.by_key[figure.key], noun)),
        name=f"{figure.key} [{figure.judge}]",
        judge=cut_text("panel" if is_panel(figure.judge) else figure.judge, _MOST_NAME),
        value=value_text(figure.value, figure.unit),
        coverage=percent_text(coverage),
        thin=figure.value is None or is_thin(figure),
        took=_taken(counts),
        state="no labels",
    )
    if agreement is None or not agreement.labels:
        return row
    (passed, failing), (failed, passing) = agreement.wrongly_passed, agreement.wrongly_failed
    return msgspec.structs.replace(
        row,
        agrees=NOTHING if agreement.accuracy is None else percent_text(agreement.accuracy),
        kappa=NOTHING if agreement.kappa is None else f"{agreement.kappa:.2f}",
        bar=_bar(agreement.kappa, agreement.kappa_interval, agreement.least_kappa),
        labels=f"{agreement.labels:,}",
        passes=f"{passed:,} of {failing:,}",
        fails=f"{failed:,} of {passing:,}",
        state=agreement.verdict,
        tone="good" if agreement.is_calibrated else "",
    )


def _bar(kappa: float | None, interval: tuple[float, float] | None, least: float) -> ScaledInterval | None:
    """Kappa from 0 to 1; what is below 0 is at the left end."""
    if kappa is None:
        return None
    low, high = (None, None) if interval is None else (100 * max(0.0, end) for end in interval)
    words = f"κ {kappa:.2f}" + ("" if interval is None else f", {interval[0]:.2f} to {interval[1]:.2f}")
    return ScaledInterval(value=100 * max(0.0, kappa), low=low, high=high, targets=[100 * least], text=words)


def _taken(counts: _Counts | None) -> str:
    if counts is None or not (counts.cost or counts.tokens):
        return ""
    return f"${counts.cost:.4f}" if counts.cost else f"{counts.tokens:,.0f} tokens"


def _totals(run: Run, noun: Noun, counts: Mapping[tuple[str, str], _Counts]) -> Iterator[JudgesTotal]:
    known = [one for (_, judge), one in counts.items() if not is_panel(judge)]
    cost, tokens = sum(one.cost or 0.0 for one in known), sum(one.tokens or 0.0 for one in known)
    if cost or tokens:
        is_priced = cost and all(one.cost is not None for one in known if one.tokens)
        value = f"${cost:.2f}" if is_priced else f"{tokens:,.0f} tokens"
        yield JudgesTotal("What the answers took", value, "of those with a verdict, from the cache or not")
    judging = run.summary.judging
    if judging is not None and (asked := sum(one.n for one in judging.repeated)):
        differ = sum(one.differ for one in judging.repeated)
        yield JudgesTotal(
            "Same answer when asked again", percent_text(1 - differ / asked), f"{judging.repeats} times each"
        )
    straddling, silent = sum(one.straddling for one in known), sum(one.silent for one in known)
    total = straddling + silent + sum(one.measured for one in known)
    note = f"{straddling:,} on both sides of the mark, {silent:,} without an answer"
    yield JudgesTotal("Without a verdict", f"{straddling + silent:,} of {total:,}", note)
    if addressed := _addressed(run):
        yield JudgesTotal("Logs that address the judge", counted(addressed, noun), "the judges did not get that text")


def _metrics(run: Run) -> str:
    return ", ".join(quoted(name) for name in judged_metrics(run.summary))


def _addressed(run: Run) -> int:
    with connect(run.folder) as connection:
        rows = connection.execute(
            f"SELECT count(DISTINCT number) FROM {run.table(SCORES)} WHERE metric IN ({_metrics(run)}) "
            "AND (reason = 'addresses_judge' OR json_array_length(details, '$.withheld') > 0)"
        ).fetchall()
    return int(rows[0][0])


def _counts(run: Run) -> dict[tuple[str, str], _Counts]:
    """By metric and judge. The turns of one answer share what it took, which counts once."""
    together = [quoted(name) for name, rubric in judged_metrics(run.summary).items() if _rates_turns(rubric)]
    asked = f"CASE WHEN metric IN ({', '.join(together)}) THEN '' ELSE subject END" if together else "subject"
    silent = ", ".join(map(quoted, _NO_ANSWER))
    with connect(run.folder) as connection:
        rows = connection.execute(
            "SELECT metric, judge, sum(measured), sum(straddling), sum(silent), "
            # A sum that lacks the price of some answers is no sum.
            "CASE WHEN count(*) FILTER (tokens > 0 AND cost IS NULL) = 0 THEN sum(cost) END, sum(tokens) FROM ("
            f"SELECT metric, judge, number, {asked} AS part, count(*) FILTER (status = 'measured') AS measured, "
            f"count(*) FILTER (reason = {quoted(REPEATS_STRADDLE)}) AS straddling, "
            f"count(*) FILTER (status = {quoted(ERROR)} OR reason IN ({silent})) AS silent, "
            "max(TRY_CAST(json_extract_string(details, '$.cost') AS DOUBLE)) AS cost, "
            "max(TRY_CAST(json_extract_string(details, '$.input_tokens') AS DOUBLE) "
            "+ TRY_CAST(json_extract_string(details, '$.output_tokens') AS DOUBLE)) AS tokens "
            f"FROM {run.table(SCORES)} WHERE metric IN ({_metrics(run)}) AND variant = '' "
            "AND NOT starts_with(judge, '(') AND NOT starts_with(judge, 'human:') GROUP BY ALL) GROUP BY ALL"
        ).fetchall()
    return {(metric, judge): _Counts(*map(int, rest[:3]), *rest[3:]) for metric, judge, *rest in rows}


def _rates_turns(rubric: Rubric) -> bool:
    return "turns" in rubric.schema.get("properties", {})


def _apart(run: Run, noun: Noun) -> Iterator[ApartRow]:
    """The verdicts that lie farthest apart, by what the summary keeps of panels and of a second look."""
    judging = run.summary.judging
    if judging is None:
        return
    known = judged_metrics(run.summary)
    looks = [*judging.panels, *(judging.second_look.metrics if judging.second_look is not None else ())]
    pairs = [(look.metric, one) for look in looks for one in look.apart if look.metric in known]
    for metric, apart in sorted(pairs, key=lambda pair: -_spread(pair[1])):
        label = sentence_start(metric_label(run.summary.by_key[metric], noun))
        where = f", {cut_text(apart.subject, _MOST_NAME)}" if apart.subject else ""
        says = (
            f"{cut_text(judge.partition('@')[0], _MOST_NAME)} {known[metric].rating(value):.3g}"
            for judge, value in apart.values.items()
        )
        yield ApartRow(apart.conversation, f"{label}{where}", ", ".join(says))


def _spread(apart: ApartVerdicts) -> float:
    return max(apart.values.values(), default=0.0) - min(apart.values.values(), default=0.0)


def _apart_line(judging: JudgingSummary | None) -> str:
    if judging is None or (judging.panel is None and judging.second_look is None):
        return "One judge: no disagreement is known. `--judge` twice is a panel, `--second-look JUDGE` asks another."
    return "Judges that differ most come first."


def _queue(run: Run) -> Iterator[QueueRow]:
    """What `convoscope judge label` would ask a person."""
    try:
        rows = choose_rows(run)
    except UsageError:  # nothing of this run can be on a sheet
        return
    reasons: dict[str, Counter[str]] = {}
    for row in rows:
        reasons.setdefault(row.chosen, Counter())[row.rubric.title] += 1
    for why, titles in reasons.items():
        yield QueueRow(titles.total(), why, ", ".join(titles))
