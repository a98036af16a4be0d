"""STAR dialogues: a user, a wizard who answers, and a knowledge base that the wizard asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.conversation import Outcome, Scenario
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_SPEECH = {("User", "utter"): "user", ("Wizard", "utter"): "assistant", ("Wizard", "pick_suggestion"): "assistant"}
_KEPT = ("BatchID", "UserQuestionnaire", "WizardQuestionnaire")
_UNSAID = ("instruct", "request_suggestions", "complete")
"""Instructions for the user, a text that the wizard tried and did not send, the end."""


class STARReader(TalkReader):
    """Dialogues with events of agents."""

    name = "star"
    title = "STAR dialogues"
    shown = frozenset({"Action", "Agent", "DialogueID", "Answer"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            first = as_object(next(iter(as_list(value.get("Events"))), None))
            if {"Action", "Agent"} <= first.keys():
                return Detection(0.96, '"Events" with an Action and an Agent', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            value = as_object(record.value)
            messages: list[TalkMessage] = []
            for event in map(as_object, as_list(value.get("Events"))):
                at, plain = seconds(event, ("UnixTime",)), _message(event)
                messages += [TalkMessage(plain=entry, at=at) for entry in plain]
                if not plain:
                    action = as_text(event.get("Action"))
                    if action not in _UNSAID:
                        notes.unknown(f"event.Action={action}")
                    messages.append(TalkMessage(plain={"role": "", **event}, at=at, marker=f"event_{action}"))
            level, scenario = as_text(value.get("CompletionLevel")), as_object(value.get("Scenario"))
            domains = [as_text(domain) for domain in as_list(scenario.get("Domains"))]
            yield LoggedTalk(
                id=as_text(value.get("DialogueID")),
                messages=messages,
                agent="wizard",
                dimensions=filled({"domain": "+".join(sorted(domains))}),
                scenario=Scenario(goal=scenario.get("UserTask")) if scenario else None,
                outcome=Outcome(completed={"Complete": True, "Incomplete": False}.get(level), final_status=level),
                extras=filled({name: value.get(name) for name in _KEPT}),
                raw=value,
            )


def _message(event: JsonObject) -> list[JsonObject]:
    agent, action = as_text(event.get("Agent")), as_text(event.get("Action"))
    role = _SPEECH.get((agent, action))
    if role is not None:
        return plain_messages({"role": role, "content": as_text(event.get("Text"))})
    name = as_text(event.get("APIName"))
    if action == "query":
        held: dict[str, list[Any]] = {}
        for key, value in (pair for entry in as_list(event.get("Constraints")) for pair in as_object(entry).items()):
            held.setdefault(key, []).append(value)
        constraints = {key: values[0] if len(values) == 1 else values for key, values in held.items()}
        call = {"type": "tool_use", "name": name, "input": constraints}
        return plain_messages({"role": "assistant", "content": [call]})
    if action in ("return_item", "no_item"):
        return plain_messages(
            {"role": "tool", "content": [{"type": "tool_result", "name": name, "content": event.get("Item")}]}
        )
    return []


READER = STARReader()
