"""Metrics of an answer against the truth."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import HIGHER, ITEM, RATIO, SHARE, metric
from convoscope.metrics.needs import GROUND_TRUTH
from convoscope.metrics.reduction import MEAN, MEAN_OF_SUBJECTS, Reduce
from convoscope.metrics.score import WHOLE, Observation, Subject, measured, not_applicable, unmeasured
from convoscope.metrics.words import tokens


@metric(
    "answer.exact_match",
    version=1,
    observes=ITEM,
    unit=SHARE,
    better=HIGHER,
    needs=(GROUND_TRUTH,),
    reduce=Reduce(MEAN, MEAN_OF_SUBJECTS),
)
def exact_match(conversation: Conversation) -> Iterator[Observation]:
    """Is the answer the expected one, to the letter?

    1 if answer and ground truth are equal after trimming blanks at both ends, else 0; case counts,
    how an accented letter is composed does not.
    The answer is the last thing that the agent says; for an item, the item's own answer. An answer
    without words scores 0; where the log holds none, it is unmeasured. An empty truth is not
    applicable.
    """
    yield from _compare(conversation, _same)


@metric(
    "answer.f1",
    version=1,
    observes=ITEM,
    unit=RATIO,
    better=HIGHER,
    needs=(GROUND_TRUTH,),
    reduce=Reduce(MEAN, MEAN_OF_SUBJECTS),
)
def f1(conversation: Conversation) -> Iterator[Observation]:
    """How many words do answer and truth share?

    Words in small letters, repeats counted. P = shared ÷ words of the answer, R = shared ÷ words of
    the truth, F1 = 2PR ÷ (P + R); 0 where they share none. Which answer is compared: see
    `answer.exact_match`. An empty truth is not applicable.
    """
    yield from _compare(conversation, _token_f1)


def _token_f1(answer: str, truth: str) -> float | None:
    given = Counter(tokens(answer))
    wanted = Counter(tokens(truth))
    if not wanted:
        return None
    return 2 * (given & wanted).total() / (given.total() + wanted.total())


def _same(answer: str, truth: str) -> float | None:
    answer, truth = (unicodedata.normalize("NFC", text).strip() for text in (answer, truth))
    return float(answer == truth) if truth else None


def _compare(conversation: Conversation, compare: Callable[[str, str], float | None]) -> Iterator[Observation]:
    truth = conversation.expected.ground_truth
    if truth is not None:
        yield _score(WHOLE, _last_answer(conversation), truth, compare)
    if conversation.items:
        answers = {utterance.seq: conversation.text(utterance) for utterance in conversation.utterances}
        for position, item in enumerate(conversation.items):
            answer = None if item.answered is None else answers.get(item.answered)
            yield _score(Subject("item", item.id, position), answer, item.expected.ground_truth, compare)


def _score(
    subject: Subject, answer: str | None, truth: str | None, compare: Callable[[str, str], float | None]
) -> Observation:
    if truth is None:
        return unmeasured(subject, "no_ground_truth")
    if answer is None:
        return unmeasured(subject, "no_answer")
    value = compare(answer, truth)
    return not_applicable(subject, "empty_ground_truth") if value is None else measured(subject, value)


def _last_answer(conversation: Conversation) -> str | None:
    """The last words of the agent; "" where it spoke without words, None where the log has nothing of it."""
    spoken = [one for one in conversation.utterances if conversation.roles[one.speaker] == "assistant"]
    said = (conversation.text(utterance) for utterance in reversed(spoken))
    return next((text for text in said if text.strip()), "") if spoken else None
