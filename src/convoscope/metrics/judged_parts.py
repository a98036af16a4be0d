"""The parts of the judged measures of calls: how often a failure mode is flagged, how well a kind of entity arrives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from convoscope.conversation import Conversation
from convoscope.judging.backends import YES_NO
from convoscope.judging.yes_no import NO_FORM
from convoscope.metrics.declaration import (
    HIGHER,
    LOWER,
    SHARE,
    SUM_OVER_SUM,
    Better,
    Level,
    Metric,
    axis,
    metric,
)
from convoscope.metrics.judged_calls import (
    Reading,
    RubricAnswer,
    always,
    asking,
    corruptions_of,
    judge_or_label,
    nothing_to_compare,
    rated_dimensions,
    rated_entities,
    rated_turns,
    unfounded_corruption,
)
from convoscope.metrics.verdicts import rater_of, verdict_score
from convoscope.scores.observation import MEASURED, Observation, not_applicable, unmeasured
from convoscope.text.folding import folded_name
from convoscope.views.items import WHOLE, Subject

FAILURE_MODE = axis("failure_mode")
ENTITY_TYPE = axis("entity_type")


def _share(answer: RubricAnswer, kind: Level, name: str, flagged: float, of: float) -> Observation:
    return Observation(
        subject=Subject(kind, name),
        status=MEASURED,
        value=flagged / of,
        numerator=float(flagged),
        denominator=float(of),
        judge=answer.rubric.judge(answer.verdict.judge),
    )


def _dimensions(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """Of each dimension: 1 where it is flagged, else 0. A dimension that could not be rated is left out."""
    rated = rated_dimensions(answer)
    if rated.unfounded is not None:
        yield answer.unfounded(conversation, rated.unfounded)
    for name, dimension in rated.by_name.items():
        yield _share(answer, FAILURE_MODE, name, dimension["flagged"], 1)


def _modes(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """Of each failure mode: the turns that have it ÷ the turns that are rated. A turn with the best rating has none."""
    if answer.form == YES_NO:
        judge = answer.rubric.judge(answer.verdict.judge)
        yield unmeasured(conversation, NO_FORM, "yes/no questions do not name failure modes", judge=judge)
        return
    names = answer.rubric.schema["properties"]["turns"]["items"]["properties"]["failure_modes"]["items"]["enum"]
    counts: Counter[str] = Counter()
    rated = 0
    for number, turn in rated_turns(answer):
        if isinstance(turn, Observation):
            continue
        flagged = turn["rating"] < answer.rubric.high
        if not answer.rests_on(turn["quote"], number, is_best=not flagged):
            continue
        rated += 1
        counts.update(set(turn["failure_modes"]) if flagged else ())
    if not rated:
        yield answer.scored(conversation, None, {})
        return
    for name in names:
        yield _share(answer, FAILURE_MODE, name, counts[name], rated)


def _corruptions(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """Of each kind of fault of the caller: 1 where it is detected, else 0."""
    if (lost := unfounded_corruption(answer)) is not None:
        yield answer.unfounded(conversation, lost)
        return
    detected = corruptions_of(answer)
    for name in answer.rubric.schema["properties"]["corruption_analysis"]["properties"]:
        yield _share(answer, FAILURE_MODE, name, name in detected, 1)


def _types(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """Of each type of entity: those that arrived ÷ those that there are."""
    there: Counter[str] = Counter()
    arrived: Counter[str] = Counter()
    lacking: Observation | None = None
    for _, entities in rated_entities(answer, conversation):
        if isinstance(entities, Observation):
            lacking = lacking or entities
            continue
        for entity in entities:
            name = folded_name(entity["type"])[:60] or "unnamed"
            there[name] += 1
            arrived[name] += entity["correct"]
    for name, count in sorted(there.items()):
        yield _share(answer, ENTITY_TYPE, name, arrived[name], count)
    if not there:
        judge = answer.rubric.judge(answer.verdict.judge)
        yield lacking or not_applicable(WHOLE, "no_entities", judge=judge)


def _part_labels(conversation: Conversation, whole: str, suffix: str, kind: Level) -> Iterator[Observation]:
    """What others said of the same parts: a label `WHOLE.PART_rate` with a value from 0 to 1."""
    seen: Counter[tuple[str, str]] = Counter()
    for label in conversation.labels:
        name = label.name.removeprefix("judged.")
        if not _is_part(name, whole, suffix) or label.subject_kind != "conversation":
            continue
        part = name[len(whole) + 1 : -len(suffix)]
        repeat = seen[part, rater_of(label)]
        seen[part, rater_of(label)] += 1
        score = verdict_score(label, Subject(kind, part), repeat)
        if score.status == MEASURED:
            score = Observation(
                subject=score.subject,
                status=MEASURED,
                value=score.value,
                numerator=score.value,
                denominator=1.0,
                judge=score.judge,
                repeat=repeat,
                details=score.details,
            )
        yield score


def _is_part(name: str, whole: str, suffix: str) -> bool:
    return name.startswith(f"{whole}.") and name.endswith(suffix) and len(name) > len(whole) + 1 + len(suffix)


def _has_part_labels(conversation: Conversation, whole: str, suffix: str) -> bool:
    return any(_is_part(label.name.removeprefix("judged."), whole, suffix) for label in conversation.labels)


def _part_metric(
    whole: str,
    part: str,
    definition: str,
    reading: Reading,
    *,
    kind: Level = FAILURE_MODE,
    suffix: str = "_rate",
    better: Better = LOWER,
    applies: Callable[[Conversation], str] = always,
) -> Metric:
    """Declare a part of a judged metric. It reads the same answer: the judge is not asked again."""
    document = f"""{definition}

    {(reading.__doc__ or "").strip()} It reads the answer that `judged.{whole}` reads. A label `{whole}.NAME{suffix}`
    with a value from 0 to 1 is a verdict too, as other programs write it.

    >>> label = {{"name": "{whole}.any{suffix}", "value": 1, "rater_kind": "external"}}
    >>> value("judged.{whole}.{part}", example("user: Hello?", labels=[label]))
    1.0
    """
    has_labels = partial(_has_part_labels, whole=whole, suffix=suffix)
    labels = partial(_part_labels, whole=whole, suffix=suffix, kind=kind)
    return metric(
        f"judged.{whole}.{part}",
        version=6,
        observes=kind,
        unit=SHARE,
        better=better,
        needs=(judge_or_label(f"{whole}.NAME{suffix}", has_labels),),
        reduce=SUM_OVER_SUM,
        importance=1,
        sensitive_to=(),
    )(asking(whole, reading, labels, document, applies))


faithfulness_flagged = _part_metric(
    "faithfulness", "flagged", "In which ways does the agent leave what it knows?", _dimensions
)
progression_flagged = _part_metric(
    "conversation_progression", "flagged", "In which ways does the agent hold the conversation up?", _dimensions
)
conciseness_flagged = _part_metric(
    "conciseness", "flagged", "In which ways does the agent say too much for an ear?", _modes
)
user_detected = _part_metric(
    "user_behavioral_fidelity", "detected", "In which ways does a simulated caller leave its task?", _corruptions
)
entities_by_type = _part_metric(
    "transcription_accuracy_key_entities",
    "by_type",
    "Which kinds of names, codes and numbers arrive?",
    _types,
    kind=ENTITY_TYPE,
    suffix="_accuracy",
    better=HIGHER,
    applies=nothing_to_compare,
)
