"""From a run to one HTML file: figures drawn here, conversations packed for the page to unfold.

Logs are hostile input. What this module writes as markup is escaped by the template; what a log
says of a single conversation is packed, and only ever becomes text in the page. The page may run
its own script and style, known by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.analysis.targets import run_checks
from convoscope.errors import UsageError
from convoscope.report.files import write_text
from convoscope.report.page.flow_section import flow_section
from convoscope.report.page.packing import Packed, pack
from convoscope.report.page.sections import sections
from convoscope.report.vacuity import vacuity_panel
from convoscope.runs.ranking import rank
from convoscope.runs.run import PAGE, Run

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

MAX_CONVERSATIONS = 300
MAX_MB = 20.0
_MB = 1_000_000
_HERE = Path(__file__).parent
_NOTHING = Packed("", {}, 0, "")


class Written(NamedTuple):
    """The page that was written: where, how large, and how much of the run is in it."""

    path: Path
    bytes: int
    conversations: int
    in_full: int
    listed: int


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
    facts = {**sections(run, ranking, run_checks(run, targets)), "flow": flow_section(run, ranking)}
    facts["vacuity"] = vacuity_panel(run)
    frame = len(_render(facts, _NOTHING).encode())
    room = int(max_mb * _MB) - frame
    packed = pack(run, ranking, conversations, room)
    markup = _render(facts, packed)
    if len(markup.encode()) > max_mb * _MB:
        needed = f"without a conversation it takes {len(markup.encode()) / _MB:.2f} MB"
        raise UsageError(f"the page does not fit into {max_mb:g} MB", hint=f"{needed}; raise --max-mb")
    write_text(path, markup)
    return Written(path, len(markup.encode()), len(ranking.order), len(packed.stories), packed.listed)


@cache
def _template() -> Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


def _render(facts: Mapping[str, Any], packed: Packed) -> str:
    from markupsafe import Markup

    css, js = (_own(kind, flows=facts["flow"] is not None) for kind in ("css", "js"))
    text = _template().render(
        **facts,
        policy=_policy(css, js),
        # Our own files, which the policy names by their hashes.
        css=Markup(css),
        js=Markup(js),
        coded=_coded,
        bounds=packed.bounds,
        index=packed.listing,
        stories=list(packed.stories.items()),
    )
    # A file name may hold bytes that are no text.
    return text.encode("utf-8", errors="replace").decode()


@cache
def _own(kind: str, *, flows: bool) -> str:
    """The style or the script of the page; with what a picture of a flow needs only where there is one."""
    names = ("flow", "page") if flows else ("page",)
    return "".join((_HERE / f"{name}.{kind}").read_text(encoding="utf-8") for name in names)


def _coded(text: str) -> Markup:
    """What stands between backticks, as code; everything is escaped."""
    from markupsafe import Markup, escape

    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)
    )


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
