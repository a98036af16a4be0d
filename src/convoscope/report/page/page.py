"""From a run to one HTML file: a shell of markup, style and script, and packed data for it to unfold.

Logs are hostile input. The script makes text nodes of what it unfolds, never markup. The page may run its own script
and style, known by their hashes, and nothing else. The data are a list of the conversations, and the worst in full, as
many as there is room for.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from convoscope.analysis.answer import (
    Answer,
    GroupApart,
    LostConversation,
    look_at_lost,
    make_answer,
    rank_reasons,
)
from convoscope.analysis.compare.make import compare_versions_of
from convoscope.analysis.compare.model import RunComparison
from convoscope.analysis.targets import Check, GivenTarget, run_checks
from convoscope.analysis.words import counted, folder_text
from convoscope.errors import UsageError
from convoscope.harmless import clean_json
from convoscope.metrics.flow.states import STATE_TABLE
from convoscope.report.files import write_text
from convoscope.report.page.call import CallMaker, CallRank
from convoscope.report.page.compare import CompareScreen, compare_screen, paired_list
from convoscope.report.page.figures import FigureData, FiguresScreen, calls_link, dimension_key, figures_screen
from convoscope.report.page.index import ENDED, MAX_LISTED, Index, ListData, ending_of, list_data, make_index
from convoscope.report.page.overview import Overview, overview
from convoscope.report.page.sound import LINKED, AudioOptions, SoundMaker, sound_maker
from convoscope.report.panels import PagePanel, panels
from convoscope.runs.audit import NO_FLOW
from convoscope.runs.conversations import records
from convoscope.runs.ranking import Ranking, rank
from convoscope.runs.reliability import has_judges
from convoscope.runs.run import PAGE, Run
from convoscope.storage import as_path

if TYPE_CHECKING:
    from convoscope.report.page.flow_screen import Flows, FlowScreen
    from convoscope.report.page.judges import JudgesScreen

_MB = 1_000_000
_MAX_ONE = 2 * _MB
_MAX_UNFOLDED = 64 * _MB
"""What a search would have to unfold."""
_WORDS = 600
"""Letters that say how much of the run is here."""
_TAGS = 60
"""Letters around each packed conversation."""


class Packed(NamedTuple):
    """The list and the conversations in full, packed, and how much of the run that is."""

    listing: str
    stories: dict[int, str]
    """By their position in the list."""
    listed: int
    bounds: list[str]


def pack(
    run: Run, data: ListData, ranking: Ranking, wanted: int, room: int, sounds: SoundMaker | None = None
) -> Packed:
    """The list first, in at most half of the room; then the worst conversations that fit."""
    total = len(ranking.order)
    listed = min(MAX_LISTED, total)
    index = make_index(run, data, ranking, ranking.order[:listed].tolist())
    folded = _index(index, ())
    while len(folded) > room // 2 and listed > 1:
        listed //= 2
        index = make_index(run, data, ranking, ranking.order[:listed].tolist())
        folded = _index(index, ())
    wanted = min(wanted, total)
    # The list also says which are here in full: room for all that were asked for.
    folded = _index(index, range(min(wanted, listed)))
    stories = _fill(run, data, ranking, min(wanted, listed), room - len(folded) - _WORDS, sounds)
    folded = _index(index, list(stories))
    return Packed(folded, stories, listed, _bounds(data.noun, total, listed, len(stories)))


def _index(index: Index, full: Sequence[int]) -> str:
    return fold(msgspec.json.encode({"index": index, "full": list(full)}))


def _fill(
    run: Run, data: ListData, ranking: Ranking, wanted: int, room: int, sounds: SoundMaker | None
) -> dict[int, str]:
    stories: dict[int, str] = {}
    unfolded = _MAX_UNFOLDED
    calls = CallMaker(run.summary, data.noun, trust_judges=run.trusts_judges, sounds=sounds)
    for position, record in enumerate(records(run, ranking.order[:wanted].tolist(), calls.stories)):
        number = record.number
        rank = CallRank(data.outcomes[number], data.why[number], ranking.because([number])[0])
        body = msgspec.json.encode(calls.call(record, rank))
        folded = fold(body)
        if len(folded) + _TAGS <= min(room, _MAX_ONE) and len(body) <= unfolded:
            room -= len(folded) + _TAGS
            unfolded -= len(body)
            stories[position] = folded
    return stories


def _bounds(noun: str, total: int, listed: int, full: int) -> list[str]:
    if full == total:
        return [f"All {counted(total, noun)} {'is' if total == 1 else 'are'} here in full."]
    lines = [f"Words of {full:,} of {counted(total, noun)} are in this page; `convoscope show ID` has the rest."]
    if listed < total:
        lines.append(
            f"The list holds the worst {listed:,}; {total - listed:,} are left out, `convoscope sql` finds them."
        )
        lines.append("Figures, causes and counts are over all.")
    lines.append("`convoscope report --conversations N --max-mb M` makes a larger page.")
    return lines


def fold(body: bytes) -> str:
    """Packed, and in letters that mean nothing to HTML."""
    return base64.b64encode(gzip.compress(body, compresslevel=5, mtime=0)).decode()


MAX_CONVERSATIONS = 400
MAX_MB = 5.0
NO_STATES = "These logs name no states. Events of states, or `state` in each turn, would draw the flow."
_COMMENTS_AND_INDENTS = re.compile(r"^ *(?://.*\n|/\*.*\*/\n)?", re.MULTILINE)
"""Lines that are only a comment, and what lines begin with: each page would carry them."""
_SCRIPTS = (
    "core",
    "overview",
    "figures",
    "judges",
    "breaks",
    "calls",
    "call",
    "lanes",
    "sound",
    "compare",
    "live",
    "main",
)
_NOTHING = Packed("", {}, 0, [])


class Written(NamedTuple):
    """The page that was written: where, how large, and how much of the run is in it."""

    path: Path
    bytes: int
    conversations: int
    in_full: int
    listed: int
    notes: tuple[str, ...] = ()
    """Recordings that were not copied, or not put into the page."""
    copies: frozenset[str] = frozenset()
    """The names of the copies of recordings that it plays."""


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


class LiveCall(msgspec.Struct, frozen=True):
    """A conversation that ended within the last hour."""

    at: float
    """Seconds since 1970, when it came."""
    word: str
    id: str
    text: str
    agent: str
    length: str


class LivePage(msgspec.Struct, frozen=True, kw_only=True):
    """What is new in logs that are followed. The page has it, and looks for it again beside itself, in `NEWS`."""

    written: float
    """Seconds since 1970, as `newest`, when a log was last written to."""
    newest: float
    every: float
    """Seconds between two looks of the page."""
    renewed: float = 60.0
    """Seconds within which this is written again, as long as the logs are followed."""
    ended: bool = False
    """The logs are not followed any more."""
    stalled: float
    """Seconds without a new line after which the page says so."""
    logs: str = ""
    run: str = ""
    """The id of the run: another one has other figures than the page."""
    total: int = 0
    running: int = 0
    """Conversations that go on: they are not counted."""
    answer: str = ""
    """What the last hour came to."""
    targets: list[str] = []
    """Those that the whole run misses."""
    calls: list[LiveCall] = []
    """The newest first."""


NEWS = "live.html"


def write_news(folder: Path, live: LivePage) -> None:
    """Write what is new beside the page of a run, for pages that are open."""
    js = page_file("news.js")
    news = msgspec.json.encode(live).decode()
    write_text(folder / NEWS, fill_page(page_file("news.html"), "", js, news=clean_json(news)))


class PageData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"folder": "place"}):
    """Everything that the page shows but the list and the conversations."""

    name: str
    folder: str
    """As a command names the run."""
    where: str = ""
    """Where that command is called, if the page does not show the folder."""
    noun: str
    order: str
    total: int
    overview: Overview
    figures: FiguresScreen
    breaks: Breaks
    compare: CompareScreen | None = None
    judges: JudgesScreen | None = None
    opens: str = ""
    """The screen that is shown first; else the overview."""
    live: LivePage | None = None


def write_page(
    run: Run,
    out: str | os.PathLike[str] | None = None,
    *,
    conversations: int = MAX_CONVERSATIONS,
    max_mb: float = MAX_MB,
    targets: Sequence[GivenTarget] = (),
    live: LivePage | None = None,
    with_audio: bool = False,
    embed_audio: bool = False,
    use_audio: bool = True,
) -> Written:
    """Write the page of a run, into the run if `out` is not given.

    At most the worst `conversations` are in it in full, and fewer where the file would grow beyond
    `max_mb`; the page says which. Recordings are linked; `with_audio` copies them into the run, and `embed_audio`
    puts those that fit into the page, the worst conversations first. Without `use_audio` no recording is opened.
    The page of logs that are followed has a screen for what is new: `live`.
    """
    path = as_path(out) if out is not None else run.folder / PAGE
    sound = AudioOptions(with_audio, embed_audio, use_audio)
    return _write(run, path, conversations, max_mb, targets, compare_versions_of(run), [run], sound=sound, live=live)


def write_compare_page(
    comparison: RunComparison,
    runs: Sequence[Run],
    out: str | os.PathLike[str],
    *,
    conversations: int = MAX_CONVERSATIONS,
    max_mb: float = MAX_MB,
) -> Written:
    """Write one page of what is compared. It opens on the comparison; its list is of the last run.

    Of the first run, the conversations that were fixed or broke are in it, as many as fit into a third of the room.
    """
    return _write(runs[-1], as_path(out), conversations, max_mb, (), comparison, runs, opens="compare")


def _write(
    run: Run,
    path: Path,
    conversations: int,
    max_mb: float,
    targets: Sequence[GivenTarget],
    comparison: RunComparison | None,
    runs: Sequence[Run],
    opens: str = "",
    sound: AudioOptions = LINKED,
    live: LivePage | None = None,
) -> Written:
    if conversations < 0:
        raise UsageError(f"--conversations must be at least 0, not {conversations}")
    if not 0 < max_mb < float("inf"):
        raise UsageError(f"--max-mb must be above 0, not {max_mb:g}")
    ranking = rank(run)
    lost, answer = look_at_lost(run), make_answer(run, targets)
    checks = run_checks(run, targets)
    flows = find_flows(run, answer, ranking, lost, checks)
    links = flows.links if flows else {}
    paired = paired_list(comparison, runs, list(ENDED)) if comparison is not None else None
    listing = list_data(run, answer, ranking, lost, paired)
    figures = FigureData(run, answer.noun, checks)
    room = int(max_mb * _MB)
    base = _baseline_stories(comparison, runs, min(conversations, MAX_CONVERSATIONS), room // 3)
    data = PageData(
        name=run.name
        if not opens
        else " and ".join(side.name for side in comparison.sides)
        if comparison
        else run.name,
        folder=folder_text(run),
        where=", in the folder that holds the run" if run.folder.is_absolute() else "",
        noun=answer.noun,
        order=answer.order,
        total=answer.conversations,
        overview=overview(run, answer, figures, links, flows.losses.visits if flows else None),
        figures=figures_screen(figures),
        breaks=Breaks(
            flow=flows.screen if flows else None,
            no_states="" if flows else NO_STATES,
            groups=[_group(one, answer, links, {facet.key for facet in listing.facets}) for one in answer.groups],
            alike=answer.alike,
            panels=panels(run),
        ),
        compare=compare_screen(comparison, runs, base) if comparison is not None else None,
        judges=find_judges(run, answer),
        opens=opens,
        live=live,
    )
    folded = fold(msgspec.json.encode(data))
    sounds = sound_maker(run, path, answer.noun, sound)
    room -= len(_render(answer, data, folded, _NOTHING, base, sounds).encode())
    packed = pack(run, listing, ranking, conversations, room, sounds)
    markup = _render(answer, data, folded, packed, base, sounds)
    size = len(markup.encode())
    if size > max_mb * _MB + sounds.letters:
        needed = f"without a conversation it takes {size / _MB:.2f} MB"
        raise UsageError(f"the page does not fit into {max_mb:g} MB", hint=f"{needed}; raise --max-mb")
    write_text(path, markup)
    return Written(path, size, len(ranking.order), len(packed.stories), packed.listed, sounds.notes, sounds.copies)


def find_flows(
    run: Run, answer: Answer, ranking: Ranking, lost: Sequence[LostConversation], checks: Sequence[Check] = ()
) -> Flows | None:
    """What the page says of states. Most runs have none, and need no module that draws them."""
    if not run.tables.files(STATE_TABLE.name):
        return None
    from convoscope.report.page.flow_screen import flow_screen

    return flow_screen(run, answer, ranking, lost, checks)


def find_judges(run: Run, answer: Answer) -> JudgesScreen | None:
    """What the page says of judges. Most runs have none, and need no module for them."""
    if not has_judges(run.summary):
        return None
    from convoscope.report.page.judges import judges_screen

    return judges_screen(run, answer.noun, folder_text(run))


def _group(group: GroupApart, answer: Answer, links: Mapping[tuple[str, str], str], facets: Set[str]) -> GroupRow:
    """A group of conversations leads to their list, one of a state to the state."""
    name = ", ".join(f"{name} {value}" for name, value in group.by.items())
    if all(dimension_key(one) in facets for one in group.by):
        href = calls_link(group.by)
    else:
        href = links.get((group.by.get("flow", NO_FLOW), group.by.get("state", "")), "")
    return GroupRow(name, group.sentence, group.worse, counted(group.conversations, answer.noun), href)


def _baseline_stories(comparison: RunComparison | None, runs: Sequence[Run], most: int, room: int) -> dict[int, str]:
    """Of two runs, the conversations of the first that were fixed or broke, by index of their pair; packed."""
    if comparison is None or comparison.by or not comparison.pairs:
        return {}
    run, after = runs[0], comparison.sides[-1].name
    pairs = [pair for pair in comparison.pairs if pair.side == after][:most]
    numbers = [pair.before_number for pair in pairs]
    ranking = rank(run)
    lost = {one.number: one for one in look_at_lost(run)}
    why = rank_reasons(run, numbers, list(lost.values()))
    calls = CallMaker(run.summary, comparison.noun, trust_judges=run.trusts_judges)
    by_number: dict[int, str] = {}
    for record in records(run, numbers, calls.stories):
        number = record.number
        ranked = CallRank(ending_of(number, ranking, lost), why[number], ranking.because([number])[0])
        folded = fold(msgspec.json.encode(calls.call(record, ranked)))
        if len(folded) + _TAGS <= min(room, _MAX_ONE):
            room -= len(folded) + _TAGS
            by_number[number] = folded
    return {index: by_number[number] for index, number in enumerate(numbers) if number in by_number}


def _render(
    answer: Answer, data: PageData, folded: str, packed: Packed, base: Mapping[int, str], sounds: SoundMaker
) -> str:
    # All scripts as one, in a scope of its own.
    js = '"use strict";\n(() => {\n' + "".join(page_file(f"{name}.js") for name in _SCRIPTS) + "})();\n"
    return fill_page(
        page_file("page.html"),
        page_file("page.css"),
        js,
        title=f"{data.name}: {counted(data.total, data.noun)} · Convoscope",
        media=sounds.sources,
        # A page that is opened from a disk is not "itself" to every browser.
        frames="'self' file:" if data.live is not None else "",
        headline=answer.headline,
        place=data.folder,
        facts=folded,
        index=packed.listing,
        bounds=fold(msgspec.json.encode(packed.bounds)),
        stories=Markup(
            "\n".join(
                f'<script type="text/plain" id="{name}-{position}">{story}</script>'
                for name, stories in (("story", packed.stories), ("base", base), ("sound", sounds.blocks))
                for position, story in stories.items()
            )
        ),
    )


class Markup(str):
    """Text that is put into a page as it is."""


def fill_page(template: str, css: str, js: str, media: str = "", frames: str = "", **parts: str) -> str:
    """A page of its parts, which are escaped.

    Its policy allows its own script and style, sound from `media`, and frames from `frames`.
    """
    whole = {"policy": escape(_policy(css, js, media, frames)), "css": css, "js": js}
    whole |= {name: part if isinstance(part, Markup) else escape(part) for name, part in parts.items()}
    # In one pass: what is put in is not looked at again.
    text = re.sub(r"@(\w+)@", lambda match: whole[match[1]], template)
    # A file name may hold bytes that are no text.
    return text.encode("utf-8", errors="replace").decode()


@cache
def page_file(name: str) -> str:
    """A file of the page's shell."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return text if name.endswith(".html") else _COMMENTS_AND_INDENTS.sub("", text)


def _policy(css: str, js: str, media: str, frames: str) -> str:
    """What the page may do: run its own script and style. No network, no form, no markup from text.

    A page with recordings may play what is beside it, or in it; nothing from elsewhere. The page of logs that are
    followed may look for news beside it, in a frame.
    """
    script, style = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (js, css))
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; "
        f"{f'media-src {media}; ' if media else ''}{f'frame-src {frames}; ' if frames else ''}"
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
