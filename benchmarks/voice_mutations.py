"""Logs of calls made wrong at random: each call must be read, or refused in words."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

_TESTS = Path(__file__).parent.parent / "tests"
_FIRST = 50_000
"""Seed of the first call: none of those of the tests."""


def run(count: int, seed: int = 1) -> None:
    """Print for how many of `count` mutated folders reading raised, or left a note."""
    sys.path.insert(0, str(_TESTS))
    from support.voice_calls import calls  # type: ignore[import-not-found]
    from support.voice_mutations import mutate, outcome  # type: ignore[import-not-found]

    draw = random.Random(seed)
    made = calls(min(count, 70), first=_FIRST)
    found: Counter[str] = Counter()
    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="convoscope-mutations-") as scratch:
        for number in range(count):
            folder = made[number % len(made)].write(Path(scratch) / "call")
            done = mutate(folder, draw)
            read = outcome(folder)
            # An input that cannot be read at all is refused in words; anything else is a bug.
            if read.error and not read.error.startswith("InputError"):
                found["raised"] += 1
                print(f"  {done}: {read.error}")
            found["with a note"] += bool(read.notes)
            shutil.rmtree(folder)
    took = perf_counter() - began
    print(
        f"{count:,} mutated calls in {took:.1f} s: {found['raised']:,} raised; {found['with a note']:,} with a note\n"
    )
