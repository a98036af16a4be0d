"""From a run to one HTML file: a shell of markup, style and script, and packed data for it to unfold.

Logs are hostile input. The script makes text nodes of what it unfolds, never markup. The page may run its own script
and style, known by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.analysis.answer import Answer, GroupApart, look_at_lost, make_answer
from convoscope.analysis.targets import run_checks
from convoscope.analysis.words import counted, place_text
from convoscope.errors import UsageError
from convoscope.report.files import write_text
from convoscope.report.page.figures import FigureFacts, FiguresScreen, calls_link, dimension_key, figures_screen
from convoscope.report.page.flow_screen import FlowScreen, flow_screen
from convoscope.report.page.index import list_facts
from convoscope.report.page.overview import Overview, overview
from convoscope.report.page.packing import Packed, fold, pack
from convoscope.report.panels import PagePanel, panels
from convoscope.runs.audit import NO_FLOW
from convoscope.runs.ranking import rank
from convoscope.runs.run import PAGE, Run

MAX_CONVERSATIONS = 400
MAX_MB = 5.0
NO_STATES = "These logs name no states. Events of states, or `state` in each turn, would draw the flow."
_MB = 1_000_000
_HERE = Path(__file__).parent
_SCRIPTS = ("core", "overview", "figures", "breaks", "calls", "call", "main")
_NOTHING = Packed("", {}, 0, [])


class Written(NamedTuple):
    """The page that was written: where, how large, and how much of the run is in it."""

    path: Path
    bytes: int
    conversations: int
    in_full: int
    listed: int


class GroupRow(msgspec.Struct, frozen=True):
    """A group that stands apart, and where the page lists its conversations."""

    name: str
    sentence: str
    worse: bool
    calls: str
    href: str


class Breaks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where it breaks: states, groups, and what families declare."""

    flow: FlowScreen | None = None
    no_states: str = ""
    groups: list[GroupRow] = []
    alike: str = ""
    panels: tuple[PagePanel, ...] = ()


class PageFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that the page shows but the list and the conversations."""

    name: str
    place: str
    """As a command names the run."""
    noun: str
    order: str
    total: int
    overview: Overview
    figures: FiguresScreen
    breaks: Breaks


def write_page(
    run: Run,
    out: str | os.PathLike[str] | None = None,
    *,
    conversations: int = MAX_CONVERSATIONS,
    max_mb: float = MAX_MB,
    targets: Sequence[str] = (),
) -> Written:
    """Write the page of a run, into the run if `out` is not given.

    At most the worst `conversations` are in it in full, and fewer where the file would grow beyond
    `max_mb`; the page says which.
    """
    if conversations < 0:
        raise UsageError(f"--conversations must be at least 0, not {conversations}")
    if not 0 < max_mb < float("inf"):
        raise UsageError(f"--max-mb must be above 0, not {max_mb:g}")
    path = Path(out) if out is not None else run.folder / PAGE
    ranking = rank(run)
    lost, answer = look_at_lost(run), make_answer(run, targets)
    flows = flow_screen(run, answer, ranking, lost)
    links = flows.links if flows else {}
    listing = list_facts(run, answer, ranking, lost)
    figures = FigureFacts(run, answer.noun, run_checks(run, targets))
    facts = PageFacts(
        name=run.name,
        place=place_text(run),
        noun=answer.noun,
        order=answer.order,
        total=answer.conversations,
        overview=overview(run, answer, figures, links),
        figures=figures_screen(figures),
        breaks=Breaks(
            flow=flows.screen if flows else None,
            no_states="" if flows else NO_STATES,
            groups=[_group(one, answer, links, {facet.key for facet in listing.facets}) for one in answer.groups],
            alike=answer.alike,
            panels=panels(run),
        ),
    )
    folded = fold(msgspec.json.encode(facts))
    room = int(max_mb * _MB) - len(_render(answer, facts, folded, _NOTHING).encode())
    packed = pack(run, listing, ranking, conversations, room)
    markup = _render(answer, facts, folded, packed)
    size = len(markup.encode())
    if size > max_mb * _MB:
        needed = f"without a conversation it takes {size / _MB:.2f} MB"
        raise UsageError(f"the page does not fit into {max_mb:g} MB", hint=f"{needed}; raise --max-mb")
    write_text(path, markup)
    return Written(path, size, len(ranking.order), len(packed.stories), packed.listed)


def _group(group: GroupApart, answer: Answer, links: Mapping[tuple[str, str], str], facets: Set[str]) -> GroupRow:
    """A group of conversations leads to their list, one of a state to the state."""
    name = ", ".join(f"{name} {value}" for name, value in group.by.items())
    if all(dimension_key(one) in facets for one in group.by):
        href = calls_link(group.by)
    else:
        href = links.get((group.by.get("flow", NO_FLOW), group.by.get("state", "")), "")
    return GroupRow(name, group.sentence, group.worse, counted(group.conversations, answer.noun), href)


def _render(answer: Answer, facts: PageFacts, folded: str, packed: Packed) -> str:
    css, js = _style(), _script()
    parts = {
        "policy": escape(_policy(css, js)),
        "title": escape(f"{facts.name}: {counted(facts.total, facts.noun)} · Convoscope"),
        "headline": escape(answer.headline),
        "place": escape(facts.place),
        "css": css,
        "js": js,
        "facts": folded,
        "index": packed.listing,
        "bounds": fold(msgspec.json.encode(packed.bounds)),
        "stories": "\n".join(
            f'<script type="text/plain" id="story-{place}">{story}</script>' for place, story in packed.stories.items()
        ),
    }
    # In one pass: what is put in is not looked at again.
    text = re.sub(r"@(\w+)@", lambda match: parts[match[1]], _shell())
    # A file name may hold bytes that are no text.
    return text.encode("utf-8", errors="replace").decode()


@cache
def _shell() -> str:
    return (_HERE / "page.html").read_text(encoding="utf-8")


@cache
def _style() -> str:
    return (_HERE / "page.css").read_text(encoding="utf-8")


@cache
def _script() -> str:
    """All scripts as one, in a scope of its own."""
    parts = ((_HERE / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    return '"use strict";\n(() => {\n' + "".join(parts) + "})();\n"


def _policy(css: str, js: str) -> str:
    """What the page may do: run its own script and style. No network, no frame, no form, no markup from text."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_source_hash(js)}'",
            f"style-src '{_source_hash(css)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
