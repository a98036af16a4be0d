"""Calls of two synthesized voices with planted faults of their logs: what the metrics find, miss, and raise falsely.

The sound of each call is made of phrases of flite and festival on two channels; its log is written from where they
begin and end, and then a fault is planted. Truth is what was planted, never what voice activity says.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

RATE = 16_000
VOICES = {"user": ("rms", "awb"), "assistant": ("slt", "festival")}
PHRASES = {
    "user": (
        "Hello, I would like to change my appointment for Thursday.",
        "Yes, that would be fine for me.",
        "No, in the morning I have to work until noon.",
        "My name is Harold Winter, and I live in Cardigan Street.",
        "Could you please send me a letter about that?",
        "How much would it cost if I came a week later?",
        "Wait, that is not what I asked for.",
        "I did not get that. Can you say it again?",
    ),
    "assistant": (
        "Good morning, this is the practice of doctor Miller. How can I help you today?",
        "Let me have a look at the calendar. There is a free hour on Monday at half past three.",
        "I can offer you another appointment in the first week of May, if that is better for you.",
        "The letter will be with you in three or four days. Is there anything else that I can do?",
        "Please bring your card and the results of the last examination with you, so that we can compare them.",
        "I am afraid that we are closed on that day, but the week after that we are open again.",
        "You will get a message on your phone one day before the appointment.",
    ),
}
MURMUR = "Mm."


class Turn(NamedTuple):
    """What is said in a call, by the clock of the sound. `start` and `end` are those of its speech, not of its file."""

    role: str
    text: str
    start: float
    end: float
    samples: NDArray[np.float32]
    logged: bool = True
    heard: bool = True
    plant: str = ""

    def later(self, seconds: float) -> Turn:
        return self._replace(start=self.start + seconds, end=self.end + seconds)


class PlantedCall(NamedTuple):
    """A call in files, and what is wrong with its log."""

    name: str
    kinds: tuple[str, ...]
    offset: float
    drift: float
    turns: tuple[Turn, ...]


def has_voices() -> bool:
    """Whether the synthesizers are installed."""
    return shutil.which("flite") is not None and shutil.which("text2wave") is not None


def spoken(text: str, voice: str, cache: Path) -> NDArray[np.float32]:
    """A phrase at 16 kHz, without the silence around it."""
    path = cache / f"{voice}-{abs(hash_of(text)):x}.wav"
    if not path.exists():
        made = path.with_suffix(".part.wav")
        if voice == "festival":
            command = ["text2wave", "-F", str(RATE), "-o", str(made)]
            subprocess.run(command, input=text.encode(), check=True, capture_output=True)
        else:
            subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(made)], check=True, capture_output=True)
        made.rename(path)
    samples, rate = soundfile.read(path, dtype="float32")
    if rate != RATE:
        import soxr

        samples = soxr.resample(samples, rate, RATE)
    level = np.abs(samples)
    loud = np.flatnonzero(level > 0.02 * level.max())
    clip: NDArray[np.float32] = samples[loud[0] : loud[-1] + 1] / level.max() * 0.4
    return clip


def hash_of(text: str) -> int:
    """The same in every process."""
    return int.from_bytes(text.encode()[:24], "big") ^ len(text)


def turns_of(draw: random.Random, cache: Path, count: int = 10) -> list[Turn]:
    """A call without faults: the agent greets, and then the two speak in turns."""
    voices = {role: draw.choice(names) for role, names in VOICES.items()}
    at, turns = draw.uniform(0.5, 1.5), list[Turn]()
    for number in range(count):
        role = ("assistant", "user")[number % 2]
        text = draw.choice(PHRASES[role])
        clip = spoken(text, voices[role], cache)
        turns.append(Turn(role, text, at, at + len(clip) / RATE, clip))
        at = turns[-1].end + draw.uniform(0.7, 2.2)
    return turns


Plant = Callable[[random.Random, list[Turn], Path], list[Turn]]


def lost_line(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """Something was said that the log does not have."""
    del cache
    return _changed(draw, turns, range(1, len(turns)), lambda turn: turn._replace(logged=False, plant="lost_line"))


def dropped_turn(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """The log has something that was never heard."""
    del cache
    return _changed(draw, turns, range(1, len(turns)), lambda turn: turn._replace(heard=False, plant="dropped_turn"))


def late_turn(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """One turn is logged 1.5 s too late."""
    del cache
    return _changed(draw, turns, range(1, len(turns)), lambda turn: turn._replace(plant="late_turn"))


def cut_reply(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """A reply breaks off after a third, and the log has all of it."""
    del cache

    def cut(turn: Turn) -> Turn:
        samples = turn.samples[: len(turn.samples) * 35 // 100]
        return turn._replace(samples=samples, end=turn.start + len(samples) / RATE, plant="cut_reply")

    return _changed(draw, turns, range(2, len(turns), 2), cut)


def dropout(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """A tenth of a second to almost one of the agent's sound is lost, anywhere inside of a turn."""
    del cache

    def lose(turn: Turn) -> Turn:
        samples, length = turn.samples.copy(), round(draw.uniform(0.1, 0.8) * RATE)
        at = draw.randrange(RATE // 4, len(samples) - length - RATE // 4)
        samples[at : at + length] = 0
        return turn._replace(samples=samples, plant="dropout")

    return _changed(draw, turns, [number for number, turn in enumerate(turns) if turn.role == "assistant"], lose)


def lost_barge_in(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """The user speaks over the agent, and the log does not have it."""
    return _over_agent(draw, turns, cache, "Wait, that is not what I asked for.", logged=False, plant="lost_barge_in")


def logged_barge_in(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """The same, and the log has it: nothing is wrong."""
    return _over_agent(draw, turns, cache, "Wait, that is not what I asked for.", logged=True, plant="")


def murmur(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """The user murmurs while the agent speaks, and the log does not have it: no barge-in."""
    return _over_agent(draw, turns, cache, MURMUR, logged=False, plant="murmur")


def nothing(draw: random.Random, turns: list[Turn], cache: Path) -> list[Turn]:
    """No fault."""
    del draw, cache
    return turns


PLANTS: dict[str, Plant] = {
    "none": nothing,
    "lost_line": lost_line,
    "dropped_turn": dropped_turn,
    "late_turn": late_turn,
    "cut_reply": cut_reply,
    "dropout": dropout,
    "lost_barge_in": lost_barge_in,
    "logged_barge_in": logged_barge_in,
    "murmur": murmur,
}


def _changed(
    draw: random.Random, turns: list[Turn], indexes: Sequence[int], change: Callable[[Turn], Turn]
) -> list[Turn]:
    free = [index for index in indexes if not turns[index].plant]
    index = draw.choice(free)
    return [change(turn) if number == index else turn for number, turn in enumerate(turns)]


def _over_agent(
    draw: random.Random, turns: list[Turn], cache: Path, text: str, *, logged: bool, plant: str
) -> list[Turn]:
    clip = spoken(text, VOICES["user"][0], cache)
    long = [turn for turn in turns if turn.role == "assistant" and turn.heard and turn.end - turn.start > 3.5]
    agent = draw.choice([turn for turn in long if not turn.plant] or long)
    start = agent.start + draw.uniform(0.6, 1.2)
    return sorted([*turns, Turn("user", text, start, start + len(clip) / RATE, clip, logged, True, plant)], key=_start)


def _start(turn: Turn) -> float:
    return turn.start


def write(
    folder: Path, name: str, turns: Sequence[Turn], offset: float, drift: float, seed: int, noise_level: float
) -> None:
    """The recording and the log of a call: two channels with noise of this level, and the log by its own clock."""
    noise = np.random.default_rng(seed)
    length = int((max(turn.end for turn in turns) + 1.5) * RATE)
    sound = noise.normal(0.0, noise_level, (length, 2)).astype(np.float32)
    for turn in turns:
        if turn.heard:
            at = int(turn.start * RATE)
            sound[at : at + len(turn.samples), int(turn.role == "assistant")] += turn.samples
    soundfile.write(folder / f"{name}.wav", sound, RATE, subtype="PCM_16")
    events = [_event(number, turn, offset, drift) for number, turn in enumerate(turn for turn in turns if turn.logged)]
    events.sort(key=lambda event: float(event["segments"][0]["start"]))
    log: dict[str, Any] = {
        "schema": "convoscope.conversation/1",
        "id": name,
        "participants": [{"id": role, "role": role} for role in ("user", "assistant")],
        "clocks": [{"id": "audio", "kind": "audio", "offset": 0.0}],
        "timeline": [{**event, "seq": number} for number, event in enumerate(events)],
        "recording": {
            "tracks": [
                {"path": f"{name}.wav", "channels": ["user", "assistant"], "started": {"at": 0.0, "clock": "audio"}}
            ]
        },
    }
    (folder / f"{name}.json").write_text(json.dumps(log))


def _event(number: int, turn: Turn, offset: float, drift: float) -> dict[str, Any]:
    late = 1.5 if turn.plant == "late_turn" else 0.0
    start, end = (round(second * (1 + drift) + offset + late, 3) for second in (turn.start, turn.end))
    segment = {"start": start, "end": end, "clock": "audio"}
    words = {"heard" if turn.role == "user" else "intended": {"text": turn.text}}
    return {"type": "utterance", "seq": number, "speaker": turn.role, "segments": [segment], **words}


def make_calls(folder: Path, count: int, cache: Path, noise_level: float = 0.0005, seed: int = 20) -> list[PlantedCall]:
    """Calls with one fault, two or none; every third has a clock that is off, every fifth one that drifts."""
    calls: list[PlantedCall] = []
    names = list(PLANTS)
    for number in range(count):
        draw = random.Random(seed * 100_000 + number)
        kinds = [names[number % len(names)]]
        if number % 4 == 3:
            kinds.append(draw.choice([name for name in names if name not in kinds]))
        turns = turns_of(draw, cache, 18 if number % 5 == 0 else 10)
        for kind in kinds:
            turns = PLANTS[kind](draw, turns, cache)
        offset = round(draw.uniform(-15, 15), 2) if number % 3 == 0 else 0.0
        drift = draw.choice((-1, 1)) * draw.uniform(0.2, 0.8) / 60 if number % 5 == 0 else 0.0
        offset += 16.0 if offset < 0 else 0.0  # a log has no times before its own zero
        write(folder, f"call-{number:03d}", turns, offset, drift, number, noise_level)
        calls.append(PlantedCall(f"call-{number:03d}", tuple(kinds), offset, drift, tuple(turns)))
    return calls


class Figures(NamedTuple):
    """Of one kind of fault: how many were planted and found, and how many were raised where none was planted."""

    planted: int
    found: int
    false_alarms: int


class Outcome(NamedTuple):
    """What came of some calls."""

    figures: dict[str, Figures]
    offsets: list[float]
    """|estimated − planted offset| of each call with an offset, in seconds."""
    drifts: list[float]
    """The same of drifts, in seconds per minute."""
    unmeasured: Counter[str]


FAULTS = {
    "lost_line": "speech_not_in_log",
    "dropped_turn": "turns_not_in_sound",
    "late_turn": "log_jitter",
    "cut_reply": "possible_cut_offs",
    "dropout": "audio_breakage",
    "lost_barge_in": "lost_barge_ins",
}


def outcome_of(folder: Path, calls: Iterable[PlantedCall]) -> Outcome:
    """Measure the calls, and compare what is found with what was planted."""
    counts = {fault: [0, 0, 0] for fault in FAULTS}
    result = Outcome({}, [], [], Counter())
    for call in calls:
        measured = _measured(folder / f"{call.name}.json", result.unmeasured)
        if call.drift and measured["drift"]:
            result.drifts.append(abs(measured["drift"][0] - 60 * call.drift))
        if measured["offset"] and not call.drift:
            result.offsets.append(abs(measured["offset"][0] - call.offset))
        for fault in FAULTS:
            planted = [turn for turn in call.turns if turn.plant == fault]
            # A lost line over the agent is a lost barge-in, and speech that no log has.
            also = [turn for turn in call.turns if turn.plant in ("lost_barge_in", "murmur")]
            allowed = planted + (also if fault == "lost_line" else [])
            raised = measured[fault]
            hits = [turn for turn in planted if any(_meets(turn, moment) for moment in raised)]
            false = [moment for moment in raised if not any(_meets(turn, moment) for turn in allowed)]
            for index, value in enumerate((len(planted), len(hits), len(false))):
                counts[fault][index] += value
    return result._replace(figures={fault: Figures(*three) for fault, three in counts.items()})


def _meets(turn: Turn, moment: tuple[float, float]) -> bool:
    return moment[0] < turn.end + 0.5 and moment[1] > turn.start - 0.5


def _measured(log: Path, unmeasured: Counter[str]) -> dict[str, list[Any]]:
    from convoscope.audio.resource import Recordings
    from convoscope.ingest.read import read
    from convoscope.metrics.audio import against_log as metrics
    from convoscope.metrics.audio.sound import audio_breakage

    [conversation] = read(log)
    recordings = Recordings()
    found: dict[str, list[Any]] = {name: [] for name in (*FAULTS, "offset", "drift")}
    for declared in (
        metrics.log_offset,
        metrics.log_drift,
        metrics.log_jitter,
        metrics.turns_not_in_sound,
        metrics.speech_not_in_log,
        metrics.lost_barge_ins,
        metrics.possible_cut_offs,
        audio_breakage,
    ):
        for one in declared(conversation, recording=recordings):
            details = one.details or {}
            if one.status == "unmeasured":
                unmeasured[f"{declared.name} {one.reason}"] += 1
            elif declared is metrics.log_offset and one.value is not None:
                found["offset"].append(details["offset"])
            elif declared is metrics.log_drift and one.value is not None:
                found["drift"].append(details["drift"])
            elif declared is metrics.log_jitter and (one.value or 0.0) > 0.75:
                found["late_turn"].append((details["start"], details["start"] + 0.1))
            fault = next((fault for fault, name in FAULTS.items() if declared.name == f"audio.{name}"), "")
            found.setdefault(fault, []).extend(
                (moment["start"], moment["end"]) for moment in details.get("moments", ())
            )
    return found


NOISES = {"quiet lines": 0.0005, "noise at about 15 dB": 0.013}
"""Standard deviations of white noise. Speech has a peak of 0.4, and an RMS of about 0.07."""


def run(count: int = 100) -> None:
    """Print what was found of each kind of fault."""
    if not has_voices():
        print("flite and festival are not installed")
        return
    with tempfile.TemporaryDirectory() as temporary:
        cache = Path(temporary)
        for words, level in NOISES.items():
            folder = cache / f"calls-{level}"
            folder.mkdir()
            calls = make_calls(folder, count, cache, level)
            minutes = sum(call.turns[-1].end for call in calls) / 60
            print(f"{count} calls of two synthesized voices, {minutes:.0f} minutes, {words}")
            show(outcome_of(folder, calls))
            shutil.rmtree(folder)


def show(outcome: Outcome) -> None:
    """A table of what was found, and how near the clocks were."""
    print("  planted             n  found  missed  false alarms")
    for fault, figures in outcome.figures.items():
        missed = figures.planted - figures.found
        print(f"  {fault:15} {figures.planted:5} {figures.found:6} {missed:7} {figures.false_alarms:13}")
    for what, errors in (("offset, s", outcome.offsets), ("drift, s/min", outcome.drifts)):
        if errors:
            print(f"  {what:13} of {len(errors)} calls: off by {np.median(errors):.3f}, at most {max(errors):.3f}")
    for reason, times in outcome.unmeasured.most_common():
        print(f"  unmeasured: {reason} {times}")


if __name__ == "__main__":
    run()
