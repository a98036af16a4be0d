"""What an answer of a judge about an evaluation item comes to: a score, a share of verdicts, a mean over calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.conversation import USER
from convoscope.conversation.events import Utterance
from convoscope.judging.answers import UNUSABLE
from convoscope.judging.backends import YES_NO
from convoscope.judging.item_questions import GIVEN_BEFORE, ItemQuestion, talk_of
from convoscope.judging.quotes import GAP, LEAST_WORDS, letters, without_label
from convoscope.judging.rubrics import USER_TURNS
from convoscope.metrics.judged_calls import RubricAnswer, without_value
from convoscope.scores.observation import UNMEASURED, Observation, not_applicable, subject_of, unmeasured
from convoscope.text.comparison import normalised_words, sentences, tokens
from convoscope.views.items import Case

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData

SOURCES = ("retrieved_context", "tool_call_results", "ground_truth", GIVEN_BEFORE, "system_prompt")
"""What the claims of an answer can rest on: what the agent was given, and what was expected of it."""
_QUOTED_SOURCES = (*SOURCES, "agent_task")
"""The question is words of the user. Every item has one, so by itself it is no source to hold claims against."""
GENERAL_KNOWLEDGE = "general_knowledge"
SOME_OF_BOTH = "sources and general_knowledge"
VERDICT_EMPTY = "verdict_empty"
VERDICT_PARTIAL = "verdict_partial"
# From the start of a sentence only, and without a way back: a long text costs no square.
_QUESTION = re.compile(r"(?:^|(?<=[.!?。！？؟\n]))[^.!?。！？؟\n]*+[?？؟]")
_GREETING = 10
"""Characters; a sentence that is no longer need not say anything."""
_PARTS_OF_SENTENCE = re.compile(r"[;；؛।]")
# A sentence of an answer that begins so is courteous, and claims nothing unless it has a number.
_COURTESY = re.compile(
    r"\W*(?:thank|apolog|entschuld|desculp|извин|здравствуй|ありがとう|申し訳|お役|かしこまり|谢谢|感谢|抱歉|很高兴|希望|如果您|감사|죄송"
    r"|(?:sorry|happy|glad|please|let me know|feel free|(?:i|we) (?:hope|understand|would be|am)|i['’](?:m|d)|hope|"
    r"welcome|you['’]re welcome|of course|sure|certainly|absolutely|no problem|hello|hi|dear|good|have a|if you|"
    r"here(?:['’]s| is| are)|danke|gern|gerne|es tut|bitte|ich (?:hoffe|helfe|freue)|hallo|guten|falls|wenn sie|viel|"
    r"gracias|lo siento|por favor|hola|espero|no dude|si (?:tiene|necesita)|claro|con gusto|merci|désolé|bonjour|"
    r"n['’]hésitez|j['’]espère|je (?:suis|reste)|avec plaisir|si vous|bien sûr|obrigad[oa]|olá|fico|se precisar|grazie|"
    r"prego|mi dispiace|se ha|bedankt|graag|als u|спасибо|пожалуйста|если)\b)",
    re.IGNORECASE,
)
_MOST_NAMED = 10
NOTHING = "none"
"""The verdict on a sentence that holds nothing of what is to be listed."""
_THANKS = re.compile(
    r"\W*(?:thank|hello|hi\b|good (?:morning|afternoon|evening|bye)|bye|danke|hallo|guten|gracias|hola|buen|merci"
    r"|bonjour|obrigad|olá|grazie|buon|bedankt|спасибо|здравствуй|ありがとう|谢谢|感谢|감사)",
    re.IGNORECASE,
)
_LONGEST_THANKS = 25
"""Characters of a sentence of a user that begins so and wants nothing."""
_CLAUSE = re.compile(r"[,;:，、；：]")
_ROUNDING = 1e-9


ANSWER = ("agent_response",)
TALK = ("conversation_context",)


class ItemAnswer(NamedTuple):
    """An answer about one item, and what it answers."""

    case: Case
    data: StandardData
    asked: ItemQuestion
    answered: RubricAnswer

    @property
    def answer(self) -> Mapping[str, Any]:
        return self.answered.verdict.answer

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """What a judge says of each thing that it lists or was given. A user's rubric need not ask for all of it.

        What has no name is called by its words, or by its quote.
        """
        empty = {"words": "", "explanation": "", "quote": ""}
        return [{**empty, "text": one.get("words") or one.get("quote", ""), **one} for one in self.answer["items"]]

    @property
    def times(self) -> Counter[int]:
        """How often each number is rated."""
        return Counter(one["id"] for one in self.items)

    @property
    def judge(self) -> str:
        return self.answered.rubric.judge(self.answered.verdict.judge)

    @property
    def quotes(self) -> bool:
        """Whether the answer has quotes: one of the yes/no form has none, and its score says so."""
        return self.answered.form != YES_NO

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
    if not answer.answered.rests_on(quote, is_best=given["score"] >= rubric.passes_at):
        yield answer.unfounded(quote)
        return
    more = ("sentiment", "strengths", "weaknesses", "confidence", "probability")
    kept = {name: given[name] for name in ("quote", "reasoning", *more) if name in given}
    if "sentiment" in given:
        # The score counts. A caller who is angry and content at once is one of the two.
        kept["inconsistent"] = int((given["score"] - (rubric.low + rubric.high) / 2) * given["sentiment"] < 0)
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
    """Verdicts whose quote has to be in a source; if there is none, general knowledge backs words of the answer."""
    numbers: Numbers | None = None
    """What is to be rated, by number; without it, the judge lists what it finds."""
    in_turn: bool = False
    """A quote has to be in the turn that is rated."""
    undecided: str = ""
    """The reason where all that is listed is left out: unmeasured, since there was something to be rated."""
    of_claims: bool = False
    """The details say what the verdicts rest on: sources, and which there are, or general knowledge."""
    listed_from: tuple[str, ...] = ()
    """The fields in which a judge looks for what it lists: each thing has words in them."""
    believed: int = 1
    """Of so many sentences of these fields, a judge is believed that there is nothing to list."""
    asks_too: bool = False
    """A question is something to list."""
    unless: Mapping[str, str] = {}
    """Verdicts that need a quote, unless this field of the answer is true. Without either, they are undecided."""

    def __call__(self, answer: ItemAnswer) -> Iterator[Observation]:
        rated = answer.items
        if self.numbers is not None:
            numbers = self.numbers(answer.asked)
            if wrong := [number for number in numbers if answer.times[number] != 1]:
                yield answer.left_out(wrong)
                return
            by_id = {one["id"]: one for one in answer.items}
            rated = [by_id[number] for number in numbers]
        if fault := self._fault(rated):
            yield answer.unusable(fault)
            return
        lost = next((one["quote"] for one in rated if not self._is_quoted(answer, one)), None)
        if lost is None and self.numbers is None:
            lost = next((one["words"] or one["text"] for one in rated if not self._is_listed(answer, one)), None)
        if lost is not None:
            yield answer.unfounded(lost)
            return
        yield self._reduced(answer, rated if self.numbers is not None else list(_by_text(rated).values()))

    def _fault(self, rated: Sequence[Mapping[str, Any]]) -> str:
        """What is wrong with an answer in itself: an unknown verdict, a thing without a name or with two verdicts."""
        verdicts = {*self.worth, *self.left_out, *([NOTHING] if self.numbers is None else ())}
        unknown = next((one["verdict"] for one in rated if one["verdict"] not in verdicts), None)
        if unknown is not None:
            return f"{unknown!r} is no verdict that this metric knows"
        if self.numbers is not None:
            return ""
        by_text = _by_text(rated)
        if "" in by_text:
            return "the judge lists something without words"
        twice = next((one["text"] for one in rated if by_text[_name_of(one)]["verdict"] != one["verdict"]), None)
        return "" if twice is None else f"{twice[:100]!r} has two verdicts"

    def _is_quoted(self, answer: ItemAnswer, judged: Mapping[str, Any]) -> bool:
        """Whether the quote is where it has to be. One that need not be there is not made up either."""
        quote, fields = judged["quote"], self._quoted_fields(answer, judged)
        if not answer.quotes:
            return True
        if fields is None or (judged["verdict"] in self.unless and not quote.strip()):
            return not quote.strip() or answer.asked.has_quote(quote)
        if set(fields) <= set(self.listed_from):  # both are words of one text: either will do
            quote = quote.strip() or judged["words"]
        if not set(fields).isdisjoint(SOURCES):
            return answer.asked.has_words(quote, fields)
        return answer.asked.has_quote(quote, fields, judged["id"] if self.in_turn else None)

    def _quoted_fields(self, answer: ItemAnswer, judged: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The fields in which the quote of a verdict has to be; None where it need not have one."""
        verdict = judged["verdict"]
        if self._is_exempt(judged):
            return None
        if verdict in self.backed:
            return _QUOTED_SOURCES if sources_of(answer.asked) else ANSWER
        return self.quoted.get(verdict)

    def _is_exempt(self, judged: Mapping[str, Any]) -> bool:
        """Whether the judge says why there is no quote: what is generally known, or what the agent never says."""
        return judged.get(self.unless.get(judged["verdict"], "")) is True

    def _is_decided(self, answer: ItemAnswer, judged: Mapping[str, Any]) -> bool:
        """Whether a verdict has the quote that it needs."""
        fields = self._quoted_fields(answer, judged)
        is_of_list = fields is not None and set(fields) <= set(self.listed_from)
        return judged["verdict"] not in self.unless or fields is None or is_of_list or bool(judged["quote"].strip())

    def _is_listed(self, answer: ItemAnswer, judged: Mapping[str, Any]) -> bool:
        """Whether something that a judge lists is in what it was given: its words or its name are.

        Without words of its own, its quote will do, if that is from there.
        """
        quoted = self._quoted_fields(answer, judged)
        is_quoted_there = bool(quoted) and set(quoted or ()) <= set(self.listed_from)
        is_quoted_there |= judged["verdict"] == NOTHING
        words = judged["words"].strip() or (judged["quote"] if is_quoted_there else "")
        names = (words, judged["text"])
        return any(answer.asked.has_words(name, self.listed_from, or_begins=True) for name in names)

    def _reduced(self, answer: ItemAnswer, rated: Sequence[Mapping[str, Any]]) -> Observation:
        listed = [one for one in rated if one["verdict"] != NOTHING]
        decided = [one for one in listed if one["verdict"] in self.worth and self._is_decided(answer, one)]
        open_verdicts = [one for one in listed if one["verdict"] in self.worth and not self._is_decided(answer, one)]
        if open_verdicts and not decided:
            return answer.unfounded("")
        if not listed and self._says_more(answer):
            detail = f"the judge lists nothing of {', '.join(self.listed_from)}"
            return without_value(answer.case.subject, UNMEASURED, VERDICT_EMPTY, detail, answer.judge)
        total = fsum(self.worth[one["verdict"]] for one in decided)
        bounds = self._bounds(answer, total, len(decided), rated, [one["text"] for one in open_verdicts])
        if isinstance(bounds, Observation):
            return bounds
        if not decided:
            if listed and self.undecided:
                return unmeasured(answer.case.subject, self.undecided, judge=answer.judge)
            return not_applicable(answer.case.subject, self.empty, judge=answer.judge)
        worst = min(decided, key=lambda one: self.worth[one["verdict"]])
        details: dict[str, Any] = {
            "verdicts": dict(Counter(one["verdict"] for one in rated)),
            "items": [dict(one) for one in rated],
            "quote": worst["quote"] if self.worth[worst["verdict"]] < 1 else "",
            "reasoning": worst["explanation"] or worst["text"],
            **bounds,
        }
        if self.of_claims:
            details |= self._basis(answer, decided)
        if self.undecided and (unknown := sum(one["verdict"] in self.left_out for one in listed)):
            details["undecided"] = f"{unknown} of {len(listed)} undecided"
        if len(answer.items) > len(rated):
            details["unknown_numbers"] = len(answer.items) - len(rated)
        return answer.scored(total / len(decided), details)

    def _basis(self, answer: ItemAnswer, decided: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What the verdicts rest on: the sources, or what is generally known."""
        sources = sources_of(answer.asked)
        general = sum(not sources or self._is_exempt(one) for one in decided)
        basis = "sources" if not general else GENERAL_KNOWLEDGE if general == len(decided) else SOME_OF_BOTH
        return {"basis": basis, "by_general_knowledge": general, "sources": sources}

    def _bounds(
        self,
        answer: ItemAnswer,
        total: float,
        decided: int,
        rated: Sequence[Mapping[str, Any]],
        open_verdicts: Sequence[str] = (),
    ) -> dict[str, Any] | Observation:
        """What the value would be with all that has no verdict counted as the worst, and as the best.

        There is no value where one passes and the other does not.
        """
        without = [*self._not_listed(answer, rated), *open_verdicts]
        if not without:
            return {}
        whole = decided + len(without)
        low, high = total / whole, (total + len(without)) / whole
        details = {
            "without_verdict": f"{len(without)} of {whole} without a verdict: {low:.2f} to {high:.2f}",
            "not_listed": [text[:200] for text in without[:_MOST_NAMED]],
            "bounds": [low, high],
        }
        mark = answer.answered.rubric.passes_at - _ROUNDING
        if (low >= mark) == (high >= mark):
            return details
        return self._partial(answer, details)

    def _partial(self, answer: ItemAnswer, details: Mapping[str, Any]) -> Observation:
        detail = f"{details['without_verdict']}, such as {details['not_listed'][0][:100]!r}"
        return without_value(answer.case.subject, UNMEASURED, VERDICT_PARTIAL, detail, answer.judge, details)

    def _not_listed(self, answer: ItemAnswer, rated: Sequence[Mapping[str, Any]]) -> list[str]:
        """The statements that nothing listed has words of."""
        return _uncovered(self._stated(answer), rated) if self.numbers is None and rated else []

    def _stated(self, answer: ItemAnswer) -> list[str]:
        """What there is to list: the statements of a text, and its questions where these count, each once."""
        text = self._text(answer)
        questions = [one.strip() for one in _QUESTION.findall(text)] if self.asks_too else []
        stated = [*questions, *_claims(text)]
        if self.listed_from == ANSWER:
            stated = [
                one for one in stated if _states_something(one) and (_has_number(one) or not _COURTESY.match(one))
            ]
        elif USER_TURNS in self.listed_from:
            stated = [one for one in stated if _states_something(one) and not _is_thanks(one)]
        return list({letters(one): one for one in stated}.values())

    def _text(self, answer: ItemAnswer) -> str:
        """The fields in which a judge looks for what it lists."""
        given = (str(getattr(answer.data, field, None) or "") for field in self.listed_from)
        return "\n".join([*given, _user_texts(answer.case) if USER_TURNS in self.listed_from else ""])

    def _says_more(self, answer: ItemAnswer) -> bool:
        """Whether there is more in the fields than a judge may find nothing in."""
        text = self._text(answer)
        return _statements(text) + self.asks_too * len(_QUESTION.findall(text)) > self.believed


def _name_of(listed: Mapping[str, Any]) -> str:
    return normalised_words(listed["text"])


def _by_text(listed: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """What a judge lists, each once: saying it five times does not make it five."""
    return {_name_of(one): one for one in listed}


def _statements(text: str) -> int:
    """Sentences that are neither questions nor as short as a greeting; a number says something however short."""
    return sum(map(_states_something, sentences(_QUESTION.sub("", text))))


def _claims(text: str) -> list[str]:
    """The sentences of a text, and the parts of a sentence that a semicolon parts, that are no questions."""
    parts = (
        part.strip() for sentence in sentences(_QUESTION.sub("", text)) for part in _PARTS_OF_SENTENCE.split(sentence)
    )
    return [part for part in parts if any(map(str.isalpha, part)) and len(letters(part).encode()) >= LEAST_WORDS]


def _is_thanks(sentence: str) -> bool:
    return len(sentence) <= _LONGEST_THANKS and _THANKS.match(sentence) is not None


def _states_something(sentence: str) -> bool:
    return len(sentence) > _GREETING or _has_number(sentence)


def _has_number(sentence: str) -> bool:
    return any(map(str.isdecimal, sentence))


class _Listed(NamedTuple):
    """Something that a judge lists: the letters of its words, around gaps, and the words of its name."""

    parts: tuple[str, ...]
    words: frozenset[str]

    @classmethod
    def of(cls, listed: Mapping[str, Any]) -> _Listed:
        own = listed["words"].strip() or listed["quote"]
        pieces = (piece for name in (own, listed["text"]) for piece in GAP.split(without_label(name)))
        parts = (letters(part) for piece in pieces for part in (piece, *sentences(piece)))
        return cls(
            tuple(part for part in parts if len(part.encode()) >= LEAST_WORDS), frozenset(tokens(listed["text"]))
        )

    def is_from(self, sentence: str) -> bool:
        """Whether it has words of a sentence: a part of it, or all of it."""
        whole = letters(sentence)
        return any(part in whole or whole in part for part in self.parts)

    def is_named_as(self, sentence: str) -> bool:
        """Whether its name has half of the words of a sentence."""
        words = set(tokens(sentence))
        return 2 * len(words & self.words) >= len(words)

    def position(self, text: str) -> int:
        """Where its words begin in the letters of a text; -1 where they are not found."""
        return next((at for part in self.parts if (at := text.find(part)) >= 0), -1)


def _uncovered(texts: Sequence[str], rated: Sequence[Mapping[str, Any]]) -> list[str]:
    """The texts that nothing listed is from. What has words of none of them is from those that its name resembles."""
    covered: set[str] = set()
    for thing in map(_Listed.of, rated):
        covered.update([one for one in texts if thing.is_from(one)] or filter(thing.is_named_as, texts))
    return [one for one in texts if one not in covered]


def _user_texts(case: Case, before: int | None = None) -> str:
    """What the user says in the turns of a case, or in those before one of them."""
    spoken = [event for event in talk_of(case) if isinstance(event, Utterance)][: before and before - 1]
    roles = case.conversation.roles
    return "\n".join(case.conversation.text(one) for one in spoken if roles[one.speaker] == USER)


def sources_of(asked: ItemQuestion) -> list[str]:
    """The fields with words that claims can rest on: an empty list of results and a blank chunk have none."""
    return [field for field in SOURCES if any(any(map(str.isalnum, text)) for text in asked.texts.get(field, ()))]


class _Precision(VerdictShare, frozen=True):
    """Average precision of the chunks of each query, by which of them are useful; the mean over queries.

    Of a query that retrieved nothing it is 0, as of one that retrieved nothing useful. A useful chunk has its quote.
    """

    def _is_quoted(self, answer: ItemAnswer, judged: Mapping[str, Any]) -> bool:
        if not (answer.quotes and self.worth[judged["verdict"]]):
            return super()._is_quoted(answer, judged)
        return answer.asked.of_chunk(judged["id"]).has_words(judged["quote"], ("retrieved_context",))

    def _reduced(self, answer: ItemAnswer, rated: Sequence[Mapping[str, Any]]) -> Observation:
        useful = {one["id"] for one in rated if self.worth[one["verdict"]]}
        precisions = [average_precision([number in useful for number in query]) for query in answer.asked.chunks]
        details = {
            "items": [dict(one) for one in rated],
            "share": len(useful) / sum(map(len, answer.asked.chunks)),
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
    """The last stage that was reached ÷ all stages, in the order in which the prompt has them."""

    def _reduced(self, answer: ItemAnswer, rated: Sequence[Mapping[str, Any]]) -> Observation:
        ordered = self._in_order(answer, [one for one in rated if one["verdict"] in self.worth])
        stages = [one for _, one in ordered]
        if not stages:
            return unmeasured(answer.case.subject, self.empty, judge=answer.judge)
        for before, after in pairwise(stages):
            if self.worth[after["verdict"]] > self.worth[before["verdict"]]:
                return answer.unusable(
                    f"{after['text'][:100]!r} is reached, and {before['text'][:100]!r} before it is not"
                )
        reached = max((number for number, one in enumerate(stages, 1) if self.worth[one["verdict"]]), default=0)
        is_completed = reached == len(stages)
        bounds = self._bounds(answer, reached, len(stages), rated)
        if isinstance(bounds, Observation):
            return bounds
        if is_completed and (later := self._later(answer, ordered[-1][0], rated)):
            without = f"{len(later)} after the last stage that is listed without a verdict"
            return self._partial(answer, {"without_verdict": without, "not_listed": later})
        details = {
            "node": stages[reached - 1]["text"] if reached else "",
            "reached": reached,
            "stages": [one["text"] for one in stages],
            "completed": is_completed,
            **bounds,
            "quote": stages[reached - 1]["quote"] if reached else "",
            "reasoning": "" if is_completed else f"left before {stages[reached]['text']}",
        }
        return answer.scored(reached / len(stages), details)

    def _in_order(self, answer: ItemAnswer, stages: Sequence[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any]]]:
        """With where their words are in the prompt, in that order. What is not there follows what is listed before."""
        text, positions = letters(self._text(answer)), [0]
        for stage in stages:
            at = _Listed.of(stage).position(text)
            positions.append(at if at >= 0 else positions[-1])
        return sorted(zip(positions[1:], stages, strict=True), key=lambda pair: pair[0])

    def _later(self, answer: ItemAnswer, last: int, rated: Sequence[Mapping[str, Any]]) -> list[str]:
        """What the prompt says after the last stage that is listed: clauses that nothing listed has words of."""
        text = letters(self._text(answer))
        clauses = [clause.strip() for one in _claims(self._text(answer)) for clause in _CLAUSE.split(one)]
        clauses = [one for one in clauses if len(letters(one).encode()) >= LEAST_WORDS]
        return [one[:200] for one in _uncovered(clauses, rated) if text.find(letters(one), last + 1) > last]


class _Memory(VerdictShare, frozen=True):
    """What the user said stays said: if something was known before a turn, it is known before each later one."""

    def _fault(self, rated: Sequence[Mapping[str, Any]]) -> str:
        is_known = False
        for judged in rated:
            if is_known and judged["verdict"] in self.left_out:
                return f"nothing is known in turn {judged['id']}, and something was before"
            is_known |= judged["verdict"] in self.worth
        return super()._fault(rated)

    def _reduced(self, answer: ItemAnswer, rated: Sequence[Mapping[str, Any]]) -> Observation:
        forgets_all = rated and all(one["verdict"] in self.left_out for one in rated)
        if forgets_all and _statements(_user_texts(answer.case, rated[-1]["id"])):
            detail = "the judge finds no fact in what the user says"
            return without_value(answer.case.subject, UNMEASURED, VERDICT_EMPTY, detail, answer.judge)
        return super()._reduced(answer, rated)


def each_call(answer: ItemAnswer) -> Iterator[Observation]:
    """The score of each tool call, with its share of what the answer took.

    A call that the answer leaves out or rates twice is unmeasured.
    """
    times = answer.times
    by_id = {one["id"]: one for one in answer.items}
    calls = answer.case.tool_calls
    answered = answer.answered._replace(verdict=answer.answered.verdict.share(len(answer.asked.calls)))
    for number in answer.asked.calls:
        subject = subject_of(calls[number - 1]) if len(calls) == len(answer.asked.calls) else None
        what = subject or answer.case.subject._replace(kind="tool_call", id=f"{answer.case.subject.id}/{number}")
        judged = by_id.get(number)
        if judged is None or times[number] != 1:
            yield answered.scored(what, None, {"given": times[number]})
        elif not answered.rests_on(judged["quote"], is_best=judged["score"] >= answered.rubric.passes_at):
            yield answered.unfounded(what, judged["quote"])
        else:
            kept = {name: judged.get(name) for name in ("quote", "probability")} | {"reasoning": judged["explanation"]}
            details = {name: value for name, value in kept.items() if value is not None}
            yield answered.scored(what, judged["score"], details)


_COMMON = "common_knowledge"
_INVENTED = ("invented_fact", "invented_source", "invented_detail", "invented_relation", "widened_scope")

STATEMENTS = VerdictShare(
    {"serves": 1, "beside": 0},
    "no_statements",
    quoted={"serves": ANSWER, "beside": ANSWER},
    listed_from=ANSWER,
)
TRUE_CLAIMS = VerdictShare(
    {"right": 1, "wrong": 0},
    "no_claims",
    left_out=("unknown",),
    quoted={"unknown": ANSWER},
    backed=("right", "wrong"),
    unless=dict.fromkeys(("right", "wrong"), _COMMON),
    undecided="no_source",
    of_claims=True,
    listed_from=ANSWER,
)
UNKNOWN_CLAIMS = msgspec.structs.replace(
    TRUE_CLAIMS, worth={"unknown": 1, "right": 0, "wrong": 0}, left_out=(), undecided=""
)
BACKED_CLAIMS = VerdictShare(
    {"supported": 1, "contradicted": 0, "unverifiable": 0},
    "no_claims",
    quoted={"unverifiable": ANSWER},
    backed=("supported", "contradicted"),
    of_claims=True,
    listed_from=ANSWER,
)
INVENTED = VerdictShare(
    {"grounded": 1, **dict.fromkeys(_INVENTED, 0)},
    "no_claims",
    quoted=dict.fromkeys(_INVENTED, ANSWER),
    backed=("grounded",),
    unless={"grounded": _COMMON},
    of_claims=True,
    listed_from=ANSWER,
)
SUPPORTED = VerdictShare(
    {"supported": 1, "unsupported": 0},
    "no_claims",
    quoted={"supported": ("retrieved_context",), "unsupported": ANSWER},
    listed_from=ANSWER,
)
USEFUL_CHUNKS = _Precision(
    {"useful": 1, "useless": 0},
    "nothing_retrieved",
    numbers=lambda asked: [number for query in asked.chunks for number in query if number not in asked.blank],
)
RETRIEVED_TRUTH = VerdictShare(
    {"found": 1, "missing": 0},
    "no_facts",
    quoted={"found": ("retrieved_context",)},
    listed_from=("ground_truth",),
    believed=0,
)
INTENTIONS = VerdictShare(
    {"fulfilled": 1, "declined": 0.8, "partly": 0.5, "ignored": 0},
    "no_intentions",
    listed_from=("agent_task", USER_TURNS),
    quoted=dict.fromkeys(("fulfilled", "declined", "partly", "ignored"), ("agent_task", USER_TURNS)),
    believed=0,
    asks_too=True,
)
REMEMBERED = _Memory(
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
    quoted=dict.fromkeys(("followed", "violated"), TALK),
    unless={"followed": "prohibition"},
    listed_from=("system_prompt",),
)
STAGES = _Furthest(
    {"reached": 1, "not_reached": 0},
    "stages_unknown",
    quoted={"reached": TALK},
    listed_from=("system_prompt",),
)
CHECKS = VerdictShare(
    {"met": 1, "missed": 0},
    "no_checks",
    left_out=("cannot_tell",),
    quoted={"met": TALK, "missed": TALK},
    numbers=lambda _: (1, 2, 3, 4),
    undecided="not_judged",
)
