"""Generated calls with known truth: seeded, timed as the published real call is, in all three pipelines.

A call is a list of acts, each of which a log tells a part of. `expected` folds the acts into the
fields of a `MetricContext`, by the seed's words and not by the code under test. A fault that
destroys knowledge for good edits the acts, so that what is expected is what can still be known.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EPOCH = 1772403723.0
UNHEARD = "[user audio]"
Line = dict[str, Any]
"""A line of a log; `_tag` says what it is of, and is not written."""


@dataclass
class Act:
    """Someone says something, or the agent uses a tool. What a log has lost is empty."""

    role: str
    said: str = ""
    """Of the user: what the caller meant to say. Of the agent: what was sent to its voice."""
    written: str = ""
    """Of the agent: the model's reply, as the audit log has it."""
    understood: str = ""
    """Of the agent: what the caller heard."""
    chunks: list[str] = field(default_factory=list)
    """Of the user: what the recogniser heard, line by line."""
    transcripts: list[str] = field(default_factory=list)
    """The same, as the framework's log has it."""
    sounds: list[tuple[float, float]] = field(default_factory=list)
    tool: str = ""
    value: Any = None
    barges_in: bool = False
    cut: bool = False

    @property
    def meant(self) -> str:
        return self.said or self.written

    @property
    def heard(self) -> str:
        words = [chunk for chunk in self.chunks if chunk != UNHEARD]
        # What stands in the place of words is told only where nobody knows the words.
        return self.understood or " ".join(words or ([] if self.said else self.chunks))

    @property
    def gone(self) -> bool:
        """Nothing of it is left in any log."""
        return not (self.meant or self.heard or self.sounds or self.tool)


@dataclass
class Call:
    """A call: what happened, and what three logs say of it."""

    kind: str
    words: bool
    markers: bool
    acts: list[Act] = field(default_factory=list)
    audit: list[Line] = field(default_factory=list)
    framework: list[Line] = field(default_factory=list)
    simulator: list[Line] = field(default_factory=list)
    result: Line | None = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    # What a fault made unknowable, each entry argued for where the fault is.
    lost_sounds: set[tuple[str, float]] = field(default_factory=set)
    """Role and start of sounds of which one end is gone: they may be told or left out."""
    unsure_turns: set[int] = field(default_factory=set)
    """Turns of which nobody can say whether someone broke in."""
    unsure_words: set[int] = field(default_factory=set)
    """Turns in which the agent was cut off, and of which nobody can say what was sent to its voice."""
    unsure_fields: set[str] = field(default_factory=set)
    skewed: bool = False

    def log(self, name: str) -> list[Line]:
        lines: list[Line] = getattr(self, name)
        return lines

    def of(self, role: str) -> list[Act]:
        return [act for act in self.acts if act.role == role]

    def turn(self, act: Act) -> int:
        """Turn 0 is the greeting; the user opens each of the others."""
        turn, spoke = 0, True
        for one in self.acts:
            if one.role == "user" and spoke and not one.gone:
                turn, spoke = turn + 1, False
            elif one.role == "assistant" and not one.gone and not self.untold(one):
                spoke = True
            if one is act:
                break
        return turn

    def untold(self, act: Act) -> bool:
        """A reply that was not sent to the voice, with no sound to tell that it was spoken all the same."""
        silent = act.role == "assistant" and not act.said and self.kind != "s2s"
        return silent and "framework" in self.names and "simulator" not in self.names

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("framework", "simulator"):
            if name in self.names:
                lines = [json.dumps(_plain(line)) for line in self.log(name)]
                (folder / self.names[name]).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        if "audit" in self.names:
            entries = [_plain(line) for line in self.audit]
            text = json.dumps({"transcript": entries, "llm_prompts": [], "conversation_messages": []}, indent=1)
            (folder / self.names["audit"]).write_text(text, encoding="utf-8")
        if self.result is not None:
            (folder / "result.json").write_text(json.dumps(self.result), encoding="utf-8")
        return folder


def _plain(line: Line) -> Line:
    return {key: value for key, value in line.items() if key != "_tag"}


# What is said: as the user means it, and as a recogniser writes it, in parts that may become lines of their own.
_USER = [
    (
        ["Hi, I need to change my flight", "to March twenty fifth."],
        ["Hi, I need to change my flight", "to March 25th."],
    ),
    (
        ["The confirmation is Z K {n} F F W,", "and the last name is {name}."],
        ["The confirmation is ZK{d}FFW", "and the last name is {name}."],
    ),
    (
        ["Same route, Austin to L A X only.", "Afternoon, as long as I arrive by four p m."],
        ["Same route. Austin to LAX only.", "Afternoon, as long as I arrive by 4 p.m."],
    ),
    (
        ["Before I pick, I need the total cost", "including the change fee and fare difference."],
        ["Before I pick I need the total cost.", "Including the change fee and fair difference."],
    ),
    (
        ["My maximum is one hundred {n} dollars.", "Can you look for another flight?"],
        ["My maximum is $10{d}.", "Can you look for another flight?"],
    ),
    (
        ["Please move me to flight {n} zero three,", "and I need a confirmed window seat."],
        ["Please move me to flight {d}03.", "And I need a confirmed Windows seat."],
    ),
    (
        ["You have my okay to charge {n} hundred fifteen.", "Please go ahead."],
        ["You have my okay to charge {d}15.", "Please go ahead."],
    ),
    (
        ["What about the luggage,", "is it still included for {name}?"],
        ["What about the luggage?", "Is it still included for {name}?"],
    ),
    (["Could you send the receipt", "to my email address?"], ["Could you send the receipts", "to my e-mail address?"]),
    (
        ["I would also like a vegetarian meal", "on the second leg."],
        ["I'd also like a vegetarian meal", "on the second leg."],
    ),
    (["Is there any flight before {n} in the morning?"], ["Is there any flight before {d} in the morning?"]),
]
_SHORT = [("Yes.", "Yes."), ("No, thanks.", "No thanks."), ("Yes.", "Yeah."), ("Okay.", "OK.")]
_AGENT = [
    "Sure. First, I'll need to pull up your reservation. What's your confirmation number, {name}?",
    "Thanks, {name}. I want to make sure I have that exactly right. Could you say the full code again?",
    "I've pulled up your booking. You're confirmed on flight {n} hundred from Austin. Do you prefer the morning?",
    "For Wednesday I have {n} good nonstop options. The first departs at noon. The second departs in the evening.",
    "For your current ticket you paid two hundred {n} dollars. The fare difference is small. Which one would you like?",
    "The only option that I can see is an early one. It departs at {n} and arrives before ten. Do you want it?",
    "I can do that. The total to change is one hundred {n} dollars. Do you confirm that I should charge it now?",
    "All set. I rebooked you, {name}. Your new seat is in row {n}, by the window. Is there anything else?",
    "You're welcome. Right now you have {n} bags on this reservation. Do you want to add a special meal?",
    "I have sent the receipt. It should reach you in {n} minutes. Can I help with anything else today?",
    "Yes, it is included. Each passenger may take {n} pieces of luggage. Shall I add one more?",
    "There is one before {n}, with a stop in Denver. It is a little cheaper. Shall I book it?",
]
_BEFORE = ["Let me check that for you.", "One moment, please.", "I'll look that up right away."]
_NUMBERS = [("three", "3"), ("five", "5"), ("six", "6"), ("seven", "7"), ("eight", "8"), ("nine", "9")]
_NAMES = ["Rodriguez", "Thompson", "Nakamura", "Okafor", "Lindgren"]
_TOOLS = ["get_reservation", "search_options", "rebook_flight", "assign_seat", "send_receipt"]
_SLIPS = [
    ("I've", "I have"),
    ("Sure.", "Sure,"),
    ("pulled up", "pulled out"),
    ("Wednesday", "Wednesday,"),
    ("row", "Roe"),
]


class _Making:
    """A call on its way: a clock, the acts so far, and the lines that each log gets."""

    def __init__(self, seed: int, kind: str, *, words: bool, markers: bool) -> None:
        self.draw = random.Random(f"{seed} {kind} {words} {markers}")
        self.call = Call(kind, words, markers)
        self.now = EPOCH + self.draw.uniform(0.5, 1.5)
        self.spoken_until = self.now
        # Each recorder has its own habits, the same for a whole call.
        self.late_ends = self.draw.random() < 0.5
        self.old_names = self.draw.random() < 0.5
        self.heard_at_all = kind != "audio_llm" or self.draw.random() < 0.5
        self.stamped_when_done = kind == "s2s" and self.draw.random() < 0.3
        self.transcripts = self.draw.random() < 0.5
        self.topics = self.draw.sample(range(len(_USER)), len(_USER))
        self.answers = self.draw.sample(range(len(_AGENT)), len(_AGENT))

    # -- lines of the logs -------------------------------------------------------------------

    def audit(self, at: float, kind: str, value: Any, tag: tuple[Any, ...]) -> None:
        line = {"value": value, "type": "text", "timestamp": str(round(1000 * at)), "message_type": kind, "_tag": tag}
        self.call.audit.append(line)

    def framework(self, at: float, kind: str, frame: str, tag: tuple[Any, ...], **more: Any) -> None:
        if self.call.kind != "s2s" and (self.call.markers or kind not in ("turn_start", "turn_end")):
            line = {"type": kind, "data": {"frame": frame, **more}, "timestamp": round(1000 * at), "_tag": tag}
            self.call.framework.append(line)

    def told(self, at: float, kind: str, data: Line, tag: tuple[Any, ...]) -> None:
        self.call.simulator.append({"timestamp": round(1000 * at), "type": kind, "data": data, "_tag": tag})

    def sound(self, role: str, kind: str, at: float, tag: tuple[Any, ...]) -> None:
        names = {"user": "elevenlabs_user", "assistant": "framework_agent"}
        named = names[role] if self.old_names else {"user": "simulated_user", "assistant": "assistant"}[role]
        late = {"user": 0.6, "assistant": 0.2}[role] if self.late_ends and kind == "audio_end" else 0.0
        self.call.simulator.append(
            {
                "timestamp": round(1000 * (at + late)),
                "event_type": kind,
                "user": named,
                "audio_timestamp": round(at, 6),
                "_tag": tag,
            }
        )

    # -- what happens ------------------------------------------------------------------------

    def user(self, meant: list[str], heard: list[str], *, interrupted: bool = False, barges_in: bool = False) -> Act:
        draw = self.draw
        act = Act("user", " ".join(meant), barges_in=barges_in)
        number = len(self.call.acts)
        self.call.acts.append(act)
        begin = self.now
        length = max(0.5, len(act.meant.split()) / draw.uniform(2.3, 3.0))
        end = begin + length
        act.sounds.append((round(begin, 6), round(end, 6)))
        self.sound("user", "audio_start", begin, ("start", number))
        said = begin + min(draw.uniform(0.24, 1.5), 0.7 * length)
        self.told(said, "user_speech", {"text": act.meant, "source": "simulated_user"}, ("meant", number))
        started = begin + draw.uniform(0.2, 0.5)
        if self.call.acts[:-1]:
            self.framework(started, "turn_end", "turn_end", ("marker", number), was_interrupted=barges_in)
        self.framework(started, "turn_start", "turn_start", ("marker", number))
        self.sound("user", "audio_end", end, ("end", number))
        self._heard(act, number, heard, begin, end, interrupted=interrupted)
        self.spoken_until = end
        self.now = begin + 0.65 * length if interrupted else self.now
        return act

    def _heard(self, act: Act, number: int, heard: list[str], begin: float, end: float, *, interrupted: bool) -> None:
        """The recogniser's lines: at the end of each part, the last a little after the end of the sound."""
        draw, kind = self.draw, self.call.kind
        parts = heard if (interrupted or draw.random() < 0.3) and kind != "s2s" else [" ".join(heard)]
        share = 0.45 if interrupted else 0.6
        at = end
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            at = end + draw.uniform(0.1, 0.9) if last else begin + share * (end - begin)
            if kind == "s2s":
                at = begin + draw.uniform(0.0, 0.4)
            act.chunks.append(part if self.heard_at_all else UNHEARD)
            self.audit(at, "user", act.chunks[-1], ("heard", number))
            if self.transcripts and self.heard_at_all and kind != "s2s":
                act.transcripts.append(part)
                self.framework(at - 0.05, "transcript", f" {part}", ("transcript", number))
        self.now = max(at, end) if kind == "s2s" else at

    def tools(self, count: int) -> None:
        for _ in range(count):
            number = len(self.call.acts)
            name = self.draw.choice(_TOOLS)
            at = self.now + self.draw.uniform(0.5, 2.0)
            call = {"tool": name, "parameters": {"id": f"{number}-{self.draw.randrange(100)}"}}
            answer = {"tool": name, "response": {"status": "success", "row": number}}
            self.audit(at - 0.002, "llm_call", {"agent": "a", "response": ""}, ("llm", number))
            self.audit(at, "tool_call", call, ("tool", number))
            self.now = at + self.draw.uniform(0.0, 0.3)
            self.audit(self.now, "tool_response", answer, ("tool", number))
            self.call.acts.append(Act("tool", tool=name, value=(call["parameters"], answer["response"])))

    def assistant(self, text: str, *, cut: bool = False, greeting: bool = False) -> Act:
        """The model writes, the voice speaks; a reply that is cut breaks off before its end."""
        draw, kind = self.draw, self.call.kind
        number = len(self.call.acts)
        act = Act("assistant", written="" if greeting and kind != "s2s" else text, cut=cut)
        self.call.acts.append(act)
        written = self.now + draw.uniform(0.2, 2.0)
        begin = written + draw.uniform(0.2, 0.3)
        words = text.split()
        length = max(0.6, len(words) / draw.uniform(2.3, 3.0))
        end = begin + length * draw.uniform(0.4, 0.7) if cut else begin + length
        spoken = words if not cut else words[: max(3, round(len(words) * (end - begin) / length))]
        act.sounds.append((round(begin, 6), round(end, 6)))
        if kind != "s2s" and not greeting:
            self.audit(written - 0.001, "llm_call", {"agent": "a", "response": text}, ("llm", number))
            self.audit(written, "assistant", text.replace(". ", ".\n\n", 1), ("written", number))
            self.framework(written, "llm_response", text, ("llm", number))
        elif kind == "s2s":
            act.written = " ".join(spoken)
            # Done is done: when the user breaks in, just before they are heard.
            done = end - 0.32 if cut else end + draw.uniform(0.1, 0.4)
            at = done if self.stamped_when_done else begin + draw.uniform(0.0, 0.1)
            self.audit(at, "assistant", act.written, ("written", number))
        self.sound("assistant", "audio_start", begin, ("start", number))
        self.sound("assistant", "audio_end", end, ("end", number))
        if kind != "s2s":
            self._sent(act, number, text, begin, end, length)
        act.understood = self._as_heard(" ".join(spoken))
        self.now = self.spoken_until = end
        return act

    def _sent(self, act: Act, number: int, text: str, begin: float, end: float, length: float) -> None:
        """Words reach the voice about twice as fast as they are spoken, until the user breaks in."""
        at = begin + self.draw.uniform(0.3, 0.7)
        sent: list[str] = []
        parts = text.split() if self.call.words else text.replace(". ", ".|").replace("? ", "?|").split("|")
        step = 0.5 * length / max(1, len(parts))
        for part in parts:
            if act.cut and sent and at > end - 0.05:
                break
            self.framework(at, "tts_text", part, ("sent", number))
            sent.append(part)
            # Words often come in bursts that share an instant, phrases never do.
            at += step * (0.0 if self.call.words and self.draw.random() < 0.3 else self.draw.uniform(0.8, 1.5))
        act.said = " ".join(sent)

    def _as_heard(self, text: str) -> str:
        slip = self.draw.choice(_SLIPS)
        return text.replace(*slip) if self.draw.random() < 0.6 else text

    def understood(self, acts: list[Act], at: float) -> None:
        """The caller writes down, in one text, what was heard since their last words."""
        text = " ".join(act.understood for act in acts)
        number = next(place for place, act in enumerate(self.call.acts) if act is acts[-1])
        self.told(at, "assistant_speech", {"text": text, "source": "assistant"}, ("understood", number))


def make_call(seed: int, kind: str = "cascade", *, words: bool = True, markers: bool = True) -> Call:
    """A call of 3 to 12 exchanges."""
    making = _Making(seed, kind, words=words, markers=markers)
    draw = making.draw
    making.told(EPOCH, "connection_state", {"state": "connected", "details": {}}, ("state", 0))
    making.framework(EPOCH, "turn_start", "StartFrame#0", ("marker", 0))
    acts = [making.assistant("Hello! How can I help you today?", greeting=True)]
    exchanges = draw.randint(3, 12)
    for number in range(exchanges):
        cut = acts[-1].cut
        making.now = making.spoken_until + (-0.3 if cut else draw.uniform(0.7, 3.9))
        making.understood(acts, making.now + draw.uniform(-0.05, 0.05))
        last = number == exchanges - 1
        if last and draw.random() < 0.7:
            making.user(
                ["No, that is all.", "Thanks for your help. Bye!"], ["No that's all.", "Thanks for your help. Bye."]
            )
            break
        acts = _exchange(making, number, barges_in=cut, may_be_cut=not last)
    else:
        making.understood(acts, making.spoken_until + 2.0)
    _finish(making, seed)
    return making.call


def _exchange(making: _Making, number: int, *, barges_in: bool, may_be_cut: bool) -> list[Act]:
    draw = making.draw
    meant, heard = _words(making, number)
    interrupted = len(meant) > 1 and draw.random() < 0.08 and making.call.kind != "s2s"
    making.user(meant, heard, interrupted=interrupted, barges_in=barges_in)
    count = 0 if interrupted else draw.choice((0, 0, 0, 1, 1, 2))
    said: list[Act] = []
    if count and draw.random() < 0.3:
        said.append(making.assistant(draw.choice(_BEFORE)))
    making.tools(count)
    text = _AGENT[making.answers[number % len(_AGENT)]]
    word, _ = draw.choice(_NUMBERS)
    text = text.format(n=word, name=draw.choice(_NAMES))
    said.append(making.assistant(text, cut=may_be_cut and not interrupted and draw.random() < 0.15))
    return said


def _words(making: _Making, number: int) -> tuple[list[str], list[str]]:
    draw = making.draw
    if number and draw.random() < 0.25:
        short = draw.choice(_SHORT)
        return [short[0]], [short[1]]
    meant, heard = _USER[making.topics[number % len(_USER)]]
    word, digit = draw.choice(_NUMBERS)
    name = draw.choice(_NAMES)
    return (
        [part.format(n=word, d=digit, name=name) for part in meant],
        [part.format(n=word, d=digit, name=name) for part in heard],
    )


def _finish(making: _Making, seed: int) -> None:
    call, draw = making.call, making.draw
    # The audit log of a call that ended before the last words were recognised does not have them.
    over = max(making.now, making.spoken_until) + draw.uniform(1.5, 4.0)
    making.told(over, "connection_state", {"state": "session_ended", "details": {"reason": "goodbye"}}, ("state", 1))
    making.framework(over, "turn_end", "CancelFrame#0", ("marker", 0), was_interrupted=False)
    call.audit.sort(key=lambda line: int(line["timestamp"]))
    call.framework.sort(key=lambda line: line["timestamp"])
    call.simulator.sort(key=lambda line: line["timestamp"])
    number_lines(call)
    call.names = {"audit": "audit_log.json"}
    call.names["simulator"] = "elevenlabs_events.jsonl" if making.old_names else "user_simulator_events.jsonl"
    if call.kind != "s2s":
        choices = ("pipecat_events.jsonl", "pipecat_logs.jsonl", "framework_logs.jsonl")
        call.names["framework"] = draw.choice(choices)
    field = {"audit": "audit_log_path", "framework": "pipecat_logs_path", "simulator": "elevenlabs_logs_path"}
    call.result = {
        "record_id": f"{call.kind}-{seed}",
        "completed": True,
        "pipeline_type": call.kind,
        "conversation_ended_reason": "goodbye",
        **{field[log]: f"output/run/records/{seed}/{name}" for log, name in call.names.items()},
    }


def number_lines(call: Call) -> None:
    """The caller's log numbers its lines."""
    for number, line in enumerate(call.simulator, 1):
        line["sequence"] = number


def expected(call: Call) -> dict[str, Any]:
    """The fields of a `MetricContext`, folded from the acts: each exchange is a turn, the greeting is turn 0."""
    texts: dict[str, dict[int, list[str]]] = {
        f"{how}_{role}_turns": {} for how in ("intended", "transcribed") for role in ("assistant", "user")
    }
    audio: dict[str, dict[int, list[tuple[float, float]]]] = {"assistant": {}, "user": {}}
    trace: list[dict[str, Any]] = []
    spoke: dict[str, set[int]] = {"assistant": set(), "user": set()}
    for act in call.acts:
        if act.gone or call.untold(act):
            continue
        turn = call.turn(act)
        if act.role == "tool":
            trace.append({"tool_name": act.tool, "parameters": act.value[0], "type": "tool_call", "turn_id": turn})
            if act.value[1] is not None:
                answer = {"tool_name": act.tool, "tool_response": act.value[1], "type": "tool_response"}
                trace.append({**answer, "turn_id": turn})
            continue
        spoke[act.role].add(turn)
        for how, text in (("intended", act.meant), ("transcribed", act.heard)):
            if text:
                texts[f"{how}_{act.role}_turns"].setdefault(turn, []).append(text)
        if act.sounds:
            audio[act.role].setdefault(turn, []).extend(act.sounds)
        _trace(call, trace, act, turn)
    calls = [entry for entry in trace if entry["type"] == "tool_call"]
    answers = [entry for entry in trace if entry["type"] == "tool_response"]
    sounds = {role: [(*span, turn) for turn, spans in audio[role].items() for span in spans] for role in audio}
    return {
        **{name: {turn: " ".join(parts) for turn, parts in found.items()} for name, found in texts.items()},
        "audio_timestamps_assistant_turns": audio["assistant"],
        "audio_timestamps_user_turns": audio["user"],
        "assistant_interrupted_turns": _broke_in(sounds["assistant"], sounds["user"]),
        "user_interrupted_turns": _broke_in(sounds["user"], sounds["assistant"]),
        "conversation_trace": trace,
        "tool_params": [{"tool_name": one["tool_name"], "tool_parameters": one["parameters"]} for one in calls],
        "tool_responses": [{key: one[key] for key in ("tool_name", "tool_response")} for one in answers],
        "num_turns": len(spoke["assistant"] | spoke["user"]),
        "num_assistant_turns": len(spoke["assistant"]),
        "num_user_turns": len(spoke["user"]),
        "num_tool_calls": len(calls),
    }


def _trace(call: Call, trace: list[dict[str, Any]], act: Act, turn: int) -> None:
    choices = [(act.meant, "intended"), (act.heard, "transcribed")]
    if act.role == "user" and call.kind == "cascade":
        choices.reverse()
    for text, kind in choices:
        if text:
            # A greeting is always intended.
            greets = act.role == "assistant" and turn == 0 and not any(one.get("role") == act.role for one in trace)
            if trace and trace[-1].get("role") == act.role:
                trace[-1]["content"] += f" {text}"
            else:
                told = "intended" if greets else kind
                trace.append({"role": act.role, "content": text, "type": told, "turn_id": turn})
            return


def _broke_in(breaking: list[tuple[float, float, int]], broken: list[tuple[float, float, int]]) -> set[int]:
    return {
        turn for start, _, turn in breaking if any(other < start and start + 0.001 < end for other, end, _ in broken)
    }


VARIANTS: tuple[dict[str, Any], ...] = (
    {"kind": "cascade", "words": True, "markers": True},
    {"kind": "cascade", "words": True, "markers": False},
    {"kind": "cascade", "words": False, "markers": True},
    {"kind": "cascade", "words": False, "markers": False},
    {"kind": "audio_llm", "words": True, "markers": True},
    {"kind": "audio_llm", "words": False, "markers": True},
    {"kind": "s2s", "words": True, "markers": True},
)


def calls(count: int, first: int = 0) -> list[Call]:
    """Calls of every variant in turn."""
    return [make_call(seed, **VARIANTS[seed % len(VARIANTS)]) for seed in range(first, first + count)]
