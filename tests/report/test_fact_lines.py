"""Facts that arrived wrong in a recording, as the terminal and the page have them."""

from convoscope.report.page.words import TextDifference, ThreeTexts, fact_chips, fact_remarks, text_block
from convoscope.report.story import _moments_text

WRONG = TextDifference("amount", "$50", "$15", start=3.5)
OPEN = TextDifference("amount", "$1,250", "$150", start=12.0)


def test_wrong_facts_and_open_ones_have_their_moments() -> None:
    texts = ThreeTexts([WRONG], "It is $50 or $1,250.", "it is $15 or $150", undecided=[OPEN], decided=1)
    assert [*fact_remarks(texts)] == [
        (3.5, "$50 arrived as $15", False),
        (12.0, "$1,250 may have arrived as $150", True),
    ]
    assert [*fact_chips(texts)] == [("1 name or number arrived wrong", True), ("1 fact may be wrong: listen", False)]
    block = text_block(texts, "", lambda second: second - 1)
    assert block is not None
    assert block.sum == "$50 arrived as $15, $1,250 may have arrived as $150: listen at 0:11.0."
    assert block.rows[1][1] == (("", "it is "), ("x", "$15"), ("", " or "), ("m", "$150"), ("", ""))


def test_what_only_the_log_heard_by_log_is_shown() -> None:
    texts = ThreeTexts([], "15 days", "15 days", "50 days", heard_by_log=[TextDifference("amount", "15", heard="50")])
    block = text_block(texts, "", float)
    assert block is not None
    assert [name for name, _ in block.rows] == ["meant", "spoken", "heard"]
    assert block.rows[2][1] == (("", ""), ("x", "50"), ("", " days"))
    assert block.sum == "15 was heard as 50."


def test_a_fact_that_both_changed_has_both_steps() -> None:
    both = TextDifference("amount", "$50", heard="$60")
    texts = ThreeTexts([WRONG], "$50", "$15", "$60", heard_by_log=[both], decided=4)
    block = text_block(texts, "", float)
    assert block is not None
    assert block.sum == "$50 was spoken as $15 and heard as $60."
    assert [*fact_chips(texts)] == [("1 of 4 names and numbers arrived wrong", True)]


def test_moments_are_read_by_a_person() -> None:
    moments = [{"start": 12.34, "end": 13.0, "kind": "barge_in_lost", "text": "stop"}, {"start": 61, "kind": "click"}]
    assert _moments_text(moments) == "at 0:12.3 barge in lost: stop; at 1:01.0 click"
    assert _moments_text([{"meant": "$50", "spoken": "", "start": 2.0, "end": 2.5}]) == 'at 0:02.0 meant $50, spoken ""'
    assert _moments_text([{"text": "hello", "start": 1.0, "end": 1.5}]) == "1 word, from 0:01.0 on"
    assert _moments_text({"start": 3.0, "value": 2.1}) == "at 0:03.0 value 2.1"
    assert _moments_text([1, 2]) == _moments_text([]) == _moments_text([{"start": "never"}]) == ""
