"""How alike two texts are: long ones are compared by their words, in no more time."""

from __future__ import annotations

from convoscope.text.folding import compact, likeness, resemble

COUNTED = [f"number {number} of many" for number in range(5_000, 6_000)]
LONG = " ".join(COUNTED)


def test_a_part_of_a_long_text_is_like_the_whole() -> None:
    assert likeness(" ".join(COUNTED[400:600]), LONG) == 1.0
    # Of 200 × 4 words, three of four stand in the other, in order; the numbers do not.
    other = " ".join(f"number {number} of many" for number in range(7_000, 7_200))
    assert likeness(other, LONG) == 0.75
    assert likeness("nothing like that " * 200, LONG) == 0.0


def test_long_texts_resemble_each_other_if_they_begin_alike() -> None:
    assert resemble(LONG, LONG.replace("number 5999", "the last"))
    assert not resemble(LONG, "Nothing in it is like the other text. " * 300)


def test_a_bracket_that_is_never_closed_is_no_tag() -> None:
    assert compact("[laughs] So [it is") == "soitis"
    assert compact("a [b [c] d] e [") == "ade"
