"""The vacuity audit: would these metrics notice if the conversations were nonsense?

Perturbations are made from the user's own conversations, and every metric is run over both. A metric declares what it
has to notice: `sensitive_to=` and `undefined_under=`. What it should notice and does not has a reason here.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from convoscope.analysis.perturbations import MAKE_NONSENSE, OUTCOMES, by_timeline
from convoscope.conversation import Conversation, Flow, from_json
from convoscope.errors import NothingReadable, UsageError
from convoscope.ingest.given_speakers import GivenSpeakers
from convoscope.ingest.read import PathLike, read
from convoscope.metrics.declaration import HIGHER, LOWER, NEITHER, RATIO, SHARE, Derived, Metric
from convoscope.metrics.perturbations import EMPTY_AGENT, SAYS_EVERYTHING, Perturbation
from convoscope.metrics.registry import Declared
from convoscope.runs.database import CONVERSATIONS, connect
from convoscope.runs.make import make_run
from convoscope.runs.run import Run
from convoscope.runs.targets import FigureTarget, kept_target, kept_texts
from convoscope.scores.judges import speaking_order
from convoscope.scores.observation import MEASURED, STATUSES
from convoscope.scores.reducers import Sums
from convoscope.scoring.batch import Batch
from convoscope.scoring.job import choose
from convoscope.statistics.intervals import ratio_interval

_NEVER_PUT_OFF = (
    "published rule of τ-voice: who never speaks is not put off by anything; interaction.response_rate notices"
)

KNOWN_LIMITS: dict[tuple[str, Perturbation], str] = {
    ("answer.accuracy", SAYS_EVERYTHING): (
        "it asks whether the truth is in the answer, and who says everything says that too; answer.f1 and "
        "answer.exact_match notice"
    ),
    ("interaction.selectivity_non_directed", EMPTY_AGENT): _NEVER_PUT_OFF,
    ("interaction.selectivity_vocal_tic", EMPTY_AGENT): _NEVER_PUT_OFF,
    ("voice.turn_taking@eva", EMPTY_AGENT): (
        "published rule of EVA: a turn without a reply is not rated; voice.turn_taking notices"
    ),
}
"""Perturbation that is declared and not noticed, by metric and nonsense."""

_SAYS_NOTHING = (
    "a result that says nothing may be a success or not, an error says that it is no success: the figure has bounds"
)

KNOWN_DEPENDENCE: dict[tuple[str, str], str] = {
    ("outcome.authentication_success.call_success_rate", "tool_results"): _SAYS_NOTHING,
    ("outcome.authentication_success.first_try", "tool_results"): _SAYS_NOTHING,
    ("outcome.conversation_correctly_finished", "ended_reason"): (
        "only sound shows who let a call die; every other end counts for the agent: the figure has bounds"
    ),
    ("outcome.conversation_correctly_finished@eva", "ended_reason"): "published rule of EVA, as the default's",
    ("outcome.conversation_valid_end", "ended_reason"): (
        "without the simulator's log only an agent that timed out is known to be a valid end: the figure has bounds"
    ),
    ("tools.parameter_correctness@standard-data", "tool_results"): (
        "published rule: without a schema only failed calls are known; tools.parameter_correctness measures both"
    ),
    ("tools.success", "tool_results"): _SAYS_NOTHING,
    ("tools.success.inferred_rate", "tool_results"): _SAYS_NOTHING,
    ("tools.tool_call_validity", "tool_results"): _SAYS_NOTHING,
    ("tools.tool_call_validity.rejected_rate", "tool_results"): _SAYS_NOTHING,
    ("tools.unrecovered_errors", "tool_results"): (
        "a failure says so itself, a result that says nothing may be either: a group in which as many "
        "conversations do not say as do has no value"
    ),
    ("voice.turn_taking", "ended_reason"): (
        "a call that the agent let die is rated 0 as a whole, any other turn by turn: both are measured"
    ),
    ("voice.turn_taking@eva", "ended_reason"): "published rule of EVA, as the default's",
}
"""Metrics of which the outcome decides what is measured, by metric and outcome."""


LIMIT = 200
"""Conversations that nonsense is made of, unless the user says otherwise."""
ENOUGH = 6
"""Clusters without which there is no verdict: six of one sign come by chance in less than 5 % of all cases."""

WORTH_NOTICING = 0.5
"""Of what a metric was on average: only where an interval rules out that it got so much worse, it has not noticed."""

Verdict = Literal["noticed", "goes_silent", "not_noticed", "too_few", "no_opportunity"]
NOTICED: Verdict = "noticed"
GOES_SILENT: Verdict = "goes_silent"
NOT_NOTICED: Verdict = "not_noticed"
TOO_FEW: Verdict = "too_few"
NO_OPPORTUNITY: Verdict = "no_opportunity"

Demand = Literal["", "worse", "silent"]


class NonsenseCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one metric made of one kind of nonsense, in the conversations in which it was measured before."""

    nonsense: Perturbation
    demand: Demand = ""
    """What the metric declares: that it gets worse, or that it has no value then; nothing where it declares neither."""
    verdict: Verdict
    conversations: int = 0
    """Conversations in which it was measured, and which the nonsense changes."""
    clusters: int = 0
    silent: int = 0
    """Of these, the ones in which it has no value any more."""
    difference: float | None = None
    """How much worse it gets, on average; where neither direction is better, how much less it is."""
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why it was not noticed, where that is known and stands."""

    @property
    def holds(self) -> bool:
        """The metric does what it declares."""
        return self.verdict == NOTICED or (self.verdict == GOES_SILENT and self.demand == "silent")

    @property
    def fails(self) -> bool:
        """The metric does not do what it declares, and there is no known reason."""
        is_decided = self.verdict in (NOT_NOTICED, GOES_SILENT)
        return bool(self.demand) and is_decided and not self.holds and not self.reason


class MetricAudit(msgspec.Struct, frozen=True, kw_only=True):
    """One metric that was measured here, over all kinds of nonsense."""

    metric: str
    declares: bool
    """It says which nonsense it has to notice. Others are reported, and not judged."""
    checks: tuple[NonsenseCheck, ...]

    @property
    def declared(self) -> list[NonsenseCheck]:
        """What it declares and could be tried here."""
        return [one for one in self.checks if one.demand and one.verdict != NO_OPPORTUNITY]


class GateAudit(msgspec.Struct, frozen=True, kw_only=True):
    """A target, and the nonsense that meets it."""

    target: str
    met: bool
    """By the conversations as they are."""
    met_by: tuple[Perturbation, ...]
    tried: tuple[Perturbation, ...]

    @property
    def can_fail(self) -> bool:
        return not self.tried or len(self.met_by) < len(self.tried)


class OutcomeDependence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric of which other subjects are measured when the outcome is another."""

    metric: str
    outcome: str
    only_well: int
    """Subjects that have a value only if it went well."""
    only_wrong: int
    both: int
    reason: str = ""
    """Why that may stand, where it is known."""


class NeverMeasured(msgspec.Struct, frozen=True, kw_only=True):
    """A metric without a value in any of these conversations, and its commonest reason."""

    metric: str
    reason: str


class VacuityAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Which nonsense the metrics notice, which targets cannot be missed, what is measured only after one outcome."""

    conversations: int
    changed: dict[Perturbation, int]
    """How many conversations each kind of nonsense changes."""
    metrics: tuple[MetricAudit, ...]
    gates: tuple[GateAudit, ...] = ()
    outcome_dependent: tuple[OutcomeDependence, ...] = ()
    never_measured: tuple[NeverMeasured, ...] = ()

    @property
    def declared(self) -> list[NonsenseCheck]:
        """Everything that was declared and could be tried here."""
        return [check for one in self.metrics for check in one.declared]

    @property
    def noticed(self) -> int:
        return sum(check.holds for check in self.declared)

    @property
    def failures(self) -> list[NonsenseCheck]:
        return [check for check in self.declared if check.fails]

    @property
    def could_tell(self) -> bool:
        """Something that was declared was noticed, or was not; too few conversations tell neither."""
        return any(check.verdict != TOO_FEW for check in self.declared)


def audit(
    source: PathLike | Sequence[PathLike] | Iterable[Conversation],
    *,
    metrics: str | Declared | Iterable[str | Declared] | None = None,
    metrics_from: Iterable[PathLike] = (),
    targets: Sequence[str] = (),
    limit: int = LIMIT,
    format: str | None = None,
    readers_from: Iterable[PathLike] = (),
    turns: str | None = None,
    flows: Iterable[PathLike | Flow] = (),
    tool_failed: str | Iterable[str] = (),
    speech_tools: str | Iterable[str] = (),
    session_gap: float | None = None,
    speakers: GivenSpeakers = (),
    audio: PathLike | None = None,
) -> VacuityAudit:
    """Make nonsense of the first `limit` conversations of some logs, and see which metrics notice.

    The arguments are those of `convoscope.score`. No judge and no recording is asked: metrics that need one are
    never measured here.
    """
    if limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}")
    chosen = choose(metrics, metrics_from).metrics
    given = kept_texts([targets] if isinstance(targets, str) else targets, chosen)
    reading = partial(
        read,
        format=format,
        limit=limit,
        turns=turns,
        flows=flows,
        readers_from=readers_from,
        tool_failed=tool_failed,
        speech_tools=speech_tools,
        session_gap=session_gap,
        speakers=speakers,
        audio=audio,
    )
    things: list[Any] = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not things:
        raise NothingReadable("there is nothing to audit")
    conversations = things[:limit] if isinstance(things[0], Conversation) else list(reading(things))
    return audit_conversations(conversations, chosen, given)


def audit_run(
    run: Run,
    *,
    metrics: Iterable[str | Declared] | None = None,
    metrics_from: Iterable[PathLike] = (),
    targets: Sequence[str] = (),
    limit: int = LIMIT,
) -> VacuityAudit:
    """The audit of the conversations that a run keeps, with its metrics and its targets, and those that are given."""
    chosen = choose(metrics or list(run.receipt.config["metrics"]), metrics_from).metrics
    known = {one.key for one in chosen}
    recorded = [text for text in run.receipt.config.get("targets", ()) if _metric_of(text) in known]
    given = kept_texts(targets, chosen)
    with connect(run.folder) as connection:
        query = f"SELECT body FROM {run.table(CONVERSATIONS)} ORDER BY number LIMIT {int(limit)}"
        bodies = connection.execute(query).fetchall()
    conversations = [from_json(body) for (body,) in bodies if body is not None]
    return audit_conversations(conversations, chosen, list(dict.fromkeys([*recorded, *given])))


def _metric_of(target: str) -> str:
    return kept_target(target).figure.partition(" ")[0]


def audit_conversations(
    conversations: Sequence[Conversation], metrics: Sequence[Declared], targets: Sequence[str] = ()
) -> VacuityAudit:
    """The audit of conversations that are at hand. Targets are written as a run keeps them."""
    originals = [by_timeline(one) for one in conversations]
    single = [one for one in metrics if not (isinstance(one, Derived) and one.over == "group")]
    before = _scored(originals, single)
    clusters = np.array(_clusters(originals), dtype=np.int64)
    made = {kind: [make(one) for one in originals] for kind, make in MAKE_NONSENSE.items()}
    changed: dict[Perturbation, list[int]] = {}
    for kind, nonsense in made.items():
        pairs = enumerate(zip(originals, nonsense, strict=True))
        changed[kind] = [row for row, (old, new) in pairs if new is not old and new != old]
    # What nonsense leaves as it was is not scored again.
    after = {kind: _scored([made[kind][row] for row in rows], single) for kind, rows in changed.items() if rows}
    measured = [one for one in single if before.values[one.key].count(None) < len(originals)]
    return VacuityAudit(
        conversations=len(originals),
        changed={kind: len(rows) for kind, rows in changed.items()},
        metrics=tuple(
            MetricAudit(
                metric=declared.key,
                declares=declared.sensitive_to is not None,
                checks=tuple(
                    _check(declared, kind, before, after.get(kind), changed[kind], clusters) for kind in MAKE_NONSENSE
                ),
            )
            for declared in measured
        ),
        gates=tuple(_gates(targets, metrics, originals, {kind: made[kind] for kind in after})),
        outcome_dependent=tuple(outcome_dependence(originals, single)),
        never_measured=tuple(
            NeverMeasured(metric=one.key, reason=before.reason(one.key)) for one in single if one not in measured
        ),
    )


class _Scored(NamedTuple):
    """What metrics say of some conversations."""

    values: Mapping[str, list[float | None]]
    """The value of each conversation, by metric."""
    reasons: Mapping[str, Counter[str]]
    """Why there is none."""
    subjects: Mapping[str, set[tuple[int, str, str]]]
    """What was measured, each with the row of its conversation."""

    def reason(self, metric: str) -> str:
        common = self.reasons[metric].most_common(1)
        return common[0][0] if common else "nothing_to_observe"


def _scored(conversations: Sequence[Conversation], metrics: Sequence[Declared]) -> _Scored:
    batch = Batch(metrics)
    values: dict[str, list[float | None]] = {one.key: [None] * len(conversations) for one in metrics}
    reasons: dict[str, Counter[str]] = {one.key: Counter() for one in metrics}
    subjects: dict[str, set[tuple[int, str, str]]] = {one.key: set() for one in metrics}
    for conversation in conversations:
        for index, absence in batch.add(conversation).absent.items():
            reasons[metrics[index].key][absence.reason] += 1
    is_measured = STATUSES.index(MEASURED)
    for columns in batch.columns():
        key, reduced, observed = columns.declared.key, columns.reduced, columns.observed
        rows, statuses, numbers = reduced.row.tolist(), reduced.status.tolist(), reduced.value.tolist()
        # What comes later counts.
        judges = reduced.judge
        for at in sorted(range(len(rows)), key=lambda at: speaking_order(judges[at])):
            values[key][rows[at]] = numbers[at] if statuses[at] == is_measured else None
            if statuses[at] != is_measured:
                reasons[key][reduced.reason[at]] += 1
        for row, subject, status in zip(observed.row.tolist(), observed.subject, observed.status.tolist(), strict=True):
            if status == is_measured:
                subjects[key].add((row, subject.kind, subject.id))
    return _Scored(values, reasons, subjects)


def _clusters(conversations: Sequence[Conversation]) -> list[int]:
    """Conversations of one scenario go together."""
    codes: dict[tuple[str, ...], int] = {}
    clusters: list[int] = []
    for row, conversation in enumerate(conversations):
        scenario = conversation.dimensions.get("scenario_id", "")
        names = (scenario, *(conversation.dimensions.get(name, "") for name in ("dataset", "domain")))
        key = names if scenario else (str(row),)
        clusters.append(codes.setdefault(key, len(codes)))
    return clusters


def _check(
    declared: Declared,
    kind: Perturbation,
    before: _Scored,
    after: _Scored | None,
    changed: Sequence[int],
    clusters: np.ndarray[Any, np.dtype[np.int64]],
) -> NonsenseCheck:
    demand: Demand = (
        "silent" if kind in declared.undefined_under else "worse" if kind in (declared.sensitive_to or ()) else ""
    )
    old = before.values[declared.key]
    rows = [row for row in changed if old[row] is not None]
    if not rows or after is None:
        return NonsenseCheck(nonsense=kind, demand=demand, verdict=NO_OPPORTUNITY)
    new = dict(zip(changed, after.values[declared.key], strict=True))
    pairs = [row for row in rows if new[row] is not None]
    fields: dict[str, Any] = {
        "nonsense": kind,
        "demand": demand,
        "conversations": len(rows),
        "clusters": len(set(clusters[rows].tolist())),
        "silent": len(rows) - len(pairs),
    }
    if 2 * len(pairs) <= len(rows):
        is_decided = demand == "silent" or fields["clusters"] >= ENOUGH
        return _explained(declared, NonsenseCheck(verdict=GOES_SILENT if is_decided else TOO_FEW, **fields))
    sign = -1.0 if declared.better == LOWER else 1.0
    worse = np.array([sign * ((old[row] or 0.0) - (new[row] or 0.0)) for row in pairs])
    fields["difference"] = float(worse.mean())
    room = {int(clusters[row]) for row in pairs if not _is_at_worst(declared, old[row] or 0.0)}
    interval = ratio_interval(Sums("", worse, np.ones_like(worse), ""), clusters[pairs], bounded=False)
    low, high = (float(worse[0]),) * 2 if interval is None else (interval.lowest, interval.highest)
    if interval is not None:
        fields |= {"low": interval.low, "high": interval.high}
    # Differences that are all equal have no interval: they tell by their number alone.
    is_noticed = (low > 0 or (declared.better == NEITHER and high < 0)) and (
        interval is not None or len(room) >= ENOUGH
    )
    much = WORTH_NOTICING * abs(float(np.mean([old[row] or 0.0 for row in pairs])))
    is_ruled_out = high <= max(0.0, much) and (declared.better != NEITHER or low >= -much)
    verdict = NOTICED if is_noticed else NOT_NOTICED if is_ruled_out and len(room) >= ENOUGH else TOO_FEW
    return _explained(declared, NonsenseCheck(verdict=verdict, **fields))


def _explained(declared: Declared, check: NonsenseCheck) -> NonsenseCheck:
    """With the reason why it may stand that this metric does not notice, where there is one."""
    reason = KNOWN_LIMITS.get((declared.key, check.nonsense), "")
    is_noticed = check.holds or not check.demand or check.verdict == TOO_FEW
    return check if is_noticed else msgspec.structs.replace(check, reason=reason)


def _is_at_worst(declared: Declared, value: float) -> bool:
    """It cannot get worse: a share or ratio of 0 where more is better, a share of 1 where less is."""
    if declared.better == HIGHER:
        return declared.unit in (SHARE, RATIO) and value <= 0
    return declared.better == LOWER and declared.unit == SHARE and value >= 1


def _gates(
    targets: Sequence[str],
    metrics: Sequence[Declared],
    originals: Sequence[Conversation],
    nonsense: Mapping[Perturbation, Sequence[Conversation]],
) -> Iterator[GateAudit]:
    """Hold the figures of the conversations, and of all nonsense made of them, against the targets."""
    if not targets:
        return
    wanted = [kept_target(text) for text in targets]
    keys = {_metric_of(text) for text in targets}
    chosen = [one for one in metrics if one.key in keys]
    by = [[name for name, _ in one.by] for one in wanted if one.by] or None
    with tempfile.TemporaryDirectory(prefix="convoscope-") as folder:

        def met(name: str, conversations: Sequence[Conversation]) -> list[bool]:
            run = make_run(conversations, metrics=chosen, out=Path(folder, name), workers=1, by=by)
            return [_is_met(run, one) for one in wanted]

        actual = met("as_it_is", originals)
        met_by = {kind: met(kind, conversations) for kind, conversations in nonsense.items()}
    for index, target in enumerate(wanted):
        yield GateAudit(
            target=target.text,
            met=actual[index],
            met_by=tuple(kind for kind, verdicts in met_by.items() if verdicts[index]),
            tried=tuple(met_by),
        )


def _is_met(run: Run, target: FigureTarget) -> bool:
    """A figure without a value meets nothing; of several judges, all have to agree."""
    metric, _, reduction = target.figure.partition(" ")
    groups = [one.metrics for one in run.summary.groups if tuple(sorted(one.by.items())) == target.by]
    figures = run.summary.metrics if not target.by else groups[0] if groups else []
    values = [one.value for one in figures if one.key == metric and one.reduction == reduction]
    return bool(values) and all(value is not None and target.target.is_met_by(value) for value in values)


def outcome_dependence(
    conversations: Sequence[Conversation], metrics: Sequence[Declared]
) -> Iterator[OutcomeDependence]:
    """Metrics that measure other subjects when a conversation has another outcome: such a figure is forced.

    Of derived figures the inputs tell.
    """
    metrics = [one for one in metrics if isinstance(one, Metric)]
    for outcome, vary in OUTCOMES.items():
        pairs = [pair for pair in map(vary, conversations) if pair is not None]
        if not pairs:
            continue
        well, wrong = _scored([one.well for one in pairs], metrics), _scored([one.wrong for one in pairs], metrics)
        for declared in metrics:
            right, left = well.subjects[declared.key], wrong.subjects[declared.key]
            if right != left:
                yield OutcomeDependence(
                    metric=declared.key,
                    outcome=outcome,
                    only_well=len(right - left),
                    only_wrong=len(left - right),
                    both=len(right & left),
                    reason=KNOWN_DEPENDENCE.get((declared.key, outcome), ""),
                )
