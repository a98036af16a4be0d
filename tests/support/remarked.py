"""A run without a single figure, of which there is much to say all the same."""

from __future__ import annotations

import json
from pathlib import Path

from convoscope.runs.make import make_run
from convoscope.runs.run import Run

DUTCH = "Goedemiddag, ik wil graag weten waar mijn bestelling blijft en wanneer die eindelijk wordt bezorgd."
REPLY = "Uw bestelling is onderweg en wordt morgen tussen negen en twaalf uur bij u thuis bezorgd."


def remarked_run(folder: Path) -> Run:
    """12 Dutch chats with a field that looks like the outcome, 2 without a word of the user, 1 that broke."""
    asked = [{"role": "user", "content": DUTCH}, {"role": "assistant", "content": REPLY}]
    records = [
        *({"id": f"c{n}", "resolved": n % 3 > 0, "messages": asked} for n in range(12)),
        *({"id": f"silent{n}", "messages": [{"role": "assistant", "content": f"{REPLY} {n}"}]} for n in range(2)),
        {"id": "broken", "error": "no line", "messages": asked},
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chats.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    return make_run(folder / "chats.jsonl", metrics=["agent.declined"], out=folder / "run", workers=1)
