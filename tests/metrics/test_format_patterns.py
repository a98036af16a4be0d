"""Patterns as the form of an answer: an engine that always comes to an end, and answers as Python does."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from convoscope.metrics.answer.forms import Unchecked, fit_of, format_validity
from convoscope.scoring.evaluate import observe
from convoscope.text.json_schema import BadSchema, schema_faults
from convoscope.text.patterns import BadPattern, UnsupportedPattern, Untried, checked
from support.formatted_answers import fault, item

ATOMS = (
    *"ab_1é.^$]}-",
    *(r"\d", r"\w", r"\W", r"\s", r"\S", r"\b", r"\A", r"\Z", r"\.", r"\n", r"\x61", r"\u00e9", r"\101", r"\0", r"\_"),
    *("[a-b]", "[^a]", r"[^\W_]", r"[\W1]", "[]a]", "[^]a]", "[a-]", "[-a]", "[+--]", r"[\d_]", r"[\b\n]", "[é-ê]"),
    *("(?#x)", "a{", r"\N{LATIN SMALL LETTER A}"),
)
REPEATS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{,2}", "{1,}", "{,}", "{0,2}?")


def _patterns(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(st.sampled_from(["(", "(?:", "(?P<n>", "(?i:", "(?s:"]), inner).map(lambda made: f"{''.join(made)})"),
        st.tuples(inner, st.sampled_from(REPEATS)).map(lambda made: f"(?:{made[0]}){made[1]}"),
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS), _patterns, max_leaves=6)


@cache
def every_character() -> list[str]:
    """All that are assigned, a thousand in each text."""
    every = "".join(one for one in map(chr, range(0x110000)) if unicodedata.category(one) not in ("Cn", "Cs", "Co"))
    return [every[start : start + 1000] for start in range(0, len(every), 1000)]


class TestPattern:
    def test_the_whole_of_it_must_match(self) -> None:
        assert fault(" 2024 \n", r"regex: \d{4}") == ""
        assert fault("in 2024", r"regex: \d{4}") == r'"in 2024" does not match \d{4}'
        assert fault("in 2024", r"regex: .*\d{4}") == ""

    def test_flags(self) -> None:
        assert fault("YES", "/yes|no/") != ""
        assert fault("YES", "/yes|no/i") == ""

    @pytest.mark.parametrize(
        "pattern",
        [
            "^" + "a?" * 40 + "b$",
            "^(?:(?:a|a){10}){10}b$",
            "(?:a|a)" * 40 + "b",
            "a{0,9}" * 12 + "b",
            "(?:aa|a|)" * 30 + "b",
            "(a+)+b",
            "(a*)*b",
            r"(\w+\s?)*!",
            "(.*a){12}b",
            ".*.*.*.*.*.*=",
        ],
    )
    def test_one_with_more_ways_than_can_be_tried_comes_to_an_end(self, pattern: str) -> None:
        assert checked(pattern).search("a" * 5_000) is None
        assert fault("a" * 5_000, f"regex: {pattern}") != ""
        schema = json.dumps({"type": "string", "pattern": pattern})
        assert fault(json.dumps("a" * 5_000), schema).endswith(f"does not match {pattern}")

    @pytest.mark.parametrize(
        ("pattern", "told"),
        [
            ("a(?=b)", "invalid perl operator: (?="),
            ("(?<!a)b", "invalid perl operator: (?<!"),
            (r"(a)\1", "a back reference"),
            ("(?P<x>a)(?P=x)", "invalid perl operator: (?P"),
            ("(a)?(?(1)b|c)", "invalid perl operator: (?("),
            ("(?>a+)b", "invalid perl operator: (?>"),
            ("a++b", "bad repetition operator: ++"),
            ("(?x) a b", "a verbose pattern"),
            ("a{1001}", "invalid repetition size: {1001}"),
            ("((a{100}){100}){100}", "invalid repetition size"),
            (".{900}" * 20, "pattern too large - compile failed"),
        ],
    )
    def test_what_the_engine_cannot_try_is_unmeasured(self, pattern: str, told: str) -> None:
        (observation,) = observe(format_validity, item("abc", f"regex: {pattern}"))
        assert (observation.status, observation.reason) == ("unmeasured", "pattern_not_supported")
        assert f"{pattern}: {told}" in observation.detail
        with pytest.raises(BadSchema, match=r"^pattern "):
            list(schema_faults("abc", {"pattern": pattern}))

    def test_long_texts_and_patterns(self) -> None:
        with pytest.raises(Unchecked, match="content_too_long: 10001 characters; this pattern is tried on 10000"):
            fit_of("a" * 10_001, "regex: a+")
        with pytest.raises(BadPattern, match="longer than 1000"):
            checked("a" * 1001)
        # A pattern of many states is tried on shorter texts.
        with pytest.raises(Untried, match=r"9000 characters; this pattern is tried on [0-9]{4}$"):
            checked("(?:(a?)(b?)(c?)(d?)){500}z").search("a" * 9_000)
        # Each `a` is looked at to the end of the text, whether a `b` follows.
        with pytest.raises(Untried, match=r"10000 characters; the first [0-9]+ matches of this pattern are tried"):
            list(checked("(?:a.*b|a)(?:x{200}y)?").finditer("a" * 10_000))

    def test_boundaries_of_words_beyond_ascii(self) -> None:
        assert checked(r"\bcaf\b").search("“caf” – 3 €") is not None
        assert fault("a dog", r"regex: .*\bdog\b") == ""
        with pytest.raises(Unchecked, match="content_not_ascii"):
            fit_of("le café", r"regex: .*\bcaf\b.*")

    def test_what_can_be_tried_in_ascii_alone(self) -> None:
        for pattern in (r"[^\Wab]+", r"\w{200}|\w+"):
            assert fault("dog", f"regex: {pattern}") == ""
            with pytest.raises(Unchecked, match="content_not_ascii"):
                fit_of("dôg", f"regex: {pattern}")

    def test_half_of_a_character(self) -> None:
        assert checked("a.b").search("a\ud800b") is not None
        with pytest.raises(UnsupportedPattern, match="a lone surrogate"):
            checked("\ud800")
        with pytest.raises(UnsupportedPattern, match="a lone surrogate"):
            checked(r"[a\ud800]")

    @pytest.mark.parametrize("name", [r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"[^\W_]", r"[^\W\d_]", r"[\W\d]"])
    def test_classes_hold_what_they_hold_in_python(self, name: str) -> None:
        for text in every_character():
            assert [one[0] for one in checked(name).finditer(text)] == re.findall(name, text)

    @settings(max_examples=300, deadline=None)
    @given(PATTERNS, st.text(alphabet="ab_1é \n.-A", max_size=8), st.sampled_from([0, re.I, re.M, re.I | re.M, re.S]))
    def test_a_pattern_finds_what_it_finds_in_python(self, pattern: str, text: str, flags: int) -> None:
        assume(not (text.endswith("\n") and "$" in pattern and not flags & re.M))  # see the engine's `$`
        try:
            ours = checked(pattern, flags)
            found = ours.search(text)
        except (BadPattern, Untried):
            return
        theirs = re.compile(pattern, flags).search(text)
        assert (found is None) == (theirs is None)
        if found is not None and theirs is not None:
            assert (found.span(), found.groups()) == (theirs.span(), theirs.groups())
        assert (ours.fullmatch(text) is None) == (re.fullmatch(pattern, text, flags) is None)

    @given(st.text(alphabet="ab()[]{}|*+?.\\^$,1:=!<>P#-wWdDsSbBZzAxuN\u00e9", max_size=12))
    def test_any_text_is_a_pattern_or_refused(self, text: str) -> None:
        try:
            usable = checked(text)
        except BadPattern:
            return
        usable.search("aabbaabb" * 3 + "!")
