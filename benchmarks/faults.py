"""How much of a call is recovered from faulty logs: each fault alone, and each two together."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

_TESTS = Path(__file__).parent.parent / "tests"
_WORST = 10
_FIRST = 10_000
"""Seed of the first call: none of those that the join was written on."""


class Share(NamedTuple):
    """How many calls were recovered, of those that the faults could befall."""

    faults: tuple[str, ...]
    recovered: int
    calls: int

    @property
    def part(self) -> float:
        return self.recovered / self.calls

    def __str__(self) -> str:
        """A fault that could befall none of the calls says nothing."""
        return f"{self.part:7.1%} of {self.calls}" if self.calls else "      · of 0"


def run(*, alone: int = 70, together: int = 7) -> None:
    """Print the share of calls of which all that can be known was read, over `alone` and `together` calls."""
    sys.path.insert(0, str(_TESTS))
    from support.voice_calls import calls  # type: ignore[import-not-found]
    from support.voice_file_faults import FAULTS  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory(prefix="convoscope-faults-") as folder:
        single = _shares([(), *((name,) for name in FAULTS)], calls(alone, first=_FIRST), Path(folder))
        print(f"calls recovered exactly from faulty logs\n{'fault':46} recovered of {alone} calls that it can befall")
        for share in single:
            print(f"{(share.faults or ('none',))[0]:46} {share}")
        pairs = [pair for pair in combinations(FAULTS, 2) if len(FAULTS[pair[0]].removes | FAULTS[pair[1]].removes) < 3]
        found = [share for share in _shares(pairs, calls(together, first=_FIRST + alone), Path(folder)) if share.calls]
    worst = sorted(found, key=lambda share: share.part)[:_WORST]
    whole = sum(share.recovered for share in found) / sum(share.calls for share in found)
    print(f"\n{len(found)} pairs: median {statistics.median(share.part for share in found):.1%}, overall {whole:.1%}")
    for share in worst:
        print(f"  {share}  {' + '.join(share.faults)}")
    print()


def _shares(faults: Iterable[tuple[str, ...]], calls: Sequence[Any], folder: Path) -> list[Share]:
    from support.voice_recovery import attempt  # type: ignore[import-not-found]

    shares: list[Share] = []
    for names in faults:
        trials = []
        for seed, call in enumerate(calls):
            for left in folder.iterdir():
                left.unlink()
            trials.append(attempt(call, names, seed, folder))
        tried = [trial for trial in trials if trial is not None]
        shares.append(Share(names, sum(not trial.differs for trial in tried), len(tried)))
    return shares
