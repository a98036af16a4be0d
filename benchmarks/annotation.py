"""How fast the rules annotate: the development calls of the bundled data set, and one long segment. CPU only."""

from __future__ import annotations

import time

from convoscope.analysis.benchmark.datasets import SEMANTIC, find_dataset
from convoscope.annotate.annotator import annotations_of
from convoscope.annotate.rules.annotator import ANNOTATOR
from convoscope.conversation import Conversation, Participant, Text, Utterance
from convoscope.ingest.read import read

WORDS = "I'll send you the form again, and the driver put the wrong bill in. "


def run(letters: int) -> None:
    """Print calls per second, and the time of one segment of so many letters."""
    dataset = find_dataset(SEMANTIC, "support-calls")
    paths = [dataset.folder / "transcripts" / f"{sample}.json" for sample in dataset.split("dev", None)]
    calls = list(read(paths))
    _seconds(calls[:1])
    seconds = _seconds(calls)
    print(f"annotation: {len(calls)} calls by rules, {len(calls) / seconds:.0f} calls per second of CPU")
    text = (WORDS * (letters // len(WORDS) + 1))[:letters]
    for what, long in (("with", text), ("without", text.replace(".", "").replace(",", ""))):
        print(f"annotation: a segment of {letters:,} letters {what} stops in {_seconds([_call(long)]):.1f} s of CPU")


def _call(text: str) -> Conversation:
    utterance = Utterance(seq=0, speaker="agent", intended=Text(text))
    return Conversation(id="long", participants=(Participant("agent", "assistant"),), timeline=(utterance,))


def _seconds(calls: list[Conversation]) -> float:
    start = time.process_time()
    for conversation in calls:
        annotations_of(conversation, ANNOTATOR)
    return time.process_time() - start
