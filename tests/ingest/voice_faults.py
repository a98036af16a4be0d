"""Faults of logs, and what of a call can still be known under each.

Each fault edits the lines of a generated call, or the bytes of its files, and the acts of the call
where it destroys knowledge for good. Excused, and nothing else:

- a sound of which one end is lost: that sound, and who broke in at its turn and the one after it;
- no words sent to the voice (framework's log or one run lost): the intended text is the model's reply,
  and of a reply that was cut off nobody knows how far it went;
- audit log lost or cut: tools and the recogniser's words, unless the framework wrote those down too;
- caller's log lost (calls in which the agent broke into the user's words are left out: two halves of an
  utterance around a reply cannot be told from two utterances): sounds, what the caller meant and understood; who broke in, but what turn markers tell;
- no result.json: an audio-LLM whose audit log has words looks like a cascade.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ingest.voice_calls import Act, Call, Line, expected, number_lines

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


FAULTS: dict[str, Fault] = {}


def _fault(
    name: str, codes: str = "", *, touches: str = "", spoil: Spoil | None = None, removes: Iterable[str] = ()
) -> Callable[[Edit], Edit]:
    def take(edit: Edit) -> Edit:
        FAULTS[name] = Fault(name, frozenset(codes.split()), edit, spoil, touches, frozenset(removes))
        return edit

    return take


# -- lines ----------------------------------------------------------------------------------------


def _tagged(lines: list[Line], what: str, number: int | None = None) -> list[Line]:
    return [line for line in lines if line["_tag"][0] == what and number in (None, line["_tag"][1])]


def _at(line: Line) -> int:
    return int(line["timestamp"])


def _stamp(line: Line, ms: float) -> None:
    line["timestamp"] = str(round(ms)) if isinstance(line["timestamp"], str) else round(ms)


def _replace(call: Call, line: Line, ms: float) -> None:
    """Logged at another time, and so at another place."""
    _stamp(line, ms)
    call.simulator.sort(key=_at)
    number_lines(call)


def _without(call: Call, log: str, dropped: list[Line]) -> bool:
    lines = call.log(log)
    before = len(lines)
    lines[:] = [line for line in lines if not any(line is one for one in dropped)]
    return len(lines) < before


def _some_act(call: Call, draw: random.Random, role: str, what: str, log: str, *, whole: bool = False) -> int | None:
    """The number of an act of that role that has such a line."""
    lines = call.log(log)
    found = [
        number
        for number, act in enumerate(call.acts)
        if act.role == role and _tagged(lines, what, number) and not (whole and act.cut)
    ]
    return draw.choice(found) if found else None


def _end_of(call: Call, number: int) -> Line | None:
    return next(iter(_tagged(call.simulator, "end", number)), None)


def _next_user(call: Call, number: int) -> Line | None:
    for later in range(number + 1, len(call.acts)):
        if call.acts[later].role == "user":
            return next(iter(_tagged(call.simulator, "start", later)), None)
    return None


# -- late, early, out of order --------------------------------------------------------------------


@_fault("user transcript late", "late_transcript", touches="simulator")
def _late_user(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "user", "meant", "simulator")
    end = None if number is None else _end_of(call, number)
    if number is None or end is None:
        return False
    for line in _tagged(call.audit, "heard", number):
        if _at(line) >= _at(end):
            _stamp(line, _at(end) - 20)
    call.audit.sort(key=_at)
    _replace(call, _tagged(call.simulator, "meant", number)[0], _at(end) + draw.choice((50, 250, 1000, 2000)))
    return True


@_fault("assistant transcript late", "late_transcript", touches="simulator")
def _late_assistant(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "assistant", "understood", "simulator")
    start = None if number is None else _next_user(call, number)
    if number is None or start is None:
        return False
    _replace(call, _tagged(call.simulator, "understood", number)[0], _at(start) + draw.uniform(350, 2000))
    return True


@_fault("user transcript early", "early_transcript", touches="simulator")
def _early_user(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "user", "meant", "simulator")
    starts = [] if number is None else _tagged(call.simulator, "start", number)
    if not starts or number is None:
        return False
    _replace(call, _tagged(call.simulator, "meant", number)[0], _at(starts[0]) - draw.uniform(350, 1000))
    return True


def _shuffled(log: str) -> Edit:
    def edit(call: Call, draw: random.Random) -> bool:
        lines = call.log(log)
        moved = False
        for _ in range(3 if len(lines) > 8 else 0):
            place = draw.randrange(1, len(lines) - 3)
            later = place + draw.randint(1, 3)
            moved = moved or _at(lines[place]) < _at(lines[later])
            lines.insert(later, lines.pop(place))
        return moved

    return edit


def _delayed(log: str) -> Edit:
    def edit(call: Call, draw: random.Random) -> bool:
        lines = call.log(log)
        for place in draw.sample(range(len(lines)), min(2, len(lines))):
            _stamp(lines[place], _at(lines[place]) + draw.uniform(500, 3000))
        return bool(lines)

    return edit


for _log in LOGS:
    # Without equal texts or sound to tell it by, a late stamp is a time like any other: no note is asked for it.
    _fault(f"{_log} lines out of order", "out_of_order", touches=_log)(_shuffled(_log))
    _fault(f"{_log} times late", "", touches=_log)(_delayed(_log))


# -- twice ----------------------------------------------------------------------------------------


def _repeated(log: str, *, later: bool = False, counted: bool = False, kinds: tuple[str, ...] = ()) -> Edit:
    def edit(call: Call, draw: random.Random) -> bool:
        lines = call.log(log)
        chosen = [line for line in lines if not kinds or line["_tag"][0] in kinds]
        for line in draw.sample(chosen, min(3, len(chosen))):
            place = next(number for number, one in enumerate(lines) if one is line)
            copy = dict(line)
            if later:
                _stamp(copy, _at(copy) + draw.choice((0, 0, 3, 30)))
            lines.insert(place + 1, copy)
        if counted:
            number_lines(call)
        return bool(chosen)

    return edit


_TELLING = ("start", "end", "meant", "understood")
_fault("audit lines twice", "duplicate_record", touches="audit")(_repeated("audit"))
_fault("framework lines twice", "duplicate_record", touches="framework")(_repeated("framework"))
_fault("caller's lines twice", "duplicate_record", touches="simulator")(_repeated("simulator"))
_fault("caller's lines twice, numbered anew", "duplicate_record", touches="simulator")(
    _repeated("simulator", later=True, counted=True, kinds=_TELLING)
)


@_fault("words sent to the voice twice", "duplicate_record", touches="framework")
def _words_twice(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "assistant", "sent", "framework")
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
    for kind, at in (("audio_start", begin), ("audio_end", end)):
        line = {**sample, "event_type": kind, "timestamp": round(1000 * at), "audio_timestamp": round(at, 6)}
        call.simulator.append({**line, "_tag": ("noise", 0)})
    call.simulator.sort(key=_at)
    number_lines(call)
    return True


def _silences(call: Call) -> list[tuple[float, float]]:
    """Stretches in which nobody is heard, and none of whose neighbours is a user about to speak on."""
    spans = sorted((*span, act.role) for act in call.acts for span in act.sounds)
    return [
        (before[1], after[0])
        for before, after in zip(spans, spans[1:], strict=False)
        if after[0] - before[1] > 1.5 and before[2] == "assistant"
    ]


@_fault("noise in silence", "false_speech_detection", touches="simulator")
def _noise_in_silence(call: Call, draw: random.Random) -> bool:
    found = _silences(call)
    return bool(found) and _burst(call, draw, draw.choice(found)[0] + 0.3)


@_fault("noise before the greeting", "false_speech_detection", touches="simulator")
def _noise_before(call: Call, draw: random.Random) -> bool:
    starts = [act.sounds[0][0] for act in call.acts if act.sounds]
    return bool(starts) and _burst(call, draw, starts[0] - 0.8)


@_fault("noise at the end", "false_speech_detection", touches="simulator")
def _noise_at_end(call: Call, draw: random.Random) -> bool:
    ends = [span[1] for act in call.acts for span in act.sounds]
    return bool(ends) and _burst(call, draw, max(ends) + 0.75)


@_fault("noise while the agent speaks", "false_speech_detection", touches="simulator")
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
        number = _some_act(call, draw, role, what, "simulator")
        if number is None:
            return False
        _lose_sound(call, number)
        return _without(call, "simulator", _tagged(call.simulator, what, number))

    return edit


_fault("user's audio_start lost", "audio_start_missing", touches="simulator")(_lost("start", "user"))
_fault("user's audio_end lost", "audio_end_missing sound_ends_with_the_call", touches="simulator")(_lost("end", "user"))
_fault("agent's audio_start lost", "audio_start_missing", touches="simulator")(_lost("start", "assistant"))
_fault("agent's audio_end lost", "audio_end_missing sound_ends_with_the_call", touches="simulator")(
    _lost("end", "assistant")
)


@_fault("all audio_ends lost", "audio_end_missing", touches="simulator")
def _no_ends(call: Call, _: random.Random) -> bool:
    for number, act in enumerate(call.acts):
        if act.role != "tool":
            _lose_sound(call, number)
    return _without(call, "simulator", _tagged(call.simulator, "end"))


@_fault("user_speech lost", "words_of_caller_missing", touches="simulator")
def _no_meant(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "user", "meant", "simulator")
    if number is None:
        return False
    call.acts[number].said = ""
    return _without(call, "simulator", _tagged(call.simulator, "meant", number))


@_fault("assistant_speech lost", "not_understood", touches="simulator")
def _not_understood(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "assistant", "understood", "simulator")
    if number is None:
        return False
    _forget_heard(call, number)
    return _without(call, "simulator", _tagged(call.simulator, "understood", number))


def _forget_heard(call: Call, number: int) -> None:
    """The caller's text spans all that the agent said since the user's last words."""
    for before in range(number, -1, -1):
        if call.acts[before].role == "user":
            break
        call.acts[before].understood = ""


@_fault("recogniser's words lost", "not_transcribed", touches="audit")
def _not_heard(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "user", "heard", "audit")
    last = max((n for n, act in enumerate(call.acts) if act.role == "user"), default=0)
    if number is None or number == last or "[user audio]" in call.acts[number].chunks:
        return False
    call.acts[number].chunks = []
    call.acts[number].transcripts = []
    _without(call, "framework", _tagged(call.framework, "transcript", number))
    return _without(call, "audit", _tagged(call.audit, "heard", number))


@_fault("words sent to the voice lost", "voice_text_missing", touches="framework")
def _not_sent(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "assistant", "sent", "framework")
    if number is None or len({line["_tag"] for line in _tagged(call.framework, "sent")}) < 2:
        return False
    _forget_sent(call, call.acts[number])
    return _without(call, "framework", _tagged(call.framework, "sent", number))


def _forget_sent(call: Call, act: Act) -> None:
    if act.cut and act.said:
        call.unsure_words.add(call.turn(act))
    act.said = ""


# -- broken files ---------------------------------------------------------------------------------


def _always(call: Call, _: random.Random) -> bool:
    return bool(call.names)


def _has(log: str) -> Edit:
    return lambda call, _: log in call.names and bool(call.log(log))


def _cut_line(log: str) -> Spoil:
    def spoil(folder: Path, call: Call, _: random.Random) -> None:
        path = folder / call.names.get(log, "none")
        if path.exists():
            text = path.read_text(encoding="utf-8").rstrip("\n")
            whole, _, last = text.rpartition("\n")
            path.write_text(f"{whole}\n{last[: len(last) // 2]}" if whole else last, encoding="utf-8")

    return spoil


@_fault("last line of the caller's log cut", "cut_last_line", touches="simulator", spoil=_cut_line("simulator"))
def _cut_simulator(call: Call, draw: random.Random) -> bool:
    return _has("simulator")(call, draw) and call.simulator[-1]["_tag"][0] == "state"


@_fault("last line of the framework's log cut", "cut_last_line", touches="framework", spoil=_cut_line("framework"))
def _cut_framework(call: Call, draw: random.Random) -> bool:
    if not _has("framework")(call, draw):
        return False
    kind, number = call.framework[-1]["_tag"]
    if kind == "sent":
        said = call.acts[number].said
        call.acts[number].said = said[: len(said) - len(call.framework[-1]["data"]["frame"])].strip()
    return kind != "transcript"


def _blank_lines(folder: Path, call: Call, draw: random.Random) -> None:
    for log in ("framework", "simulator"):
        path = folder / call.names.get(log, "none")
        if path.exists():
            lines = path.read_text(encoding="utf-8").split("\n")
            for _ in range(3):
                lines.insert(draw.randrange(len(lines)), draw.choice(("", "  ")))
            path.write_text("\n".join(lines), encoding="utf-8")


_fault("blank lines", "blank_line", touches="simulator", spoil=_blank_lines)(_always)


def _rubbish(folder: Path, call: Call, draw: random.Random) -> None:
    for log in ("framework", "simulator"):
        path = folder / call.names.get(log, "none")
        if path.exists():
            lines = path.read_text(encoding="utf-8").split("\n")
            rubbish = ('{"timestamp": 17724', "Traceback (most recent call last):", "[1, 2", "\x00\x00")
            lines.insert(draw.randrange(1, max(2, len(lines) - 1)), draw.choice(rubbish))
            path.write_text("\n".join(lines), encoding="utf-8")


_fault("lines that are no JSON", "line_left_out", touches="simulator", spoil=_rubbish)(_always)


def _cut_audit_file(folder: Path, call: Call, _: random.Random) -> None:
    path = folder / call.names.get("audit", "none")
    if path.exists() and call.audit:
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: text.rindex(f'"{call.audit[-1]["timestamp"]}"')], encoding="utf-8")


@_fault("audit log cut", "cut_file", touches="audit", spoil=_cut_audit_file)
def _cut_audit(call: Call, draw: random.Random) -> bool:
    """The file ends in the middle of an entry; what came after it is nowhere."""
    if len(call.audit) < 6 or "audit" not in call.names:
        return False
    keep = draw.randrange(len(call.audit) // 2, len(call.audit) - 1)
    lost, call.audit[keep:] = call.audit[keep:], call.audit[keep : keep + 1]
    call.unsure_fields |= {"num_tool_calls"} if call.audit[keep]["message_type"] == "tool_response" else set()
    for line in lost:
        _forget_line(call, line)
    return True


def _forget_line(call: Call, line: Line) -> None:
    kind, number = line["_tag"]
    act = call.acts[number] if number < len(call.acts) else Act("tool")
    if kind == "heard" and act.chunks:
        # Lines are lost from the last on.
        act.chunks.pop()
    elif kind == "written":
        act.written = ""
        turn = call.turn(act)
        if call.kind == "s2s" and any(one.written for one in call.of("assistant") if call.turn(one) == turn):
            # One text heard, one half of it known as meant: which words are the other half's is not told.
            call.unsure_words.add(turn)
    elif kind == "tool" and act.tool:
        call_only = line["message_type"] == "tool_response" and _tagged(call.audit, "tool", number)
        act.value = (act.value[0], None) if call_only else act.value
        act.tool = "" if not call_only else act.tool


# -- missing files --------------------------------------------------------------------------------


def _lose_audit(call: Call) -> None:
    for act in call.acts:
        act.chunks = list(act.transcripts) if "framework" in call.names else []
        act.written = act.tool = ""
    call.audit.clear()
    call.names.pop("audit", None)


def _lose_framework(call: Call) -> None:
    for act in call.of("assistant"):
        if call.kind != "s2s":
            _forget_sent(call, act)
    if "audit" not in call.names:
        for act in call.of("user"):
            act.chunks = []
    call.framework.clear()
    call.names.pop("framework", None)
    if "simulator" not in call.names:
        call.unsure_fields.add("user_interrupted_turns")


def _lose_simulator(call: Call) -> None:
    for act in call.acts:
        act.understood = ""
        act.sounds = []
        act.said = "" if act.role == "user" else act.said
    call.unsure_fields.add("assistant_interrupted_turns")
    if not call.markers or "framework" not in call.names:
        call.unsure_fields.add("user_interrupted_turns")
    call.simulator.clear()
    call.names.pop("simulator", None)


_LOSE = {"audit": _lose_audit, "framework": _lose_framework, "simulator": _lose_simulator}


def _gone(*logs: str) -> Edit:
    def edit(call: Call, _: random.Random) -> bool:
        left = set(call.names) - set(logs)
        if not left or not set(logs) <= set(call.names) or not any(call.log(log) for log in left):
            return False
        if "simulator" in logs and _agent_breaks_in(call):
            return False
        for log in logs:
            _LOSE[log](call)
        return True

    return edit


def _agent_breaks_in(call: Call) -> bool:
    """The agent replied to the first part of an utterance before the last part was recognised."""
    if expected(call)["assistant_interrupted_turns"]:
        return True
    parts: set[int] = set()
    broken: set[int] = set()
    for line in sorted(call.audit, key=_at):
        kind, number = line["_tag"]
        if kind == "heard" and number in broken:
            return True
        if kind == "heard":
            parts.add(number)
        elif kind == "written":
            broken = set(parts)
    return False


for _lost_logs in (("audit",), ("framework",), ("simulator",)):
    _fault(f"{_lost_logs[0]} log missing", "log_missing named_file_missing", removes=_lost_logs)(_gone(*_lost_logs))
for _lost_logs in (("audit", "framework"), ("audit", "simulator"), ("framework", "simulator")):
    _fault(f"{' and '.join(_lost_logs)} logs missing", "log_missing", removes=_lost_logs)(_gone(*_lost_logs))


@_fault("no turn markers", "turn_markers_missing", touches="framework")
def _no_markers(call: Call, _: random.Random) -> bool:
    call.markers = False
    if not call.log("simulator"):
        call.unsure_fields.add("user_interrupted_turns")
    return _without(call, "framework", _tagged(call.framework, "marker")) and bool(_tagged(call.framework, "sent"))


@_fault("no result.json")
def _no_result(call: Call, _: random.Random) -> bool:
    call.result = None
    if call.kind == "audio_llm" and not any("[user audio]" in act.chunks for act in call.acts):
        call.kind = "cascade"
    return True


@_fault("result.json names files that are not there", "named_file_missing")
def _wrong_names(call: Call, _: random.Random) -> bool:
    if call.result is None:
        return False
    call.result |= {"audit_log_path": "out/other.json", "elevenlabs_logs_path": "out/other.jsonl"}
    return True


# -- clocks and shapes ----------------------------------------------------------------------------


def _skewed(log: str, seconds: float) -> Edit:
    def edit(call: Call, draw: random.Random) -> bool:
        ahead = seconds * draw.choice((-1, 1))
        for line in call.log(log):
            _stamp(line, _at(line) + 1000 * ahead)
            if "audio_timestamp" in line:
                line["audio_timestamp"] += ahead
        if log == "simulator":
            for act in call.acts:
                act.sounds = [(begin + ahead, end + ahead) for begin, end in act.sounds]
            call.lost_sounds = {(role, start + ahead) for role, start in call.lost_sounds}
        return bool(call.log(log)) and len(call.names) > 1

    return edit


for _log in LOGS:
    for _seconds in (3, 30, 3600):
        _fault(f"{_log} clock {_seconds} s off", "clock_skew", touches=_log)(_skewed(_log, _seconds))


def _restamped(log: str, write: Callable[[int], Any]) -> Spoil:
    def spoil(folder: Path, call: Call, _: random.Random) -> None:
        path = folder / call.names.get(log, "none")
        if not path.exists():
            return
        if log == "audit":
            try:
                document = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                return
            for entry in document["transcript"]:
                entry["timestamp"] = write(int(entry["timestamp"]))
            path.write_text(json.dumps(document), encoding="utf-8")
            return
        lines = []
        for text in path.read_text(encoding="utf-8").split("\n"):
            try:
                line = json.loads(text)
                line["timestamp"] = write(line["timestamp"])
                lines.append(json.dumps(line))
            except (ValueError, TypeError):
                lines.append(text)
        path.write_text("\n".join(lines), encoding="utf-8")

    return spoil


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


for _log in LOGS:
    _fault(f"{_log} times in ISO 8601", touches=_log, spoil=_restamped(_log, _iso))(_has(_log))
    _fault(f"{_log} times in epoch seconds", touches=_log, spoil=_restamped(_log, lambda ms: ms / 1000))(_has(_log))


@_fault("user_speech_correction", "user_text_corrected", touches="simulator")
def _correction(call: Call, draw: random.Random) -> bool:
    number = _some_act(call, draw, "user", "meant", "simulator")
    if number is None:
        return False
    said = _tagged(call.simulator, "meant", number)[0]
    right = call.acts[number].said
    wrong = f"{right} And by the way, forget what I said before."
    for line in _tagged(call.simulator, "meant", number):
        line["data"] = {**line["data"], "text": wrong}
    corrected = {"timestamp": _at(said) + 150, "type": "user_speech_correction", "_tag": ("correction", number)}
    call.simulator.append({**corrected, "data": {"original": wrong, "corrected": right}})
    call.simulator.sort(key=_at)
    number_lines(call)
    return True


@_fault("text under another key", touches="framework")
def _other_key(call: Call, _: random.Random) -> bool:
    for line in call.framework:
        data = dict(line["data"])
        if "frame" in data:
            line["data"] = {"text": data.pop("frame"), **data}
    return bool(call.framework)


@_fault("events of unknown types")
def _unknown(call: Call, draw: random.Random) -> bool:
    extra = {"audit": "message_type", "framework": "type", "simulator": "type"}
    for log, key in extra.items():
        lines = call.log(log)
        if lines:
            at = draw.randrange(len(lines))
            value = {"value": {"x": 1}} if log == "audit" else {"data": {"x": 1}}
            lines.insert(at, {"timestamp": lines[at]["timestamp"], key: "heartbeat", **value, "_tag": ("unknown", 0)})
    return True
