"""Makes the calls of the invented agent, all from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from convoscope.demo.calls import PhoneCall
from convoscope.demo.faults import VERSIONS, AgentVersion, PlantedFault
from convoscope.demo.story import draw_task
from convoscope.demo.walk import walk

SEED = 9
SCENARIOS, TRIALS, LIVE = 37, 3, 45
REHEARSAL, LIVE_LINE = "rehearsal", "live"
_FIRST_CALL = 1_772_438_400.0  # 2 March 2026, 8:00 UTC
_DAY, _HOUR, _QUARTER = 86_400, 3_600, 900


def make_calls(
    seed: int = SEED,
    versions: Sequence[AgentVersion] = VERSIONS,
    *,
    scenarios: int = SCENARIOS,
    trials: int = TRIALS,
    live: int = LIVE,
) -> Iterator[PhoneCall]:
    """The calls of each version: `trials` of each scenario, which the versions share, and `live` ones of their own."""
    for place, version in enumerate(versions):
        begin = _FIRST_CALL + place * 14 * _DAY
        yield from _rehearsed(seed, version, begin, scenarios, trials)
        yield from _live(seed, version, begin, live)


def _rehearsed(seed: int, version: AgentVersion, begin: float, scenarios: int, trials: int) -> Iterator[PhoneCall]:
    for number in range(scenarios):
        task = draw_task(random.Random(f"{seed} scenario {number}"))
        for trial in range(trials):
            id = f"{version.name}-{number + 1:02d}-{trial + 1}"
            started = begin + (number * trials + trial) * _QUARTER
            call = walk(random.Random(f"{seed} {id}"), version, task, id, started)
            yield call._replace(dataset=REHEARSAL, scenario=f"crossing-{number + 1:02d}", trial=trial + 1)


def _live(seed: int, version: AgentVersion, begin: float, count: int) -> Iterator[PhoneCall]:
    # What a live caller meant to say is in no log, so that a mishearing could not be seen: none is planted.
    faults = {**version.faults, PlantedFault.MISHEARING: 0.0}
    for number in range(count):
        id = f"{version.name}-live-{number + 1:02d}"
        draw = random.Random(f"{seed} {id}")
        day, hour = divmod(number, 9)
        started = begin + day * _DAY + hour * _HOUR + draw.randint(0, 3_000)
        call = walk(draw, replace(version, faults=faults), draw_task(draw), id, started)
        yield call._replace(dataset=LIVE_LINE)
