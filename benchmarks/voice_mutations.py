"""Logs of calls made wrong at random, read at a glance and with every repair: both must tell the same."""

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
    """Print of how many of `count` mutated folders the two ways to read a call told different things, or raised."""
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
            quick, slow = outcome(folder, at_a_glance=True), outcome(folder, at_a_glance=False)
            # An input that cannot be read at all is refused in words; anything else is a bug.
            found["raised"] += bool(quick.error) and not quick.error.startswith("InputError")
            found["told another thing at a glance"] += quick != slow
            found["with a note"] += bool(quick.notes)
            if quick != slow:
                print(f"  {done}: {quick.error or slow.error}")
            shutil.rmtree(folder)
    told = ", ".join(f"{found[name]:,} {name}" for name in ("raised", "told another thing at a glance"))
    print(f"{count:,} mutated calls in {perf_counter() - began:.1f} s: {told}; {found['with a note']:,} with a note\n")
