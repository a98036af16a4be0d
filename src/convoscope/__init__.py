"""Convoscope: how good are these conversations, and exactly where do they break?

>>> import convoscope
>>> run = convoscope.score("logs/", out="runs/monday")   # doctest: +SKIP
>>> run.summary.metrics[0].value                         # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convoscope.analysis.answer.make import make_answer
    from convoscope.analysis.flows import states
    from convoscope.analysis.plan import plan
    from convoscope.analysis.vacuity import audit
    from convoscope.audio.transcribe import transcribe
    from convoscope.conversation.model import Conversation
    from convoscope.errors import ConvoscopeError
    from convoscope.ingest.read import read
    from convoscope.metrics.declaration import axis, derived, metric
    from convoscope.metrics.judged import template_scorer
    from convoscope.report.compare import compare
    from convoscope.report.export import export
    from convoscope.report.history import history
    from convoscope.report.junit import write_junit
    from convoscope.report.page import write_page
    from convoscope.report.plot import plot
    from convoscope.report.run_markdown import write_markdown
    from convoscope.report.score import prune, score
    from convoscope.report.watch import watch
    from convoscope.resources import Judge, Recogniser, Recording, resource
    from convoscope.runs.days import write_days
    from convoscope.runs.ranking import worst
    from convoscope.runs.run import Run
    from convoscope.scores.observation import Score
    from convoscope.scores.side_tables import SideTable
    from convoscope.views.metric_context import MetricContext
    from convoscope.views.registry import view
    from convoscope.views.standard_data.model import StandardData

__version__ = "0.1.0"

__all__ = [
    "Conversation",
    "ConvoscopeError",
    "Judge",
    "MetricContext",
    "Recogniser",
    "Recording",
    "Run",
    "Score",
    "SideTable",
    "StandardData",
    "__version__",
    "audit",
    "axis",
    "compare",
    "derived",
    "export",
    "history",
    "make_answer",
    "metric",
    "plan",
    "plot",
    "prune",
    "read",
    "resource",
    "score",
    "states",
    "template_scorer",
    "transcribe",
    "view",
    "watch",
    "worst",
    "write_days",
    "write_junit",
    "write_markdown",
    "write_page",
]

_HOME = {
    "Conversation": "convoscope.conversation.model",
    "ConvoscopeError": "convoscope.errors",
    "Judge": "convoscope.resources",
    "MetricContext": "convoscope.views.metric_context",
    "Recogniser": "convoscope.resources",
    "Recording": "convoscope.resources",
    "Run": "convoscope.report.score",
    "Score": "convoscope.scores.observation",
    "SideTable": "convoscope.scores.side_tables",
    "StandardData": "convoscope.views.standard_data.model",
    "audit": "convoscope.analysis.vacuity",
    "axis": "convoscope.metrics.declaration",
    "compare": "convoscope.report.compare",
    "derived": "convoscope.metrics.declaration",
    "make_answer": "convoscope.analysis.answer.make",
    "metric": "convoscope.metrics.declaration",
    "export": "convoscope.report.export",
    "plan": "convoscope.analysis.plan",
    "history": "convoscope.report.history",
    "plot": "convoscope.report.plot",
    "prune": "convoscope.report.score",
    "read": "convoscope.ingest.read",
    "resource": "convoscope.resources",
    "score": "convoscope.report.score",
    "states": "convoscope.analysis.flows",
    "template_scorer": "convoscope.metrics.judged",
    "transcribe": "convoscope.audio.transcribe",
    "view": "convoscope.views.registry",
    "watch": "convoscope.report.watch",
    "worst": "convoscope.runs.ranking",
    "write_days": "convoscope.runs.days",
    "write_junit": "convoscope.report.junit",
    "write_markdown": "convoscope.report.run_markdown",
    "write_page": "convoscope.report.page",
}


def __getattr__(name: str) -> Any:
    # Looked up on first use, so that `import convoscope` costs nothing.
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'convoscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
