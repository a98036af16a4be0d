"""Gold labels, one kind of companion: what is true of a conversation, matched to it by the sample's id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from convoscope.conversation import Action, Annotations, Conversation, Risk, Topic
from convoscope.conversation.annotations import FAMILIES
from convoscope.ingest.io import containers
from convoscope.ingest.reader import Attach, Companion, Detection, Sample
from convoscope.ingest.record import as_object
from convoscope.ingest.report import Notes

if TYPE_CHECKING:
    from convoscope.ingest.companions.gold_files import GoldFile

_Label = TypeVar("_Label")
_Annotation = TypeVar("_Annotation")

FORMAT = "gold"
NAME_ENDING = "_gold"
FILE_ENDING = NAME_ENDING + ".json"


class GoldLabels(NamedTuple):
    """Gold files by sample id, and what is wrong with those that cannot be used, by the name of the file."""

    by_sample: Mapping[str, GoldFile]
    problems: Mapping[str, str]


class Gold(Companion):
    """Gold labels give a conversation annotations of the origin `gold`."""

    format = FORMAT

    def detect(self, sample: Sample) -> Detection | None:
        value = as_object(sample.values[0]) if sample.container == "document" and sample.values else {}
        if not ({"sample_id", "schema_version"} <= value.keys() and {"annotator", *FAMILIES} & value.keys()):
            return None
        return Detection(1.0, "gold labels, matched to conversations by sample id", "companion")

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        del reader
        plain = [path for path in files if path.name.endswith(".json")]
        if not plain:
            return None
        labels = load(plain)
        return lambda conversation, notes: attach(conversation, labels, notes)


@containers.read_once(64)
def load(paths: Sequence[Path]) -> GoldLabels:
    """What these gold files say."""
    from convoscope.ingest.companions.gold_files import check_file

    by_sample: dict[str, GoldFile] = {}
    problems: dict[str, str] = {}
    for path in paths:
        checked = check_file(path, path.name)
        if checked.gold is None:
            problem = "; ".join(map(str, checked.errors[:3]))
            problems[path.name.removesuffix(FILE_ENDING)] = problem
            if checked.sample_id:
                problems[checked.sample_id] = problem
        else:
            by_sample.setdefault(checked.gold.sample_id, checked.gold)
    return GoldLabels(by_sample, problems)


def attach(conversation: Conversation, labels: GoldLabels, notes: Notes) -> Conversation:
    """The conversation with the labels of its sample; the same one where it has none, or has gold already."""
    if any(one.origin == "gold" for one in conversation.annotations):
        return conversation
    for sample in sample_ids(conversation):
        if sample in labels.problems:
            notes.set_aside("gold_left_out", labels.problems[sample])
        if sample in labels.by_sample:
            gold = gold_annotations(labels.by_sample[sample], conversation, notes)
            return msgspec.structs.replace(conversation, annotations=(*conversation.annotations, gold))
    if not labels.problems.keys().isdisjoint(sample_ids(conversation)):
        # Its figures say that its gold is invalid, and not that it has none.
        invalid = Annotations(origin="gold", extraction=dict.fromkeys(FAMILIES, "error"))
        return msgspec.structs.replace(conversation, annotations=(*conversation.annotations, invalid))
    return conversation


def sample_ids(conversation: Conversation) -> list[str]:
    """The ids that a conversation can have as a sample: its own, and the name of its file."""
    stems = [stem(name) for name in (conversation.id, *conversation.source.files)]
    return list(dict.fromkeys([conversation.id, *stems]))


def stem(name: str) -> str:
    """`calls/a.json.gz` as `a`."""
    return name.rpartition("/")[2].partition(".")[0]


def gold_annotations(gold: GoldFile, conversation: Conversation, notes: Notes) -> Annotations:
    """The labels, with segments as the utterances that they are."""
    seqs = segments(conversation)

    def events(ids: Iterable[int]) -> tuple[int, ...]:
        for segment in ids:
            if segment not in seqs:
                notes.set_aside("gold_segment_missing", f"{gold.sample_id}: segment {segment}")
        return tuple(dict.fromkeys(seqs[segment] for segment in ids if segment in seqs))

    def span(ids: tuple[int, int] | None) -> tuple[int, int] | None:
        both = events(ids or ())
        return (both[0], both[-1]) if ids is not None and all(one in seqs for one in ids) else None

    return Annotations(
        origin="gold",
        annotator=gold.annotator,
        annotated_at=gold.annotated_at,
        topics=_each(gold.topics, lambda one: Topic(label=one.label, span=span(one.span), confidence=one.confidence)),
        risks=_each(
            gold.risks,
            lambda one: Risk(
                type=one.type, severity=one.severity, events=events(one.segment_ids), evidence=one.evidence
            ),
        ),
        actions=_each(
            gold.actions,
            lambda one: Action(
                description=one.description,
                verbatim=one.verbatim,
                assignee_role=one.assignee_role or "",
                due=one.due,
                events=events(one.segment_ids),
            ),
        ),
    )


def _each(labels: tuple[_Label, ...] | None, build: Callable[[_Label], _Annotation]) -> tuple[_Annotation, ...] | None:
    return None if labels is None else tuple(build(one) for one in labels)


def segments(conversation: Conversation) -> dict[int, int]:
    """The utterances by segment id: by the id that the log has, else in their order."""
    ids = {one.id for one in conversation.utterances if one.id.isdecimal()}
    if len(ids) == len(conversation.utterances):
        return {int(one.id): one.seq for one in conversation.utterances}
    return {index: one.seq for index, one in enumerate(conversation.utterances)}
