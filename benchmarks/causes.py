"""Whether an answer names why a call was lost: calls with planted faults, and the cause that each is told under.

A run has some kinds of faults and not others, in states and tools that are drawn. In all of them some callers leave for
no fault of the agent, lines drop, questions are asked twice, replies begin too early, codes are misheard once.

Rules may be tuned on some seeds and kinds. Those for reporting are apart from them, and nobody looks into their calls.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from convoscope.demo import AgentVersion, PlantedFault, make_calls, write_logs

TUNING_SEEDS = range(100, 112)
REPORTING_SEEDS = range(9_000, 9_024)
TUNING_KINDS = (PlantedFault.STALL, PlantedFault.SLOW_TOOL, PlantedFault.TALK_OVER, PlantedFault.MISHEARING)
REPORTING_KINDS = (*TUNING_KINDS, PlantedFault.FAILED_TOOL, PlantedFault.LOOP, PlantedFault.SILENCE)

_RULES = {
    PlantedFault.STALL: "asked_again",
    PlantedFault.SLOW_TOOL: "tool_slow",
    PlantedFault.FAILED_TOOL: "tool_failed",
    PlantedFault.TALK_OVER: "talked_over",
    PlantedFault.MISHEARING: "misheard",
    PlantedFault.LOOP: "loop",
    PlantedFault.SILENCE: "no_reply",
    PlantedFault.NO_FAULT: "none",
}
"""The rule that should speak of each fault."""
_STATES = ("identify", "choose_day", "choose_sailing", "collect_vehicle")
_TOOLS = ("find_booking", "find_sailings", "move_booking")


class LostCall(NamedTuple):
    """A lost call: what was planted, and the cause that the answer tells it under."""

    id: str
    fault: PlantedFault
    place: str
    """The state or tool that the fault is in, where it is in one."""
    rule: str
    subject: str

    @property
    def verdict(self) -> str:
        if self.rule == _RULES[self.fault] and self.place in ("", self.subject):
            return "right"
        return "none" if self.rule == "none" else "wrong"


def draw_version(seed: int, kinds: Sequence[PlantedFault]) -> AgentVersion:
    """An agent with one to four of the kinds of faults, each plain or hard to see; every fourth seed has none."""
    draw = random.Random(f"causes {seed}")
    chosen = draw.sample(kinds, draw.randint(1, 4)) if seed % 4 else []
    shares = {fault: draw.uniform(0.04, 0.16) for fault in chosen}
    return AgentVersion(
        f"agent-{seed}",
        {**shares, PlantedFault.NO_FAULT: draw.uniform(0.02, 0.08)},
        stalling_state=draw.choice(_STATES),
        bad_tool=draw.choice(_TOOLS),
        slow_seconds=draw.choice(((5.0, 9.0), (7.0, 12.0), (9.0, 16.0))),
        overlap_seconds=draw.choice(((1.2, 2.4), (2.2, 2.9))),
        rewording=draw.choice((0.0, 0.3, 0.7)),
        wait=(0.6, draw.uniform(1.2, 2.5)),
        bad_tool_seconds=(0.5, draw.uniform(1.5, 7.5)),
        haste=draw.uniform(0.0, 0.12),
    )


def lost_calls(seed: int, kinds: Sequence[PlantedFault], calls: int, folder: Path) -> list[LostCall]:
    """The lost calls of a seed, a quarter of them of the live line."""
    from convoscope.analysis.answer import make_answer
    from convoscope.runs.make import make_run

    version = draw_version(seed, kinds)
    made = list(make_calls(seed, [version], scenarios=calls - calls // 4, trials=1, live=calls // 4))
    write_logs(made, folder / f"logs-{seed}")
    run = make_run(folder / f"logs-{seed}", metrics=["outcome.success"], out=folder / f"run-{seed}")
    answer = make_answer(run)
    causes = {number: cause for cause in (*answer.causes, *answer.remaining) for number in cause.numbers}
    lost: list[LostCall] = []
    for call in made:
        if call.fault is not None:
            cause = causes[run.number(call.id)]
            lost.append(LostCall(call.id, call.fault, _place(call.fault, version), cause.rule, cause.subject))
    return lost


def _place(fault: PlantedFault, version: AgentVersion) -> str:
    if fault == PlantedFault.STALL:
        return version.stalling_state
    return version.bad_tool if fault in (PlantedFault.SLOW_TOOL, PlantedFault.FAILED_TOOL) else ""


def run(
    seeds: Iterable[int] = REPORTING_SEEDS,
    kinds: Sequence[PlantedFault] = REPORTING_KINDS,
    *,
    calls: int = 120,
    confused: bool = False,
) -> list[LostCall]:
    """Print, for each kind of fault, how many lost calls stand under the right cause."""
    with tempfile.TemporaryDirectory(prefix="convoscope-causes-") as folder:
        lost = [call for seed in seeds for call in lost_calls(seed, kinds, calls, Path(folder))]
    print(f"why calls were lost\n{'planted':14} {'lost':>6} {'right':>7} {'wrong':>7}  no single cause found")
    for fault in (*kinds, PlantedFault.NO_FAULT):
        _print_row(fault, [call for call in lost if call.fault == fault])
    _print_row("all", lost)
    if confused:
        others = Counter((call.fault, call.rule) for call in lost if call.verdict != "right")
        for (fault, rule), count in others.most_common():
            print(f"  {fault} told as {rule}: {count}")
    print()
    return lost


def _print_row(name: str, calls: Sequence[LostCall]) -> None:
    verdicts = Counter(call.verdict for call in calls)
    none = sum(call.rule == "none" for call in calls)
    print(f"{name:14} {len(calls):6} {verdicts['right']:7} {verdicts['wrong']:7} {none:22}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuning", action="store_true", help="the seeds and kinds that rules may be tuned on")
    if parser.parse_args().tuning:
        run(TUNING_SEEDS, TUNING_KINDS, confused=True)
    else:
        run()


if __name__ == "__main__":
    main()
