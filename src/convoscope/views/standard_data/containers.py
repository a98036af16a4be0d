"""Kinds that hold others: objects, lists, records of a known shape, and per-turn maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from convoscope.views.standard_data.values import TEXT, UNREAD, ValueKind, Warned, Warnings, parsed

# Where retrievers put the words of a chunk.
_WORDS = ("text", "content", "page_content", "chunk", "document")
# How the text of a JSON object begins, or that of one that was quoted once more; "" is text like any other.
_MAY_BE_AN_OBJECT = frozenset('{"')


class Object(ValueKind):
    """An object with any keys."""

    def clean(self, value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key in value:  # noqa: SIM110 (a generator costs more than the loop)
            if type(key) is not str:
                return False
        return True

    def mend(self, value: Any, path: str, warnings: Warnings) -> dict[str, Any] | None:
        return as_object(value, path, warnings)


class TextOrObject(Object):
    """Text, or an object. Text that is a JSON object is that object; other text stays text, even where it is JSON."""

    def clean(self, value: Any) -> bool:
        if type(value) is str:
            return value.lstrip()[:1] not in _MAY_BE_AN_OBJECT
        return super().clean(value)

    def mend(self, value: Any, path: str, warnings: Warnings) -> Any:
        if isinstance(value, str):
            aside: Warnings = []
            inner = parsed(value, path, aside)
            if not isinstance(inner, dict):
                return str(value)
            warnings.extend(aside)
            value = inner
        return super().mend(value, path, warnings) if isinstance(value, Mapping) else TEXT.mend(value, path, warnings)


class ListOf(ValueKind):
    """A list of one kind. One value where a list is expected is a list of one; a bad element is left out."""

    def __init__(self, kind: ValueKind) -> None:
        self.kind = kind

    def clean(self, value: Any) -> bool:
        if type(value) is not list:
            return False
        clean = self.kind.clean
        for element in value:  # noqa: SIM110
            if element is None or not clean(element):
                return False
        return True

    def mend(self, value: Any, path: str, warnings: Warnings) -> list[Any] | None:
        elements = self._elements(value, path, warnings)
        return None if elements is None else mended_list(self.kind, elements, path, warnings)

    def _elements(self, value: Any, path: str, warnings: Warnings) -> list[Any] | None:
        if isinstance(value, str):
            value = read_json(value, path, warnings)
            if value is None:
                return None
        return list(value) if isinstance(value, list | tuple) else [value]

    def unknown(self, value: Any) -> Iterator[str]:
        return (f"[]{name}" for one in value for name in self.kind.unknown(one))


class Texts(ListOf):
    """A list of texts. Text that is not a JSON list is the only element."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def clean(self, value: Any) -> bool:
        if type(value) is not list:
            return False
        for element in value:  # noqa: SIM110
            if type(element) is not str:
                return False
        return True

    def _elements(self, value: Any, path: str, warnings: Warnings) -> list[Any] | None:
        return text_elements(value, path, warnings)


class ChunksByQuery(ValueKind):
    """For each query the list of chunks that were found. A list without a list in it is that of one query.

    A query keeps its place: where its chunks cannot be read, they are an empty list, with a warning.
    """

    def clean(self, value: Any) -> bool:
        if type(value) is not list:
            return False
        for chunks in value:
            if type(chunks) is not list:
                return False
            for chunk in chunks:
                if type(chunk) is not str:
                    return False
        return True

    def mend(self, value: Any, path: str, warnings: Warnings) -> list[list[str]] | None:
        queries = text_elements(value, path, warnings)
        if queries is None:
            return None
        if not any(isinstance(one, list | tuple) for one in queries):
            chunks = self._chunks(queries, path, warnings)
            return None if chunks is None else [chunks]
        chunk_lists: list[list[str] | None] = []
        for index, query in enumerate(queries):
            listed = list(query) if isinstance(query, list | tuple) else [query]
            chunk_lists.append(self._chunks(listed, f"{path}[{index}]", warnings))
        return None if all(one is None for one in chunk_lists) else [one or [] for one in chunk_lists]

    def _chunks(self, chunks: list[Any], path: str, warnings: Warnings) -> list[str] | None:
        return mended_list(CHUNK, chunks, path, warnings)


class Chunk(ValueKind):
    """The words of one retrieved chunk; of an object that has them under a usual name, these words."""

    def clean(self, value: Any) -> bool:
        return type(value) is str

    def mend(self, value: Any, path: str, warnings: Warnings) -> str | None:
        if isinstance(value, Mapping):
            words = next((value[name] for name in _WORDS if isinstance(value.get(name), str)), None)
            if words is not None:
                message = f"{path} should be text; only the words of the object are used."
                warnings.append(Warned(path, "kept_words", message, value))
                return str(words)
        return TEXT.mend(value, path, warnings)


class Alias(NamedTuple):
    """Another name of a field, and by what its number is divided to get the field's unit."""

    field: str
    per: int = 1


class RecordKind(ValueKind):
    """An object of a known shape. A bad value in it is null; keys that are not of the shape stay as they came.

    Another name of a field is taken where the field itself is not there; `inside` names an object that
    has fields of the record in it, as OpenAI's `function` has.
    """

    def __init__(
        self,
        fields: Mapping[str, ValueKind],
        aliases: Mapping[str, Alias] | None = None,
        *,
        inside: str = "",
        default: Mapping[str, Any] | None = None,
        listed: Callable[[list[Any]], dict[str, Any] | None] = lambda _: None,
    ) -> None:
        self.fields = fields
        self.aliases = aliases or {}
        self.inside = inside
        self.default = default or {}
        self.listed = listed
        self._clean = {name: kind.clean for name, kind in fields.items()}
        self._renamed = frozenset(self.aliases) | ({inside} if inside else set())

    def clean(self, value: Any) -> bool:
        if type(value) is not dict:
            return False
        checks = self._clean
        for key, member in value.items():
            clean = checks.get(key)
            if clean is None:
                if key in self._renamed or not is_sound(key):
                    return False
            elif member is not None and not clean(member):
                return False
        for key in self.default:  # noqa: SIM110
            if value.get(key) is None:
                return False
        return True

    def mend(self, value: Any, path: str, warnings: Warnings) -> dict[str, Any] | None:
        given = as_object(value, path, warnings, self.listed)
        if given is None:
            return None
        if self.inside:
            given = self._unfolded(given)
        result: dict[str, Any] = {}
        for key, member in given.items():
            kind = self.fields.get(key)
            if kind is None or member is None or kind.clean(member):
                result[key] = member
            else:
                result[key] = kind.mend(member, f"{path}.{key}", warnings)
        for key, alias in self.aliases.items():
            if result.get(key) is not None and result.get(alias.field) is None:
                self._rename(result, key, alias, path, warnings)
        for key, filling in self.default.items():
            if result.get(key) is None:
                result[key] = filling
        return result

    def _unfolded(self, given: dict[str, Any]) -> dict[str, Any]:
        inner = given.get(self.inside)
        if type(inner) is not dict:
            return given
        fields_inside = {
            key: one
            for key, one in inner.items()
            if (key in self.fields or key in self.aliases) and given.get(key) is None
        }
        remaining = {key: one for key, one in inner.items() if key not in fields_inside}
        outer = {key: one for key, one in given.items() if key != self.inside}
        return outer | fields_inside | ({self.inside: remaining} if remaining else {})

    def _rename(self, result: dict[str, Any], key: str, alias: Alias, path: str, warnings: Warnings) -> None:
        kind = self.fields[alias.field]
        member = result.pop(key)
        if not kind.clean(member):
            member = kind.mend(member, f"{path}.{key}", warnings)
        result[alias.field] = member if member is None or alias.per == 1 else member / alias.per

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

    def clean(self, value: Any) -> bool:
        if type(value) is not dict:
            return False
        if self.is_single(value):
            return self.record.clean(value)
        return all(type(key) is str and self.record.clean(one) for key, one in value.items())

    def mend(self, value: Any, path: str, warnings: Warnings) -> dict[str, Any] | None:
        if isinstance(value, str):
            value = read_json(value, path, warnings)
        if value is None:
            return None
        if isinstance(value, list | tuple):
            value = {f"turn_{place}": one for place, one in enumerate(value, start=1)}
            if not value:
                return {}
        elif isinstance(value, Mapping) and self.is_single(value):
            return self.record.mend(value, path, warnings)
        turns = as_object(value, path, warnings)
        return None if turns is None else self._mended_turns(turns, path, warnings)

    def _mended_turns(self, turns: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any] | None:
        result: dict[str, Any] = {}
        for key, turn in turns.items():
            several = turn if isinstance(turn, list) and turn else [turn]
            for number, record in enumerate(several, start=1):
                name = key if number == 1 else free_name(f"{key}~{number}", turns)
                if (mended := self._mended_turn(record, f"{path}.{name}", warnings)) is not None:
                    result[name] = mended
        return result or None

    def _mended_turn(self, value: Any, path: str, warnings: Warnings) -> dict[str, Any] | None:
        if value is None:
            warnings.append(Warned(path, "null_element", f"{path} is null, and was left out."))
            return None
        return value if self.record.clean(value) else self.record.mend(value, path, warnings)

    def unknown(self, value: Any) -> Iterator[str]:
        if self.is_single(value):
            return self.record.unknown(value)
        return (f".*{name}" for one in value.values() for name in self.record.unknown(one))


def as_object(
    value: Any,
    path: str,
    warnings: Warnings,
    listed: Callable[[list[Any]], dict[str, Any] | None] = lambda _: None,
) -> dict[str, Any] | None:
    """An object with text as keys, out of an object, its JSON text, or a list that has only it; else a warning."""
    given = value
    if isinstance(value, str):
        value = read_json(value, path, warnings)
        if value is None:
            return None
    if isinstance(value, list | tuple):
        converted = listed(list(value))
        if converted is not None:
            return converted
        if len(value) == 1:
            value = value[0]
            if isinstance(value, str):
                value = parsed(value, path, warnings)
    if isinstance(value, Mapping):
        return text_keys(value, path, warnings)
    warnings.append(Warned(path, "not_an_object", f"{path} should be an object, and was left out.", given))
    return None


def text_keys(value: Mapping[Any, Any], path: str, warnings: Warnings) -> dict[str, Any]:
    """The same object with text as keys."""
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
    text = "null" if key is None else TEXT.mend(key, "", [])
    # Pydantic refuses half a character in a key: it is written as its number.
    return (type(key).__name__ if text is None else text).encode("utf-8", "backslashreplace").decode()


def is_sound(key: Any) -> bool:
    """Whether a key is text that UTF-8 can carry."""
    return type(key) is str and (key.isascii() or key_text(key) == key)


def text_elements(value: Any, path: str, warnings: Warnings) -> list[Any] | None:
    """The elements of a list of texts; text that does not hold a JSON list is the only element."""
    if isinstance(value, str):
        if not value.strip():
            warnings.append(Warned(path, "empty_text", f"{path} should be a list, and is empty text.", value))
            return None
        aside: Warnings = []
        inner = parsed(value, path, aside)
        if not isinstance(inner, list):
            return [value]
        warnings.extend(aside)
        return inner
    return list(value) if isinstance(value, list | tuple) else [value]


def mended_list(kind: ValueKind, elements: list[Any], path: str, warnings: Warnings) -> list[Any] | None:
    """The good elements; None where there were some and none of them is good."""
    result = []
    for index, element in enumerate(elements):
        if element is None:
            place = f"{path}[{index}]"
            warnings.append(Warned(place, "null_element", f"{place} is null, and was left out."))
        elif kind.clean(element):
            result.append(element)
        elif (mended := kind.mend(element, f"{path}[{index}]", warnings)) is not None:
            result.append(mended)
    return None if elements and not result else result


def read_json(text: str, path: str, warnings: Warnings) -> Any:
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
