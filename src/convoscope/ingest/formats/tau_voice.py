"""τ-voice experiments: full-duplex simulations, tick by tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import (
    ASSISTANT,
    USER,
    Agent,
    Clock,
    Conversation,
    Outcome,
    Segment,
    Source,
    Text,
    Time,
    Tool,
)
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.call_exports import LOOKED_AT, ExportedCall, readable_conversations
from convoscope.ingest.control_text import without_control
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import Fields, JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

USUAL_TICK = 0.2
"""Seconds of a tick where nothing else is said."""
SHORTEST_TICK, LONGEST_TICK = 1e-5, 1e5
CLOCK = "tick"
SETTINGS = "results.json"
SIMULATIONS = "simulations"

_LONG = 1024
"""Characters from which on a text in a chunk is taken for embedded sound."""
_EFFECTS = ("speech_effects", "source_effects")
_OF_A_CHUNK = frozenset({"role", "content", "contains_speech", "turn_taking_action", "tool_calls", *_EFFECTS})
_TOOLS = ("agent_tool_calls", "agent_tool_results", "user_tool_calls", "user_tool_results")
_OF_A_TICK = frozenset({"tick_id", "timestamp", "user_chunk", "agent_chunk"} | set(_TOOLS))
_USUAL = frozenset(
    {"timestamp", "start_time", "end_time", "duration", "seed", "mode", "agent_cost", "user_cost", "reward_info"}
)
_EXPECTED = 'expected {"id": …, "ticks": [{"user_chunk": …, "agent_chunk": …}]}'
_NATURAL_ENDS = frozenset({"user_stop", "agent_stop"})
_FORCED_ENDS = frozenset({"max_steps", "too_many_errors", "timeout"})


class TauVoiceReader(Reader):
    """The simulations of an experiment, each in its file or all in one results.json."""

    name = "tau-voice"
    title = "τ-voice experiments (full-duplex simulations)"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if not isinstance(value, dict):
                continue
            sure = _looks_like_a_simulation(value)
            if sure:
                return Detection(sure, "a simulation with ticks of user_chunk and agent_chunk")
            listed = value.get(SIMULATIONS)
            if isinstance(listed, list) and any(_looks_like_a_simulation(one) for one in listed[:LOOKED_AT]):
                return Detection(1.0, 'its "simulations" are simulations of an experiment')
            info = value.get("info")
            if isinstance(info, dict) and {"environment_info", "audio_native_config"} & info.keys():
                return Detection(0.9, "settings of an experiment: its simulations are in other files", "companion")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            value = record.value
            if _looks_like_a_simulation(value):
                source = Source(format=self.name, files=group.file_names)
                yield _conversation(value, _experiment_of_folder(group.path), group.name, source, notes)
            elif isinstance(value, dict) and {"info", SIMULATIONS} & value.keys():
                yield from _whole_experiment(value, group, notes)
            else:
                raise InputError("is neither a simulation nor an experiment", field="ticks", hint=_EXPECTED)


def _looks_like_a_simulation(value: Any) -> float:
    """How sure it is that this is a simulation; 0 for not at all."""
    if not isinstance(value, dict):
        return 0.0
    ticks = value.get("ticks")
    if isinstance(ticks, list) and any(
        isinstance(tick, dict) and {"user_chunk", "agent_chunk", "tick_id"} & tick.keys() for tick in ticks[:LOOKED_AT]
    ):
        return 1.0
    if "traj" in value or ("termination_reason" not in value and "task_id" not in value):
        return 0.0  # a trajectory of τ-bench has a task, too
    if (
        not ticks
        and value.get("mode") != "full_duplex"
        and (value.get("messages") or value.get("mode") == "half_duplex")
    ):
        return 0.0  # a simulation of text by the same tool, which another reader knows
    return 0.95 if "ticks" in value or value.get("mode") == "full_duplex" else 0.5


class Experiment(NamedTuple):
    """What an experiment says of all its simulations."""

    tick: float = USUAL_TICK
    concluded: str = "no results.json is in the folder of the simulation"
    """Why the length of a tick had to be concluded; empty where it is known."""
    dimensions: dict[str, str] = {}
    agent: Agent = Agent()
    pipeline: Pipeline | None = None


def _whole_experiment(value: JsonObject, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
    """The simulations of a list. One that cannot be read does not stop the others."""
    listed = value.get(SIMULATIONS)
    folder = group.path.parent / SIMULATIONS
    in_files = {path.stem for path in folder.glob("*.json")} if folder.is_dir() else set()
    if not isinstance(listed, list) or not listed:
        if in_files:
            return
        hint = 'it has a list "simulations", or there is a folder of that name in its folder'
        raise InputError("is an experiment without simulations", field=SIMULATIONS, hint=hint)
    experiment = experiment_of(value.get("info"))

    def built(simulation: ExportedCall) -> Conversation:
        if not isinstance(simulation.call, dict):
            raise InputError("is not an object")
        source = Source(format=TauVoiceReader.name, files=group.file_names, record=simulation.path)
        return _conversation(simulation.call, experiment, f"{group.name}#{simulation.number}", source, notes)

    simulations = [
        ExportedCall(simulation, f"{SIMULATIONS}[{index}]", number=index + 1)
        for index, simulation in enumerate(listed)
        if not (isinstance(simulation, dict) and str(simulation.get("id")) in in_files)
    ]
    yield from readable_conversations(simulations, built, SIMULATIONS, SIMULATIONS)


def _experiment_of_folder(path: Path) -> Experiment:
    """What the results.json of the simulation's folder says."""
    folders = [path.parent.parent, path.parent] if path.parent.name == SIMULATIONS else [path.parent]
    for folder in folders:
        try:
            stat = (folder / SETTINGS).stat()
        except OSError:
            continue
        return _read_experiment(folder / SETTINGS, stat.st_mtime_ns, stat.st_size)
    return Experiment()


@lru_cache(maxsize=8)
def _read_experiment(path: Path, changed: int, size: int) -> Experiment:
    del changed, size  # they are part of the key of the cache
    try:
        value = decode(files.whole(path)).value
    except (BadJson, InputError, OSError) as error:
        return Experiment(concluded=f"results.json cannot be read: {error}")
    return experiment_of(value.get("info") if isinstance(value, dict) else None)


def experiment_of(info: Any) -> Experiment:
    """The `info` of a results.json, of which any part may be missing."""
    parts = ("agent_info", "environment_info", "audio_native_config")
    agent, environment, audio = (as_object(as_object(info).get(name)) for name in parts)
    logged = audio.get("tick_duration_seconds")
    seconds = as_number(logged)
    usable = seconds is not None and SHORTEST_TICK <= seconds <= LONGEST_TICK
    model = as_text(audio.get("model")) or as_text(agent.get("llm"))
    dimensions = {
        "domain": as_text(environment.get("domain_name")),
        "model": model,
        "speech_complexity": as_text(as_object(info).get("speech_complexity")),
    }
    listed = environment.get("tool_defs")
    definitions = [as_object(as_object(one).get("function")) or as_object(one) for one in as_list(listed)]
    tools = [
        Tool(name=name, description=as_text(one.get("description")), arguments_schema=one.get("parameters"))
        for one in definitions
        if (name := as_text(one.get("name")))
    ]
    cascade = bool(audio.get("cascaded_config_name"))
    return Experiment(
        tick=seconds if seconds is not None and usable else USUAL_TICK,
        concluded="" if usable else f"tick_duration_seconds is {repr(logged)[:40] if logged else 'missing'}",
        dimensions=filled(dimensions),
        agent=Agent(
            name=as_text(agent.get("implementation")),
            instructions=as_text(environment.get("policy")),
            tools=None if not isinstance(listed, list) else tuple(tools),
            models={"llm": model} if model else {},
        ),
        pipeline=("cascade" if cascade else "s2s") if audio else None,
    )


def _conversation(value: JsonObject, experiment: Experiment, name: str, source: Source, notes: Notes) -> Conversation:
    simulation = Fields(value, "simulation", notes, _USUAL)
    ticks = simulation.pop("ticks", None)
    if not isinstance(ticks, list) or not ticks:
        wrong = (
            "has an empty list of ticks" if ticks == [] else f"has ticks that are a {type(ticks).__name__}, not a list"
        )
        hint = "a simulation without ticks is skipped"
        raise InputError("has no ticks" if ticks is None else wrong, field="ticks", hint=hint)
    if experiment.concluded:
        notes.inferred("tick_of_0.2_s", experiment.concluded)
    listened = _Listener(experiment.tick, notes)
    listened.hear(ticks)
    timeline = listened.timeline()
    if simulation.pop("messages", None):
        notes.ignored("messages", "the ticks hold what was said")
    named = {"scenario_id": simulation.pop("task_id", None), "trial": simulation.pop("trial", None)}
    reason, seconds = as_text(simulation.pop("termination_reason", None)), listened.at(len(ticks))
    return Conversation(
        id=as_text(simulation.pop("id", None)) or name,
        dimensions={key: str(given) for key, given in named.items() if given not in (None, "")} | experiment.dimensions,
        source=source,
        pipeline=experiment.pipeline,
        participants=timeline.participants,
        clocks=(Clock(id=CLOCK, kind="audio", source="ticks", resolution=experiment.tick),),
        agent=experiment.agent,
        timeline=tuple(timeline.events),
        outcome=Outcome(
            finished=True if reason in _NATURAL_ENDS else False if reason in _FORCED_ENDS else None,
            ended_reason=reason,
            error=reason if reason.endswith("_error") else "",
            duration=seconds,
        ),
        extras=simulation.rest(),
    )


@dataclass
class _Speech:
    """One participant speaks, from the tick `start` to before `end`."""

    start: int
    end: int
    texts: list[str]
    manner: str = ""
    muffled: bool = False


@dataclass
class _Effect:
    """Something that is heard on the user's side, other than the user's own speech."""

    start: int
    end: int
    name: str
    value: JsonObject


class _Listener:
    """Goes through the ticks and brings together what goes on without a break."""

    def __init__(self, tick: float, notes: Notes) -> None:
        self.tick, self.notes = tick, notes
        self.speech: dict[str, list[_Speech]] = {USER: [], ASSISTANT: []}
        self.early: dict[str, list[str]] = {USER: [], ASSISTANT: []}
        """Texts of ticks without sound: they belong to the sound that follows."""
        self.effects: list[_Effect] = []
        self.latest: dict[str, _Effect] = {}
        self.tools: list[tuple[int, str, JsonObject]] = []
        self.length = 0
        self.odd: Counter[str] = Counter()
        self.unused: Counter[str] = Counter()

    def at(self, tick: int) -> float:
        return round(tick * self.tick, 6)

    def hear(self, ticks: list[Any]) -> None:
        self.length = len(ticks)
        for number, tick in enumerate(ticks):
            if not isinstance(tick, dict):
                self.odd["tick_not_an_object"] += 1
                continue
            self._leave(tick, "tick", _OF_A_TICK)
            self._chunk(number, USER, tick.get("user_chunk"))
            self._chunk(number, ASSISTANT, tick.get("agent_chunk"))
            for name in _TOOLS:
                self._tools(number, name, tick.get(name))
        for role, texts in self.early.items():
            if texts and self.speech[role]:
                self.speech[role][-1].texts += texts
            elif texts:
                self.unused["words_without_sound"] += len(texts)

    def _chunk(self, number: int, role: str, chunk: Any) -> None:
        if not isinstance(chunk, dict):
            if chunk is not None:
                self.odd["chunk_not_an_object"] += 1
            return
        self._leave(chunk, "chunk", _OF_A_CHUNK)
        text = as_text(chunk.get("content"))
        speaks = self._speaks(chunk)
        if speaks:
            speech = self._speech(number, role, chunk)
            speech.texts += [text] if text else []
            speech.muffled |= bool(as_object(chunk.get("speech_effects")).get("dynamic_muffling_enabled"))
        elif text:
            self.early[role].append(text)
            self.odd["words_in_a_silent_tick"] += 1
        if role == USER:
            for field in _EFFECTS:
                self._effect(number, field, as_object(chunk.get(field)))
        self._tools(number, "agent_tool_calls" if role == ASSISTANT else "user_tool_calls", chunk.get("tool_calls"))

    def _tools(self, number: int, name: str, listed: Any) -> None:
        if isinstance(listed, list):
            self.tools += [(number, name, one) for one in listed if isinstance(one, dict)]

    def _speaks(self, chunk: JsonObject) -> bool:
        """A chunk that does not say whether it contains speech does."""
        flag = chunk.get("contains_speech")
        if isinstance(flag, bool):
            return flag
        if flag in (0, 1):
            return bool(flag)
        self.odd["contains_speech_missing" if flag is None else "contains_speech_not_a_boolean"] += 1
        return True

    def _speech(self, number: int, role: str, chunk: JsonObject) -> _Speech:
        runs = self.speech[role]
        if not runs or runs[-1].end != number:
            action = as_object(chunk.get("turn_taking_action")).get("action")
            manner = "backchannel" if role == USER and action == "backchannel" else ""
            runs.append(_Speech(number, number, self.early[role], manner))
            self.early[role] = []
        runs[-1].end = number + 1
        return runs[-1]

    def _effect(self, number: int, field: str, effects: JsonObject) -> None:
        insert, noise = effects.get("speech_insert"), effects.get("burst_noise_file")
        if isinstance(insert, dict):
            value = {name: insert[name] for name in ("type", "text") if insert.get(name) is not None}
            self._sounds(number, "speech_insert", {**value, "place": field})
        elif insert is not None:
            self.odd["speech_insert_not_an_object"] += 1
        if noise:
            # The folder of the file does not matter.
            self._sounds(number, "burst_noise", {"file": str(noise).replace("\\", "/").rpartition("/")[2]})

    def _sounds(self, number: int, name: str, value: JsonObject) -> None:
        key = f"{name} {value.get('place')}"
        last = self.latest.get(key)
        if last is None or last.end != number or last.value != value:
            last = self.latest[key] = _Effect(number, number, name, value)
            self.effects.append(last)
        last.end = number + 1

    def _leave(self, fields: JsonObject, of: str, expected: frozenset[str]) -> None:
        for name in fields.keys() - expected:
            value = fields[name]
            if value not in (None, "", [], {}, False):
                self.unused["embedded_data" if isinstance(value, str) and len(value) > _LONG else f"{of}.{name}"] += 1

    def timeline(self) -> TimelineBuilder:
        """Everything in the order in which it begins."""
        for code, count in sorted(self.odd.items()):
            self.notes.repaired(code, f"{count} times")
        for code, count in sorted(self.unused.items()):
            self.notes.ignored(code, f"{count} times")
        timeline = TimelineBuilder(self.notes)
        who = {role: timeline.participant(role) for role in (USER, ASSISTANT)}
        begun: list[tuple[int, int, Callable[[], None]]] = []
        begun += [(one.start, 0, partial(self._mark, timeline, who[USER], one)) for one in self.effects]
        for rank, (role, speaker) in enumerate(who.items(), 1):
            begun += [(one.start, rank, partial(self._say, timeline, speaker, one)) for one in self.speech[role]]
        begun += [
            (tick, 3, partial(self._use, timeline, tick, name, one)) for tick, name, one in self._each_tool_once()
        ]
        for _, _, write in sorted(begun, key=lambda step: step[:2]):
            write()
        timeline.mark("recording_ended", time=Time(self.at(self.length), CLOCK))
        return timeline

    def _mark(self, timeline: TimelineBuilder, participant: str, effect: _Effect) -> None:
        time = Time(self.at(effect.start), CLOCK, self.at(effect.end))
        timeline.mark(effect.name, effect.value, time, participant=participant)

    def _say(self, timeline: TimelineBuilder, speaker: str, speech: _Speech) -> None:
        start, end = self.at(speech.start), self.at(speech.end)
        plain, control = without_control("".join(speech.texts).strip(), speaker)
        if control and not plain:
            timeline.control(speaker, control, Time(start, CLOCK, end))
            return
        text = Text(plain, f"{'user' if speaker == USER else 'agent'}_chunk.content") if plain else None
        timeline.say(
            speaker,
            # The simulated user's text is what it meant to say; the agent's is a transcript.
            intended=text if speaker == USER else None,
            spoken=None if speaker == USER else text,
            segments=[Segment(start, end, CLOCK)],
            manner=speech.manner,
            extras={"dynamic_muffling": True} if speech.muffled else {},
        )
        timeline.control(speaker, control, Time(end, CLOCK))

    def _each_tool_once(self) -> Iterator[tuple[int, str, JsonObject]]:
        """A call may be in the tick and in the chunk."""
        seen: set[tuple[str, str]] = set()
        for tick, name, use in self.tools:
            key = (name, as_text(use.get("id")))
            if not key[1] or key not in seen:
                seen.add(key)
                yield tick, name, use

    def _use(self, timeline: TimelineBuilder, tick: int, name: str, use: JsonObject) -> None:
        time = Time(self.at(tick), CLOCK)
        id, tool = as_text(use.get("id")), as_text(use.get("name"))
        if name.startswith("user"):
            timeline.mark(name.removesuffix("s"), value=use, time=time)
        elif name == "agent_tool_calls":
            timeline.call(tool, use.get("arguments"), call_id=id, time=time)
        else:
            timeline.result(use.get("content"), call_id=id, name=tool, time=time)
            if isinstance(use.get("error"), bool):
                timeline.set_outcome(not use["error"], error_if_unstated=str(use.get("content"))[:500])


READER = TauVoiceReader()
