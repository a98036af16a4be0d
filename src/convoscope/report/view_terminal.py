"""A conversation as metrics see it: its context, trace and timeline on the terminal, and `metrics.json` per record."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from convoscope.analysis.words import NOTHING, key_text
from convoscope.conversation import AnyEvent, Conversation, Utterance
from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.report.table import number_column, print_table, text_table
from convoscope.runs.growth import RECORDS
from convoscope.runs.run import Run, write_json
from convoscope.scores.observation import Score
from convoscope.views import MetricContext, metric_context

_LONG = 100
_LONGEST_NAME = 80
"""Of a folder."""
_SECTIONS = {
    "record": ("record_id", "user_goal", "user_persona"),
    "scenario database": (
        "initial_scenario_db",
        "initial_scenario_db_hash",
        "final_scenario_db",
        "final_scenario_db_hash",
        "expected_scenario_db",
    ),
    "agent": ("agent_role", "agent_instructions", "agent_tools", "current_date_time"),
    "turns": (),
    "tools": ("tools_called", "tool_params", "tool_responses"),
    "conversation": (
        "num_turns",
        "num_assistant_turns",
        "num_user_turns",
        "num_tool_calls",
        "conversation_finished",
        "conversation_ended_reason",
        "duration_seconds",
        "pipeline_type",
        "assistant_interrupted_turns",
        "user_interrupted_turns",
    ),
    "files": ("output_dir", "audio_assistant_path", "audio_user_path", "audio_mixed_path"),
}


def print_context(screen: Screen, conversation: Conversation) -> None:
    """The context section by section; long values are counted, `--json` has them whole."""
    context = metric_context(conversation)
    screen.line(f"{one_line(conversation.id)}  turns by {context.turn_rule}", "bold")
    for section, names in _SECTIONS.items():
        screen.line()
        screen.line(section, "bold")
        if section == "turns":
            _turns(screen, context)
            continue
        print_table(screen, text_table(("", ""), [(name, _short(getattr(context, name))) for name in names]))


def _short(value: Any) -> str:
    if value is None or value in ("", [], {}, set()):
        return NOTHING
    if isinstance(value, set | frozenset):
        return ", ".join(str(one) for one in sorted(value))
    if isinstance(value, dict):
        return one_line(f"{len(value)} keys: {', '.join(str(key) for key in value)}", _LONG)
    if isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            return one_line(", ".join(value), _LONG)
        return f"{len(value)} entries"
    return one_line(str(value), _LONG)


def _turns(screen: Screen, context: MetricContext) -> None:
    sides = {
        "user": (context.intended_user_turns, context.transcribed_user_turns, context.audio_timestamps_user_turns),
        "assistant": (
            context.intended_assistant_turns,
            context.transcribed_assistant_turns,
            context.audio_timestamps_assistant_turns,
        ),
    }
    rows: list[tuple[str, ...]] = []
    numbers = {turn for side in sides.values() for texts in side for turn in texts}
    for turn in sorted(numbers):
        for side, (intended, transcribed, audio) in sides.items():
            if any(turn in texts for texts in (intended, transcribed, audio)):
                wait = context.latency_assistant_turns.get(turn) if side == "assistant" else None
                rows.append(
                    (
                        str(turn),
                        side,
                        ", ".join(f"{start:.3f}–{end:.3f}" for start, end in audio.get(turn) or ()) or NOTHING,
                        _milliseconds(wait),
                        one_line(intended.get(turn) or NOTHING, _LONG),
                        one_line(transcribed.get(turn) or NOTHING, _LONG),
                    )
                )
    columns = ("turn", "side", "sound, s", "latency, s", "intended", "transcribed")
    print_table(screen, text_table(columns, rows))


def _milliseconds(seconds: float | None) -> str:
    """Seconds to the millisecond, below a heading that names the unit."""
    return NOTHING if seconds is None else f"{seconds:.3f}"


def print_trace(screen: Screen, conversation: Conversation) -> None:
    """Who said what, and what the tools did, in the order in which the agent met it."""
    screen.line(f"{one_line(conversation.id)}  turns by {conversation.turn_rule}", "bold")
    rows = [
        (str(entry["turn_id"]), entry["role"] or "tool", entry["type"], one_line(_trace_text(entry), 4 * _LONG))
        for entry in metric_context(conversation).conversation_trace
    ]
    print_table(screen, text_table(("turn", "who", "type", "what"), rows))


def _trace_text(entry: Mapping[str, Any]) -> str:
    if entry["role"]:
        return str(entry["content"])
    value = entry["parameters"] if entry["type"] == "tool_call" else entry["tool_response"]
    return f"{entry['tool_name']} {msgspec.json.encode(value).decode()}"


def timeline(conversation: Conversation) -> list[dict[str, Any]]:
    """Every event with the turn it belongs to and its seconds from the start, for a program."""
    return [
        {"turn_id": turn.id, "seconds": _since(conversation, event), **msgspec.to_builtins(event)}
        for turn in conversation.turns
        for event in turn.events
    ]


def print_timeline(screen: Screen, conversation: Conversation) -> None:
    """Every event with its time."""
    screen.line(f"{one_line(conversation.id)}  turns by {conversation.turn_rule}", "bold")
    rows = [
        (
            _milliseconds(entry["seconds"]),
            str(entry["turn_id"]),
            entry["type"].replace("_", " "),
            one_line(str(entry.get("speaker") or entry.get("name") or entry.get("component") or "")),
            one_line(_content_text(entry), 2 * _LONG),
        )
        for entry in timeline(conversation)
    ]
    columns = (number_column("s"), number_column("turn"), "event", "who or what", "said or reported")
    print_table(screen, text_table(columns, rows))


def _content_text(entry: Mapping[str, Any]) -> str:
    """An utterance as meant, and as heard where that differs; other events by what they carry."""
    texts = [entry[key]["text"] for key in ("intended", "spoken", "heard") if key in entry]
    if texts:
        return " ⇢ ".join(dict.fromkeys(texts))
    for key in ("arguments", "result", "values", "value", "state", "slot"):
        if entry.get(key) is not None:
            return msgspec.json.encode(entry[key]).decode()
    return ""


def _since(conversation: Conversation, event: AnyEvent) -> float | None:
    if isinstance(event, Utterance) and event.segments:
        return round(conversation.sounds(event)[0][0] - conversation.started, 3)
    if event.time is None:
        return None
    return round(conversation.common(event.time) - conversation.started, 3)


FILE = "metrics.json"
_UNFIT = re.compile(r"[^\w.-]+")


def write_contexts(run: Run) -> tuple[Path, ...]:
    """Write `records/ID/metrics.json` into the run, one for each conversation."""
    paths = []
    # Conversations and their scores lie in one order, so that no more than one is held at a time.
    scores = groupby(run.scores(all=True), key=lambda score: score.conversation)
    waiting = next(scores, None)
    for conversation in run.conversations():
        own_scores: list[Score] = []
        if waiting is not None and waiting[0] == conversation.id:
            own_scores = list(waiting[1])
            waiting = next(scores, None)
        context = metric_context(conversation).to_dict()
        folder = run.folder.joinpath(RECORDS, *_folder_parts(conversation.id))
        folder.mkdir(parents=True, exist_ok=True)
        fields = {"record_id": context["record_id"], "context": context, "metrics": _by_metric(own_scores)}
        write_json(folder / FILE, fields)
        paths.append(folder / FILE)
    return tuple(paths)


def _folder_parts(id: str) -> list[str]:
    """Where a record lies: a trial below its record, as it does in the logs, and nothing outside of the folder.

    An id that no file system would keep as it is gets a part of its hash, so that no two meet.
    """
    parts = [_UNFIT.sub("_", part).strip(".")[:_LONGEST_NAME] or "_" for part in id.split("/")]
    if "/".join(parts) != id or FILE in parts:
        parts[-1] = f"{parts[-1]}-{hashlib.sha256(id.encode('utf-8', 'replace')).hexdigest()[:10]}"
    return parts


def _by_metric(scores: Sequence[Score]) -> dict[str, list[dict[str, Any]]]:
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for score in scores:
        observation = score.observation
        fields = {
            "subject": str(observation.subject),
            "status": observation.status,
            "value": observation.value,
            "reason": observation.reason,
            "detail": observation.detail,
            "details": observation.details,
            "judge": observation.judge,
        }
        key = key_text(score.metric, score.variant)
        by_metric.setdefault(key, []).append({name: value for name, value in fields.items() if value not in ("", None)})
    return by_metric
