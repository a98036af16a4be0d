"""The head of a page of metrics, from their declarations: facts, what they need, how they are reduced.

A metric has a page of its own, `KEY.md`, or shares the page of its family, `FAMILY.md`. `make docs` writes the
heads; a page holds below it what a person wrote: definitions, empty cases, example.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from convoscope.judging.rubrics import judged_nonsense
from convoscope.metrics import registry
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.needs import Need
from convoscope.metrics.registry import Declared, parent_metric

PAGES = Path(__file__).parents[2] / "docs" / "metrics"
SECTION = "\n## "
NOTICED = "- With a judge that passes [`judge check`](../commands/judge.md#check), notices"


def listed(kinds: Sequence[str]) -> str:
    return ", ".join(f"`{kind}`" for kind in kinds)


def page_of(key: str) -> Path:
    """The page of a metric: that of its family where it has none of its own."""
    family = PAGES / f"{key.partition('.')[0]}.md"
    own = PAGES / f"{key}.md"
    return family if family.exists() and not own.exists() else own


def metrics_of(page: Path) -> list[str]:
    """The metrics that share a page, without those that are parts of others."""
    keys = sorted(registry.installed().declared)
    return [key for key in keys if page_of(key) == page and not parent_metric(key, keys)]


def parts_of(page: Path) -> list[Declared]:
    """The parts of the metrics of a page: they have no definition of their own."""
    declared = registry.installed().declared
    keys = sorted(declared)
    parents = {key: parent_metric(key, keys) for key in keys}
    return [declared[key] for key, parent in parents.items() if parent and page_of(parent) == page]


def parts_table(parts: Sequence[Declared]) -> list[str]:
    """What each part asks."""
    if not parts:
        return []
    rows = [f"| {' | '.join((f'`{one.key}`', one.unit, one.better, one.question))} |" for one in parts]
    return ["", "| part | unit | better | question |", "|---|---|---|---|", *rows]


def head(declared: Declared, parts: Sequence[Declared]) -> str:
    """Everything above the definition, on a metric's own page."""
    facts = [str(declared.version), declared.unit, declared.better, *computation(declared)]
    lines = [
        f"# {declared.key}",
        "",
        declared.question,
        "",
        "| version | unit | better | observes | in a conversation | over a group | beside it |",
        "|---|---|---|---|---|---|---|",
        f"| {' | '.join(facts)} |",
    ]
    if isinstance(declared, Derived):
        lines += ["", f"Computed from {', '.join(f'`{name}`' for name in declared.inputs)}."]
    elif declared.needs:
        lines += ["", *(f"{needed(need)}." for need in declared.needs)]
        if kinds := judged_nonsense(declared.key):
            lines += [f"{NOTICED} {listed(kinds)}."]
    return "\n".join([*lines, *parts_table(parts)]) + "\n"


def family_head(family: str, members: Sequence[Declared], parts: Sequence[Declared]) -> str:
    """Everything above the definitions, on the page of a family."""
    alike: dict[str, list[str]] = {}
    for declared in members:
        facts = " | ".join([declared.unit, declared.better, *computation(declared)])
        alike.setdefault(facts, []).append(f"`{declared.key}` ({declared.version})")
    lines = [
        f"# {family}",
        "",
        "| metric (version) | unit | better | observes | in a conversation | over a group | beside it |",
        "|---|---|---|---|---|---|---|",
        *(f"| {', '.join(names)} | {facts} |" for facts, names in alike.items()),
    ]
    return "\n".join([*lines, *shared_needs(members), *parts_table(parts)]) + "\n"


def computation(declared: Declared) -> list[str]:
    """What is looked at, and how it becomes a figure."""
    observes = declared.observes if isinstance(declared, Metric) else declared.over
    beside = [*declared.also] if isinstance(declared, Metric) else []
    return [observes, f"`{declared.reduce.within.name}`", f"`{declared.reduce.across.name}`", ", ".join(beside)]


def shared_needs(members: Sequence[Declared]) -> list[str]:
    """Each need of a family once, with the metrics that have it; what the derived ones are computed from."""
    having: dict[str, list[str]] = {}
    for declared in members:
        for need in declared.needs if isinstance(declared, Metric) else ():
            having.setdefault(needed(need), []).append(f"`{declared.key.partition('.')[2]}`")
    lines = [
        f"{need}." if len(names) == len(members) else f"{need}: {', '.join(names)}." for need, names in having.items()
    ]
    computed: dict[str, list[str]] = {}
    for declared in members:
        if isinstance(declared, Derived):
            inputs = ", ".join(f"`{name}`" for name in declared.inputs)
            computed.setdefault(inputs, []).append(f"`{declared.key.partition('.')[2]}`")
    noticed: dict[str, list[str]] = {}
    for declared in members:
        if kinds := judged_nonsense(declared.key):
            noticed.setdefault(listed(kinds), []).append(f"`{declared.key.partition('.')[2]}`")
    lines += [f"{NOTICED} {kinds}: {', '.join(names)}." for kinds, names in noticed.items()]
    lines += [f"- Computed from {inputs}: {', '.join(names)}." for inputs, names in computed.items()]
    return ["", *lines] if lines else []


def needed(need: Need) -> str:
    """What becomes of a conversation without it."""
    return f"- Without {need.unlock}: {need.status_if_missing.replace('_', ' ')}, `{need.code}`"


def head_of(page: Path) -> str:
    """The head that a page of metrics begins with."""
    declared = registry.installed().declared
    members = [declared[key] for key in metrics_of(page)]
    parts = parts_of(page)
    return head(declared[page.stem], parts) if page.stem in declared else family_head(page.stem, members, parts)


def write_heads() -> None:
    """Write the heads of all pages."""
    for page in sorted({page_of(key) for key in registry.installed().declared}):
        if page.exists():
            _, first, written = page.read_text().partition(SECTION)
            page.write_text(head_of(page) + first + written)


if __name__ == "__main__":
    write_heads()
