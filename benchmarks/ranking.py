"""Does the ranking find failures? 100 τ-bench trajectories, whose rewards the ranking is not shown.

`python -m benchmarks.ranking [FILE]` prints the area under the ROC curve of the ranking against the reward, with an
interval that draws whole tasks anew, and how many of the first 20 failed: by the trials of each task, and by roughness
alone, where the ranking is not shown which trials are of one task. No rule of the ranking was chosen by these rewards:
run it to report, not to tune.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import convoscope
from convoscope.runs.ranking import rank

NAME = "data/formats/tau-bench/gpt-4o-airline_all_even_tasks.json"
SHOWN = {"trials": ("task_id", "trial", "traj"), "roughness": ("traj",)}
"""All that the ranking gets to see, by what leads it."""
WORST = 20
DRAWS = 2000


class Found(NamedTuple):
    """How well failures are found."""

    basis: str
    """What leads the ranking."""
    auc: float
    low: float
    high: float
    failed_among_worst: int
    failed: int
    conversations: int


def measure(path: Path, shown: Sequence[str] = SHOWN["trials"]) -> Found:
    """Rank the trajectories without their rewards, and hold the order against these."""
    records = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="convoscope-") as folder:
        log = Path(folder) / "trajectories.jsonl"
        log.write_text("".join(json.dumps({name: one[name] for name in shown}) + "\n" for one in records))
        ranking = rank(convoscope.score(log, out=Path(folder) / "run", workers=1))
    order = ranking.order
    if len(order) != len(records):
        raise ValueError(f"{len(order)} of {len(records)} trajectories were read")
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    failed = np.array([one["reward"] < 1 for one in records])
    tasks = np.array([str(one["task_id"]) for one in records])
    low, high = _interval(place, failed, tasks)
    first = int(failed[order[:WORST]].sum())
    return Found(ranking.basis, auc(place, failed), low, high, first, int(failed.sum()), len(records))


def auc(place: NDArray[np.float64], failed: NDArray[np.bool_]) -> float:
    """How often a failure stands before a success, of all pairs of them; a tie is half."""
    bad, good = place[failed][:, None], place[~failed][None, :]
    return float(((bad < good) + 0.5 * (bad == good)).mean()) if bad.size and good.size else float("nan")


def _interval(place: NDArray[np.float64], failed: NDArray[np.bool_], tasks: NDArray[np.str_]) -> tuple[float, float]:
    """95 % by a bootstrap that draws tasks: trials of one task are not independent."""
    generator = np.random.default_rng(0)
    members = [np.flatnonzero(tasks == name) for name in np.unique(tasks)]
    draws = []
    for _ in range(DRAWS):
        rows = np.concatenate([members[one] for one in generator.integers(len(members), size=len(members))])
        draws.append(auc(place[rows], failed[rows]))
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return float(low), float(high)


def main(arguments: list[str]) -> None:
    """Print what is found."""
    path = Path(arguments[0]) if arguments else Path(os.environ.get("CONVOSCOPE_SHARED", "../shared")) / NAME
    for number, shown in enumerate(SHOWN.values()):
        found = measure(path, shown)
        if not number:
            print(f"{path.name}: {found.failed} of {found.conversations} trajectories failed")
        interval = f"95 % {found.low:.3f} to {found.high:.3f}, by task"
        print(f"by {found.basis}: AUC against the reward {found.auc:.3f} ({interval})")
        print(f"  failed among the first {WORST}: {found.failed_among_worst}")


if __name__ == "__main__":
    main(sys.argv[1:])
