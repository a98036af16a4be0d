"""What an answer leaves out because of its language, in one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from convoscope.analysis.answer.model import Noun
from convoscope.analysis.words import counted
from convoscope.runs.summary import Summary
from convoscope.text.lexicon import lexicon
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, LANGUAGE_UNKNOWN


def unread_languages(summary: Summary, noun: Noun) -> str:
    """How many conversations are in languages that how many figures do not read; nothing where all are read."""
    unread: dict[tuple[str, ...], list[int]] = defaultdict(list)
    unknown: list[int] = []
    for key, reasons in _reasons(summary).items():
        if count := reasons.get(LANGUAGE_NOT_SUPPORTED):
            unread[tuple(summary.by_key[key].languages)].append(count)
        if count := reasons.get(LANGUAGE_UNKNOWN):
            unknown.append(count)
    parts = []
    for languages, counts in sorted(unread.items(), key=lambda one: -len(one[0])):
        which = f"not in {_names(languages)}" if languages else "written without blanks between words"
        is_are = "is" if max(counts) == 1 else "are"
        parts.append(f"{max(counts):,} of {counted(summary.conversations, noun)} {is_are} {which}: {_left_out(counts)}")
    if unknown:
        parts.append(f"the language of {counted(max(unknown), noun)} is not known: {_left_out(unknown)}")
    return "; ".join(parts)


def _left_out(counts: Sequence[int]) -> str:
    return f"{counted(len(counts), 'figure')} {'does' if len(counts) == 1 else 'do'} not read them"


def _reasons(summary: Summary) -> dict[str, Mapping[str, int]]:
    """By metric, how many conversations have no value for which reason."""
    without: dict[str, Mapping[str, int]] = {}
    for entry in summary.not_measured:
        without |= dict.fromkeys(entry.metrics, entry.skipped_reasons)
    return without | {one.key: one.skipped_reasons for one in summary.metrics if not one.reduction}


def _names(languages: tuple[str, ...]) -> str:
    names = sorted(known.name if (known := lexicon(code)) is not None else code for code in languages)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
