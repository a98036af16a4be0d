"""Metrics of what was retrieved: by the words of the truth, and by the ranks of what is known to be relevant."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from convoscope.conversation import Conversation, Json
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import RATIO, Metric, item_metric
from convoscope.metrics.item_fields import each_case, needs_of
from convoscope.scores.observation import Observation, measured, not_applicable, unmeasured
from convoscope.text.comparison import tokens
from convoscope.views.items import Case, Subject

LEXICAL = "lexical"
RELEVANT_FROM = 0.5
"""The share of the truth's content words that makes a chunk relevant."""


_lexical_metric = partial(item_metric, variant=LEXICAL, version=1, unit=RATIO, sensitive_to=())
_ranking_metric = partial(item_metric, unit=RATIO, needs=needs_of("retrieval_ranking"), sensitive_to=())


@_lexical_metric("retrieval.contextual_precision", needs=needs_of("contextual_precision@lexical"))
def contextual_precision(conversation: Conversation) -> Iterator[Observation]:
    """Are the chunks that hold the truth's words ranked above those that do not?

    A chunk is relevant where it holds at least half of the distinct content words of the ground truth.
    Per query the average precision of its ranked chunks: the mean, over the relevant ones, of the share
    of relevant chunks down to that rank; 0 where none is relevant. The value is the mean of the queries
    that gave chunks. Words are compared, not what they mean.

    >>> found = {"type": "retrieval", "query": "capital", "chunks": ["Rome is old.", "Paris is the capital."]}
    >>> chat = example("user: Capital?", found, "assistant: Paris.", expected={"ground_truth": "Paris is the capital"})
    >>> value(contextual_precision, chat)  # the second of two is relevant
    0.5
    """

    def observe(case: Case, wanted: Sequence[str]) -> Observation:
        searches = [search for search in _searches(case) if search.chunks]
        if not searches:
            return not_applicable(case.subject, "nothing_retrieved")
        least = RELEVANT_FROM * len(wanted)  # the words that are wanted are distinct
        precisions, queries = [], []
        for query, chunks in searches:
            ranks = [rank for rank, words in enumerate(chunks, 1) if len(words.intersection(wanted)) >= least]
            precisions.append(precision_over(ranks, len(ranks)) if ranks else 0.0)
            queries.append({"query": query, "chunks": len(chunks), "relevant": ranks[:_LISTED]})
        return measured(case.subject, math.fsum(precisions) / len(searches), details={"queries": queries})

    return _by_words(conversation, "contextual_precision@lexical", observe)


@_lexical_metric("retrieval.contextual_recall", needs=needs_of("contextual_recall@lexical"))
def contextual_recall(conversation: Conversation) -> Iterator[Observation]:
    """What share of the truth's words was retrieved?

    Distinct content words of the ground truth that are in any retrieved chunk ÷ all of them. Nothing
    retrieved is 0: the words were to be found, and were not. Words are compared, not what they mean.

    >>> found = {"type": "retrieval", "query": "capital", "chunks": ["Rome is old.", "Paris is the capital."]}
    >>> chat = example("user: Capital?", found, "assistant: Paris.", expected={"ground_truth": "Paris is the capital"})
    >>> value(contextual_recall, chat)
    1.0
    """

    def observe(case: Case, wanted: Sequence[str]) -> Observation:
        retrieved = set().union(*(words for _, chunks in _searches(case) for words in chunks))
        absent = [word for word in wanted if word not in retrieved]
        shared = len(wanted) - len(absent)
        details = {"found": shared, "of": len(wanted), "missing": absent[:_LISTED]}
        return measured(case.subject, shared / len(wanted), details=details)

    return _by_words(conversation, "contextual_recall@lexical", observe)


@_ranking_metric("retrieval.mrr", version=1, importance=4)
def mrr(conversation: Conversation) -> Iterator[Observation]:
    """How high is the first relevant document ranked?

    1 ÷ the rank of the first document that is relevant, which is one with a relevance above 0; 0 where
    there are relevant documents and none was ranked. Over items, the mean: the mean reciprocal rank.

    >>> ranked = {"retrieved_ids": ["a", "b", "c"], "relevant_ids": ["b"]}
    >>> chat = example("user: Where?", "assistant: Here.", items=[{"id": "1", "extras": {"context": ranked}}])
    >>> value(mrr, chat)  # the second rank
    0.5
    """
    return _ranked(conversation, lambda ranking: ranking.reciprocal_rank)


@_ranking_metric("retrieval.average_precision", version=1, importance=4)
def average_precision(conversation: Conversation) -> Iterator[Observation]:
    """Are the relevant documents ranked above the others?

    The sum, over the relevant documents that were ranked, of the share of relevant ones down to that
    rank, ÷ all relevant documents. Relevant is a relevance above 0. Over items, the mean: MAP.

    >>> ranked = {"retrieved_ids": ["a", "b", "c"], "relevant_ids": ["b"]}
    >>> chat = example("user: Where?", "assistant: Here.", items=[{"id": "1", "extras": {"context": ranked}}])
    >>> value(average_precision, chat)  # one of two documents, at the second rank
    0.5
    """
    return _ranked(conversation, lambda ranking: ranking.average_precision)


@_ranking_metric("retrieval.ndcg", version=1, importance=4)
def ndcg(conversation: Conversation) -> Iterator[Observation]:
    """How near is the order of the documents to the best one, the relevant and the very relevant first?

    DCG = the sum of relevance ÷ log2(rank + 1) over the ranked documents, ÷ the DCG of the best order
    of all relevant documents in a list of the same depth. Relevance may be graded.

    >>> ranked = {"retrieved_ids": ["a", "b", "c"], "relevant_ids": ["b"]}
    >>> chat = example("user: Where?", "assistant: Here.", items=[{"id": "1", "extras": {"context": ranked}}])
    >>> round(value(ndcg, chat), 3)  # 1 ÷ log2(3), where 1 ÷ log2(2) is best
    0.631
    """
    return _ranked(conversation, lambda ranking: ranking.ndcg)


def _recall(depth: int, question: str, ranks: str) -> Metric:
    def recall(conversation: Conversation) -> Iterator[Observation]:
        return _ranked(conversation, lambda ranking: ranking.recall(depth), all_within=depth)

    recall.__doc__ = f"""{question}

    Relevant documents at {ranks} ÷ all relevant documents. Relevant is a relevance above 0. Not applicable
    to a list of no more documents of which nothing but relevance scores is known: it cannot miss any.

    >>> ranked = {{"retrieved_ids": ["a", "b", "c"], "relevant_ids": ["b"]}}  # the second
    >>> chat = example("user: Where?", "assistant: Here.", items=[{{"id": "1", "extras": {{"context": ranked}}}}])
    >>> value(recall_at_{depth}, chat)
    {float(depth > 1)}
    """
    return _ranking_metric("retrieval.recall", version=2, variant=f"{depth}")(recall)


recall_at_1 = _recall(1, "What share of the relevant documents is ranked first?", "rank 1")
recall_at_3, recall_at_5, recall_at_10 = (
    _recall(depth, f"What share of the relevant documents is among the first {depth}?", f"ranks 1 to {depth}")
    for depth in (3, 5, 10)
)


# The words of the truth in the chunks

_SAY_LITTLE = (
    "a about above after again all also am an and any are as at be because been before being below between both "
    "but by can could did do does doing down during each few for from further had has have having he her here "
    "hers him his how i if in into is it its just ll me more most my of off on once only or other our out over "
    "own re s same she should so some such t than that the their them then there these they this those through to "
    "too under until up ve very was we were what when where which while who whom why will with would you your"
)
STOP_WORDS = frozenset(_SAY_LITTLE.split())
"""Words, and what an apostrophe leaves of them, that say nothing of what a text is about."""

_LISTED = 50
_CONTEXT = "retrieved_context"


class _Search(NamedTuple):
    query: str | None
    chunks: Sequence[set[str]]
    """The words of each chunk, best first."""


def content_words(text: str) -> list[str]:
    """The distinct words of a text in their order, without those that say nothing; where it has no others, these."""
    words = list(dict.fromkeys(tokens(text)))
    return [word for word in words if word not in STOP_WORDS] or words


def _by_words(
    conversation: Conversation, scorer: str, observe: Callable[[Case, Sequence[str]], Observation]
) -> Iterator[Observation]:
    """One observation for each case with words to be found."""

    def observe_case(case: Case) -> Observation:
        if case.extras.get(_CONTEXT, ()) is None:
            # Queries are known, their results are not: that is something else than nothing.
            return unmeasured(case.subject, f"no_{_CONTEXT}", _CONTEXT)
        wanted = content_words(case.expected.ground_truth or "")
        return observe(case, wanted) if wanted else not_applicable(case.subject, "empty_ground_truth")

    return each_case(conversation, scorer, observe_case)


@cached_on_argument
def _searches(case: Case) -> list[_Search]:
    """Each query, and the words that it found; two metrics ask."""
    return [_Search(one.query, [set(tokens(chunk)) for chunk in one.chunks]) for one in case.retrievals]


# Ranks of documents whose relevance is known


class RetrievedRanking(NamedTuple):
    """A ranked list whose relevant documents are known: rank and relevance of those that it holds, best rank first."""

    relevant: Sequence[tuple[int, float]]
    total: int
    """All relevant documents, ranked or not; at least one."""
    depth: int
    """The last rank."""
    unranked: Sequence[float] | None
    """The relevance of those that were not ranked; None where their number is known and their grades are not."""
    is_total_known: bool = True
    """Whether something says how many are relevant, besides the relevance of those that were ranked."""

    @property
    def ranks(self) -> list[int]:
        return [rank for rank, _ in self.relevant]

    @property
    def reciprocal_rank(self) -> float:
        return 1 / self.relevant[0][0] if self.relevant else 0.0

    @property
    def average_precision(self) -> float:
        return precision_over(self.ranks, self.total)

    def recall(self, depth: int) -> float:
        return sum(rank <= depth for rank in self.ranks) / self.total

    @property
    def ndcg(self) -> float | None:
        """None where the best order is not known, for want of grades."""
        if not self.relevant:
            return 0.0
        if self.unranked is None:
            return None
        gains = sorted([*(gain for _, gain in self.relevant), *self.unranked], reverse=True)[: self.depth]
        # A gain counts in relation to the best one, so that the largest numbers do not run over.
        best = gains[0]
        ideal = math.fsum(gain / best / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
        real = math.fsum(gain / best / math.log2(rank + 1) for rank, gain in self.relevant)
        return min(1.0, real / ideal)


def precision_over(ranks: Sequence[int], total: int) -> float:
    """Σ over the ranks of relevant documents (documents among them so far ÷ rank), ÷ all relevant documents."""
    return math.fsum(count / rank for count, rank in enumerate(ranks, 1)) / total


class _NoRanking(Exception):
    """Why there is no ranking; by default its fields contradict themselves, or are no ranking."""

    def __init__(
        self, detail: str, code: str = "bad_ranking", explain: Callable[[Subject, str, str], Observation] = unmeasured
    ) -> None:
        super().__init__(detail)
        self.detail, self.code, self.explain = detail, code, explain


def _ranked(
    conversation: Conversation, score: Callable[[RetrievedRanking], float | None], all_within: int = 0
) -> Iterator[Observation]:
    """One score for each ranking; `all_within` is the depth up to which a list without a total cannot miss any."""

    def observe(case: Case) -> Observation:
        context = case.extras["context"]
        try:
            ranking = _read(context if isinstance(context, dict) else {})
        except _NoRanking as error:
            return error.explain(case.subject, error.code, error.detail)
        if ranking.depth <= all_within and not ranking.is_total_known:
            detail = f"the list ends at {ranking.depth}; relevant_total or relevant_ids would say what it misses"
            return not_applicable(case.subject, "nothing_to_miss", detail)
        value = score(ranking)
        if value is None:
            return unmeasured(case.subject, "no_grades", "the grades of relevant documents that were not ranked")
        details = {"relevant_ranks": ranking.ranks[:_LISTED], "relevant": ranking.total, "depth": ranking.depth}
        return measured(case.subject, value, details=details)

    return each_case(conversation, "retrieval_ranking", observe)


def _read(fields: Mapping[str, Json]) -> RetrievedRanking:
    """The ranking that an item's `context` gives, with all relevant documents, those that were not ranked too."""
    rankings, retrieved = _list(fields, "rankings"), _list(fields, "retrieved_ids")
    if rankings is None and retrieved is None:
        raise _NoRanking("context.rankings", "no_rankings")
    labels = _labels(fields, retrieved)
    if labels is None and (rankings or retrieved):
        raise _NoRanking("context.relevance_scores", "no_relevance")
    gains, elsewhere = labels if labels is not None else _Labels([], ())
    ranks = list(range(1, len(gains) + 1))
    if rankings is not None:
        ranks = list(dict.fromkeys(_whole(one, 1, "a rank") for one in rankings))
        if len(ranks) < len(rankings):
            raise _NoRanking(f"documents: {len(rankings)}, different ranks: {len(ranks)}")
    if labels is not None and len(ranks) != len(gains):
        raise _NoRanking(f"ranks: {len(ranks)}, documents: {len(gains)}")
    relevant = sorted((rank, gain) for rank, gain in zip(ranks, gains, strict=True) if gain > 0)
    depth, labelled, given = max(ranks, default=0), len(relevant) + len(elsewhere), fields.get("relevant_total")
    total = labelled if given is None else _whole(given, 0, "relevant_total")
    if total < labelled:
        raise _NoRanking(f"relevant_total is {total}, but {labelled} documents are relevant")
    if not total:
        raise _NoRanking("", "nothing_relevant" if depth else "nothing_retrieved", not_applicable)
    unranked: Sequence[float] | None = elsewhere
    if total > labelled:
        # Of further ones only their number is known: they are like the others where these are all alike.
        grades = {*(gain for _, gain in relevant), *elsewhere}
        unranked = [*elsewhere, *[*grades] * min(total - labelled, depth)] if len(grades) == 1 else None
    is_total_known = given is not None or fields.get("relevance_scores") is None
    return RetrievedRanking(relevant, total, depth, unranked, is_total_known)


class _Labels(NamedTuple):
    """The relevance of each document of the list, in its order, and of relevant ones that are not in it."""

    ranked: Sequence[float]
    elsewhere: Sequence[float]


def _labels(fields: Mapping[str, Json], retrieved: Sequence[Json] | None) -> _Labels | None:
    scores = _list(fields, "relevance_scores")
    if scores is not None:
        return _Labels([_gain(one) for one in scores], ())
    wanted = fields.get("relevant_ids")
    if retrieved is None or wanted is None:
        return None
    if isinstance(wanted, dict):
        grades = {str(id): _gain(one) for id, one in wanted.items()}
    elif isinstance(wanted, list | tuple):
        grades = dict.fromkeys(map(_id, wanted), 1.0)
    else:
        raise _NoRanking(f"relevant_ids is a list, not {_short(wanted)}")
    # A document that comes again is no second find.
    gains = [grades.pop(_id(one), 0.0) for one in retrieved]
    return _Labels(gains, [grade for grade in grades.values() if grade > 0])


def _list(fields: Mapping[str, Json], name: str) -> Sequence[Json] | None:
    value = fields.get(name)
    if value is None or isinstance(value, list | tuple):
        return value
    raise _NoRanking(f"{name} is a list, not {_short(value)}")


_LONGEST_LIST = 1_000_000
_NUMERAL = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _whole(value: Json, least: int, what: str) -> int:
    number = _number(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number // 1:
        raise _NoRanking(f"{what} is a whole number, not {_short(value)}")
    if not least <= number <= _LONGEST_LIST:
        raise _NoRanking(f"{what} lies between {least} and {_LONGEST_LIST}, not at {_short(value)}")
    return int(number)


def _gain(value: Json) -> float:
    number = _number(value)
    if not isinstance(number, bool | int | float) or not 0 <= number < math.inf:
        raise _NoRanking(f"a relevance is a number from 0 on, not {_short(value)}")
    return float(min(number, _LARGEST))


def _number(value: Json) -> Json:
    """Text that is a number is that number, as in all fields of an item; anything else stays what it is."""
    if isinstance(value, str) and _NUMERAL.fullmatch(text := value.strip()):
        return float(text)
    return value


def _id(value: Json) -> str:
    """Ids are texts; one that was written as a number is the same."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise _NoRanking(f"an id is a text, not {_short(value)}")


def _short(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of thousands of digits
        return f"that {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:59]}…"


_LARGEST = 1e300

__all__ = [
    "RetrievedRanking",
    "average_precision",
    "content_words",
    "contextual_precision",
    "contextual_recall",
    "mrr",
    "ndcg",
    "recall_at_1",
    "recall_at_3",
    "recall_at_5",
    "recall_at_10",
]
