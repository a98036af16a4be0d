"""The table of docs/formats/README.md: for each kind of log, what reading it gave. `make format-facts` writes it."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support.format_facts import decide
from support.format_reading import NO_CONTENT, Reading, facts_of, folders
from support.suggested_maps import MISREAD, PARTLY, REFUSED, RIGHT, verdict

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "formats" / "README.md"
SHARED = Path(os.environ.get("CONVOSCOPE_SHARED") or ROOT.parent / "shared")
_HEAD = (
    "| Kind | Files | Facts right | Facts compared | Refused: nothing said | Maps right | Partly | Refused | Misread |",
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
)


class Row(NamedTuple):
    """What came out of one kind."""

    kind: str
    files: int
    right: int
    compared: int
    refused: int
    maps: Counter[str]
    wrong: list[str]

    @property
    def written(self) -> str:
        maps = [self.maps[name] for name in (RIGHT, PARTLY, REFUSED, MISREAD)]
        return f"| {' | '.join(map(str, (self.kind, self.files, self.right, self.compared, self.refused, *maps)))} |"


def compared(reading: Reading, kind: str) -> Iterator[tuple[str, bool]]:
    """The facts of a file that can be compared, and whether they are right."""
    for key, fact in reading.facts.items():
        rule = decide(kind, key)
        if callable(rule):
            is_right = rule(reading, fact)
            if is_right is not None:
                yield key, is_right


def row_of(folder: Path, map_file: Path) -> Row:
    """All files of a kind."""
    right = count = refused = 0
    wrong: list[str] = []
    facts = facts_of(folder)
    for name, counted in facts.items():
        reading = Reading(folder / name, counted)
        found = list(compared(reading, folder.name))
        if reading.refusal and all(is_right for _, is_right in found):
            # Nothing was said in it, the facts say: the refusal must give that reason. Nothing counts as right.
            refused += 1
            if not any(words in reading.refusal for words in NO_CONTENT):
                wrong.append(f"{name}: refused without a reason that fits: {reading.refusal}")
            continue
        count += len(found)
        right += sum(is_right for _, is_right in found) if not reading.refusal else 0
        wrong += [f"{name}: {key}" for key, is_right in found if not is_right or reading.refusal]
    maps = Counter(verdict(folder / name, map_file) for name in facts)
    return Row(folder.name, len(facts), right, count, refused, maps, wrong)


def rows_of(root: Path) -> list[Row]:
    """All kinds."""
    with tempfile.TemporaryDirectory() as folder:
        return [row_of(kind, Path(folder) / "map.toml") for kind in folders(root)]


def table(rows: list[Row]) -> str:
    """As Markdown, with all kinds together in the last row."""
    maps: Counter[str] = sum((row.maps for row in rows), Counter())
    sums = (sum(row[index] for row in rows) for index in range(1, 5))  # type: ignore[misc]
    return "\n".join([*_HEAD, *(row.written for row in rows), Row("all", *sums, maps, []).written])


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(_HEAD[0])
    after = rest[rest.index("\n\n") :] if "\n\n" in rest else "\n"
    PAGE.write_text(before + table(rows_of(SHARED / "data" / "formats")) + after)
