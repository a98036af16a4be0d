"""Figures over many nights: how they stand, when they changed, and with which version."""

from convoscope.analysis.history.make import make_history
from convoscope.analysis.history.model import (
    FigureChange,
    FigureLevel,
    History,
    HistoryChange,
    HistoryFigure,
    HistoryNight,
    NightValue,
)

__all__ = [
    "FigureChange",
    "FigureLevel",
    "History",
    "HistoryChange",
    "HistoryFigure",
    "HistoryNight",
    "NightValue",
    "make_history",
]
