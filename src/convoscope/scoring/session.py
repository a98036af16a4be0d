"""What one process scores with: the resources that it made, and the event loop in which its metrics wait."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property, partial
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.audio import is_installed
from convoscope.conversation import Conversation
from convoscope.errors import ConvoscopeError, UsageError
from convoscope.ingest.recordings import base_name, digest_of, is_elsewhere
from convoscope.metrics.declaration import Metric
from convoscope.metrics.needs import WHOLE_NAMES
from convoscope.resources.judge import AskedOnce, Judge, judges_of
from convoscope.resources.registry import JUDGE, RECOGNISER, RECORDING, Resource, asked_by, made
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import answered, say
from convoscope.statistics.panels import MEDIAN, PanelRule, joined_repeats

if TYPE_CHECKING:
    from convoscope.scoring.event_loop import EventLoop

DEFAULT_CONCURRENCY = 200
"""Questions in flight at the same time, over all workers, unless the user says otherwise."""

Keep = Callable[[Sequence[Observation]], None]
_NOTHING: Mapping[str, Any] = {}


class SoundState(NamedTuple):
    """Whether a recording can be measured."""

    reason: str = ""
    """Why not."""
    text: str = ""
    """The file, and what is wrong with it."""
    digest: str = ""
    """What is in the files that were measured."""


class HeldConversations:
    """The conversations of a small run, as they were scored: its page need not read them back from JSON.

    The process that makes the run fills it, `Run.held` hands it on, and `runs.conversations.records` takes
    conversations from it. Of a run with more conversations or more text than this, none are held.
    """

    MOST = 400
    MOST_CHARACTERS = 16_000_000

    def __init__(self) -> None:
        self.by_row: dict[tuple[int, int], Conversation] = {}
        """By the part and the row of the part."""
        self._characters = 0

    def add(self, part: int, row: int, conversation: Conversation, characters: int) -> None:
        self._characters += characters
        if len(self.by_row) >= self.MOST:
            self._characters = self.MOST_CHARACTERS + 1
        if self._characters > self.MOST_CHARACTERS:
            self.by_row.clear()
        else:
            self.by_row[part, row] = conversation


class Session:
    """Makes resources when they are first asked for, hands them to metrics, and closes them at the end."""

    def __init__(
        self,
        resources: Mapping[str, Resource] | None = None,
        max_concurrency: int = DEFAULT_CONCURRENCY,
        *,
        repeats: int = 1,
        panel: PanelRule = MEDIAN,
        second_look: Resource | None = None,
        joint_metrics: Sequence[str] = (),
    ) -> None:
        self.resources = resources or {}
        self.max_concurrency = max_concurrency
        self.held: HeldConversations | None = None
        """Where this process makes the run."""
        self._made: dict[int, Any] = {}
        """What each resource made, by the identity of its declaration."""
        self._opened: dict[int, Any] = {}
        """And what is handed to metrics: of an asynchronous context manager, what it gives."""
        self._given: dict[str, Mapping[str, Any]] = {}
        self._voices_of: dict[str, Sequence[Sequence[Mapping[str, Any]]]] = {}
        self._asked_once: dict[tuple[int, int], Judge] = {}
        self.repeats = repeats
        """How often each judge is asked the same."""
        self.panel = panel
        """How several judges come to one score."""
        self.second_look = second_look
        """The judge that is asked again about some of what was judged."""
        self._end: Finalize | None = None
        self.process = os.getpid()
        self.names = frozenset(self.resources)
        self.joint_metrics = joint_metrics
        """The metrics whose questions about an item go together, where they show the same."""

    def identities(self) -> dict[str, str]:
        """What each resource says that its answers depend on."""
        identities: dict[str, str] = {}
        for name, resource in self.resources.items():
            if name == WHOLE_NAMES:  # what is so in most runs makes none of them another
                continue
            identity = getattr(self._make(resource), "identity", None)
            if not isinstance(identity, str) or not identity:
                raise UsageError(
                    f"{resource.home} has no identity",
                    hint="`identity` names what the answers depend on: provider/model@rubric-hash",
                )
            identities[name] = identity
        if self.second_look is not None and self.second_look_identity in identities.get(JUDGE, "").split(" + "):
            raise UsageError(
                f"the second look is by {self.second_look_identity}, which judges already", hint="name another judge"
            )
        return identities

    def addresses(self) -> list[str]:
        """Where the judges of the session are asked, as far as they say so."""
        judges = judges_of(self._make(self.resources[JUDGE])) if JUDGE in self.resources else ()
        return [str(getattr(one, "address", "")) for one in judges]

    @property
    def second_look_identity(self) -> str:
        """What the answers of the second look depend on; empty where there is none."""
        return "" if self.second_look is None else str(self._make(self.second_look).identity)

    def look_again(self, declared: Metric, conversations: Sequence[Conversation]) -> list[Sequence[Observation]]:
        """What the judge of the second look says of some conversations."""
        assert self.second_look is not None
        parameter = next(name for name, asked in declared.resources.items() if asked == JUDGE)
        given = {**self.given(declared), parameter: self._open(self.second_look)}
        answers = [self._loop.submit(partial(answered, declared, one, given)) for one in conversations]
        return [answer.result() for answer in answers]

    def made(self, resource: Resource) -> Any:
        """What a resource of the session made."""
        return self._make(resource)

    def transcribed(self, conversation: Conversation) -> Conversation:
        """A recording without a log, with the words that the run's recogniser hears; any other as it is."""
        if RECOGNISER not in self.resources or RECORDING not in self.resources:
            return conversation
        from convoscope.audio.transcript import has_no_words, transcribed
        from convoscope.resources.sound import RecordingError

        # What is heard would go to judges and into the page with the other words.
        if not has_no_words(conversation) or is_elsewhere(conversation):
            return conversation
        recording, recogniser = (self._open(self.resources[name]) for name in (RECORDING, RECOGNISER))
        try:
            return self._loop.run(transcribed(conversation, recording, recogniser))
        except RecordingError:  # metrics say what is wrong with it
            return conversation

    def sound_of(self, conversation: Conversation) -> SoundState:
        """Why the recording of a conversation cannot be measured, else the name of its file."""
        if RECORDING not in self.resources:
            return SoundState("" if is_installed() else "audio_not_installed")
        from convoscope.resources.sound import RecordingError

        try:
            tracks = self._open(self.resources[RECORDING]).tracks(conversation)
            for track in tracks:  # what is damaged is found by listening; it is kept for the metrics
                track.speech()
        except RecordingError as error:
            # Reports are shared, and a folder may hold names of people.
            is_path = error.reason == "recording_not_found"
            return SoundState(error.reason, base_name(error.detail) if is_path else error.detail)
        except Exception:  # of the user's own: metrics say what is wrong
            return SoundState()
        files = list(dict.fromkeys(Path(track.path) for track in tracks))
        return SoundState("", ", ".join(path.name for path in files), digest_of(files))

    def given(self, declared: Metric) -> Mapping[str, Any]:
        """The resources that a metric asks for, by parameter."""
        if not declared.resources:
            return _NOTHING
        resources = self._given.get(declared.key)
        if resources is None:
            there = {name: asked for name, asked in declared.resources.items() if asked in self.resources}
            resources = {name: self._open(self.resources[asked]) for name, asked in there.items()}
            self._given[declared.key] = resources
        return resources

    def ask(self, declared: Metric, conversation: Conversation, keep: Keep) -> Future[Sequence[Observation]]:
        """The answer of a metric that waits to a conversation. It is kept as soon as it is there."""
        voices = self._voices(declared)

        async def ask() -> Sequence[Observation]:
            if len(voices) == 1 and len(voices[0]) == 1:
                observations = await answered(declared, conversation, voices[0][0])
            else:
                observations = await self._heard(declared, conversation, voices)
            keep(observations)
            return observations

        return self._loop.submit(ask)

    def _voices(self, declared: Metric) -> Sequence[Sequence[Mapping[str, Any]]]:
        """What a metric is given, once for each judge and repeat; without a judge first, where it can do without."""
        voices = self._voices_of.get(declared.key)
        if voices is None:
            given = self.given(declared)
            parameter = next((name for name, asked in declared.resources.items() if asked == JUDGE), "")
            if parameter not in given:
                voices = [[given]]
            else:
                others = {name: value for name, value in given.items() if name != parameter}
                voices = [
                    [{**given, parameter: self._once(judge, repeat)} for repeat in range(self.repeats)]
                    for judge in judges_of(given[parameter])
                ]
                if parameter not in asked_by(declared.function, declared.key):
                    voices.insert(0, [others])
            self._voices_of[declared.key] = voices
        return voices

    def _once(self, judge: Judge, repeat: int) -> Judge:
        """The judge of a repeat, which all metrics share."""
        key = id(judge), repeat
        if key not in self._asked_once:
            seats = len(judges_of(self._open(self.resources[JUDGE])))
            self._asked_once[key] = AskedOnce(_repeated(judge, repeat), seats, self.joint_metrics)
        return self._asked_once[key]

    async def _heard(
        self, declared: Metric, conversation: Conversation, voices: Sequence[Sequence[Mapping[str, Any]]]
    ) -> Sequence[Observation]:
        """What all judges say; the repeats of one judge come to one score for each subject."""
        import asyncio

        rounds = await asyncio.gather(
            *(asyncio.gather(*(answered(declared, conversation, given) for given in repeats)) for repeats in voices)
        )
        given = [one for repeats in rounds for one in joined_repeats(repeats, declared)]
        # What no judge was asked about is said once, however many judges there are.
        observations = list({(one.judge, one.subject, one.repeat): one for one in given}.values())
        # Where there are judges, that nothing came with the data is no news.
        return [one for one in observations if one.reason != "nothing_to_observe"] or observations[:1]

    def close(self) -> None:
        """End what runs, and close what was made. A session that is asked again afterwards starts afresh."""
        if self._end is not None:
            self._end.cancel()
        resources = [*self.resources.values(), *([] if self.second_look is None else [self.second_look])]
        is_managed = {id(one): one.is_managed for one in resources}
        for key, instance in self._made.items():
            if is_managed[key]:
                with suppress(Exception):  # what was scored is kept, whatever goes wrong now
                    self._close(key, instance)
        if "_loop" in self.__dict__:
            self._loop.close()
            del self.__dict__["_loop"]
        self._made, self._opened, self._given, self._voices_of, self._end = {}, {}, {}, {}, None
        self._asked_once = {}

    @cached_property
    def _loop(self) -> EventLoop:
        # Only what waits needs it.
        from convoscope.scoring.event_loop import EventLoop

        self._close_at_exit()
        return EventLoop(self.max_concurrency)

    def _close_at_exit(self) -> None:
        """A worker that ends closes what it made."""
        if self._end is None:
            self._end = Finalize(None, self.close, exitpriority=10)

    def _make(self, resource: Resource) -> Any:
        if id(resource) not in self._made:
            self._close_at_exit()
            try:
                self._made[id(resource)] = made(resource)
            except ConvoscopeError:  # it says by itself what is wrong
                raise
            except (Exception, SystemExit) as error:  # whatever the user's function raises
                raise UsageError(f"{resource.home} cannot be made: {say(error)}") from None
        return self._made[id(resource)]

    def _open(self, resource: Resource) -> Any:
        key, instance = id(resource), self._make(resource)
        if key not in self._opened:
            is_opened = resource.is_managed and hasattr(instance, "__aenter__")
            self._opened[key] = self._run(instance.__aenter__(), resource) if is_opened else instance
        return self._opened[key]

    def _run(self, coroutine: Coroutine[Any, Any, Any], resource: Resource) -> Any:
        try:
            return self._loop.run(coroutine)
        except (Exception, SystemExit) as error:  # whatever the user's object raises
            raise UsageError(f"{resource.home} cannot be opened: {say(error)}") from None

    def _close(self, key: int, instance: Any) -> None:
        if hasattr(instance, "__aenter__"):
            if key in self._opened:
                self._loop.run(instance.__aexit__(None, None, None))
        elif hasattr(instance, "aclose"):
            self._loop.run(instance.aclose())
        elif hasattr(instance, "close"):
            instance.close()


def _repeated(judge: Judge, repeat: int) -> Judge:
    """The judge of a repeat; one that knows of no repeats is asked the same again."""
    return judge.repeated(repeat) if repeat and hasattr(judge, "repeated") else judge
