"""Writes the pronouncing dictionary of the package, from the CMU dictionary as its project publishes it.

`python tests/support/pronunciations.py cmudict.dict`: the words, and their phones without stress, one letter for each
phone, packed. The dictionary is under the licence beside the file that is written.
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

from convoscope.audio.phones import FILE, PHONES


def packed(dictionary: str) -> bytes:
    """`read R EH1 D` becomes `read Kef`: lines without comments, each pronunciation once, in the file's order."""
    letters = {name: letter for letter, name in PHONES.items()}
    lines: dict[str, None] = {}
    for line in dictionary.splitlines():
        word, *phones = line.partition("#")[0].split()
        spelled = "".join(letters[phone.rstrip("012")] for phone in phones)
        lines[f"{word.partition('(')[0]} {spelled}"] = None
    return lzma.compress("\n".join(lines).encode(), preset=9)


if __name__ == "__main__":
    FILE.write_bytes(packed(Path(sys.argv[1]).read_text(encoding="utf-8")))
