"""ElevenLabs conversations, from the API and from the post-call webhook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import ASSISTANT, USER, Agent, Clock, Conversation, Label, Outcome, Text, Time
from convoscope.errors import InputError
from convoscope.ingest.call_exports import OTHER, CallReader, CallTimeline, ExportedCall, end_reason
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import Fields, JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes

_NAME = "elevenlabs"
_CLOCK = Clock(id="call", kind="relative", source="time_in_call_secs", resolution=1.0)
_ROLES = {"agent": ASSISTANT, "assistant": ASSISTANT, "user": USER}
_SUMMARY = "fetch each conversation by its id: the list of conversations has no transcripts"

# A reason is a sentence: a part of it decides, and the first that fits.
_ENDS: dict[str, bool] = {
    **dict.fromkeys(("max duration", "maximum duration", "max_duration", "exceeded", "timeout", "timed out"), False),
    **dict.fromkeys(("silence", "error"), False),
    **dict.fromkeys(("end_call", "ended by remote party", "remote party", "ended by user", "client ended"), True),
    **dict.fromkeys(("transfer", "voicemail", "client disconnected: 1000", "client disconnected: 1001"), True),
}
_BROKEN = "failed"
_LISTS = {
    "evaluation_criteria_results": ("evaluation_criteria_results_list", "criteria_id"),
    "data_collection_results": ("data_collection_results_list", "data_collection_id"),
}
"""Results by id, the list that says the same, and the name of the id in an entry of the list."""
# The name of a time, and what the latency metrics read: part of the stack, name.
_METRICS = {
    "convai_ttf_audio_since_silence": ("turn", "e2e_latency"),
    "convai_asr_trailing_service_latency": ("eou", "transcription_delay"),
    "convai_llm_service_ttfb": ("llm", "ttft"),
    "convai_llm_service_ttf_sentence": ("llm", "ttf_sentence"),
    "convai_llm_service_tt_last_sentence": ("llm", "tt_last_sentence"),
    "convai_tts_service_ttfb": ("tts", "ttfb"),
}
_MODELS = {"convai_asr_provider": "stt", "convai_tts_model": "tts"}
_USUAL = frozenset(
    {"agent_id", "user_id", "status", "branch_id", "version_id", "metadata", "analysis", "visited_agents", "tag_ids"}
    | {"has_audio", "has_user_audio", "has_response_audio", "has_auxiliary_audio", "conversation_product"}
    | {"user_message_count", "agent_message_count", "conversation_initiation_client_data", "environment"}
    | {"otlp_traces", "webhook"}
)
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


class ElevenLabsReader(CallReader):
    """Conversations: one, several in an array, lines or the envelope of a list, or in a webhook."""

    name = _NAME
    title = "ElevenLabs conversations"
    noun, error_field = "conversation", "conversations"
    lists = ("conversations",)
    expected = 'expected {"conversation_id": …, "agent_id": …, "transcript": [{"role": …, "message": …}]}'
    unreadable = _SUMMARY

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if not isinstance(value, dict):
                continue
            if sure := _looks_like_a_call(value):
                return Detection(sure, "a conversation with a transcript of agent and user")
            if self.unwrapped(value) is not None:
                return Detection(0.95, "a post-call webhook with a conversation")
            listed = as_list(value.get("conversations"))[:5]
            if any(_looks_like_a_call(one) or _is_summary(one) for one in listed):
                return Detection(0.9, 'its "conversations" are conversations of an agent')
        return None

    def is_call(self, value: JsonObject) -> bool:
        return "transcript" in value

    def unwrapped(self, value: JsonObject) -> ExportedCall | None:
        if not as_text(value.get("type")).startswith("post_call") or not _looks_like_a_call(value.get("data")):
            return None
        return ExportedCall({**value["data"], "webhook": {name: one for name, one in value.items() if name != "data"}})

    def conversation(self, source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
        call = Fields(source.call, "conversation", notes, _USUAL)
        rows = call.pop("transcript", None)
        if not isinstance(rows, list) or not any(isinstance(row, dict) for row in rows):
            hint = _SUMMARY if _is_summary(source.call) else self.expected
            raise InputError("has no transcript", field="transcript", hint=hint)
        metadata, analysis = (Fields(call.get(part), part, notes) for part in ("metadata", "analysis"))
        timeline = _RowTimeline(notes, is_text=metadata.get("text_only") is True)
        timeline.read(rows)
        labels = (*_verdicts(analysis), *_feedback(metadata))
        # Values that were read out of the transcript after the call: the state that collected them is unknown.
        for id, result in _take_results(analysis, "data_collection_results").items():
            if timeline.fill_somewhere(id, result.get("value"), {"source": "analysis.data_collection_results"}):
                notes.inferred("slot_from_analysis", id, timeline.seq - 1)
        outcome = _outcome(as_text(call.get("status")), metadata)
        id, agent = call.text("conversation_id"), call.text("agent_name") or as_text(call.get("agent_id"))
        # The language model, where there was just one.
        model = next(iter(timeline.llms)) if len(timeline.llms) == 1 else ""
        dims = {"agent": agent, "model": model, "flow": agent if timeline.current else ""}
        for part in (metadata, analysis):
            if isinstance(call.get(part.of), dict):
                call[part.of] = filled(part)
        has_voice = bool(timeline.models.keys() & {"tts", "stt"})
        return timeline.conversation(
            self,
            group,
            id or (f"{group.name}#{source.number}" if source.path else group.name),
            source.path,
            dimensions=filled(dims),
            pipeline="text" if timeline.is_text else "cascade" if has_voice else None,
            clocks=(_CLOCK,) if timeline.has_times else (),
            agent=Agent(name=agent, models=timeline.models),
            labels=labels,
            outcome=outcome,
            extras=call.rest(),
        )


def _looks_like_a_call(value: Any) -> float:
    """How sure it is that this is a conversation; 0 for not at all."""
    rows = value.get("transcript") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return 0.0
    if any(isinstance(row, dict) and as_text(row.get("role")) in _ROLES and "time_in_call_secs" in row for row in rows):
        return 0.95
    return 0.8 if {"conversation_id", "agent_id"} <= value.keys() else 0.0


def _is_summary(value: Any) -> bool:
    return isinstance(value, dict) and {"conversation_id", "agent_id", "call_successful"} <= value.keys()


def _outcome(status: str, metadata: Fields) -> Outcome:
    """How it ended. A status of `done` says that the recording was processed, and nothing of the caller's task."""
    reason = end_reason(metadata, "termination_reason")
    error = as_object(metadata.get("error"))
    broke = as_text(error.get("reason")) or (f"error {as_text(error.get('code'))}" if filled(error) else "")
    if status == _BROKEN and not broke:
        broke = reason or _BROKEN
    # `call_successful` is what a model thinks of the call: a label, and no fact about its end.
    return Outcome(
        finished=False if broke else next((natural for part, natural in _ENDS.items() if part in reason.lower()), None),
        ended_reason=reason,
        error=broke,
        duration=as_number(metadata.get("call_duration_secs")),
    )


def _take_results(analysis: Fields, name: str) -> dict[str, JsonObject]:
    """Results by their id; the list is used where there is nothing else, and dropped where it says the same."""
    listed_as, id_name = _LISTS[name]
    from_list = {
        id: one
        for one in as_list(analysis.get(listed_as))
        if isinstance(one, dict) and (id := as_text(one.get(id_name)))
    }
    results = {str(id): one for id, one in as_object(analysis.get(name)).items() if isinstance(one, dict)}
    if not results or from_list == results:
        analysis.pop(listed_as, None)
        analysis[name] = analysis.get(name) or from_list
    return results or from_list


def _verdicts(analysis: Fields) -> Iterator[Label]:
    """What the vendor's own judge says of the call."""
    for name in ("call_successful", "call_success_score"):
        if analysis.get(name) not in (None, ""):
            yield Label(name=name, value=analysis[name], rater=_NAME, rater_kind="external")
    for id, verdict in _take_results(analysis, "evaluation_criteria_results").items():
        why = as_text(verdict.get("rationale"))
        if verdict.get("result") is not None:
            yield Label(name=id, value=verdict["result"], rater=_NAME, rater_kind="external", notes=why)
        if verdict.get("score") is not None:
            most = as_number(verdict.get("max_score"))
            scale = "" if most is None else f"0 to {most:g}"
            yield Label(name=f"{id}.score", value=verdict["score"], rater=_NAME, rater_kind="external", scale=scale)


def _feedback(metadata: Fields) -> Iterator[Label]:
    """What the caller said of the call."""
    feedback = as_object(metadata.get("feedback"))
    for name in ("overall_score", "rating"):
        if feedback.get(name) is not None:
            comment = as_text(feedback.get("comment"))
            yield Label(name=f"feedback.{name}", value=feedback[name], rater="user", rater_kind="human", notes=comment)


class _Row(NamedTuple):
    """A row of the transcript."""

    fields: Fields
    role: str
    state: str
    exchange: int
    """The n-th utterance of the user and the reply to it; 0 is the greeting."""
    metrics: dict[str, float]
    speaks: bool
    """The agent says something in it."""


class _RowTimeline(CallTimeline):
    """Goes through a transcript and writes it on a timeline."""

    def __init__(self, notes: Notes, *, is_text: bool) -> None:
        super().__init__(notes)
        self.is_text = is_text
        self.models: dict[str, str] = {}
        self.llms: Counter[str] = Counter()
        self.has_times = False
        self.reason = ""
        """Why the flow leaves the state, from a tool's result."""
        self.names: dict[tuple[str, str], str] = {}
        self.row_extras: JsonObject = {}
        """Other fields of a row of tools, for the first of them."""
        self.measured: Counter[int] = Counter()
        """Replies of each exchange that have times."""

    def read(self, listed: Sequence[Any]) -> None:
        self.names = _names_of_states(listed)
        rows = self._each_metric_once(list(self._rows(listed)))
        first = next((row for row in rows if row.state), None)
        if first is not None:
            time = self._call_time(rows[0].fields.get("time_in_call_secs"))
            self.enter(first.state, time, as_object(first.fields.get("agent_metadata")))
        for row in rows:
            self._row(row)
        if self.llms:
            self.models = {"llm": self.llms.most_common(1)[0][0], **self.models}

    def _rows(self, listed: Sequence[Any]) -> Iterator[_Row]:
        exchange, agent_spoke, user_spoke = 0, False, False
        for value in listed:
            if not isinstance(value, dict):
                self.notes.set_aside("row_not_an_object", repr(value)[:80])
                continue
            role = _ROLES.get(as_text(value.get("role")))
            if role is None:
                self.notes.inferred("role_taken_as_agent", repr(value.get("role"))[:40])
                role = ASSISTANT
            if role == USER and (agent_spoke or not user_spoke):
                exchange, agent_spoke, user_spoke = exchange + 1, False, True
            agent_spoke = agent_spoke or role == ASSISTANT
            speaks = role == ASSISTANT and bool(value.get("message") or value.get("multivoice_message"))
            fields = Fields(value, "row", self.notes, _USUAL_IN_ROW)
            yield _Row(fields, role, self.names.get(_node_of(value), ""), exchange, self._metrics(fields), speaks)

    def _metrics(self, row: Fields) -> dict[str, float]:
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

    def _each_metric_once(self, rows: Sequence[_Row]) -> list[_Row]:
        """A row that calls a tool repeats the times of its turn: they stay with what was said, else at the first."""
        distinct = list(rows)
        seen: set[tuple[int, str, float]] = set()
        repeated = 0
        for index, row in sorted(enumerate(rows), key=lambda numbered: (not numbered[1].speaks, numbered[0])):
            times = {(row.exchange, name, seconds) for name, seconds in row.metrics.items()}
            fresh = {name: seconds for _, name, seconds in times - seen}
            # Two replies may well share one figure, but not all of them.
            if not (fresh and row.speaks):
                kept = {name: seconds for name, seconds in row.metrics.items() if name in fresh}
                repeated += len(row.metrics) - len(kept)
                distinct[index] = row._replace(metrics=kept)
            seen |= times
        if repeated:
            self.notes.ignored("metric_repeated", f"{repeated} times")
        return distinct

    def _row(self, row: _Row) -> None:
        fields = row.fields
        time = self._call_time(fields.pop("time_in_call_secs", None))
        if row.state:
            self._move_to(row.state, time, as_object(fields.pop("agent_metadata", None)))
        calls, results = fields.pop("tool_calls", None), fields.pop("tool_results", None)
        fields.pop("conversation_turn_metrics", None)
        has_tools = any(isinstance(one, dict) for one in (*as_list(calls), *as_list(results)))
        self._say(row, time, has_tools=has_tools)
        self._measure(row, time)
        self._tools(calls, results, time)
        for name, odd in (("tool_calls", calls), ("tool_results", results)):
            if odd is not None and not isinstance(odd, list):
                self.notes.set_aside(f"{name}_not_a_list", repr(odd)[:80], self.seq)

    def _say(self, row: _Row, time: Time | None, *, has_tools: bool) -> None:
        fields, intended = row.fields, None
        fields.pop("role", None)
        parts = as_list(as_object(fields.get("multivoice_message")).get("parts"))
        texts = [part for part in (as_text(as_object(part).get("text")) for part in parts) if part]
        text = None
        if message := fields.take("message", kind=str):
            text = Text(message, "message")
        elif texts:
            text = Text(" ".join(texts), "multivoice_message")
        if row.role == ASSISTANT and isinstance(fields.get("original_message"), str):
            intended = Text(fields.pop("original_message"), "original_message")
        cut, ignored = (fields.pop(name, None) is True for name in ("interrupted", "ignored_as_backchannel"))
        id = fields.text("id")
        extras = fields.rest(self.seq)
        if text is None and intended is None:
            event = as_text(extras.pop("platform_event", None))
            if has_tools and not event:
                self.row_extras = extras
            elif event or extras:
                self.mark(event or "row_without_words", extras or None, time, id)
            else:
                self.notes.ignored("empty_row", "", self.seq)
            return
        speaker, is_user = self.participant(row.role), row.role == USER
        self.say(
            speaker,
            time=time,
            id=id,
            intended=text if self.is_text else intended,
            spoken=None if is_user or self.is_text else text,
            heard=text if is_user and not self.is_text else None,
            cut_off_by=self.participant(OTHER[row.role]) if cut else "",
            manner="backchannel" if ignored else "",
            extras=extras,
        )

    def _measure(self, row: _Row, time: Time | None) -> None:
        parts: dict[str, dict[str, float]] = {}
        for name, seconds in row.metrics.items():
            if name not in _METRICS:
                self.notes.unknown(f"metrics.{name}", self.seq)
            component, value = _METRICS.get(name, ("turn", name))
            parts.setdefault(component, {})[value] = seconds
        # The user's part and the tools before it belong to the first reply; a second one waited by itself.
        self.measured[row.exchange] += bool(parts) and row.speaks
        again = self.measured[row.exchange]
        speech = f"exchange-{row.exchange}" + (f".{again}" if again > 1 else "")
        for component, values in parts.items():
            self.measure(component, values, speech, time=time)

    def _tools(self, calls: Any, results: Any, time: Time | None) -> None:
        listed = (("tool_call", calls, _USUAL_IN_CALL), ("tool_result", results, _USUAL_IN_RESULT))
        for kind, entries, usual in listed:
            for entry in as_list(entries):
                if not isinstance(entry, dict):
                    self.notes.set_aside(f"{kind}_not_an_object", repr(entry)[:80], self.seq)
                    continue
                fields = Fields(entry, kind, self.notes, usual)
                (self._call if kind == "tool_call" else self._result)(fields, time)

    def _call(self, fields: Fields, time: Time | None) -> None:
        name, id, arguments = fields.text("tool_name"), fields.text("request_id"), fields.pop("params_as_json", None)
        self.call(name, arguments, call_id=id, time=time, extras=self._take_row_extras(fields))

    def _result(self, fields: Fields, time: Time | None) -> None:
        name, id = fields.text("tool_name"), fields.text("request_id")
        content, failed = fields.pop("result_value", None), fields.pop("is_error", None)
        error = fields.text("raw_error_message")
        structure, changes = as_object(fields.get("result")), fields.get("dynamic_variable_updates")
        where: JsonObject = {"call_id": id, "name": name, "time": time, "extras": self._take_row_extras(fields)}
        worked, unstated = not failed if isinstance(failed, bool) else None, (as_text(content) or "error")[:500]
        self.answer(content, worked, error=error[:500], error_if_unstated=unstated, **where)
        for change in as_list(changes):
            # A variable that a tool set while the call went on.
            if slot := as_text(as_object(change).get("variable_name")):
                self.fill(slot, change.get("new_value"), time)
        self.reason = as_text(structure.get("condition")) or as_text(structure.get("reason")) or self.reason
        for step in as_list(structure.get("steps")):
            self._step(as_object(step), time)

    def _take_row_extras(self, fields: Fields) -> JsonObject:
        extras, self.row_extras = self.row_extras, {}
        return extras | fields.rest(self.seq)

    def _step(self, step: JsonObject, time: Time | None) -> None:
        """What the workflow did by itself: it followed an edge, or ran the tools of a node."""
        target = as_text(step.get("target_node_id"))
        if target:
            self.reason = as_text(step.get("edge_id"))
            names = [name for (_, node), name in self.names.items() if node == target]
            self._move_to(names[0] if len(names) == 1 else target, time, {})
        self._tools(step.get("requests"), step.get("results"), time)

    def _move_to(self, to: str, time: Time | None, extras: JsonObject) -> None:
        if to != self.current:
            self.move(to, time, self.reason[:500], extras)
            self.reason = ""

    def _call_time(self, value: Any) -> Time | None:
        seconds = as_number(value)
        if seconds is None:
            if value is not None:
                self.notes.set_aside("unreadable_time", repr(value)[:80], self.seq)
            return None
        self.has_times = True
        return Time(seconds, _CLOCK.id)


def _node_of(row: JsonObject) -> tuple[str, str]:
    """The agent and the node that a row names."""
    metadata = as_object(row.get("agent_metadata"))
    return as_text(metadata.get("agent_id")), as_text(metadata.get("workflow_node_id"))


def _names_of_states(rows: Sequence[Any]) -> dict[tuple[str, str], str]:
    """The name of the state of each agent and node.

    A node goes by its id, with the agent's where two agents have such a node. An agent without any nodes
    is a state itself where there are several agents.
    """
    nodes = list(dict.fromkeys(_node_of(row) for row in rows if isinstance(row, dict)))
    agents = {agent for agent, _ in nodes if agent}
    with_nodes = {agent for agent, node in nodes if node}
    owners = Counter(node for _, node in nodes if node)
    names = {(agent, node): f"{node} ({agent})" if owners[node] > 1 else node for agent, node in nodes if node}
    if len(agents) > 1:
        names |= {(agent, ""): agent for agent in agents - with_nodes}
    return names


READER = ElevenLabsReader()
