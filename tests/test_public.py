"""What the package promises: its public names, a page for everything, signed metrics, an instant import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import convoscope
from convoscope.cli.main import app
from convoscope.ingest import reader
from convoscope.metrics import registry
from convoscope.metrics.declaration import Metric
from convoscope.metrics.parts import whole_of
from convoscope.metrics.signatures import Signed, current, file, signed, sources, unbumped

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
WHOLE = [key for key in OURS if not whole_of(key, OURS)]
PARTS = [key for key in OURS if whole_of(key, OURS)]
HEADINGS = ["## Definition", "## Needs", "## Empty cases", "## Reduction", "## Example"]


def test_public_names_are_exactly_these() -> None:
    assert convoscope.__all__ == sorted(convoscope.__all__)
    assert dir(convoscope) == convoscope.__all__
    for name in convoscope.__all__:
        assert getattr(convoscope, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'scoer'"):
        _ = convoscope.scoer


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = "('msgspec', 'duckdb', 'numpy', 'rich', 'typer')"
    code = f"import sys, convoscope; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_imports_nothing_heavy() -> None:
    heavy = "('duckdb', 'jinja2', 'numpy', 'rapidfuzz')"
    code = f"import sys, convoscope.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class TestSignatures:
    def test_no_metric_changed_without_a_new_version(self) -> None:
        assert current() == signed(), "a metric changed: raise its version=, then run `make signatures`"

    def test_they_are_of_these_sources(self) -> None:
        assert file().sources == sources(), "sources changed: run `make signatures`, or every run computes them anew"

    def test_a_change_without_a_new_version_is_refused(self) -> None:
        before = {"a.b": Signed(1, "x"), "a.c": Signed(1, "x"), "a.d": Signed(1, "x")}
        after = {"a.b": Signed(1, "y"), "a.c": Signed(2, "y"), "a.d": Signed(1, "x"), "a.e": Signed(1, "z")}
        assert unbumped(before, after) == ["a.b"]


class TestEverythingHasAPage:
    @pytest.mark.parametrize("key", WHOLE)
    def test_metric(self, key: str) -> None:
        declared = registry.installed().declared[key]
        page = (DOCS / "metrics" / f"{key}.md").read_text()
        assert page.startswith(f"# {key}\n\n{declared.question}\n"), "title and question come first"
        headings = re.findall(r"^## .*$", page, re.MULTILINE)
        assert [one for one in headings if one != "## Sub-metrics"] == HEADINGS
        facts = f"| {declared.version} | {declared.unit} | {declared.better} |"
        assert facts in page, f"the page must state version, unit and direction as {facts}"
        if isinstance(declared, Metric):
            for need in declared.needs:
                assert f"`{need.code}`" in page, f"the page does not name the reason {need.code}"

    @pytest.mark.parametrize("key", PARTS)
    def test_part_of_a_metric(self, key: str) -> None:
        whole = whole_of(key, OURS)
        declared = registry.installed().declared[key]
        page = (DOCS / "metrics" / f"{whole}.md").read_text()
        assert "\n## Sub-metrics\n" in page
        section = page.partition("\n## Sub-metrics\n")[2].partition("\n## ")[0]
        name = declared.name.removeprefix(whole)
        rows = [line for line in section.splitlines() if f"`{name}`" in line or f"`{declared.name}`" in line]
        assert rows, f"{whole}.md does not list {name}"
        assert f"| {declared.unit} | {declared.better} |" in rows[0]

    @pytest.mark.parametrize("key", WHOLE)
    def test_the_table_of_empty_cases_has_a_row(self, key: str) -> None:
        assert f"| [`{key}`]({key}.md) |" in (DOCS / "metrics" / "README.md").read_text()

    @pytest.mark.parametrize("name", FORMATS)
    def test_format(self, name: str) -> None:
        assert (DOCS / "formats" / f"{name}.md").read_text().startswith(f"# {name}\n")

    @pytest.mark.parametrize("name", COMMANDS)
    def test_command(self, name: str) -> None:
        assert (DOCS / "commands" / f"{name}.md").read_text().startswith(f"# convoscope {name}\n")

    def test_no_page_is_left_over(self) -> None:
        assert sorted(page.stem for page in (DOCS / "metrics").glob("*.md") if page.stem != "README") == WHOLE
        assert sorted(page.stem for page in (DOCS / "formats").glob("*.md")) == FORMATS
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
