"""Full-duplex simulations as tests write them: one character per tick, `#` for speech."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.ingest.formats.tau_voice import READER
from convoscope.ingest.reader import Record, RecordGroup
from convoscope.ingest.report import Notes

COUGH = "vocal_tic", ".[cough][cough]"
PHRASE = "non_directed_phrase", "Hold on a second."


class Laid(NamedTuple):
    """An insert on one tick of the user's chunk."""

    tick: int
    insert: tuple[str, str]
    place: str = "source_effects"


def speech(length: int, *spans: tuple[int, int]) -> str:
    """Silence of that length, with speech from each start to before its end."""
    return "".join("#" if any(start <= tick < end for start, end in spans) else "." for tick in range(length))


def chunk(speaks: bool, **facts: Any) -> dict[str, Any]:
    return {"speech_effects": None, "source_effects": None, "contains_speech": speaks, **facts}


def ticks(
    user: str, agent: str, actions: Mapping[int, str] | None = None, inserts: Iterable[Laid] = ()
) -> list[dict[str, Any]]:
    """A list of ticks, as a simulation file has it."""
    actions = actions or {}
    made = []
    for number, (of_user, of_agent) in enumerate(zip(user, agent, strict=True)):
        action = {"action": actions[number]} if number in actions else None
        made.append(
            {
                "tick_id": number,
                "user_chunk": chunk(of_user == "#", role="user", turn_taking_action=action),
                "agent_chunk": chunk(of_agent == "#", role="assistant", turn_taking_action=None),
            }
        )
    for tick, (type, text), place in inserts:
        made[tick]["user_chunk"][place] = {"speech_insert": {"type": type, "text": text}}
    return made


def simulation(
    user: str, agent: str, actions: Mapping[int, str] | None = None, inserts: Iterable[Laid] = (), **facts: Any
) -> dict[str, Any]:
    return {"id": "call", "task_id": "7", "ticks": ticks(user, agent, actions, inserts), **facts}


def experiment(*simulations: Any, tick: Any = 0.2) -> dict[str, Any]:
    """The results of an experiment in one file."""
    info = {"audio_native_config": {"tick_duration_seconds": tick}, "environment_info": {"domain_name": "hotel"}}
    return {"info": info, "simulations": list(simulations)}


def conversation(*arguments: Any, tick: float = 0.2, **facts: Any) -> Conversation:
    """The same as a conversation, by the reader."""
    whole = experiment(simulation(*arguments, **facts), tick=tick)
    (built,) = READER.build(RecordGroup("call", Path("results.json"), (Record(whole),)), Notes())
    return built
