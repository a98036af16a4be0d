"""From rows worth a label to two files: CSV, and one offline page that gives the labels back as a file.

Logs are hostile input: the page makes text nodes of them, and may run nothing but its own script.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.labelling import SheetRow
from convoscope.analysis.run_labels import COLUMNS, safe_cell
from convoscope.analysis.words import cut_text
from convoscope.conversation import Conversation
from convoscope.judging.item_questions import ANCHORS
from convoscope.judging.rubrics import Rubric
from convoscope.metrics.registry import known
from convoscope.report.files import write_text
from convoscope.report.label.shown import shown_texts
from convoscope.report.page.page import fill_page, fold, page_file
from convoscope.runs.receipt import canonical_hash
from convoscope.runs.run import Run
from convoscope.views.metric_context import MetricContext, TraceEntry, metric_context

CSV_NAME = "labels.csv"
PAGE_NAME = "labels.html"
_RATINGS = "Ratings:"
_PARAGRAPH = re.compile(r"\n\n|\n(?=- )")
_BOLD = re.compile(r"(?:- )?\*\*([^*]+)\*\*:?\s*(.*)", re.DOTALL)
_LONGEST = 20_000
"""Characters of one text; whatever is longer is cut, and says so."""
_FOR_PEOPLE = {
    "turns": "the one that is marked",
    "heard": "as the agent got them",
    "spoken": "The agent's words are as the log has them.",
    "language": "as you see",
    "anchors": ANCHORS,
    "criteria": "(those that are shown)",
}
"""What a person is shown where a judge gets what the log says."""


class CallText(msgspec.Struct, frozen=True, array_like=True):
    """A line of a call."""

    turn: int
    who: str
    text: str
    kind: str
    """`user`, `agent` or `tool`."""


class LabelRubric(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked."""

    name: str
    version: int
    title: str
    question: str
    criteria: str
    """What each rating means, where the rubric says it in a paragraph."""
    text: list[tuple[str, str]]
    """As the judge is asked, without the data: paragraphs, and the name that some begin with."""
    ratings: list[int]
    passes_at: float
    speaker: str
    """Whose words are rated, where turns are."""


class LabelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question about one conversation."""

    conversation: str
    turn: str
    rubric: str
    chosen: str
    verdicts: str
    shown: str
    """What the judge is shown, where that is more than the conversation. Then it stands for it."""
    about: list[tuple[str, str]]
    """What the rubric shows beside the words: role, instructions, what the recogniser wrote."""


class LabelData(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page holds."""

    run: str
    id: str
    """Of this sheet: what was labelled is kept under it until it is saved."""
    columns: tuple[str, ...]
    rubrics: dict[str, LabelRubric]
    rows: list[LabelRow]
    calls: dict[str, list[CallText]]


class SheetFiles(NamedTuple):
    """Where the sheet was written."""

    csv: Path
    page: Path


def write_sheet(run: Run, rows: Sequence[SheetRow], folder: Path, rubrics: tuple[str, ...] = ()) -> SheetFiles:
    """Write the sheet of some rows into a folder, as CSV and as a page; `rubrics` are folders of the user's."""
    folder.mkdir(parents=True, exist_ok=True)
    files = SheetFiles(folder / CSV_NAME, folder / PAGE_NAME)
    write_text(files.csv, _table(rows))
    write_text(files.page, label_page(run, rows, rubrics))
    return files


def _table(rows: Sequence[SheetRow]) -> str:
    output = io.StringIO(newline="")
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        cells = (row.conversation, row.turn, row.rubric.name, f"{row.rubric.version}", "", "", "", row.chosen)
        writer.writerow([safe_cell(cell) for cell in cells])
    return output.getvalue()


def label_page(run: Run, rows: Sequence[SheetRow], rubrics: tuple[str, ...] = ()) -> str:
    """The page with everything in it."""
    conversations = {row.conversation: run.conversation(row.conversation) for row in rows}
    contexts = {id: metric_context(conversation) for id, conversation in conversations.items()}
    asked = {(row.conversation, row.rubric.name): row.rubric for row in rows}
    texts = {key: shown_texts(rubric, conversations[key[0]], rubrics) for key, rubric in asked.items()}
    shown = [
        LabelRow(
            conversation=row.conversation,
            turn=row.turn,
            rubric=row.rubric.name,
            chosen=row.chosen,
            verdicts=row.verdicts,
            shown=_text(_of_row(texts[row.conversation, row.rubric.name], row.turn)),
            about=list(_about(row, contexts[row.conversation])),
        )
        for row in rows
    ]
    calls = {id: list(_lines(conversations[id], context)) for id, context in contexts.items()}
    data = LabelData(
        run=run.name,
        id=canonical_hash([run.receipt.run_id, [(row.conversation, row.turn, row.rubric.hash) for row in rows]]),
        columns=COLUMNS,
        rubrics={row.rubric.name: _rubric(row.rubric) for row in rows},
        rows=shown,
        calls=calls,
    )
    css = page_file("page.css") + _file("label.css")
    js = '"use strict";\n(() => {\n' + page_file("core.js") + _file("label.js") + "})();\n"
    return fill_page(
        _file("label.html"),
        css,
        js,
        title=f"{run.name}: {len(rows):,} labels to give · Convoscope",
        data=fold(msgspec.json.encode(data)),
    )


def _of_row(texts: Mapping[str, str], turn: str) -> str:
    """The text of a turn or an item; of a conversation with one item a label does not name it."""
    return texts.get(turn, next(iter(texts.values()), "") if not turn else "")


def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _rubric(rubric: Rubric) -> LabelRubric:
    text, _ = rubric.filled({**_FOR_PEOPLE, **rubric.marks})
    paragraphs = [" ".join(paragraph.split()) for paragraph in _PARAGRAPH.split(text) if paragraph.strip()]
    criteria = next((paragraph for paragraph in paragraphs if paragraph.startswith(_RATINGS)), "")
    declared = known(rubric.measures)
    return LabelRubric(
        name=rubric.name,
        version=rubric.version,
        title=rubric.title,
        question=declared.question if declared is not None else rubric.title,
        criteria=criteria.removeprefix(_RATINGS).strip() or _share(rubric),
        text=[_paragraph(paragraph) for paragraph in paragraphs if paragraph != criteria],
        ratings=rubric.ratings,
        passes_at=rubric.passes_at,
        speaker="user" if "user_turns" in rubric.required else "agent",
    )


def _share(rubric: Rubric) -> str:
    """What 0 and 1 mean where a judge lists, and its value is a share."""
    is_share = "items" in rubric.schema.get("properties", ()) and (rubric.low, rubric.high) == (0, 1)
    return (
        f"1: {rubric.passes_at:.0%} or more of what there is to find is as it should be. 0: less." if is_share else ""
    )


def _paragraph(text: str) -> tuple[str, str]:
    """The name in bold that a paragraph begins with, and the rest."""
    match = _BOLD.fullmatch(text)
    return (match[1].replace("_", " "), match[2]) if match else ("", text)


def _lines(conversation: Conversation, context: MetricContext) -> Iterator[CallText]:
    caller = "Caller" if conversation.pipeline else "User"
    for entry in context.conversation_trace:
        yield _line(entry, caller)


def _line(entry: TraceEntry, caller: str) -> CallText:
    turn = entry["turn_id"]
    if entry["type"] == "tool_call":
        return CallText(turn, str(entry["tool_name"]), _text(entry["parameters"]), "tool")
    if entry["type"] == "tool_response":
        return CallText(turn, f"{entry['tool_name']} →", _text(entry["tool_response"]), "tool")
    is_agent = entry["role"] == "assistant"
    return CallText(turn, "Agent" if is_agent else caller, _text(entry["content"]), "agent" if is_agent else "user")


def _about(row: SheetRow, context: MetricContext) -> Iterator[tuple[str, str]]:
    """What the rubric shows of a conversation beside its words."""
    fields = {
        "role": ("The agent is", context.agent_role),
        "instructions": ("Its instructions", context.agent_instructions),
        "date": ("Date", context.current_date_time),
        "tools": ("Its tools", context.agent_tools),
        "goal": ("What the caller wants", context.user_goal),
        "persona": ("Who the caller is", context.user_persona),
        "end": ("How it ended", context.conversation_ended_reason),
    }
    named = (*row.rubric.required, *row.rubric.optional)
    if "user_turns" in named and row.turn.isdecimal():
        turn = int(row.turn)
        yield "The caller said", _text(context.intended_user_turns.get(turn, ""))
        yield "The recogniser wrote", _text(context.transcribed_user_turns.get(turn, ""))
    for name, (title, value) in fields.items():
        if name in named and value:
            yield title, _text(value)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
    return cut_text(text, _LONGEST)
