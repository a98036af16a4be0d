"""The annotator that asks a language model: the vocabulary is in its question, and what it finds is checked."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar

import msgspec

from convoscope.annotate.annotator import ASKS_JUDGE, CAPABILITIES, NO_WORDS, NotAnnotated
from convoscope.conversation import Action, Annotations, Conversation, Risk, Topic
from convoscope.conversation.annotations import ACTIONS, FAMILIES, GIVEN, PARTIAL, RISKS, TOPICS, Finding
from convoscope.judging.answers import UnusableAnswer
from convoscope.judging.backends import BudgetSpent, JudgeFailed
from convoscope.judging.questions import ShownLine, fenced_lines
from convoscope.judging.quotes import found_words
from convoscope.resources.judge import Judge, Verdict, close
from convoscope.vocabulary import SemanticVocabulary, semantic_vocabulary

_Result = TypeVar("_Result")

PART = 12_000
"""Characters of a call that one question shows: longer calls are asked about in parts."""
MOST_THREADS = 32
CONTEXT = 2
"""Utterances of the part before that are shown again: a promise may answer a question."""
_ALSO = {"legal": "compliance"}
_ROLES = {"manager": "team"}
"""Other names that models are known to give."""
_SAYS = {TOPICS: "label", RISKS: "type", ACTIONS: "description"}
"""The field without which a finding says nothing."""
NO_EVIDENCE = "evidence_not_found"
_TEXT, _SHARE = {"type": "string"}, {"type": "number", "minimum": 0, "maximum": 1}
_SEGMENTS = {"type": "array", "items": {"type": "integer", "minimum": 0}}


def _listed(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    whole = {**properties, "confidence": _SHARE, "segment_ids": _SEGMENTS}
    return {"type": "array", "items": {"type": "object", "required": list(required), "properties": whole}}


SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": [*FAMILIES, "summary"],
    "properties": {
        TOPICS: _listed(("label", "evidence"), label=_TEXT, evidence=_TEXT),
        RISKS: _listed(("type", "severity", "evidence"), type=_TEXT, severity=_TEXT, evidence=_TEXT),
        ACTIONS: _listed(
            ("description", "assignee_role", "verbatim"),
            description=_TEXT,
            assignee=_TEXT,
            assignee_role=_TEXT,
            due=_TEXT,
            verbatim=_TEXT,
        ),
        "summary": _TEXT,
    },
}
_PROMPT = """You find topics, risks and promised actions in a conversation between a customer and a company.

**topics**: what it is about. Labels, no others:
{topics}

**risks**: warning signs, each type once, with the highest severity that it reaches. Types with their severities, no
others:
{risks}

**actions**: what a side promises to do after the conversation, or is asked to do and accepts. What is done at once is
none. `description` is short and in the imperative ("Send the proposal"). `assignee_role` is one of {roles}. `due` is
when, in the words of the conversation, else empty.

`evidence` and `verbatim` are whole words, copied character for character from the conversation: a finding without such
words is not counted. `segment_ids` are the numbers of the utterances in square brackets. `confidence` is from 0 to 1. A
list is empty where there is nothing to find. `summary` is one to three sentences that say nothing which is not in the
conversation.

## The conversation{part}
{lines}

## Your answer
Answer with one JSON object that fits this JSON Schema, and nothing else:
{schema}
"""


class _Part(NamedTuple):
    """Utterances that one question shows: their numbers and texts."""

    texts: Mapping[int, str]


class LanguageModelAnnotator:
    """Asks a judge what it finds. Evidence that is not in the conversation drops a finding."""

    name = ASKS_JUDGE
    provides = frozenset(CAPABILITIES)

    def __init__(self, judge: Judge, max_concurrency: int = MOST_THREADS) -> None:
        self._judge = judge
        self.max_concurrency = min(max_concurrency, MOST_THREADS)
        """Conversations that it can be asked about at once, by threads. The judge has its own limit, too."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = Lock()

    @property
    def identity(self) -> str:
        """The model, its parameters, and the hash of what it is asked."""
        asked = json.dumps([_PROMPT, _vocabulary_words(semantic_vocabulary()), dict(SCHEMA), PART, CONTEXT])
        return f"{ASKS_JUDGE}/3:{self._judge.identity}+{hashlib.sha256(asked.encode()).hexdigest()[:8]}"

    def annotate(self, conversation: Conversation) -> Annotations:
        """What the model finds; all families are None where it gives no usable answer to a part."""
        parts = list(_parts(conversation))
        if not parts:
            raise NotAnnotated(NO_WORDS)
        return self._run(self._annotated(conversation, parts))

    def _run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """In a loop in a thread of its own: where this is called, another loop may run."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=self._loop.run_forever, name=self.name, daemon=True)
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """No conversation will follow, and no answer is waited for."""
        if self._loop is not None:
            self._run(self._ended())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None

    async def _ended(self) -> None:
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await close(self._judge)

    async def _annotated(self, conversation: Conversation, parts: Sequence[_Part]) -> Annotations:
        prompts = [_prompt(conversation, part, number, len(parts)) for number, part in enumerate(parts, 1)]
        answers = await asyncio.gather(
            *(self._judge.ask(prompt.text, SCHEMA) for prompt in prompts), return_exceptions=True
        )
        failure = next((answer for answer in answers if isinstance(answer, BaseException)), None)
        if failure is not None:
            return self._failed(failure, _cost([one for one in answers if isinstance(one, Verdict | UnusableAnswer)]))
        verdicts = [answer for answer in answers if isinstance(answer, Verdict)]
        is_withheld = any(prompt.withheld for prompt in prompts)
        return self._together(conversation, parts, verdicts, is_withheld=is_withheld)

    def _together(
        self, conversation: Conversation, parts: Sequence[_Part], verdicts: Sequence[Verdict], *, is_withheld: bool
    ) -> Annotations:
        """What the answers about all parts come to."""
        by_part = [_Findings(conversation, part, verdict.answer) for part, verdict in zip(parts, verdicts, strict=True)]
        summaries = [text for verdict in verdicts if (text := str(verdict.answer.get("summary") or "").strip())]
        families: dict[str, Any] = {
            TOPICS: tuple(_merged_topics([topic for one in by_part for topic in one.topics])),
            RISKS: tuple(_merged_risks([risk for one in by_part for risk in one.risks])),
            ACTIONS: tuple(_merged_actions([one.actions for one in by_part])),
        }
        dropped = sum((one.dropped for one in by_part), Counter[str]())
        # Where all findings of a family were dropped, it is unknown what there was to find.
        lost = [family for family in FAMILIES if dropped[family] and not families[family]]
        status = {family: PARTIAL if dropped[family] or is_withheld else GIVEN for family in FAMILIES}
        extras: dict[str, Any] = {"parts": len(parts), "dropped": dropped.total(), **_cost(verdicts)}
        if len(lost) == len(FAMILIES):
            extras |= {"reason": NO_EVIDENCE, "detail": "no finding quotes words of the conversation"}
        return Annotations(
            origin="predicted",
            annotator=self.name,
            **families | dict.fromkeys(lost),
            summary=" ".join(summaries) or None,
            extraction={**status, **dict.fromkeys(lost, "error")},
            extras=extras,
        )

    def _failed(self, failure: BaseException, cost: Mapping[str, Any]) -> Annotations:
        if not isinstance(failure, Exception):
            raise failure
        reason, detail = "judge_failed", f"{type(failure).__name__}: {failure}"[:200]
        if isinstance(failure, UnusableAnswer):
            reason, detail = failure.reason, failure.detail
        elif isinstance(failure, JudgeFailed):
            reason, detail = "budget_spent" if isinstance(failure, BudgetSpent) else reason, failure.message
        return Annotations(
            origin="predicted",
            annotator=self.name,
            extraction=dict.fromkeys(FAMILIES, "error"),
            extras={"reason": reason, "detail": detail, **cost},
        )


def _parts(conversation: Conversation) -> Iterator[_Part]:
    """The utterances with words, in parts; each but the first begins with the end of the one before."""
    texts = {
        number: text
        for number, utterance in enumerate(conversation.utterances)
        if (text := conversation.text(utterance).strip())
    }
    part: dict[int, str] = {}
    for number, text in texts.items():
        if part and sum(map(len, part.values())) + len(text) > PART:
            yield _Part(part)
            part = dict(list(part.items())[-CONTEXT:])
            if sum(map(len, part.values())) + len(text) > PART:  # one long utterance leaves no room for what was before
                part = {}
        part[number] = text
    if part:
        yield _Part(part)


class _Prompt(NamedTuple):
    text: str
    withheld: tuple[int, ...]


def _prompt(conversation: Conversation, part: _Part, number: int, of: int) -> _Prompt:
    roles, utterances = conversation.roles, conversation.utterances
    lines = fenced_lines(
        [
            ShownLine(at, f"[{at}] {roles.get(utterances[at].speaker) or 'speaker'}", text)
            for at, text in part.texts.items()
        ]
    )
    vocabulary = semantic_vocabulary()
    words = {
        **_vocabulary_words(vocabulary),
        "roles": ", ".join(vocabulary.assignee_roles),
        "part": f", part {number} of {of}" if of > 1 else "",
        "lines": lines.text,
        "schema": json.dumps(SCHEMA),
    }
    text = _PROMPT
    for name, value in words.items():  # what a value holds is not looked at for placeholders: the lines come last
        if name != "lines":
            text = text.replace(f"{{{name}}}", value)
    return _Prompt(text.replace("{lines}", words["lines"], 1), lines.withheld)


def _vocabulary_words(vocabulary: SemanticVocabulary) -> dict[str, str]:
    return {
        "topics": "\n".join(f"- {category}: {', '.join(labels)}" for category, labels in vocabulary.topics.items()),
        "risks": "\n".join(
            f"- {name}: {kind.description}; {', '.join(kind.severities)}" for name, kind in vocabulary.risks.items()
        ),
    }


class _Findings:
    """What of an answer can be used: evidence has to be in what was shown."""

    def __init__(self, conversation: Conversation, part: _Part, answer: Mapping[str, Any]) -> None:
        self._seqs = [utterance.seq for utterance in conversation.utterances]
        self._speakers = [utterance.speaker for utterance in conversation.utterances]
        self._part = part
        self.dropped: Counter[str] = Counter()
        """Findings whose words are not in the part, or that say nothing, by family."""
        vocabulary = semantic_vocabulary()
        self.topics = [
            Topic(label=vocabulary.topic(item["label"]), span=(min(where), max(where)), **rest)
            for item, where, rest in self._grounded(TOPICS, answer, "evidence")
        ]
        self.risks = [self._risk(vocabulary, *given) for given in self._grounded(RISKS, answer, "evidence")]
        self.actions = [
            Action(
                description=item["description"].strip(),
                verbatim=rest.pop("evidence"),
                assignee=str(item.get("assignee") or ""),
                assignee_role=_role(vocabulary, item["assignee_role"]),
                due=str(item.get("due") or ""),
                **rest,
            )
            for item, _, rest in self._grounded(ACTIONS, answer, "verbatim")
        ]

    def _risk(
        self, vocabulary: SemanticVocabulary, item: Mapping[str, Any], where: Sequence[int], rest: dict[str, Any]
    ) -> Risk:
        kind = vocabulary.risk(item["type"])
        kind = _ALSO.get(kind, kind)
        severity = item["severity"].strip().casefold()
        known = vocabulary.risks.get(kind)
        if known is None or severity not in known.severities:
            severity = ""
        speaker = self._speakers[self._seqs.index(where[0])]
        return Risk(type=kind, severity=severity, speaker=speaker, **rest)

    def _grounded(
        self, family: str, answer: Mapping[str, Any], quoted: str
    ) -> Iterator[tuple[Mapping[str, Any], list[int], dict[str, Any]]]:
        """Each finding whose words are in the part, the seqs of the utterances that hold them, and what it rests on."""
        for item in answer[family]:
            numbers = [at for at, text in self._part.texts.items() if found_words(item[quoted], text)]
            named = [at for at in item.get("segment_ids") or () if at in numbers]
            if not numbers or not item[_SAYS[family]].strip():
                self.dropped[family] += 1
                continue
            where = [self._seqs[at] for at in (named or numbers[:1])]
            words = found_words(item[quoted], self._part.texts[(named or numbers)[0]])
            confidence = item.get("confidence")
            yield item, where, {"events": tuple(where), "evidence": words, "confidence": confidence}


def _role(vocabulary: SemanticVocabulary, role: str) -> str:
    plain = role.strip().casefold()
    plain = _ROLES.get(plain, plain)
    return plain if plain in vocabulary.assignee_roles else "unknown"


def _surest(findings: Sequence[Finding]) -> float | None:
    return max((one.confidence for one in findings if one.confidence is not None), default=None)


def _events(findings: Sequence[Finding]) -> tuple[int, ...]:
    return tuple(sorted({seq for one in findings for seq in one.events}))


def _merged_topics(topics: Sequence[Topic]) -> Iterator[Topic]:
    """Each label once, from its first utterance to its last."""
    for label in dict.fromkeys(topic.label for topic in topics):
        same = [topic for topic in topics if topic.label == label]
        events = _events(same)
        span = (events[0], events[-1])
        yield msgspec.structs.replace(same[0], span=span, events=events, confidence=_surest(same))


def _merged_risks(risks: Sequence[Risk]) -> Iterator[Risk]:
    """Each type once, with its highest severity and the evidence of that."""
    weights = semantic_vocabulary().weights
    for kind in dict.fromkeys(risk.type for risk in risks):
        same = [risk for risk in risks if risk.type == kind]
        worst = max(same, key=lambda risk: weights.get(risk.severity, 0.0))
        yield msgspec.structs.replace(worst, events=_events(same), confidence=_surest(same))


def _merged_actions(by_part: Sequence[Sequence[Action]]) -> Iterator[Action]:
    """Each promise once: one description by one side. A sentence may hold two promises.

    Two parts may show the same sentence, and name its promises in other words: the part counts that finds more in it.
    """
    by_quote: dict[tuple[Any, ...], dict[int, set[tuple[str, str]]]] = {}
    for number, actions in enumerate(by_part):
        for action in actions:
            by_quote.setdefault(_quote(action), {}).setdefault(number, set()).add(_promise(action))
    chosen = {quote: max(parts, key=lambda number: len(parts[number])) for quote, parts in by_quote.items()}
    seen: set[tuple[str, str]] = set()
    for number, actions in enumerate(by_part):
        for action in actions:
            if chosen[_quote(action)] == number and _promise(action) not in seen:
                seen.add(_promise(action))
                yield action


def _quote(action: Action) -> tuple[Any, ...]:
    return (*action.events, action.verbatim.casefold())


def _promise(action: Action) -> tuple[str, str]:
    return action.description.casefold().rstrip("."), action.assignee_role


def _cost(answers: Sequence[Verdict | UnusableAnswer]) -> dict[str, Any]:
    """What all parts took together; nothing where it is unknown of one of them, and no price of unusable answers."""
    sums = {
        name: [getattr(answer, name, None) for answer in answers] for name in ("input_tokens", "output_tokens", "cost")
    }
    return {name: sum(values) for name, values in sums.items() if values and all(value is not None for value in values)}
