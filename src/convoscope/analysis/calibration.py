"""A judge compared with people: on labelled calls that it is asked about, and on what it said in a run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np

from convoscope.analysis.agreement import RatedLabel, agreement_of, kappa
from convoscope.analysis.labelled_calls import ENTITIES, CallLabel, LabelledCall, LabelledEntity
from convoscope.analysis.run_labels import RunLabel, RunLabels
from convoscope.errors import UsageError
from convoscope.judging.calibrations import Agreement, FlagCounts
from convoscope.judging.rubrics import Rubric
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import known
from convoscope.resources.judge import Judge, close
from convoscope.runs.database import CONVERSATIONS, connect
from convoscope.runs.reliability import rubrics_of
from convoscope.runs.run import Run
from convoscope.scores.observation import COMPUTED, MEASURED, Observation
from convoscope.scoring.evaluate import answered
from convoscope.statistics.panels import panel
from convoscope.text.folding import folded, visible

NOT_JUDGED = "not_judged"
ENTITY_NOT_FOUND = "entity_not_found"
LEAST_SIMILARITY = 0.6
"""From here on, two spellings of an entity are one."""


def calibrate(judge: Judge, rubric: Rubric, calls: Sequence[LabelledCall]) -> Agreement:
    """Ask a judge about calls that people have labelled, and compare."""
    return calibrate_panel([judge], rubric, calls)[0]


def calibrate_panel(judges: Sequence[Judge], rubric: Rubric, calls: Sequence[LabelledCall]) -> list[Agreement]:
    """The same for several judges, and for the panel that they are."""
    if not rubric.is_main:
        raise UsageError(
            f"the rubric {rubric.name} is not the one that {rubric.measures} asks",
            hint=f"a rubric of your own has the name of the metric: {rubric.measures.partition('.')[2]}",
        )
    return asyncio.run(_calibrated(judges, rubric, calls))


async def _calibrated(judges: Sequence[Judge], rubric: Rubric, calls: Sequence[LabelledCall]) -> list[Agreement]:
    declared = known(rubric.measures)
    assert isinstance(declared, Metric)
    try:
        answers = await asyncio.gather(
            *(answered(declared, call.conversation, {"judge": judge}) for call in calls for judge in judges)
        )
    finally:
        for judge in judges:
            await close(judge)
    by_judge: dict[str, dict[int, dict[str, Observation]]] = {rubric.judge(judge.identity): {} for judge in judges}
    for index in range(len(calls)):
        each = answers[index * len(judges) : (index + 1) * len(judges)]
        for judge, observations in zip(judges, each, strict=True):
            by_judge[rubric.judge(judge.identity)][index] = {one.subject.id: one for one in observations}
        for score in panel([one for observations in each for one in observations], declared):
            by_judge.setdefault(score.judge, {}).setdefault(index, {})[score.subject.id] = score
    return [_agreement(rubric, name, calls, given) for name, given in by_judge.items()]


def _agreement(
    rubric: Rubric, judge: str, calls: Sequence[LabelledCall], given: Mapping[int, Mapping[str, Observation]]
) -> Agreement:
    rated: list[RatedLabel] = []
    flags: Counter[tuple[str, bool, bool]] = Counter()
    for index, call in enumerate(calls):
        by_subject = given.get(index, {})
        for subject, label in call.labels.items():
            observation = by_subject.get(subject) or by_subject.get("")
            pairs = _pairs(rubric, label, observation)
            rated += [pair._replace(cluster=call.cluster, part=call.part) for pair in pairs]
            flags.update(_flagged(label, observation))
    return agreement_of(rubric, judge, rated, flags=_flag_counts(flags))


def _pairs(rubric: Rubric, label: CallLabel, observation: Observation | None) -> Iterator[RatedLabel]:
    """The label and the judge's rating; where entities are labelled, a pair for each of them."""
    if not label.entities:
        yield RatedLabel(label.rating, rating_of(rubric, observation), "", _reason(observation))
        return
    entities = (observation.details or {}).get("entities", []) if observation is not None else []
    is_silent = observation is None or observation.status != MEASURED
    # A turn in which the judge sees no entity is an answer, and a wrong one.
    reason = _reason(observation) if is_silent and _reason(observation) != "no_entities" else ENTITY_NOT_FOUND
    for entity, judged in matched_entities(label.entities, entities):
        correct = None if judged is None else float(bool(judged["correct"]))
        yield RatedLabel(float(entity.is_correct), correct, "", reason)


def rating_of(rubric: Rubric, observation: Observation | None) -> float | None:
    """A judge's score on the scale of the rubric. Of entities, only all of them are 1."""
    if observation is None or observation.status != MEASURED or observation.value is None:
        return None
    if rubric.name == ENTITIES:
        return float(observation.value >= 1)
    return rubric.rating(observation.value)


def _reason(observation: Observation | None) -> str:
    return NOT_JUDGED if observation is None else observation.reason


def matched_entities(
    labelled: Sequence[LabelledEntity], judged: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[LabelledEntity, Mapping[str, Any] | None]]:
    """Each labelled entity with the judge's that is most like it, if any is; none of them twice."""
    likeness = [
        (_likeness(one.value, str(other.get("value", ""))), i, j)
        for i, one in enumerate(labelled)
        for j, other in enumerate(judged)
    ]
    matches: dict[int, int] = {}
    for likely, i, j in sorted(likeness, key=lambda entry: (-entry[0], entry[1], entry[2])):
        if likely > LEAST_SIMILARITY and i not in matches and j not in matches.values():
            matches[i] = j
    for i, entity in enumerate(labelled):
        yield entity, judged[matches[i]] if i in matches else None


def _likeness(first: str, second: str) -> float:
    a, b = (folded(visible(text)).replace(" ", "") for text in (first, second))
    if not a or not b:
        return 0.0
    return 1.0 if a in b or b in a else SequenceMatcher(None, a, b).ratio()


def _flagged(label: CallLabel, observation: Observation | None) -> Iterator[tuple[str, bool, bool]]:
    """For each kind of fault: whether people flag it, and whether the judge does."""
    details = observation.details if observation is not None and observation.status == MEASURED else None
    if label.flags is None or details is None:
        return
    if isinstance(details.get("dimensions"), Mapping):
        judged = {name for name, dimension in details["dimensions"].items() if dimension["flagged"]}
    elif "failure_modes" in details:
        judged = set(details["failure_modes"])
    else:
        return
    for name in sorted(label.flags | judged):
        yield name, name in label.flags, name in judged


def _flag_counts(flags: Mapping[tuple[str, bool, bool], int]) -> dict[str, FlagCounts]:
    names = sorted({name for name, _, _ in flags})
    return {
        name: FlagCounts(
            flags.get((name, True, True), 0), flags.get((name, True, False), 0), flags.get((name, False, True), 0)
        )
        for name in names
    }


class PeopleAgreement(NamedTuple):
    """How far people agree with each other about a rubric, over what two of them labelled."""

    rubric: str
    labels: int
    accuracy: float
    kappa: float | None


class RunCalibration(NamedTuple):
    """The judges of a run compared with labels of its conversations."""

    judges: list[Agreement]
    """One for each judge and judged metric of the run; without labels, one of no labels."""
    people: list[PeopleAgreement]
    raters: int
    used: int
    """Labels that speak of something in the run."""
    left_out: dict[str, int]
    """Labels that do not, by reason."""


def calibrate_run(run: Run, labels: RunLabels, rubrics: Mapping[str, Rubric] | None = None) -> RunCalibration:
    """Compare what judges said in a run with labels of its conversations. Nothing is asked."""
    clusters = _clusters(run)
    left_out = Counter(labels.left_out)
    by_rubric: dict[str, list[RunLabel]] = {}
    for label in labels.labels:
        if label.conversation not in clusters:
            left_out["conversation is not in the run"] += 1
        else:
            by_rubric.setdefault(label.rubric, []).append(label)
    judges: list[Agreement] = []
    people: list[PeopleAgreement] = []
    for rubric in (rubrics if rubrics is not None else rubrics_of(run.summary)).values():
        by_judge = scores_by_judge(run, rubric)
        given = by_rubric.get(rubric.name, [])
        if not rubric.is_main and not given:
            continue  # another rubric has the name of the metric
        if not by_judge and given:
            left_out[f"no judge was asked about {rubric.name}"] += len(given)
            del by_rubric[rubric.name]
            continue
        if (among := people_agreement(rubric, given)) is not None:
            people.append(among)
        ratings = people_ratings(given)
        for judge, scores in by_judge.items():
            pairs = [
                RatedLabel(rating, rating_of(rubric, scores.get(key)), clusters[key[0]], _reason(scores.get(key)))
                for key, rating in ratings.items()
            ]
            judges.append(agreement_of(rubric, judge, pairs))
    used = [label for given in by_rubric.values() for label in given]
    if not judges:
        raise UsageError(f"no judge was asked in {run.folder}", hint="score the logs with --judge")
    raters = {label.rater for label in used}
    return RunCalibration(judges, people, len(raters), len(used), dict(left_out))


def _clusters(run: Run) -> dict[str, str]:
    """What is independent: the scenario of a conversation, else the conversation itself."""
    with connect(run.folder) as connection:
        rows = connection.execute(f"SELECT conversation, scenario_id FROM {run.table(CONVERSATIONS)}").fetchall()
    return {id: f"scenario {scenario}" if scenario else f"conversation {id}" for id, scenario in rows}


Key = tuple[str, str]
"""A conversation, and the turn in it; "" for the whole."""


def scores_by_judge(run: Run, rubric: Rubric) -> dict[str, dict[Key, Observation]]:
    """What each judge said of the metric of a rubric. Labels that came with the logs are of people, not of a judge."""
    by_judge: dict[str, dict[Key, Observation]] = {}
    if rubric.measures not in run.summary.by_key:
        return by_judge
    for score in run.scores(rubric.measures):
        if score.judge != COMPUTED and not score.judge.startswith("human:"):
            by_judge.setdefault(score.judge, {})[score.conversation, score.subject.id] = score.observation
    return by_judge if not rubric.shape else {judge: _of_only_items(scores) for judge, scores in by_judge.items()}


def _of_only_items(scores: Mapping[Key, Observation]) -> dict[Key, Observation]:
    """Scores of items; of a conversation with one item, its score is that of the conversation, as labels name it."""
    counts = Counter(conversation for conversation, _ in scores)
    return {
        (conversation, subject if counts[conversation] > 1 else ""): score
        for (conversation, subject), score in scores.items()
    }


def people_ratings(labels: Iterable[RunLabel]) -> dict[Key, float]:
    """One rating for each conversation or turn: of several people the middle one, of two the lower."""
    given: dict[Key, list[float]] = {}
    for label in labels:
        given.setdefault((label.conversation, label.turn), []).append(label.rating)
    return {key: sorted(ratings)[(len(ratings) - 1) // 2] for key, ratings in given.items()}


def people_agreement(rubric: Rubric, labels: Iterable[RunLabel]) -> PeopleAgreement | None:
    """How far the first two people who labelled the same thing agree; None where no thing has two labels."""
    given: dict[Key, dict[str, float]] = {}
    for label in labels:
        given.setdefault((label.conversation, label.turn), {})[label.rater] = label.rating
    confusion = np.zeros((len(rubric.ratings),) * 2, dtype=np.int64)
    for by_rater in given.values():
        if len(by_rater) > 1:
            first, second = (rubric.ratings.index(int(by_rater[name])) for name in sorted(by_rater)[:2])
            confusion[first, second] += 1
    count = int(confusion.sum())
    return PeopleAgreement(rubric.name, count, float(np.trace(confusion) / count), kappa(confusion)) if count else None
