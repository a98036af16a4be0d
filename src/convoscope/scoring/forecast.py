"""What a run will ask its judges, counted before the first question by a judge that only counts."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from convoscope.annotate.annotator import annotated
from convoscope.conversation import Conversation
from convoscope.conversation.annotations import PARTIAL
from convoscope.judging.instrument import AUDIO_NOT_SENT, AUDIO_PRICE_UNKNOWN, CHARACTERS_PER_TOKEN, Instrument
from convoscope.judging.yes_no import form_of
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import Declared
from convoscope.resources.judge import HEARS_NOTHING, Judge, Verdict, judges_of, no_sound
from convoscope.resources.registry import JUDGE
from convoscope.resources.sound import Sound
from convoscope.scoring.evaluate import answered
from convoscope.scoring.profiles import Profiles
from convoscope.scoring.second_look import drawn

ANNOTATES = "--annotate judge"
"""Among the metrics: what the annotator asks."""
_NO_RESOURCES: Mapping[str, Any] = {}
_WITHOUT_SOUND = (HEARS_NOTHING, AUDIO_NOT_SENT, AUDIO_PRICE_UNKNOWN)


class AskedMetric(msgspec.Struct):
    """What one metric will ask of all judges together."""

    metric: str
    conversations: int = 0
    questions: int = 0
    in_cache: int = 0
    input_tokens: int = 0
    """Of questions that are not in the cache, about."""
    dollars: float | None = 0.0
    """None where the price of a judge is unknown, and where sound is sent."""
    clips: int = 0
    """Of questions that are not in the cache: those with a clip of sound."""
    sound_seconds: float = 0.0
    """How long these clips are together."""


class Forecast(msgspec.Struct):
    """What a run will ask, and about what that costs."""

    judges: list[str]
    addresses: list[str]
    redacts: bool
    metrics: list[AskedMetric]
    hidden: dict[str, int] = {}
    """How many mail addresses, phone numbers and the like are taken out."""
    withheld: int = 0
    """Questions in which text that addresses the judge is withheld."""
    without_sound: dict[str, list[str]] = {}
    """Metrics of sound that a judge is not asked about, by the reason code."""
    second_look: str = ""
    """The judge that looks again at a tenth, if one is named; its questions are among `metrics`."""

    @property
    def questions(self) -> int:
        return sum(asked.questions for asked in self.metrics)

    @property
    def to_ask(self) -> int:
        return self.questions - sum(asked.in_cache for asked in self.metrics)

    @property
    def dollars(self) -> float | None:
        costs = [asked.dollars for asked in self.metrics]
        return None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost is not None)

    def json(self) -> dict[str, Any]:
        """For a program."""
        whole: dict[str, Any] = msgspec.to_builtins(self)
        return {**whole, "questions": self.questions, "to_ask": self.to_ask, "dollars": self.dollars}


class _Counting(Judge):
    """Counts what a judge would be asked, and answers with the least that fits."""

    def __init__(
        self, judge: Judge, repeats: int, seen: set[str], seats: int = 1, joint_metrics: Sequence[str] = ()
    ) -> None:
        self._seen = seen
        self.seats, self.joint_metrics = seats, joint_metrics
        self.identity = judge.identity
        self.rubric_folders = getattr(judge, "rubric_folders", ())
        self.form = form_of(judge)
        self.no_sound = no_sound(judge)
        self._judge = judge
        self._repeats = repeats
        self.asked = AskedMetric("")
        self.hidden: dict[str, int] = {}

    async def ask(self, prompt: str, schema: Mapping[str, Any], sound: Sound | None = None) -> Verdict:
        whole = prompt if sound is None else prompt + hashlib.sha256(sound.samples.tobytes()).hexdigest()
        if whole in self._seen:  # metrics that ask the same share one answer
            return Verdict(least(schema), self.identity)
        self._seen.add(whole)
        for repeat in range(self._repeats):
            expected = (
                self._judge.repeated(repeat).expected(prompt, schema, sound)
                if isinstance(self._judge, Instrument)
                else None
            )
            self.asked.questions += 1
            if sound is not None and (expected is None or not expected.is_cached):
                self.asked.clips += 1
                self.asked.sound_seconds += len(sound.samples) / sound.rate
            if expected is None:
                self.asked.dollars = None
                continue
            self.asked.in_cache += expected.is_cached
            for kind, count in expected.hidden.items():
                self.hidden[kind] = self.hidden.get(kind, 0) + (count if not repeat else 0)
            if expected.is_cached:
                continue
            self.asked.input_tokens += expected.characters // CHARACTERS_PER_TOKEN
            price = expected.price
            if price is None or self.asked.dollars is None:
                self.asked.dollars = None
            else:
                self.asked.dollars += price.of(expected.characters // CHARACTERS_PER_TOKEN, expected.answer_tokens)
        return Verdict(least(schema), self.identity)


def least(schema: Any) -> Any:
    """The smallest value that fits a schema of the kind that questions have."""
    if not isinstance(schema, Mapping):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        return {name: least(properties.get(name)) for name in schema.get("required", properties)}
    if kind in ("integer", "number"):
        return schema.get("maximum", schema.get("minimum", 0))
    return {"array": [], "boolean": False, "string": ""}.get(str(kind))


class _CountingAnnotator:
    """Counts what a judge will be asked to annotate conversations."""

    def __init__(self, judge: Judge) -> None:
        from convoscope.annotate.language_model import LanguageModelAnnotator

        self._seen: set[str] = set()
        self.counting = _Counting(judge, 1, self._seen)
        self.counting.asked = AskedMetric(ANNOTATES)
        self.withheld = 0
        self._annotator = LanguageModelAnnotator(self.counting)
        self.close = self._annotator.close

    def annotated(self, conversation: Conversation) -> Conversation:
        """The conversation with annotations that say nothing, but have a summary, which metrics may ask about."""
        self._seen.clear()
        before = self.counting.asked.questions
        annotated_one = annotated(conversation, self._annotator)
        if self.counting.asked.questions == before:
            return annotated_one
        self.counting.asked.conversations += 1
        *given, made = annotated_one.annotations
        self.withheld += PARTIAL in made.extraction.values()
        made = msgspec.structs.replace(made, summary="A summary.")
        return msgspec.structs.replace(annotated_one, annotations=(*given, made))


def forecast(
    conversations: Iterable[Conversation],
    metrics: Sequence[Declared],
    resource: Any,
    repeats: int,
    second_look: Judge | None = None,
    resources: Mapping[str, Any] = _NO_RESOURCES,
    joint_metrics: Sequence[str] = (),
    *,
    annotates: bool = False,
) -> Forecast:
    """What these metrics will ask about these conversations. `resources` are those of the run, by type.

    `annotates`: the first judge also annotates them.
    """
    judges = judges_of(resource)
    profiles = Profiles(metrics, frozenset((*resources, JUDGE)))
    by_metric: dict[str, AskedMetric] = {}
    again: dict[str, list[tuple[str, AskedMetric]]] = {}
    everyone = judges if second_look is None else (*judges, second_look)
    instruments = [one for one in everyone if isinstance(one, Instrument)]
    whole = Forecast(
        judges=[one.identity for one in judges],
        addresses=[one.address for one in instruments],
        redacts=any(one.redacts for one in instruments),
        metrics=[],
        second_look="" if second_look is None else second_look.identity,
    )

    seen: dict[str, set[str]] = {}
    """By judge: what it was asked about the conversation at hand."""
    annotator = _CountingAnnotator(judges[0]) if annotates else None

    async def count_all() -> None:
        for conversation in conversations if annotator is None else map(annotator.annotated, conversations):
            seen.clear()
            for _, declared in profiles.of(conversation).ready:
                if JUDGE in declared.resources.values():
                    await count_questions(declared, conversation)

    async def count_questions(declared: Metric, conversation: Conversation) -> None:
        parameter = next(name for name, asked in declared.resources.items() if asked == JUDGE)
        asked = by_metric.setdefault(declared.key, AskedMetric(declared.key))
        before = asked.questions
        given = {name: resources[type] for name, type in declared.resources.items() if type in resources}
        for judge in judges:
            asks = seen.setdefault(judge.identity, set())
            counting = _Counting(judge, repeats, asks, len(judges), joint_metrics)
            counting.asked = asked
            observations = await answered(declared, conversation, {**given, parameter: counting})
            for reason in {one.reason for one in observations if one.reason in _WITHOUT_SOUND}:
                if declared.key not in whole.without_sound.setdefault(reason, []):
                    whole.without_sound[reason].append(declared.key)
            for kind, number in counting.hidden.items():
                whole.hidden[kind] = whole.hidden.get(kind, 0) + number
            whole.withheld += any((observed.details or {}).get("withheld") for observed in observations)
        asked.conversations += asked.questions > before
        if second_look is not None and asked.questions > before:
            counting = _Counting(second_look, 1, seen.setdefault(f"second look: {second_look.identity}", set()))
            await answered(declared, conversation, {**given, parameter: counting})
            again.setdefault(declared.key, []).append((conversation.id, counting.asked))

    asyncio.run(count_all())
    if annotator is not None:
        by_metric = {ANNOTATES: annotator.counting.asked, **by_metric}
        whole.withheld += annotator.withheld
        whole.hidden = dict(Counter(whole.hidden) + Counter(annotator.counting.hidden))
        annotator.close()
    whole.metrics = [asked for asked in by_metric.values() if asked.questions]
    whole.metrics += [_again(metric, asked) for metric, asked in again.items()]
    return whole


def _again(metric: str, asked: Sequence[tuple[str, AskedMetric]]) -> AskedMetric:
    """What the second look at a tenth of a metric's conversations will ask."""
    chosen = [asked[number][1] for number in drawn({number: id for number, (id, _) in enumerate(asked)})]
    costs = [one.dollars for one in chosen]
    return AskedMetric(
        f"{metric}, second look",
        conversations=len(chosen),
        questions=sum(one.questions for one in chosen),
        in_cache=sum(one.in_cache for one in chosen),
        input_tokens=sum(one.input_tokens for one in chosen),
        clips=sum(one.clips for one in chosen),
        sound_seconds=sum(one.sound_seconds for one in chosen),
        dollars=None if None in costs else sum(cost for cost in costs if cost is not None),
    )
