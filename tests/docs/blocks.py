"""The documentation as something that can be run: commands, Python and files, with the output that is shown.

| in a document | what it means |
|---|---|
| a block of `console`, or one that begins with `$ ` | commands for bash, each with its output |
| a block of `python` | a program; a block that follows at once, `text` or of no language, is its output |
| another block after a paragraph that begins with `` `NAME.json` ``, or `python` after `` `NAME.py` `` | that file |
| a line `…` in an output | any number of lines, also none |
| `<!-- not run: REASON -->` | the block that follows is left alone |

All of one document happens in its order and in one folder, beside copies of the folders of `examples/` that it names.
"""

from __future__ import annotations

import atexit
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support import warm_process  # noqa: E402 (tests are no package)

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ANY_LINES = "…"
SECONDS = 120
DEMO = ("convoscope demo", "convoscope demo > /dev/null")
"""Several documents begin with it: what the first of them makes, the others get."""
FEW_NEW_LINES = 3
"""So many lines between two that a document shows are shown too; more are left out."""

VARIES = [
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "‹time›"),
    (re.compile(r"\brun-\d{8}T\d{6}Z-[0-9a-f]{6}\b"), "‹run id›"),
    (re.compile(r"\bsha256:[0-9a-f]{64}\b"), "‹hash›"),
    (re.compile(r"(?<=/)([\w.-]+)-[0-9a-f]{8}\b"), r"\1-‹hash›"),
    (re.compile(r'(?<="seconds": )[\d.]+|(?<= time=")[\d.]+(?=")'), "‹seconds›"),
    (re.compile(r'(?<="bytes": )\d+|\b[\d,]+\.\d MB\b'), "‹size›"),
]
"""What is another at each time or on each machine, and what it is compared as."""

_FILE = re.compile(r"`([\w.-]+\.(?:jsonl?|csv|py|sh|toml|yaml))`")
_NOT_RUN = re.compile(r"<!-- not run: .+ -->")


class Step(NamedTuple):
    """Something to do, and the lines of the document that show what comes of it."""

    command: str
    line: int
    """Where the output begins, counted from 0."""
    shown: Sequence[str]


class Done(NamedTuple):
    """What came of a step."""

    step: Step
    printed: Sequence[str]
    code: int

    @property
    def broke(self) -> bool:
        return any(line.startswith("Traceback") for line in self.printed)

    @property
    def as_shown(self) -> bool:
        lines = ["(?:.*\n)*?" if line == ANY_LINES else re.escape(line + "\n") for line in _alike(self.step.shown)]
        printed = "".join(line + "\n" for line in _alike(self.printed))
        return not self.broke and re.fullmatch("".join(lines), printed) is not None

    @property
    def put_right(self) -> Sequence[str] | None:
        """What takes the place of what is shown; None where only the author knows."""
        if self.broke:
            return None
        return abridged(self.step.shown, self.printed) if ANY_LINES in self.step.shown else self.printed

    def told(self, document: Path) -> str:
        """Where the document is not what happened, for a person."""
        where = f"{os.path.relpath(document, ROOT)}:{self.step.line + 1}: $ {self.step.command}"
        shown, printed = _alike(self.step.shown), _alike(self.printed)
        difference = difflib.unified_diff(shown, printed, "shown", f"printed, exit code {self.code}", n=2, lineterm="")
        return "\n".join([where, *difference])


def replay(document: Path) -> Iterator[Done]:
    """Do everything that a document shows, in a folder of its own."""
    text = document.read_text()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for example in _examples(text):
            shutil.copytree(ROOT / "examples" / example, folder / "examples" / example)
        code = 0
        for step in steps(text, folder):
            if step.command in DEMO and not (folder / "runs" / "demo").exists():
                kept, code, printed = _demo()
                shutil.copytree(kept / "runs", folder / "runs", dirs_exist_ok=True)
                printed = "" if step.command.endswith("/dev/null") else printed
            else:
                # The command may ask how the one before it ended.
                code, printed = _run(f"(exit {code})\n{step.command}", folder)
            yield Done(step, printed.splitlines(), code)


def _run(command: str, folder: Path) -> tuple[int, str]:
    """What bash does of a command in a folder: the exit code, and what is printed."""
    path = os.pathsep.join([warm_process.commands(), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout.decode()


@cache
def _demo() -> tuple[Path, int, str]:
    """The folder in which the demo ran, its exit code and what it printed. It takes seconds: it is run once."""
    folder = Path(tempfile.mkdtemp(prefix="demo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder, *_run(DEMO[0], folder)


def _examples(text: str) -> set[str]:
    """The folders of `examples/` that a document names; all of them if it names `examples/` itself."""
    named = set(re.findall(r"examples/([\w.-]*)", text))
    folders = {path.name for path in (ROOT / "examples").iterdir()}
    return named & folders if named <= folders else folders


def steps(text: str, folder: Path) -> Iterator[Step]:
    """What a document does. Its files are written when their turn comes."""
    skipped = False
    tokens = MarkdownIt().parse(text)
    for place, token in enumerate(tokens):
        if token.type == "html_block":
            skipped = _NOT_RUN.fullmatch(token.content.strip()) is not None
        if token.type != "fence" or _is_output(tokens, place):
            continue
        if skipped:
            skipped = False
        elif token.info == "console" or (not token.info and token.content.startswith("$ ")):
            yield from _commands(token)
        elif file := _file(tokens, place):
            (folder / file).write_text(token.content)
        elif token.info == "python":
            program = folder / f"line{token.map[0] + 1}.py"
            program.write_text(token.content)
            after = tokens[place + 1] if _is_output(tokens, place + 1) else None
            shown = after.content.splitlines() if after else [ANY_LINES]
            yield Step(f"python {program.name}", after.map[0] + 1 if after else token.map[1], shown)


def _file(tokens: Sequence[Token], place: int) -> str:
    """The file that a block is the content of, "" where it is none; a program is none unless it is named as one."""
    if not place or tokens[place - 1].type != "paragraph_close":
        return ""
    named = _FILE.match(tokens[place - 2].content)
    is_program = tokens[place].info == "python"
    return named[1] if named and named[1].endswith(".py") == is_program else ""


def _is_output(tokens: Sequence[Token], place: int) -> bool:
    """Whether a token is the block with the output of a program."""
    if not 0 < place < len(tokens) or tokens[place].type != "fence" or tokens[place].info not in ("", "text"):
        return False
    return tokens[place - 1].type == "fence" and tokens[place - 1].info == "python"


def _commands(fence: Token) -> Iterator[Step]:
    command: list[str] = []
    shown: list[str] = []
    first = start = fence.map[0] + 1
    for number, line in enumerate(fence.content.splitlines(), first):
        if line.startswith("$ "):
            if command:
                yield Step("\n".join(command), start, shown)
            command, shown, start = [line.removeprefix("$ ")], [], number + 1
        elif not shown and _goes_on("\n".join(command)):
            command.append(line)
            start = number + 1
        else:
            shown.append(line)
    yield Step("\n".join(command), start, shown)


def _goes_on(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return True
    return False


def _alike(lines: Sequence[str]) -> list[str]:
    """The lines without what varies."""
    text = "\n".join(line.rstrip() for line in lines)
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return text.split("\n") if lines else []


def rewrite(document: Path) -> list[str]:
    """Put right the outputs that are not what happens; returns what only the author can put right."""
    lines = document.read_text().split("\n")
    wrong = [done for done in replay(document) if not done.as_shown]
    # From the end, so that the places of earlier outputs stay.
    for done in reversed(wrong):
        right = done.put_right
        if right is not None:
            lines[done.step.line : done.step.line + len(done.step.shown)] = right
    document.write_text("\n".join(lines))
    return [done.told(document) for done in wrong if done.put_right is None]


def abridged(shown: Sequence[str], printed: Sequence[str]) -> list[str] | None:
    """What was printed, without what the document leaves out; None where most of what it shows is gone.

    A line is known again by its first column, or by most of its letters.
    """
    kept: list[str] = []
    place, lost, leaves_out = 0, 0, False
    for line in shown:
        if line == ANY_LINES:
            leaves_out = True
            continue
        found = _known_again(line, printed, place)
        if found is None:
            lost += 1
            continue
        between = printed[place:found]
        kept += [ANY_LINES] if between and (leaves_out or len(between) > FEW_NEW_LINES) else between
        kept.append(printed[found])
        place, leaves_out = found + 1, False
    if place < len(printed):
        kept += [ANY_LINES] if leaves_out else printed[place:]
    return kept if lost < len(shown) / 2 else None


def _known_again(line: str, printed: Sequence[str], place: int) -> int | None:
    first = line.partition("  ")[0].strip()
    for number in range(place, len(printed)):
        if printed[number].partition("  ")[0].strip() == first:
            return number
    near = difflib.get_close_matches(line, printed[place:], n=1, cutoff=0.7)
    return place + printed[place:].index(near[0]) if near else None


if __name__ == "__main__":
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        documents = [Path(name).resolve() for name in sys.argv[1:]] or DOCUMENTS
        remaining = [told for left in pool.map(rewrite, documents) for told in left]
    sys.exit("\n\n".join(remaining) or None)
