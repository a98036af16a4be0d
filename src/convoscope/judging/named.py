"""The judges that a user names, as resources of a run."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from convoscope.errors import UsageError
from convoscope.judging.instrument import Instrument, JudgeSettings, checked_name
from convoscope.judging.limits import check_budget
from convoscope.resources.judge import Judge
from convoscope.resources.registry import JUDGE, Resource

JudgeLike = str | Judge | Callable[..., Any]


class _Named:
    """Makes a judge of its name, in whichever process it is wanted."""

    def __init__(self, judge: Any, settings: JudgeSettings) -> None:
        self._judge = judge
        self._settings = settings
        self.__qualname__ = str(judge)

    def __call__(self) -> Instrument:
        return Instrument(self._judge, self._settings)


def judge_resources(judges: Sequence[JudgeLike], settings: JudgeSettings) -> tuple[Any, ...]:
    """A resource for each judge: a name, a function of a prompt and a schema, or a `Judge` object."""
    resources: list[Any] = []
    names: list[str] = []
    if settings.max_questions is not None or settings.max_dollars is not None:
        # All processes of the run count in one file.
        folder = tempfile.mkdtemp(prefix="convoscope-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        settings = msgspec.structs.replace(settings, ledger=f"{folder}/spent.sqlite")
    for judge in judges:
        if isinstance(judge, str):
            name = checked_name(judge)
            names.append("" if name.address else f"{name.provider}/{name.model}")
            resources.append(Resource((JUDGE,), _Named(name, settings)))
        elif isinstance(judge, Judge):
            resources.append(judge)
        elif callable(judge):
            resources.append(Resource((JUDGE,), _Named(judge, settings)))
        else:
            raise UsageError(
                f"{judge!r} is not a judge", hint="name one (openai:MODEL), or give a function or a convoscope Judge"
            )
    check_budget(settings.max_dollars, names)
    return tuple(resources)
