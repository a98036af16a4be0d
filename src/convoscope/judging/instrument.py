"""The judge that a run asks: it redacts, looks into the cache, keeps the budget, asks, and reads the answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from convoscope.errors import UsageError
from convoscope.judging.answers import UnusableAnswer, read_answer
from convoscope.judging.backends import (
    FORMS,
    MAX_ANSWER_TOKENS,
    SCORES,
    YES_NO,
    Backend,
    FunctionBackend,
    JudgeFailed,
    ModelAnswer,
    backend_for,
)
from convoscope.judging.cache import AnswerCache, CachedAnswer, cache_file, cache_key
from convoscope.judging.limits import Budget, Price, Retries, SharedBudget, Throttle, budget_for, price_of
from convoscope.judging.names import JudgeName, judge_name
from convoscope.judging.redaction import Redacted, Redaction
from convoscope.judging.rubrics import rubrics
from convoscope.judging.waves import wave_of
from convoscope.judging.yes_no import NO_FORM, SCHEMA
from convoscope.resources.judge import HEARS_NOTHING, Judge, Verdict
from convoscope.resources.sound import Sound
from convoscope.scores.judges import YES_NO_MARK

CHARACTERS_PER_TOKEN = 4
"""For an estimate before anything is asked: English has about four, other languages fewer."""
EXPECTED_ANSWER_TOKENS = 400


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a named judge is asked."""

    temperature: float = 0.0
    form: str = SCORES
    """`yesno`: rubrics are asked as yes/no questions, read from log-probabilities. For small models."""
    max_answer_tokens: int = MAX_ANSWER_TOKENS
    seconds: float = 120.0
    """How long one request may take."""
    max_concurrency: int = 200
    redact: bool | None = None
    """None: unless the address is on this machine."""
    redact_patterns: tuple[str, ...] = ()
    use_cache: bool = True
    max_questions: int | None = None
    max_dollars: float | None = None
    ledger: str = ""
    """The file in which a run counts what it spends."""
    audio: bool | None = None
    """The model takes sound. None: where its name says so."""
    send_audio: bool = False
    """Clips of recordings may be sent to it."""
    rubrics: tuple[str, ...] = ()
    """Folders of rubrics that replace ours."""

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageError(f"--judge-form {self.form}: unknown form", hint=f"there is {' and '.join(FORMS)}")


_DEFAULTS = JudgeSettings()


class ExpectedQuestion(NamedTuple):
    """What one question would come to."""

    is_cached: bool
    characters: int
    price: Price | None
    hidden: dict[str, int]
    answer_tokens: int
    """About."""
    sound: float = 0.0
    """Seconds of sound that go with it."""


AUDIO_NOT_SENT = "audio_not_sent"
AUDIO_PRICE_UNKNOWN = "audio_price_unknown"
TEXT_REDACTED = "text_redacted"


class _Answered(NamedTuple):
    """What a model wrote, and what was read of it; None where that is unusable."""

    kept: CachedAnswer
    answer: dict[str, Any] | None

    @property
    def text(self) -> str:
        return self.kept.repair or self.kept.text


class Instrument(Judge):
    """A judge with a name. Two that have the same identity give the same answers."""

    def __init__(
        self,
        judge: str | JudgeName | Callable[..., Any],
        settings: JudgeSettings = _DEFAULTS,
        *,
        repeat: int = 0,
        backend: Backend | None = None,
    ) -> None:
        name = judge_name(judge) if isinstance(judge, str) else judge
        if backend is None:
            backend = (
                backend_for(
                    name,
                    temperature=settings.temperature,
                    seconds=settings.seconds,
                    form=settings.form,
                    max_tokens=settings.max_answer_tokens,
                )
                if isinstance(name, JudgeName)
                else FunctionBackend(name)
            )
        self._backend = backend
        self._settings = settings
        self._repeat = repeat
        throttle = Throttle(settings.max_concurrency)
        self._retries = Retries(throttle)
        self._retries_with_sound = Retries(throttle)
        """By itself: a server that refuses sound is not down."""
        self.no_sound = _no_sound(name, backend, settings)
        redacts = not backend.is_local if settings.redact is None else settings.redact
        self._redaction = Redaction(settings.redact_patterns) if redacts else None
        self._cache = AnswerCache(cache_file()) if settings.use_cache and backend.is_lasting else None
        self._budget: Budget | SharedBudget | None = None
        if settings.max_questions is not None or settings.max_dollars is not None:
            self._budget = budget_for(settings.ledger, settings.max_questions, settings.max_dollars)
        self._price = price_of(backend.name) if not backend.has_own_address else None
        self._in_flight: dict[str, asyncio.Future[_Answered]] = {}
        self.rubric_folders = settings.rubrics
        self.form = settings.form
        own = [rubric.hash for rubric in rubrics(settings.rubrics).values()] if settings.rubrics else []
        whole = json.dumps([dict(backend.parameters), own], sort_keys=True)
        digest = hashlib.sha256(whole.encode()).hexdigest()
        # A person sees the form: without quotes its verdicts are another thing.
        self.identity = f"{backend.name}{YES_NO_MARK if self.form == YES_NO else ''}@{digest[:8]}"
        # Servers of one's own may serve any model under any name: none speaks for another.
        self._answers_of = f"{self.identity} {backend.address}" if backend.has_own_address else self.identity

    def repeated(self, repeat: int) -> Instrument:
        """The same judge asked once more: its answers to this repeat are kept apart."""
        other = object.__new__(Instrument)
        other.__dict__ = {**self.__dict__, "_repeat": repeat}
        return other

    @property
    def repeat(self) -> int:
        """Which of the repeats it answers."""
        return self._repeat

    @property
    def address(self) -> str:
        """Where questions are sent."""
        return self._backend.address

    @property
    def redacts(self) -> bool:
        """What identifies a person is taken out of questions."""
        return self._redaction is not None

    def expected(self, prompt: str, schema: Mapping[str, Any], sound: Sound | None = None) -> ExpectedQuestion:
        """What asking this would come to. Nothing is sent. Raises `UnusableAnswer` where it would not be asked."""
        hidden = self._hidden(prompt, sound)
        sent = prompt if hidden is None else hidden.text
        key = cache_key(self._answers_of, sent, schema, self._repeat, b"" if sound is None else wave_of(sound))
        is_cached = self._known(key, schema) is not None
        tokens = 1 if self.form == YES_NO else EXPECTED_ANSWER_TOKENS
        counts = {} if hidden is None else hidden.counts
        if sound is None:
            return ExpectedQuestion(is_cached, len(sent), self._price, counts, tokens)
        return ExpectedQuestion(is_cached, len(sent), None, counts, tokens, len(sound.samples) / sound.rate)

    def _hidden(self, prompt: str, sound: Sound | None) -> Redacted | None:
        """What is sent instead of a prompt. A sound cannot be compared with words that were taken out."""
        if sound is not None and self.no_sound:
            raise UnusableAnswer(self.no_sound, f"{self._backend.name} is sent no sound")
        hidden = self._redaction.hide(prompt) if self._redaction is not None else None
        if sound is not None and hidden is not None and hidden.originals:
            raise UnusableAnswer(TEXT_REDACTED, "the text of this sound has what is redacted; --no-redact sends it")
        return hidden

    async def ask(self, prompt: str, schema: Mapping[str, Any], sound: Sound | None = None) -> Verdict:
        """The answer in the shape of a schema. Raises `UnusableAnswer` and `JudgeFailed`."""
        if self.form == YES_NO and schema != SCHEMA:
            raise UnusableAnswer(NO_FORM, "this question cannot be answered with yes or no")
        hidden = self._hidden(prompt, sound)
        sent = prompt if hidden is None else hidden.text
        wave = b"" if sound is None else wave_of(sound)
        key = cache_key(self._answers_of, sent, schema, self._repeat, wave)
        known = self._known(key, schema)
        given = known or await self._once(key, sent, schema, wave)
        kept, answer = given
        cost = None
        # The list has no prices of sound.
        if (
            sound is None
            and self._price is not None
            and kept.input_tokens is not None
            and kept.output_tokens is not None
        ):
            cost = self._price.of(kept.input_tokens, kept.output_tokens)
        try:
            answer = answer or read_answer(given.text, schema)
        except UnusableAnswer as unusable:
            unusable.raw = given.text if hidden is None else str(hidden.undone(given.text))
            unusable.input_tokens, unusable.output_tokens = kept.input_tokens, kept.output_tokens
            raise
        shown = answer if hidden is None else hidden.undone(answer)
        assert isinstance(shown, dict)
        return Verdict(
            shown,
            self.identity,
            kept.input_tokens,
            kept.output_tokens,
            cost,
            kept.seconds,
            known is not None,
            bool(kept.repair),
        )

    async def aclose(self) -> None:
        await self._backend.aclose()
        if self._cache is not None:
            self._cache.close()
        if self._budget is not None:
            self._budget.close()

    def _known(self, key: str, schema: Mapping[str, Any]) -> _Answered | None:
        """The usable answer that the cache has. Another is asked for again: the server may be better now."""
        kept = self._cache.get(key) if self._cache is not None else None
        answer = None if kept is None else _readable(kept.repair or kept.text, schema)
        return None if kept is None or answer is None else _Answered(kept, answer)

    async def _once(self, key: str, prompt: str, schema: Mapping[str, Any], wave: bytes) -> _Answered:
        """Ask; the same question that is in flight already is not asked again."""
        waiting = self._in_flight.get(key)
        if waiting is not None:
            return await asyncio.shield(waiting)
        future: asyncio.Future[_Answered] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = future
        try:
            answer = await self._answered(prompt, schema, wave)
            if self._cache is not None and answer.answer is not None:
                self._cache.put(key, self.identity, answer.kept)
            future.set_result(answer)
        except BaseException as error:
            if isinstance(error, Exception):
                future.set_exception(error)
                future.exception()  # it may be that nothing else waits for it
            else:
                future.cancel()
            raise
        finally:
            del self._in_flight[key]
        return answer

    async def _answered(self, prompt: str, schema: Mapping[str, Any], wave: bytes) -> _Answered:
        """What the model writes; where that is unusable, what it writes when it is asked again, once."""
        first = await self._complete(prompt, schema, wave)
        tokens, seconds = (first.input_tokens, first.output_tokens), first.seconds
        answer, repair = None, ""
        try:
            answer = read_answer(first.text, schema)
        except UnusableAnswer as unusable:
            if self.form != YES_NO:  # probabilities do not change by asking again
                again = await self._complete(_repair(prompt, first.text, unusable), schema, wave)
                tokens = _sum(tokens[0], again.input_tokens), _sum(tokens[1], again.output_tokens)
                seconds += again.seconds
                repair = again.text or "(empty)"
                answer = _readable(repair, schema)
        return _Answered(CachedAnswer(first.text, *tokens, seconds, repair), answer)

    async def _complete(self, prompt: str, schema: Mapping[str, Any], wave: bytes) -> ModelAnswer:
        reserved = self._reserve(prompt)
        retries = self._retries_with_sound if wave else self._retries
        try:
            completion = await retries.ask(lambda: self._timed(prompt, schema, wave))
        except JudgeFailed:
            if self._budget is not None:
                self._budget.charge(reserved, 0.0)
            raise
        self._charge(reserved, completion)
        return completion

    async def _timed(self, prompt: str, schema: Mapping[str, Any], wave: bytes) -> ModelAnswer:
        began = perf_counter()
        answer = await self._backend.complete(prompt, schema, *([wave] if wave else []))
        return answer._replace(seconds=perf_counter() - began)

    def _reserve(self, prompt: str) -> float:
        """Set aside what a question may cost at most."""
        if self._budget is None:
            return 0.0
        most = self._backend.parameters.get("max_tokens", 0)
        reserved = self._price.of(len(prompt.encode()), most) if self._price is not None else 0.0
        self._budget.reserve(reserved)
        return reserved

    def _charge(self, reserved: float, completion: ModelAnswer) -> None:
        if self._budget is not None and self._price is not None:
            tokens = completion.input_tokens, completion.output_tokens
            known = tokens[0] is not None and tokens[1] is not None
            self._budget.charge(reserved, self._price.of(*tokens) if known else reserved)  # type: ignore[arg-type]


def _no_sound(judge: Any, backend: Backend, settings: JudgeSettings) -> str:
    """Why a judge is sent no sound, as a reason code; "" where it is."""
    is_declared = settings.audio if settings.audio is not None else isinstance(judge, JudgeName) and judge.says_audio
    if not is_declared or not backend.takes_sound:
        return HEARS_NOTHING
    if not settings.send_audio:
        return AUDIO_NOT_SENT
    # A sound of unknown price cannot be counted against a budget.
    return AUDIO_PRICE_UNKNOWN if settings.max_dollars is not None else ""


def _readable(text: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return read_answer(text, schema)
    except UnusableAnswer:
        return None


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _repair(prompt: str, answer: str, unusable: UnusableAnswer) -> str:
    return (
        f"{prompt}\n\nYour answer was:\n{json.dumps(answer[:2000], ensure_ascii=False)}\n"
        f"It cannot be used: {unusable.detail}. Answer again with exactly one JSON object of the shape described above."
    )


def checked_name(text: str, *, is_asked: bool = True) -> JudgeName:
    """The name of a judge that can be asked: its key is there, if it will be asked."""
    name = judge_name(text)._replace(is_asked=is_asked)
    name.key()
    if name.url.startswith("http://") and not name.is_local:
        raise UsageError(f"{name} would send conversations unencrypted", hint="use https:// for another machine")
    return name
