"""Datasets of scenarios, one kind of companion: evaluation records, and the settings of a run of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Agent, ChangeRules, Conversation, Database, Scenario, Tool
from convoscope.errors import InputError
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Attach, Companion, Detection, Sample
from convoscope.ingest.record import as_list, as_object
from convoscope.ingest.report import Notes

_SIGNS = ("user_goal", "user_config", "expected_scenario_db", "starting_utterances")
_OF_ITEMS = ("agent_task", "agent_response")
_AGENT_KEYS = ("agent", "agent_config", "agent_configuration", "agent_override")
_RULES = ("rules", "expected_changes", "change_rules")
_KEPT = ("scenario_context", "category", "subflow_in_depth")
_PLACEHOLDER = re.compile(r"<(?:LOC:([^<>]*)|([A-Z_]+))>")


class DatasetFiles(NamedTuple):
    """The evaluation records by id, and the settings of the run, where there are any."""

    records: Mapping[str, Mapping[str, Any]] = {}
    config: Mapping[str, Any] = {}
    problems: tuple[str, ...] = ()


class Datasets(Companion):
    """What the user of each call wanted and what should have come of it, matched to the call by its record id."""

    format = "voice-logs"
    """Only these calls have record ids."""

    def detect(self, sample: Sample) -> Detection | None:
        if not is_record(sample.values[0] if sample.values else None):
            return None
        return Detection(0.6, "evaluation records, matched to calls by id", "companion")

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        if reader != self.format or not files:
            return None
        content = load(files)
        return lambda conversation, notes: attach(conversation, content, notes)


def attach(conversation: Conversation, content: DatasetFiles, notes: Notes) -> Conversation:
    """The call with its scenario and its agent as the dataset has them; what only the call knows of these stays."""
    record_id = conversation.dimensions["scenario_id"]
    record = content.records.get(record_id)
    if record is None:
        # What is broken in a dataset matters to those whose record it may have held.
        for problem in content.problems:
            notes.repaired("file_left_out", problem)
        if content.records:
            notes.repaired("record_not_in_dataset", record_id)
        return conversation
    language = str(content.config.get("language") or "en")
    record = resolved(record, language)
    of_call = conversation.scenario or Scenario()
    declared = agent(record)
    return msgspec.structs.replace(
        conversation,
        scenario=msgspec.structs.replace(scenario(record, language, notes), before=of_call.before, after=of_call.after),
        agent=msgspec.structs.replace(
            declared,
            instructions=declared.instructions or conversation.agent.instructions,
            models=conversation.agent.models,
        ),
    )


def is_record(value: Any) -> bool:
    """An evaluation record: an id, and what the user wants or what should come of it.

    An evaluation item, which needs no call, has a task or an answer of the agent, and its ground truth is a text.
    """
    if not isinstance(value, dict) or not value.keys().isdisjoint(_OF_ITEMS):
        return False
    has_sign = any(key in value for key in _SIGNS) or isinstance(value.get("ground_truth"), dict)
    return isinstance(value.get("id"), str | int) and has_sign


def is_config(value: Any) -> bool:
    """The settings of a run of calls."""
    return isinstance(value, dict) and "model" in value and ("domain" in value or "agent_config_path" in value)


@files.read_once(8)
def load(paths: Sequence[Path]) -> DatasetFiles:
    """The companions of a call."""
    records: dict[str, Mapping[str, Any]] = {}
    config: Mapping[str, Any] = {}
    problems: list[str] = []
    for path in paths:
        try:
            for value in values_of(path, problems):
                if is_record(value):
                    records.setdefault(str(value["id"]), value)
                elif is_config(value):
                    config = config or value
        except (BadJson, InputError, OSError) as error:
            problems.append(f"{path.name}: {error}")
    return DatasetFiles(records, config, tuple(problems))


def values_of(path: Path, problems: list[str]) -> list[Any]:
    """The records of a file, be they lines or an array. A line that is broken costs itself."""
    data = files.whole(path)
    try:
        value = decode(data).value
        return value if isinstance(value, list) else [value]
    except BadJson as error:
        values: list[Any] = []
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                values += [decode(line).value] if line.strip() else []
            except BadJson as broken:
                problems.append(f"{path.name} line {number}: {broken}")
        if not values:
            raise BadJson(str(error), error.line) from None
        return values


def resolved(record: Mapping[str, Any], language: str) -> Mapping[str, Any]:
    """The record with its placeholders filled in for a language."""
    names: dict[str, str] = {}
    for key, ending in (("culture_overrides", ""), ("romanized_culture_overrides", "_ROMANIZED")):
        for name, value in as_object(as_object(record.get(key)).get(language)).items():
            if name == "companion" and isinstance(value, dict):
                names |= {f"COMPANION_{inner.upper()}{ending}": str(one) for inner, one in value.items()}
            elif isinstance(value, str):
                names[f"{name.upper()}{ending}"] = value.lower() if ending else value
    return {_fill(key, names): _fill(value, names) for key, value in record.items()}


def _fill(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        if "<" not in value:
            return value
        return _PLACEHOLDER.sub(lambda match: match[1] if match[1] else names.get(match[2], match[0]), value)
    if isinstance(value, list):
        return [_fill(one, names) for one in value]
    if isinstance(value, dict):
        return {_fill(key, names): _fill(one, names) for key, one in value.items()}
    return value


def scenario(record: Mapping[str, Any], language: str, notes: Notes) -> Scenario:
    """What the user wants and what should come of it."""
    goal = record.get("user_goal")
    starting = record.get("starting_utterances")
    opening = starting.get(language) if isinstance(starting, dict) else record.get("starting_utterance")
    if isinstance(goal, dict) and opening and "starting_utterance" not in goal:
        goal = {**goal, "starting_utterance": opening}
    truth = as_object(record.get("ground_truth"))
    expected = record.get("expected_scenario_db")
    if expected is None:
        expected = truth.get("expected_scenario_db")
    return Scenario(
        goal=goal,
        persona=record.get("user_config", record.get("user_persona")),
        clock=str(record.get("current_date_time") or ""),
        expected=Database(expected) if expected is not None else None,
        rules=_rules(record, truth, notes),
        extras={key: record[key] for key in _KEPT if record.get(key) is not None},
    )


def _rules(record: Mapping[str, Any], truth: Mapping[str, Any], notes: Notes) -> ChangeRules | None:
    for key, rules in [(key, holder.get(key)) for holder in (truth, record) for key in _RULES]:
        if rules is None:
            continue
        patterns = rules
        if isinstance(rules, dict):
            patterns = dict(rules)
            for name, listed in rules.items():
                if isinstance(listed, list) and name != "generated":
                    # A path alone is a pattern of it.
                    patterns[name] = [{"path": one} if isinstance(one, str) else one for one in listed]
        try:
            return msgspec.convert(patterns, ChangeRules)
        except msgspec.ValidationError as error:
            notes.repaired("rules_left_out", f"record {record.get('id')}, {key}: {error}")
    return None


def agent(record: Mapping[str, Any]) -> Agent:
    """The agent as the record configures it."""
    settings: Mapping[str, Any] = next((record[key] for key in _AGENT_KEYS if isinstance(record.get(key), dict)), {})
    tools = settings.get("tools", record.get("agent_tools"))
    return Agent(
        name=str(settings.get("name") or ""),
        role=str(settings.get("role") or record.get("agent_role") or settings.get("description") or ""),
        instructions=str(settings.get("instructions") or record.get("agent_instructions") or ""),
        tools=tuple(tool(one) for one in tools if isinstance(one, dict)) if isinstance(tools, list) else None,
        extras={"id": settings["id"]} if settings.get("id") else {},
    )


def tool(definition: Mapping[str, Any]) -> Tool:
    """A tool, whether its arguments are given as JSON Schema or as lists of required and optional ones."""
    function = definition.get("function")
    fields = function if isinstance(function, dict) else definition
    schema = fields.get("parameters", fields.get("input_schema"))
    if not isinstance(schema, dict) and ("required_parameters" in definition or "optional_parameters" in definition):
        schema = _schema(definition.get("required_parameters"), definition.get("optional_parameters"))
    used = {"name", "description", "parameters", "input_schema", "function", "tool_type", "type"}
    return Tool(
        # The id is what the model calls it by, the name what people do.
        name=str(fields.get("id") or fields.get("name") or ""),
        description=str(fields.get("description") or ""),
        arguments_schema=schema,
        kind=str(definition.get("tool_type") or ""),
        extras={key: value for key, value in definition.items() if key not in used and value is not None},
    )


def _schema(required: Any, optional: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    names: list[str] = []
    for listed, needed in ((required, True), (optional, False)):
        for parameter in as_list(listed):
            fields = parameter if isinstance(parameter, dict) else {"name": parameter}
            name = fields.get("name")
            if isinstance(name, str) and name:
                copied = ("type", "description", "enum", "items", "format")
                properties[name] = {key: fields[key] for key in copied if fields.get(key) is not None}
                names += [name] if needed else []
    return {"type": "object", "properties": properties, "required": names}
