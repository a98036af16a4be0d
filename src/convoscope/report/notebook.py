"""A run in a notebook: its answer, in the words of the terminal and the page."""

from __future__ import annotations

from convoscope.harmless import clean
from convoscope.runs.run import PAGE, Run

__all__ = ["Run", "run_html"]

_TEMPLATE = """
<div style="max-width: 760px; line-height: 1.45">
{%- if not run.receipt.valid %}
<p><b>INVALID</b> since {{ run.receipt.invalidated_at }}: {{ run.receipt.invalid_reason }}</p>
{%- endif %}
<p style="font-size: 1.15em">
{%- for clause in answer.verdict %}<b>{{ clause.lead }}</b>{{ clause.rest }} {% endfor -%}
</p>
{%- if answer.figures %}
<table>
<thead><tr><th>figure</th><th>value</th><th>95 % interval</th><th>n</th><th></th></tr></thead>
<tbody>
{%- for figure in answer.figures %}
<tr><td style="text-align: left" title="{{ figure.name }}">{{ figure.label }}</td>
<td><b>{{ value(figure.value, figure.unit) }}</b></td><td>{{ interval(figure) }}</td>
<td>{{ "{:,}".format(figure.n) }}</td><td style="text-align: left">{{ standing(figure) }}</td></tr>
{%- endfor %}
</tbody>
</table>
{%- endif %}
{%- if causes %}
<ul>
{%- for cause in causes %}
<li><b>{{ "{:,}".format(cause.lost) }} lost</b>: {{ cause.sentence }}
{%- if cause.example is not none %} (<code>{{ cause.example.conversation }}</code>){% endif %}</li>
{%- endfor %}
</ul>
{%- endif %}
<p>{{ notes }}<br>{{ run.folder }}{% if page %}; page <code>{{ page }}</code>{% endif %}</p>
</div>
"""


def run_html(run: Run) -> str:
    """Verdict, key figures, causes, and where the page is. What comes from logs is escaped."""
    # Whoever opens no notebook need not wait for these.
    from jinja2 import Environment

    from convoscope.analysis.answer import make_answer
    from convoscope.analysis.words import value_text
    from convoscope.report.answer_terminal import interval_words, standing_words

    answer = make_answer(run)
    page = run.folder / PAGE
    template = Environment(autoescape=True, finalize=_harmless).from_string(_TEMPLATE)
    return template.render(
        run=run,
        answer=answer,
        causes=[*answer.causes, *answer.remaining],
        notes="; ".join(filter(None, (answer.broken, answer.reading, answer.not_measured))),
        page=page if page.is_file() else "",
        value=value_text,
        interval=interval_words,
        standing=standing_words,
    ).strip()


def _harmless(value: object) -> object:
    return clean(value) if isinstance(value, str) else value


Run.html = run_html
