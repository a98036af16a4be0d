"""An invented voice agent: its calls, with faults planted in them, and the logs that they leave.

Everything follows from a seed. Nothing of Convoscope is imported: the logs are read like any others.
"""

from convoscope.demo.logs import write_logs
from convoscope.demo.story import COMPANY, AgentVersion, PlantedFault
from convoscope.demo.walk import make_calls

__all__ = ["COMPANY", "AgentVersion", "PlantedFault", "make_calls", "write_logs"]
