"""Where the work of a run is done: an engine maps a function over partitions, in any order."""

from convoscope.scoring.engines.engine import Engine, WorkerDied
from convoscope.scoring.engines.local import LocalEngine
from convoscope.scoring.engines.named import engine_for

__all__ = ["Engine", "LocalEngine", "WorkerDied", "engine_for"]
