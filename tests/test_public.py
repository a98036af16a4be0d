"""What the package promises: its public names, a page for everything, signed metrics, an instant import."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import convoscope
import convoscope.metrics
import convoscope.readers
from convoscope.cli.main import app
from convoscope.ingest import reader
from convoscope.metrics import registry
from convoscope.metrics.declaration import DeclarationOptions, DerivedOptions, MetricOptions
from convoscope.metrics.registry import parent_metric
from convoscope.metrics.signatures import Signed, current, file, sources, unbumped
from docs.metric_pages import SECTION, head_of, page_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OURS = sorted(
    one.key for one in registry.installed().declared.values() if one.function.__module__.startswith("convoscope.")
)
FORMATS = sorted(
    name for name, one in reader.installed().by_name.items() if type(one).__module__.startswith("convoscope.")
)
COMMANDS = sorted(
    {command.name or "" for command in app.registered_commands} | {group.name or "" for group in app.registered_groups}
)
WHOLE = [key for key in OURS if not parent_metric(key, OURS)]
PARTS = [key for key in OURS if parent_metric(key, OURS)]
HEADINGS = ["## Definition", "## Empty cases", "## Reduction", "## Example"]
"""In this order; a page has the first and the last."""


def test_public_names_are_exactly_these() -> None:
    assert convoscope.__all__ == sorted(convoscope.__all__)
    assert dir(convoscope) == convoscope.__all__
    for name in convoscope.__all__:
        assert getattr(convoscope, name) is not None


def test_what_a_reader_needs_is_in_one_module() -> None:
    assert convoscope.readers.__all__ == sorted(convoscope.readers.__all__, key=lambda name: (not name.isupper(), name))
    for name in convoscope.readers.__all__:
        assert getattr(convoscope.readers, name) is not None
    public = {name for name in vars(convoscope.readers) if name.isidentifier() and not name.startswith("_")}
    assert public == set(convoscope.readers.__all__)


def test_what_a_metric_needs_is_in_one_module() -> None:
    """The names that are looked up on first use are those that type checkers see."""
    names = sorted(convoscope.metrics.__all__)
    assert convoscope.metrics.__all__ == sorted(names, key=str.isupper, reverse=True)
    assert dir(convoscope.metrics) == names
    tree = ast.parse(Path(convoscope.metrics.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.col_offset]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}
    assert sorted(homes) == names
    for name, home in homes.items():
        assert getattr(convoscope.metrics, name) is getattr(importlib.import_module(home), name)


@pytest.mark.parametrize("module", [convoscope, convoscope.metrics])
def test_an_unknown_name_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match="no attribute 'scoer'"):
        _ = module.scoer


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = "('msgspec', 'duckdb', 'numpy', 'rich', 'typer')"
    code = f"import sys, convoscope, convoscope.metrics; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_imports_nothing_heavy() -> None:
    heavy = "('duckdb', 'numpy', 'rapidfuzz')"
    code = f"import sys, convoscope.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_scoring_imports_nothing_that_only_judges_need(tmp_path: Path) -> None:
    heavy = "('asyncio', 'sqlite3', 'yaml')"
    chat = tmp_path / "chat.json"
    chat.write_text('{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}')
    code = f"""
import sys
from convoscope.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code
print("imported", [name for name in {heavy} if name in sys.modules])
"""
    command = [sys.executable, "-c", code, "score", str(chat), "--out", str(tmp_path / "run"), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported []"


class TestSignatures:
    def test_no_metric_changed_without_a_new_version(self) -> None:
        assert current() == file().metrics, "a metric changed: raise its version=, then run `make signatures`"

    def test_they_are_of_these_sources(self) -> None:
        assert file().sources == sources(), "sources changed: run `make signatures`, or every run computes them anew"

    def test_a_change_without_a_new_version_is_refused(self) -> None:
        before = {"a.b": Signed(1, "x"), "a.c": Signed(1, "x"), "a.d": Signed(1, "x")}
        after = {"a.b": Signed(1, "y"), "a.c": Signed(2, "y"), "a.d": Signed(1, "x"), "a.e": Signed(1, "z")}
        assert unbumped(before, after) == ["a.b"]


def wrong_on_the_page_of(key: str) -> list[str]:
    """What the page of a metric lacks."""
    page = page_of(key)
    if not begins(page, head_of(page) + SECTION):
        return ["its head is as declared: `make docs` writes it"]
    headings = [one for one in re.findall(r"^## .*$", page.read_text(), re.MULTILINE) if one != "## Sub-metrics"]
    return wrong_on_its_own_page(headings) if page.stem == key else wrong_on_the_page_of_its_family(key, page, headings)


def wrong_on_its_own_page(headings: list[str]) -> list[str]:
    in_order = sorted(headings, key=HEADINGS.index) if set(headings) <= set(HEADINGS) else []
    needed = {HEADINGS[0], HEADINGS[-1]} <= set(headings) and len(set(headings)) == len(headings)
    return [] if needed and headings == in_order else [f"headings are {HEADINGS}"]


def wrong_on_the_page_of_its_family(key: str, page: Path, headings: list[str]) -> list[str]:
    """A section defines the metric, and an example has it in what a command or program prints."""
    examples = "".join(re.findall(r"^```(?:console|text)\n.*?^```$", page.read_text(), re.MULTILINE | re.DOTALL))
    defined = sum(key in one.removeprefix("## ").split(", ") for one in headings) == 1
    shown = re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.@])", examples)
    return ([] if defined else [f"a heading names {key}"]) + ([] if shown else ["an example prints it"])


def section_of(whole: str) -> str:
    """The part of a page that lists the parts of a metric."""
    page = page_of(whole)
    for section in page.read_text().split(SECTION):
        title, _, text = section.partition("\n")
        if title == "Sub-metrics" if page.stem == whole else whole in title.split(", "):
            return text
    return ""


def wrong_in_the_table_of_parts(key: str) -> list[str]:
    """What the page of a metric does not say about a part of it."""
    whole = parent_metric(key, OURS)
    declared = registry.installed().declared[key]
    names = (f"`{declared.name.removeprefix(whole)}`", f"`{declared.name}`")
    rows = [line for line in section_of(whole).splitlines() if any(name in line for name in names)]
    facts = f"| {declared.unit} | {declared.better} |"
    if f"| `{key}` {facts} {declared.question} |" not in page_of(whole).read_text():
        return [f"the page of {whole} has it by its whole name: `make docs` writes that table"]
    if not rows:
        return [f"the page of {whole} lists it"]
    return [] if facts in rows[0] else [f"its row states {facts}"]


def table(heading: str) -> list[list[str]]:
    """The first table below a heading of the page about metrics: titles, then rows."""
    text = (DOCS / "metrics" / "README.md").read_text()
    section = re.split(r"^#+ ", text.partition(f"{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line for line in section.partition("\n|")[2].partition("\n\n")[0].splitlines() if line]
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().removesuffix("|").removeprefix("|"))]
        for row in rows
    ]
    return [cells[0], *cells[2:]]


def link(key: str) -> str:
    return f"[`{key}`]({page_of(key).name})"


def begins(page: Path, text: str) -> bool:
    return page.exists() and page.read_text().startswith(text)


class TestEverythingHasAPage:
    def test_metrics(self) -> None:
        assert {key: wrong for key in WHOLE if (wrong := wrong_on_the_page_of(key))} == {}

    def test_parts_of_metrics(self) -> None:
        assert {key: wrong for key in PARTS if (wrong := wrong_in_the_table_of_parts(key))} == {}

    def test_the_readme_names_every_command(self) -> None:
        readme = (ROOT / "README.md").read_text()
        pages = [page.stem for page in (DOCS / "commands").glob("*.md")]
        assert pages
        assert [name for name in pages if f"[{name}](docs/commands/{name}.md)" not in readme] == []

    def test_the_table_of_metrics_has_a_row_for_each_and_states_its_facts(self) -> None:
        rows = {row[0]: row[1:] for row in table("# Metrics") if row[0].startswith("[")}
        assert list(rows) == [link(key) for key in WHOLE]
        for key in WHOLE:
            declared = registry.installed().declared[key]
            unit, better, _, question = rows[link(key)]
            assert (unit, better, question) == (declared.unit, declared.better, declared.question)

    def test_formats(self) -> None:
        assert [name for name in FORMATS if not begins(DOCS / "formats" / f"{name}.md", f"# {name}\n")] == []

    def test_commands(self) -> None:
        wrong = [name for name in COMMANDS if not begins(DOCS / "commands" / f"{name}.md", f"# convoscope {name}\n")]
        assert wrong == []

    def test_options_of_a_metric(self) -> None:
        section = (DOCS / "guides" / "views-and-resources.md").read_text().partition("## Options of `@metric`")[2]
        tables = [set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) for part in section.split("`@derived`", 1)]
        assert tables == [
            set(MetricOptions.__annotations__),
            DerivedOptions.__annotations__.keys() - DeclarationOptions.__annotations__.keys(),
        ]

    def test_no_page_is_left_over(self) -> None:
        pages = {page.stem for page in (DOCS / "metrics").glob("*.md")}
        assert pages - {"README"} == {page_of(key).stem for key in OURS}
        # Those that are read, and the one that a run is written in.
        assert sorted(page.stem for page in (DOCS / "formats").glob("*.md")) == sorted(
            [*FORMATS, "README", "gold", "summary"]
        )
        assert sorted(page.stem for page in (DOCS / "commands").glob("*.md")) == COMMANDS

    def test_links_lead_somewhere(self) -> None:
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
        for page in pages:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


class TestTheRepositorySpeaksOfTheProductOnly:
    def test_no_absolute_path_of_a_machine(self) -> None:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
        if listed.returncode:
            pytest.skip("not a git checkout")
        pattern = re.compile(r"(?:^|[^\w.~-])/(?:work|root|home)/")
        for name in listed.stdout.split():
            path = ROOT / name
            if path.suffix in {".py", ".md", ".toml", ".json", ".jsonl", ".txt"} and path != Path(__file__):
                assert not pattern.search(path.read_text()), name
