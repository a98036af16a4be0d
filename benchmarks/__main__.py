"""`make bench`: what is fast, as a ratio against a named peer or limit. Small by default, `--full` for the figures."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path

from benchmarks import (
    annotation,
    causes,
    dialogues,
    faults,
    intervals,
    items,
    mutations,
    page,
    road,
    scoring,
    semantic,
    startup,
    state_event_mutations,
    states,
    voice,
    voice_mutations,
    waiting,
    words,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the sizes that benchmarks/README.md reports")
    full = parser.parse_args().full
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    startup.run()
    intervals.run(2_000 if full else 100)
    voice.run(rounds=300 if full else 50)
    faults.run(alone=140 if full else 5, together=7 if full else 1)
    causes.run(calls=120 if full else 20)
    dialogues.run(rounds=5 if full else 1)
    words.run(rounds=30 if full else 5)
    with tempfile.TemporaryDirectory(prefix="convoscope-bench-") as folder:
        road.run(Path(folder))
        page.run(Path(folder))
        scoring.run(Path(folder), sizes=(20_000, 200_000) if full else (500, 5_000))
        items.run(Path(folder), 1_000_000 if full else 20_000)
        annotation.run(1_000_000 if full else 20_000)
        semantic.run(Path(folder) / "semantic", 10_000 if full else 500)
        waiting.run(Path(folder), 20_000 if full else 2_000)
        states.run(Path(folder), seeds=50 if full else 10, conversations=1_000_000 if full else 5_000)
    mutations.run(100_000 if full else 2_000)
    mutations.run_both_ways(200_000 if full else 2_000)
    state_event_mutations.run(20_000 if full else 500)
    voice_mutations.run(5_000 if full else 200)


if __name__ == "__main__":
    main()
