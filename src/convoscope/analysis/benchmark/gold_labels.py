"""Gold labels as they are compared."""

from __future__ import annotations

from convoscope.ingest.companions.gold_files import GoldFile
from convoscope.metrics.semantic.counts import PlainRisk
from convoscope.metrics.semantic.samples import Labels, PlainAction


def gold_labels(gold: GoldFile) -> Labels:
    """Gold as it is compared."""
    return Labels(
        None if gold.topics is None else tuple(one.label for one in gold.topics),
        None if gold.risks is None else tuple(PlainRisk(one.type, one.severity, one.segment_ids) for one in gold.risks),
        None
        if gold.actions is None
        else tuple(PlainAction(one.description, one.verbatim, one.assignee_role or "") for one in gold.actions),
    )
