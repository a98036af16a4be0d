"""The calls of the invented agent, each walked through its flow second by second, all from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from convoscope.demo.story import (
    AGENT,
    CALLER,
    DROPPED,
    HUNG_UP,
    PHRASES,
    PUT_THROUGH,
    SLIPS,
    VERSIONS,
    AgentVersion,
    PhoneCall,
    PlantedFault,
    SlotStep,
    SpeechStep,
    StateStep,
    Step,
    Task,
    ToolStep,
    date,
    draw_task,
    misheard,
)

MIN_TIMES = 3
"""How often a stalling state asks, and an agent talks over a caller who gives up: at least."""
_PER_LETTER, _PER_SIGN_OF_CODE = 0.06, 0.22
_ASKED_AGAIN, _BARGES_IN, _CORRECTS, _MISHEARD_ONCE, _SLIP = 0.06, 0.06, 0.08, 0.05, 0.3
"""Shares of what happens in any call, and loses none."""
_LEAVES_AT = ("choose_day", "choose_sailing", "collect_vehicle")


def walk(draw: random.Random, version: AgentVersion, task: Task, id: str, started: float) -> PhoneCall:
    """A call of a version of the agent, with a fault or without one."""
    broken = draw.random() < version.broken
    fault = None if broken else _drawn_fault(draw, version)
    way = _Walk(draw, version, task, fault)
    ended = way.go()
    steps = sorted(way.steps, key=lambda step: step.start)
    if broken:
        ended, steps = DROPPED, steps[: draw.randint(4, 9)]
    return PhoneCall(
        id=id,
        version=version.name,
        dataset="",
        scenario="",
        trial=0,
        started=started,
        task=task,
        steps=tuple(steps),
        duration=round(max(_end(step) for step in steps) + 0.3, 2),
        completed=None if broken else fault is None,
        ended=ended,
        error=DROPPED if broken else "",
        fault=fault,
    )


def _drawn_fault(draw: random.Random, version: AgentVersion) -> PlantedFault | None:
    chance = draw.random()
    for fault, share in version.faults.items():
        chance -= share
        if chance < 0:
            return fault
    return None


def _end(step: Step) -> float:
    return step.end if isinstance(step, SpeechStep | ToolStep) else step.start


class _End(Exception):
    """The call is over before its goal."""


class _Walk:
    """Goes through the states; what has been said and done is in `steps`."""

    def __init__(self, draw: random.Random, version: AgentVersion, task: Task, fault: PlantedFault | None) -> None:
        self.draw, self.version, self.task, self.fault = draw, version, task, fault
        self.steps: list[Step] = []
        self.now = 0.0
        """When the last sound or tool ended."""
        self.asked: float | None = None
        """Since when the caller waits for a reply."""
        self.state = ""
        self.waiting: list[SlotStep | StateStep] = []
        """What happens when the agent next does something."""
        self.ended = HUNG_UP
        self.leaves_at = draw.choice(_LEAVES_AT)
        self.hasty = draw.sample(PHRASES["hasty"], 5)
        self.overlaps = draw.randint(MIN_TIMES, 4) if fault == PlantedFault.TALK_OVER else 0
        """How often the agent is yet to talk over the caller, who then gives up."""

    def go(self) -> str:
        try:
            self.greet()
            self.identify()
            self.choose_day()
            self.choose_sailing()
            self.collect_vehicle()
            self.confirm()
            self.move()
        except _End:
            pass
        return self.ended

    # What can happen

    def agent(self, text: str, *, early: float = 0.0, wait: float | None = None, **values: str) -> None:
        text = self.task.fill(text, **values)
        pause = self.draw.uniform(*self.version.wait) if wait is None else wait
        start = round(self.now - early if early else self.now + pause, 2)
        self.happen(start)
        waited = 0.0 if early or self.asked is None else round(start - self.asked, 2)
        self.asked = None
        self.now = max(self.now, round(start + self.seconds(text), 2))
        self.steps.append(SpeechStep(start, self.now, AGENT, text, waited=waited))

    def caller(self, text: str, *, after: float | None = None, code: str = "") -> None:
        """The caller speaks; `code` is what the recogniser takes the booking code for."""
        start = round(self.now + (self.draw.uniform(0.4, 1.3) if after is None else after), 2)
        self.now = round(start + self.seconds(self.task.fill(text)), 2)
        self.asked = self.now
        written = self.recognised(self.task.fill(text, code=code or self.task.code))
        self.steps.append(SpeechStep(start, self.now, CALLER, self.task.fill(text), written))

    def phrase(self, occasion: str) -> str:
        return self.draw.choice(PHRASES[occasion])

    def seconds(self, text: str) -> float:
        return 0.3 + _PER_LETTER * len(text) + (_PER_SIGN_OF_CODE * 6 if self.task.code in text else 0)

    def recognised(self, text: str) -> str:
        words = [word.strip(".,?!") for word in text.split()]
        return " ".join(
            SLIPS[word.lower()] if word.lower() in SLIPS and self.draw.random() < _SLIP else word for word in words
        )

    def enter(self, state: str) -> None:
        self.waiting.append(StateStep(0.0, state, self.state))
        self.state = state

    def learn(self, slot: str, value: str) -> None:
        self.waiting.append(SlotStep(0.0, slot, value, self.state))

    def happen(self, at: float) -> None:
        self.steps += [step._replace(start=at) for step in self.waiting]
        self.waiting.clear()

    def tool(self, name: str, arguments: dict[str, str], result: dict[str, Any] | None, lead: str = "") -> None:
        """The agent uses a tool; the bad one may be too slow for the caller, or fail."""
        bad = name == self.version.bad_tool
        if lead:
            self.agent(lead)
        if bad and self.fault == PlantedFault.SLOW_TOOL:
            self.wait_in_vain(name, arguments, result)
        if bad and self.fault == PlantedFault.FAILED_TOOL:
            self.fail(name, arguments)
        self.use(name, arguments, result, self.version.bad_tool_seconds if bad else self.version.tool_seconds)

    def use(
        self,
        name: str,
        arguments: dict[str, str],
        result: dict[str, Any] | None,
        seconds: tuple[float, float],
        error: str = "",
    ) -> None:
        start = round(self.now + 0.25, 2)
        self.happen(start)
        self.now = round(start + self.draw.uniform(*seconds), 2)
        self.steps.append(ToolStep(start, self.now, name, arguments, result, error))

    def hang_up(self, text: str) -> NoReturn:
        self.caller(text)
        raise _End

    def hand_over(self) -> NoReturn:
        self.enter("handed_over")
        self.agent(self.phrase("hands over"))
        self.ended = PUT_THROUGH
        raise _End

    # The states

    def greet(self) -> None:
        self.enter("greet")
        self.agent(self.phrase("greetings"), wait=0.6)
        self.answer("greet", self.phrase("reasons"))

    def identify(self) -> None:
        task, draw = self.task, self.draw
        self.enter("identify")
        lead = self.phrase("thanks")
        heard = misheard(task.code, draw)
        if self.fault == PlantedFault.MISHEARING:
            self.ask(lead, self.phrase("codes"), code=heard)
            self.miss(heard)
            again = misheard(task.code, draw)
            self.caller(self.phrase("spelled"), code=again)
            self.tool("find_booking", {"code": again}, {"booking": None})
            self.agent(self.phrase("not found"), wrong=again)
            self.hang_up(self.phrase("gives up"))
        if draw.random() < _MISHEARD_ONCE:
            self.ask(lead, self.phrase("codes"), code=heard)
            self.miss(heard)
            self.caller(self.phrase("spelled"))
        else:
            self.ask(lead, self.phrase("codes"))
        self.learn("booking", task.code)
        self.tool("find_booking", {"code": task.code}, {"booking": task.code, "name": task.name, "to": task.port})

    def miss(self, code: str) -> None:
        self.tool("find_booking", {"code": code}, {"booking": None})
        self.agent(self.phrase("spell again"), wrong=code)

    def choose_day(self) -> None:
        self.enter("choose_day")
        self.ask(self.phrase("found"), self.phrase("days"))
        self.learn("day", self.task.day)
        self.look(self.task.day)

    def look(self, day: str) -> None:
        sailings = {"sailings": [self.task.first, self.task.second]}
        self.tool("find_sailings", {"day": day}, sailings, self.phrase("looking"))

    def choose_sailing(self) -> None:
        self.enter("choose_sailing")
        self.ask(self.phrase("offers"), self.phrase("choices"))
        self.learn("sailing", self.task.sailing)

    def collect_vehicle(self) -> None:
        self.enter("collect_vehicle")
        self.ask(self.phrase("noted"), self.phrase("lengths"))
        self.learn("metres", self.task.metres)

    def confirm(self) -> None:
        task, draw = self.task, self.draw
        self.enter("confirm")
        if self.fault == PlantedFault.LOOP:
            self.go_round()
        if draw.random() < _CORRECTS:
            self.agent(self.phrase("read back"), day=task.other)
            self.caller(self.phrase("corrections"))
            self.enter("choose_day")
            self.look(task.day)
            self.enter("confirm")
        self.agent(self.phrase("read back"))
        self.caller(self.phrase("yes"))

    def move(self) -> None:
        task = self.task
        self.enter("move")
        arguments = {"code": task.code, "sailing": f"{task.day} {task.sailing}"}
        self.tool("move_booking", arguments, {"status": "moved"}, self.phrase("moving"))
        self.enter("moved")
        self.agent(self.phrase("moved"), wait=0.5)
        self.caller(self.phrase("byes"))

    def ask(self, lead: str, answer: str, code: str = "") -> None:
        """The agent asks what its state asks, and the caller answers, if this is not where it goes wrong."""
        state, question = self.state, self.phrase(f"question {self.state}")
        self.agent(f"{lead} {question}")
        if self.fault == PlantedFault.STALL and state == self.version.stalling_state:
            self.stall()
        if self.fault == PlantedFault.NO_FAULT and state == self.leaves_at:
            self.leave()
        if not self.overlaps and self.draw.random() < _BARGES_IN:
            self.cut_off()
        elif self.fault != PlantedFault.STALL and self.draw.random() < _ASKED_AGAIN:
            self.caller(self.phrase(f"useless {state}"), code=code)
            self.agent(f"{self.phrase('not understood')} {question}")
        self.answer(state, answer, code=code)

    def cut_off(self) -> None:
        """The caller begins before the question is over; the agent stops."""
        last = self.steps[-1]
        if isinstance(last, SpeechStep):
            self.steps[-1] = last._replace(end=round(last.end - 0.4, 2), cut_off=True)
            self.now = round(last.end - 1.9, 2)

    def answer(self, state: str, text: str, code: str = "") -> None:
        """The caller answers, and may be talked over."""
        goes_silent = self.fault == PlantedFault.SILENCE and state == self.leaves_at
        hasty = self.draw.random() < self.version.haste and not goes_silent
        if self.overlaps or hasty:
            self.caller(self.phrase(f"long answers {state}"), code=code)
            early = (
                self.draw.uniform(*self.version.overlap_seconds) if self.overlaps else self.draw.choice((0.7, 0.9, 2.3))
            )
            self.agent(self.hasty.pop(), early=early)
            self.protest()
            return
        self.caller(text, code=code)
        if goes_silent:
            self.caller(self.phrase("waiting"), after=self.draw.uniform(6, 9))
            self.caller(self.phrase("waited too long"), after=self.draw.uniform(5, 8))
            raise _End

    # How it goes wrong

    def protest(self) -> None:
        if not self.overlaps:
            return
        self.overlaps -= 1
        if not self.overlaps:
            self.hang_up(self.phrase("shouted down"))
        if self.draw.random() < 0.6:
            self.caller(self.phrase("protests"))

    def stall(self) -> NoReturn:
        """The state asks for the same thing until the caller gives up, or is put through."""
        draw, question = self.draw, self.phrase(f"question {self.state}")
        answers = draw.sample(PHRASES[f"useless {self.state}"], 4)
        for _ in range(draw.randint(MIN_TIMES, 5) - 1):
            self.caller(answers.pop())
            reworded = draw.random() < self.version.rewording
            again = self.phrase(f"reworded {self.state}") if reworded else question
            self.agent(f"{self.phrase('not understood')} {again}")
        if draw.random() < 0.2:
            self.caller(self.phrase("wants person"))
            self.hand_over()
        self.hang_up(self.phrase("gives up"))

    def leave(self) -> NoReturn:
        if self.draw.random() < 0.5:
            self.caller(self.phrase("wants person"))
            self.hand_over()
        self.hang_up(self.phrase("changed mind"))

    def wait_in_vain(self, name: str, arguments: dict[str, str], result: dict[str, Any] | None) -> NoReturn:
        """The tool takes so long that the caller leaves, before it answers or right after."""
        began = self.now
        self.use(name, arguments, result, self.version.slow_seconds)
        answered = self.now
        self.now = began
        self.caller(self.phrase("waiting"), after=self.draw.uniform(0.35, 0.5) * (answered - began))
        if self.draw.random() < 0.5:
            self.now = answered
            self.agent(self.phrase("too late"), wait=0.4)
        else:
            self.now = max(self.now, answered - 1.5)
        self.hang_up(self.phrase("waited too long"))

    def fail(self, name: str, arguments: dict[str, str]) -> NoReturn:
        """The tool fails, fails again, and the agent can do nothing."""
        for _ in range(2):
            self.use(name, arguments, None, self.version.tool_seconds, error="503 from the booking system")
        self.agent(self.phrase("tool failed"))
        self.hang_up(self.phrase("after failure"))

    def go_round(self) -> NoReturn:
        """It reads back a wrong day, goes back, and reads back another wrong one."""
        month = self.task.day.split()[-1]
        for day in self.draw.sample(range(22, 30), 3):
            wrong = date(day, month)
            self.agent(self.phrase("read back"), day=wrong)
            self.caller(self.task.fill(self.phrase("mixed up"), other=wrong))
            self.enter("choose_day")
            self.look(wrong)
            self.enter("confirm")
        self.hang_up(self.phrase("gives up"))


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
    for index, version in enumerate(versions):
        begin = _FIRST_CALL + index * 14 * _DAY
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
