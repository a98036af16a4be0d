"""Dialogue metrics in memory, and inform and success, against fixed figures of published code.

Published: 20,800 dialogues a second with fewer metrics (on dialogues of unknown length), and 43 to 88 for the
standard evaluator. The dialogues are the 500 of MultiWOZ 2.1 in the shared data; without them nothing is measured.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec

import convoscope
from convoscope.conversation import Conversation, Frame
from convoscope.metrics.dialogue.evaluators import evaluate_dialogues
from convoscope.metrics.dialogue.frames import dialogue_turns
from convoscope.metrics.dialogue.tomiinek.declared import gold_dialogue
from convoscope.metrics.dialogue.tomiinek.evaluate import judge_prediction
from convoscope.metrics.dialogue.tomiinek.matching import VenueSearch
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.venues import VenueDatabase

PUBLISHED = 20_800
STANDARD = (43, 88)
_WRONG = 0.3
_SHARED = Path(os.environ.get("CONVOSCOPE_SHARED") or Path(__file__).parents[2] / "shared") / "data" / "multiwoz21"


def run(rounds: int) -> None:
    """Print dialogues a second, best of some rounds, in processor time of this one process."""
    if not _SHARED.exists():
        print(f"dialogues: no data at {_SHARED}\n")
        return
    conversations = [_predicted(one) for one in convoscope.read(_SHARED / "test-even.json")]
    tables = {
        path.name.removesuffix("_db.json"): json.loads(path.read_text()) for path in (_SHARED / "db").glob("*.json")
    }
    random = Random(7)
    dialogues = [[_faulty(turn, random) for turn in dialogue_turns(one)] for one in conversations]
    venues = VenueDatabase(tables)
    turns = sum(map(len, dialogues))
    print(f"dialogues: {len(dialogues)} of MultiWOZ 2.1, {turns} turns, {_WRONG:.0%} of them with a wrong slot")
    gc.collect()
    gc.freeze()
    for what, database in (("rule metrics, no database", None), ("all, with names and details", venues)):
        work = partial(evaluate_dialogues, dialogues, database)
        first, rate = _rate(1, len(dialogues), work), _rate(rounds, len(dialogues), work)
        per_turn = rate * turns / len(dialogues)
        print(
            f"  {what:28} {rate:8,.0f} dialogues/s, {per_turn:9,.0f} turns/s ({rate / PUBLISHED:.2f} × published), "
            f"the first time {first:,.0f}"
        )
    _run_standard(conversations, {domain: rows for domain, rows in tables.items() if domain != "taxi"})
    gc.unfreeze()
    _run_whole(conversations)


def _run_standard(conversations: list[Conversation], tables: dict[str, Any]) -> None:
    """Inform and success from a cold start: the index is built within the time."""
    gold = [gold_dialogue(one) for one in conversations]
    predictions = [[{"response": text, "state": state} for text, state in _delexicalised(one)] for one in conversations]

    def judge() -> list[Any]:
        search = VenueSearch(tables)
        return [judge_prediction(turns, true, search) for turns, true in zip(predictions, gold, strict=True)]

    rate = _rate(1, len(gold), judge)
    verdicts = judge()
    informed, succeeded = sum(one.is_informed for one in verdicts), sum(one.is_success for one in verdicts)
    least, most = rate / STANDARD[1], rate / STANDARD[0]
    print(f"  {'inform and success':28} {rate:8,.0f} dialogues/s ({least:.0f} to {most:.0f} × standard)")
    print(f"  of the human agents: inform {informed} of {len(gold)}, success {succeeded} of {len(gold)}")


def _run_whole(conversations: list[Conversation]) -> None:
    """`convoscope score` of the same dialogues with all dialogue metrics, in processor time of one worker."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [json.dumps(record) for one in conversations for record in _records(one)]
        (folder / "predictions.jsonl").write_text("\n".join(lines))
        (folder / "venues.py").write_text(_RESOURCE.format(folder=str(_SHARED / "db")))
        command = [sys.executable, "-m", "convoscope", "score", str(_SHARED / "test-even.json"), "predictions.jsonl"]
        options = ["--metrics", "dialogue", "--metrics-from", "venues.py", "--workers", "1", "--out", "run"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, *options], cwd=folder, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"  {'convoscope score, whole run':28} {len(conversations) / seconds:8,.0f} dialogues/s ({seconds:.1f} s)\n")


_RESOURCE = """import json
from pathlib import Path

from convoscope import resource
from convoscope.metrics.dialogue.venues import VenueDatabase


@resource
def venues() -> VenueDatabase:
    files = Path({folder!r}).glob("*_db.json")
    return VenueDatabase({{file.name.removesuffix("_db.json"): json.loads(file.read_text()) for file in files}})
"""


def _records(conversation: Conversation) -> Iterator[dict[str, Any]]:
    """The truth of each turn as a record of predictions."""
    for place, turn in enumerate(dialogue_turns(conversation)):
        acts: dict[str, list[list[str | None]]] = {}
        for act in turn.truth.acts or ():
            acts.setdefault(act.type, []).extend([slot.slot, slot.value] for slot in act.slots)
        yield {
            "dialogue_id": conversation.id,
            "turn_id": 2 * place,
            "predicted_domains": list(turn.truth.domains or ()),
            "predicted_intents": sorted(turn.truth.intents or ()),
            "predicted_slots": turn.truth.state or {},
            "dialog_act": acts,
            "response": turn.response,
        }


def _rate(rounds: int, number: int, work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return number / best


def _predicted(conversation: Conversation) -> Conversation:
    """The dialogue with its truth as the prediction."""
    texts = {one.seq: conversation.text(one) for one in conversation.utterances}
    assistant = {one.seq for one in conversation.utterances if conversation.roles[one.speaker] == "assistant"}
    frames = [
        msgspec.structs.replace(
            frame, origin="predicted", response=texts[frame.seq] if frame.seq in assistant else None
        )
        for frame in conversation.frames
    ]
    return msgspec.structs.replace(conversation, frames=(*conversation.frames, *frames))


def _faulty(turn: DialogueTurn, random: Random) -> DialogueTurn:
    """Some turns with a wrong value, so that states are really compared."""
    state = {domain: dict(slots) for domain, slots in (turn.predicted.state or {}).items()}
    if state and random.random() < _WRONG:
        slots = state[random.choice(sorted(state))]
        slots[random.choice(sorted(slots))] = "wrong"
    return turn._replace(predicted=turn.predicted._replace(state=state))


def _delexicalised(conversation: Conversation) -> list[tuple[str, dict[str, dict[str, str]]]]:
    """Per turn what the agent tells, as placeholders, with the true state."""
    by_seq: dict[int, list[Frame]] = {}
    for frame in conversation.frames:
        if frame.origin == "gold":
            by_seq.setdefault(frame.seq, []).append(frame)
    rows = []
    for turn in conversation.turns:
        if turn.user:
            acts = [act for said in turn.assistant for frame in by_seq.get(said.seq, ()) for act in frame.acts or ()]
            text = " ".join(f"[{slot.slot}]" for act in acts for slot in act.slots if slot.value)
            frames = [frame for said in turn.user for frame in by_seq.get(said.seq, ()) if frame.slots]
            state = {one.service: {name: value[0] for name, value in (one.slots or {}).items()} for one in frames}
            rows.append((text, state))
    return rows
