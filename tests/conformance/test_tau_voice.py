"""The τ-voice panel: the figures that the authors' own pipeline gives, by the whole road."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import convoscope
from convoscope.conversation import Conversation, from_json, to_json
from convoscope.metrics.interaction.events import InteractionEvent
from convoscope.metrics.interaction.rates import panel
from convoscope.runs.make import make_run as score

LEAST_EVENTS = 10
SUPPORTS = {
    "response_total": "response_rate",
    "yield_total": "yield_rate",
    "backchannel_total": "selectivity_backchannel",
    "vocal_tic_total": "selectivity_vocal_tic",
    "non_directed_total": "selectivity_non_directed",
}


@pytest.fixture(scope="module")
def experiment(shared: Callable[[str], Path]) -> Path:
    return shared("data/tau-voice/experiment")


def figures_of(path: Path, out: Path) -> dict[str, dict[str, Any]]:
    run = score(path, metrics=["interaction"], out=out)
    return {one.metric.removeprefix("interaction."): one for one in run.summary.figures}


def test_figures_of_the_experiment(experiment: Path, tmp_path: Path, ran: Callable[[str, int], None]) -> None:
    path = experiment.parent / "expected_metrics.json"
    if not path.is_file():
        pytest.skip(f"no conformance data: {path} is absent")
    expected = json.loads(path.read_text())
    counts = expected.pop("counts")
    figures = figures_of(experiment, tmp_path / "run")
    for name, value in expected.items():
        assert figures[name].value == pytest.approx(value, abs=1e-9, rel=0), name
    simulations = counts.pop("n_simulations")
    assert figures["response_total"].samples_measured == simulations
    for name, count in counts.items():
        assert figures[name].value == pytest.approx(count, abs=1e-9), name
        if name in SUPPORTS:
            assert figures[SUPPORTS[name]].n == count, name
    # With fewer than ten events of a kind there is no mean of the three (section 8).
    kinds = [counts[name] for name in ("backchannel_total", "vocal_tic_total", "non_directed_total") if name in counts]
    if kinds and min(kinds) < LEAST_EVENTS:
        assert (figures["selectivity"].value, figures["selectivity"].reason) == (None, "fewer_than_ten_events")
    ran("figures and counts of the tau-voice experiment", len(expected) + len(counts) + 1)


class Row(NamedTuple):
    """One column of the table in section 10."""

    ticks: tuple[int, int]
    segments: tuple[int, int]
    responses: tuple[int, int]
    response_ticks: int
    yields: tuple[int, int]
    yield_ticks: int
    backchannels: tuple[int, int]
    effects: tuple[int, int]
    vocal_tics: tuple[int, int]
    non_directed: tuple[int, int]
    interruptions: int


TABLE = {
    "49b2": Row((973, 972), (10, 15), (8, 0), 47, (5, 0), 19, (1, 0), (2, 2), (0, 2), (0, 2), 2),
    "7c6a": Row((1810, 1809), (15, 19), (14, 0), 111, (10, 0), 32, (0, 1), (3, 2), (1, 3), (0, 2), 3),
    "cd9c": Row((1340, 1339), (15, 17), (12, 1), 90, (8, 0), 26, (0, 1), (0, 3), (0, 1), (1, 1), 3),
}


def right_and_wrong(events: Iterable[InteractionEvent]) -> tuple[int, int]:
    verdicts = [event.good for event in events]
    return verdicts.count(True), verdicts.count(False)


def row(conversation: Conversation) -> Row:
    found = panel(conversation)
    assert found is not None
    events, tick = found
    kinds = [effect.kind for effect in events.effects]
    return Row(
        ticks=(round((conversation.outcome.duration or 0) / tick), events.length),
        segments=(len(events.user), len(events.agent)),
        responses=right_and_wrong(events.responses),
        response_ticks=sum(event.wait or 0 for event in events.responses),
        yields=right_and_wrong(events.yields),
        yield_ticks=sum(event.wait or 0 for event in events.yields),
        backchannels=right_and_wrong(events.backchannels),
        effects=(kinds.count("vocal_tic"), kinds.count("non_directed")),
        vocal_tics=right_and_wrong(events.vocal_tics),
        non_directed=right_and_wrong(events.non_directed),
        interruptions=len(events.interruptions),
    )


def test_every_simulation_step_by_step(experiment: Path, ran: Callable[[str, int], None]) -> None:
    conversations = list(convoscope.read(experiment))
    for conversation in conversations:
        # The facts are all in the conversation: written and read again, it says the same.
        for one in (conversation, from_json(to_json(conversation))):
            assert row(one) == (TABLE[one.id[:4]] if one.id[:4] in TABLE else row(conversation)), one.id
    ran("tau-voice simulations, each row of its table", sum(one.id[:4] in TABLE for one in conversations))


def test_where_the_rules_bite(experiment: Path) -> None:
    by_name = {one.id[:4]: one for one in convoscope.read(experiment)}
    events = {name: found.events for name, one in by_name.items() if (found := panel(one))}
    if not TABLE.keys() <= events.keys():
        pytest.skip("no conformance data: the three simulations of the table are absent")
    first, second, third = events["49b2"], events["7c6a"], events["cd9c"]
    assert {event.span.start: event.good for event in first.vocal_tics}[303] is False
    assert [(event.span[:2], event.good) for event in first.backchannels] == [((679, 685), True)]
    assert (874, 879) in [event.span[:2] for event in first.yields]
    assert (874, 879) not in [event.span[:2] for event in first.responses]
    tics = {event.span.start: (event.good, event.where) for event in second.vocal_tics}
    assert tics == {
        26: (False, "in_silence"),
        289: (False, "over_agent"),
        1375: (False, "out_of_turn"),
        1389: (True, "out_of_turn"),
    }
    phrases = {event.span.start: event.good for event in third.non_directed}
    assert phrases[6] is True
    assert 1004 not in phrases
    assert [event.span[:2] for event in third.responses if not event.good] == [(489, 533)]


def test_one_file_gives_the_same_figures(experiment: Path, tmp_path: Path) -> None:
    whole = json.loads((experiment / "results.json").read_text())
    if not any(experiment.glob("simulations/*.json")):
        pytest.skip("no conformance data: the simulations are in one file already")
    whole["simulations"] = [json.loads(path.read_text()) for path in sorted(experiment.glob("simulations/*.json"))]
    single = tmp_path / "single" / "results.json"
    single.parent.mkdir()
    single.write_text(json.dumps(whole))
    apart, together = figures_of(experiment, tmp_path / "apart"), figures_of(single, tmp_path / "together")
    assert together == apart
