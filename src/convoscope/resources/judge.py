"""What a metric may ask of a judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from convoscope.errors import UsageError

if TYPE_CHECKING:
    import asyncio

    from convoscope.resources.sound import Sound

HEARS_NOTHING = "judge_hears_nothing"
"""The reason of a judge that takes no sound."""


class Verdict(NamedTuple):
    """What a judge answered, and what that took. Only the first two are required of a judge of your own."""

    answer: Mapping[str, Any]
    """As the schema wants it."""
    judge: str
    """Who answered, for `measured(…, judge=…)`: `provider/model@rubric-hash`."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    """US dollars by the list of prices; None where the price is unknown."""
    seconds: float | None = None
    is_cached: bool = False
    is_repaired: bool = False
    """The first answer could not be used; this is the second."""

    def share(self, of: int) -> Verdict:
        """The same answer with its share of what it took: one of so many scores that rest on it."""
        return self._replace(
            input_tokens=self.input_tokens and round(self.input_tokens / of),
            output_tokens=self.output_tokens and round(self.output_tokens / of),
            cost=self.cost and self.cost / of,
            seconds=self.seconds and self.seconds / of,
        )


@runtime_checkable
class Judge(Protocol):
    """Reads a text and answers in the shape that is asked for."""

    identity: str
    """All that its answers depend on beside the question: `provider/model@rubric-hash`."""

    async def ask(self, prompt: str, schema: Mapping[str, Any]) -> Verdict:
        """The answer to a prompt, in the shape of a JSON Schema. Raises where there is none to be had."""


@runtime_checkable
class ListeningJudge(Protocol):
    """A judge that may be asked about a sound."""

    identity: str
    no_sound: str
    """Why it is sent no sound, as a reason code such as `judge_hears_nothing`; "" for one that is."""

    async def ask(self, prompt: str, schema: Mapping[str, Any], sound: Sound | None = None) -> Verdict:
        """The answer to a prompt about a sound. Raises where there is none to be had."""


def no_sound(judge: Judge) -> str:
    """Why a judge is sent no sound; "" where it is. One of the user's own that does not say so hears nothing."""
    return str(getattr(judge, "no_sound", HEARS_NOTHING))


class JudgePanel:
    """Several judges. Each answers by itself; what they come to is computed from their scores."""

    def __init__(self, judges: Sequence[Judge], are_managed: Sequence[bool]) -> None:
        names = [judge.identity for judge in judges]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"the judge {twice} is named twice", hint="--repeats asks one judge several times")
        self.judges = tuple(judges)
        self._are_managed = tuple(are_managed)
        self.identity = " + ".join(sorted(names))

    async def aclose(self) -> None:
        for judge, is_managed in zip(self.judges, self._are_managed, strict=True):
            if is_managed:
                await close(judge)


async def close(judge: Judge) -> None:
    """No question will follow. One of the user's own need not care."""
    if hasattr(judge, "aclose"):
        await judge.aclose()


class AskedOnce(Judge):
    """A judge of one run. Metrics that ask it the same share one answer, or one failure."""

    MOST = 1024
    """Answers that are held: metrics which share them ask at about the same time."""

    def __init__(self, judge: Judge, seats: int = 1, joint_metrics: Sequence[str] = ()) -> None:
        self.judge = judge
        self.seats = seats
        """How many judges the run asks."""
        self.joint_metrics = joint_metrics
        """The metrics of the run whose questions go together where they show the same."""
        self.identity = judge.identity
        self._answers: dict[tuple[str, str, str], asyncio.Future[Verdict]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.judge, name)

    async def ask(self, prompt: str, schema: Mapping[str, Any], sound: Sound | None = None) -> Verdict:
        import asyncio

        # One of the user's own need not take a sound.
        heard = {} if sound is None else {"sound": sound}
        clip = "" if sound is None else hashlib.sha256(sound.samples.tobytes()).hexdigest()
        key = prompt, json.dumps(schema, sort_keys=True, default=repr), clip
        answer = self._answers.get(key)
        if answer is None or answer.cancelled():
            while len(self._answers) >= self.MOST:
                del self._answers[next(iter(self._answers))]
            answer = self._answers[key] = asyncio.ensure_future(self.judge.ask(prompt, schema, **heard))
            answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may be that none waits
        return await asyncio.shield(answer)


def judges_of(resource: Judge | JudgePanel) -> tuple[Judge, ...]:
    """The members of a panel, or the one judge that there is."""
    return resource.judges if isinstance(resource, JudgePanel) else (resource,)


__all__ = [
    "HEARS_NOTHING",
    "AskedOnce",
    "Judge",
    "JudgePanel",
    "ListeningJudge",
    "Verdict",
    "close",
    "judges_of",
    "no_sound",
]
