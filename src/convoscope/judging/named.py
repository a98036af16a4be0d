"""The judges that a user names, as resources of a run."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any, NamedTuple

import msgspec

from convoscope.errors import UsageError
from convoscope.judging.instrument import Instrument, JudgeSettings, checked_name
from convoscope.judging.limits import check_budget
from convoscope.resources.judge import Judge
from convoscope.resources.registry import JUDGE, ReadyResource, Resource, misfit
from convoscope.storage import OwnFolder

JudgeLike = str | Judge | Callable[..., Any]


class NamedJudges(NamedTuple):
    """The judges of a run, and the one that looks again."""

    resources: tuple[Resource, ...]
    second_look: Resource | None


class _Named:
    """Makes a judge of its name, in whichever process it is wanted."""

    def __init__(self, judge: Any, settings: JudgeSettings) -> None:
        self._judge = judge
        self.settings = settings
        self.__qualname__ = self.home = str(judge)

    def __call__(self) -> Instrument:
        return Instrument(self._judge, self.settings)


def named_judges(
    judges: Sequence[JudgeLike],
    settings: JudgeSettings,
    second_look: JudgeLike | None = None,
    *,
    are_asked: bool = True,
) -> NamedJudges:
    """A resource for each judge: a name, a function of a prompt and a schema, or a `Judge` object.

    Judges that are not asked need no key.
    """
    if settings.max_questions is not None or settings.max_dollars is not None:
        # All processes of the run count in one file.
        folder = OwnFolder()
        atexit.register(folder.remove)
        settings = msgspec.structs.replace(settings, ledger=f"{folder.path}/spent.sqlite")
    asked = [*judges, *([] if second_look is None else [second_look])]
    resources = [_resource(judge, settings, is_asked=are_asked) for judge in asked]
    names = [checked_name(judge, is_asked=are_asked) for judge in asked if isinstance(judge, str)]
    check_budget(settings.max_dollars, [name.priced_as for name in names])
    return NamedJudges(tuple(resources[: len(judges)]), None if second_look is None else resources[-1])


def ledger_of(resources: Iterable[Resource]) -> str:
    """The file in which the judges of a run count what they spend; "" where nothing is limited."""
    makers = [maker for one in resources for maker in getattr(one.make, "judges", [one])]
    settings = [maker.make.settings for maker in makers if isinstance(maker.make, _Named)]
    return next((one.ledger for one in settings if one.ledger), "")


def _resource(judge: JudgeLike, settings: JudgeSettings, *, is_asked: bool) -> Resource:
    if isinstance(judge, str):
        return Resource((JUDGE,), _Named(checked_name(judge, is_asked=is_asked), settings))
    if hasattr(judge, "ask") and not isinstance(judge, type):
        if fault := misfit(judge, JUDGE):
            raise UsageError(
                f"the judge {type(judge).__qualname__} {fault}", hint="convoscope.Judge says how it is asked"
            )
        return Resource((JUDGE,), ReadyResource(judge), is_managed=False)
    if callable(judge) and not isinstance(judge, type):
        try:
            signature(judge).bind("prompt", {})
        except TypeError:
            raise UsageError(
                f"the judge {judge.__qualname__}{signature(judge)} cannot be asked",
                hint="it is a function of a prompt and a JSON Schema",
            ) from None
        return Resource((JUDGE,), _Named(judge, settings))
    raise UsageError(
        f"{judge!r} is not a judge", hint="name one (openai:MODEL), or give a function or a convoscope.Judge"
    )
