"""Metrics of the form of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

from convoscope.conversation import Conversation
from convoscope.conversation.events import Json
from convoscope.metrics.answer.forms import Unchecked, fit_of
from convoscope.metrics.declaration import SHARE
from convoscope.metrics.item_fields import missing, needs_of
from convoscope.metrics.perturbations import EMPTY_AGENT, PARROT, SAYS_EVERYTHING
from convoscope.metrics.presets import item_metric
from convoscope.scores.observation import Observation, measured, not_applicable, unmeasured
from convoscope.views.items import cases


@item_metric(
    "answer.format_validity",
    version=2,
    label="answers in the right form",
    importance=5,
    unit=SHARE,
    needs=needs_of("format_validity"),
    sensitive_to=(EMPTY_AGENT, PARROT, SAYS_EVERYTHING),
)
def format_validity(conversation: Conversation) -> Iterator[Observation]:
    """Does the answer have the form that was asked for?

    1 if the whole of it has the form that `expected_format` names, else 0. What is checked is
    `extracted_content` where the item has it, else the answer; blanks around it do not count, nor does
    a code fence around JSON, XML, CSV or a table. Forms: JSON, a JSON Schema, a markdown table, a
    regular expression, and others that can be told for certain. A form that cannot be checked is
    unmeasured, `unknown_format`; so is one whose schema or pattern cannot be used.
    """
    for case in cases(conversation):
        field = missing(case, "format_validity")
        if field is not None:
            yield unmeasured(case.subject, f"no_{field}", field)
            continue
        expected, extracted = case.expected.format or "", case.extras.get("extracted_content")
        if not expected.strip():
            yield not_applicable(case.subject, "empty_expected_format")
            continue
        content = (case.answer or "") if extracted is None else _text(extracted)
        try:
            fit = fit_of(content, expected)
        except Unchecked as error:
            yield unmeasured(case.subject, error.reason, error.detail[:200])
            continue
        details = {"format": fit.format, "checked": "agent_response" if extracted is None else "extracted_content"}
        if fit.fault:
            details["fault"] = fit.fault
        yield measured(case.subject, 0.0 if fit.fault else 1.0, details=details)


def _text(extracted: Json) -> str:
    return extracted if isinstance(extracted, str) else json.dumps(extracted, ensure_ascii=False)
