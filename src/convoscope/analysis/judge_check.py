"""Can a model do the job? Each rubric is asked about good and bad calls that were written for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec
import yaml

from convoscope.analysis.perturbations import parrot, random_words, saying
from convoscope.conversation import Conversation
from convoscope.judging.rubrics import NONSENSE, Rubric, rubrics
from convoscope.metrics.declaration import Metric
from convoscope.metrics.examples import example
from convoscope.metrics.perturbations import PARROT, RANDOM_WORDS
from convoscope.metrics.registry import known
from convoscope.resources.judge import Judge, close
from convoscope.scores.observation import MEASURED, Observation
from convoscope.scoring.evaluate import answered
from convoscope.views.standard_data.canonical import to_conversation
from convoscope.views.standard_data.tidy import tidy

OTHER_ANSWER = "other_answer"


class CheckedPair(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge says of a good call and of the same call gone bad."""

    rubric: str
    about: str
    good: float | None
    """The value from 0 to 1; None where there is none."""
    bad: float | None
    passes_at: float
    best: float = 1.0
    reason: str = ""
    """Why there is no value."""
    detail: str = ""
    """More on that, in words."""

    @property
    def is_ordered(self) -> bool:
        """The good call is rated above the bad one."""
        return self.good is not None and self.bad is not None and self.good > self.bad

    @property
    def is_right(self) -> bool:
        """And the good call passes, and the bad one does not get the best rating."""
        return self.is_ordered and self.good is not None and self.good >= self.passes_at and self.bad != self.best


class CheckedRubric(msgspec.Struct, frozen=True):
    """How a judge does on all pairs of a rubric."""

    rubric: str
    title: str
    pairs: int
    right: int
    ordered: int
    same: int
    """Pairs of which both calls get the same rating."""
    unanswered: int
    guess: float
    """Of the pairs with an answer, those that random ratings are right about on average."""


class CheckTotal(NamedTuple):
    """How a judge does on all pairs of all rubrics."""

    right: int
    pairs: int
    unanswered: int
    guess: float


class WrittenPair(msgspec.Struct, frozen=True, kw_only=True):
    """A good call and a bad one, as lines."""

    about: str
    good: list[str] | dict[str, Any]
    """Lines of a call; of an evaluation item, its fields."""
    bad: list[str] | dict[str, Any]
    item: dict[str, Any] = {}
    """Fields that both items have."""
    instructions: str = ""
    goal: dict[str, Any] | None = None
    pipeline: str = ""
    reference: str = ""
    good_summary: str = ""
    bad_summary: str = ""

    def conversation(self, which: str) -> Conversation:
        written = self.good if which == "good" else self.bad
        if isinstance(written, dict):
            return to_conversation([tidy({**self.item, **written})], id=f"{self.about}-{which}")
        fields: dict[str, Any] = {"agent": {"instructions": self.instructions}} if self.instructions else {}
        if self.goal is not None:
            fields["scenario"] = {"goal": self.goal}
        if self.pipeline:
            fields["pipeline"] = self.pipeline
        if self.reference:
            made = self.good_summary if which == "good" else self.bad_summary
            both = {"gold": self.reference, "predicted": made}
            fields["annotations"] = [{"origin": origin, "summary": text} for origin, text in both.items()]
        return example(*(_event(line) for line in written), id=f"{self.about}-{which}", **fields)

    def nonsense(self, kind: str, other: WrittenPair) -> Conversation:
        """The good call with a reply, or a summary, that is nonsense. `other` is another pair of the rubric."""
        good = self.conversation("good")
        if kind == OTHER_ANSWER and self.good_summary:
            return msgspec.structs.replace(self, good_summary=other.good_summary).conversation("good")
        if kind == OTHER_ANSWER:
            [answered], [others] = good.items, other.conversation("good").items
            texts = {one.seq: one.meant() for one in other.conversation("good").utterances}
            assert answered.answered is not None
            assert others.answered is not None
            return saying(good, {answered.answered: texts[others.answered]})
        if self.good_summary and kind == RANDOM_WORDS:
            [letters] = random_words(example(f"assistant: {self.good_summary}", id=self.about)).utterances
            return msgspec.structs.replace(self, good_summary=letters.meant()).conversation("good")
        return {PARROT: parrot, RANDOM_WORDS: random_words}[kind](good)


def _event(line: str) -> str | Mapping[str, Any]:
    intended, bars, heard = line.partition("||")
    if not bars:
        return line
    speaker, _, text = intended.partition(":")
    texts = {"intended": {"text": text.strip()}, "heard": {"text": heard.strip()}}
    return {"type": "utterance", "speaker": speaker.strip(), **texts}


def pairs_of(rubric: str) -> list[WrittenPair]:
    """The pairs that were written for a rubric; none for a rubric of the user's own with another name."""
    folder = files("convoscope.judging").joinpath("pairs")
    file = (folder.joinpath("items") if "." in rubric else folder).joinpath(f"{rubric}.yaml")
    return (
        msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), list[WrittenPair]) if file.is_file() else []
    )


def check_judge(
    judge: Judge,
    names: Sequence[str] = (),
    folders: tuple[str, ...] = (),
    progress: Callable[[int, int], None] | None = None,
) -> list[CheckedPair]:
    """Ask a judge about all pairs of the rubrics that are named, or of all. `progress` gets calls done, and all."""
    chosen = [rubric for name, rubric in rubrics(folders).items() if not names or name in names]

    async def asked() -> list[CheckedPair]:
        try:
            return await _checked(judge, chosen, progress)
        finally:
            await close(judge)

    return asyncio.run(asked())


async def _checked(
    judge: Judge, chosen: Sequence[Rubric], progress: Callable[[int, int], None] | None
) -> list[CheckedPair]:
    written = [
        (rubric, pair.about, pair.conversation("good"), pair.conversation("bad"))
        for rubric in chosen
        for pair in pairs_of(rubric.name)
    ]
    made = [case for rubric in chosen for case in nonsense_of(rubric)]
    asked = [*written, *made]
    done = 0

    async def value(rubric: Rubric, call: Conversation) -> _Value:
        nonlocal done
        rated = await _value(judge, rubric, call)
        done += 1
        if progress is not None:
            progress(done, 2 * len(asked))
        return rated

    values = await asyncio.gather(*(value(rubric, call) for rubric, _, good, bad in asked for call in (good, bad)))
    lacking = [
        next((value for value in values[at : at + 2] if value.reason), values[at]) for at in range(0, len(values), 2)
    ]
    return [
        CheckedPair(
            rubric=rubric.name,
            about=about,
            good=values[2 * index].value,
            bad=values[2 * index + 1].value,
            passes_at=rubric.value(rubric.passes_at),
            best=rubric.value(rubric.high),
            reason=lacking[index].reason,
            detail=lacking[index].detail,
        )
        for index, (rubric, about, _, _) in enumerate(asked)
    ]


def nonsense_of(rubric: Rubric) -> list[tuple[Rubric, str, Conversation, Conversation]]:
    """A good call, and the same call as nonsense, of each kind that the rubric names."""
    pairs = pairs_of(rubric.name)
    return [_made(rubric, kind, pairs) for kind in (rubric.sensitive_to if pairs else ())]


def _made(rubric: Rubric, kind: str, pairs: Sequence[WrittenPair]) -> tuple[Rubric, str, Conversation, Conversation]:
    """Of the first pair whose good call the nonsense changes: an agent that speaks first has no words to repeat."""
    made = ((pair.conversation("good"), pair.nonsense(kind, pairs[at - 1])) for at, pair in enumerate(pairs))
    good, bad = next((good, bad) for good, bad in made if good != bad)
    return rubric, NONSENSE[kind], good, bad


class _Value(NamedTuple):
    """What a judge says of a call, or why it says nothing."""

    value: float | None
    reason: str = ""
    detail: str = ""


async def _value(judge: Judge, rubric: Rubric, conversation: Conversation) -> _Value:
    """The value of a call: of several turns, the lowest."""
    declared = known(rubric.measures)
    assert isinstance(declared, Metric)
    observations: Sequence[Observation] = await answered(declared, conversation, {"judge": judge})
    lacking = next((one for one in observations if one.status != MEASURED), None)
    if lacking is not None:
        return _Value(None, lacking.reason, lacking.detail)
    if not observations:
        return _Value(None, "nothing_to_observe")
    return _Value(min(one.value for one in observations if one.value is not None))


def by_rubric(pairs: Sequence[CheckedPair], folders: tuple[str, ...] = ()) -> list[CheckedRubric]:
    """How a judge does, rubric by rubric."""
    return [
        _of_rubric(rubric, of_rubric)
        for name, rubric in rubrics(folders).items()
        if (of_rubric := [pair for pair in pairs if pair.rubric == name])
    ]


def of_all(checked: Sequence[CheckedRubric]) -> CheckTotal:
    """All rubrics together. A pair without an answer is one that the judge was not right about."""
    return CheckTotal(
        sum(one.right for one in checked),
        sum(one.pairs for one in checked),
        sum(one.unanswered for one in checked),
        sum(one.guess for one in checked),
    )


def _of_rubric(rubric: Rubric, pairs: Sequence[CheckedPair]) -> CheckedRubric:
    # Of k ratings by chance, k × (k - 1) / 2 of the k × k pairs are in the right order.
    # A share has many values; a judge with random verdicts is half of the time on the right side.
    ratings = rubric.high - rubric.low + 1
    answered_pairs = [pair for pair in pairs if not pair.reason]
    return CheckedRubric(
        rubric.name,
        rubric.title,
        len(pairs),
        right=sum(pair.is_right for pair in pairs),
        ordered=sum(pair.is_ordered for pair in pairs),
        same=sum(pair.good == pair.bad for pair in answered_pairs),
        unanswered=len(pairs) - len(answered_pairs),
        guess=len(answered_pairs) * (ratings - 1) / (2 * ratings),
    )
