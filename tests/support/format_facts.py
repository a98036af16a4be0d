"""What each fact of `data/formats` means: a comparison with what was read, or why it is not about reading."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from convoscope.conversation import ASSISTANT, USER, ComponentMetric, ToolCall, ToolResult, Utterance
from support.format_reading import Reading, at, close, same
from support.shared_data import begins_with, values_of

Rule = Callable[[Reading, Any], bool | None]
"""Whether what was read is what the fact says; None where the fact says nothing in this file."""


# Messages by who says them


def _first_user(r: Reading, fact: Any) -> bool | None:
    if not fact:  # a script that found no text has counted none
        return None
    return any(begins_with(text, fact) for text in r.users[:1])


def _first(r: Reading, fact: str) -> bool:
    shown = [str(event) for event in r.marks("system_message")[:1]]  # what the system shows comes before all talk
    said = [*shown, *r.all_said[:1], *(str(one.result) for one in r.results[:1])]
    return any(begins_with(text, fact) for text in said)


def _prefix(r: Reading, fact: str) -> bool:
    words = " ".join(" ".join(r.all_said).split())
    return words.startswith(" ".join(fact.split()).strip())


def _by_role(r: Reading, fact: Any) -> bool | None:
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


def _speakers(*words: str) -> Rule:
    """`_speakers("agent", "customer")`: utterances of assistants and of users, by the log's own words."""
    assistant, user = words

    def rule(r: Reading, fact: Any) -> bool:
        counted = {name.casefold(): count for name, count in fact.items()}
        return counted.get(assistant, 0) == len(r.assistants) and counted.get(user, 0) == len(r.users)

    return rule


def _named(r: Reading, fact: Any) -> bool | None:
    """Speakers by name, or as a recogniser numbers them."""
    if isinstance(fact, dict):
        return _speakers("system" if "SYSTEM" in fact else "assistant", "user")(r, fact)
    if not fact:
        return None
    labels = {name.removeprefix("Speaker ") for name in r.participants}
    return labels == set(map(str, fact))


def _texts_of(*roles: str) -> Rule:
    return lambda r, fact: same(r.said(*roles), fact)


def _heard(r: Reading, fact: list[str]) -> bool:
    return same([one.heard.text for one in r.utterances if one.heard is not None], fact)


def _spoken(r: Reading, fact: list[str]) -> bool:
    return same([one.spoken.text for one in r.utterances if one.spoken is not None], fact)


def _count(of: Callable[[Reading], Any]) -> Rule:
    """A number of things."""

    def rule(r: Reading, fact: Any) -> bool | None:
        found = of(r)
        return None if fact is None else bool((found if isinstance(found, int) else len(found)) == fact)

    return rule


def _if_any(rule: Rule) -> Rule:
    """Compared where the fact counts something: 0 says that the log has no such list."""
    return lambda r, fact: rule(r, fact) if fact else None


def _with_ignored(*codes: str) -> Rule:
    """Entries of a list: those that were said, and those that are known to be no speech."""
    return lambda r, fact: len(r.utterances) + len(r.marks("system_message")) + r.ignored(*codes) == fact


# Tools


def _calls(r: Reading, fact: Any) -> bool:
    if isinstance(fact, dict):  # of a stream: name and arguments by their index
        found = [[call.name, call.arguments] for call in r.calls]
        return found == [[name, json.loads(given)] for name, given in fact.values()]
    if isinstance(fact, list):
        return [call.name for call in r.calls] == fact
    return len(r.calls) == fact


def _results(r: Reading, fact: int) -> bool:
    return len(r.results) == fact


def _failed(r: Reading, fact: int) -> bool:
    return len(r.failed) == fact


def _broken(r: Reading, fact: int) -> bool:
    return r.errors == 0 if fact == 0 else r.errors > 0


def _tools_that_ran(r: Reading, fact: list[str]) -> bool:
    """Names of tools that have spans; a hand-over has one in some programs, with a name of its own."""
    wanted = Counter(name for name in fact if not name.startswith("handoff to "))
    return wanted <= Counter(call.name for call in r.calls)


def _calls_in_answers(r: Reading, fact: int) -> bool | None:
    """Calls in answers of models. Of one span, the calls of the history before its answer are not counted."""
    if "spans" not in r.facts or not r.conversations:
        return None  # one span by itself: `input_tool_calls`
    if r.facts["spans"] > 1:
        ran = set(r.facts.get("tool_names", ())) if not fact else set()  # tools with spans and without messages
        return len([call for call in r.calls if call.name not in ran]) == fact
    answers = list(r.conversations[-1].timeline)
    last = max((i for i, event in enumerate(answers) if isinstance(event, ToolResult)), default=-1)
    return sum(isinstance(event, ToolCall) for event in answers[last + 1 :]) == fact


def _blocks(r: Reading, fact: dict[str, int]) -> bool:
    """Blocks of Anthropic's messages; a text block that opens and says nothing is no utterance."""
    calls = sum(count for kind, count in fact.items() if kind.endswith("tool_use"))
    results = sum(count for kind, count in fact.items() if kind.endswith("tool_result"))
    said = 0 if r.facts.get("text") == "" else fact.get("text", 0)
    return (len(r.assistants), len(r.calls), len(r.results)) == (said, calls, results)


def _items(r: Reading, fact: dict[str, int]) -> bool:
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


def _managed(r: Reading, fact: dict[str, int]) -> bool | None:
    if "message_start" in fact:
        return None  # events of a stream: `block_types`
    uses = sum(count for kind, count in fact.items() if kind.endswith("tool_use"))
    results = sum(count for kind, count in fact.items() if kind.endswith("tool_result"))
    wanted = (fact.get("user.message", 0), fact.get("agent.message", 0), uses, results)
    return wanted == (len(r.users), len(r.assistants), len(r.calls), len(r.results))


def _adk_parts(r: Reading, fact: dict[str, int]) -> bool:
    wanted = tuple(fact.get(name, 0) for name in ("text", "function_call", "function_response"))
    return wanted == (len(r.utterances), len(r.calls), len(r.results))


def _adk_roles(r: Reading, fact: dict[str, int]) -> bool | None:
    """The API calls a function's response a message of the user."""
    if sum(fact.values()) != sum(r.facts["part_keys"].values()):
        return None
    users = len(r.users) + len(r.results)
    return fact == {"user": users, "model": len(r.utterances) - len(r.users) + len(r.calls)}


def _openhands_actions(r: Reading, fact: dict[str, int]) -> bool:
    quiet = ("message", "finish", "recall", "system", "change_agent_state", "think")
    return len(r.calls) == sum(count for name, count in fact.items() if name not in quiet)


def _openhands_observations(r: Reading, fact: dict[str, int]) -> bool:
    return len(r.results) == sum(count for name, count in fact.items() if name not in ("agent_state_changed", "recall"))


def _in_requests(kind: type) -> Rule:
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


def _last_exchange(r: Reading, fact: dict[str, int]) -> bool:
    body = values_of(r.path)[-1]["response"]["body"]
    kinds = Counter(_block_types(body)) + Counter(fact)
    calls = kinds["tool_use"] + kinds["server_tool_use"]
    results = sum(count for kind, count in kinds.items() if kind.endswith("tool_result"))
    of_each = [(one.tool_calls, [e for e in one.timeline if isinstance(e, ToolResult)]) for one in r.conversations]
    return (calls, results) in [(len(called), len(given)) for called, given in of_each]


def _people(r: Reading, fact: dict[str, int]) -> bool:
    """Users of the last request who are persons: results of tools have their role too."""
    wanted = fact.get("user", 0) - r.facts["tool_results_in_user_role"]
    of_each = [sum(one.roles[said.speaker] == USER for said in one.utterances) for one in r.conversations]
    return wanted in of_each


# Times


def _starts(r: Reading, fact: Any) -> bool | None:
    return None if fact is None else close(min(r.times, default=None), at(fact), 1e-3)


def _ends(r: Reading, fact: Any) -> bool | None:
    return None if fact is None else close(max(r.ends, default=None), at(fact), 1e-3)


def _sound_starts(scale: float = 1.0) -> Rule:
    return lambda r, fact: None if fact is None else close(r.segments[0][0] if r.segments else None, fact * scale)


def _sound_ends(scale: float = 1.0) -> Rule:
    return lambda r, fact: close(max((end for _, end in r.segments), default=None), fact * scale)


def _speech(index: int) -> Rule:
    return lambda r, fact: (
        [
            round(segment[index] * 1000)
            for one in r.utterances
            for segment in [(part.start, part.end) for part in one.segments]
        ]
        == fact
    )


def _duration(scale: float = 1.0) -> Rule:
    def rule(r: Reading, fact: Any) -> bool | None:
        if fact is None:
            return None
        found = [one.outcome.duration for one in r.conversations]
        wanted = fact if isinstance(fact, list) else [fact]
        return len(found) == len(wanted) and all(
            close(value, each * scale, 1e-3) for value, each in zip(found, wanted, strict=True)
        )

    return rule


def _in_order(r: Reading, _: Any) -> bool:
    """Whatever the order of the file, we read by time."""
    return r.times == sorted(r.times)


# Ids, scores, and the rest


def _ids(r: Reading, fact: list[Any]) -> bool | None:
    found = [one.id for one in r.conversations]
    return None if not fact else [found[0], found[-1]] == fact if len(fact) == 2 else found == list(map(str, fact))


def _id(r: Reading, fact: Any) -> bool | None:
    return None if fact is None else [one.id for one in r.conversations] == [fact]


def _traces(r: Reading, fact: int) -> bool:
    """Each trace is in a conversation, or refused with its reason."""
    read = {trace for one in r.conversations for trace in one.extras.get("traces") or [one.id]}
    refused = max(r.report.problem_count, r.refusal.count("trace "))
    return len(read) + refused + r.ignored("call_logged_twice") == fact


def _rewards(r: Reading, fact: list[float]) -> bool:
    return [label.value for label in r.labels if label.name == "reward"] == fact


def _mean_reward(r: Reading, fact: float) -> bool:
    rewards = [label.value for label in r.labels if label.name == "reward"]
    return close(sum(rewards) / len(rewards) if rewards else None, fact, 1e-12)


def _dimension(name: str) -> Rule:
    return lambda r, fact: [one.dimensions.get(name) for one in r.conversations] == list(map(str, fact))


def _scorers(r: Reading, fact: list[str]) -> bool:
    return {label.name.partition(".")[0] for label in r.labels} == set(fact)


def _words(r: Reading, fact: int) -> bool:
    return sum(len(text.split()) for text in r.all_said) == fact


def _models(r: Reading, fact: list[str]) -> bool:
    found = {
        model for one in r.conversations for model in (*one.agent.models.values(), *one.agent.extras.get("models", ()))
    }
    return bool(found) and found <= set(fact)


def _requestors(r: Reading, fact: dict[str, int]) -> bool:
    callers = (one.roles.get(call.caller, ASSISTANT) for one in r.conversations for call in one.tool_calls)
    return Counter(callers) == Counter(fact)


def _user_callers(r: Reading, fact: int) -> bool:
    """Messages of users that call tools: the calls behind one another are of one message."""
    found = 0
    for one in r.conversations:
        was_user = False
        for event in one.timeline:
            is_user = isinstance(event, ToolCall) and one.roles.get(event.caller) == USER
            found += is_user and not was_user
            was_user = is_user
    return found == fact


def _termination(r: Reading, fact: list[str]) -> bool:
    return [one.outcome.ended_reason for one in r.conversations] == fact


def _messenger(r: Reading, fact: dict[str, int]) -> bool:
    missing = Counter(fact) - r.names
    return sum((r.names - Counter(fact)).values()) == 0 and sum(missing.values()) == r.ignored("message")


def _turns(r: Reading, fact: Any) -> bool | None:
    if isinstance(fact, int):  # each turn opens with a user
        return len(r.users) == fact
    cut = sum(bool(one.cut_off_by) for one in r.utterances)
    return cut == sum(turn["interrupted"] for turn in fact)


def _history(r: Reading, fact: list[int]) -> bool | None:
    """The last call of a model was sent all that was said before it."""
    if not any(fact) or r.facts["traces"] > 1 or fact != sorted(fact):
        return None
    return r.messages + min(r.instructions, 1) == fact[-1] + r.facts["llm_output_messages"][-1]


def _within(r: Reading, fact: Any) -> bool | None:
    """A first or last event that may be no speech: nothing that was said lies outside."""
    first = next((r.facts[name] for name in ("first_ts", "first_time", "start") if name in r.facts), fact)
    last = next((r.facts[name] for name in ("last_ts", "last_time", "end") if name in r.facts), None)
    late = last is None or max(r.times) <= at(last) + 1e-3
    return bool(r.times) and min(r.times) >= at(first) - 1e-3 and late


def _contact_roles(r: Reading, fact: dict[str, int]) -> bool | None:
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


def _star_actions(r: Reading, fact: dict[str, int]) -> bool:
    given = fact.get("return_item", 0) + fact.get("no_item", 0)
    # The wizard's first text is a request for suggestions; what was sent is picked or uttered.
    said = fact.get("utter", 0) + fact.get("pick_suggestion", 0)
    return (len(r.utterances), len(r.calls), len(r.results)) == (said, fact.get("query", 0), given)


def _branches(r: Reading, fact: dict[str, int]) -> bool:
    """Messages by role in all branches: what is not in the last branch is counted as left out."""
    rest = Counter(fact)
    rest.subtract({"user": len(r.users), "assistant": len(r.assistants), "tool": len(r.results)})
    del rest["system"]  # instructions, which are often empty
    return min(rest.values()) >= 0 and sum(rest.values()) == r.ignored("message_of_another_branch", "hidden_message")


def _chatwoot(r: Reading, fact: dict[str, int]) -> bool:
    shown = fact.get("1", 0) - r.facts["private"]
    rest = fact.get("2", 0) + fact.get("3", 0)
    wanted = (fact.get("0", 0), shown, rest, r.facts["private"])
    return wanted == (len(r.users), len(r.assistants), r.ignored("message_type"), r.ignored("private_note"))


def _rasa_events(r: Reading, fact: dict[str, int]) -> bool:
    return (len(r.users) + len(r.marks("control_text")), len(r.assistants)) == (fact.get("user", 0), fact.get("bot", 0))


def _rasa_actions(r: Reading, fact: list[str]) -> bool:
    """Actions that do something: not those that wait, nor those that only say a text."""
    idle = ("utter_", "action_listen", "action_session_start", "action_unlikely_intent")
    return [call.name for call in r.calls] == [name for name in fact if not name.startswith(idle)]


def _sgd_results(r: Reading, fact: int) -> bool:
    return sum(len(result.result) for result in r.results) == fact


def _services(r: Reading, fact: Any) -> bool | None:
    if isinstance(fact, int):  # a schema, which has no dialogues
        return None
    return sorted({name for one in r.conversations for name in one.extras["services"]}) == fact


def _stream_text(r: Reading, fact: Any) -> bool | None:
    text = fact if isinstance(fact, str) else "".join(fact.values())
    if not text and r.facts.get("refusal"):
        return None
    return same(r.assistants, [text] if text else [])


def _delexed(r: Reading, fact: list[int]) -> bool:
    turns = [len(one.utterances) + len(one.tool_calls) for one in r.conversations]
    return r.ignored("delexed") == sum(count for count, again in zip(turns, fact, strict=True) if count == again)


def _atif(rule: Rule) -> Rule:
    """The script that counted did not open a file that holds several trajectories under names."""
    return lambda r, fact: rule(r, fact) if r.facts["steps"] else None


def _atif_sources(r: Reading, fact: dict[str, int]) -> bool:
    has_system = not fact.get("system") or bool(r.instructions) or bool(r.results)
    users = len(r.users) + r.ignored("copied_context")
    return has_system and (users, r.messages_of_assistants) == (fact.get("user", 0), fact.get("agent", 0))


def _in_extras(name: str) -> Rule:
    return lambda r, fact: None if fact is None else [one.extras.get(name) for one in r.conversations] == [fact]


def _final_status(r: Reading, fact: str) -> bool:
    return fact in [value for one in r.conversations for value in (one.outcome.final_status, one.outcome.ended_reason)]


def _total(r: Reading, fact: int) -> bool:
    """All messages of a list, instructions and a user's silent messages too."""
    system = r.facts["roles"].get("system", 0) if r.instructions else 0
    return r.messages + len(_silent_users(r)) + system + r.ignored("demonstration") == fact


def _null_content(r: Reading, fact: int) -> bool:
    """Messages of assistants without words: they call a tool."""
    return r.facts["roles"]["assistant"] - len(r.assistants) == fact


def _exchanges(r: Reading, fact: int) -> bool:
    return len(r.conversations) + r.ignored("repeated_history") == fact


def _sentiments(r: Reading, fact: dict[str, int]) -> bool | None:
    return (
        Counter(filter(None, (one.extras.get("sentiment") for one in r.utterances))) == Counter(fact) if fact else None
    )


RULES: dict[str, Rule] = {
    "actions": _count(lambda r: r.calls),
    "agent": lambda r, fact: None if fact is None else [one.agent.name for one in r.conversations] == [fact],
    "agent_messages": _count(lambda r: r.assistants),
    "annotation_names": lambda r, fact: (fact["api_call"], fact["api_response"]) == (len(r.calls), len(r.results)),
    "api_calls": _calls,
    "assistant_texts": _texts_of(ASSISTANT),
    "assistant_transcripts": _texts_of(ASSISTANT),
    "assistant_with_null_content": _null_content,
    "audio_duration_s": _duration(),
    "audio_transcripts_in": _heard,
    "audio_transcripts_out": _spoken,
    "block_types": _blocks,
    "block_types_in_last_request": _last_exchange,
    "bot_texts": _texts_of(ASSISTANT),
    "branch_points": lambda r, fact: bool(sum(fact)) == bool(r.ignored("message_of_another_branch")),
    "by_action": _star_actions,
    "by_event": _rasa_events,
    "by_message_type": _chatwoot,
    "by_participant": _contact_roles,
    "by_role": _contact_roles,
    "by_speaker": lambda r, fact: (
        Counter({k.casefold(): n for k, n in r.names.items()}) == {k.casefold(): n for k, n in fact.items()}
    ),
    "by_type": _managed,
    "calls_per_conversation": lambda r, fact: [len(one.tool_calls) for one in r.conversations] == fact,
    "completion": _final_status,
    "content_roles": _adk_roles,
    "conversation_ids": _ids,
    "conversations": _count(lambda r: r.conversations),
    "cost_usd": _in_extras("cost"),
    "created_at": _starts,
    "cues": _count(lambda r: r.utterances),
    "current_path_length": lambda r, fact: r.messages + r.facts["roles"].get("system", 0) == fact,
    "delexed_turns": _delexed,
    "demonstration_messages": _count(lambda r: r.ignored("demonstration")),
    "duration": _duration(),
    "duration_ms": _duration(0.001),
    "duration_s": _duration(),
    "e2e_latencies": lambda r, fact: [round(value, 1) for value in r.values("e2e_latency")] == fact,
    "entries_without_content": _count(lambda r: r.ignored("event_without_content")),
    "error_spans": _broken,
    "error_status": _broken,
    "errors": lambda r, fact: sum(tally.count for tally in r.report.set_aside.values()) == len(fact),
    "exceptions": _if_any(_broken),
    "exchanges": _exchanges,
    "exit_status": _final_status,
    "final_text_prefix": lambda r, fact: any(text.startswith(fact) for text in r.assistants[-1:]),
    "first_absolute_time": _starts,
    "first_begin_ms": _sound_starts(0.001),
    "first_doctor": lambda r, fact: any(text.startswith(fact) for text in r.assistants[:1]),
    "first_message_role": lambda r, fact: (
        [one.roles[one.utterances[0].speaker] for one in r.conversations][:1] == [fact]
    ),
    "first_start": _sound_starts(),
    "first_text": _first,
    "first_time": _within,
    "first_ts": _within,
    "first_user_text": _first_user,
    "first_word_start": _sound_starts(),
    "flow": _dimension("subflow"),
    "froms": _speakers("gpt", "human"),
    "function_calls": _calls,
    "function_calls_in_requests": _in_requests(ToolCall),
    "function_outputs": _results,
    "function_responses": _results,
    "function_responses_in_requests": _in_requests(ToolResult),
    "gemini_output_transcription": lambda r, fact: " ".join("".join(r.assistants).split()) == fact,
    "gemini_tool_calls": _calls,
    "gen_ai.input.messages_n": lambda r, fact: (
        r.messages + r.instructions == fact + r.facts["gen_ai.output.messages_n"]
    ),
    "history": _total,
    "id": _id,
    "ids": _ids,
    "input_tool_calls": lambda r, fact: len(r.calls) == fact + r.facts["output_tool_calls"],
    "interactions": lambda r, fact: sum(one.extras.get("spans", 0) for one in r.conversations) == fact,
    "interrupted": lambda r, fact: sum(bool(one.cut_off_by) for one in r.utterances) == fact,
    "item_types": _items,
    "language": lambda r, fact: (
        None
        if fact is None
        else fact in {t.language for u in r.utterances for t in (u.heard, u.spoken, u.intended) if t}
    ),
    "last_end": _sound_ends(),
    "last_response": lambda r, fact: any(begins_with(text, fact) for text in r.assistants[-1:]),
    "last_text": lambda r, fact: any(begins_with(text, fact) for text in r.all_said[-1:]),
    "last_time": _within,
    "last_ts": _within,
    "last_word_end": _sound_ends(),
    "llm_input_messages": _history,
    "llm_output_messages": lambda r, fact: r.messages_of_assistants == sum(fact) if any(fact) else None,
    "llm_output_tool_calls": _calls_in_answers,
    "mean_reward": _mean_reward,
    "messages": _total,
    "model": lambda r, fact: {one.agent.models.get("llm") for one in r.conversations} == {fact},
    "models": _models,
    "multi_service": lambda r, fact: sum(len(one.extras["services"]) > 1 for one in r.conversations) == fact,
    "newest_first": _in_order,
    "null_content": _count(lambda r: r.ignored("message_without_text")),
    "num_turns": _count(lambda r: r.messages_of_assistants),
    "observations": _results,
    "original_input": _first_user,
    "original_turns": lambda r, fact: len(r.utterances) + len(r.calls) == fact,
    "output_tool_calls": _calls_in_answers,
    "part_keys": _adk_parts,
    "partial": lambda r, fact: (
        len(r.utterances) == fact.count(False) and r.ignored("partial_result") == fact.count(True)
    ),
    "partial_json": lambda r, fact: [call.arguments for call in r.calls] == ([json.loads(fact)] if fact else []),
    "participants": lambda r, fact: len(r.participants) + bool(r.marks("system_message")) == fact,
    "parts": lambda r, fact: len(r.utterances) - bool(r.facts["source_body"]) + r.ignored("part_") == fact,
    "private": _count(lambda r: r.ignored("private_note")),
    "pronunciations": _words,
    "queries": _calls,
    "refusal": lambda r, fact: same(r.assistants, [fact]) if fact else None,
    "response_body_type": lambda r, fact: ("streamed_response_joined" in r.report.inferred) == (fact == "str"),
    "responses_done": _if_any(_count(lambda r: r.messages_of_assistants)),
    "result_subtype": _final_status,
    "results": _count(lambda r: r.utterances),
    "rewards": _rewards,
    "roles": _by_role,
    "sample_errors": lambda r, fact: sum(bool(one.outcome.error) for one in r.conversations) == fact,
    "samples": _count(lambda r: r.conversations),
    "scorers": _scorers,
    "segments": _count(lambda r: r.utterances),
    "sender_id": _id,
    "sender_types": lambda r, fact: fact.get("contact", 0) == len(r.users),
    "senders": _messenger,
    "sentiments": _sentiments,
    "service_calls": _calls,
    "service_results": _sgd_results,
    "services": _services,
    "session_id": _id,
    "sorted_by_time": _in_order,
    "source_body": lambda r, fact: [re.sub("<[^>]*>", "", fact).strip()] == r.all_said[:1],
    "sources": _atif(_atif_sources),
    "speaker_count": _count(lambda r: r.participants),
    "speaker_segment_labels": lambda r, fact: r.participants == set(fact) if fact else None,
    "speaker_segments": _if_any(_count(lambda r: r.utterances)),
    "speakers": _named,
    "speech_started": _speech(0),
    "speech_stopped": _speech(1),
    "start": _sound_starts(),
    "end": _sound_ends(),
    "state": _final_status,
    "steps": _count(lambda r: r.messages_of_assistants),
    "stop_marker": _count(lambda r: r.marks("control_text")),
    "task_ids": _dimension("scenario_id"),
    "termination": _termination,
    "text": _stream_text,
    "text_prefix": _prefix,
    "texts": _stream_text,
    "title": _in_extras("title"),
    "tool_calls": _calls,
    "tool_calls_by_requestor": _requestors,
    "tool_errors": _failed,
    "tool_names": _tools_that_ran,
    "tool_observations": lambda r, fact: len(r.results) >= fact,
    "tool_result_is_error": _failed,
    "tool_results": _results,
    "tool_results_starting_Error": _failed,
    "tool_spans": _if_any(_calls),
    "tool_uses": _calls,
    "total_tokens": lambda r, fact: sum(r.values("total_tokens")) == fact,
    "traces": _traces,
    "trajectories": _atif(_count(lambda r: r.conversations)),
    "transcript": lambda r, fact: same([" ".join(r.all_said)], [fact]),
    "transcript_entries": _with_ignored("event_without_content"),
    "transcript_prefix": _prefix,
    "trials": _dimension("trial"),
    "turns": _turns,
    "types": lambda r, fact: (
        len(r.utterances) + len(r.marks("system_message")) == fact.get("MESSAGE", fact.get("message")) if fact else None
    ),
    "user_id": lambda r, fact: None if fact is None else [one.extras.get("user") for one in r.conversations] == [fact],
    "user_messages": _count(lambda r: r.users),
    "user_messages_with_tool_calls": _user_callers,
    "user_texts": _texts_of(USER),
    "user_transcripts": _texts_of(USER),
    "user_utterances": _count(lambda r: r.users),
    "utterances": _if_any(_count(lambda r: r.utterances)),
    "v_tags": lambda r, fact: (
        sum(r.names[name] for name in r.participants if name != "unknown") == fact if fact else None
    ),
    "wizard_utterances": _count(lambda r: r.assistants),
    "words": _words,
    # One name, another meaning
    "abcd.by_speaker": lambda r, fact: _speakers("agent", "customer")(r, fact) and fact["action"] == len(r.calls),
    "anthropic-messages.roles": _people,
    "atif.observations": _atif(_results),
    "atif.tool_calls": _atif(_calls),
    "chatgpt-export.roles": _branches,
    "chatwoot.messages": _with_ignored("message_type", "private_note", "message_without_text"),
    "google-adk.authors": lambda r, fact: r.names <= Counter(fact),
    "google-adk.first_ts": _starts,
    "google-adk.last_ts": _ends,
    "google-adk.texts": _count(lambda r: r.utterances),
    "livekit.messages": _count(lambda r: r.utterances),
    "livekit.roles": _speakers("assistant", "user"),
    "messenger-exports.messages": _with_ignored("message"),
    "openai-agents-runstate.agent": lambda r, fact: [one.agent.name for one in r.conversations] == [fact],
    "openhands.actions": _openhands_actions,
    "openhands.observations": _openhands_observations,
    "openhands.sources": lambda r, fact: fact.get("user", 0) == len(r.users),
    "rasa.actions": _rasa_actions,
    "rasa.user_texts": lambda r, fact: same([*r.users, *r.marks("control_text")], fact),
    "langfuse.start": _within,
    "langfuse.end": _within,
    "assemblyai.first_word_start": _sound_starts(0.001),
    "assemblyai.last_word_end": _sound_ends(0.001),
    "aws-transcribe.text": lambda r, fact: same([" ".join(r.all_said)], [fact]),
    "openinference.end_reasons": lambda r, fact: (
        sum(bool(one.cut_off_by) for one in r.utterances) == fact.count("interrupted")
    ),
    "openai-stream.created": _starts,
    "deepgram.created": _in_extras("created"),
    "vercel-ai-spans.first_start": _starts,
}

_SHAPE = "counts the records, lines or fields of the file, not what was said"
_SPANS = "counts spans; what they say is compared as messages, calls and results"
_KIND = "says how the exporter writes, not what was said"
_AGAIN = "the same again, which another fact compares"
_NOTES = "annotations beside the dialogue, which no reader of messages needs"
NOT_READING: dict[str, str] = {
    "agents": "which program wrote each entry; all samples have one",
    "alternatives_max": _KIND,
    "annotations": _NOTES,
    "attachments": "files beside messages, or texts that a log stores apart",
    "attributes": _SHAPE,
    "authors": "authors of parts, most of which say nothing; `parts` accounts for each",
    "by_agent": _AGAIN + " (`by_action`)",
    "candidates_per_turn": "answers to choose from, for a benchmark",
    "channel": _KIND,
    "channel_labels": "names of channels, which the samples do not have; `speakers` compares who speaks",
    "channels": "channels of the recording; `speakers` compares who speaks",
    "choices": "alternatives that a model gave; the first is the answer",
    "chunks": _SHAPE,
    "content_types": _KIND,
    "continuation_lines": _AGAIN + " (`utterances`)",
    "domain": "the name of the benchmark's domain",
    "domains": "the name of the benchmark's domain",
    "endpoints": _KIND,
    "ends_with_done": _KIND,
    "entities": _NOTES,
    "entries_with_redaction": _NOTES,
    "events": _SHAPE,
    "final_transcripts": "events of the recogniser, which the messages repeat",
    "finish_reasons": "why a model stopped",
    "gen_ai.output.messages_n": _AGAIN + " (`gen_ai.input.messages_n`)",
    "generated_items": _AGAIN + " (`item_types`)",
    "generations": _SPANS,
    "has_current_node": _KIND,
    "has_paragraphs": _KIND,
    "has_times": _KIND,
    "input_types": _KIND,
    "intents": "of a schema, which has no dialogues; test_formats.py reads it beside them",
    "interim_transcripts": "events of the recogniser, which the messages repeat",
    "items": _SHAPE,
    "keys": _SHAPE,
    "kind": _SPANS,
    "kinds": _SPANS,
    "last_chunk_has_no_choices": _KIND,
    "levels": _SPANS,
    "lines": _SHAPE,
    "message_pool": _KIND,
    "messages_in_last_request": _AGAIN + " (`block_types_in_last_request`, `roles`)",
    "messages_not_sorted_by_created_at": _KIND,
    "model_events": _SHAPE,
    "model_responses": _SHAPE,
    "names": _SPANS,
    "nested_observations": _SPANS,
    "nested_with_input": _SPANS,
    "new_token_events": _SHAPE,
    "nodes": _SHAPE,
    "nodes_with_message": _AGAIN + " (`roles`)",
    "numbered": _KIND,
    "observations_with_input": _SPANS,
    "operation": _SPANS,
    "operation_ids": _SPANS,
    "operations": _SPANS,
    "outcome": "a line of a header that plain text does not define",
    "output_in": _KIND,
    "part_types": _AGAIN + " (`parts`)",
    "partial_json_parses": _AGAIN + " (`partial_json`)",
    "patch": _SHAPE,
    "patch_has_id": _KIND,
    "pending_spans": _SPANS,
    "post": _SHAPE,
    "prompt_keys": _KIND,
    "providers": _KIND,
    "punctuations_without_time": _KIND,
    "received": _SHAPE,
    "received_types": _SHAPE,
    "root_observations": _SPANS,
    "roots": _SPANS,
    "run_type": _KIND,
    "runs": _SPANS,
    "schema": "the version of the format",
    "sent": _SHAPE,
    "sent_types": _SHAPE,
    "slots": "of a schema, which has no dialogues",
    "span_events": _SPANS,
    "spans": _SPANS,
    "spans_whose_parent_comes_later_in_file": _SPANS,
    "spans_with_events_attr": _SPANS,
    "spans_with_indexed_prompt": _SPANS,
    "spans_with_input_messages": _SPANS,
    "spans_with_request_data": _SPANS,
    "speaker_in_words": _KIND,
    "speaker_label_on_items": _KIND,
    "speaker_names": "names before a colon in the text of cues; the samples have none",
    "speaker_prefixed_lines": "names before a colon in the text of cues; the samples have none",
    "start_time_type": _KIND,
    "starts_with_bom": _KIND,
    "status": "whether the program that wrote the log succeeded",
    "stop_reason": "why a model stopped",
    "stop_reasons": "why a model stopped",
    "stream_events": _SHAPE,
    "task": "the name of the benchmark's task",
    "text_types": _KIND,
    "time_is_pair": _KIND,
    "time_type": _KIND,
    "time_unit": _KIND,
    "times_are_small_integers": _KIND,
    "tool": _SPANS,
    "tool_results_in_user_role": _AGAIN + " (`roles`, `block_types_in_last_request`)",
    "trace_input_prefix": "a text that is encoded twice; `reference-chatml` has what it says",
    "version": "the version of the format",
    "verticals": "the name of the dataset's domain",
    "without_sender": _AGAIN + " (`by_message_type`)",
    "word_key": _KIND,
    "word_segments": "the words again, which a careful reader does not count twice",
    "zip_members": _SHAPE,
    "zip_methods": _KIND,
    "atif.steps": _AGAIN + " (`sources`)",
    "contact-lens.roles": "who each participant is, which `by_participant` uses",
    "inspect.attachments": "texts that a log stores apart; the messages that use them are compared",
    "rasa.first_ts": "the time of an event that is mostly a wait, which nothing is said in",
    "rasa.last_ts": "the time of an event that is mostly a wait, which nothing is said in",
    "langfuse.observations": _SPANS,
    "otel-genai.input_tool_calls": "the script counted `tool_calls`, which the parts of these messages are not called",
    "realtime-ws.interactions": _SHAPE,
    "openai-agents-runstate.schema": "the version of the format",
    "taskmaster.segments": _NOTES,
}
"""Facts that do not say what was said, called, answered, measured or scored. They are never counted as right."""


def decide(kind: str, key: str) -> Rule | str | None:
    """The comparison of a fact, or why there is none; None where it was never decided."""
    for name in (f"{kind}.{key}", key):
        if name in RULES:
            return RULES[name]
        if name in NOT_READING:
            return NOT_READING[name]
    return None
