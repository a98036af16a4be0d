"""answer.format_validity: does an answer have the form that was asked for?"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Expected, Item
from convoscope.metrics.answer.forms import FORMS, Unchecked, fit_of, form_of, format_validity
from convoscope.scoring.evaluate import observe
from convoscope.text.json_schema import (
    CALL,
    FORGIVING,
    STRICT,
    BadSchema,
    Leniency,
    TooManySteps,
    is_schema,
    schema_faults,
)
from support.chats import agent, chat, told, user
from support.formatted_answers import fault, item

PRICE = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}


class TestTheMetric:
    def test_a_valid_answer(self) -> None:
        (observation,) = observe(format_validity, item('{"price": 4}', "JSON"))
        assert observation.value == 1.0
        assert observation.details == {"format": "JSON", "checked": "agent_response"}

    def test_an_invalid_one_says_where_it_breaks(self) -> None:
        (observation,) = observe(format_validity, item('{"price": }', "JSON"))
        assert observation.value == 0.0
        assert observation.details is not None
        assert observation.details["fault"].startswith("not JSON at line 1, column 11: ")

    def test_what_was_extracted_is_checked_instead(self) -> None:
        (observation,) = observe(format_validity, item("Here you are: 4", "integer", extracted_content="4"))
        assert observation.value == 1.0
        assert observation.details == {"format": "integer", "checked": "extracted_content"}

    def test_extracted_content_that_is_no_text_is_checked_as_json(self) -> None:
        conversation = item("…", json.dumps(PRICE), extracted_content={"price": 4})
        assert told(observe(format_validity, conversation)) == [("item a", 1.0)]

    @pytest.mark.parametrize(
        ("format", "reason", "detail"),
        [
            ("one sentence with the price in cents", "unknown_format", "one sentence with the price in cents"),
            ("regex: (", "bad_pattern", "(: missing ), unterminated subpattern at position 0"),
            (
                '{"type": "object", "unevaluatedProperties": false}',
                "bad_schema",
                "unevaluatedProperties is not checked",
            ),
        ],
    )
    def test_a_form_that_cannot_be_checked_is_null(self, format: str, reason: str, detail: str) -> None:
        (observation,) = observe(format_validity, item("{}", format))
        assert (observation.status, observation.reason, observation.detail) == ("unmeasured", reason, detail)

    def test_missing_fields_are_named(self) -> None:
        conversation = chat(
            user("?"),
            agent("4"),
            items=(
                Item(id="a", answered=1),
                Item(id="b", expected=Expected(format="integer")),
                Item(id="c", answered=1, expected=Expected(format=" ")),
                Item(id="d", answered=1, expected=Expected(format="integer")),
            ),
        )
        assert told(observe(format_validity, conversation)) == [
            ("item a", "unmeasured: no_expected_format"),
            ("item b", "unmeasured: no_agent_response"),
            ("item c", "not_applicable: empty_expected_format"),
            ("item d", 1.0),
        ]

    def test_an_empty_answer_has_no_form(self) -> None:
        assert told(observe(format_validity, item("", "JSON"))) == [("item a", 0.0)]

    def test_without_an_expected_format_it_is_unmeasured(self) -> None:
        assert told(observe(format_validity, item("{}", None))) == [("conversation", "unmeasured: no_expected_format")]

    def test_it_is_worth_0_or_10(self) -> None:
        assert format_validity.ten is not None
        assert (format_validity.ten.score(0.0), format_validity.ten.score(1.0)) == (0.0, 10.0)


class TestWhatAFormIsCalled:
    @pytest.mark.parametrize(
        ("told", "name"),
        [
            ("JSON", "JSON"),
            ("Respond with valid JSON only.", "JSON"),
            ("a JSON object", "JSON object"),
            ("json array", "JSON array"),
            ("a list of JSON objects", "JSON array of objects"),
            ("JSON Lines", "JSON Lines"),
            ("Markdown table", "markdown table"),
            ("table", "markdown table"),
            ("CSV", "CSV"),
            ("well-formed XML", "XML"),
            ("bullet points", "bullet list"),
            ("a whole number", "integer"),
            ("yes/no", "yes or no"),
            ("true or false", "true or false"),
            ("YYYY-MM-DD", "date YYYY-MM-DD"),
            ("date in the format YYYY-MM-DD", "date YYYY-MM-DD"),
            ("ISO 8601", "ISO 8601"),
            ("HH:MM", "time HH:MM"),
            ("an e-mail address", "email address"),
            ("one word", "one word"),
            (json.dumps(PRICE), "JSON Schema"),
            (f"JSON Schema: {json.dumps(PRICE)}", "JSON Schema"),
            (f"JSON matching the schema {json.dumps(PRICE)}", "JSON Schema"),
            (f"```json\n{json.dumps(PRICE)}\n```", "JSON Schema"),
            (r"regex: \d+", "regular expression"),
            (r"Matches the regular expression: `\d+`", "regular expression"),
            (r"/\d+/", "regular expression"),
            (r"/^(yes|no)$/i", "regular expression"),
        ],
    )
    def test_known(self, told: str, name: str) -> None:
        form = form_of(told)
        assert form is not None
        assert form.name == name

    @pytest.mark.parametrize(
        "told",
        [
            "JSON with the keys a and b",  # more is asked than can be checked
            "JSON or XML",
            "not JSON",
            "JSON 以外",  # other than JSON
            "markdown",  # any text is
            "a date",  # written how?
            "DD/MM/YYYY",
            "a letter to the customer",
            "yes, no or maybe",
            '{"name": "string"}',  # an example is no schema
            '{"type": "refund"}',
            "{not JSON",
            "/usr/bin",
            "text",
        ],
    )
    def test_unknown(self, told: str) -> None:
        assert form_of(told) is None

    def test_every_name_is_found_by_itself(self) -> None:
        for name, form in FORMS.items():
            assert form_of(name) is form


class TestJson:
    @pytest.mark.parametrize(
        "content", ['{"a": [1, 2.5, null, "x"]}', "4", '"x"', " [1] \n", "```json\n{}\n```", "```\n[]\n```", "9" * 5000]
    )
    def test_valid(self, content: str) -> None:
        assert fault(content, "JSON") == ""

    @pytest.mark.parametrize(
        ("content", "where"),
        [
            ('{"a": 1', "line 1, column 8"),
            ("{'a': 1}", "line 1, column 2"),
            ("[1]\n[2]", "line 2, column 1"),
            ("Here it is: {}", "line 1, column 1"),
            ("NaN", "NaN is no JSON"),
            ("", "nothing"),
        ],
    )
    def test_invalid(self, content: str, where: str) -> None:
        assert where in fault(content, "JSON")

    def test_objects_and_arrays(self) -> None:
        assert fault("{}", "JSON object") == ""
        assert fault("[]", "JSON object") == '"[]" is no JSON object'
        assert fault("[]", "JSON array") == ""
        assert fault("[{}, 1]", "JSON array of objects") == "[1] is no object"

    def test_lines(self) -> None:
        assert fault('{"a": 1}\n\n{"a": 2}', "JSONL") == ""
        assert fault('{"a": 1}\n{"a"', "JSONL").startswith("line 2: not JSON")

    def test_what_nests_too_deeply_is_not_checked(self) -> None:
        with pytest.raises(Unchecked, match="content_too_deep"):
            fit_of("[" * 200_000, "JSON")


class TestSchema:
    def test_the_first_fault_is_told_with_its_path(self) -> None:
        assert fault('{"price": 4}', json.dumps(PRICE)) == ""
        assert fault('{"price": "4"}', json.dumps(PRICE)) == 'price: "4" is not number'
        assert fault("{}", json.dumps(PRICE)) == "price: is missing"
        assert fault("```\n[]\n```", json.dumps(PRICE)) == "[] is not object"
        assert fault("4 crowns", json.dumps(PRICE)).startswith("not JSON")
        lines = {"properties": {"lines": {"items": PRICE}}}
        assert (
            fault('{"lines": [{"price": 1}, {"price": null}]}', json.dumps(lines))
            == "lines[1].price: null is not number"
        )

    @pytest.mark.parametrize(
        ("schema", "good", "bad"),
        [
            ({"type": ["integer", "null"]}, [1, 1.0, None], [1.5, True, "1"]),
            ({"enum": [1, "a", None]}, [1, 1.0, "a", None], [True, "b"]),
            ({"const": {"a": [1]}}, [{"a": [1.0]}], [{"a": [True]}, {}]),
            ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2.9, "x"], [0, 3]),
            ({"minimum": 1, "exclusiveMinimum": True}, [2], [1]),  # draft 4
            ({"multipleOf": 0.1}, [0.3, 1, 0], [0.35]),
            ({"minLength": 2, "maxLength": 3}, ["ab", "žžž", 5], ["a", "abcd"]),
            ({"pattern": "^a"}, ["ab", 1], ["ba"]),
            ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [[1], [1, True]], [[], [1, 1.0], [1, 2, 3]]),
            ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [[1], ["a", 1]]),
            ({"items": [{"type": "string"}], "additionalItems": False}, [["a"]], [["a", 1]]),  # draft 7
            ({"contains": {"type": "string"}, "maxContains": 1}, [["a", 1]], [[1], ["a", "b"]]),
            ({"additionalProperties": False, "properties": {"a": {}}}, [{"a": 1}], [{"b": 1}]),
            ({"additionalProperties": {"type": "string"}}, [{"b": "x"}], [{"b": 1}]),
            (
                {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
                [{"x1": ""}],
                [{"x": 1}],
            ),
            ({"propertyNames": {"maxLength": 1}}, [{"a": 1}], [{"ab": 1}]),
            ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
            ({"dependentRequired": {"a": ["b"]}}, [{}, {"a": 1, "b": 2}], [{"a": 1}]),
            ({"dependencies": {"a": {"required": ["b"]}}}, [{"a": 1, "b": 2}], [{"a": 1}]),
            ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["x", 5], [4]),
            ({"oneOf": [{"type": "number"}, {"minimum": 5}]}, [4, "x"], [5]),
            ({"allOf": [{"type": "number"}, {"minimum": 5}]}, [5], [4, "x"]),
            ({"not": {"type": "string"}}, [1], ["x"]),
            ({"if": {"type": "number"}, "then": {"minimum": 5}, "else": {"minLength": 2}}, [5, "ab"], [4, "a"]),
            ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, ["x"], [1]),
            (
                {"$defs": {"a": {"items": {"$ref": "#/$defs/a"}, "maxItems": 1}}, "$ref": "#/$defs/a"},
                [[[[]]]],
                [[[1, 2]]],
            ),
            ({"type": "string", "nullable": True}, ["x", None], [1]),  # OpenAPI
            ({"type": "string", "format": "date", "x-made-up": 5}, ["no date"], [1]),  # format is a note
        ],
    )
    def test_keywords(self, schema: Any, good: list[Any], bad: list[Any]) -> None:
        for value in good:
            assert [str(one) for one in schema_faults(value, schema)] == [], value
        for value in bad:
            assert list(schema_faults(value, schema)), value

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "text"},
            {"required": "a"},
            {"properties": []},
            {"minLength": "2"},
            {"pattern": "("},
            {"pattern": "a(?=b)"},
            {"$ref": "https://example.org/x"},
            {"$ref": "#/nowhere"},
            {"$ref": "#"},  # it is its own schema, without an end
            {"anyOf": [5]},
            {"multipleOf": 0, "minimum": 0},
            {"unevaluatedItems": False},
        ],
    )
    def test_a_schema_that_is_wrong_or_says_what_is_not_checked_is_refused(self, schema: Any) -> None:
        everything = [{"a": 1}, "aaa", 3, ["x"]]
        with pytest.raises(BadSchema):
            _ = [list(schema_faults(value, schema)) for value in everything]

    def test_one_that_asks_the_same_without_end_is_not_checked(self) -> None:
        # 2³⁰ ways lead through 30 levels of two references
        levels = {f"level{n}": {"allOf": [{"$ref": f"#/$defs/level{n + 1}"}] * 2} for n in range(30)}
        doubled = {"$ref": "#/$defs/level0", "$defs": {**levels, "level30": {"type": "object"}}}
        (observation,) = observe(format_validity, item("{}", f"JSON Schema: {json.dumps(doubled)}"))
        assert (observation.value, observation.reason) == (None, "bad_schema")
        assert observation.detail == "takes more than 10,100 steps to check"

    @pytest.mark.parametrize("leniency", [STRICT, CALL, FORGIVING])
    def test_no_schema_takes_more_than_so_many_steps(self, leniency: Leniency) -> None:
        inner = {"anyOf": [{"$ref": "#"}] * 60}
        schema = {"type": "object", "properties": {"x": inner}, "required": ["x"]}
        value: Any = 5
        for _ in range(30):
            value = {"x": value}
        with pytest.raises(TooManySteps):
            list(schema_faults(value, schema, leniency))

    def test_a_large_value_may_take_as_many_steps_as_it_needs(self) -> None:
        rows = [{"price": number} for number in range(10_000)] + [{"price": "4"}]
        assert [str(one) for one in schema_faults(rows, {"items": PRICE})] == ['[10000].price: "4" is not number']
        # Whole numbers whose hashes are all the same.
        many = [number * (2**61 - 1) for number in range(50_000)]
        assert list(schema_faults(many, {"uniqueItems": True})) == []
        assert [str(one) for one in schema_faults([*many, many[7]], {"uniqueItems": True})] == ["holds something twice"]

    def test_what_is_said_of_a_large_value_is_short(self) -> None:
        long = "x" * 100_000
        (one,) = schema_faults({long: [long]}, {"properties": {long: {"type": "string"}}})
        assert one.problem == f'["{"x" * 157}… is not string'
        assert one.at == "x" * 299 + "…"

    def test_what_is_a_schema(self) -> None:
        assert is_schema(PRICE)
        assert is_schema({"$schema": "https://json-schema.org/draft/2020-12/schema"})
        assert is_schema({"enum": ["a"]})
        assert not is_schema({"name": "string"})
        assert not is_schema({})
        assert not is_schema([])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "a", "ab", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    small = st.integers(0, 2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["a", "^b$", "."]), inner, max_size=2),
            "additionalProperties": inner,
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "propertyNames": inner,
            "dependentRequired": st.dictionaries(st.sampled_from("ab"), st.just(["c"]), max_size=1),
            "dependentSchemas": st.dictionaries(st.sampled_from("ab"), inner, max_size=1),
            "items": inner,
            "prefixItems": several,
            "contains": inner,
            "minContains": small,
            "maxContains": small,
            "uniqueItems": st.booleans(),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "pattern": st.sampled_from(["a", "^b", "é$"]),
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            **{f"{bound}{what}": small for bound in ("min", "max") for what in ("Items", "Length", "Properties")},
            **{name: st.integers(-2, 2) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
        },
    )


SCHEMAS = st.recursive(st.booleans() | st.builds(dict), _schemas, max_leaves=5)


@given(SCHEMAS, VALUES)
def test_what_fits_is_what_an_independent_checker_says(schema: Any, value: Any) -> None:
    theirs = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (next(schema_faults(value, schema), None) is None) == theirs


class TestTable:
    @pytest.mark.parametrize(
        "content",
        [
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "a | b\n--- | :-:\n1 | 2\n",
            "| a |\n|:--|",
            "| a | b |\n|---|---|\n| 1 \\| 2 | |",  # an escaped bar parts no cells
            "```markdown\n| a |\n|---|\n```",
        ],
    )
    def test_valid(self, content: str) -> None:
        assert fault(content, "markdown table") == ""

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ("| a | b |", "a table has a header and a row of dashes"),
            ("| a | b |\n| 1 | 2 |", "line 2 is no row of dashes"),
            ("| a | b |\n|---|", "line 2 has 1 cells, the header 2"),
            ("| a | b |\n|---|---|\n| 1 |", "line 3 has 1 cells, the header 2"),
            ("Here:\n\n| a | b |\n|---|---|", "line 1 is no row"),
            ("| a | b |\n|---|---|\nThat is all.", "line 3 is no row"),
        ],
    )
    def test_invalid(self, content: str, told: str) -> None:
        assert fault(content, "markdown table").startswith(told)


class TestOtherForms:
    @pytest.mark.parametrize(
        ("expected", "content"),
        [
            ("integer", "-12"),
            ("number", "3.5e-2"),
            ("number", ".5"),
            ("yes/no", "Yes"),
            ("boolean", "false"),
            ("ISO date", "2024-02-29"),
            ("ISO 8601", "2024-02-29"),
            ("ISO 8601", "2024-02-29T10:00:00Z"),
            ("ISO 8601 datetime", "2024-02-29 10:00:00.5+01:00"),
            ("HH:MM", "23:59"),
            ("email", "ann.lee+x@mail.example.org"),
            ("URL", "https://example.org/a?b=c#d"),
            ("UUID", "123E4567-e89b-12d3-a456-426614174000"),
            ("one word", "Paris"),
            ("single letter", "b"),
            ("XML", "<a x='1'><b/></a>"),
            ("XML", "```xml\n<a/>\n```"),
            ("CSV", 'a,b\n1,"x, y"\n'),
            ("bullet list", "- a\n  goes on\n\n* b"),
            ("numbered list", "1. a\n2) b"),
        ],
    )
    def test_valid(self, expected: str, content: str) -> None:
        assert fault(content, expected) == ""

    @pytest.mark.parametrize(
        ("expected", "content"),
        [
            ("integer", "12.0"),
            ("integer", "about 12"),
            ("integer", "１２"),
            ("number", "1,000"),
            ("number", "NaN"),
            ("yes/no", "Yes."),
            ("boolean", "yes"),
            ("ISO date", "2024-02-30"),
            ("ISO date", "29.2.2024"),
            ("ISO 8601 datetime", "2024-02-29T25:00:00Z"),
            ("HH:MM", "24:00"),
            ("email", "ann at example.org"),
            ("URL", "example.org"),
            ("URL", "https://exa mple.org"),
            ("URL", "http://[::1"),
            ("UUID", "123"),
            ("one word", "New York"),
            ("single letter", "bb"),
            ("XML", "<a><b></a>"),
            ("XML", "plain"),
            ("CSV", "one column"),
            ("CSV", "a,b\n1"),
            ("CSV", 'a,"b'),
            ("bullet list", "Here:\n- a"),
            ("numbered list", "- a"),
        ],
    )
    def test_invalid(self, expected: str, content: str) -> None:
        assert fault(content, expected) != ""

    def test_xml_with_entities_of_its_own_is_not_checked(self) -> None:
        with pytest.raises(Unchecked, match="content_not_checked"):
            fit_of('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "XML")

    def test_a_field_of_csv_beyond_all_bounds_is_not_checked(self) -> None:
        with pytest.raises(Unchecked, match="content_too_long"):
            fit_of("a," + "b" * 200_000, "CSV")


@given(st.text(max_size=30), st.sampled_from(sorted(FORMS)) | st.text(max_size=20))
def test_any_text_has_a_form_or_a_fault_or_cannot_be_checked(content: str, expected: str) -> None:
    try:
        fit = fit_of(content, expected)
    except Unchecked:
        return
    assert fit.format
