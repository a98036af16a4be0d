"""`StandardData` and its parts as Pydantic models, made of the records of `schema.py`.

Keys that the schema does not know are kept. An item is tidied before it is validated, so that no payload is refused:
see `tidy.py` for what is coerced, and `warnings` for what could not be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from types import GenericAlias, new_class
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import CoreModeRef, CoreRef, DefsRef, GenerateJsonSchema

from convoscope.views.standard_data import schema
from convoscope.views.standard_data.containers import ListOf, PerTurn, RecordKind
from convoscope.views.standard_data.schema import COMPONENT_METRICS, METRICS, RECORDS, TWINS, SchemaRecord
from convoscope.views.standard_data.tidy import tidy
from convoscope.views.standard_data.values import ValueKind, Warned

_MODELS_LIE = 4
"""Models lie at most so deep in a payload: item, conversation, turns, turn."""


class _Open(BaseModel):  # noqa: PLW1641 (what can be changed has no hash)
    """A model that keeps the keys it does not know. Null and absent are the same."""

    model_config = ConfigDict(extra="allow")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, _Open):
            return NotImplemented
        return self.__dict__ == other.__dict__ and self._others() == other._others()

    def _others(self) -> dict[str, Any]:
        return {key: value for key, value in (self.__pydantic_extra__ or {}).items() if value is not None}


class _PublishedNames(GenerateJsonSchema):
    """Our classes say in their names that they are of this schema; in the schema itself they do not."""

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        core_ref, mode = core_mode_ref
        return super().get_defs_ref((CoreRef(core_ref.replace(".Standard", ".")), mode))


class _Span(_Open):
    """What is one object or a map by turn: without a key of the schema in it, it would be read as such a map."""

    @model_serializer(mode="wrap")
    def _distinct_from_a_map(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        if written and type(self).model_fields.keys().isdisjoint(written):
            written["provider"] = None
        return written


class _Item(_Open):
    _warnings: tuple[Warned, ...] = PrivateAttr(default=())

    @property
    def warnings(self) -> tuple[Warned, ...]:
        return self._warnings

    @property
    def unknown(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})

    @classmethod
    def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
        """The JSON Schema, with the names of the published one."""
        return super().model_json_schema(*arguments, **{"schema_generator": _PublishedNames, **options})

    @model_validator(mode="wrap")
    @classmethod
    def _tidied(cls, payload: Any, handler: ModelWrapValidatorHandler[_Item]) -> _Item:
        if isinstance(payload, cls):
            return payload
        tidied = tidy(_builtins(payload))
        given = {**tidied.unknown, **tidied.fields}
        for name, twin in TWINS.items():
            if name in given:
                given.setdefault(twin, given[name])
        item = handler(given)
        item._warnings = tuple(tidied.warnings)
        return item


def _builtins(value: Any, depth: int = _MODELS_LIE) -> Any:
    """Models inside of a payload as the objects they stand for."""
    if isinstance(value, BaseModel):
        return {key: _builtins(member, depth) for key, member in value}
    if depth and isinstance(value, list | tuple):
        return [_builtins(element, depth - 1) for element in value]
    if depth and isinstance(value, Mapping):
        return {key: _builtins(member, depth - 1) for key, member in value.items()}
    return value


def _metric_tag(value: Any) -> str:
    tag = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return tag if isinstance(tag, str) and tag in METRICS else "other"


def _turn_tag(kind: PerTurn) -> Callable[[Any], str]:
    return lambda value: "map" if isinstance(value, Mapping) and not kind.is_single(value) else "one"


_MODELS: dict[ValueKind, Any] = {}
"""The models that were made, by the kind of their record."""


def _type_of(hint: Any) -> Any:
    """The type of a field as Pydantic knows it: models instead of records."""
    kind = hint.__metadata__[0]
    if isinstance(kind, RecordKind):
        return _MODELS[kind] | None
    if isinstance(kind, ListOf) and kind.kind in _MODELS:
        return GenericAlias(list, _MODELS[kind.kind]) | None
    if isinstance(kind, PerTurn):
        single, by_turn = _MODELS[kind.record], GenericAlias(dict, (str, _MODELS[kind.record]))
        record: Any = Annotated[single, Tag("one")] | Annotated[by_turn, Tag("map")]
        return Annotated[record, Discriminator(_turn_tag(kind))] | None
    if kind is COMPONENT_METRICS:
        models = [Annotated[_MODELS[METRICS[name]], Tag(name)] for name in METRICS]
        metric: Any = reduce(or_, [*models, Annotated[dict[str, Any], Tag("other")]])
        return GenericAlias(list, Annotated[metric, Discriminator(_metric_tag)]) | None
    return hint.__origin__


_PARENTS: dict[type[SchemaRecord], type[_Open]] = {
    schema.STTData: _Span,
    schema.TTSData: _Span,
    schema.StandardData: _Item,
}


def _make(record: type[SchemaRecord]) -> Any:
    name, parent, hints = record.__name__, _PARENTS.get(record, _Open), schema.hints_of(record)
    body = {
        "__module__": __name__,
        "__doc__": record.__doc__,
        "__annotations__": {field: _type_of(hint) for field, hint in hints.items()},
        "model_config": ConfigDict(title=name if parent is _Item else name.removeprefix("Standard")),
        **{field: getattr(record, field) for field in hints},
    }
    _MODELS[record.kind] = new_class(name, (parent,), exec_body=lambda namespace: namespace.update(body))
    return _MODELS[record.kind]


if TYPE_CHECKING:
    StandardData = schema.StandardData
else:
    globals().update({record.__name__: _make(record) for record in RECORDS})
