"""The transcript of an ElevenLabs conversation, row by row: who said what, in which node, with which tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from convoscope.conversation import (
    ASSISTANT,
    USER,
    Clock,
    Text,
    Time,
    Utterance,
)
from convoscope.ingest.call_exports import StateTrack, error_of, set_tool_outcome
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, take_text
from convoscope.ingest.timeline_builder import TimelineBuilder

CLOCK = Clock(id="call", kind="relative", source="time_in_call_secs", resolution=1.0)
ROLES = {"agent": ASSISTANT, "assistant": ASSISTANT, "user": USER}

E2E = "e2e_latency"
_OTHER = {USER: ASSISTANT, ASSISTANT: USER}
# The vendor's name of a time, and what the latency metrics read: part of the stack, name.
_METRICS = {
    "convai_ttf_audio_since_silence": ("turn", E2E),
    "convai_asr_trailing_service_latency": ("eou", "transcription_delay"),
    "convai_llm_service_ttfb": ("llm", "ttft"),
    "convai_llm_service_ttf_sentence": ("llm", "ttf_sentence"),
    "convai_llm_service_tt_last_sentence": ("llm", "tt_last_sentence"),
    "convai_tts_service_ttfb": ("tts", "ttfb"),
}
_MODELS = {"convai_asr_provider": "stt", "convai_tts_model": "tts"}
_USUAL_IN_ROW = frozenset(
    {"agent_metadata", "multivoice_message", "feedback", "llm_override", "producing_llm", "rag_retrieval_info"}
    | {"conversation_turn_metrics", "llm_usage", "platform_event", "original_message", "reasoning", "reasoned"}
    | {"source_medium", "source_event_id", "used_static_kb_document_ids", "user_identifier", "triggered_guardrails"}
    | {"file_input", "file_inputs", "contextual_update_info", "message", "tool_calls", "tool_results", "role"}
    | {"interrupted", "ignored_as_backchannel", "time_in_call_secs"}
)
_USUAL_IN_CALL = frozenset({"type", "tool_id", "tool_has_been_called", "tool_details"})
_USUAL_IN_RESULT = frozenset(
    {"type", "is_blocked", "tool_has_been_called", "tool_latency_secs", "error_type", "dynamic_variable_updates"}
    | {"result", "raw_error_message", "is_error"}
)


class _Row(NamedTuple):
    """A row, in our words."""

    facts: JsonObject
    role: str
    state: str
    exchange: int
    """The user's n-th say and the reply to it; 0 is the greeting."""
    metrics: dict[str, float]
    speaks: bool
    """The agent says something in it."""


class Rows:
    """Goes through a transcript and writes it on a timeline."""

    def __init__(self, timeline: TimelineBuilder, *, is_text: bool = False) -> None:
        self.timeline, self.notes, self.is_text = timeline, timeline.notes, is_text
        self.states = StateTrack(timeline)
        self.models: dict[str, str] = {}
        self.llms: Counter[str] = Counter()
        self.has_times = False
        self.reason = ""
        """Why the flow leaves the state, where a tool's result told."""
        self.names: dict[tuple[str, str], str] = {}
        self.beside: JsonObject = {}
        """What a row of tools says beside them, for the first of them."""
        self.measured: Counter[int] = Counter()
        """Replies of each exchange whose times were told."""

    @property
    def model(self) -> str:
        """The language model, where there was just one."""
        return next(iter(self.llms)) if len(self.llms) == 1 else ""

    def read(self, rows: Sequence[Any]) -> None:
        self.names = _names_of_states(rows)
        read = self._rows(rows)
        read = _each_metric_once(read, self)
        first = next((row for row in read if row.state), None)
        if first is not None:
            time = self._time(read[0].facts.get("time_in_call_secs"))
            self.states.enter(first.state, time, as_object(first.facts.get("agent_metadata")))
        for row in read:
            self._row(row)
        if self.llms:
            self.models = {"llm": self.llms.most_common(1)[0][0], **self.models}

    def _rows(self, rows: Sequence[Any]) -> list[_Row]:
        checked: list[_Row] = []
        exchange, agent_spoke, user_spoke = 0, False, False
        for row in rows:
            if not isinstance(row, dict):
                self.notes.set_aside("row_not_an_object", repr(row)[:80])
                continue
            role = ROLES.get(as_text(row.get("role")))
            if role is None:
                self.notes.inferred("role_taken_as_agent", repr(row.get("role"))[:40])
                role = ASSISTANT
            if role == USER and (agent_spoke or not user_spoke):
                exchange, agent_spoke, user_spoke = exchange + 1, False, True
            agent_spoke = agent_spoke or role == ASSISTANT
            state = self.names.get(_place(row), "")
            speaks = role == ASSISTANT and bool(row.get("message") or row.get("multivoice_message"))
            checked.append(_Row(dict(row), role, state, exchange, self._metrics(row), speaks))
        return checked

    def _metrics(self, row: JsonObject) -> dict[str, float]:
        turn = as_object(row.get("conversation_turn_metrics"))
        for name, part in _MODELS.items():
            if as_text(turn.get(name)):
                self.models.setdefault(part, as_text(turn[name]))
        if as_text(row.get("producing_llm")):
            self.llms[as_text(row["producing_llm"])] += 1
        metrics: dict[str, float] = {}
        for name, value in as_object(turn.get("metrics")).items():
            seconds = as_number(value.get("elapsed_time") if isinstance(value, dict) else value)
            if seconds is None or seconds < 0:
                self.notes.set_aside("unusable_metric", f"{name}: {value!r}"[:80])
            else:
                metrics[str(name)] = seconds
        return metrics

    def _row(self, row: _Row) -> None:
        facts = row.facts
        time = self._time(facts.pop("time_in_call_secs", None))
        if row.state:
            self._move(row.state, time, as_object(facts.pop("agent_metadata", None)))
        calls, results = facts.pop("tool_calls", None), facts.pop("tool_results", None)
        facts.pop("conversation_turn_metrics", None)
        has_tools = any(isinstance(one, dict) for one in (*as_list(calls), *as_list(results)))
        self._say(row, time, has_tools=has_tools)
        self._measure(row, time)
        for call in as_list(calls):
            self._call(call, time)
        for result in as_list(results):
            self._result(result, time)
        for what, odd in (("tool_calls", calls), ("tool_results", results)):
            if odd is not None and not isinstance(odd, list):
                self.notes.set_aside(f"{what}_not_a_list", repr(odd)[:80], self.timeline.seq)

    def _say(self, row: _Row, time: Time | None, *, has_tools: bool) -> None:
        facts, timeline = row.facts, self.timeline
        facts.pop("role", None)
        words, intended = self._words(facts), None
        if row.role == ASSISTANT and isinstance(facts.get("original_message"), str):
            intended = Text(facts.pop("original_message"), "original_message")
        cut, ignored = facts.pop("interrupted", None) is True, facts.pop("ignored_as_backchannel", None) is True
        id = take_text(facts, "id")
        extras = timeline.unknown("row", filled(facts), _USUAL_IN_ROW)
        if words is None and intended is None:
            event = as_text(extras.pop("platform_event", None))
            if has_tools and not event:
                self.beside = extras
            elif event or extras:
                timeline.mark(event or "row_without_words", extras or None, time, id)
            else:
                self.notes.ignored("empty_row", "", timeline.seq)
            return
        speaker = timeline.participant(row.role)
        user = row.role == USER
        timeline.events.append(
            Utterance(
                seq=timeline.seq,
                time=time,
                id=id,
                speaker=speaker,
                intended=words if self.is_text else intended,
                spoken=None if user or self.is_text else words,
                heard=words if user and not self.is_text else None,
                cut_off_by=timeline.participant(_OTHER[row.role]) if cut else "",
                manner="backchannel" if ignored else "",
                extras=extras,
            )
        )

    def _words(self, facts: JsonObject) -> Text | None:
        if isinstance(facts.get("message"), str) and facts["message"]:
            return Text(facts.pop("message"), "message")
        parts = as_list(as_object(facts.get("multivoice_message")).get("parts"))
        texts = [as_text(as_object(part).get("text")) for part in parts]
        return Text(" ".join(filter(None, texts)), "multivoice_message") if any(texts) else None

    def _measure(self, row: _Row, time: Time | None) -> None:
        parts: dict[str, dict[str, float]] = {}
        for name, seconds in row.metrics.items():
            if name not in _METRICS:
                self.notes.unknown(f"metrics.{name}", self.timeline.seq)
            component, value = _METRICS.get(name, ("turn", name))
            parts.setdefault(component, {})[value] = seconds
        # The user's part and the tools before it belong to the first reply; a second one waited by itself.
        self.measured[row.exchange] += bool(parts) and row.speaks
        again = self.measured[row.exchange]
        speech = f"exchange-{row.exchange}" + (f".{again}" if again > 1 else "")
        for component, values in parts.items():
            self.states.measure(component, values, speech, time)

    def _call(self, call: Any, time: Time | None) -> None:
        if not isinstance(call, dict):
            self.notes.set_aside("tool_call_not_an_object", repr(call)[:80], self.timeline.seq)
            return
        facts = dict(call)
        name, id = take_text(facts, "tool_name"), take_text(facts, "request_id")
        arguments = facts.pop("params_as_json", None)
        extras = self._take_beside() | self.timeline.unknown("tool_call", filled(facts), _USUAL_IN_CALL)
        self.timeline.call(name, arguments, call_id=id, time=time, extras=extras)

    def _result(self, result: Any, time: Time | None) -> None:
        if not isinstance(result, dict):
            self.notes.set_aside("tool_result_not_an_object", repr(result)[:80], self.timeline.seq)
            return
        facts = dict(result)
        name, id = take_text(facts, "tool_name"), take_text(facts, "request_id")
        content, failed = facts.pop("result_value", None), facts.pop("is_error", None)
        error = take_text(facts, "raw_error_message")
        structure, changes = as_object(facts.get("result")), facts.get("dynamic_variable_updates")
        extras = self._take_beside() | self.timeline.unknown("tool_result", filled(facts), _USUAL_IN_RESULT)
        self.timeline.result(content, call_id=id, name=name, time=time, extras=extras)
        if isinstance(failed, bool):
            message = (error or error_of(self.timeline) or as_text(content) or "error")[:500]
            set_tool_outcome(self.timeline, worked=not failed, error=message)
        for change in as_list(changes):
            self._fill(as_object(change), time)
        self.reason = as_text(structure.get("condition")) or as_text(structure.get("reason")) or self.reason
        for step in as_list(structure.get("steps")):
            self._step(as_object(step), time)

    def _take_beside(self) -> JsonObject:
        beside, self.beside = self.beside, {}
        return beside

    def _fill(self, change: JsonObject, time: Time | None) -> None:
        """A variable that a tool set while the call went on."""
        slot, value = as_text(change.get("variable_name")), change.get("new_value")
        if slot:
            self.states.fill(slot, value, time)

    def _step(self, step: JsonObject, time: Time | None) -> None:
        """What the workflow did by itself: it followed an edge, or ran the tools of a node."""
        target = as_text(step.get("target_node_id"))
        if target:
            self.reason = as_text(step.get("edge_id"))
            names = [name for (_, node), name in self.names.items() if node == target]
            self._move(names[0] if len(names) == 1 else target, time, {})
        for listed, tell in ((step.get("requests"), self._call), (step.get("results"), self._result)):
            for entry in as_list(listed):
                tell(entry, time)

    def _move(self, to: str, time: Time | None, extras: JsonObject) -> None:
        if to != self.states.current:
            self.states.move(to, time, self.reason[:500], extras)
            self.reason = ""

    def _time(self, value: Any) -> Time | None:
        seconds = as_number(value)
        if seconds is None:
            if value is not None:
                self.notes.set_aside("unreadable_time", repr(value)[:80], self.timeline.seq)
            return None
        self.has_times = True
        return Time(seconds, CLOCK.id)


def _place(row: JsonObject) -> tuple[str, str]:
    """The agent and the node that a row says it was made in."""
    metadata = as_object(row.get("agent_metadata"))
    return as_text(metadata.get("agent_id")), as_text(metadata.get("workflow_node_id"))


def _names_of_states(rows: Sequence[Any]) -> dict[tuple[str, str], str]:
    """The name of the state of each agent and node.

    A node goes by its id, with the agent's where two agents have such a node. An agent without any nodes
    is a state itself where there are several agents.
    """
    places = list(dict.fromkeys(_place(row) for row in rows if isinstance(row, dict)))
    agents = {agent for agent, _ in places if agent}
    with_nodes = {agent for agent, node in places if node}
    owners = Counter(node for _, node in places if node)
    names = {(agent, node): f"{node} ({agent})" if owners[node] > 1 else node for agent, node in places if node}
    if len(agents) > 1:
        names |= {(agent, ""): agent for agent in agents - with_nodes}
    return names


def _each_metric_once(rows: Sequence[_Row], read: Rows) -> list[_Row]:
    """A row that calls a tool repeats the times of its turn: they stay where something was said, else at the first."""
    distinct: list[dict[str, float]] = [{} for _ in rows]
    seen: set[tuple[int, str, float]] = set()
    repeated = 0
    for place in sorted(range(len(rows)), key=lambda place: (not rows[place].speaks, place)):
        row = rows[place]
        fresh = {name: one for name, one in row.metrics.items() if (row.exchange, name, one) not in seen}
        # Two replies may well share one figure, but not all of them.
        distinct[place] = row.metrics if fresh and row.speaks else fresh
        repeated += len(row.metrics) - len(distinct[place])
        seen |= {(row.exchange, name, one) for name, one in row.metrics.items()}
    if repeated:
        read.notes.ignored("metric_repeated", f"{repeated} times")
    return [row._replace(metrics=mine) for row, mine in zip(rows, distinct, strict=True)]
