"""Why a conversation was lost: the first of some fixed rules that fits, or no single cause.

The rules are tried in a fixed order, and look at the log alone: no rule is a model, and none sees another conversation.
A tool that failed or was slow near the end; the same thing said again and again; an agent that talks over the user; a
name or number misheard; states that are gone round and round; a user left without a reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from convoscope.analysis.words import cut_text
from convoscope.conversation import ASSISTANT, Conversation, SlotFilled, StateEntered, ToolCall, ToolResult, Utterance
from convoscope.conversation.events import AnyEvent
from convoscope.metrics.agent import talks_over_user
from convoscope.metrics.voice.transcription import KINDS, entity_checks, key_entities
from convoscope.scoring.evaluate import observe
from convoscope.text.comparison import is_without_blanks, normalised_words
from convoscope.text.lexicon import AGENT_REQUEST, folded_phrases, lexicon
from convoscope.views.flow.walk import walk
from convoscope.views.languages import languages_of
from convoscope.views.machines import is_call
from convoscope.views.tool_outcomes import tool_outcomes
from convoscope.views.user_turns import user_turns

TOOL_SLOW, TOOL_FAILED, ASKED_AGAIN, TALKED_OVER, MISHEARD, LOOP, NO_REPLY, NONE = (
    "tool_slow",
    "tool_failed",
    "asked_again",
    "talked_over",
    "misheard",
    "loop",
    "no_reply",
    "none",
)

SLOW_IN_CALLS = 5.0
"""Seconds that a tool may take while the caller waits on the line."""
SLOW_IN_CHATS = 30.0
LAST_TURNS = 2
"""Of the user: what happens in them is near the end."""
TIMES_AGAIN = 3
MIN_WORDS = 4
ALIKE = 0.75
"""Sentences that share so much of their words ask for the same thing."""
MAX_SENTENCES = 100
TIMES_OVER = 3
OVERLAP = 1.0
"""Seconds for which both must sound: a word of agreement is shorter."""
ROUNDS = 3
MAX_WORDS = 60


class Symptom(NamedTuple):
    """What went wrong in one conversation."""

    rule: str
    subject: str = ""
    words: str = ""
    """Of this conversation, with its number: "took 12.4 s"."""
    event: int | None = None
    amount: float = 0.0
    """The number of the words: seconds, times."""


NO_SYMPTOM = Symptom(NONE)


def cause_of(conversation: Conversation) -> Symptom:
    """The first rule that fits."""
    return next((finding for rule in RULES for finding in rule(conversation)), NO_SYMPTOM)


def _tool(conversation: Conversation) -> Iterator[Symptom]:
    """Near the end, a tool failed and did not work again, gave nothing, or kept the user waiting."""
    slow = SLOW_IN_CALLS if is_call(conversation) else SLOW_IN_CHATS
    results, calls, outcomes = conversation.tool_results, conversation.tool_calls, tool_outcomes(conversation)
    turns = user_turns(conversation)
    first = turns[-LAST_TURNS].utterances[0].seq if len(turns) >= LAST_TURNS else 0
    for index in range(len(calls) - 1, -1, -1):
        call = calls[index]
        result = results.get(call.seq)
        if (call if result is None else result).seq < first:
            return
        if result is not None and outcomes[result.seq].failed:
            later = (results.get(one.seq) for one in calls[index + 1 :] if one.name == call.name)
            if not any(one is not None and outcomes[one.seq].worked for one in later):
                yield Symptom(TOOL_FAILED, call.name, f"{call.name} failed", call.seq)
        seconds = tool_seconds(conversation, call)
        if seconds is not None and seconds >= slow:
            yield Symptom(TOOL_SLOW, call.name, f"{call.name} took {seconds:.1f} s", call.seq, seconds)


def tool_seconds(conversation: Conversation, call: ToolCall) -> float | None:
    """How long a tool took, by the times of its call and its result."""
    result = conversation.tool_results.get(call.seq)
    if result is None or call.time is None:
        return None
    until = call.time.until
    if until is not None and until > call.time.at:
        return until - call.time.at
    return None if result.time is None else conversation.elapsed(call.time, result.time)


class _Saying(NamedTuple):
    """A sentence of the agent, and where it says that again."""

    words: frozenset[str]
    text: str
    events: list[int]


def _same_request(conversation: Conversation) -> Iterator[Symptom]:
    """The agent makes the same request three times or more, give or take a word, while no tool does anything."""
    sayings: list[_Saying] = []
    worst: _Saying | None = None
    roles = conversation.roles
    for event in conversation.timeline:
        if _is_progress(conversation, event):
            sayings = []  # something was done: to ask again is to go on
        if type(event) is not Utterance or roles[event.speaker] != ASSISTANT:
            continue
        for sentence in _requests(conversation, event):
            words = frozenset(normalised_words(sentence).split())
            alike = next((one for one in sayings if len(one.words & words) >= ALIKE * len(one.words | words)), None)
            if alike is None and len(sayings) < MAX_SENTENCES:
                sayings.append(_Saying(words, sentence, [event.seq]))
            elif alike is not None:
                alike.events.append(event.seq)
                worst = alike if worst is None or len(alike.events) > len(worst.events) else worst
    if worst is not None and len(worst.events) >= TIMES_AGAIN:
        times, state = len(worst.events), _state_at(conversation, worst.events[-1])
        yield Symptom(ASKED_AGAIN, state, f"asked {times} times: “{worst.text}”", worst.events[TIMES_AGAIN - 1], times)


def _is_progress(conversation: Conversation, event: AnyEvent) -> bool:
    return type(event) is ToolResult and not tool_outcomes(conversation)[event.seq].failed


def _same_state(conversation: Conversation) -> Iterator[Symptom]:
    """Three requests or more in the last state, however worded, since a slot was filled or a tool worked."""
    if not conversation.contents.has_states:
        return
    roles = conversation.roles
    asked: list[Utterance] = []
    for event in reversed(conversation.timeline):
        if _is_progress(conversation, event) or type(event) in (SlotFilled, StateEntered):
            break
        if type(event) is Utterance and roles[event.speaker] == ASSISTANT:
            asked += [event] if any(_requests(conversation, event)) else []
    if len(asked) >= TIMES_AGAIN:
        request = next(_requests(conversation, asked[-1]))
        words = f"asked {len(asked)} times and got nowhere: “{request}”"
        yield Symptom(ASKED_AGAIN, _state_at(conversation, asked[0].seq), words, asked[-TIMES_AGAIN].seq, len(asked))


def _requests(conversation: Conversation, utterance: Utterance) -> Iterator[str]:
    """The sentences that ask for something: by a question mark in any language, by words where there is a lexicon."""
    text = conversation.text(utterance)
    known = lexicon(languages_of(conversation).of_text(text, utterance))
    for sentence in _SENTENCE.findall(text):
        if len(sentence.split()) < MIN_WORDS and not is_without_blanks(sentence):
            continue
        is_question = sentence.rstrip().endswith(_QUESTION_MARKS)
        if is_question or (known is not None and known.find(AGENT_REQUEST, folded_phrases(sentence))):
            yield sentence.strip()


_SENTENCE = re.compile(r"[^.!?？؟。！\n]+[.!?？؟。！]*")
_QUESTION_MARKS = ("?", "？", "؟")


def _state_at(conversation: Conversation, event: int) -> str:
    """The state that a conversation was in at an event; nothing where the log does not tell."""
    if not conversation.contents.has_states:
        return ""
    entered = [visit for visit in walk(conversation).visits if visit.entered <= event]
    return entered[-1].state if entered else ""


def _talked_over(conversation: Conversation) -> Iterator[Symptom]:
    over = [
        one.subject.position
        for one in observe(talks_over_user, conversation)
        if isinstance(one.details, dict) and one.details.get("seconds", 0.0) >= OVERLAP
    ]
    if len(over) >= TIMES_OVER:
        times = len(over)
        yield Symptom(TALKED_OVER, "", f"the agent talked over the user {times} times", over[0], times)


def _misheard(conversation: Conversation) -> Iterator[Symptom]:
    """A name, code, time or amount that the user said reached the agent as another, or not at all."""
    if all(one.value is None for one in observe(key_entities, conversation)):
        return
    utterances = {turn.id: turn.user[0].seq for turn in conversation.turns if turn.user}
    by_turn = sorted(entity_checks(conversation).items())
    got_right = {fact.intended.casefold(): turn for turn, checks in by_turn for fact in checks if fact.correct}
    for turn, checks in by_turn:
        for fact in checks:
            if not fact.correct and got_right.get(fact.intended.casefold(), -1) < turn:  # and not put right later
                words = f"“{fact.intended}” heard as “{fact.instead or 'nothing'}”"
                kind = next((name for name, kind in KINDS.items() if fact.type in kind.types), fact.type)
                yield Symptom(MISHEARD, kind, words, utterances.get(turn))


def _loop(conversation: Conversation) -> Iterator[Symptom]:
    """Two states are gone to and fro, or one is entered again and again."""
    if not conversation.contents.has_states:
        return
    visits = walk(conversation).visits
    rounds = 0
    for index in range(2, len(visits)):
        before, here, again = (visit.state for visit in visits[index - 2 : index + 1])
        rounds = rounds + 1 if again == before != here else 0
        if rounds >= ROUNDS:
            between = " and ".join(sorted((here, again)))
            yield Symptom(LOOP, between, f"went {rounds} times between {between}", visits[index].entered, rounds)
            return


def _no_reply(conversation: Conversation) -> Iterator[Symptom]:
    """Near the end, the user speaks and the agent does not: a user who gets no reply hangs up."""
    without = [turn for turn in user_turns(conversation)[-LAST_TURNS:] if turn.reply == "no"]
    if without:
        words = f"no reply to “{cut_text(without[0].text, MAX_WORDS)}”"
        yield Symptom(NO_REPLY, "", words, without[0].utterances[0].seq, len(without))


RULES: tuple[Callable[[Conversation], Iterator[Symptom]], ...] = (
    _tool,
    _same_request,
    _same_state,
    _talked_over,
    _misheard,
    _loop,
    _no_reply,
)
