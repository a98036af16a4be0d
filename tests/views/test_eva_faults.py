"""Faults that the published rule must bear (voice logs, 3.9): given a log that lost records, this is what is told.

One small call, whole and with something lost. Times are seconds after its first record.

    1.0 to 2.0  the agent: Hello.            3.0 to 4.5  the user: Are you open?
    6.0 to 7.6  the agent: Until six.        8.5 to 9.5  the user: Thank you.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from convoscope.ingest.formats.voice_logs.reader import read_call
from convoscope.ingest.report import Notes
from convoscope.views import MetricContext, metric_context

T = 1_772_403_723_000
Lines = list[dict[str, Any]]
Logs = dict[str, Lines]


def _audit(at: float, kind: str, text: str) -> dict[str, Any]:
    return {"timestamp": str(T + round(1000 * at)), "message_type": kind, "value": text}


def _sent(at: float, kind: str, text: str) -> dict[str, Any]:
    return {"timestamp": T + round(1000 * at), "type": kind, "data": {"frame": text}}


def _sound(at: float, kind: str, who: str) -> dict[str, Any]:
    ms = T + round(1000 * at)
    return {"timestamp": ms, "event_type": kind, "user": who, "audio_timestamp": ms / 1000}


def _said(at: float, kind: str, text: str) -> dict[str, Any]:
    return {"timestamp": T + round(1000 * at), "type": kind, "data": {"text": text}}


def _call() -> Logs:
    over = {"state": "session_ended", "details": {"reason": "Goodbye"}}
    return {
        "audit": [
            _audit(4.8, "user", "are you open"),
            _audit(5.2, "assistant", "Until six."),
            _audit(9.8, "user", "thank you"),
        ],
        "framework": [
            _sent(0.0, "turn_start", "StartFrame#0"),
            _sent(1.0, "tts_text", "Hello."),
            _sent(2.0, "turn_end", "turn_end"),
            _sent(3.0, "turn_start", "turn_start"),
            _sent(6.0, "tts_text", "Until"),
            _sent(6.4, "tts_text", "six."),
            _sent(7.6, "turn_end", "turn_end"),
        ],
        "simulator": [
            _sound(1.0, "audio_start", "assistant"),
            _said(1.8, "assistant_speech", "Hello."),
            _sound(2.0, "audio_end", "assistant"),
            _sound(3.0, "audio_start", "simulated_user"),
            _said(3.1, "user_speech", "Are you open?"),
            _sound(4.5, "audio_end", "simulated_user"),
            _sound(6.0, "audio_start", "assistant"),
            _said(7.5, "assistant_speech", "Until six."),
            _sound(7.6, "audio_end", "assistant"),
            _sound(8.5, "audio_start", "simulated_user"),
            _said(8.6, "user_speech", "Thank you."),
            _sound(9.5, "audio_end", "simulated_user"),
            {"timestamp": T + 11_000, "type": "connection_state", "data": over},
        ],
    }


_NAMES = {"framework": "pipecat_logs.jsonl", "simulator": "elevenlabs_events.jsonl"}


def _read(folder: Path, logs: Logs, rule: str = "eva/1") -> tuple[MetricContext, set[str]]:
    result = {"record_id": "desk", "pipeline_type": "cascade"}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    if "audit" in logs:
        (folder / "audit_log.json").write_text(json.dumps({"transcript": logs["audit"]}), encoding="utf-8")
    for log, name in _NAMES.items():
        if log in logs:
            text = "".join(f"{json.dumps(line)}\n" for line in logs[log])
            (folder / name).write_text(text, encoding="utf-8")
    notes = Notes()
    conversation = msgspec.structs.replace(read_call(folder, notes), turn_rule=rule)
    return metric_context(conversation), {note.code for note in notes.taken}


def _trace(context: MetricContext) -> list[tuple[int, str, str, str]]:
    return [(one["turn_id"], one["role"], one["type"], one["content"]) for one in context.conversation_trace]


_WHOLE = [
    (0, "assistant", "intended", "Hello."),
    (1, "user", "transcribed", "are you open"),
    (1, "assistant", "intended", "Until six."),
    (2, "user", "transcribed", "thank you"),
]
_MEANT = {1: "Are you open?", 2: "Thank you."}
_SENT = {0: "Hello.", 1: "Until six."}


def test_the_whole_call(tmp_path: Path) -> None:
    context, codes = _read(tmp_path, _call())
    assert _trace(context) == _WHOLE
    assert context.intended_user_turns == _MEANT
    assert context.intended_assistant_turns == _SENT
    assert context.latency_assistant_turns == {1: 1.5}  # 6.0 - 4.5
    assert not codes & {"turn_markers_missing", "implausible_time", "unreadable_time"}


def test_without_turn_boundaries_the_text_is_parted_all_the_same(tmp_path: Path) -> None:
    logs = _call()
    logs["framework"] = [line for line in logs["framework"] if line["type"] == "tts_text"]
    context, codes = _read(tmp_path, logs)
    assert context.intended_assistant_turns == _SENT
    assert _trace(context) == _WHOLE
    assert "turn_markers_missing" in codes


def _no_user(*kinds: str) -> Callable[[dict[str, Any]], bool]:
    return lambda line: line.get("user") == "simulated_user" and line["event_type"] in kinds


@pytest.mark.parametrize(
    ("lost", "waits"),
    [
        # The end of the user's sound is still known, and so is the wait.
        (_no_user("audio_start"), {1: 1.5}),
        (_no_user("audio_start", "audio_end"), {}),
    ],
)
def test_words_whose_start_of_sound_is_lost_stay_in_their_turns(
    lost: Callable[[dict[str, Any]], bool], waits: dict[int, float], tmp_path: Path
) -> None:
    logs = _call()
    logs["simulator"] = [line for line in logs["simulator"] if not lost(line)]
    context, _ = _read(tmp_path, logs)
    assert context.intended_user_turns == _MEANT
    assert _trace(context) == _WHOLE
    assert context.latency_assistant_turns == waits
    # Nothing is made up for the sound itself.
    assert context.audio_timestamps_user_turns == {1: None, 2: None}


def test_noise_after_the_last_word_is_no_turn(tmp_path: Path) -> None:
    logs = _call()
    burst = [_sound(10.2, "audio_start", "simulated_user"), _sound(10.5, "audio_end", "simulated_user")]
    logs["simulator"][-1:-1] = burst
    context, _ = _read(tmp_path, logs)
    assert context.intended_user_turns == _MEANT
    assert _trace(context) == _WHOLE


def test_without_the_audit_log_what_was_meant_and_sent_is_the_trace(tmp_path: Path) -> None:
    logs = _call()
    del logs["audit"]
    context, _ = _read(tmp_path, logs)
    assert _trace(context) == [
        (0, "assistant", "intended", "Hello."),
        (1, "user", "intended", "Are you open?"),
        (1, "assistant", "intended", "Until six."),
        (2, "user", "intended", "Thank you."),
    ]
    assert context.transcribed_user_turns == {1: "", 2: ""}
    assert (context.num_user_turns, context.num_assistant_turns) == (2, 2)


def test_with_the_callers_log_alone_what_they_heard_is_the_agents_part(tmp_path: Path) -> None:
    context, _ = _read(tmp_path, {"simulator": _call()["simulator"]})
    assert [(turn, role, content) for turn, role, _, content in _trace(context)] == [
        (0, "assistant", "Hello."),
        (1, "user", "Are you open?"),
        (1, "assistant", "Until six."),
        (2, "user", "Thank you."),
    ]


def test_the_wait_is_known_though_the_agents_end_is_lost(tmp_path: Path) -> None:
    logs = _call()
    del logs["simulator"][8]
    for rule in ("eva/1", "exchange/1"):
        context, codes = _read(tmp_path, logs, rule)
        assert context.latency_assistant_turns == {1: 1.5}
        assert "audio_end_missing" in codes


class TestTheDefaultRule:
    @pytest.mark.parametrize("rule", ["exchange/1", "eva/1"])
    @pytest.mark.parametrize(
        ("stamp", "code"),
        [
            ("0", "implausible_time"),
            ("-5", "implausible_time"),
            ("4102444800000", "implausible_time"),  # the year 2100
            (None, "unreadable_time"),
            ("garbage", "unreadable_time"),
        ],
    )
    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_one_bad_time_of_the_audit_log_changes_nothing(
        self, place: int, stamp: str | None, code: str, rule: str, tmp_path: Path
    ) -> None:
        logs = _call()
        logs["audit"][place]["timestamp"] = stamp
        context, codes = _read(tmp_path, logs, rule)
        assert _trace(context) == _WHOLE
        if rule == "exchange/1":
            # From the agent's first sound, at 1.0.
            assert context.audio_timestamps_user_turns == {1: [(2.0, 3.5)], 2: [(7.5, 8.5)]}
        assert context.latency_assistant_turns == {1: 1.5}
        assert code in codes

    def test_a_word_of_the_year_2100_stays_where_it_was_said(self, tmp_path: Path) -> None:
        logs = _call()
        logs["framework"][4]["timestamp"] = 4_102_444_800_000
        context, codes = _read(tmp_path, logs, "exchange/1")
        assert context.intended_assistant_turns == _SENT
        assert "implausible_time" in codes

    def test_a_line_of_the_voice_without_words_is_said_to_be_left_out(self, tmp_path: Path) -> None:
        logs = _call()
        logs["framework"][5]["data"] = {}
        del logs["audit"]
        context, codes = _read(tmp_path, logs, "exchange/1")
        assert context.intended_assistant_turns == {0: "Hello.", 1: "Until"}
        assert "line_left_out" in codes

    def test_sound_without_a_time_of_its_own_is_timed_by_the_log(self, tmp_path: Path) -> None:
        logs = _call()
        del logs["simulator"][5]["audio_timestamp"]
        logs["simulator"][5]["timestamp"] += 600
        context, codes = _read(tmp_path, logs, "exchange/1")
        assert context.latency_assistant_turns == {1: 0.9}  # 6.0 - 5.1: the end is logged 0.6 s late
        assert "sound_time_from_log" in codes

    def test_the_users_wait_is_known_though_their_start_is_lost(self, tmp_path: Path) -> None:
        logs = _call()
        del logs["simulator"][3]
        context, _ = _read(tmp_path, logs, "exchange/1")
        assert context.latency_assistant_turns == context.sound_latency_assistant_turns == {1: 1.5}
        assert context.audio_timestamps_user_turns.keys() == {2}

    def test_a_wait_from_an_end_that_is_lost_is_not_known(self, tmp_path: Path) -> None:
        logs = _call()
        del logs["simulator"][5]
        context, _ = _read(tmp_path, logs, "exchange/1")
        assert context.latency_assistant_turns == {}

    def test_a_greeting_that_only_the_caller_tells_of_is_intended(self, tmp_path: Path) -> None:
        logs = _call()
        del logs["framework"]
        context, _ = _read(tmp_path, logs, "exchange/1")
        assert _trace(context)[0] == (0, "assistant", "intended", "Hello.")

    def test_a_goodbye_in_capitals_is_one(self, tmp_path: Path) -> None:
        assert _read(tmp_path, _call(), "exchange/1")[0].conversation_finished is True

    def test_the_voice_alone_does_not_tell_turns_and_says_so(self, tmp_path: Path) -> None:
        context, codes = _read(tmp_path, {"framework": _call()["framework"]}, "exchange/1")
        assert context.num_turns == 1
        assert "turns_unknown" in codes
