"""`make bench`: what is fast, as a ratio against a named peer or limit. Small by default.

`--full` measures the sizes of benchmarks/README.md, and writes what each section prints into its block there.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter
from typing import TextIO

from benchmarks import (
    annotation,
    causes,
    comparing,
    dialogues,
    engines,
    faults,
    format_mutations,
    format_speed,
    growing,
    intervals,
    items,
    joint,
    judging,
    labels,
    mutations,
    nights,
    page,
    road,
    scoring,
    semantic,
    sound,
    sound_log,
    spoken_facts,
    startup,
    state_event_mutations,
    states,
    stores,
    voice,
    voice_mutations,
    waiting,
    weight,
    words,
)

README = Path(__file__).with_name("README.md")


GROWING = [("chats", 100_000), ("items", 100_000), ("items", 1_000_000)]


def sections(folder: Path, full: bool) -> dict[str, Callable[[], object]]:
    """What is measured, by the name of its block in the README, in the order of the README."""

    def wrong_records() -> None:
        mutations.run(100_000 if full else 2_000)
        mutations.run_both_ways(200_000 if full else 2_000)
        state_event_mutations.run(20_000 if full else 500)
        voice_mutations.run(5_000 if full else 200)
        format_mutations.run(40 if full else 2)

    def semantics() -> None:
        semantic.run(folder / "semantic", 10_000 if full else 500)
        annotation.run(1_000_000 if full else 20_000)

    def judges() -> None:
        judging.run(folder, 20_000 if full else 2_000)
        joint.run(joint.GROUPS if full else dict.fromkeys(list(joint.GROUPS)[:1], 1))
        if full:
            labels.run()

    def compared() -> None:
        comparing.run(2_000 if full else 20)
        comparing.size(folder, 1_000_000 if full else 5_000)

    return {
        "startup": startup.run,
        "road": lambda: road.run(folder),
        "items": lambda: items.run(folder, 1_000_000 if full else 20_000),
        "engines": lambda: engines.run(folder, 1_000_000 if full else 20_000),
        "stores": lambda: stores.run(folder, 100_000 if full else 5_000),
        "chats": lambda: scoring.run(folder, sizes=(20_000, 200_000) if full else (500, 5_000)),
        "growing": lambda: growing.run(folder, GROWING if full else [("chats", 2_000), ("items", 2_000)]),
        "formats": lambda: format_speed.run(folder, 500 if full else 50),
        "sound_log": lambda: sound_log.run(100 if full else 16),
        "call": lambda: voice.run(rounds=300 if full else 50),
        "sound": lambda: sound.run(folder, 5 if full else 1, full=full),
        "dialogues": lambda: dialogues.run(rounds=5 if full else 1),
        "states": lambda: states.cost(folder, 1_000_000 if full else 5_000),
        "long-conversation": lambda: states.long_conversation(folder, 5_000 if full else 500),
        "semantic": semantics,
        "words": lambda: words.run(rounds=30 if full else 5),
        "waiting": lambda: waiting.run(folder, 20_000 if full else 2_000),
        "judge": judges,
        "page": lambda: page.run(folder),
        "planted": lambda: states.rates(50 if full else 10),
        "causes": lambda: causes.run(calls=120 if full else 20),
        "spoken": lambda: spoken_facts.run_all(100 if full else 10),
        "faults": lambda: faults.run(alone=140 if full else 5, together=7 if full else 1),
        "intervals": lambda: intervals.run(2_000 if full else 100),
        "comparisons": compared,
        "nights": lambda: nights.run(2_000 if full else 20),
        "mutations": wrong_records,
        "weight": weight.run,
    }


class Tee(io.StringIO):
    """Keeps what is printed, and prints it."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(text)
        self.stream.flush()
        return super().write(text)


def filled(readme: str, name: str, text: str) -> str:
    """The README with another text in the block that follows `<!-- bench: NAME -->`."""
    block = re.compile(rf"(<!-- bench: {name} -->\n```\n).*?(\n```\n)", re.DOTALL)
    if not block.search(readme):
        raise SystemExit(f"benchmarks/README.md has no block for {name}")
    return block.sub(lambda match: match[1] + text.strip() + match[2], readme, count=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the sizes of benchmarks/README.md; writes them into it")
    parser.add_argument("--only", metavar="NAME,…", default="", help="only these sections")
    options = parser.parse_args()
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}\n")
    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="convoscope-bench-") as folder:
        chosen = sections(Path(folder), options.full)
        if unknown := {*options.only.split(",")} - {"", *chosen}:
            parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(chosen)}")
        for name, measure in chosen.items():
            if options.only and name not in options.only.split(","):
                continue
            with redirect_stdout(Tee(sys.stdout)) as printed:
                measure()
            if options.full:
                README.write_text(filled(README.read_text(), name, printed.getvalue()))
    print(f"{(perf_counter() - began) / 60:.0f} minutes in all")
    if options.full:
        README.write_text(filled(README.read_text(), "machine", machine))


if __name__ == "__main__":
    main()
