"""Pictures of a run for a slide or a notebook: SVG of our own, PNG where a rasteriser is installed."""

from convoscope.report.plot.make import Plot, plot

__all__ = ["Plot", "plot"]
