"""Each figure in each night: its value and interval, and what each conversation adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from convoscope.analysis.answer.differences import comparable, version_names
from convoscope.analysis.answer.figures import TWINS
from convoscope.analysis.answer.samples import Samples, wait_units
from convoscope.analysis.history.nights import Rows, RunNight
from convoscope.metrics.declaration import SECONDS
from convoscope.runs.database import SCORES, connect, quoted
from convoscope.runs.dimensions import Dimension
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.run import Run
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.scores.judges import PANEL
from convoscope.scores.observation import MEASURED
from convoscope.scores.reducers import ACROSS, Sums
from convoscope.statistics.differences import Codes, FigureSample, Floats
from convoscope.statistics.intervals import Interval, percentile, percentile_interval, ratio_interval
from convoscope.statistics.summary import Figure, is_bounded, least_value, most_value

PERCENTILES = {"p50": 50.0, "p95": 95.0}
"""Of waits, which have long tails: the middle and the slowest, and no mean."""
_ONCE = 1 << 40
"""From here on, numbers of clusters that come in one night alone."""


class FigureKey(NamedTuple):
    """A figure over all nights, by any judge."""

    key: str
    """The metric with its variant."""
    reduction: str = ""

    @property
    def name(self) -> str:
        return f"{self.key} {self.reduction}" if self.reduction else self.key


class Identity(NamedTuple):
    """What must be the same in two nights for a figure to be the same measure."""

    judge: str
    version: int
    label: str
    """The user's own verdict, where the outcome is by it."""


class FigureNight(NamedTuple):
    """A figure in one night."""

    value: float
    interval: Interval | None
    n: int
    conversations: int
    identity: Identity
    clusters: Codes
    """Of each conversation; of a percentile, of each subject."""
    above: Floats
    below: Floats
    """Of a percentile: the values, and ones."""
    numbers: Codes
    """The conversations, by their number in the run."""

    def at(self, rows: Rows) -> FigureNight:
        """Some of the rows; value and interval stay those of the night."""
        parts = {name: getattr(self, name)[rows] for name in ("clusters", "above", "below", "numbers")}
        return self._replace(**parts)


class NightData(NamedTuple):
    """What a night adds to the history."""

    night: RunNight
    figures: Mapping[FigureKey, FigureNight]
    versions: Mapping[str, Mapping[str, float]]
    """By dimension: the share of the conversations that each version has."""
    version_rows: Mapping[str, Dimension]
    scenarios: Mapping[int, int]
    """Conversations of each scenario, by its code."""


class ClusterCodes:
    """One number for each scenario and user, over all nights."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, ...], int] = {}

    def of(self, name: tuple[str, ...]) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def rows(self, samples: Samples, run: int) -> tuple[Codes, Codes]:
        """The cluster of each conversation, and its scenario; -1 for none. `run`: the number of the run.

        What is independent is the scenario, else the user, else the conversation.
        """
        scenarios = np.full(samples.count, -1, dtype=np.int64)
        known = samples.scenarios >= 0
        if known.any():
            parts = [samples.dimension(name) for name in ("dataset", "domain", "scenario_id")]
            _, first, inverse = np.unique(samples.scenarios[known], return_index=True, return_inverse=True)
            rows = np.flatnonzero(known)[first]
            names = [tuple(_value(part, row) for part in parts) for row in rows.tolist()]
            scenarios[known] = np.array([self.of(("scenario", *name)) for name in names], dtype=np.int64)[inverse]
        clusters = np.where(known, scenarios, _ONCE * (run + 1) + np.arange(samples.count))
        users = samples.users
        if users.max(initial=-1) >= 0:
            by_user = np.array([self.of(("user", name)) for name in samples.user_names.values], dtype=np.int64)
            clusters = np.where(~known & (users >= 0), by_user[users], clusters)
        return clusters.astype(np.int64), scenarios


def _value(dimension: Dimension, row: int) -> str:
    code = int(dimension.codes[row])
    return dimension.values[code] if code >= 0 else ""


def family(summaries: Sequence[Summary], targeted: Sequence[str]) -> dict[FigureKey, DeclaredMetric]:
    """The figures that changes are looked for in: by what they are, never by their values.

    Headlines with a direction that matter, of waits the median and the slowest; one of those that move together; and
    what has a target.
    """
    nights: dict[str, int] = {}
    declared: dict[str, DeclaredMetric] = {}
    for summary in summaries:
        for key in {figure.key for figure, _ in comparable(summary)}:
            nights[key] = nights.get(key, 0) + 1
            declared[key] = summary.by_key[key]
    spoken: dict[object, str] = {}
    for key in sorted(nights, key=lambda one: (-nights[one], -declared[one].importance, one)):
        spoken.setdefault(next((twins for twins in TWINS if key in twins), key), key)
    chosen: dict[FigureKey, DeclaredMetric] = {}
    for key in sorted(spoken.values(), key=lambda one: (-declared[one].importance, one)):
        reductions = [name for name in PERCENTILES if name in declared[key].also]
        if declared[key].unit == SECONDS and reductions:
            chosen |= {FigureKey(key, name): declared[key] for name in reductions}
        elif declared[key].reduce.across in ACROSS:
            chosen[FigureKey(key)] = declared[key]
    for name in targeted:
        key, _, reduction = name.partition(" ")
        metric = next((one.by_key[key] for one in reversed(summaries) if key in one.by_key), None)
        is_ratio = metric is not None and not reduction and metric.reduce.across in ACROSS
        if metric is not None and (is_ratio or reduction in PERCENTILES) and metric.observes != "group":
            chosen.setdefault(FigureKey(key, reduction), metric)
    return chosen


class NightReader:
    """Reads nights. Days of one run share what was read of it; of other runs nothing is kept."""

    def __init__(self, keys: Sequence[FigureKey]) -> None:
        self._keys = keys
        self._codes = ClusterCodes()
        self._runs = 0
        self._open: _OpenRun | None = None

    def read(self, night: RunNight) -> NightData:
        """Everything that the history needs of a night, so that the run itself can be left."""
        if self._open is None or self._open.run is not night.run:
            self._open = _OpenRun(night.run, self._codes, self._runs)
            self._runs += 1
        run, rows = self._open, night.rows
        figures = {key: made for key in self._keys if (made := run.figure(key, rows)) is not None}
        total = int(rows.sum())
        versions: dict[str, dict[str, float]] = {}
        for name, dimension in run.versions.items():
            counts = np.bincount(dimension.codes[rows] + 1, minlength=len(dimension.values) + 1)[1:]
            versions[name] = dict(zip(dimension.values, (counts / total).tolist(), strict=True))
        values, counts = np.unique(run.scenarios[rows & (run.scenarios >= 0)], return_counts=True)
        by_scenario = dict(zip(values.tolist(), counts.tolist(), strict=True))
        return NightData(night, figures, versions, run.versions, by_scenario)


class _OpenRun:
    """What was read of one run."""

    def __init__(self, run: Run, codes: ClusterCodes, number: int) -> None:
        self.run = run
        self._samples = Samples(run)
        self._clusters, self.scenarios = codes.rows(self._samples, number)
        self._has_two_units = wait_units(run.summary, self._samples).are_two
        names = version_names(self._samples.dimension_names)
        dimensions = {name: self._samples.dimension(name) for name in names}
        self.versions = {name: one for name, one in dimensions.items() if one.values}
        self._subjects: dict[FigureKey, tuple[Codes, Floats]] = {}

    def figure(self, key: FigureKey, rows: Rows) -> FigureNight | None:
        """A figure over some conversations; None where they have no value."""
        summary = self.run.summary
        headline = _headline(summary, key)
        if headline is None or (self._has_two_units and headline.unit == SECONDS):
            return None
        declared = summary.by_key[key.key]
        identity = Identity(headline.judge, declared.version, _label(summary, key))
        if key.reduction:
            return self._percentile(headline, key, identity, rows)
        return _ratio(self._samples, rows, headline, declared, identity, self._clusters)

    def _percentile(self, figure: Figure, key: FigureKey, identity: Identity, rows: Rows) -> FigureNight | None:
        if key not in self._subjects:
            self._subjects[key] = _subjects(self.run, figure)
        number, values = self._subjects[key]
        inside = rows[number]
        number, values = number[inside], values[inside]
        if not len(values):
            return None
        clusters, q = self._clusters[number], PERCENTILES[key.reduction]
        return FigureNight(
            percentile(values, q),
            percentile_interval(values, clusters, q),
            len(values),
            len(np.unique(number)),
            identity,
            clusters,
            values,
            np.ones_like(values),
            number,
        )


def _subjects(run: Run, figure: Figure) -> tuple[Codes, Floats]:
    """The values of all subjects, each with the number of its conversation."""
    fields = (("metric", figure.metric), ("variant", figure.variant), ("judge", figure.judge), ("status", MEASURED))
    where = " AND ".join(f"{name} = {quoted(value)}" for name, value in fields)
    with connect(run.folder) as connection:
        query = f"SELECT number, value FROM {run.table(SCORES)} WHERE {where} ORDER BY number, position"
        rows = connection.execute(query).fetchnumpy()
    return np.asarray(rows["number"], dtype=np.int64), np.asarray(rows["value"], dtype=np.float64)


def _headline(summary: Summary, key: FigureKey) -> Figure | None:
    """The headline behind a figure: of several judges the panel's, else the last one's."""
    headlines = [one for one in summary.metrics if one.key == key.key and not one.reduction and one.value is not None]
    return next((one for one in headlines if one.judge.startswith(PANEL)), headlines[-1] if headlines else None)


def _label(summary: Summary, key: FigureKey) -> str:
    return summary.label.label if summary.label is not None and key.key == OUTCOME_METRIC else ""


def _ratio(
    samples: Samples, rows: Rows, figure: Figure, declared: DeclaredMetric, identity: Identity, clusters: Codes
) -> FigureNight | None:
    sample: FigureSample | None = samples.of(figure)
    if sample is None:
        return None
    chosen = np.flatnonzero(rows & (sample.below > 0))
    above, below = sample.above[chosen], sample.below[chosen]
    if not len(chosen):
        return None
    sums = Sums("", above, below)
    bounded = is_bounded(declared.unit, declared.better, sums)
    least, most = least_value(declared.unit), most_value(declared.unit)
    interval = ratio_interval(sums, clusters[chosen], bounded=bounded, least=least, most=most)
    n = int(below.sum()) if declared.reduce.across != "mean_of_conversations" else len(chosen)
    value = float(above.sum() / below.sum())
    return FigureNight(value, interval, n, len(chosen), identity, clusters[chosen], above, below, chosen)


def version_dimension(nights: Sequence[NightData]) -> str:
    """The dimension that names the version: the first that ever changes, else the first that there is."""
    names = list(dict.fromkeys(name for one in nights for name in one.versions))
    names.sort(key=lambda one: version_names(names).index(one))

    def values(name: str) -> Iterator[str]:
        return (value for one in nights for value, share in one.versions.get(name, {}).items() if share)

    return next((name for name in names if len(set(values(name))) > 1), names[0] if names else "")
