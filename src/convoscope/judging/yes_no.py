"""The yes/no form: a rubric as questions of one word, and how likely the model was to say yes.

Small models rate badly and answer better. Each question is sent by itself, after the same conversation, so that a
server can keep what it read. An answer of one word has no quote: what comes of it says `evidence: none`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from convoscope.judging.answers import UNUSABLE, UnusableAnswer
from convoscope.judging.backends import SCORES
from convoscope.judging.questions import FENCE, Question
from convoscope.judging.rubrics import Rubric
from convoscope.resources.judge import Judge, Verdict

NO_FORM = "no_yes_no_form"
"""The reason of a question that cannot be asked so."""
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
SCHEMA: Mapping[str, Any] = {"type": "object", "required": ["yes", "no"], "properties": {"yes": _SHARE, "no": _SHARE}}
"""How likely each of both words was, of all that the model could have said."""
LEAST_ANSWERED = 0.1
"""A model that says yes or no less often than this has not answered: what is left is a ratio of noise."""
_LIKELY = 0.5
"""Above this yes is the likelier answer; as likely as no is no yes."""
_BEFORE = "Read this, then answer one question about it.\n\n"
_AFTER = "Answer with one word: yes or no.\n"


class _Asked(NamedTuple):
    """One question of one word."""

    turn: int | None
    name: str
    """The dimension that a yes flags; empty for how bad it is."""
    text: str
    prompt: str


def form_of(judge: Judge) -> str:
    """How a judge wants to be asked. One of the user's own need not say."""
    return str(getattr(judge, "form", SCORES))


def probability(answer: Mapping[str, Any]) -> float:
    """P(yes) ÷ (P(yes) + P(no)). Raises `UnusableAnswer` where the model hardly says either.

    >>> probability({"yes": 0.6, "no": 0.2})
    0.75
    """
    both = answer["yes"] + answer["no"]
    if not math.isfinite(both) or both < LEAST_ANSWERED:
        first = next(iter(answer.get("candidates", {})), "")
        raise UnusableAnswer(
            UNUSABLE, f"the model says yes or no with {both:.0%}" + (f", first {first!r}" * bool(first))
        )
    return float(answer["yes"] / both)


async def yes_no_verdict(judge: Judge, rubric: Rubric, asked: Question, without: Collection[str] = ()) -> Verdict:
    """All questions of a rubric about one conversation, as an answer of the rubric's own shape.

    `without` names dimensions that are not asked about. Raises `UnusableAnswer`, and what the judge raises.
    """
    questions = _questions(rubric, asked, without)
    # Together, and in this order: what they have in common is read once by a server that keeps what it read.
    import asyncio  # only where a judge is asked

    given = await asyncio.gather(*(judge.ask(one.prompt, SCHEMA) for one in questions), return_exceptions=True)
    chances: dict[tuple[int | None, str], float | None] = {}
    verdicts: list[Verdict] = []
    for question, verdict in zip(questions, given, strict=True):
        try:
            if isinstance(verdict, BaseException):
                raise verdict
            verdicts.append(verdict)
            chances[question.turn, question.name] = probability(verdict.answer)
        except UnusableAnswer as unusable:
            if question.turn is None:
                unusable.raw = unusable.raw or str(dict(verdict.answer) if isinstance(verdict, Verdict) else "")
                raise
            chances[question.turn, question.name] = None
    texts = {(one.turn, one.name): one.text for one in questions}
    return _whole(verdicts, judge, _answer(rubric, chances, texts))


def _questions(rubric: Rubric, asked: Question, without: Collection[str]) -> list[_Asked]:
    if rubric.yes_no is None:
        raise UnusableAnswer(NO_FORM, f"the rubric {rubric.name} has no yes/no questions")
    flags = {name: text for name, text in rubric.yes_no.flags.items() if name not in without}
    texts = {**flags, "": rubric.yes_no.severe} if rubric.yes_no.severe else flags
    turns = [turn for turn in asked.rated if turn not in asked.withheld] if rubric.is_by_number else [None]
    return [_asked(asked, turn, name, text) for turn in turns for name, text in texts.items()]


def _asked(asked: Question, turn: int | None, name: str, text: str) -> _Asked:
    words = text.replace("{turn}", str(turn)).replace("{number}", str(turn))
    repeated = ""
    if turn is not None and turn in asked.agent_texts:
        repeated = f"Turn {turn} once more. {FENCE}\n<data>\n{asked.agent_texts[turn]}\n</data>\n"
    return _Asked(turn, name, words, f"{_BEFORE}{asked.data}\n## The question\n{repeated}{words}\n{_AFTER}")


def _answer(
    rubric: Rubric,
    chances: Mapping[tuple[int | None, str], float | None],
    texts: Mapping[tuple[int | None, str], str],
) -> dict[str, Any]:
    """The answer that a judge would have written in the rubric's own shape. A turn without an answer is left out."""
    if rubric.shape:
        return _item_answer(rubric, chances, texts)

    def rated(turn: int | None) -> dict[str, dict[str, Any]]:
        of_turn = {name: chance for (of, name), chance in chances.items() if of == turn}
        known = {name: chance for name, chance in of_turn.items() if chance is not None}
        if len(known) < len(of_turn):
            return {}
        is_severe = known.pop("", 1.0) > _LIKELY
        worst = max(known, key=lambda name: known[name])
        return {
            name: _rated(rubric, chance, texts[turn, name], is_severe=is_severe and name == worst)
            for name, chance in known.items()
        }

    if rubric.is_by_turn:
        turns = {turn: rated(turn) for turn, _ in chances if turn is not None}
        return {"turns": [{"turn_id": turn, **of_turn["turn"]} for turn, of_turn in turns.items() if of_turn]}
    [shape] = rubric.schema["required"]
    return {shape: rated(None)}


def _item_answer(
    rubric: Rubric,
    chances: Mapping[tuple[int | None, str], float | None],
    texts: Mapping[tuple[int | None, str], str],
) -> dict[str, Any]:
    """The answer about an evaluation item: one score, or what is said of each number that has an answer."""
    numbers = dict.fromkeys(number for number, _ in chances)
    items = [_of_number(rubric, number, chances, texts) for number in numbers]
    return {"items": [one for one in items if one is not None]} if rubric.is_by_number else items[0] or {}


def _of_number(
    rubric: Rubric,
    number: int | None,
    chances: Mapping[tuple[int | None, str], float | None],
    texts: Mapping[tuple[int | None, str], str],
) -> dict[str, Any] | None:
    """The likeliest yes decides; without a yes the verdict is the first of the rubric, or the score the best."""
    of_number = {name: chance for (of, name), chance in chances.items() if of == number}
    known = {name: chance for name, chance in of_number.items() if chance is not None}
    if len(known) < len(of_number):
        return None
    is_severe = known.pop("", 0.0) > _LIKELY
    worst = max(known, key=lambda name: known[name])
    rated = _rated(rubric, known[worst], texts[number, worst], is_severe=is_severe)
    answer = {"explanation": rated["explanation"], "quote": "", "probability": rated["probability"]}
    if rubric.shape == "numbered":
        first = rubric.schema["properties"]["items"]["items"]["properties"]["verdict"]["enum"][0]
        return {"id": number, "verdict": worst if rated["flagged"] else first, **answer}
    return {"id": number, "score": rated["rating"], "reasoning": rated["explanation"], **answer}


def _rated(rubric: Rubric, chance: float, text: str, *, is_severe: bool) -> dict[str, Any]:
    """One dimension: without a yes the best rating; with one the middle, or the lowest where it is severe."""
    flagged = chance > _LIKELY
    worse = rubric.low if is_severe else (rubric.low + rubric.high) // 2
    explanation = f"{chance:.0%} yes: {text}"
    return {
        "explanation": explanation,
        "analysis": explanation,
        "quote": "",
        "flagged": flagged,
        "detected": flagged,
        "rating": worse if flagged else rubric.high,
        "probability": round(chance, 6),
    }


def _whole(verdicts: list[Verdict], judge: Judge, answer: Mapping[str, Any]) -> Verdict:
    """What all questions took together; unknown where one of them is."""

    def total(name: str) -> Any:
        values = [getattr(verdict, name) for verdict in verdicts]
        return None if not values or any(value is None for value in values) else sum(values)

    return Verdict(
        answer,
        verdicts[0].judge if verdicts else judge.identity,
        total("input_tokens"),
        total("output_tokens"),
        total("cost"),
        total("seconds"),
        is_cached=bool(verdicts) and all(verdict.is_cached for verdict in verdicts),
    )
