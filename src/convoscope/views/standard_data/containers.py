"""Kinds that hold others: objects, lists, records of a known shape, and per-turn maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from convoscope.views.standard_data.values import TEXT, UNREAD, ValueKind, Warned, Warnings, is_text, parsed

_Listed = Callable[[list[Any]], dict[str, Any] | None]
"""Makes an object of a list; None where it is not one."""
_CHUNK_TEXTS = ("text", "content", "page_content", "chunk", "document")
"""Where retrievers put the text of a chunk."""
_MAY_BE_AN_OBJECT = frozenset('{"')
"""How the text of a JSON object begins, or that of one that was quoted once more; "" is text like any other."""


class Object(ValueKind):
    """An object with any keys."""

    def is_valid(self, value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key in value:  # noqa: SIM110 (a generator costs more than the loop)
            if type(key) is not str:
                return False
        return True

    def coerce(self, value: Any, path: str, warnings: Warnings) -> dict[str, Any] | None:
        return as_object(value, path, warnings)


class TextOrObject(Object):
    """Text, or an object. Text that is a JSON object is that object; other text stays text, even where it is JSON."""

    def is_valid(self, value: Any) -> bool:
        if type(value) is str:
            return value.lstrip()[:1] not in _MAY_BE_AN_OBJECT
        return super().is_valid(value)

    def coerce(self, value: Any, path: str, warnings: Warnings) -> Any:
        if isinstance(value, str):
            repaired: Warnings = []
            inner = parsed(value, path, repaired)
            if not isinstance(inner, dict):
                return str(value)
            warnings.extend(repaired)
            value = inner
        kind = OBJECT if isinstance(value, Mapping) else TEXT
        return kind.coerce(value, path, warnings)


class ListOf(ValueKind):
    """A list of one kind. One value where a list is expected is a list of one; a bad element is left out.

    `may_be_text`: text that is not a JSON list is the only element.
    """

    def __init__(self, kind: ValueKind, *, may_be_text: bool = False) -> None:
        self.kind, self.may_be_text = kind, may_be_text

    def is_valid(self, value: Any) -> bool:
        if type(value) is not list:
            return False
        is_valid = self.kind.is_valid
        for element in value:
            if type(element) is not str if is_valid is is_text else element is None or not is_valid(element):
                return False
        return True

    def coerce(self, value: Any, path: str, warnings: Warnings) -> list[Any] | None:
        elements = _elements(value, path, warnings, may_be_text=self.may_be_text)
        return None if elements is None else _coerced_elements(self.kind, elements, path, warnings)

    def unknown(self, value: Any) -> Iterator[str]:
        return (f"[]{name}" for element in value for name in self.kind.unknown(element))


class ChunksByQuery(ListOf):
    """For each query the list of chunks that were found. A list without a list in it is that of one query.

    A query keeps its position: where its chunks cannot be read, they are an empty list, with a warning.
    """

    def coerce(self, value: Any, path: str, warnings: Warnings) -> list[Any] | None:
        queries = _elements(value, path, warnings, may_be_text=True)
        if queries is None:
            return None
        if not any(isinstance(query, list | tuple) for query in queries):
            chunks = _coerced_elements(CHUNK, queries, path, warnings)
            return None if chunks is None else [chunks]
        listed = [list(query) if isinstance(query, list | tuple) else [query] for query in queries]
        chunk_lists = [
            _coerced_elements(CHUNK, query, f"{path}[{index}]", warnings) for index, query in enumerate(listed)
        ]
        return None if all(chunks is None for chunks in chunk_lists) else [chunks or [] for chunks in chunk_lists]


class Chunk(ValueKind):
    """The text of one retrieved chunk; of an object that has it under a usual name, this text."""

    is_valid = staticmethod(is_text)

    def coerce(self, value: Any, path: str, warnings: Warnings) -> Any:
        if isinstance(value, Mapping):
            text = next((value[name] for name in _CHUNK_TEXTS if isinstance(value.get(name), str)), None)
            if text is not None:
                message = f"{path} should be text; only the words of the object are used."
                warnings.append(Warned(path, "kept_words", message, value))
                return str(text)
        return TEXT.coerce(value, path, warnings)


class RecordKind(ValueKind):
    """An object of a known shape. A bad value in it is null; keys that are not of the shape stay as they came.

    Another name of a field is taken where the field itself is missing; one in `milliseconds` is converted to seconds.
    `inside` names an object that has fields of the record in it, as OpenAI's `function` has. `listed` makes the record
    of a list.
    """

    def __init__(
        self,
        fields: Mapping[str, ValueKind],
        *,
        aliases: Mapping[str, str] | None = None,
        milliseconds: tuple[str, ...] = (),
        inside: str = "",
        default: Mapping[str, Any] | None = None,
        listed: _Listed = lambda _: None,
    ) -> None:
        self.fields, self.aliases, self.milliseconds = fields, aliases or {}, milliseconds
        self.inside, self.default, self.listed = inside, default or {}, listed
        self._checks = {name: kind.is_valid for name, kind in fields.items()}
        self._renamed = {*self.aliases, inside}

    def is_valid(self, value: Any) -> bool:
        if type(value) is not dict:
            return False
        checks = self._checks
        for key, member in value.items():
            is_valid = checks.get(key)
            if is_valid is None:
                if key in self._renamed or not is_sound(key):
                    return False
            elif member is not None and not is_valid(member):
                return False
        for key in self.default:  # noqa: SIM110
            if value.get(key) is None:
                return False
        return True

    def coerce(self, value: Any, path: str, warnings: Warnings) -> dict[str, Any] | None:
        given = as_object(value, path, warnings, self.listed)
        if given is None:
            return None
        if self.inside:
            given = self._unfolded(given)
        result = {
            key: self._coerced(key, member, f"{path}.{key}", warnings) if key in self.fields else member
            for key, member in given.items()
        }
        for key, field in self.aliases.items():
            if result.get(key) is not None and result.get(field) is None:
                member = self._coerced(field, result.pop(key), f"{path}.{key}", warnings)
                result[field] = member / 1000 if key in self.milliseconds and member is not None else member
        for key, filling in self.default.items():
            if result.get(key) is None:
                result[key] = filling
        return result

    def _coerced(self, field: str, member: Any, path: str, warnings: Warnings) -> Any:
        kind = self.fields[field]
        return member if member is None or kind.is_valid(member) else kind.coerce(member, path, warnings)

    def _unfolded(self, given: dict[str, Any]) -> dict[str, Any]:
        inner = given.get(self.inside)
        if type(inner) is not dict:
            return given
        own = {
            key: member
            for key, member in inner.items()
            if (key in self.fields or key in self.aliases) and given.get(key) is None
        }
        remaining = {key: member for key, member in inner.items() if key not in own}
        outer = {key: member for key, member in given.items() if key != self.inside}
        return outer | own | ({self.inside: remaining} if remaining else {})

    def unknown(self, value: Any) -> Iterator[str]:
        for key, member in value.items():
            kind = self.fields.get(key)
            if kind is None:
                yield f".{key}"
            elif member is not None:
                yield from (f".{key}{name}" for name in kind.unknown(member))

    def fits(self, value: Mapping[Any, Any]) -> bool:
        """Whether any key is of this shape: then it is a record, not a map of records (section 1.3, rule 3)."""
        return any(
            key in self.fields or (key in self.aliases and isinstance(value[key], str | int | float)) for key in value
        )


class PerTurn(ValueKind):
    """One record, or a map of records by turn. A list of records is a map of `turn_1`, `turn_2` and so on."""

    def __init__(self, record: RecordKind) -> None:
        self.record = record

    def is_single(self, value: Mapping[Any, Any]) -> bool:
        return not value or self.record.fits(value)

    def is_valid(self, value: Any) -> bool:
        if type(value) is not dict:
            return False
        if self.is_single(value):
            return self.record.is_valid(value)
        return all(type(key) is str and self.record.is_valid(record) for key, record in value.items())

    def coerce(self, value: Any, path: str, warnings: Warnings) -> dict[str, Any] | None:
        if isinstance(value, str):
            value = _from_json(value, path, warnings)
        if value is None:
            return None
        if isinstance(value, list | tuple):
            value = {f"turn_{number}": record for number, record in enumerate(value, start=1)}
            if not value:
                return {}
        elif isinstance(value, Mapping) and self.is_single(value):
            return self.record.coerce(value, path, warnings)
        turns = as_object(value, path, warnings) or {}
        result: dict[str, Any] = {}
        for key, turn in turns.items():
            records = turn if isinstance(turn, list) and turn else [turn]
            for number, record in enumerate(records, start=1):
                name = key if number == 1 else free_name(f"{key}~{number}", turns)
                coerced = _coerced_element(self.record, record, f"{path}.{name}", warnings)
                if coerced is not None:
                    result[name] = coerced
        return result or None

    def unknown(self, value: Any) -> Iterator[str]:
        if self.is_single(value):
            return self.record.unknown(value)
        return (f".*{name}" for record in value.values() for name in self.record.unknown(record))


def as_object(value: Any, path: str, warnings: Warnings, listed: _Listed = lambda _: None) -> dict[str, Any] | None:
    """An object with text as keys, out of an object, its JSON text, or a list that has only it; else a warning."""
    given = value
    if isinstance(value, str):
        value = _from_json(value, path, warnings)
        if value is None:
            return None
    if isinstance(value, list | tuple):
        converted = listed(list(value))
        if converted is not None:
            return converted
        if len(value) == 1:
            value = parsed(value[0], path, warnings) if isinstance(value[0], str) else value[0]
    if not isinstance(value, Mapping):
        warnings.append(Warned(path, "not_an_object", f"{path} should be an object, and was left out.", given))
        return None
    if type(value) is dict and all(map(is_sound, value)):
        return value
    result: dict[str, Any] = {}
    for key, member in value.items():
        name = key_text(key)
        if name in result:
            warnings.append(Warned(f"{path}.{name}", "key_twice", f"{path} has the key {name} twice.", member))
        else:
            result[name] = member
    return result


def key_text(key: Any) -> str:
    """A key as text, whatever it is."""
    if type(key) is str and key.isascii():
        return key
    text = "null" if key is None else TEXT.coerce(key, "", [])
    # Pydantic refuses half a character in a key: it is written as its number.
    return (type(key).__name__ if text is None else text).encode("utf-8", "backslashreplace").decode()


def is_sound(key: Any) -> bool:
    """Whether a key is text that UTF-8 can carry."""
    return type(key) is str and (key.isascii() or key_text(key) == key)


def _elements(value: Any, path: str, warnings: Warnings, *, may_be_text: bool) -> list[Any] | None:
    """The elements of a list, or of the JSON text of one; another value is the only element."""
    if isinstance(value, str) and may_be_text:
        if not value.strip():
            warnings.append(Warned(path, "empty_text", f"{path} should be a list, and is empty text.", value))
            return None
        repaired: Warnings = []
        inner = parsed(value, path, repaired)
        if not isinstance(inner, list):
            return [value]
        warnings.extend(repaired)
        return inner
    if isinstance(value, str):
        value = _from_json(value, path, warnings)
        if value is None:
            return None
    return list(value) if isinstance(value, list | tuple) else [value]


def _coerced_elements(kind: ValueKind, elements: list[Any], path: str, warnings: Warnings) -> list[Any] | None:
    """The good elements; None where there were some and none of them is good."""
    coerced = (_coerced_element(kind, element, f"{path}[{index}]", warnings) for index, element in enumerate(elements))
    result = [element for element in coerced if element is not None]
    return None if elements and not result else result


def _coerced_element(kind: ValueKind, element: Any, path: str, warnings: Warnings) -> Any:
    if element is None:
        warnings.append(Warned(path, "null_element", f"{path} is null, and was left out."))
        return None
    return element if kind.is_valid(element) else kind.coerce(element, path, warnings)


def _from_json(text: str, path: str, warnings: Warnings) -> Any:
    """What a JSON text holds; None, with a warning, where it holds nothing or is not JSON."""
    if not text.strip():
        warnings.append(Warned(path, "empty_text", f"{path} should not be text, and is empty text.", text))
        return None
    value = parsed(text, path, warnings)
    if value is UNREAD:
        warnings.append(Warned(path, "bad_json", f"{path} is text that is not JSON, and was left out.", text))
        return None
    if value is None:
        warnings.append(Warned(path, "empty_text", f"{path} is the text of null.", text))
    return value


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """A name that is not taken yet."""
    while name in taken:
        name += "~"
    return name


OBJECT = Object()
CHUNK = Chunk()
