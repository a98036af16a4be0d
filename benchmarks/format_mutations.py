"""Logs of each kind made wrong at random: no reader fails, and what is left of the log is not lost in silence.

Made wrong are the real files of `data/formats` in the shared data, or any others: as values, as lines, as bytes.
A text that was read from the good file, and that is in the wrong one too, is in what is read of that, or the report
says more than it says of the good file.
"""

from __future__ import annotations

import copy
import json
import os
import random
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import yaml

import convoscope
from benchmarks.mutations import Draw, mutated, places
from convoscope.conversation import from_json, to_json
from convoscope.conversation.events import moment
from convoscope.errors import ConvoscopeError
from convoscope.ingest.io.json import parsed
from convoscope.ingest.io.packed import zip_ranges
from convoscope.ingest.report import ReadReport

SHARED = Path(os.environ.get("CONVOSCOPE_SHARED") or Path(__file__).parents[2] / "shared") / "data" / "formats"
_LARGEST = 250_000
"""Bytes of a file. Larger ones are of kinds that have smaller ones, too."""
_MARKS = ".,?!…\"'"
_KINDS = frozenset({"role", "type", "object", "event", "kind", "key", "source", "direction", "level"})
"""What a thing is shows in what becomes of it. Ids that hold a log together show in the order of events."""


class Wrong(NamedTuple):
    """A file that is wrong, and what should not be lost of it: no text where its bytes were changed."""

    data: bytes
    done: str
    """What was done to it."""
    texts: frozenset[str] = frozenset()


class Outcome(NamedTuple):
    """What reading a file gave."""

    written: str
    """The conversations, as JSON."""
    noted: Counter[str]
    """What the report says, by name, with counts."""
    raised: str = ""


class Finding(NamedTuple):
    """A file that was not read as it should be."""

    wrong: Wrong
    what: str


def run(rounds: int, seed: int = 1) -> None:
    """Print for each kind of log how many mutated files raised, lost a text in silence, or were read or refused."""
    folders = sorted(path.parent for path in SHARED.glob("*/facts.json"))
    if not folders:
        print(f"mutated logs of each kind: not measured, there is no {SHARED}\n")
        return
    total: Counter[str] = Counter()
    for folder in folders:
        began = process_time()
        counts: Counter[str] = Counter()
        for path in logs_in(folder):
            for finding in findings(path, range(seed * rounds, (seed + 1) * rounds), counts):
                print(f"  {folder.name}/{path.name} with {finding.wrong.done}: {finding.what}"[:400])
        total += counts
        took = process_time() - began
        print(f"  {folder.name:<26}{_words(counts)}, {took:.1f} s")
    print(f"  {'all kinds':<26}{_words(total)}\n")


def _words(counts: Counter[str]) -> str:
    failed = f"{counts['raised']} raised, {counts['lost']} lost a text in silence"
    return f"{counts['files']:>7,} mutated files, {counts['read']:>7,} read, {failed}"


def logs_in(folder: Path) -> list[Path]:
    """The logs of a kind that are not too large."""
    paths = [folder / name for name in json.loads((folder / "facts.json").read_text()) if "/" not in name]
    return [path for path in paths if path.is_file() and path.stat().st_size <= _LARGEST]


def findings(path: Path, seeds: Sequence[int], counts: Counter[str]) -> Iterator[Finding]:
    """What is not as it should be with a log that each of the seeds makes wrong; `counts` gets the totals."""
    log = log_of(path)
    with tempfile.TemporaryDirectory(prefix="convoscope-mutated-") as folder:
        scratch = Path(folder)
        good = outcome(scratch / path.name, log.bytes(log.value))
        texts = frozenset(log.texts(log.value))
        kept = frozenset(text for text in texts - log.copies() if is_held(text, good.written))
        for seed in seeds:
            wrong = log.wrong(random.Random(f"{path.name} {seed}"))
            read = outcome(scratch / path.name, wrong.data)
            counts["files"] += 1
            counts["read"] += bool(read.written)
            if read.raised:
                counts["raised"] += 1
                yield Finding(wrong, read.raised)
            elif not read.noted - good.noted:
                lost = sorted(text for text in wrong.texts & kept if not is_held(text, read.written))
                if lost:
                    counts["lost"] += 1
                    yield Finding(wrong, f"{len(lost)} lost: {', '.join(repr(text[:60]) for text in lost[:4])}")


def outcome(path: Path, data: bytes) -> Outcome:
    """What reading these bytes gives, under this name."""
    path.write_bytes(data)
    written: list[str] = []
    try:
        stream = convoscope.read(path)
        for conversation in stream:
            text = to_json(conversation)
            if from_json(text) != conversation:
                return Outcome("", Counter(), "the conversation is another one after it was written and read")
            written.append(text.decode())
    except ConvoscopeError as error:
        return Outcome("", Counter({"refused": 1, str(error)[:200]: 1}))
    except Exception as error:  # whatever a reader does not expect
        return Outcome("", Counter(), f"{type(error).__name__}: {error}"[:200])
    failed = [problem.message for problem in stream.report.problems if "reader failed" in problem.message]
    return Outcome("\n".join(written), noted_in(stream.report), "; ".join(failed))


def noted_in(report: ReadReport) -> Counter[str]:
    """What a report says of what is missing or was left out."""
    noted = Counter({"problems": report.problem_count})
    noted.update({f"ignored {name}": count for name, count in report.ignored.items()})
    noted.update({f"unknown {name}": count for name, count in report.unknown.items()})
    noted.update({f"same {name}": tally.count for name, tally in report.same.items()})
    for kind, tallies in report.tallies.items():
        noted.update({f"{kind} {name}": tally.count for name, tally in tallies.items()})
    return noted


def is_held(text: str, written: str) -> bool:
    """Whether all lines of a text are in JSON: a reader may join parts, or part the lines of an utterance."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    return all(json.dumps(line, ensure_ascii=False)[1:-1] in written for line in lines)


def _is_content(name: str) -> bool:
    return name not in _KINDS and not name.casefold().endswith("id")


class JsonLog:
    """A log of one JSON value, or of a value a line."""

    def __init__(self, value: Any, *, has_lines: bool = False) -> None:
        self.value, self._has_lines = value, has_lines

    def bytes(self, value: Any, ensure_ascii: bool = False) -> bytes:
        if self._has_lines and isinstance(value, list):
            text = "".join(json.dumps(one, ensure_ascii=ensure_ascii) + "\n" for one in value)
        else:
            text = json.dumps(value, ensure_ascii=ensure_ascii)
        return text.encode("utf-8", "surrogatepass")

    def texts(self, value: Any) -> Iterator[str]:
        """The texts in a value. JSON in a text is looked into; a time or a kind is kept in another way."""
        pending = [value]
        while pending:
            one = parsed(pending.pop())
            if isinstance(one, dict):
                pending += [inner for name, inner in one.items() if not isinstance(inner, str) or _is_content(name)]
            elif isinstance(one, list):
                pending += one
            elif isinstance(one, str) and len(one.strip()) > 2 and moment(one) is None:
                yield one

    def copies(self) -> frozenset[str]:
        """Texts whose words the log has one by one, too, with a time each."""
        alone = {holder[key].strip(_MARKS) for holder, key in places(self.value) if isinstance(holder[key], str)}
        texts = [text for text in self.texts(self.value) if " " in text]
        return frozenset(text for text in texts if all(word.strip(_MARKS) in alone for word in text.split()))

    def wrong(self, draw: Draw) -> Wrong:
        if draw.random() < 0.2:
            return _damaged(self.bytes(self.value), draw)
        value = copy.deepcopy(self.value)
        done: list[str] = []
        for _ in range(draw.randint(1, 3)):
            change = draw.choice(_CHANGES)
            held = list(places(value))
            if held:
                done.append(change.__name__.strip("_"))
                value = change(value, held, draw)
        data = self.bytes(value, ensure_ascii=draw.random() < 0.3)
        return Wrong(data, " and ".join(done) or "nothing", frozenset(self.texts(value)))


class ZipLog(JsonLog):
    """An archive of JSON files: a value by the name of its member."""

    def bytes(self, value: Any, ensure_ascii: bool = False) -> bytes:
        with tempfile.TemporaryFile() as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, one in value.items() if isinstance(value, dict) else ():
                    archive.writestr(name, json.dumps(one, ensure_ascii=ensure_ascii).encode("utf-8", "surrogatepass"))
            stream.seek(0)
            return stream.read()


class TextLog(JsonLog):
    """A log of lines: a transcript, subtitles, server-sent events."""

    def bytes(self, value: Any, ensure_ascii: bool = False) -> bytes:
        del ensure_ascii
        return "\n".join(map(str, value)).encode("utf-8", "surrogatepass")

    def texts(self, value: Any) -> Iterator[str]:
        """What lines say behind a label: words that are long enough to be of one line only."""
        for line in map(str, value):
            if line.startswith("data:"):
                yield from super().texts(line[5:].strip())
            else:
                yield from [line.rpartition(": ")[2]] * (len(line) > 20 and "-->" not in line and "<" not in line)

    def wrong(self, draw: Draw) -> Wrong:
        if draw.random() < 0.3:
            return _damaged(self.bytes(self.value), draw)
        lines = list(self.value)
        at = draw.randrange(len(lines))
        match draw.choice(("dropped", "repeated", "shuffled", "junk")):
            case "dropped":
                del lines[at : at + draw.randint(1, 5)]
            case "repeated":
                lines[at:at] = lines[max(0, at - draw.randint(1, 5)) : at + 1]
            case "shuffled":
                some = lines[at : at + 8]
                draw.shuffle(some)
                lines[at : at + 8] = some
            case "junk":
                lines.insert(at, draw.choice(_ODD_LINES))
        return Wrong(self.bytes(lines), f"changed lines at {at}", frozenset(self.texts(lines)))


_ODD_LINES = [
    "data: {",
    "data: [DONE]",
    "data: null",
    "event: ping",
    "{}",
    "[]",
    "-->",
    "00:00:01,000 --> x",
    ":",
    "\0",
    "﷽" * 50,
    "",
]


def log_of(path: Path) -> JsonLog:
    """A log, by how it is written."""
    data = path.read_bytes()
    if zipfile.is_zipfile(path):
        members = [json.loads(one.data or b"{}") for one in zip_ranges(path, 1)]
        return ZipLog({one["member"]: one["content"] for one in members})
    text = data.decode("utf-8-sig", "replace")
    with suppress(ValueError):
        return JsonLog(json.loads(text))
    with suppress(ValueError):
        return JsonLog([json.loads(line) for line in text.splitlines() if line.strip()], has_lines=True)
    if path.suffix in (".yaml", ".yml"):
        return JsonLog(json.loads(json.dumps(yaml.safe_load(text), default=str)))
    return TextLog(text.splitlines())


def _damaged(data: bytes, draw: Draw) -> Wrong:
    """Bytes that are cut, flipped, or of another encoding."""
    text = data.decode("utf-8", "replace")
    at = draw.randrange(max(1, len(data)))
    match draw.choice(("cut", "flipped", "utf-16", "latin-1", "mark", "line ends", "twice")):
        case "cut":
            return Wrong(data[:at], f"a cut at byte {at}")
        case "flipped":
            return Wrong(data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :], f"another byte at {at}")
        case "utf-16":
            return Wrong(text.encode("utf-16"), "UTF-16")
        case "latin-1":
            return Wrong(text.encode("latin-1", "replace"), "Latin-1")
        case "mark":
            return Wrong(b"\xef\xbb\xbf" + data, "a byte order mark")
        case "line ends":
            return Wrong(data.replace(b"\n", b"\r\n"), "line ends of Windows")
        case _:
            return Wrong(data + b"\n" + data, "all of it twice")


Place = tuple[Any, Any]


def _usual(value: Any, held: list[Place], draw: Draw) -> Any:
    """Wrong values, missing and renamed fields, JSON as text: what is done to records elsewhere, too."""
    del held
    return mutated(value, draw)


def _dropped(value: Any, held: list[Place], draw: Draw) -> Any:
    """All fields of one name are missing."""
    names = sorted({key for holder, key in held if isinstance(holder, dict)})
    name = draw.choice(names) if names else ""
    for holder, key in held:
        if key == name and isinstance(holder, dict) and key in holder:
            del holder[key]
    return value


def _renamed(value: Any, held: list[Place], draw: Draw) -> Any:
    """All fields of one name have another: another case, a new version of the format."""
    names = sorted({key for holder, key in held if isinstance(holder, dict)})
    name = draw.choice(names) if names else ""
    other = draw.choice([name.upper(), f"{name}_v2", name.replace("_", ""), f"x.{name}"])
    for holder, key in held:
        if key == name and isinstance(holder, dict) and key in holder:
            holder[other] = holder.pop(key)
    return value


def _shuffled(value: Any, held: list[Place], draw: Draw) -> Any:
    lists = [value] if isinstance(value, list) else []
    lists += [holder[key] for holder, key in held if isinstance(holder[key], list) and len(holder[key]) > 1]
    if lists:
        draw.shuffle(draw.choice(lists))
    return value


def _repeated(value: Any, held: list[Place], draw: Draw) -> Any:
    """One entry of a list is there again, at the end or right behind."""
    holder, key = draw.choice([(holder, key) for holder, key in held if isinstance(holder, list)] or held)
    if isinstance(holder, list):
        holder.insert(draw.choice([key, len(holder)]), copy.deepcopy(holder[key]))
    return value


def _unknown_role(value: Any, held: list[Place], draw: Draw) -> Any:
    """Some who speaks is something that no reader knows."""
    roles = [(holder, key) for holder, key in held if key in _ROLES and isinstance(holder[key], str)]
    if roles:
        holder, key = draw.choice(roles)
        holder[key] = draw.choice(["narrator", "critic-7", "", "USER ", "SYSTEM2", "\u202euser", "tool_user", "model "])
    return value


_ROLES = ("role", "type", "speaker", "author", "from", "source", "participant", "sender_type", "name", "kind", "event")


def _huge(value: Any, held: list[Place], draw: Draw) -> Any:
    """A number, or a time, that is out of all bounds."""
    numbers = [(holder, key) for holder, key in held if isinstance(holder[key], int | float)]
    holder, key = draw.choice(numbers or held)
    holder[key] = draw.choice([10**400, -(10**30), 1e308, 2**63, -1, 0.1 + 1e17, "9" * 400, 253402300800000])
    return value


def _nested(value: Any, held: list[Place], draw: Draw) -> Any:
    """Junk in junk, deeper than any log is."""
    junk: Any = "deep inside"
    for _ in range(draw.choice([8, 70, 120])):
        junk = draw.choice([[junk], {"content": junk}, {"messages": [junk]}, {"attributes": junk}])
    holder, key = draw.choice(held)
    if isinstance(holder, dict) and draw.random() < 0.5:
        holder["junk"] = junk
    else:
        holder[key] = junk
    return value


_CHANGES: list[Callable[[Any, list[Place], Draw], Any]] = [
    *(_usual, _usual, _dropped, _renamed, _shuffled, _repeated, _unknown_role, _huge, _nested),
]
