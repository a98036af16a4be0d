"""Whatever happens to a log, reading it ends in conversations or in an error of ours."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convoscope
from convoscope.conversation import from_json, to_json
from ingest.logs import EXAMPLES, write

NAMES = [
    "openai-chat/support.jsonl",
    "openai-chat/single.json",
    "openai-chat/messages-by-line.jsonl",
    "openai-responses/orders.jsonl",
    "convoscope/flow-states.json",
]
JUNK = st.sampled_from(
    [
        *[
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b'"',
            b"\n",
            b"\r\n",
            b"\\",
            b"\x00",
            b"\x1f\x8b",
            b"\xff\xfe",
            b"\xef\xbb\xbf",
        ],
        *[b"null", b"true", b"-1e999", b"NaN", b"{}", b"[]", b'""', b"\\ud800", b"\xf0\x9f", b"9" * 40, b"[" * 2000],
        *[b'"content": 7, ', b'"tool_calls": {}, ', b'"messages": null, ', b'"timestamp": 1e300, '],
    ]
)


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


@pytest.mark.parametrize("name", NAMES)
@settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
@given(draw=st.data())
def test_damage_never_breaks_the_reader(tmp_path: Path, name: str, draw: st.DataObject) -> None:
    whole = (EXAMPLES / name).read_bytes()
    path = write(tmp_path / Path(name).name, draw.draw(damages(whole)))
    with contextlib.suppress(convoscope.ConvoscopeError):
        for conversation in convoscope.read(path):
            assert from_json(to_json(conversation)) == conversation  # what was read can be kept
