"""Which resources a metric asks for, and who gives them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, iscoroutinefunction, signature
from operator import attrgetter
from types import FunctionType, NoneType
from typing import Any, get_args

import msgspec

from convoscope.errors import DeclarationError, UsageError
from convoscope.resources.judge import Judge, JudgePanel
from convoscope.resources.sound import Recogniser, Recording
from convoscope.views.registry import annotation_of, short_name, type_name

JUDGE = "convoscope.resources.judge.Judge"
RECORDING = "convoscope.resources.sound.Recording"
RECOGNISER = "convoscope.resources.sound.Recogniser"
_BUILT_IN = {short_name(name): name for name in (JUDGE, RECORDING, RECOGNISER)}
_NO_RESOURCES: Mapping[str, str] = {}


class Resource(msgspec.Struct, frozen=True, dict=True):
    """Something of a type that metrics ask for. It is made once in each process, and closed at the end."""

    types: tuple[str, ...]
    """The whole names of the types that it is good for."""
    make: Callable[[], Any]
    is_managed: bool = True
    """A session opens and closes what it made itself; what a user hands in ready-made is left as it is."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # Its function hides behind the declaration of its name: another process looks that up.
        if isinstance(self.make, FunctionType):
            return (_look_up, (self.make.__module__, self.make.__qualname__))
        return (Resource, (self.types, self.make, self.is_managed))

    @property
    def home(self) -> str:
        """Where it was declared, for a person."""
        named: str | None = getattr(self.make, "home", None)
        return named or f"{self.make.__module__}.{self.make.__qualname__}"


def _look_up(module: str, name: str) -> Resource:
    declared = attrgetter(name)(import_module(module))
    if not isinstance(declared, Resource):
        raise UsageError(f"{module}.{name} is not a resource", hint="declare it with @convoscope.resource")
    return declared


def resource(make: Callable[[], Any]) -> Resource:
    """Declare a resource: metrics with a parameter of the type that this function returns are given what it makes."""
    annotation = annotation_of(make, "return")
    if not isinstance(annotation, type):
        raise DeclarationError(
            f"the resource {make.__qualname__} does not say what it makes", hint="annotate it: def mine() -> Judge"
        )
    if signature(make).parameters:
        raise DeclarationError(
            f"the resource {make.__qualname__} takes parameters", hint="a resource is made without parameters"
        )
    return Resource((type_name(annotation),), make)


def given(things: Iterable[Any]) -> tuple[Resource, ...]:
    """Resources as a user hands them in: declared ones, and objects, which are good for the classes they extend."""
    return tuple(one if isinstance(one, Resource) else _ready(one) for one in things)


def by_type(
    handed_in: Sequence[Resource],
    wanted: Collection[str],
    declared: Sequence[Resource] = (),
    known: Collection[str] = (),
) -> dict[str, Resource]:
    """The resource of each type that is asked for; refuses two of one type, unless they are the same.

    What a user hands in has to be asked for by a metric of the run. `declared` are those of a module of metrics:
    `known` are the types that its other metrics ask for. Several judges are a panel.
    """
    givers: dict[str, Resource] = {}
    judges: list[Resource] = []
    for candidate in handed_in:
        _refuse_unused(candidate, wanted, {*known, *_BUILT_IN.values()})
    for candidate in declared:
        _refuse_unused(candidate, {*wanted, *known, *_BUILT_IN.values()})
    for candidate in (*handed_in, *declared):
        for name in candidate.types:
            if name not in wanted:
                continue
            if name == JUDGE:
                judges.append(candidate)
                continue
            if givers.setdefault(name, candidate) is not candidate:
                raise UsageError(
                    f"two resources have the type {short_name(name)}: {givers[name].home} and {candidate.home}",
                    hint="a run has one of each type",
                )
    if judges:
        givers[JUDGE] = judges[0] if len(judges) == 1 else Resource((JUDGE,), _Panel(judges))
    return givers


def _refuse_unused(candidate: Resource, wanted: Collection[str], known: Collection[str] = ()) -> None:
    kind = short_name(candidate.types[0])
    if not set(wanted).intersection(candidate.types):
        if others := set(known).intersection(candidate.types):
            raise UsageError(
                f"no metric of this run asks for {candidate.home}, which is a {short_name(sorted(others)[0])}",
                hint="--metrics leaves out those that would; nothing was sent",
            )
        raise UsageError(
            f"no metric asks for the resource {candidate.home}, which is a {kind}", hint=_likely_type(candidate)
        )


class _Panel:
    """Makes several judges. Each metric that asks for a judge is answered by each of them."""

    def __init__(self, judges: Sequence[Resource]) -> None:
        self.judges = tuple(judges)
        self.__qualname__ = type(self).__qualname__

    def __call__(self) -> JudgePanel:
        return JudgePanel([made(judge) for judge in self.judges], [judge.is_managed for judge in self.judges])


_METHODS = {"ask": Judge, "tracks": Recording, "recognise": Recogniser}
_PROTOCOLS = {JUDGE: "ask", RECORDING: "tracks", RECOGNISER: "recognise"}


def made(resource: Resource) -> Any:
    """What a resource makes; refuses what does not fit the type that it is said to be."""
    thing = resource.make()
    for name in resource.types:
        if not isinstance(thing, JudgePanel) and (fault := misfit(thing, name)):
            raise UsageError(
                f"{resource.home} {fault}", hint=f"convoscope.metrics.{short_name(name)} says what it needs"
            )
    return thing


def misfit(thing: Any, name: str) -> str:
    """Why a thing is not what metrics ask for by the name of a type; empty where it fits, or is no type of ours."""
    method = _PROTOCOLS.get(name)
    if method is None:
        return ""
    declared = getattr(_METHODS[method], method)
    own = getattr(thing, method, None)
    if not callable(own) or getattr(type(thing), method, None) is declared:
        return f"has no method {method}"
    wanted = list(signature(declared).parameters)[1:]
    try:
        signature(own).bind(*wanted)
    except TypeError:
        return f"cannot be asked: {method}{signature(own)} does not take {' and '.join(wanted)}"
    except ValueError:  # a function that does not say what it takes
        pass
    if iscoroutinefunction(declared) and not iscoroutinefunction(own):
        return f"cannot be waited for: its {method} is not `async def`"
    identity = getattr(thing, "identity", None)
    return "" if isinstance(identity, str) and identity else "has no identity: a text that names what answers depend on"


def _likely_type(candidate: Resource) -> str:
    """What a resource should say of itself, by the methods that it has."""
    thing = candidate.make.thing if isinstance(candidate.make, ReadyResource) else None
    for method, kind in _METHODS.items():
        if callable(getattr(thing, method, None)):
            return f"it has the method {method}: extend the class convoscope.metrics.{kind.__name__}"
    return f"metrics ask for resources by type: {', '.join(_BUILT_IN)}, or a class of your own in an annotation"


def asked_by(function: Callable[..., Any], metric: str) -> Mapping[str, str]:
    """The whole names of the types of the resources that a metric's function asks for, by parameter.

    These are the parameters after the first that have no default.
    """
    if type(function) is FunctionType and function.__code__.co_argcount + function.__code__.co_kwonlyargcount < 2:
        return _NO_RESOURCES
    types: dict[str, str] = {}
    for parameter in list(signature(function).parameters.values())[1:]:
        if parameter.default is Parameter.empty and parameter.kind not in _MANY:
            types[parameter.name] = _asked_type(function, parameter, metric)
    return types


def optional_for(function: Callable[..., Any]) -> Mapping[str, str]:
    """The types of the resources that a function can do without, by parameter: `venues: Venues | None = None`."""
    if type(function) is FunctionType and not (function.__defaults__ or function.__kwdefaults__):
        return _NO_RESOURCES
    types: dict[str, str] = {}
    for parameter in list(signature(function).parameters.values())[1:]:
        if parameter.default is None:
            kinds = get_args(annotation_of(function, parameter.name))
            classes = [kind for kind in kinds if isinstance(kind, type) and kind is not NoneType]
            if len(kinds) == 2 and len(classes) == 1 and classes[0].__module__ != "builtins":
                types[parameter.name] = type_name(classes[0])
    return types


_MANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def _asked_type(function: Callable[..., Any], parameter: Parameter, metric: str) -> str:
    annotation = annotation_of(function, parameter.name)
    name = type_name(annotation) if isinstance(annotation, type) else _BUILT_IN.get(short_name(str(annotation)))
    if name is None or parameter.kind is Parameter.POSITIONAL_ONLY:
        raise DeclarationError(
            f"{metric} does not say what its parameter {parameter.name} is",
            hint=f"annotate it with the type of a resource: {', '.join(_BUILT_IN)}, or a class of your own",
        )
    return name


def _ready(thing: Any) -> Resource:
    """An object that is there already."""
    types = [one for one in type(thing).__mro__ if one.__module__ not in ("builtins", "typing")]
    if isinstance(thing, type) or not types:
        raise UsageError(
            f"{thing!r} is not a resource", hint="hand in an object, or a function declared with @convoscope.resource"
        )
    return Resource(tuple(map(type_name, types)), ReadyResource(thing), is_managed=False)


class ReadyResource:
    """Gives what is there already."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.__qualname__ = type(thing).__qualname__
        self.__module__ = type(thing).__module__

    def __call__(self) -> Any:
        return self.thing


__all__ = [
    "JUDGE",
    "RECOGNISER",
    "RECORDING",
    "ReadyResource",
    "Resource",
    "asked_by",
    "by_type",
    "given",
    "made",
    "misfit",
    "optional_for",
    "resource",
]
