"""The order of conversations: what was lost, where trials disagree, and how rough a conversation was.

First what is lost, by the user's label, the log or the flow (`views.flow.endings.outcome_of`); then what is unknown;
what is done comes last. Where the outcome is unknown and a scenario has several trials, those come first whose changes
disagree with those of the other trials (`runs.trials`). Among equals, whatever fails in more families comes first: a
metric of the family `outcome` at its worst, a missed target, a value below the pass mark of its metric. Among equals
again, roughness: of the conversations that were measured in a metric of `ROUGHNESS`, the share that did better; the
squares of these shares are averaged within a family of metrics and then over families, so that one thing very wrong
weighs more than several a little wrong, and several waits do not outvote one wrong answer. A value that passes makes
nothing rough, nor does what was not measured. Metrics that a user adds count where they have a target, or where a run
has no metric of `ROUGHNESS`. A missed mark of another metric is a reason that is named, but moves nothing. Metrics
that say the same count once: parts and variants are left to the metric itself, a derived figure to what it is made of;
where there are only variants, the worst of them counts. What a judge says that is not calibrated is neither good nor
bad: it decides nothing here, unless judges are trusted. Only where a run has nothing else, conversations are put in the
order of such ratings, and no rating is a failure. Where the integration broke, a conversation says nothing about the
agent: it comes last, and `Ranking.errors` lists it.

It is an order, not a measurement: in a run where all is well, some conversation is still last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import HIGHER, LOWER, NEITHER, SHARE
from convoscope.metrics.registry import PUBLISHED, parent_metric
from convoscope.runs.database import CONVERSATIONS, connect, dimension_column, quoted
from convoscope.runs.measured import measured_columns, rows_of, with_values
from convoscope.runs.reliability import is_doubtful, reliability, speaking_judges
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.runs.targets import FigureTarget, kept_target
from convoscope.runs.trials import Trial, read_trials
from convoscope.statistics.summary import Figure
from convoscope.views.end_reasons import HANDED_OVER
from convoscope.views.flow.endings import DONE, LOST, OUTCOMES, UNKNOWN

if TYPE_CHECKING:
    import duckdb

REASONS = 3
"""How many metrics are named as the reason for a rank."""
_NAMES = """
    agent.ignored_questions agent.repetition agent.talks_over_user agent.unanswered_turns
    answer.accuracy answer.accuracy@choice answer.exact_match answer.f1 answer.format_validity audio.word_accuracy
    dialogue.action_type_accuracy dialogue.domain_accuracy dialogue.entity_hallucination dialogue.goal_completion
    dialogue.inform@tomiinek dialogue.intent_accuracy dialogue.jga dialogue.policy_violations dialogue.response_quality
    dialogue.slot_accuracy dialogue.slot_hallucination dialogue.success@tomiinek dialogue.system_correctness
    flow.completion flow.correctness flow.errors flow.latency_p95
    interaction.response_latency_mean interaction.response_rate interaction.yield_rate
    judged.agent_speech_fidelity judged.conciseness judged.conversation_progression judged.faithfulness
    latency.e2e_latency
    outcome.authentication_success outcome.conversation_completed_on_time outcome.conversation_correctly_finished
    outcome.task_completion retrieval.average_precision retrieval.mrr retrieval.ndcg
    semantic.unresolved_risks state.stall telephony.drop_off_node@states timing.response_latency
    tools.parameter_correctness tools.success tools.tool_call_validity tools.tool_correctness tools.unrecovered_errors
    user.pushback voice.key_entities voice.response_speed voice.stt_wer voice.turn_taking
    """
ROUGHNESS = frozenset(_NAMES.split())
"""The metrics that the order is made of, whatever else a run measures."""
Basis = Literal["outcome", "trials", "roughness"]
"""What decides an order first."""
_DIGITS = 3
"""Values that agree in so many digits are as good as each other."""


class Headline(NamedTuple):
    """A metric as a run has it for every conversation; where a panel sat, the panel's verdict."""

    metric: str
    variant: str
    judge: str
    unit: str
    better: str

    @property
    def key(self) -> str:
        return f"{self.metric}@{self.variant}" if self.variant else self.metric

    @property
    def condition(self) -> str:
        """Its rows, as SQL."""
        return rows_of(self.metric, self.variant, self.judge)


Failure = Literal["", "mark", "target", "outcome"]
FAILURES: tuple[Failure, ...] = ("", "mark", "target", "outcome")
"""How a value fails, if it does, gravest last: below the pass mark, a missed target, an outcome at its worst."""


class RankedMetric(NamedTuple):
    """In one metric: the value, and the share of the measured conversations that did better."""

    headline: Headline
    value: float
    share: float
    measured: int
    failure: Failure = ""


class RankedConversation(NamedTuple):
    """The rank of one conversation. `behind` is None where no metric with a direction was measured in it."""

    number: int
    conversation: str
    behind: float | None
    because: tuple[RankedMetric, ...]
    error: str = ""
    """What broke, where the integration did."""
    outcome: str = UNKNOWN
    """`lost`, `done` or `unknown`."""
    outcome_reason: str = ""
    """What tells so."""
    trial: Trial | None = None
    """How it agrees with the other trials of its scenario, where the outcome is unknown."""


class Ranking(NamedTuple):
    """All conversations of a run, worst first. Arrays but `order` go by the conversation's number."""

    headlines: Sequence[Headline]
    order: NDArray[np.int64]
    behind: NDArray[np.float64]
    """Not a number where nothing with a direction was measured."""
    column: NDArray[np.int16]
    """The headlines in which a conversation is furthest behind, most first; -1 for none."""
    share: NDArray[np.float64]
    value: NDArray[np.float64]
    measured: Sequence[int]
    """Conversations that each headline was measured in."""
    errors: Mapping[int, str]
    """What broke, by the number of the conversation."""
    failure: NDArray[np.int8]
    """How each of `column` fails: an index into `FAILURES`."""
    outcome: NDArray[np.int8]
    """What came of each conversation: an index into `OUTCOMES`."""
    lost: Mapping[int, str]
    """What tells that a conversation is lost, by its number."""
    trials: Mapping[int, Trial]
    """How conversations of an unknown outcome agree with the other trials of their scenarios, by number."""
    basis: Basis
    """By what the order is led."""

    def because(self, numbers: Sequence[int]) -> list[tuple[RankedMetric, ...]]:
        """In what each of some conversations is furthest behind, most first."""
        arrays = (self.column, self.value, self.share, self.failure)
        made: dict[tuple[int, float, float, int], RankedMetric] = {}  # conversations that say the same share them
        because = []
        chosen = np.asarray(numbers, dtype=np.int64)
        for reasons in zip(*(one[:, chosen].T.tolist() for one in arrays), strict=True):
            keys = [key for key in zip(*reasons, strict=True) if key[0] >= 0]
            for column, value, share, failure in (key for key in keys if key not in made):
                made[column, value, share, failure] = RankedMetric(
                    self.headlines[column], value, share, self.measured[column], FAILURES[failure]
                )
            because.append(tuple(made[key] for key in keys))
        return because

    @property
    def whole(self) -> NDArray[np.int64]:
        """The order without those whose integration broke."""
        return self.order[: len(self.order) - len(self.errors)]

    def of(self, number: int) -> float | None:
        behind = float(self.behind[number])
        return None if np.isnan(behind) else behind


def headlines(summary: Summary) -> list[Headline]:
    """The metrics that say something of some conversation, one judge each; no parts, no published variants.

    Of several judges one speaks: the panel; but people and calibrated judges before one that is not calibrated.
    """
    over_groups = {declared.metric for declared in summary.declared if declared.observes == "group"}
    by_key: dict[str, list[Figure]] = {}
    names = {declared.name for declared in summary.declared}
    measured = {figure.key for figure in summary.metrics}
    for figure in summary.figures:
        if parent_metric(figure.metric, names) or figure.variant in PUBLISHED or figure.key not in measured:
            continue
        if not figure.reduction and figure.key not in over_groups:
            by_key.setdefault(figure.key, []).append(figure)
    spoken = (_speaking(summary, figures) for figures in by_key.values())
    return [Headline(one.metric, one.variant, one.judge, one.unit, one.better) for one in spoken]


def _speaking(summary: Summary, figures: Sequence[Figure]) -> Figure:
    """The figure that speaks for a metric. A panel comes after its judges."""
    if len(figures) == 1:
        return figures[0]
    known = [(figure, reliability(summary, figure)) for figure in figures]
    who = speaking_judges(known)
    speaking = [(figure, one is None or one.is_reliable) for figure, one in known if figure.judge in who]
    return max(enumerate(speaking), key=lambda pair: (pair[1][1], pair[0]))[1][0]


@cached_on_argument
def rank(run: Run) -> Ranking:
    """Put the conversations of a run in order, worst first."""
    count = run.summary.conversations
    columns = headlines(run.summary)
    tally = _Tally(count, len(columns))
    with connect(run.folder) as connection:
        valued = with_values(run)
        families = _counting(run, columns, valued)
        marks = _Marks(connection, run)
        for metrics in families.values():
            # One metric after the other, so that no more than one is held at a time.
            tally.add_family(
                len(metrics),
                ([marks.read(code, columns[code]) for code in twins] for twins in metrics.values()),
            )
        counted = {code for metrics in families.values() for twins in metrics.values() for code in twins}
        for code, headline in _with_marks(run, columns, valued):
            if code not in counted:
                tally.add_reasons(marks.missed(code, headline))
        ended = _read_endings(connection, run, count)
        trials: dict[int, Trial] = {}
        is_unknown = ended.outcome == OUTCOMES.index(UNKNOWN)
        # Trials count where the outcome is unknown, and no label puts the conversations in order.
        if run.summary.label is None and is_unknown.any():
            trials = {number: trial for number, trial in read_trials(connection, run).items() if is_unknown[number]}
    behind = tally.behind(len(families))
    # The last key decides first; equals stay in the order of their numbers.
    keys: list[NDArray[Any]] = [-np.nan_to_num(behind, nan=-1.0), -tally.failures]
    if trials:
        disagreement, writes = np.zeros(count), np.zeros(count)
        for number, trial in trials.items():
            disagreement[number], writes[number] = trial.disagreement, trial.writes
        keys += [-writes, -disagreement]
    keys.append(-tally.outcome_failures)
    # A hand-over says nothing about how good a conversation was: it comes among those whose end is not known.
    outcome = ended.outcome.copy()
    outcome[outcome == OUTCOMES.index(HANDED_OVER)] = OUTCOMES.index(UNKNOWN)
    leads = run.summary.label is not None and not run.summary.label.passed and not run.summary.label.failed
    keys += [outcome, ended.label] if leads else [ended.label, outcome]
    order = np.lexsort((*keys, ended.broken))
    return Ranking(
        headlines=columns,
        order=order,
        behind=behind,
        column=tally.column,
        share=tally.share,
        value=tally.value,
        measured=tally.measured,
        errors=ended.errors,
        failure=tally.failure,
        outcome=ended.outcome,
        lost=ended.lost,
        trials=trials,
        basis=_basis(run, ended, trials),
    )


def _counting(
    run: Run, columns: Sequence[Headline], valued: set[tuple[str, str, str]]
) -> Mapping[str, Mapping[str, Sequence[int]]]:
    """The columns that count, by family and metric.

    They are those of `ROUGHNESS`, and those with a target; where a run has none of the first, all. What judges say
    that are not calibrated counts where there is nothing else.
    """
    able = [
        (code, headline)
        for code, headline in enumerate(columns)
        if headline.better != NEITHER and headline[:3] in valued and not _says_again(headline, run.summary, valued)
    ]
    able = [pair for pair in able if not _is_doubtful(run, pair[1])] or able
    if any(headline.key in ROUGHNESS for _, headline in able):
        asked = {kept_target(one).figure for one in run.receipt.config.get("targets", ())}
        asked |= {declared.metric for declared in run.summary.declared if declared.target is not None}
        able = [pair for pair in able if pair[1].key in ROUGHNESS or pair[1].key in asked]
    families: dict[str, dict[str, list[int]]] = {}
    for code, headline in able:
        family = families.setdefault(run.summary.by_key[headline.key].family, {})
        family.setdefault(headline.metric, []).append(code)
    return families


def _with_marks(
    run: Run, columns: Sequence[Headline], valued: set[tuple[str, str, str]]
) -> Iterator[tuple[int, Headline]]:
    """The columns with a pass mark, but for those that say again what others say."""
    for code, headline in enumerate(columns):
        is_held = headline[:3] in valued and run.summary.by_key[headline.key].ten_points is not None
        if is_held and not _is_doubtful(run, headline) and not _says_again(headline, run.summary, valued):
            yield code, headline


def _is_doubtful(run: Run, headline: Headline) -> bool:
    return not run.trusts_judges and is_doubtful(run.summary, headline.key, headline.judge)


def _basis(run: Run, ended: _Endings, trials: Mapping[int, Trial]) -> Basis:
    # A mailbox, a silent caller or a hand-over says nothing about how well others went.
    decided = [OUTCOMES.index(LOST), OUTCOMES.index(DONE)]
    if run.summary.label is not None or np.isin(ended.outcome, decided).any():
        return "outcome"
    return "trials" if any(one.differ for one in trials.values()) else "roughness"


OUTCOME_METRIC = "outcome.success"
"""It says what the outcome says, which comes first anyway."""


def _says_again(headline: Headline, summary: Summary, valued: set[tuple[str, str, str]]) -> bool:
    """Whether others of the run say the same: the metric itself of a variant, or what a derived figure is made of."""
    if headline.key == OUTCOME_METRIC or (headline.variant and headline.metric in summary.by_key):
        return True
    known = {f"{metric}@{variant}" if variant else metric for metric, variant, _ in valued}
    return any(name in known for name in summary.by_key[headline.key].inputs)


class _Column(NamedTuple):
    """What one metric says of the conversations that it was measured in."""

    code: int
    number: NDArray[np.int64]
    value: NDArray[np.float64]
    share: NDArray[np.float64]
    failure: NDArray[np.int8]


class _Marks:
    """Reads what metrics say, and holds it against pass marks and targets."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, run: Run) -> None:
        self._connection = connection
        self._run = run
        self._targets: dict[str, list[FigureTarget]] = {}
        for target in map(kept_target, run.receipt.config.get("targets", ())):
            self._targets.setdefault(target.figure, []).append(target)

    def read(self, code: int, headline: Headline) -> _Column:
        rows = measured_columns(self._run, *headline[:3], columns=("value", "score"))
        number, values, points = np.asarray(rows["number"], dtype=np.int64), rows["value"], rows["score"]
        shares = _better(values if headline.better == HIGHER else -values)
        failure, passes = self._failures(headline, number, values, points)
        return _Column(code, number, values, np.where(passes, 0.0, shares), failure)

    def missed(self, code: int, headline: Headline) -> _Column:
        """Only the values that miss the pass mark."""
        rows = measured_columns(self._run, *headline[:3], columns=("value", "score"))
        mark = self._run.summary.by_key[headline.key].ten_points
        below = rows["score"] < (mark.passes_at if mark is not None else -np.inf)
        number = np.asarray(rows["number"][below], dtype=np.int64)
        failure = np.full(len(number), FAILURES.index("mark"), dtype=np.int8)
        return _Column(code, number, rows["value"][below], np.zeros(len(number)), failure)

    def _failures(
        self, headline: Headline, number: NDArray[np.int64], values: NDArray[np.float64], points: NDArray[np.float64]
    ) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        """How each value fails, and whether it passes whatever it is held against."""
        declared = self._run.summary.by_key[headline.key]
        failure = np.zeros(len(values), dtype=np.int8)
        held = np.zeros(len(values), dtype=np.bool_)
        if _is_doubtful(self._run, headline):
            return failure, held
        if declared.ten_points is not None:
            known = ~np.isnan(points)
            held |= known
            failure[known & (points < declared.ten_points.passes_at)] = FAILURES.index("mark")
        targets = [(one.target, self._members(dict(one.by), number)) for one in self._targets.get(headline.key, ())]
        if not targets and declared.target is not None:
            targets = [(declared.target, self._members({}, number))]
        for target, members in targets:
            held |= members
            missed = np.array([not target.is_met_by(value) for value in values.tolist()], dtype=np.bool_)
            failure[members & missed] = FAILURES.index("target")
        if declared.family == "outcome" and headline.unit == SHARE:
            failure[values == (1.0 if headline.better == LOWER else 0.0)] = FAILURES.index("outcome")
        return failure, held & (failure == 0)

    def _members(self, by: Mapping[str, str], number: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which conversations belong to the group of a target."""
        if not by:
            return np.ones(len(number), dtype=np.bool_)
        where = " AND ".join(f"{dimension_column(name)} = {quoted(value)}" for name, value in by.items())
        query = f"SELECT number FROM {self._run.table(CONVERSATIONS)} WHERE {where}"
        members: NDArray[np.bool_] = np.isin(number, self._connection.execute(query).fetchnumpy()["number"])
        return members


class _Tally:
    """What is known of every conversation while the metrics are gone through, one group of twins after the other."""

    def __init__(self, count: int, columns: int) -> None:
        self.failures, self.outcome_failures = np.zeros(count, dtype=np.int16), np.zeros(count, dtype=np.int16)
        self.column = np.full((REASONS, count), -1, dtype=np.int16)
        self.share, self.value = np.zeros((REASONS, count)), np.zeros((REASONS, count))
        self.failure = np.zeros((REASONS, count), dtype=np.int8)
        self.measured = [0] * columns
        self._squares, self._seen = np.zeros(count), np.zeros(count, dtype=np.bool_)

    def behind(self, families: int) -> NDArray[np.float64]:
        """How far each is behind; not a number where nothing was measured."""
        behind = np.full(len(self._seen), np.nan)
        behind[self._seen] = np.sqrt(self._squares[self._seen] / max(1, families))
        return behind

    def add_family(self, size: int, metrics: Iterable[Sequence[_Column]]) -> None:
        """Count a family once, however many metrics it has: the mean of their squares, and a failure if one fails."""
        failed, outcome_failed = np.zeros_like(self._seen), np.zeros_like(self._seen)
        for twins in metrics:
            number, failure = self._add(twins, 1 / size)
            failed[number] |= failure > 0
            outcome_failed[number] |= failure == FAILURES.index("outcome")
        self.failures += failed
        self.outcome_failures += outcome_failed

    def add_reasons(self, missed: _Column) -> None:
        """Missed marks that the order does not count are reasons, after those that it counts."""
        number, code = missed.number, np.full(len(missed.number), missed.code, dtype=np.int16)
        new: tuple[NDArray[Any], ...] = (code, missed.value, missed.share, missed.failure)
        for index in range(REASONS):
            free = self.column[index, number] < 0
            kept: tuple[NDArray[Any], ...] = (self.column, self.value, self.share, self.failure)
            for array, values in zip(kept, new, strict=True):
                array[index, number[free]] = values[free]
            number, new = number[~free], tuple(values[~free] for values in new)

    def _add(self, twins: Sequence[_Column], weight_in_family: float) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Count variants of one metric once: of each conversation the worst of them. Gives numbers and failures."""
        for column in twins:
            self.measured[column.code] = len(column.number)
            self._seen[column.number] = True
        code = np.repeat(np.array([one.code for one in twins], dtype=np.int16), [len(one.number) for one in twins])
        number, value, share, failure = twins[0][1:]
        if len(twins) > 1:
            number, value, share, failure = (
                np.concatenate(several) for several in zip(*(one[1:] for one in twins), strict=True)
            )
            # The heaviest of each conversation; of equals the metric that comes first.
            order = np.lexsort((code, -(share + failure), number))
            first = order[np.diff(number[order], prepend=-1) != 0]
            code, number, value = code[first], number[first], value[first]
            share, failure = share[first], failure[first]
        self._squares[number] += weight_in_family * share**2
        self._remember(number, (code, value, share, failure))
        return number, failure

    def _remember(self, number: NDArray[np.int64], new: tuple[NDArray[Any], ...]) -> None:
        """Keep the few heaviest of each conversation, heaviest first; earlier metrics win ties."""
        kept: tuple[NDArray[Any], ...] = (self.column, self.value, self.share, self.failure)
        for index in range(REASONS):
            takes = new[2] + new[3] > self.share[index, number] + self.failure[index, number]
            at = number[takes]
            for array, values in zip(kept, new, strict=True):
                for below in range(REASONS - 1, index, -1):
                    array[below, at] = array[below - 1, at]
                array[index, at] = values[takes]
            number, new = number[~takes], tuple(values[~takes] for values in new)


class _Endings(NamedTuple):
    """How conversations ended, by their numbers."""

    outcome: NDArray[np.int8]
    lost: dict[int, str]
    label: NDArray[Any]
    """What a label that is a number is worth, least worst; infinite without one, zero in a run without a label."""
    broken: NDArray[np.bool_]
    errors: dict[int, str]


def _read_endings(connection: duckdb.DuckDBPyConnection, run: Run, count: int) -> _Endings:
    source = run.table(CONVERSATIONS)
    rows = connection.execute(
        f"SELECT (list_position({list(OUTCOMES)}, outcome) - 1)::TINYINT AS outcome FROM {source} ORDER BY number"
    ).fetchnumpy()
    label: NDArray[Any] = np.zeros(count, dtype=np.bool_)
    if run.summary.label is not None:
        labels = connection.execute(f"SELECT TRY_CAST(label AS DOUBLE) AS label FROM {source} ORDER BY number")
        label = np.ma.filled(np.ma.asarray(labels.fetchnumpy()["label"]).astype(np.float64), np.inf)
        if " <" in run.summary.label.label:
            label = np.where(np.isfinite(label), -label, np.inf)
    lost = f"SELECT number, coalesce(outcome_reason, '') FROM {source} WHERE outcome = '{LOST}' ORDER BY number"
    errors = dict(
        connection.execute(f"SELECT number, error FROM {source} WHERE error <> '' ORDER BY number").fetchall()
    )
    broken = np.zeros(count, dtype=np.bool_)
    broken[list(errors)] = True
    outcome = np.asarray(rows["outcome"], dtype=np.int8)
    return _Endings(outcome, dict(connection.execute(lost).fetchall()), label, broken, errors)


def worst(run: Run, limit: int = 10) -> list[RankedConversation]:
    """The first conversations of the ranking, with what puts them there; without those whose integration broke."""
    return worst_and_broken(run, limit).worst


class WorstAndBroken(NamedTuple):
    """The first conversations of the ranking, and apart those whose integration broke."""

    worst: list[RankedConversation]
    broken: list[RankedConversation]


def worst_and_broken(run: Run, limit: int) -> WorstAndBroken:
    """At most `limit` of each."""
    ranking = rank(run)
    first, apart = ranking.whole[:limit].tolist(), ranking.order[len(ranking.whole) :][:limit].tolist()
    return WorstAndBroken(_ranked(run, ranking, first), _ranked(run, ranking, apart))


def _ranked(run: Run, ranking: Ranking, numbers: Sequence[int]) -> list[RankedConversation]:
    """Some conversations with their ranks, in the order given."""
    ids = names(run, numbers)
    return [
        RankedConversation(
            number,
            ids[number],
            ranking.of(number),
            because,
            ranking.errors.get(number, ""),
            OUTCOMES[ranking.outcome[number]],
            ranking.lost.get(number, ""),
            ranking.trials.get(number),
        )
        for number, because in zip(numbers, ranking.because(numbers), strict=True)
    ]


def names(run: Run, numbers: Sequence[int]) -> dict[int, str]:
    """The ids of some conversations, by number."""
    with connect(run.folder) as connection:
        query = f"SELECT number, conversation FROM {run.tables.at(CONVERSATIONS, numbers)}"
        return dict(connection.execute(query).fetchall()) if numbers else {}


def _better(goodness: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each value, the share of all values that are greater by more than the last digits."""
    if not len(goodness):
        return goodness
    size = np.floor(np.log10(np.abs(goodness), out=np.zeros_like(goodness), where=goodness != 0))
    scale = 10.0 ** np.clip(_DIGITS - 1 - size, -300, 300)
    rounded = np.round(goodness * scale) / scale
    greater = len(rounded) - np.searchsorted(np.sort(rounded), rounded, side="right")
    shares: NDArray[np.float64] = greater / len(rounded)
    return shares


class ConversationValue(NamedTuple):
    """A conversation and its own value in one metric."""

    conversation: str
    value: float


def extreme_values(
    run: Run, figure: Figure, direction: Literal["lowest", "highest"], limit: int
) -> list[ConversationValue]:
    """The conversations with the lowest or highest values in the metric of a figure, by the figure's judge."""
    rows = measured_columns(run, figure.metric, figure.variant, figure.judge, columns=("value",))
    values = rows["value"]
    chosen = least(values if direction == "lowest" else -values, limit)
    numbers = rows["number"][chosen].tolist()
    ids = names(run, numbers)
    return [
        ConversationValue(ids[number], value) for number, value in zip(numbers, values[chosen].tolist(), strict=True)
    ]


def least(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The indices of the least values, the least first; of equal ones, the first."""
    chosen = np.arange(len(values))
    if 0 < count < len(values):
        bound = np.partition(values, count - 1)[count - 1]
        below = np.flatnonzero(values < bound)
        chosen = np.concatenate((below, np.flatnonzero(values == bound)[: count - len(below)]))
    ordered: NDArray[np.int64] = chosen[np.argsort(values[chosen], kind="stable")][:count]
    return ordered
