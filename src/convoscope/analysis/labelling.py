"""Which judgements of a run are worth a label of a person: where judges disagree, where one wavers, and a random share.

Without the random share, how far a judge agrees with people would be known for the hard cases only.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from convoscope.analysis.agreement import whole_rating
from convoscope.analysis.calibration import Key, rating_of, scores_by_judge
from convoscope.errors import UsageError
from convoscope.judging.rubrics import Rubric, rubric_among
from convoscope.metrics.declaration import EVENT, TURN, Metric
from convoscope.metrics.registry import known as known_metric
from convoscope.runs.reliability import rubrics_of
from convoscope.runs.run import Run
from convoscope.scores.observation import Observation

COUNT = 30
DISAGREE = "the judges disagree"
WAVER = "the repeats are on both sides of the mark"
AT_RANDOM = "drawn at random"
RANDOM_SHARE = 1 / 3
_PANEL = "panel:"


class SheetRow(NamedTuple):
    """One question to a person: a conversation or a turn of it, by one rubric."""

    conversation: str
    turn: str
    """The id of the turn; "" for the whole."""
    rubric: Rubric
    chosen: str
    """Why it is worth a label."""
    verdicts: str
    """What the judges say, to be shown after the label was given."""


def choose_rows(
    run: Run,
    count: int = COUNT,
    *,
    seed: int = 0,
    names: Sequence[str] = (),
    folders: tuple[str, ...] = (),
    without: Collection[tuple[str, str, str]] = (),
) -> list[SheetRow]:
    """So many rows, spread evenly over the rubrics; `without` are conversations, turns and rubrics labelled already.

    The same run, count and seed give the same rows.
    """
    known = rubrics_of(run.summary, folders)
    # No sheet has sound.
    wanted = [rubric_among(known, name) for name in names] or [one for one in known.values() if not one.is_heard]
    judged = {rubric.name: by_subject for rubric in wanted if (by_subject := _by_subject(run, rubric))}
    if not judged:
        hint = (
            "no judge answered about it; leave out --rubric" if names else "score the logs with a --judge that answers"
        )
        raise UsageError(f"{run.folder} has nothing to label", hint=hint)
    rows: list[SheetRow] = []
    for index, (name, by_subject) in enumerate(judged.items()):
        share = count // len(judged) + (index < count % len(judged))
        left = {key: scores for key, scores in by_subject.items() if (*key, name) not in without}
        rows += _chosen(known[name], left, share, random.Random(f"{seed} {name}"))
    if not rows:
        raise UsageError("all judgements of the run are labelled", hint="leave out --labels to label them again")
    # What is asked about one conversation comes together; the order of conversations says nothing.
    order = list(dict.fromkeys(row.conversation for row in rows))
    random.Random(f"{seed}").shuffle(order)
    return sorted(rows, key=lambda row: (order.index(row.conversation), row.rubric.name, row.turn.zfill(6)))


Scores = Mapping[str, Observation]
"""What each judge says of one subject."""


def _by_subject(run: Run, rubric: Rubric) -> dict[Key, dict[str, Observation]]:
    """All that judges answered about; what none of them gave a usable answer to calibrates nothing."""
    by_subject: dict[Key, dict[str, Observation]] = {}
    for judge, scores in scores_by_judge(run, rubric).items():
        for key, observation in scores.items():
            is_subject = _can_be_rated(rubric, key[1]) and observation.status != "not_applicable"
            if is_subject and not judge.startswith(_PANEL):
                by_subject.setdefault(key, {})[judge] = observation
    return {
        key: scores
        for key, scores in by_subject.items()
        if any(rating_of(rubric, one) is not None or repeats_of(rubric, one) for one in scores.values())
    }


def _can_be_rated(rubric: Rubric, subject: str) -> bool:
    """Whether a sheet can show a person this subject: a turn, an item, or the whole; not one tool call of several."""
    declared = known_metric(rubric.measures)
    observes = declared.observes if isinstance(declared, Metric) else ""
    if rubric.shape:
        return not subject or observes != EVENT
    return bool(subject) == (observes == TURN)


def _chosen(rubric: Rubric, judged: Mapping[Key, Scores], count: int, chance: random.Random) -> list[SheetRow]:
    """A third at random among all, then the hardest of the others; where those are few, more at random."""
    keys = sorted(judged)
    chance.shuffle(keys)
    fair = keys[: max(1, round(count * RANDOM_SHARE))] if count else []
    queues = []
    for spread_of, why in ((disagreement, DISAGREE), (wavering, WAVER)):
        spreads = {key: spread for key in keys if key not in fair and (spread := spread_of(rubric, judged[key]))}
        queues.append([(key, why) for key in sorted(spreads, key=lambda key: -spreads[key])])
    # By turns, so that many of one kind leave room for the other.
    hard: dict[Key, str] = {}
    for pair in chain.from_iterable(zip_longest(*queues)):
        if pair is not None:
            hard.setdefault(*pair)
    chosen = dict.fromkeys(fair, AT_RANDOM) | dict(list(hard.items())[: max(0, count - len(fair))])
    chosen |= {key: AT_RANDOM for key in keys if key not in chosen}
    return [
        SheetRow(*key, rubric, why, verdicts_text(rubric, judged[key])) for key, why in list(chosen.items())[:count]
    ]


def disagreement(rubric: Rubric, scores: Scores) -> float:
    """How far judges are apart, in ratings."""
    ratings = [rating for one in scores.values() if (rating := rating_of(rubric, one)) is not None]
    return max(ratings, default=0.0) - min(ratings, default=0.0)


def wavering(rubric: Rubric, scores: Scores) -> float:
    """How far the repeats of one judge are apart, where the pass mark is between them."""
    each = [repeats_of(rubric, observation) for observation in scores.values()]
    return max((max(one) - min(one) for one in each if one and min(one) < rubric.passes_at <= max(one)), default=0.0)


def repeats_of(rubric: Rubric, observation: Observation) -> list[float]:
    """What a judge said each time that it was asked, on the scale of the rubric."""
    values = (observation.details or {}).get("repeats")
    numbers = [value for value in values if isinstance(value, int | float)] if isinstance(values, list) else []
    return [rubric.rating(value) for value in numbers]


def verdicts_text(rubric: Rubric, scores: Scores) -> str:
    """`openai/tiny 2; openai/small no answer`."""
    texts = []
    for judge, observation in sorted(scores.items()):
        rating, repeats = rating_of(rubric, observation), repeats_of(rubric, observation)
        shown = "no answer" if rating is None else f"{whole_rating(rubric, rating):g}"
        shown += f" ({', '.join(f'{one:g}' for one in repeats)})" if repeats else ""
        texts.append(f"{judge.partition('@')[0]} {shown}")
    return "; ".join(texts)
