"""The head of a metric's page, from its declaration: facts, what it needs, how it is reduced.

`make docs` writes it; a page holds below it what a person wrote: definition, empty cases, example.
"""

from __future__ import annotations

from pathlib import Path

from convoscope.metrics import registry
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.needs import Need
from convoscope.metrics.registry import Declared

PAGES = Path(__file__).parents[2] / "docs" / "metrics"
DEFINITION = "\n## Definition\n"


def head(declared: Declared) -> str:
    """Everything above the definition."""
    observes = declared.observes if isinstance(declared, Metric) else declared.over
    beside = [*declared.also] if isinstance(declared, Metric) else []
    facts = [str(declared.version), declared.unit, declared.better, observes]
    steps = [f"`{declared.reduce.within.name}`", f"`{declared.reduce.across.name}`"]
    lines = [
        f"# {declared.key}",
        "",
        declared.question,
        "",
        "| version | unit | better | observes | in a conversation | over a group | beside it |",
        "|---|---|---|---|---|---|---|",
        f"| {' | '.join([*facts, *steps, ', '.join(beside)])} |",
    ]
    if isinstance(declared, Derived):
        lines += ["", f"Computed from {', '.join(f'`{name}`' for name in declared.inputs)}."]
    elif declared.needs:
        lines += ["", *map(needed, declared.needs)]
    return "\n".join(lines) + "\n"


def needed(need: Need) -> str:
    """What becomes of a conversation without it."""
    return f"- Without {need.unlock}: {need.otherwise.replace('_', ' ')}, `{need.code}`."


def write_heads() -> None:
    """Write the heads of all pages."""
    for key, declared in registry.installed().declared.items():
        page = PAGES / f"{key}.md"
        if page.exists():
            written = page.read_text().partition(DEFINITION)[2]
            page.write_text(head(declared) + DEFINITION + written)


if __name__ == "__main__":
    write_heads()
