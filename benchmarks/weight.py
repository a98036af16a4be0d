"""How heavy the source is: lines, files, functions and classes by package, lines of each reader and kit.

With `--passed`, what one input passes.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "convoscope"
EXAMPLES = ROOT / "examples"
INPUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("openai-chat/single.json", {}),
    "voice call": ("voice-logs/records/normal", {}),
    "dialogue": ("multiwoz/dialogues-2.1.json", {"limit": 1}),
    "semantic sample": ("plain-text", {"limit": 1, "annotate": "rules"}),
}
"""One small input of each family, below `examples/`, and settings of its run."""


class Weight(NamedTuple):
    """What the source of a package comes to."""

    lines: int
    files: int
    functions: int
    classes: int


def weight_of(paths: list[Path]) -> Weight:
    """Count some modules."""
    lines, kinds = 0, Counter[str]()
    for path in paths:
        text = path.read_text()
        lines += text.count("\n")
        for node in ast.walk(ast.parse(text)):
            kinds["functions"] += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            kinds["classes"] += isinstance(node, ast.ClassDef)
    return Weight(lines, len(paths), kinds["functions"], kinds["classes"])


def print_weights() -> None:
    """One line for each package, the heaviest first, and one for all of them."""
    packages: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE).parts
        packages.setdefault(inside[0] if len(inside) > 1 else "(top)", []).append(path)
    weights = {name: weight_of(paths) for name, paths in packages.items()}
    print(f"{'package':<14}{'lines':>8}{'files':>7}{'functions':>11}{'classes':>9}")
    for name, weight in sorted(weights.items(), key=lambda pair: -pair[1].lines):
        print_row(name, weight)
    print_row("all", Weight(*map(sum, zip(*weights.values(), strict=True))))


def print_readers() -> None:
    """The lines of each kit and of each reader, the longest first; a reader may be a folder."""
    for folder in ("kits", "formats"):
        inside = sorted((SOURCE / "ingest" / folder).iterdir())
        lines = {
            path.stem: weight_of(sorted(path.rglob("*.py")) if path.is_dir() else [path]).lines
            for path in inside
            if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py")))
        }
        listed = sorted(((count, name) for name, count in lines.items() if name != "__init__"), reverse=True)
        print(
            f"\n{len(listed)} {folder}, {sum(lines.values()):,} lines, half of them up to {listed[len(listed) // 2][0]}"
        )
        for start in range(0, len(listed), 5):
            print("  " + "  ".join(f"{name:<17}{count:>5}" for count, name in listed[start : start + 5]))


def print_row(name: str, weight: Weight) -> None:
    print(f"{name:<14}{weight.lines:>8,}{weight.files:>7,}{weight.functions:>11,}{weight.classes:>9,}")


class Passed(NamedTuple):
    """The functions of Convoscope that an input passes, and the modules that they are in."""

    functions: int
    modules: int


def passed_by(source: Path, settings: dict[str, Any]) -> Passed:
    """What one input passes on its way to a run and its page, when everything is loaded and compiled."""
    import convoscope

    seen: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        del argument
        code = frame.f_code
        if event == "call" and code.co_name[0] != "<" and code.co_filename.startswith(str(SOURCE)):
            seen.add((code.co_filename, code.co_firstlineno))

    with tempfile.TemporaryDirectory() as folder:
        convoscope.score(source, out=Path(folder, "warm"), workers=1, **settings)
        sys.setprofile(note)
        try:
            convoscope.score(source, out=Path(folder, "passed"), workers=1, **settings)
        finally:
            sys.setprofile(None)
    return Passed(len(seen), len({file for file, _ in seen}))


def run() -> None:
    """Lines by package, and what one input of each family passes."""
    print_weights()
    print_readers()
    print()
    print_passed()


def print_passed() -> None:
    """One line for each family."""
    for name, (path, settings) in INPUTS.items():
        passed = passed_by(EXAMPLES / path, settings)
        print(f"{name}: {passed.functions:,} functions in {passed.modules:,} modules")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weight", description=__doc__)
    parser.add_argument("--passed", action="store_true", help="count what one input of each family passes, warm")
    if parser.parse_args().passed:
        print_passed()
    else:
        print_weights()
        print_readers()


if __name__ == "__main__":
    main()
