"""How long a user waits before anything happens, and for the score of one small file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

ROUNDS = 15
LIMITS_MS = {"convoscope --help": 150, "import convoscope": 60, "score of one small file": 700}
SMALL = Path(__file__).parents[1] / "examples" / "openai-chat" / "single.json"


def run() -> None:
    # Bytecode is compiled before: a command that is used a second time finds it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    program = str(Path(sys.executable).with_name("convoscope"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "convoscope --help": [program, "--help"],
        "import convoscope": [sys.executable, "-c", "import convoscope"],
        "score of one small file": [program, "score", str(SMALL), "--out"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    # In turns, so that a busy moment of the machine hits all of them.
    for number in range(ROUNDS + 1):
        for name, command in commands.items():
            with tempfile.TemporaryDirectory() as folder:
                out = [f"{folder}/run"] if command[-1] == "--out" else []
                began = perf_counter()
                subprocess.run([*command, *out], stdout=subprocess.DEVNULL, check=True, env=environment)
                took = 1000 * (perf_counter() - began)
            times[name] += [took] if number else []
    bare = median(times["python -c pass"])
    print(f"start-up, median of {ROUNDS}: python -c pass takes {bare:.0f} ms; beyond that")
    for name, limit in LIMITS_MS.items():
        beyond = median(times[name]) - bare
        print(f"  {name:<24} {beyond:6.0f} ms   {beyond / limit:5.2f} of the limit of {limit} ms")
    print()
