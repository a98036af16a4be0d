"""Quotes as judges write them off: what a person takes for the same words is found, and what was never said is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.judging.quotes import found_quote, found_words, is_quoted, plain
from convoscope.metrics import example
from convoscope.metrics.judged_items import g_eval_scorer
from convoscope.scoring.evaluate import answered
from support.judged_items import item, judged, listed

TABLE = (
    "# Your options\n| Option | Time limit |\n|---|---|\n| **Exchange** | within 60 days |\n\n"
    "* We call it “proof of purchase” – it’s on the *receipt*…"
)
GERMAN = "Sie können online unter „Mein Konto“ kündigen. Die Frist beträgt einen Monat. Eine Gebühr fällt nicht an."
PATH = 'It is in C:\\new and says "done" -- now.'


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        # Quotation marks, in any country's way of writing, around words in the text and around the quote.
        ('unter "Mein Konto" kündigen', GERMAN),
        ("unter “Mein Konto” kündigen", GERMAN),
        ("unter »Mein Konto« kündigen", GERMAN),
        ("unter ‚Mein Konto‘ kündigen", GERMAN),
        ("unter Mein Konto kündigen", GERMAN),
        ("„Die Frist beträgt einen Monat.“", GERMAN),
        ("「三十天内」", "退货免费，三十天内。"),
        ("it's fine", "No, it´s fine."),
        ("it´s fine", "No, it’s fine."),
        # Dashes, dots and blanks.
        ("“proof of purchase” - it's on the", TABLE),
        ("it is open 9-5", "It is open 9–5."),
        ("it is -5 degrees", "It is −5 degrees."),
        ("on the receipt...", TABLE),
        ("die\u00a0Frist  beträgt", GERMAN),
        # Marks of Markdown, with and without.
        ("Exchange within 60 days", TABLE),
        ("Exchange | within 60 days", TABLE),
        ("| **Exchange** | within 60 days |", TABLE),
        ("Your options", TABLE),
        ("it’s on the receipt", TABLE),
        # Marks themselves, and pictures: what a voice cannot say.
        ("**", TABLE),
        ("|---|", TABLE),
        ("😀", "Welcome 😀 to us."),
        # Escapes, as the prompt shows them.
        (r"C:\new and says \"done\"", PATH),
        (r"C:\\new and says", PATH),
        (r"Settings \u003e Billing", "Under Settings > Billing."),
        # A gap between parts that say something, in their order.
        ("Sie können online ... Die Frist beträgt einen Monat.", GERMAN),
        ("Sie können online […] Die Frist beträgt …", GERMAN),
        # The label of a line, as the prompt shows it.
        ("[turn 2] agent: Sie können online", GERMAN),
        ('[turn 2] agent: "Sie können online"', GERMAN),
        ('[chunk 1] for "the fee" "Sie können online"', GERMAN),
        ('for "the fee" "Sie können online"', GERMAN),
        ("chunk 1: Sie können online", GERMAN),
        ("agent_response: Sie können online", GERMAN),
        ('"the tool" returns "Sie können online"', GERMAN),
    ],
)
def test_the_same_words_are_found(quote: str, text: str) -> None:
    assert is_quoted(quote, [plain(text)])
    assert found_quote(quote, text)


@pytest.mark.parametrize(
    "quote",
    [
        "",
        '"“”"',
        "...",
        "**",  # there is none
        "😀",
        "S",
        "[turn 2] agent:",  # a label alone shows nothing
        "[step 2]",
        'You can cancel it here" returns Sie können online',  # no name of a tool
        'for "we pay it back" Sie können online',
        "[turn 2] agent: You can cancel",  # a translation is not what was said
        "unter „Dein Konto“ kündigen",
        "Die Frist beträgt zwei Monate.",
        "Eine Gebühr fällt an.",  # a word was left out, and no gap says so
        "Die Frist beträgt einen Monat ... Sie können online",  # not in this order
        "Sie können online ... Die Frist beträgt zwei Monate.",  # one part is made up
        "Eine ... Frist ... fällt ... an.",  # parts so short make any sentence
        "Die Frist ... an",
    ],
)
def test_other_words_are_not(quote: str) -> None:
    assert not is_quoted(quote, [plain(GERMAN)])
    assert found_quote(quote, GERMAN) == ""


def test_the_parts_are_of_one_text() -> None:
    texts = [plain("Sie können online kündigen."), plain("Die Frist beträgt einen Monat.")]
    assert not is_quoted("Sie können online ... Die Frist beträgt", texts)


@pytest.mark.parametrize(
    ("quote", "text", "exact"),
    [
        ("Exchange within", TABLE, "Exchange** | within"),
        ("well I do", "Well... I do.", "Well... I do"),
        ("Sie können ... „Mein Konto“ kündigen", GERMAN, "Sie können online unter „Mein Konto“ kündigen"),
        ("user: the FEE", "Is the fee nine?", "the fee"),
    ],
)
def test_the_words_are_as_the_text_has_them(quote: str, text: str, exact: str) -> None:
    assert found_quote(quote, text) == exact


def value_of(name: str, answer: Any, **fields: Any) -> Any:
    [*rows] = judged(name, item(**fields), answer)
    return [row.reason or row.value for row in rows]


@pytest.mark.parametrize(
    ("quote", "value"),
    [
        ("names the price", 1 / 4),
        ("30 days", 1 / 4),
        ("names the colour", "evidence_not_found"),
        ("", "evidence_not_found"),
    ],
)
def test_criteria_are_quoted_wherever_they_are_written(quote: str, value: Any) -> None:
    """What is missing from an answer shows in the criteria, also in those of a scorer of the user's own."""
    scorer = g_eval_scorer("priced", criteria="The answer names the price.")
    answer = {"reasoning": "No price.", "quote": quote, "score": 2}
    instrument = Instrument(lambda prompt, schema: answer, JudgeSettings(use_cache=False))
    [row] = asyncio.run(answered(scorer, item(without=["context"]), {"judge": instrument}))
    assert (row.reason or row.value) == value


class TestWholeLines:
    """A call is shown as a line. Who quotes the line has quoted the call."""

    CALLS: Any = [{"tool_name": "weather", "parameters": {"city": "Malmö"}, "call_id": "1"}]

    @pytest.mark.parametrize(
        ("quote", "value"),
        [
            ('[call 1] "weather" with {"city": "Malmö"}', 1),
            ('agent calls "weather" with {"city": "Malmö"}', 1),
            ('weather with {"city": "Malmö"}', 1),
            ("weather", 1),
            ('[call 1] "weather" with {"city": "Oslo"}', "evidence_not_found"),
            ("[call 1]", "evidence_not_found"),
        ],
    )
    def test_of_an_item(self, quote: str, value: Any) -> None:
        answer = {"items": [{"id": 1, "explanation": "", "quote": quote, "score": 1}]}
        assert value_of("tools.tool_relevancy", answer, tool_calls=self.CALLS, tool_call_results=[]) == [value]

    @pytest.mark.parametrize(
        ("quote", "value"),
        [
            ('[turn 1] agent calls "book" with {"day": "Friday"}', 0),
            ('"book" with {"day": "Friday"}', 0),
            ('[turn 1] "book" returns "done"', 0),
            ('[turn 1] agent calls "book" with {"day": "Monday"}', "evidence_not_found"),
        ],
    )
    def test_of_a_call(self, quote: str, value: Any) -> None:
        fine = {"explanation": "", "quote": "", "flagged": False, "rating": 3}
        names = ("misrepresenting_tool_result", "violating_policies", "failing_to_disambiguate", "hallucination")
        worst = {"explanation": "", "quote": quote, "flagged": True, "rating": 1}
        answer = {"dimensions": {**dict.fromkeys(names, fine), "fabricating_tool_parameters": worst}}
        call = example("user: A table?", 'tool: book {"day": "Friday"} -> "done"', "assistant: Booked.")
        [row] = judged("judged.faithfulness", call, answer)
        assert (row.reason or row.value) == value

    def test_a_label_makes_no_short_quote_long(self) -> None:
        """`30` shows nothing, wherever it is said to be from."""
        for quote, value in (("[chunk 2] Lamps: return within 30 days.", 1), ("[chunk 2] 30", "evidence_not_found")):
            claim = listed(("supported", quote, "You can return it within 30 days."), ("none", "", "Shipping is free."))
            assert value_of("retrieval.faithfulness", claim) == [value]


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        # Fewer than four letters show nothing, wherever they are; four do.
        ("re", "Where is the light switch?", ""),
        ("is", "Where is the light switch?", ""),
        ("the", "Where is the light switch?", ""),
        ("30", "It is 30 days.", ""),
        ("days", "It is 30 days.", "days"),
        # All of an utterance may be short.
        ("No", "No.", "No"),
        ("[3] user: No.", "No.", "No."),
        ("No", "No, thank you.", ""),
        # Whole words: neither the end of one, nor its beginning.
        ("here", "Where is the light switch?", ""),
        ("cancel", "What is the cancellation fee?", ""),
        ("t is ligh", "It is light.", ""),
        # A later occurrence may be whole.
        ("cancel", "The cancellation fee? Then cancel it.", "cancel"),
        ("I can't cancel it", "Well, I can’t cancel it!", "I can’t cancel it"),
        # Two letters are six bytes, and a word may begin at any letter, where no blank parts words.
        ("退款", "我要退款。", "退款"),
        ("退", "我要退款。", ""),
        ("iPhone", "我的iPhone坏了。", "iPhone"),
        ("환불", "환불을 원합니다.", "환불"),
        ("отмен", "Я хочу отменить заказ.", ""),
        ("отменить", "Я хочу отменить заказ.", "отменить"),
    ],
)
def test_evidence_is_whole_words_that_show_something(quote: str, text: str, found: str) -> None:
    assert found_words(quote, text) == found


def test_evidence_that_is_nowhere_whole_is_looked_for_quickly() -> None:
    assert found_words("aaaa", "a" * 12_000) == ""
