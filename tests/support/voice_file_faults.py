"""Faults of whole files: broken, missing, by another clock, in another shape."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.voice_calls import Act, Call, Line, expected, number_lines
from support.voice_faults import FAULTS, LOGS, Edit, Spoil, at, fault, forget_sent, some_act, stamp, tagged, without

__all__ = ["FAULTS"]
# Those of single lines, and these.

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


@fault("last line of the caller's log cut", "cut_last_line", touches="simulator", spoil=_cut_line("simulator"), stage=3)
def _cut_simulator(call: Call, draw: random.Random) -> bool:
    return _has("simulator")(call, draw) and call.simulator[-1]["_tag"][0] == "state"


@fault(
    "last line of the framework's log cut", "cut_last_line", touches="framework", spoil=_cut_line("framework"), stage=3
)
def _cut_framework(call: Call, draw: random.Random) -> bool:
    if not _has("framework")(call, draw):
        return False
    kind, number = call.framework[-1]["_tag"]
    if kind == "sent":
        said = call.acts[number].said
        call.acts[number].said = said[: len(said) - len(next(iter(call.framework[-1]["data"].values())))].strip()
    return kind != "transcript"


def _blank_lines(folder: Path, call: Call, draw: random.Random) -> None:
    for log in ("framework", "simulator"):
        path = folder / call.names.get(log, "none")
        if path.exists():
            lines = path.read_text(encoding="utf-8").split("\n")
            for _ in range(3):
                lines.insert(draw.randrange(len(lines)), draw.choice(("", "  ")))
            path.write_text("\n".join(lines), encoding="utf-8")


fault("blank lines", "blank_line", touches="simulator", spoil=_blank_lines)(_always)


def _rubbish(folder: Path, call: Call, draw: random.Random) -> None:
    for log in ("framework", "simulator"):
        path = folder / call.names.get(log, "none")
        if path.exists():
            lines = path.read_text(encoding="utf-8").split("\n")
            rubbish = ('{"timestamp": 17724', "Traceback (most recent call last):", "[1, 2", "\x00\x00")
            lines.insert(draw.randrange(1, max(2, len(lines) - 1)), draw.choice(rubbish))
            path.write_text("\n".join(lines), encoding="utf-8")


fault("lines that are no JSON", "line_left_out", touches="simulator", spoil=_rubbish)(_always)


def _cut_audit_file(folder: Path, call: Call, _: random.Random) -> None:
    path = folder / call.names.get("audit", "none")
    if path.exists() and call.audit:
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: text.rindex(f'"{call.audit[-1]["timestamp"]}"')], encoding="utf-8")


@fault("audit log cut", "cut_file", touches="audit", spoil=_cut_audit_file)
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
        call_only = line["message_type"] == "tool_response" and tagged(call.audit, "tool", number)
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
            forget_sent(call, act)
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
    for line in sorted(call.audit, key=at):
        kind, number = line["_tag"]
        if kind == "heard" and number in broken:
            return True
        if kind == "heard":
            parts.add(number)
        elif kind == "written":
            broken = set(parts)
    return False


for _lost_logs in (("audit",), ("framework",), ("simulator",)):
    fault(f"{_lost_logs[0]} log missing", "log_missing named_file_missing", removes=_lost_logs)(_gone(*_lost_logs))
for _lost_logs in (("audit", "framework"), ("audit", "simulator"), ("framework", "simulator")):
    fault(f"{' and '.join(_lost_logs)} logs missing", "log_missing", removes=_lost_logs)(_gone(*_lost_logs))


@fault("no turn markers", "turn_markers_missing", touches="framework")
def _no_markers(call: Call, _: random.Random) -> bool:
    call.markers = False
    if not call.log("simulator"):
        call.unsure_fields.add("user_interrupted_turns")
    return without(call, "framework", tagged(call.framework, "marker")) and bool(tagged(call.framework, "sent"))


@fault("no result.json")
def _no_result(call: Call, _: random.Random) -> bool:
    call.result = None
    if call.kind == "audio_llm" and not any("[user audio]" in act.chunks for act in call.acts):
        call.kind = "cascade"
    return True


@fault("result.json names files that are not there", "named_file_missing")
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
            stamp(line, at(line) + 1000 * ahead)
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
        fault(f"{_log} clock {_seconds} s off", "clock_skew", touches=_log)(_skewed(_log, _seconds))


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
                if str(entry["timestamp"]).isdigit():
                    entry["timestamp"] = write(int(entry["timestamp"]))
            path.write_text(json.dumps(document), encoding="utf-8")
            return
        lines = []
        for text in path.read_text(encoding="utf-8").split("\n"):
            try:
                line = json.loads(text)
                if isinstance(line["timestamp"], int):
                    line["timestamp"] = write(line["timestamp"])
                lines.append(json.dumps(line))
            except (ValueError, TypeError, KeyError):
                lines.append(text)
        path.write_text("\n".join(lines), encoding="utf-8")

    return spoil


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


for _log in LOGS:
    fault(f"{_log} times in ISO 8601", touches=_log, spoil=_restamped(_log, _iso))(_has(_log))
    fault(f"{_log} times in epoch seconds", touches=_log, spoil=_restamped(_log, lambda ms: ms / 1000))(_has(_log))


@fault("user_speech_correction", "user_text_corrected", touches="simulator")
def _correction(call: Call, draw: random.Random) -> bool:
    number = some_act(call, draw, "user", "meant", "simulator")
    if number is None:
        return False
    said = tagged(call.simulator, "meant", number)[0]
    right = call.acts[number].said
    wrong = f"{right} And by the way, forget what I said before."
    for line in tagged(call.simulator, "meant", number):
        line["data"] = {**line["data"], "text": wrong}
    corrected = {"timestamp": at(said) + 150, "type": "user_speech_correction", "_tag": ("correction", number)}
    call.simulator.append({**corrected, "data": {"original": wrong, "corrected": right}})
    call.simulator.sort(key=at)
    number_lines(call)
    return True


@fault("text under another key", touches="framework")
def _other_key(call: Call, _: random.Random) -> bool:
    for line in call.framework:
        data = dict(line["data"])
        if "frame" in data:
            line["data"] = {"text": data.pop("frame"), **data}
    return bool(call.framework)


@fault("events of unknown types")
def _unknown(call: Call, draw: random.Random) -> bool:
    extra = {"audit": "message_type", "framework": "type", "simulator": "type"}
    for log, key in extra.items():
        lines = call.log(log)
        if lines:
            place = draw.randrange(len(lines))
            value = {"value": {"x": 1}} if log == "audit" else {"data": {"x": 1}}
            lines.insert(
                place, {"timestamp": lines[place]["timestamp"], key: "heartbeat", **value, "_tag": ("unknown", 0)}
            )
    return True
