"""Whether an Ogg file holds all its pages: what decodes one hides what is missing."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

_HEADER = struct.Struct("<4sBBqIIIB")
"""OggS, version, flags, granule position, stream, number of the page, checksum, number of segments."""
_FIRST, _LAST = 0x02, 0x04
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def ogg_fault(path: Path) -> str:
    """What is wrong with the pages of an Ogg file, in words; "" where all are there, or it is no Ogg."""
    numbers: dict[int, int] = {}
    """Of each stream that has not ended: the number of its last page."""
    with path.open("rb") as stream:
        while head := stream.read(_HEADER.size):
            at = stream.tell() - len(head)
            if not head.startswith(b"OggS"):
                # A tag may follow the last page.
                return f"damaged: no page begins at byte {at:,}" if numbers else ""
            if len(head) < _HEADER.size:
                return _cut(at)
            _, _, flags, _, serial, number, checksum, count = _HEADER.unpack(head)
            lengths = stream.read(count)
            body = stream.read(sum(lengths))
            if len(lengths) < count or len(body) < sum(lengths):
                return _cut(at)
            if _checksum(head[:22] + bytes(4) + head[26:] + lengths + body) != checksum:
                return f"damaged: the page at byte {at:,} is not as it was written"
            if not flags & _FIRST and number != numbers.get(serial, number - 1) + 1:
                return f"damaged: page {number:,} follows page {numbers[serial]:,}, at byte {at:,}"
            numbers[serial] = number
            if flags & _LAST:
                del numbers[serial]
    return "cut short: its last page is missing" if numbers else ""


def _checksum(page: bytes) -> int:
    """The checksum of Ogg: that of zlib with all bits in the other order, and none of them flipped."""
    reversed_sum = zlib.crc32(page.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{reversed_sum:032b}"[::-1], 2)


def _cut(at: int) -> str:
    return f"cut short: the page at byte {at:,} is not whole"
