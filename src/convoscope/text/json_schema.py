"""A JSON value against a JSON Schema: one checker, which is as strict as the question wants it.

To the letter, what the schema does not allow is a fault: draft 2020-12, and what older drafts wrote
otherwise. A schema that uses something which is not checked here is refused, so that "no fault" always
means that the value fits. That is what a form that was asked for is held to.

The schema of a tool is reported by many systems, each in its own way, and by many badly: there, the common
names of other languages are types too, and null is what models write for an argument that they leave
out. Whether the arguments of a call fit is asked to the letter but for that (`CALL`). Whether a call was
wrong, which must not be said of one that may be right, looks at the plain words of the schema alone and
leaves open what it does not understand (`FORGIVING`).

A schema is hostile input as well: thirty levels of two references each ask the same question a thousand
million times. So a check may take only so many steps, by how much there is to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NamedTuple

from convoscope.conversation.databases import shown
from convoscope.conversation.events import Json
from convoscope.text.patterns import BadPattern, Untried, checked

_UNCHECKED = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")
_DEEPEST = 100
_DEEPEST_FORGIVEN = 40
_CHOICE = 8  # levels that a forgiven choice costs, so that choices which hold themselves come to an end
_STEPS = 10_000
"""What any check may take: looks of a part of the schema at a part of the value, and the like."""
_STEPS_PER_VALUE = 100
"""What it may take beyond that, for each part of the value."""
_LONGEST_PATH = 300


class BadSchema(ValueError):
    """A schema that is wrong, or that says something which is not checked here."""


class TooManySteps(BadSchema):
    """A schema that a value cannot be held to in the steps that a check may take."""

    def __init__(self, most: int) -> None:
        super().__init__(f"takes more than {most:,} steps to check")


class Fault(NamedTuple):
    """Where a value does not fit, and how."""

    at: str
    problem: str
    kind: Literal["bad", "missing", "unknown"] = "bad"
    """A value that does not fit, a property that is required, or one that the schema does not have."""

    def __str__(self) -> str:
        return f"{self.at}: {self.problem}" if self.at else self.problem


class Leniency(NamedTuple):
    """What is let pass."""

    aliases: bool = False
    """Names of other languages, in any case, are types too: str, INT, list."""
    nulls: bool = False
    """null for a listed property that is not required is a property left out."""
    open: bool = False
    """Only plain keywords count; what is wrong or unknown in the schema allows everything."""


STRICT = Leniency()
CALL = Leniency(aliases=True, nulls=True)
FORGIVING = Leniency(aliases=True, nulls=True, open=True)


def is_schema(value: Json) -> bool:
    """Whether a JSON object is a schema rather than an example of what is wanted."""
    if not isinstance(value, dict):
        return False
    types = value.get("type")
    names = types if isinstance(types, list) else [types]
    return (
        "$schema" in value
        or (bool(names) and all(isinstance(name, str) and name in _TYPES for name in names))
        or any(isinstance(value.get(keyword), dict) for keyword in ("properties", "patternProperties"))
        or any(isinstance(value.get(keyword), list) for keyword in ("anyOf", "oneOf", "allOf", "enum"))
        or str(value.get("$ref", "")).startswith("#")
    )


def schema_faults(value: Json, schema: Json, leniency: Leniency = STRICT) -> Iterator[Fault]:
    """Where a value does not fit a schema, in the order of the schema.

    Raises `BadSchema`; where the schema is open, only for one that takes too many steps.

    >>> [str(one) for one in schema_faults({"price": "4"}, {"properties": {"price": {"type": "number"}}})]
    ['price: "4" is not number']
    """
    return _Checker(value, schema, leniency).faults(value, schema, "", 0)


class PlainObject(NamedTuple):
    """A schema of an object whose properties have a type and nothing else: most tools have such a schema."""

    types: Mapping[str, frozenset[type]]
    required: frozenset[str]

    def fits(self, value: Json) -> bool:
        """Whether a value fits for certain as the arguments of a call; where not, `schema_faults` has to say it."""
        if type(value) is not dict or not self.required <= value.keys():
            return False
        for name, member in value.items():
            types = self.types.get(name)
            if types is None or (type(member) not in types and (member is not None or name in self.required)):
                return False
        return True


def plain_object(schema: dict[str, Json]) -> PlainObject | None:
    """The same schema in short, where it says nothing that the short form leaves out."""
    properties, required = schema.get("properties"), schema.get("required", [])
    if not (_PLAIN_OBJECT.issuperset(schema) and schema.get("type", "object") == "object"):
        return None
    if not (type(properties) is dict and type(required) is list and all(type(name) is str for name in required)):
        return None
    types: dict[str, frozenset[type]] = {}
    for name, inner in properties.items():
        type_name = inner.get("type") if type(inner) is dict and _PLAIN_PROPERTY.issuperset(inner) else None
        if type(type_name) is not str or type_name not in _PLAIN_TYPES:
            return None
        types[name] = _PLAIN_TYPES[type_name]
    return PlainObject(types, frozenset(required)) if type(schema.get("additionalProperties", True)) is bool else None


class _Checker:
    def __init__(self, whole: Json, root: Json, leniency: Leniency) -> None:
        self.whole, self.root, self.leniency = whole, root, leniency
        self.steps, self.most = 0, _STEPS
        self.plain: dict[int, Json] = {}
        """What schemas say in plain words, by the id of each."""
        self.listed: dict[int, frozenset[Any]] = {}
        """The keys of what is listed, by the id of the list."""
        draft_name = str(root.get("$schema", "")) if isinstance(root, dict) else ""
        self.only_refs = any(draft in draft_name for draft in ("draft-04", "draft-06", "draft-07"))
        """Before 2019, what is next to a reference does not count."""

    def faults(self, value: Json, schema: Json, at: str, depth: int) -> Iterator[Fault]:
        self._step()
        schema = self._read(schema, depth)
        if schema is True or schema is False:
            if schema is False:
                yield Fault(at, "nothing is allowed here")
            return
        if "$ref" in schema:
            yield from self.faults(value, self._resolved(schema["$ref"]), at, depth + 1)
            if self.only_refs:
                return
        if value is None and schema.get("nullable") is True:
            return
        types = schema.get("type")
        self._step(len(types) if isinstance(types, list) else 0)
        names = [] if types is None else _types(types, self.leniency.aliases)
        wrong = types is not None and not any(_TYPES[name](value) for name in names)
        if wrong:
            yield Fault(at, f"{shown(value)} is not {' or '.join(names)}")
        else:
            yield from (Fault(at, problem) for problem in self._plain_faults(value, schema))
        combined = self._nearest if self.leniency.open else self._combined
        yield from combined(value, schema, at, depth)
        if wrong:
            return  # what it holds is of no interest
        if isinstance(value, dict):
            yield from self._object(value, schema, at, depth)
        elif isinstance(value, list):
            yield from self._array(value, schema, at, depth)

    def _step(self, steps: int = 1) -> None:
        self.steps += steps
        if self.steps <= self.most:
            return
        if self.most == _STEPS:  # counted only now: most checks are small
            self.most += _STEPS_PER_VALUE * _parts(self.whole)
        if self.steps > self.most:
            raise TooManySteps(self.most)

    def _read(self, schema: Json, depth: int) -> Any:
        """A schema that can be checked: an object, or yes or no for all or nothing."""
        if self.leniency.open:
            if depth > _DEEPEST_FORGIVEN:
                return True
            if id(schema) not in self.plain:
                self.plain[id(schema)] = self._forgiven(schema)
            return self.plain[id(schema)]
        if not isinstance(schema, dict | bool):
            raise BadSchema(f"{shown(schema)} is no schema")
        if depth > _DEEPEST:
            raise BadSchema(f"deeper than {_DEEPEST} levels")
        for keyword in _UNCHECKED:
            if isinstance(schema, dict) and keyword in schema:
                raise BadSchema(f"{keyword} is not checked")
        return schema

    def _fits(self, value: Json, schema: Json, depth: int) -> bool:
        return next(self.faults(value, schema, "", depth + 1), None) is None

    def _forgiven(self, schema: Json) -> Json:
        """What a schema says in plain words; all of it where it says nothing that is understood."""
        for _ in range(_DEEPEST_FORGIVEN):
            if not isinstance(schema, dict):
                return True
            if not isinstance(schema.get("$ref"), str):
                plain = {key: schema[key] for key, kind in _PLAINLY.items() if isinstance(schema.get(key), kind)}
                plain["required"] = [name for name in plain.get("required", ()) if isinstance(name, str)]
                if plain.get("additionalProperties"):
                    del plain["additionalProperties"]
                with suppress(BadSchema):
                    plain["type"] = _types(schema.get("type"), aliases=True) or None
                if "const" in schema:
                    plain["enum"] = [schema["const"]]
                return plain
            try:
                schema = self._resolved(schema["$ref"])
            except TooManySteps:
                raise
            except BadSchema:
                return True
        return True

    def _nearest(self, value: Json, schema: dict[str, Json], at: str, depth: int) -> Iterator[Fault]:
        """Of choices, what is wrong by the one that fits best: that is the one which was meant."""
        for keyword in ("anyOf", "oneOf"):
            tried = [list(self.faults(value, one, at, depth + _CHOICE)) for one in _list(schema, keyword)]
            yield from min(tried, key=len, default=[])
        for option in _list(schema, "allOf"):
            yield from self.faults(value, option, at, depth + _CHOICE)

    def _resolved(self, ref: Json) -> Json:
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise BadSchema(f"$ref {shown(ref)} leads out of the schema")
        self._step(len(ref) // 50)
        target = self.root
        for step in ref[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
                target = target[int(key)]
            elif isinstance(target, dict) and key in target:
                target = target[key]
            else:
                raise BadSchema(f"$ref {ref} leads nowhere")
        if ref[1:] and not ref.startswith("#/"):
            raise BadSchema(f"$ref {ref} is no path")
        return target

    def _combined(self, value: Json, schema: dict[str, Json], at: str, depth: int) -> Iterator[Fault]:
        for part in _list(schema, "allOf"):
            yield from self.faults(value, part, at, depth + 1)
        if "anyOf" in schema and not any(self._fits(value, one, depth) for one in _list(schema, "anyOf")):
            yield Fault(at, f"{shown(value)} fits none of anyOf")
        if "oneOf" in schema:
            fitting = sum(self._fits(value, one, depth) for one in _list(schema, "oneOf"))
            if fitting != 1:
                yield Fault(at, f"{shown(value)} fits {fitting or 'none'} of oneOf")
        if "not" in schema and self._fits(value, schema["not"], depth):
            yield Fault(at, f"{shown(value)} fits what it must not")
        if "if" in schema:
            branch = "then" if self._fits(value, schema["if"], depth) else "else"
            if branch in schema:
                yield from self.faults(value, schema[branch], at, depth + 1)

    def _object(self, value: dict[str, Json], schema: dict[str, Json], at: str, depth: int) -> Iterator[Fault]:
        required = _names(schema)
        self._step(len(required))
        for name in required:
            if name not in value:
                yield Fault(_path(at, name), "is missing", "missing")
        properties, patterns = _map(schema, "properties"), _map(schema, "patternProperties")
        for name, member in value.items():
            path = _path(at, name)
            listed = name in properties
            if listed and member is None and self.leniency.nulls and name not in required:
                continue
            if listed:
                yield from self.faults(member, properties[name], path, depth + 1)
            for pattern, inner in patterns.items():
                if self._searched(pattern, name):
                    listed = True
                    yield from self.faults(member, inner, path, depth + 1)
            if not listed and "additionalProperties" in schema:
                if schema["additionalProperties"] is False:
                    yield Fault(path, "is not among the properties", "unknown")
                else:
                    yield from self.faults(member, schema["additionalProperties"], path, depth + 1)
            if "propertyNames" in schema and not self._fits(name, schema["propertyNames"], depth):
                yield Fault(path, "is not a name that a property may have")
        yield from self._dependent(value, schema, at, depth)

    def _dependent(self, value: dict[str, Json], schema: dict[str, Json], at: str, depth: int) -> Iterator[Fault]:
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, wanted in _map(schema, keyword).items():
                self._step(1 + len(wanted) if isinstance(wanted, list) else 1)
                if name not in value:
                    continue
                if isinstance(wanted, list):
                    for other in wanted:
                        if other not in value:
                            yield Fault(_path(at, str(other)), f"is missing beside {name}", "missing")
                else:
                    yield from self.faults(value, wanted, at, depth + 1)

    def _array(self, value: list[Json], schema: dict[str, Json], at: str, depth: int) -> Iterator[Fault]:
        items = schema.get("items", True)
        first = _list(schema, "prefixItems")
        if isinstance(items, list):  # as drafts before 2020 wrote prefixItems
            first, items = items, schema.get("additionalItems", True)
        for index, element in enumerate(value):
            inner = first[index] if index < len(first) else items
            yield from self.faults(element, inner, f"{at}[{index}]", depth + 1)
        if "contains" in schema:
            contained = sum(self._fits(one, schema["contains"], depth) for one in value)
            least = _number(schema, "minContains", 1)
            most = _number(schema, "maxContains", len(value))
            if contained < least or contained > most:
                yield Fault(at, f"holds {contained} of what it must contain")
        if schema.get("uniqueItems") is True and len({self._key(one) for one in value}) < len(value):
            yield Fault(at, "holds something twice")

    def _plain_faults(self, value: Json, schema: dict[str, Json]) -> Iterator[str]:
        """What else can be said without looking inside of the value."""
        if "enum" in schema:
            listed = _list(schema, "enum")
            if id(listed) not in self.listed:
                self.listed[id(listed)] = frozenset(map(self._key, listed))
            if self._key(value) not in self.listed[id(listed)]:
                yield f"{shown(value)} is not one of {shown(schema['enum'])}"
        if "const" in schema and self._key(value) != self._key(schema["const"]):
            yield f"{shown(value)} is not {shown(schema['const'])}"
        if isinstance(value, str):
            yield from _bounds(len(value), schema, "minLength", "maxLength", "characters")
            if "pattern" in schema and not self._searched(schema["pattern"], value):
                yield f"{shown(value)} does not match {schema['pattern']}"
        elif isinstance(value, list):
            yield from _bounds(len(value), schema, "minItems", "maxItems", "items")
        elif isinstance(value, dict):
            yield from _bounds(len(value), schema, "minProperties", "maxProperties", "properties")
        elif _is_number(value):
            yield from _number_faults(value, schema)

    def _searched(self, pattern: Json, text: str) -> bool:
        if not isinstance(pattern, str):
            raise BadSchema(f"pattern {shown(pattern)} is no text")
        self._step(1 + len(pattern) * len(text) // 10_000)
        try:
            return checked(pattern).search(text) is not None
        except (BadPattern, Untried) as error:
            raise BadSchema(f"pattern {shown(pattern)}: {error}") from None

    def _key(self, value: Json) -> Any:
        """Equal for values that JSON Schema holds equal: 1 and 1.0 are, 1 and true are not.

        Numbers are written out: of numbers, unlike of texts, many can be chosen that are slow to compare.
        """
        self._step()
        if isinstance(value, dict):
            return ("object", frozenset((name, self._key(one)) for name, one in value.items()))
        if isinstance(value, list):
            return ("array", tuple(map(self._key, value)))
        if _is_number(value):
            return ("number", hex(int(value)) if _TYPES["integer"](value) else float(value).hex())
        return value


def _number_faults(value: float, schema: dict[str, Json]) -> Iterator[str]:
    for keyword, wrong, relation in _LIMITS:
        limit = schema.get(keyword)
        if isinstance(limit, bool):  # draft 4: it sharpens the plain limit
            limit = schema.get(_PLAIN_LIMIT[keyword]) if limit and keyword in _PLAIN_LIMIT else None
        if limit is not None:
            if not _is_number(limit):
                raise BadSchema(f"{keyword} {shown(limit)} is no number")
            if wrong(value, limit):
                yield f"{shown(value)} is {relation} {shown(limit)}"
    if "multipleOf" in schema:
        step = _number(schema, "multipleOf", 1)
        if step <= 0:
            raise BadSchema("multipleOf must be above 0")
        try:
            whole = Decimal(repr(value)) % Decimal(repr(step)) == 0
        except InvalidOperation:  # so many digits apart that the rest is unknown
            whole = value % step == 0
        if not whole:
            yield f"{shown(value)} is no multiple of {shown(step)}"


def _bounds(size: int, schema: dict[str, Json], least: str, most: str, what: str) -> Iterator[str]:
    if least in schema and size < _number(schema, least, 0):
        yield f"has {size} {what}, fewer than {schema[least]}"
    if most in schema and size > _number(schema, most, 0):
        yield f"has {size} {what}, more than {schema[most]}"


def _types(declared: Json, aliases: bool) -> list[str]:
    names = declared if isinstance(declared, list) else [declared]
    if aliases:
        names = [_ALIASES.get(name.lower(), name.lower()) if isinstance(name, str) else name for name in names]
    if not all(isinstance(name, str) and name in _TYPES for name in names):
        raise BadSchema(f"type {shown(declared)} is no type")
    return names


def _names(schema: dict[str, Json]) -> list[str]:
    """The required properties; draft 3 wrote a yes or no into the property itself."""
    if isinstance(schema.get("required"), bool):
        return []
    names = _list(schema, "required")
    if not all(isinstance(name, str) for name in names):
        raise BadSchema(f"required {shown(names)} is no list of names")
    return names


def _path(at: str, name: str) -> str:
    path = f"{at}.{name}" if at else name
    return path if len(path) <= _LONGEST_PATH else f"{path[: _LONGEST_PATH - 1]}…"


def _list(schema: dict[str, Json], keyword: str) -> list[Json]:
    elements = schema.get(keyword, [])
    if not isinstance(elements, list):
        raise BadSchema(f"{keyword} {shown(elements)} is no list")
    return elements


def _map(schema: dict[str, Json], keyword: str) -> dict[str, Json]:
    members = schema.get(keyword, {})
    if not isinstance(members, dict):
        raise BadSchema(f"{keyword} {shown(members)} is no object")
    return members


def _number(schema: dict[str, Json], keyword: str, default: float) -> float:
    number = schema.get(keyword, default)
    if not _is_number(number):
        raise BadSchema(f"{keyword} {shown(number)} is no number")
    return float(number) if isinstance(number, float) else int(number)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parts(value: Json) -> int:
    """How many values a value is made of, itself included."""
    count, pending = 0, [value]
    while pending:
        part = pending.pop()
        count += 1
        if isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return count


_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}
_PLAIN_TYPES: Mapping[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
}
"""What is of a type for certain; what else may be, such as 1.0 for an integer, is left to the checker."""
_PLAIN_PROPERTY = frozenset({"type", "description", "title", "default", "examples", "name"})
_PLAIN_OBJECT = frozenset(
    {"type", "description", "title", "default", "examples", "properties", "required", "additionalProperties", "$schema"}
)
_LIMITS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("minimum", lambda value, limit: value < limit, "below"),
    ("exclusiveMinimum", lambda value, limit: value <= limit, "not above"),
    ("maximum", lambda value, limit: value > limit, "above"),
    ("exclusiveMaximum", lambda value, limit: value >= limit, "not below"),
)
_PLAIN_LIMIT = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}

_ALIASES = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("float", "double"), "number"),
    "int": "integer",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "none": "null",
}


_PLAINLY: Mapping[str, type] = {
    **dict.fromkeys(("nullable", "additionalProperties"), bool),
    **dict.fromkeys(("enum", "anyOf", "oneOf", "allOf", "required"), list),
    **dict.fromkeys(("properties", "items"), dict),
}
"""Beside `const` and `type`, the keywords that count where a schema is open, and what each has to be."""
