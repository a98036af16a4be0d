"""Whatever happens to a log, reading it ends in conversations or in an error of ours."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convoscope
from convoscope.conversation import from_json, to_json
from support.logs import EXAMPLES, write

NAMES = [
    "openai-chat/support.jsonl",
    "openai-chat/single.json",
    "openai-chat/messages-by-line.jsonl",
    "openai-responses/orders.jsonl",
    "convoscope/flow-states.json",
]
JUNK = st.sampled_from(
    [
        *[b"{", b"}", b"[", b"]", b",", b":", b'"', b"\n", b"\r\n", b"\\", b"\x00", b"\x1e"],
        *[b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"\xef\xbb\xbf"],  # the first bytes of the wrappings
        *[b"null", b"true", b"-1e999", b"NaN", b"{}", b"[]", b'""', b"\\ud800", b"\xf0\x9f", b"9" * 40, b"[" * 2000],
        *[b'"content": 7, ', b'"tool_calls": {}, ', b'"messages": null, ', b'"timestamp": 1e300, '],
        *[b'"type": {}, ', b'"type": ["object", "null"], ', b'"role": [], ', b'"role": {}, ', b'"id": [], '],
    ]
)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip that stores": lambda data: gzip.compress(data, 0),  # damage to the packed bytes is damage to the text
    "gzip in two members": lambda data: gzip.compress(data[:500]) + gzip.compress(data[500:]),
    "zstd": zstd.compress,
    "zstd in two frames": lambda data: zstd.compress(data[:500]) + zstd.compress(data[500:]),
}


@st.composite
def damages(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes flipped, deleted, put in, doubled or cut off."""
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.sampled_from([1, 2, 7, 60, 900]))
        how = draw(st.sampled_from(["flip", "delete", "insert", "replace", "double", "cut"]))
        if how == "flip":
            data = (
                data[:at] + bytes(byte ^ (1 << draw(st.integers(0, 7))) for byte in data[at : at + 1]) + data[at + 1 :]
            )
        elif how == "delete":
            data = data[:at] + data[at + length :]
        elif how == "insert":
            data = data[:at] + draw(JUNK) + data[at:]
        elif how == "replace":
            data = data[:at] + draw(JUNK) + data[at + length :]
        elif how == "double":
            data = data[: at + length] + data[at:]
        else:
            data = data[:at]
    return data


often = settings(
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("name", NAMES)
@often
@given(draw=st.data())
def test_damage_never_breaks_the_reader(tmp_path: Path, name: str, draw: st.DataObject) -> None:
    whole = (EXAMPLES / name).read_bytes()
    read_all(write(tmp_path / Path(name).name, draw.draw(damages(whole))))


@pytest.mark.parametrize("pack", PACKERS.values(), ids=list(PACKERS))
@often
@given(name=st.sampled_from(NAMES), draw=st.data())
def test_damage_to_an_archive_never_breaks_the_reader(
    tmp_path: Path, pack: Callable[[bytes], bytes], name: str, draw: st.DataObject
) -> None:
    packed = pack((EXAMPLES / name).read_bytes())
    read_all(write(tmp_path / Path(name).name, draw.draw(damages(packed))))


def read_all(path: Path) -> None:
    """Warnings are errors in tests, so a file that is left open fails here too."""
    with contextlib.suppress(convoscope.ConvoscopeError):
        for conversation in convoscope.read(path):
            assert from_json(to_json(conversation)) == conversation  # what was read can be kept
