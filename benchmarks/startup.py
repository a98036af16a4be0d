"""How long a user waits before anything happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

ROUNDS = 15
LIMITS_MS = {"convoscope --help": 150, "import convoscope": 60}


def run() -> None:
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "convoscope --help": [str(Path(sys.executable).with_name("convoscope")), "--help"],
        "import convoscope": [sys.executable, "-c", "import convoscope"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    # In turns, so that a busy moment of the machine hits all of them.
    for _ in range(ROUNDS):
        for name, command in commands.items():
            began = perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times[name].append(1000 * (perf_counter() - began))
    bare = median(times["python -c pass"])
    print(f"start-up, median of {ROUNDS}: python -c pass takes {bare:.0f} ms; beyond that")
    for name, limit in LIMITS_MS.items():
        beyond = median(times[name]) - bare
        print(f"  {name:<20} {beyond:6.0f} ms   {beyond / limit:5.2f} of the limit of {limit} ms")
    print()
