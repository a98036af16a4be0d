"""Names and prose that an engineer reads without guessing: nouns for things, plain English, one name for one class."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "convoscope"
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    ]
)

PRONOUNS = frozenset({"one", "found", "told", "said"})
"""Words that say nothing of the thing they name. Inside a comprehension, the noun is next to them."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

ODD_NAMES = {
    "place": "index, position",
    "places": "positions, decimals",
    "facts": "fields",
    "mine": "predicted",
    "ours": "predicted, own",
    "theirs": "gold",
    "stranger": "unknown label",
    "strangers": "unknown labels",
    "told": "reported, known",
    "tells": "reports, knows",
    "mend": "fix, coerce",
    "mended": "fixed, coerced",
    "settle": "normalise",
    "settled": "normalised",
    "stretch": "span, batch",
    "stretches": "spans, batches",
    "beside": "companion, next_to",
    "notices": "sensitive_to",
    "falls_silent": "undefined_under",
    "at_once": "max_concurrency",
    "otherwise": "status_if_missing, default",
    "standing": "ranked_conversation, open",
    "stands": "position",
    "nobody": "the thing itself",
    "somebody": "the thing itself",
    "whoever": "the thing itself",
}
"""Words that no name has as a part, and better ones."""
ODD_PROSE = {
    r"nobody|somebody|whoever": "say who: the user, the agent, a process, the caller",
    r"(?<!there )(?:is|are|was|were) none(?! of\b)": "there is no …",
    r"(?:stands?|stood|standing) (?:in|on|at|under|below|beside|before|behind|above|among|there|where|first|last)"
    r"(?! (?:for|line))": "is in, is on, comes first",
    r"told": "reported, known, printed",
    r"mend(?:s|ed|ing)?": "fix, coerce",
    r"strangers?": "unknown labels, a reader of the code",
}
"""Patterns that no docstring, comment or message has, and what to write instead."""
ODD_IN_PAGES = {
    **ODD_PROSE,
    r"tells?|telling": "say, show, distinguish",
    r"stretch(?:es)?": "span, batch",
    r"mine|theirs": "predicted, gold",
    r"(?:first|last|same|right|its|the) place(?: in| of(?! work))": "index, position",
    r"(?:at|in) places": "in some positions",
}
"""Patterns that no page of the documentation has."""
ODD_COMMENT = re.compile(rf"#[^\n]*\b(?:{'|'.join(ODD_PROSE)})\b", re.IGNORECASE)
PATTERN_TEXT = re.compile(r"\\[bswd]|\(\?[:!<=]|\w\|\w")
"""A regular expression: what people say in logs is data, not prose."""
QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|“[^”]*”")
NOT_PROSE = re.compile(r"^ *```.*?^ *```$|<!--.*?-->|(?<=\])\([^)]*\)", re.DOTALL | re.MULTILINE)
"""Of a page: blocks of code, logs and outputs; comments; where links lead."""


def pronouns(tree: ast.AST) -> Iterator[str]:
    """Where a pronoun is bound outside of a comprehension or a lambda, each as `line: name`."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, COMPREHENSIONS):
            # Only what the comprehension binds itself is allowed: what a lambda or a call in it binds is too.
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name.strip("_").lower() in PRONOUNS:
                yield f"{node.lineno}: {node.name}"
        elif isinstance(node, ast.arg):
            if node.arg in PRONOUNS:
                yield f"{node.lineno}: {node.arg}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.strip("_") in PRONOUNS:
            yield f"{node.lineno}: {node.id}"
        if isinstance(node, ast.Lambda):
            pending.append(node.body)
            continue
        pending.extend(ast.iter_child_nodes(node))


def odd_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Where a name with an odd word in it is bound, each as `line: name (better names)`."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                pass
            case _:
                continue
        if better := odd_word(name):
            yield f"{node.lineno}: {name} ({better})"


@cache
def odd_word(name: str) -> str:
    """Better names where one word of a name, or two next to each other, is odd."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    pairs = ["_".join(pair) for pair in pairwise(words)]
    return next((ODD_NAMES[word] for word in (*words, *pairs) if word in ODD_NAMES), "")


def odd_prose(source: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Where a docstring, a comment or a text has odd English, each as `line: words (what to write)`."""
    texts = [
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not PATTERN_TEXT.search(node.value)
    ]
    if ODD_COMMENT.search(source):  # to take a module into tokens is slow
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        texts += [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    for line, text in texts:
        if " " not in text.strip():
            continue  # a word of a table, or the name of a field
        yield from odd_words(text, line, ODD_PROSE)


def odd_words(text: str, line: int, patterns: Mapping[str, str]) -> Iterator[str]:
    """Where a text that begins at a line has odd English, outside of quotes."""
    prose = QUOTED.sub(blank, text)
    for pattern, better in patterns.items():
        for match in re.finditer(rf"\b(?:{pattern})\b", prose, re.IGNORECASE if "none" not in pattern else 0):
            yield f"{line + prose[: match.start()].count(chr(10))}: {match[0]!r} ({better})"


def blank(match: re.Match[str]) -> str:
    """Nothing but the ends of lines, so that numbers of lines stay."""
    return "\n" * match[0].count("\n")


def odd_page(text: str) -> list[str]:
    """Where a page has odd English. Its blocks, and what it quotes, are not its own words."""
    lines = NOT_PROSE.sub(blank, text).splitlines()
    return [word for number, line in enumerate(lines, 1) for word in odd_words(line, number, ODD_IN_PAGES)]


class Findings(NamedTuple):
    """What one walk over all modules finds."""

    odd: dict[str, list[str]]
    """By module: where something is odd."""
    homes: dict[str, list[str]]
    """By public class: the modules that define one of that name."""


@pytest.fixture(scope="module")
def findings() -> Findings:
    odd: dict[str, list[str]] = defaultdict(list)
    homes: dict[str, list[str]] = defaultdict(list)
    for module in sorted(SOURCE.rglob("*.py")):
        path = module.relative_to(SOURCE)
        source = module.read_text()
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        wrong = [*pronouns(tree), *odd_names(nodes), *odd_prose(source, nodes)]
        wrong += [f"0: {path} ({better})" for part in path.parts if (better := odd_word(part.removesuffix(".py")))]
        odd[path.as_posix()] += [f"{path}:{line}" for line in wrong]
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path.as_posix())
    return Findings(odd, homes)


def test_names_and_prose_are_plain(findings: Findings) -> None:
    assert {path: wrong for path, wrong in findings.odd.items() if wrong} == {}


def test_pages_are_plain() -> None:
    assert len(PAGES) > 100, "the documentation is not where it is looked for"
    odd = {page.relative_to(ROOT).as_posix(): odd_page(page.read_text()) for page in PAGES}
    assert {path: wrong for path, wrong in odd.items() if wrong} == {}


def test_no_two_public_classes_share_a_name(findings: Findings) -> None:
    assert len(findings.homes) > 100, "the source is not where it is looked for"
    assert {name: where for name, where in findings.homes.items() if len(where) > 1} == {}


def test_odd_words_are_found() -> None:
    # The check itself: a class, a pair of words, a comment, a docstring, a message; and what it leaves alone.
    source = '''
"""Whoever calls this."""
class MyFacts:
    at_once = 1  # it stands in the file
    fine = "nobody"
    said_by = r"\\bnobody\\b here|somebody there"
def place_of(text, someplace):
    """Says "nobody is there"; stands for a value, is None."""
    for one in text:
        raise ValueError(f"{one} cannot be told")
'''
    nodes = list(ast.walk(ast.parse(source)))
    assert list(pronouns(nodes[0])) == ["9: one"]
    assert [text.split(" (")[0] for text in odd_names(nodes)] == ["3: MyFacts", "7: place_of", "4: at_once"]
    prose = sorted(text.split(" (")[0] for text in odd_prose(source, nodes))
    assert prose == ["10: 'told'", "2: 'Whoever'", "4: 'stands in'"]


def test_odd_words_of_pages_are_found() -> None:
    page = """# Nobody spoke

The log tells it. "Nobody", `nobody` and [a link](#nobody-spoke) are quoted.

```console
$ convoscope show nobody
```

- Four stretches. The value is None.
"""
    assert [text.split(" (")[0] for text in odd_page(page)] == ["1: 'Nobody'", "3: 'tells'", "9: 'stretches'"]
