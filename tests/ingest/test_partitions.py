"""However the input is cut, the same conversations come out, in the same order, with the same report."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoscope.ingest.discover import find_inputs
from convoscope.ingest.io import containers as files
from convoscope.ingest.report import NoteTally, ReadReport
from convoscope.ingest.split import MAX_PIECES, Partition, Read, cut, read_partition
from support.logs import ASK, CHAT, as_lines, chat, write, write_json, write_lines

WHOLE = 1 << 30
anew = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    # Each example writes its files anew, so that they may share a folder.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

SIZES = st.integers(1, 400)
GOOD = st.sampled_from(["Hello?", "Un thé 🍵?", "x" * 300]).map(
    lambda text: json.dumps(chat("c@@", text), ensure_ascii=False)
)
ODD = st.sampled_from(
    [
        json.dumps({**CHAT, "shift": "night"}),  # an unknown name
        json.dumps({"messages": [ASK, {"note": "tape changed"}]}),  # something to ignore
        json.dumps({"id": "i@@", "messages": [{**ASK, "timestamp": 1772442000}]}),  # something to infer
        json.dumps({"id": "a@@", "messages": [{**ASK, "timestamp": "soon"}]}),  # something to set aside
    ]
)
REPAIRED = st.just(json.dumps(CHAT)[:-1] + ', "cost": NaN}')
BROKEN = st.sampled_from(["{oops}", '{"messages": [', '{"event": "started"}', "null"])


def records(kind: st.SearchStrategy[str], least: int = 0, most: int = 8) -> st.SearchStrategy[list[str]]:
    """Some records, each with an id of its own: equal records with one id are copies."""
    drawn = st.lists(kind, min_size=least, max_size=most)
    return drawn.map(lambda lines: [line.replace("@@", str(number)) for number, line in enumerate(lines)])


BLANK = st.sampled_from(["", "  ", "\t"])
NEWLINES = st.sampled_from(["\n", "\r\n"])
ENDS = st.sampled_from(["", "\n", "\r\n", "\n\n", "\n \n", "\n  "])
STARTS = st.sampled_from(["", "\ufeff", "\n", "\ufeff\n\n"])


class Result(NamedTuple):
    """What a read with a certain cut gave."""

    reads: list[Read]
    parts: list[ReadReport]
    found: ReadReport

    @property
    def report(self) -> ReadReport:
        return merged([self.found, *self.parts])

    @property
    def counts(self) -> dict[str, Any]:
        """The report, without the examples, which are some of many."""
        report = self.report.ordered()
        return {
            "files": {name: (file.format, file.conversations, file.skipped) for name, file in report.files.items()},
            "records": (report.conversations, report.records_seen, report.records_used),
            "ignored": report.ignored,
            "set_aside": _count(report.set_aside),
            "unknown": report.unknown,
            "repaired": _count(report.repaired),
            "inferred": _count(report.inferred),
            "same": _count(report.same),
            "problems": (report.problem_count, report.problems),
        }


def merged(reports: Sequence[ReadReport]) -> ReadReport:
    whole = ReadReport()
    for report in reports:
        whole.merge(report)
    return whole


def read_cut(path: Path, scratch: Path, size: int) -> Result:
    """Read a path in partitions of about this size, each with a report of its own."""
    found = find_inputs([path])
    result = Result([], [], found.report)
    for partition in cut(found.inputs, found.report, scratch, size):
        part = ReadReport()
        result.reads.extend(read_partition(partition, part))
        result.parts.append(part)
    return result


def same_however_cut(path: Path, scratch: Path, size: int) -> Result:
    """Read the path cut small and in one piece; both must come to the same."""
    small, whole = read_cut(path, scratch / "small", size), read_cut(path, scratch / "whole", WHOLE)
    assert small.reads == whole.reads
    assert small.counts == whole.counts
    return small


@anew
@given(
    lines=records(GOOD | ODD | REPAIRED | BROKEN | BLANK),
    start=STARTS,
    newline=NEWLINES,
    end=ENDS,
    wrap=st.sampled_from([bytes, gzip.compress, zstd.compress]),
    size=SIZES,
)
def test_lines(
    tmp_path: Path,
    lines: list[str],
    start: str,
    newline: str,
    end: str,
    wrap: Callable[[bytes], bytes],
    size: int,
) -> None:
    text = start + newline.join([json.dumps(CHAT), *lines, json.dumps(CHAT)]) + end
    result = same_however_cut(write(tmp_path / "log.jsonl", wrap(text.encode())), tmp_path, size)
    numbered = list(enumerate(text.removeprefix("\ufeff").splitlines(), 1))
    good = [number for number, line in numbered if '"role"' in line]
    assert [read.origin.record for read in result.reads] == good
    blank = [number for number, line in numbered if not line.strip()]
    bad = [number for number, _ in numbered if number not in (*good, *blank)]
    assert [problem.line for problem in result.report.problems] == bad  # the right numbers under any cut
    assert result.report.ignored.get("blank_line", 0) == len(blank)
    assert result.report.records_seen == len(good) + len(bad)
    assert sum(_count(result.report.repaired).values()) == text.count("NaN")


@anew
@given(
    lengths=st.lists(st.integers(100, 700), max_size=6),
    end=st.sampled_from(["", "\n"]),
    wrap=st.sampled_from([bytes, gzip.compress]),
    size=SIZES,
)
def test_lines_that_are_too_long(
    tmp_path: Path, lengths: list[int], end: str, wrap: Callable[[bytes], bytes], size: int
) -> None:
    empty = len(json.dumps(chat("c", "")))
    lines = [
        json.dumps(CHAT),
        *(json.dumps(chat("c", f"{number}" + "x" * (length - empty - 1))) for number, length in enumerate(lengths)),
    ]
    path = write(tmp_path / "log.jsonl", wrap(("\n".join([*lines, json.dumps(CHAT)]) + end).encode()))
    with mock.patch.object(files, "MAX_RECORD_BYTES", 400):
        result = same_however_cut(path, tmp_path, size)
    long = [number for number, length in enumerate(lengths, 2) if length > 400]
    assert [(problem.line, problem.message) for problem in result.report.problems] == [
        (number, files.TOO_LONG) for number in long
    ]
    assert len(result.reads) == len(lines) + 1 - len(long)


@anew
@given(
    elements=records(GOOD | ODD | REPAIRED, 1),
    start=STARTS,
    between=st.sampled_from([",", ",\n", "\r\n,\r\n", " , "]),
    end=ENDS,
    wrap=st.sampled_from([bytes, gzip.compress]),
    size=SIZES,
    block=st.integers(1, 400),
)
def test_arrays(
    tmp_path: Path,
    elements: list[str],
    start: str,
    between: str,
    end: str,
    wrap: Callable[[bytes], bytes],
    size: int,
    block: int,
) -> None:
    text = f"{start}[{between.join(elements)}]{end}"
    path = write(tmp_path / "log.json", wrap(text.encode()))
    whole = read_cut(path, tmp_path, WHOLE)
    with mock.patch.object(files, "_READ_BYTES", block):
        small = read_cut(path, tmp_path, size)
    assert small.reads == whole.reads
    assert small.counts == whole.counts
    assert [read.origin.record for read in small.reads] == list(range(1, len(elements) + 1))
    assert sum(_count(small.report.repaired).values()) == text.count("NaN")
    assert "blank_line" not in small.report.ignored


@anew
@given(elements=records(GOOD, 1, 5), size=SIZES, block=st.integers(1, 400))
def test_a_broken_array(tmp_path: Path, elements: list[str], size: int, block: int) -> None:
    path = write(tmp_path / "log.json", f"[{','.join(elements)},{{oops}},{elements[0]}]")
    with mock.patch.object(files, "_READ_BYTES", block):
        result = same_however_cut(path, tmp_path, size)
    assert len(result.reads) == len(elements)
    (problem,) = result.report.problems
    assert problem.line == len(elements) + 1


@anew
@given(
    keys=st.lists(st.sampled_from("abc"), min_size=1, max_size=12),
    split=st.integers(0, 12),
    size=st.integers(20, 800),
)
def test_messages_by_key(tmp_path: Path, keys: list[str], split: int, size: int) -> None:
    said = [{"conversation_id": key, **ASK, "content": f"{number}?"} for number, key in enumerate(keys)]
    # Two messages of the first conversation at the start, so that no file holds a single one.
    starts = [[{"conversation_id": "a", **ASK, "content": f"Start {file}."}] * 2 for file in (1, 2)]
    logs = tmp_path / "logs"
    write(logs / "1.jsonl", as_lines(*starts[0], *said[:split]).rstrip())
    write(logs / "2.jsonl", as_lines(*starts[1], *said[split:], {"oops": 1}).rstrip())
    small, whole = read_cut(logs, tmp_path / "small", size), read_cut(logs, tmp_path / "whole", WHOLE)
    # Buckets come in the order of hashes; a run puts conversations in the order of their ids.
    in_order, max_concurrency = (sorted(one.reads, key=lambda read: read.conversation.id) for one in (small, whole))
    assert [(read.conversation, read.notes) for read in in_order] == [
        (read.conversation, read.notes) for read in max_concurrency
    ]
    assert small.counts == whole.counts
    # A conversation is counted for each file that told something of it.
    by_file = {name: file.conversations for name, file in small.report.files.items()}
    assert by_file == {"1.jsonl": len({"a", *keys[:split]}), "2.jsonl": len({"a", *keys[split:]})}
    told = {one.id: [one.text(event) for event in one.utterances] for one in (read.conversation for read in in_order)}
    wanted = {key: [f"{number}?" for number, mine in enumerate(keys) if mine == key] for key in keys}
    assert {key: [text for text in texts if not text.startswith("Start")] for key, texts in told.items()} == {
        "a": [],
        **wanted,
    }
    assert [(problem.file, problem.line) for problem in small.report.problems] == [("2.jsonl", 3 + len(said[split:]))]


@anew
@given(lines=records(GOOD | ODD | REPAIRED | BROKEN, 2, 10), data=st.data())
def test_the_order_in_which_parts_finish_does_not_matter(tmp_path: Path, lines: list[str], data: st.DataObject) -> None:
    write(tmp_path / "logs" / "1.jsonl", "\n".join([json.dumps(CHAT), *lines, json.dumps(CHAT)]))
    write_json(tmp_path / "logs" / "2.json", CHAT)
    result = read_cut(tmp_path / "logs", tmp_path, 1)
    shuffled = data.draw(st.permutations(result.parts))
    assert merged([result.found, *shuffled]).ordered() == result.report.ordered()


def test_partitions_are_numbered_and_hold_a_bounded_number_of_files(tmp_path: Path) -> None:
    for number in range(MAX_PIECES + 1):
        write_json(tmp_path / "logs" / f"{number:04d}.json", CHAT)
    partitions = _cut(tmp_path, WHOLE)
    assert [(one.number, len(one.pieces)) for one in partitions] == [(0, MAX_PIECES), (1, 1)]


def test_a_large_file_is_cut_and_small_ones_are_put_together(tmp_path: Path) -> None:
    write_lines(tmp_path / "logs" / "large.jsonl", *[chat(f"c{number}") for number in range(100)])
    for number in range(10):
        write_json(tmp_path / "logs" / f"small-{number}.json", CHAT)
    partitions = _cut(tmp_path, 2000)
    large = [piece for one in partitions for piece in one.pieces if piece.input.name == "large.jsonl"]
    assert len(large) > 3
    assert [piece.start for piece in large[1:]] == [piece.end for piece in large[:-1]]  # nothing between, no overlap
    assert any(len(one.pieces) > 5 for one in partitions)


def test_a_file_is_cut_into_parts_that_are_alike(tmp_path: Path) -> None:
    """25 units of the size are 25 parts, and 6.2 are 6: none is half as large or twice as large as another."""
    lines = [chat(f"c{number:04d}") for number in range(250)]
    path = write_lines(tmp_path / "logs" / "log.jsonl", *lines)
    total = path.stat().st_size
    for size, count in ((total // 25, 25), (int(total / 6.2), 6), (total, 1)):
        weights = [sum(piece.size for piece in one.pieces) for one in _cut(tmp_path, size)]
        assert (len(weights), sum(weights)) == (count, total)
        assert max(weights) < 1.3 * min(weights)


def _count(tallies: Mapping[str, NoteTally]) -> Mapping[str, int]:
    return {code: tally.count for code, tally in tallies.items()}


def _cut(folder: Path, size: int) -> list[Partition]:
    found = find_inputs([folder / "logs"])
    return list(cut(found.inputs, found.report, folder / "scratch", size))
