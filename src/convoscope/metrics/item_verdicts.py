"""What an answer of a judge about an evaluation item comes to: a score, a share of verdicts, a mean over calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

import msgspec

from convoscope.judging.answers import UNUSABLE
from convoscope.judging.item_questions import ItemQuestion
from convoscope.metrics.judged_calls import RubricAnswer, without_value
from convoscope.scores.observation import UNMEASURED, Observation, not_applicable, subject_of, unmeasured
from convoscope.views.items import Case

SOURCES = ("retrieved_context", "tool_call_results", "ground_truth", "turns_before", "system_prompt")
"""What the claims of an answer can rest on."""
GENERAL_KNOWLEDGE = "general_knowledge"


class ItemAnswer(NamedTuple):
    """An answer about one item, and what it answers."""

    case: Case
    asked: ItemQuestion
    answered: RubricAnswer

    @property
    def answer(self) -> Mapping[str, Any]:
        return self.answered.verdict.answer

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """What a judge says of each thing that it lists or was given. A user's rubric need not ask for reasons."""
        return [{"text": "", "explanation": "", "quote": "", **one} for one in self.answer["items"]]

    @property
    def times(self) -> Counter[int]:
        """How often each number is rated."""
        return Counter(one["id"] for one in self.items)

    @property
    def judge(self) -> str:
        return self.answered.rubric.judge(self.answered.verdict.judge)

    def scored(self, rating: float, details: Mapping[str, Any]) -> Observation:
        return self.answered.scored(self.case.subject, rating, details)

    def unfounded(self, quote: str) -> Observation:
        return self.answered.unfounded(self.case.subject, quote)

    def unusable(self, detail: str) -> Observation:
        return without_value(self.case.subject, UNMEASURED, UNUSABLE, detail, self.judge, {"answer": dict(self.answer)})

    def left_out(self, numbers: Sequence[int]) -> Observation:
        listed = ", ".join(map(str, numbers[:10]))
        return self.answered.scored(self.case.subject, None, {"left_out": listed})


ItemReading = Callable[[ItemAnswer], Iterator[Observation]]
Numbers = Callable[[ItemQuestion], Sequence[int]]


def one_score(answer: ItemAnswer) -> Iterator[Observation]:
    """The score of the judge. One that does not pass has to quote the item."""
    given, rubric = answer.answer, answer.answered.rubric
    quote = given.get("quote", "")
    passes = given["score"] >= rubric.passes_at
    if not (passes and not quote.strip()) and not answer.asked.has_quote(quote):
        yield answer.unfounded(quote)
        return
    more = ("sentiment", "strengths", "weaknesses", "confidence")
    kept = {name: given[name] for name in ("quote", "reasoning", *more) if name in given}
    yield answer.scored(given["score"], kept)


class VerdictShare(msgspec.Struct, frozen=True):
    """A share of verdicts: what each is worth, which are left out, and which have to quote what."""

    worth: Mapping[str, float]
    empty: str
    """The reason where nothing is counted: not applicable."""
    left_out: tuple[str, ...] = ()
    quoted: Mapping[str, tuple[str, ...]] = {}
    """By verdict: the fields in which its quote has to be found; anywhere in the item where none is named."""
    backed: tuple[str, ...] = ()
    """Verdicts whose quote has to be in a source, unless there is none: then general knowledge backs them."""
    numbers: Numbers | None = None
    """What is to be rated, by number; without it, the judge lists what it finds."""
    in_turn: bool = False
    """A quote has to be in the turn that is rated."""
    undecided: str = ""
    """The reason where all that is listed is left out: unmeasured, since there was something to be rated."""
    of_claims: bool = False
    """The details say what the verdicts rest on: sources, or general knowledge."""

    def __call__(self, answer: ItemAnswer) -> Iterator[Observation]:
        rated = answer.items
        if self.numbers is not None:
            numbers = self.numbers(answer.asked)
            if wrong := [number for number in numbers if answer.times[number] != 1]:
                yield answer.left_out(wrong)
                return
            by_id = {one["id"]: one for one in answer.items}
            rated = [by_id[number] for number in numbers]
        unknown = next((one["verdict"] for one in rated if one["verdict"] not in {*self.worth, *self.left_out}), None)
        if unknown is not None:
            yield answer.unusable(f"{unknown!r} is no verdict that this metric knows")
            return
        lost = next((one["quote"] for one in rated if not self._is_quoted(answer, one)), None)
        if lost is not None:
            yield answer.unfounded(lost)
            return
        yield self._reduced(answer, rated)

    def _is_quoted(self, answer: ItemAnswer, judged: Mapping[str, Any]) -> bool:
        verdict, quote = judged["verdict"], judged["quote"]
        if verdict in self.backed and has_sources(answer.asked):
            return answer.asked.has_quote(quote, SOURCES)
        if verdict in self.quoted:
            turn = judged["id"] if self.in_turn else None
            return answer.asked.has_quote(quote, self.quoted[verdict], turn)
        return True

    def _reduced(self, answer: ItemAnswer, rated: Sequence[Mapping[str, Any]]) -> Observation:
        counted = [one for one in rated if one["verdict"] in self.worth]
        if not counted:
            if rated and self.undecided:
                return unmeasured(answer.case.subject, self.undecided, judge=answer.judge)
            return not_applicable(answer.case.subject, self.empty, judge=answer.judge)
        worst = min(counted, key=lambda one: self.worth[one["verdict"]])
        details: dict[str, Any] = {
            "verdicts": dict(Counter(one["verdict"] for one in rated)),
            "items": [dict(one) for one in rated],
            "quote": worst["quote"] if self.worth[worst["verdict"]] < 1 else "",
            "reasoning": worst.get("text") or worst.get("explanation", ""),
        }
        if self.of_claims:
            details["basis"] = "sources" if has_sources(answer.asked) else GENERAL_KNOWLEDGE
        if len(answer.items) > len(rated):
            details["unknown_numbers"] = len(answer.items) - len(rated)
        return answer.scored(fsum(self.worth[one["verdict"]] for one in counted) / len(counted), details)


def has_sources(asked: ItemQuestion) -> bool:
    """Whether the judge is shown anything that claims can rest on."""
    return any(asked.texts.get(field) for field in SOURCES)


class _Precision(VerdictShare, frozen=True):
    """Average precision of the chunks of each query, by which of them are useful; the mean over queries with chunks."""

    def _reduced(self, answer: ItemAnswer, rated: Sequence[Mapping[str, Any]]) -> Observation:
        useful = {one["id"] for one in rated if self.worth[one["verdict"]]}
        queries = [[number in useful for number in numbers] for numbers in answer.asked.chunks if numbers]
        precisions = [average_precision(query) for query in queries]
        details = {
            "items": [dict(one) for one in rated],
            "share": len(useful) / len(rated),
            "by_query": precisions,
        }
        return answer.scored(fsum(precisions) / len(precisions), details)


def average_precision(useful: Sequence[bool]) -> float:
    """Σ precision down to each useful rank ÷ the useful ones; 0 where none is useful.

    >>> average_precision([False, True])
    0.5
    """
    ranks = [rank for rank, is_useful in enumerate(useful, 1) if is_useful]
    return fsum(count / rank for count, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


class _Furthest(VerdictShare, frozen=True):
    """The last stage that was reached ÷ all stages."""

    def _reduced(self, answer: ItemAnswer, rated: Sequence[Mapping[str, Any]]) -> Observation:
        if not rated:
            return unmeasured(answer.case.subject, self.empty, judge=answer.judge)
        reached = max((number for number, one in enumerate(rated, 1) if self.worth[one["verdict"]]), default=0)
        details = {
            "node": rated[reached - 1]["text"] if reached else "",
            "reached": reached,
            "stages": [one["text"] for one in rated],
            "completed": reached == len(rated),
            "quote": rated[reached - 1]["quote"] if reached else "",
            "reasoning": f"left before {rated[reached]['text']}" if reached < len(rated) else "",
        }
        return answer.scored(reached / len(rated), details)


def each_call(answer: ItemAnswer) -> Iterator[Observation]:
    """The score of each tool call. A call that the answer leaves out or rates twice is unmeasured."""
    times = answer.times
    by_id = {one["id"]: one for one in answer.items}
    calls = answer.case.tool_calls
    for number in answer.asked.calls:
        subject = subject_of(calls[number - 1]) if len(calls) == len(answer.asked.calls) else None
        what = subject or answer.case.subject._replace(kind="tool_call", id=f"{answer.case.subject.id}/{number}")
        judged = by_id.get(number)
        if judged is None or times[number] != 1:
            yield answer.answered.scored(what, None, {"given": times[number]})
        else:
            yield answer.answered.scored(what, judged["score"], {"reasoning": judged["explanation"]})


ANSWER = ("agent_response",)
TALK = ("conversation_context",)
_INVENTED = ("invented_fact", "invented_source", "invented_detail", "invented_relation", "widened_scope")

STATEMENTS = VerdictShare({"serves": 1, "beside": 0}, "no_statements", quoted={"serves": ANSWER, "beside": ANSWER})
TRUE_CLAIMS = VerdictShare(
    {"right": 1, "wrong": 0},
    "no_claims",
    left_out=("unknown",),
    quoted=dict.fromkeys(("right", "wrong", "unknown"), ANSWER),
    undecided="no_source",
    of_claims=True,
)
BACKED_CLAIMS = VerdictShare(
    {"supported": 1, "contradicted": 0, "unverifiable": 0},
    "no_claims",
    quoted={"unverifiable": ANSWER},
    backed=("supported", "contradicted"),
    of_claims=True,
)
INVENTED = VerdictShare(
    {"grounded": 1, **dict.fromkeys(_INVENTED, 0)},
    "no_claims",
    quoted=dict.fromkeys(("grounded", *_INVENTED), ANSWER),
    of_claims=True,
)
SUPPORTED = VerdictShare(
    {"supported": 1, "unsupported": 0},
    "no_claims",
    quoted={"supported": ("retrieved_context",), "unsupported": ANSWER},
)
USEFUL_CHUNKS = _Precision(
    {"useful": 1, "useless": 0},
    "nothing_retrieved",
    numbers=lambda asked: [number for numbers in asked.chunks for number in numbers],
)
RETRIEVED_TRUTH = VerdictShare({"found": 1, "missing": 0}, "no_facts", quoted={"found": ("retrieved_context",)})
INTENTIONS = VerdictShare(
    {"fulfilled": 1, "declined": 0.8, "partly": 0.5, "ignored": 0},
    "no_intentions",
    quoted=dict.fromkeys(("fulfilled", "declined", "partly", "ignored"), (*TALK, "agent_task")),
)
REMEMBERED = VerdictShare(
    {"keeps": 1, "asks_again": 0, "contradicts": 0},
    "no_facts",
    left_out=("nothing_known",),
    quoted=dict.fromkeys(("asks_again", "contradicts"), ()),
    numbers=lambda asked: asked.replies,
    in_turn=True,
)
IN_ROLE = VerdictShare(
    {"in_role": 1, "out_of_role": 0},
    "no_assistant_speech",
    quoted={"out_of_role": ()},
    numbers=lambda asked: asked.replies,
    in_turn=True,
)
FITTING = VerdictShare(
    {"fits": 1, "contradicts": 0, "repeats": 0, "ignores": 0},
    "no_assistant_speech",
    quoted=dict.fromkeys(("contradicts", "repeats", "ignores"), ()),
    numbers=lambda asked: [number for number in asked.replies if number > 1],
    in_turn=True,
)
FOLLOWED = VerdictShare(
    {"followed": 1, "violated": 0},
    "nothing_to_follow",
    left_out=("not_applicable",),
    quoted={"violated": TALK},
)
STAGES = _Furthest({"reached": 1, "not_reached": 0}, "stages_unknown", quoted={"reached": TALK})
CHECKS = VerdictShare(
    {"met": 1, "missed": 0},
    "no_checks",
    left_out=("cannot_tell",),
    quoted={"met": TALK, "missed": TALK},
    numbers=lambda _: (1, 2, 3, 4),
    undecided="not_judged",
)
