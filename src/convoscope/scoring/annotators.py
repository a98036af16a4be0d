"""What the annotator of a run provides: decided over all its conversations, before they are compared with gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO

import msgspec

from convoscope.annotate.annotator import ASKS_JUDGE, Annotator, annotator_named
from convoscope.conversation import Conversation
from convoscope.conversation.annotations import GIVEN, SEVERITY, SKIPPED
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions import gold
from convoscope.ingest.discover import Input
from convoscope.ingest.io.containers import open_bytes
from convoscope.metrics.semantic.findings import first_annotations
from convoscope.metrics.semantic.samples import Provided, labels_of
from convoscope.resources.judge import judges_of
from convoscope.resources.registry import JUDGE, Resource, made
from convoscope.scoring.labels import conversations_of
from convoscope.storage import as_path


class ProvidedRule(msgspec.Struct, frozen=True):
    """The families that an annotator provides, and whether it gives severities.

    Where a conversation lacks what others have, the annotation failed there, and did not find nothing.
    """

    families: frozenset[str]
    severity: bool

    def applied(self, conversation: Conversation) -> Conversation:
        """The conversation, whose annotations say what they lack of what others have."""
        parts = first_annotations(conversation, "predicted")
        if not parts:
            return conversation
        labels = labels_of(parts)
        lacking = [family for family in self.families - labels.failed if getattr(labels, family) is None]
        status = dict.fromkeys(sorted(lacking), "error")
        if Provided([labels]).severity != self.severity or any(SEVERITY in part.extraction for part in parts):
            status[SEVERITY] = GIVEN if self.severity else SKIPPED
        annotations = tuple(
            msgspec.structs.replace(item, extraction={**item.extraction, **status}) if item in parts else item
            for item in conversation.annotations
        )
        return msgspec.structs.replace(conversation, annotations=annotations) if status else conversation


def provided_rules(inputs: Sequence[Input], limit: int | None, part_bytes: int) -> list[ProvidedRule]:
    """What the annotator of logs with gold labels provides; nothing for logs without gold.

    The logs are read until everything was provided somewhere.
    """
    if not any(map(_may_hold_gold, inputs)):
        return []
    provided = Provided()
    for conversation in conversations_of(inputs, limit, part_bytes):
        parts, truth = first_annotations(conversation, "predicted"), first_annotations(conversation, "gold")
        # What cannot be compared with gold says nothing of the figures.
        if parts and truth and not labels_of(truth).failed:
            provided.add(labels_of(parts))
        if provided.is_complete:
            break
    return [ProvidedRule(frozenset(provided.families), provided.severity)]


def _may_hold_gold(item: Input) -> bool:
    """Whether gold labels may be there: in files of their own, or inside conversations of our own format."""
    if item.companions_of(gold.FORMAT) or item.reader != "convoscope":
        return bool(item.companions_of(gold.FORMAT))
    try:
        with open_bytes(as_path(item.path)) if item.data is None else BytesIO(item.data) as stream:
            return any(b'"gold"' in line for line in stream)
    except (OSError, EOFError, InputError):
        return True  # what is wrong with it is said when it is scored


def annotator_for(name: str, resources: Mapping[str, Resource], max_concurrency: int = 1) -> Annotator:
    """The annotator of this name. The one that asks a judge gets the first that was named, of its own.

    It may be asked about so many conversations at a time.
    """
    if name != ASKS_JUDGE:
        return annotator_named(name)
    if JUDGE not in resources:
        raise UsageError(f"--annotate {name}: no judge is named", hint="--judge openai:MODEL; nothing was sent")
        # Only where a judge is asked.
    from convoscope.annotate.language_model import LanguageModelAnnotator

    return LanguageModelAnnotator(judges_of(made(resources[JUDGE]))[0], max_concurrency)
