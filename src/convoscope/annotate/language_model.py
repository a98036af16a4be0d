"""The annotator that asks a language model: the vocabulary is in its question, and what it finds is checked."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import msgspec

from convoscope.annotate.annotator import ASKS_JUDGE, CAPABILITIES, NO_WORDS, NotAnnotated
from convoscope.conversation import Action, Annotations, Conversation, Risk, Topic
from convoscope.conversation.annotations import ACTIONS, FAMILIES, GIVEN, RISKS, TOPICS, Finding
from convoscope.judging.answers import UnusableAnswer
from convoscope.judging.backends import BudgetSpent, JudgeFailed
from convoscope.judging.questions import ShownLine, fenced_lines, found_quote
from convoscope.resources.judge import Judge, Verdict, close
from convoscope.vocabulary import SemanticVocabulary, semantic_vocabulary

_Result = TypeVar("_Result")

PART = 12_000
"""Characters of a call that one question shows: longer calls are asked about in parts."""
CONTEXT = 2
"""Utterances of the part before that are shown again: a promise may answer a question."""
_ALSO = {"legal": "compliance"}
_ROLES = {"manager": "team"}
"""Other names that models are known to give."""
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

`evidence` and `verbatim` are copied character for character from the conversation: a finding without such words is not
counted. `segment_ids` are the numbers of the utterances in square brackets. `confidence` is from 0 to 1. A list is
empty where there is nothing to find. `summary` is one to three sentences that say nothing which is not in the
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

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def identity(self) -> str:
        """The model, its parameters, and the hash of what it is asked."""
        asked = json.dumps([_PROMPT, _vocabulary_words(semantic_vocabulary()), dict(SCHEMA), PART, CONTEXT])
        return f"judge/1:{self._judge.identity}+{hashlib.sha256(asked.encode()).hexdigest()[:8]}"

    def annotate(self, conversation: Conversation) -> Annotations:
        """What the model finds; all families are None where it gives no usable answer to a part."""
        parts = list(_parts(conversation))
        if not parts:
            raise NotAnnotated(NO_WORDS)
        return self._run(self._annotated(conversation, parts))

    def _run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """In a thread of its own: where this is called, another loop may run."""
        if self._loop is None:
            self._loop, self._thread = asyncio.new_event_loop(), ThreadPoolExecutor(1)
        return self._thread.submit(self._loop.run_until_complete, coroutine).result()

    def close(self) -> None:
        """No conversation will follow."""
        if self._loop is not None:
            self._run(close(self._judge))
            self._thread.shutdown()
            self._loop.close()
            self._loop = None

    async def _annotated(self, conversation: Conversation, parts: Sequence[_Part]) -> Annotations:
        prompts = [_prompt(conversation, part, number, len(parts)) for number, part in enumerate(parts, 1)]
        answers = await asyncio.gather(
            *(self._judge.ask(prompt.text, SCHEMA) for prompt in prompts), return_exceptions=True
        )
        failure = next((answer for answer in answers if isinstance(answer, BaseException)), None)
        if failure is not None:
            return self._failed(failure)
        verdicts = [answer for answer in answers if isinstance(answer, Verdict)]
        by_part = [_Findings(conversation, part, verdict.answer) for part, verdict in zip(parts, verdicts, strict=True)]
        dropped = sum(one.dropped for one in by_part)
        status = "partial" if dropped or any(prompt.withheld for prompt in prompts) else GIVEN
        summaries = [text for verdict in verdicts if (text := str(verdict.answer.get("summary") or "").strip())]
        return Annotations(
            origin="predicted",
            annotator=self.name,
            topics=tuple(_merged_topics([topic for one in by_part for topic in one.topics])),
            risks=tuple(_merged_risks([risk for one in by_part for risk in one.risks])),
            actions=tuple(_merged_actions([action for one in by_part for action in one.actions])),
            summary=" ".join(summaries) or None,
            extraction=dict.fromkeys(FAMILIES, status),
            extras={"parts": len(parts), "dropped": dropped, **_cost(verdicts)},
        )

    def _failed(self, failure: BaseException) -> Annotations:
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
            extras={"reason": reason, "detail": detail},
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
        self.dropped = 0
        vocabulary = semantic_vocabulary()
        self.topics = [
            Topic(label=vocabulary.topic(item["label"]), span=(min(where), max(where)), **rest)
            for item, where, rest in self._grounded(answer[TOPICS], "evidence")
        ]
        self.risks = [self._risk(vocabulary, *given) for given in self._grounded(answer[RISKS], "evidence")]
        self.actions = [
            Action(
                description=item["description"].strip(),
                verbatim=rest.pop("evidence"),
                assignee=str(item.get("assignee") or ""),
                assignee_role=_role(vocabulary, item["assignee_role"]),
                due=str(item.get("due") or ""),
                **rest,
            )
            for item, _, rest in self._grounded(answer[ACTIONS], "verbatim")
            if item["description"].strip()
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
        self, items: Sequence[Mapping[str, Any]], quoted: str
    ) -> Iterator[tuple[Mapping[str, Any], list[int], dict[str, Any]]]:
        """Each finding whose words are in the part, the seqs of the utterances that hold them, and what it rests on."""
        for item in items:
            numbers = [at for at, text in self._part.texts.items() if found_quote(item[quoted], text)]
            named = [at for at in item.get("segment_ids") or () if at in numbers]
            if not numbers:
                self.dropped += 1
                continue
            where = [self._seqs[at] for at in (named or numbers[:1])]
            words = found_quote(item[quoted], self._part.texts[(named or numbers)[0]])
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


def _merged_actions(actions: Sequence[Action]) -> Iterator[Action]:
    """Each promise once: the same words, or the same description."""
    seen: set[str] = set()
    for action in actions:
        keys = {action.description.casefold(), f"{action.events}:{action.verbatim.casefold()}"}
        if not keys & seen:
            yield action
        seen |= keys


def _cost(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """What all parts took together; nothing where it is unknown of one of them."""
    sums = {
        name: [getattr(verdict, name) for verdict in verdicts] for name in ("input_tokens", "output_tokens", "cost")
    }
    return {name: sum(values) for name, values in sums.items() if all(value is not None for value in values)}
