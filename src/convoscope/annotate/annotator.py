"""What an annotator is, which annotators there are, and how a failed annotation differs from "found nothing"."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.metadata import entry_points
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args, runtime_checkable

import msgspec

from convoscope.conversation import Annotations, Conversation
from convoscope.conversation.annotations import FAMILIES
from convoscope.errors import UsageError
from convoscope.scores.judges import ANNOTATOR_MARK
from convoscope.scores.observation import COMPUTED

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")

ENTRY_POINT_GROUP = "convoscope.annotators"

Capability = Literal["topics", "risks", "severity", "actions", "assignee_role", "due", "verbatim"]
"""What an annotator may provide. Whatever it does not provide is not measured, and never counted as wrong."""
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)

ASKS_JUDGE = "judge"
"""The name of the annotator that asks a judge."""
NO_WORDS = "no_words"
ANNOTATION_FAILED = "annotation_failed"


@runtime_checkable
class Annotator(Protocol):
    """Finds topics, risks and actions in a conversation. The same conversation gives the same annotations."""

    name: str
    provides: frozenset[Capability]

    @property
    def identity(self) -> str:
        """Name, version and hash of everything that can change what is found, for receipts."""

    def annotate(self, conversation: Conversation) -> Annotations:
        """What is found, with the origin `predicted`. A family that is not provided is None.

        Raise `NotAnnotated` where nothing can be said of this conversation.
        """


class NotAnnotated(Exception):
    """Nothing can be said of a conversation: a reason code, and a detail."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class AnnotationFailure(NamedTuple):
    """Why a conversation has no annotations of an annotator that was asked."""

    reason: str
    detail: str = ""


def annotations_of(conversation: Conversation, annotator: Annotator) -> Annotations:
    """What an annotator finds. Where it fails, all families are None and the reason is kept: see `failure_of`."""
    try:
        return provided(annotator.annotate(conversation), annotator)
    except NotAnnotated as error:
        return _not_annotated(annotator, "skipped", AnnotationFailure(error.reason, error.detail))
    except Exception as error:  # whatever an annotator of a user raises
        failure = AnnotationFailure(ANNOTATION_FAILED, f"{type(error).__name__}: {error}"[:200])
        return _not_annotated(annotator, "error", failure)


def provided(annotations: Annotations, annotator: Annotator) -> Annotations:
    """The annotations without what the annotator does not provide: such a family is None, and the rest is skipped."""
    missing = [name for name in CAPABILITIES if name not in annotator.provides]
    if not missing:
        return annotations
    return msgspec.structs.replace(
        annotations,
        extraction={**annotations.extraction, **dict.fromkeys(missing, "skipped")},
        **{name: None for name in missing if name in FAMILIES},
    )


def annotated(conversation: Conversation, annotator: Annotator) -> Conversation:
    """The conversation with what an annotator finds, added to what it has already."""
    if any(one.model == annotator.identity for one in conversation.annotations):
        return conversation
    added = msgspec.structs.replace(annotations_of(conversation, annotator), model=annotator.identity)
    return msgspec.structs.replace(conversation, annotations=(*conversation.annotations, added))


def in_order(
    annotator: Annotator,
    annotate: Callable[[_Given], _Made],
    given: Iterable[_Given],
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[_Made]:
    """What a function makes of each by an annotator, in their order; `waiting` is around the time that it takes.

    An annotator that waits for answers says its `max_concurrency`: so many conversations are begun ahead.
    """
    most = getattr(annotator, "max_concurrency", 1)
    if most == 1:
        for value in given:
            with waiting():
                made = annotate(value)
            yield made
        return
    begun: deque[Future[_Made]] = deque()
    pool = ThreadPoolExecutor(most)
    try:
        for value in given:
            begun.append(pool.submit(annotate, value))
            if len(begun) == most:
                with waiting():
                    made = begun.popleft().result()
                yield made
        while begun:
            with waiting():
                made = begun.popleft().result()
            yield made
    finally:  # who is interrupted does not wait for answers: the annotator is closed
        pool.shutdown(wait=False, cancel_futures=True)


def failure_of(annotations: Annotations) -> AnnotationFailure | None:
    """Why there is nothing in these annotations; None where they were made."""
    reason = annotations.extras.get("reason")
    if not isinstance(reason, str) or any(getattr(annotations, family) is not None for family in FAMILIES):
        return None
    return AnnotationFailure(reason, str(annotations.extras.get("detail", "")))


def judge_behind(annotations: Annotations | None) -> str:
    """The judge that found this, `openai/tiny+annotator@1a2b3c4d`; `COMPUTED` where no language model did.

    It is the model that a receipt names; what it was asked has a hash after its own.
    """
    version, _, model = (annotations.model if annotations is not None else "").partition(":")
    if not version.startswith(f"{ASKS_JUDGE}/"):
        return COMPUTED
    name, _, digest = model.rpartition("@")
    return f"{name}{ANNOTATOR_MARK}@{digest}"


def _not_annotated(annotator: Annotator, status: str, failure: AnnotationFailure) -> Annotations:
    return Annotations(
        origin="predicted",
        annotator=annotator.name,
        extraction=dict.fromkeys(FAMILIES, status),
        extras={name: value for name, value in failure._asdict().items() if value},
    )


@cache
def installed() -> dict[str, Annotator]:
    """The annotators that installed packages declare, by name."""
    annotators: dict[str, Annotator] = {}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)):
        annotator = point.load()
        if not isinstance(annotator, Annotator):
            raise UsageError(f"annotator {point.name} ({point.value}) has no name, provides or annotate")
        annotators.setdefault(annotator.name, annotator)
    return annotators


def annotator_named(name: str) -> Annotator:
    """The annotator of this name; an unknown name lists those there are."""
    annotator = installed().get(name)
    if annotator is None:
        raise UsageError(f"unknown annotator {name!r}", hint=f"there is {', '.join(sorted(installed()))}")
    return annotator
