"""Comparisons of one fact of `data/formats` with what was read; `format_facts` says which fact needs which."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from convoscope.conversation import ASSISTANT, USER, ComponentMetric, ToolCall, ToolResult, Utterance
from support.format_reading import Reading, at, close, same
from support.shared_data import begins_with, values_of

Rule = Callable[[Reading, Any], bool | None]
"""Whether what was read is what the fact says; None where the fact says nothing in this file."""


# Messages by who says them


def first_user(r: Reading, fact: Any) -> bool | None:
    if not fact:  # a script that found no text has counted none
        return None
    return any(begins_with(text, fact) for text in r.users[:1])


def first_said(r: Reading, fact: str) -> bool:
    shown = [str(event) for event in r.marks("system_message")[:1]]  # what the system shows comes before all talk
    said = [*shown, *r.all_said[:1], *(str(one.result) for one in r.results[:1])]
    return any(begins_with(text, fact) for text in said)


def prefix(r: Reading, fact: str) -> bool:
    words = " ".join(" ".join(r.all_said).split())
    return words.startswith(" ".join(fact.split()).strip())


def by_role(r: Reading, fact: Any) -> bool | None:
    """Messages by role. A result is a message of the tool; a user's may be a call of a tool, or control text."""
    counted = {name.casefold(): count for name, count in fact.items()}
    users = len(r.users) + len(_silent_users(r))
    wanted = {"user": users, "assistant": r.messages_of_assistants, "tool": len(r.results)}
    has_system = not counted.get("system") or bool(r.instructions)
    return has_system and all(counted.get(role, 0) == count for role, count in wanted.items())


def _silent_users(r: Reading) -> list[Any]:
    """Messages of users without words: control text alone, or calls of a tool one after the other."""
    found: list[Any] = []
    for one in r.conversations:
        last: Any = None
        for event in one.timeline:
            kind = type(event).__name__
            is_user = kind == "ToolCall" and one.roles.get(event.caller) == USER
            spoke_before = isinstance(last, Utterance) and one.roles[last.speaker] == USER
            if is_user and not (spoke_before or last == "call"):
                found.append(event)
            if kind == "Marker" and event.name == "control_text" and not spoke_before:
                found.append(event)
            last = event if isinstance(event, Utterance) else "call" if is_user else None
    return found


def speakers(*words: str) -> Rule:
    """`speakers("agent", "customer")`: utterances of assistants and of users, by the log's own words."""
    assistant, user = words

    def rule(r: Reading, fact: Any) -> bool:
        counted = {name.casefold(): count for name, count in fact.items()}
        return counted.get(assistant, 0) == len(r.assistants) and counted.get(user, 0) == len(r.users)

    return rule


def named(r: Reading, fact: Any) -> bool | None:
    """Speakers by name, or as a recogniser numbers them."""
    if isinstance(fact, dict):
        return speakers("system" if "SYSTEM" in fact else "assistant", "user")(r, fact)
    if not fact:
        return None
    labels = {name.removeprefix("Speaker ") for name in r.participants}
    return labels == set(map(str, fact))


def texts_of(*roles: str) -> Rule:
    return lambda r, fact: same(r.said(*roles), fact)


def heard(r: Reading, fact: list[str]) -> bool:
    return same([one.heard.text for one in r.utterances if one.heard is not None], fact)


def spoken(r: Reading, fact: list[str]) -> bool:
    return same([one.spoken.text for one in r.utterances if one.spoken is not None], fact)


def count_of(of: Callable[[Reading], Any]) -> Rule:
    """A number of things."""

    def rule(r: Reading, fact: Any) -> bool | None:
        found = of(r)
        return None if fact is None else bool((found if isinstance(found, int) else len(found)) == fact)

    return rule


def if_any(rule: Rule) -> Rule:
    """Compared where the fact counts something: 0 says that the log has no such list."""
    return lambda r, fact: rule(r, fact) if fact else None


def with_ignored(*codes: str) -> Rule:
    """Entries of a list: those that were said, and those that are known to be no speech."""
    return lambda r, fact: len(r.utterances) + len(r.marks("system_message")) + r.ignored(*codes) == fact


# Tools


def calls(r: Reading, fact: Any) -> bool:
    if isinstance(fact, dict):  # of a stream: name and arguments by their index
        found = [[call.name, call.arguments] for call in r.calls]
        return found == [[name, json.loads(given)] for name, given in fact.values()]
    if isinstance(fact, list):
        return [call.name for call in r.calls] == fact
    return len(r.calls) == fact


def results(r: Reading, fact: int) -> bool:
    return len(r.results) == fact


def failed(r: Reading, fact: int) -> bool:
    return len(r.failed) == fact


def broken(r: Reading, fact: int) -> bool:
    return r.errors == 0 if fact == 0 else r.errors > 0


def tools_that_ran(r: Reading, fact: list[str]) -> bool:
    """Names of tools that have spans; a hand-over has one in some programs, with a name of its own."""
    wanted = Counter(name for name in fact if not name.startswith("handoff to "))
    return wanted <= Counter(call.name for call in r.calls)


def calls_in_answers(r: Reading, fact: int) -> bool | None:
    """Calls in answers of models. Of one span, the calls of the history before its answer are not counted."""
    if "spans" not in r.facts or not r.conversations:
        return None  # one span by itself: `input_tool_calls`
    if r.facts["spans"] > 1:
        ran = set(r.facts.get("tool_names", ())) if not fact else set()  # tools with spans and without messages
        return len([call for call in r.calls if call.name not in ran]) == fact
    answers = list(r.conversations[-1].timeline)
    last = max((i for i, event in enumerate(answers) if isinstance(event, ToolResult)), default=-1)
    return sum(isinstance(event, ToolCall) for event in answers[last + 1 :]) == fact


def blocks(r: Reading, fact: dict[str, int]) -> bool:
    """Blocks of Anthropic's messages; a text block that opens and says nothing is no utterance."""
    calls = sum(count for kind, count in fact.items() if kind.endswith("tool_use"))
    results = sum(count for kind, count in fact.items() if kind.endswith("tool_result"))
    said = 0 if r.facts.get("text") == "" else fact.get("text", 0)
    return (len(r.assistants), len(r.calls), len(r.results)) == (said, calls, results)


def items_by_type(r: Reading, fact: dict[str, int]) -> bool:
    """Items of a session by type."""
    suffixes = {"call": len(r.calls), "output": len(r.results), "message": len(r.utterances)}
    wanted: Counter[str] = Counter()
    for kind, count in fact.items():
        name = kind.removesuffix("_item")
        name = "message" if name == "message_output" else name.rpartition("_")[2]
        wanted[name] += count
    users = 1 if "original_input" in r.facts else 0
    suffixes["message"] -= users
    return all(wanted[name] == count for name, count in suffixes.items())


def managed(r: Reading, fact: dict[str, int]) -> bool | None:
    if "message_start" in fact:
        return None  # events of a stream: `block_types`
    uses = sum(count for kind, count in fact.items() if kind.endswith("tool_use"))
    results = sum(count for kind, count in fact.items() if kind.endswith("tool_result"))
    wanted = (fact.get("user.message", 0), fact.get("agent.message", 0), uses, results)
    return wanted == (len(r.users), len(r.assistants), len(r.calls), len(r.results))


def adk_parts(r: Reading, fact: dict[str, int]) -> bool:
    wanted = tuple(fact.get(name, 0) for name in ("text", "function_call", "function_response"))
    return wanted == (len(r.utterances), len(r.calls), len(r.results))


def adk_roles(r: Reading, fact: dict[str, int]) -> bool | None:
    """The API calls a function's response a message of the user."""
    if sum(fact.values()) != sum(r.facts["part_keys"].values()):
        return None
    users = len(r.users) + len(r.results)
    return fact == {"user": users, "model": len(r.utterances) - len(r.users) + len(r.calls)}


def openhands_actions(r: Reading, fact: dict[str, int]) -> bool:
    quiet = ("message", "start", "finish", "recall", "system", "change_agent_state", "initialize")
    return len(r.calls) == sum(count for name, count in fact.items() if name not in quiet)


def openhands_observations(r: Reading, fact: dict[str, int]) -> bool:
    return len(r.results) == sum(count for name, count in fact.items() if name not in ("agent_state_changed", "recall"))


def in_requests(kind: type) -> Rule:
    """Calls or results in requests, which repeat the history: one of the first turn is in all requests behind it.

    Each call of a model ends with its metric; what was sent to it is all before its answer.
    """

    def rule(r: Reading, fact: int) -> bool:
        sent = 0
        for one in r.conversations:
            seen = known = 0  # `known` leaves out what no result or user has followed yet: the answer itself
            for event in one.timeline:
                seen += isinstance(event, kind)
                if isinstance(event, ToolResult) or (
                    isinstance(event, Utterance) and one.roles[event.speaker] != ASSISTANT
                ):
                    known = seen
                if isinstance(event, ComponentMetric):
                    sent += known
        return sent == fact

    return rule


# Anthropic's exchanges: what was counted is of the last exchange


def _block_types(body: object) -> list[str]:
    """The types of the blocks of a response: whole, or as a stream of events that each open one."""
    if isinstance(body, dict):
        return [block["type"] for block in body.get("content") or ()]
    events = [json.loads(line[5:]) for line in str(body).splitlines() if line.startswith("data:")]
    return [event["content_block"]["type"] for event in events if event.get("type") == "content_block_start"]


def last_exchange(r: Reading, fact: dict[str, int]) -> bool:
    body = values_of(r.path)[-1]["response"]["body"]
    kinds = Counter(_block_types(body)) + Counter(fact)
    calls = kinds["tool_use"] + kinds["server_tool_use"]
    results = sum(count for kind, count in kinds.items() if kind.endswith("tool_result"))
    of_each = [
        ([e for e in one.timeline if isinstance(e, ToolCall)], [e for e in one.timeline if isinstance(e, ToolResult)])
        for one in r.conversations
    ]
    return (calls, results) in [(len(called), len(given)) for called, given in of_each]


def people(r: Reading, fact: dict[str, int]) -> bool:
    """Users of the last request who are persons: results of tools have their role too."""
    wanted = fact.get("user", 0) - r.facts["tool_results_in_user_role"]
    of_each = [sum(one.roles[said.speaker] == USER for said in one.utterances) for one in r.conversations]
    return wanted in of_each


# Times


def starts(r: Reading, fact: Any) -> bool | None:
    return None if fact is None else close(min(r.times, default=None), at(fact), 1e-3)


def ends(r: Reading, fact: Any) -> bool | None:
    return None if fact is None else close(max(r.ends, default=None), at(fact), 1e-3)


def sound_starts(scale: float = 1.0) -> Rule:
    return lambda r, fact: None if fact is None else close(r.segments[0][0] if r.segments else None, fact * scale)


def sound_ends(scale: float = 1.0) -> Rule:
    return lambda r, fact: close(max((end for _, end in r.segments), default=None), fact * scale)


def speech(index: int) -> Rule:
    return lambda r, fact: (
        [
            round(segment[index] * 1000)
            for one in r.utterances
            for segment in [(part.start, part.end) for part in one.segments]
        ]
        == fact
    )


def duration(scale: float = 1.0) -> Rule:
    def rule(r: Reading, fact: Any) -> bool | None:
        if fact is None:
            return None
        found = [one.outcome.duration for one in r.conversations]
        wanted = fact if isinstance(fact, list) else [fact]
        return len(found) == len(wanted) and all(
            close(value, each * scale, 1e-3) for value, each in zip(found, wanted, strict=True)
        )

    return rule


def in_order(r: Reading, _: Any) -> bool:
    """Whatever the order of the file, we read by time."""
    return r.times == sorted(r.times)


# Ids, scores, and the rest


def ids(r: Reading, fact: list[Any]) -> bool | None:
    found = [one.id for one in r.conversations] or [""]
    return None if not fact else [found[0], found[-1]] == fact if len(fact) == 2 else found == list(map(str, fact))


def only_id(r: Reading, fact: Any) -> bool | None:
    return None if fact is None else [one.id for one in r.conversations] == [fact]


def traces(r: Reading, fact: int) -> bool:
    """Each trace is in a conversation, or refused with its reason."""
    read = {trace for one in r.conversations for trace in one.extras.get("traces") or [one.id]}
    refused = max(r.report.problem_count, r.refusal.count("trace "))
    return len(read) + refused + r.ignored("call_logged_twice") == fact


def rewards(r: Reading, fact: list[float]) -> bool:
    return [label.value for label in r.labels if label.name == "reward"] == fact


def mean_reward(r: Reading, fact: float) -> bool:
    rewards = [label.value for label in r.labels if label.name == "reward"]
    return close(sum(rewards) / len(rewards) if rewards else None, fact, 1e-12)


def dimension(name: str) -> Rule:
    return lambda r, fact: [one.dimensions.get(name) for one in r.conversations] == list(map(str, fact))


def scorers(r: Reading, fact: list[str]) -> bool:
    return {label.name.partition(".")[0] for label in r.labels} == set(fact)


def word_count(r: Reading, fact: int) -> bool:
    return sum(len(text.split()) for text in r.all_said) == fact


def models(r: Reading, fact: list[str]) -> bool:
    found = {
        model for one in r.conversations for model in (*one.agent.models.values(), *one.agent.extras.get("models", ()))
    }
    return bool(found) and found <= set(fact)


def requestors(r: Reading, fact: dict[str, int]) -> bool:
    events = [(one, event) for one in r.conversations for event in one.timeline if isinstance(event, ToolCall)]
    callers = (one.roles.get(call.caller, ASSISTANT) for one, call in events)
    return Counter(callers) == Counter(fact)


def user_callers(r: Reading, fact: int) -> bool:
    """Messages of users that call tools: the calls behind one another are of one message."""
    found = 0
    for one in r.conversations:
        was_user = False
        for event in one.timeline:
            is_user = isinstance(event, ToolCall) and one.roles.get(event.caller) == USER
            found += is_user and not was_user
            was_user = is_user
    return found == fact


def termination(r: Reading, fact: list[str]) -> bool:
    return [one.outcome.ended_reason for one in r.conversations] == fact


def messenger(r: Reading, fact: dict[str, int]) -> bool:
    missing = Counter(fact) - r.names
    return sum((r.names - Counter(fact)).values()) == 0 and sum(missing.values()) == r.ignored("message")


def turns(r: Reading, fact: Any) -> bool | None:
    if isinstance(fact, int):  # each turn opens with a user
        return len(r.users) == fact
    cut = sum(bool(one.cut_off_by) for one in r.utterances)
    return cut == sum(turn["interrupted"] for turn in fact)


def history(r: Reading, fact: list[int]) -> bool | None:
    """The last call of a model was sent all that was said before it."""
    if not any(fact) or r.facts["traces"] > 1 or fact != sorted(fact):
        return None
    return r.messages + min(r.instructions, 1) == fact[-1] + r.facts["llm_output_messages"][-1]


def not_before(r: Reading, fact: Any) -> bool:
    """The time of a first event, which may be no speech: nothing is said before it."""
    return min(r.times, default=float("-inf")) >= at(fact) - 1e-3


def not_after(r: Reading, fact: Any) -> bool:
    """The time of a last event, which may be no speech: nothing is said after it."""
    return max(r.times, default=float("inf")) <= at(fact) + 1e-3


def contact_roles(r: Reading, fact: dict[str, int]) -> bool | None:
    """Entries by role; those without content are events."""
    mapped: Counter[str] = Counter()
    for name, count in fact.items():
        mapped[r.facts["roles"].get(name, name)] += count
    if set(mapped) == {"None"}:
        return None
    rest = Counter(mapped)
    said = {"CUSTOMER": len(r.users), "AGENT": len(r.assistants), "SYSTEM": len(r.marks("system_message"))}
    rest.subtract(said)
    return min(rest.values()) >= 0 and sum(rest.values()) == r.ignored("event_without_content")


def star_actions(r: Reading, fact: dict[str, int]) -> bool:
    given = fact.get("return_item", 0) + fact.get("no_item", 0)
    # The wizard's first text is a request for suggestions; what was sent is picked or uttered.
    said = fact.get("utter", 0) + fact.get("pick_suggestion", 0)
    return (len(r.utterances), len(r.calls), len(r.results)) == (said, fact.get("query", 0), given)


def branches(r: Reading, fact: dict[str, int]) -> bool:
    """Messages by role in all branches: what is not in the last branch is counted as left out."""
    rest = Counter(fact)
    spoken = len(r.assistants) + len(r.calls)  # a message is words, or a call of one tool
    rest.subtract({"user": len(r.users), "assistant": spoken, "tool": len(r.results)})
    del rest["system"]  # instructions, which are often empty
    aside = r.ignored("message_of_another_branch", "hidden_message", "message_without_text", "content_", "thinking")
    return min(rest.values()) >= 0 and sum(rest.values()) == aside


def chatwoot(r: Reading, fact: dict[str, int]) -> bool:
    shown = fact.get("0", 0) + fact.get("1", 0) - r.facts["private"]
    rest = fact.get("2", 0) + fact.get("3", 0)
    silent = r.ignored("message_without_text", "message_deleted")  # pictures, and what was taken back
    heard = len(r.users) <= fact.get("0", 0) and len(r.assistants) <= fact.get("1", 0)
    wanted = (shown, rest, r.facts["private"])
    seen = (len(r.users) + len(r.assistants) + silent, r.ignored("message_type"), r.ignored("private_note"))
    return heard and wanted == seen


def rasa_events(r: Reading, fact: dict[str, int]) -> bool:
    return (len(r.users) + len(r.marks("control_text")), len(r.assistants)) == (fact.get("user", 0), fact.get("bot", 0))


def rasa_actions(r: Reading, fact: list[str]) -> bool:
    """Actions that do something: not those that wait, nor those that only say a text."""
    idle = ("utter_", "action_listen", "action_session_start", "action_unlikely_intent")
    return [call.name for call in r.calls] == [name for name in fact if not name.startswith(idle)]


def sgd_results(r: Reading, fact: int) -> bool:
    return sum(len(result.result) for result in r.results) == fact


def services(r: Reading, fact: Any) -> bool | None:
    if isinstance(fact, int):  # a schema, which has no dialogues
        return None
    return sorted({name for one in r.conversations for name in one.extras["services"]}) == fact


def stream_text(r: Reading, fact: Any) -> bool | None:
    text = fact if isinstance(fact, str) else "".join(fact.values())
    if not text and r.facts.get("refusal"):
        return None
    return same(r.assistants, [text] if text else [])


def delexed(r: Reading, fact: list[int]) -> bool:
    turns = [len(one.utterances) + len(one.tool_calls) for one in r.conversations]
    said_again = sum(count for count, again in zip(turns, fact, strict=False) if count == again)
    return len(turns) == len(fact) and r.ignored("delexed") == said_again


def atif(rule: Rule) -> Rule:
    """The script that counted did not open a file that holds several trajectories under names."""
    return lambda r, fact: rule(r, fact) if r.facts["steps"] else None


def atif_sources(r: Reading, fact: dict[str, int]) -> bool:
    has_system = not fact.get("system") or bool(r.instructions) or bool(r.results)
    users = len(r.users) + r.ignored("copied_context")
    return has_system and (users, r.messages_of_assistants) == (fact.get("user", 0), fact.get("agent", 0))


def in_extras(name: str) -> Rule:
    return lambda r, fact: None if fact is None else [one.extras.get(name) for one in r.conversations] == [fact]


def final_status(r: Reading, fact: str) -> bool:
    return fact in [value for one in r.conversations for value in (one.outcome.final_status, one.outcome.ended_reason)]


def all_messages(r: Reading, fact: int) -> bool:
    """All messages of a list, instructions and a user's silent messages too."""
    system = r.facts["roles"].get("system", 0) if r.instructions else 0
    return r.messages + len(_silent_users(r)) + system + r.ignored("demonstration") == fact


def null_content(r: Reading, fact: int) -> bool:
    """Messages of assistants without words: they call a tool."""
    return r.facts["roles"]["assistant"] - len(r.assistants) == fact


def exchanges(r: Reading, fact: int) -> bool:
    return len(r.conversations) + r.ignored("repeated_history") == fact


def sentiments(r: Reading, fact: dict[str, int]) -> bool | None:
    return (
        Counter(filter(None, (one.extras.get("sentiment") for one in r.utterances))) == Counter(fact) if fact else None
    )


def api_annotations(r: Reading, fact: dict[str, int]) -> bool:
    return (fact.get("api_call", 0), fact.get("api_response", 0)) == (len(r.calls), len(r.results))


def abcd_speakers(r: Reading, fact: dict[str, int]) -> bool:
    return bool(speakers("agent", "customer")(r, fact)) and fact.get("action", 0) == len(r.calls)


def operations(r: Reading, fact: dict[str, int]) -> bool | None:
    """Calls of models, which each have their figures, and tools that ran."""
    called = sum(fact.get(name, 0) for name in ("chat", "text_completion", "generate_content"))
    if not r.conversations:
        return None
    return len(r.of(ComponentMetric)) == called and len(r.calls) >= fact.get("execute_tool", 0)
