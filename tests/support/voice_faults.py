"""Faults of logs, and what of a call can still be known under each.

Each fault edits the lines of a generated call, or the bytes of its files, and the acts of the call
where it destroys knowledge for good. Excused, and nothing else:

- a sound of which one end is lost: that sound, and who broke in at its turn and the one after it;
- no words sent to the voice (framework's log or one run lost): the intended text is the model's reply,
  and of a reply that was cut off nobody knows how far it went;
- audit log lost or cut: tools and the recogniser's words, unless the framework wrote those down too;
- caller's log lost (calls in which the agent broke into the user's words are left out: two halves of an
  utterance around a reply cannot be told from two utterances): sounds, what the caller meant and
  understood; who broke in, but what turn markers tell; a reply that was never sent to the voice;
- audit and caller's log both lost: whether words sent to the voice are doubled or out of place;
- no result.json: an audio-LLM whose audit log has words looks like a cascade.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from support.voice_calls import Act, Call, Line, number_lines

Edit = Callable[[Call, random.Random], bool]
"""Puts the fault into a call; False where the call has nothing that it could befall."""
Spoil = Callable[[Path, Call, random.Random], None]
LOGS = ("audit", "framework", "simulator")


@dataclass(frozen=True)
class Fault:
    """One way for logs to go wrong."""

    name: str
    codes: frozenset[str]
    """One of these must be among the notes; none needed where it is empty."""
    edit: Edit
    spoil: Spoil | None = None
    touches: str = ""
    """The log that it befalls; where that is lost as well, nobody can note it."""
    removes: frozenset[str] = frozenset()
    stage: int = 0
    """Of several faults those of the lowest stage come first, so that none undoes another."""
    rewords: bool = False
    """It spoils words sent to the voice: nothing tells that without audit and caller's log."""


FAULTS: dict[str, Fault] = {}


def fault(
    name: str,
    codes: str = "",
    *,
    touches: str = "",
    spoil: Spoil | None = None,
    removes: Iterable[str] = (),
    stage: int = 0,
) -> Callable[[Edit], Edit]:
    def take(edit: Edit) -> Edit:
        rewords = touches == "framework" and stage > 0
        FAULTS[name] = Fault(name, frozenset(codes.split()), edit, spoil, touches, frozenset(removes), stage, rewords)
        return edit

    return take


# -- lines ----------------------------------------------------------------------------------------


def tagged(lines: list[Line], what: str, number: int | None = None) -> list[Line]:
    return [line for line in lines if line["_tag"][0] == what and number in (None, line["_tag"][1])]


def at(line: Line) -> int:
    return int(line["timestamp"])


def stamp(line: Line, ms: float) -> None:
    line["timestamp"] = str(round(ms)) if isinstance(line["timestamp"], str) else round(ms)


def _replace(call: Call, line: Line, ms: float) -> None:
    """Logged at another time, and so at another place."""
    stamp(line, ms)
    call.simulator.sort(key=at)
    number_lines(call)


def without(call: Call, log: str, dropped: list[Line]) -> bool:
    lines = call.log(log)
    before = len(lines)
    lines[:] = [line for line in lines if not any(line is one for one in dropped)]
    return len(lines) < before


def some_act(call: Call, draw: random.Random, role: str, what: str, log: str, *, whole: bool = False) -> int | None:
    """The number of an act of that role that has such a line."""
    lines = call.log(log)
    found = [
        number
        for number, act in enumerate(call.acts)
        if act.role == role and tagged(lines, what, number) and not (whole and act.cut)
    ]
    return draw.choice(found) if found else None


def _end_of(call: Call, number: int) -> Line | None:
    return next(iter(tagged(call.simulator, "end", number)), None)


def _next_user(call: Call, number: int) -> Line | None:
    for later in range(number + 1, len(call.acts)):
        if call.acts[later].role == "user":
            return next(iter(tagged(call.simulator, "start", later)), None)
    return None


# -- late, early, out of order --------------------------------------------------------------------


@fault("user transcript late", "late_transcript", touches="simulator")
def _late_user(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "user", "meant", "simulator")
    end = None if number is None else _end_of(call, number)
    if number is None or end is None:
        return False
    for line in tagged(call.audit, "heard", number):
        if at(line) >= at(end):
            stamp(line, at(end) - 20)
    call.audit.sort(key=at)
    _replace(call, tagged(call.simulator, "meant", number)[0], at(end) + draw.choice((50, 250, 1000, 2000)))
    return True


@fault("assistant transcript late", "late_transcript not_understood", touches="simulator")
def _late_assistant(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "assistant", "understood", "simulator")
    start = None if number is None else _next_user(call, number)
    if number is None or start is None:
        return False
    _replace(call, tagged(call.simulator, "understood", number)[0], at(start) + draw.uniform(350, 2000))
    return True


@fault("user transcript early", "early_transcript", touches="simulator")
def _early_user(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "user", "meant", "simulator")
    starts = [] if number is None else tagged(call.simulator, "start", number)
    if not starts or number is None:
        return False
    _replace(call, tagged(call.simulator, "meant", number)[0], at(starts[0]) - draw.uniform(350, 1000))
    return True


def _shuffled(log: str) -> Edit:
    def edit(call: Call, draw: random.Random) -> bool:
        lines = call.log(log)
        for _ in range(3 if len(lines) > 8 else 0):
            place = draw.randrange(1, len(lines) - 3)
            lines.insert(place + draw.randint(1, 3), lines.pop(place))
        # Lines of kinds that no reader uses may stand anywhere.
        times = [at(line) for line in lines if line["_tag"][0] not in ("llm", "transcript") or log == "audit"]
        return times != sorted(times)

    return edit


def _delayed(log: str) -> Edit:
    def edit(call: Call, draw: random.Random) -> bool:
        lines = call.log(log)
        for place in draw.sample(range(len(lines)), min(2, len(lines))):
            stamp(lines[place], at(lines[place]) + draw.uniform(500, 3000))
        return bool(lines)

    return edit


for _log in LOGS:
    # Without equal texts or sound to tell it by, a late stamp is a time like any other: no note is asked for it.
    fault(f"{_log} lines out of order", "out_of_order late_timestamp", touches=_log, stage=2)(_shuffled(_log))
    fault(f"{_log} times late", "", touches=_log, stage=2)(_delayed(_log))


# -- twice ----------------------------------------------------------------------------------------


def _repeated(log: str, *, later: bool = False, counted: bool = False, kinds: tuple[str, ...] = ()) -> Edit:
    def edit(call: Call, draw: random.Random) -> bool:
        lines = call.log(log)
        chosen = [line for line in lines if not kinds or line["_tag"][0] in kinds]
        for line in draw.sample(chosen, min(3, len(chosen))):
            place = next(number for number, one in enumerate(lines) if one is line)
            copy = dict(line)
            if later:
                stamp(copy, at(copy) + draw.choice((0, 0, 3, 30)))
            lines.insert(place + 1, copy)
        if counted:
            number_lines(call)
        return bool(chosen)

    return edit


_TELLING = ("start", "end", "meant", "understood")
fault("audit lines twice", "duplicate_record", touches="audit", stage=1)(_repeated("audit"))
fault("framework lines twice", "duplicate_record", touches="framework", stage=1)(_repeated("framework"))
fault("caller's lines twice", "duplicate_record", touches="simulator", stage=1)(_repeated("simulator"))
fault("caller's lines twice, numbered anew", "duplicate_record", touches="simulator", stage=1)(
    _repeated("simulator", later=True, counted=True, kinds=_TELLING)
)


@fault("words sent to the voice twice", "duplicate_record", touches="framework", stage=1)
def _words_twice(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "assistant", "sent", "framework")
    if number is None:
        return False
    doubled: list[Line] = []
    for line in call.framework:
        doubled += [line, dict(line)] if line["_tag"] == ("sent", number) else [line]
    call.framework[:] = doubled
    return True


# -- false speech detection -----------------------------------------------------------------------


def _burst(call: Call, draw: random.Random, begin: float) -> bool:
    sample = next((line for line in call.simulator if line.get("user") in ("elevenlabs_user", "simulated_user")), None)
    if sample is None:
        return False
    end = begin + draw.uniform(0.15, 0.6)
    for kind, when in (("audio_start", begin), ("audio_end", end)):
        line = {**sample, "event_type": kind, "timestamp": round(1000 * when), "audio_timestamp": round(when, 6)}
        call.simulator.append({**line, "_tag": ("noise", 0)})
    call.simulator.sort(key=at)
    number_lines(call)
    return True


def _silences(call: Call) -> list[tuple[float, float]]:
    """Stretches in which nobody is heard, and none of whose neighbours is a user about to speak on."""
    spans = sorted((*span, act.role) for act in call.acts for span in act.sounds)
    return [
        (before[1], after[0])
        for before, after in pairwise(spans)
        if after[0] - before[1] > 1.5 and before[2] == "assistant"
    ]


@fault("noise in silence", "false_speech_detection", touches="simulator")
def _noise_in_silence(call: Call, draw: random.Random) -> bool:
    found = _silences(call)
    return bool(found) and _burst(call, draw, draw.choice(found)[0] + 0.3)


@fault("noise before the greeting", "false_speech_detection", touches="simulator")
def _noise_before(call: Call, draw: random.Random) -> bool:
    starts = [act.sounds[0][0] for act in call.acts if act.sounds]
    return bool(starts) and _burst(call, draw, starts[0] - 0.8)


@fault("noise at the end", "false_speech_detection", touches="simulator")
def _noise_at_end(call: Call, draw: random.Random) -> bool:
    ends = [span[1] for act in call.acts for span in act.sounds]
    return bool(ends) and _burst(call, draw, max(ends) + 0.75)


@fault("noise while the agent speaks", "false_speech_detection", touches="simulator")
def _noise_during(call: Call, draw: random.Random) -> bool:
    spans = [act.sounds[0] for act in call.of("assistant") if act.sounds and not act.cut]
    spans = [span for span in spans if span[1] - span[0] > 3 and not _user_speaks(call, span)]
    return bool(spans) and _burst(call, draw, draw.choice(spans)[0] + 1.0)


def _user_speaks(call: Call, span: tuple[float, float]) -> bool:
    return any(begin < span[1] and span[0] < end for act in call.of("user") for begin, end in act.sounds)


# -- missing events -------------------------------------------------------------------------------


def _lose_sound(call: Call, number: int) -> None:
    act = call.acts[number]
    turn = call.turn(act)
    call.lost_sounds |= {(act.role, span[0]) for span in act.sounds}
    call.unsure_turns |= {turn, turn + 1}


def _lost(what: str, role: str) -> Edit:
    def edit(call: Call, draw: random.Random) -> bool:
        number = some_act(call, draw, role, what, "simulator")
        if number is None:
            return False
        _lose_sound(call, number)
        return without(call, "simulator", tagged(call.simulator, what, number))

    return edit


fault("user's audio_start lost", "audio_start_missing text_without_sound", touches="simulator")(_lost("start", "user"))
fault("user's audio_end lost", "audio_end_missing sound_ends_with_the_call text_without_sound", touches="simulator")(
    _lost("end", "user")
)
fault("agent's audio_start lost", "audio_start_missing text_without_sound", touches="simulator")(
    _lost("start", "assistant")
)
fault("agent's audio_end lost", "audio_end_missing sound_ends_with_the_call text_without_sound", touches="simulator")(
    _lost("end", "assistant")
)


@fault("all audio_ends lost", "audio_end_missing", touches="simulator")
def _no_ends(call: Call, _: random.Random) -> bool:
    for number, act in enumerate(call.acts):
        if act.role != "tool":
            _lose_sound(call, number)
    return without(call, "simulator", tagged(call.simulator, "end"))


@fault("user_speech lost", "words_of_caller_missing false_speech_detection", touches="simulator")
def _no_meant(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "user", "meant", "simulator")
    if number is None:
        return False
    call.acts[number].said = ""
    return without(call, "simulator", tagged(call.simulator, "meant", number))


@fault("assistant_speech lost", "not_understood", touches="simulator")
def _not_understood(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "assistant", "understood", "simulator")
    if number is None:
        return False
    _forget_heard(call, number)
    return without(call, "simulator", tagged(call.simulator, "understood", number))


def _forget_heard(call: Call, number: int) -> None:
    """The caller's text spans all that the agent said since the user's last words."""
    for before in range(number, -1, -1):
        if call.acts[before].role == "user":
            break
        call.acts[before].understood = ""


@fault("recogniser's words lost", "not_transcribed words_of_caller_missing false_speech_detection", touches="audit")
def _not_heard(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "user", "heard", "audit")
    last = max((n for n, act in enumerate(call.acts) if act.role == "user"), default=0)
    if number is None or number == last or "[user audio]" in call.acts[number].chunks:
        return False
    call.acts[number].chunks = []
    call.acts[number].transcripts = []
    without(call, "framework", tagged(call.framework, "transcript", number))
    return without(call, "audit", tagged(call.audit, "heard", number))


@fault("words sent to the voice lost", "voice_text_missing", touches="framework")
def _not_sent(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "assistant", "sent", "framework")
    if number is None or len({line["_tag"] for line in tagged(call.framework, "sent")}) < 2:
        return False
    forget_sent(call, call.acts[number])
    return without(call, "framework", tagged(call.framework, "sent", number))


def forget_sent(call: Call, act: Act) -> None:
    if act.cut and act.said:
        call.unsure_words.add(call.turn(act))
    act.said = ""
