"""Each metric has a runnable example with a number that can be derived by hand, in its docstring."""

import doctest
import importlib
from inspect import cleandoc

import pytest

from convoscope.metrics import examples, registry
from convoscope.metrics.declaration import Declaration
from convoscope.metrics.dialogue.frames import labelled
from convoscope.metrics.examples import example, value

OURS = {
    key: declared
    for key, declared in sorted(registry.installed().declared.items())
    if declared.function.__module__.startswith("convoscope.")
}


def doctest_of(declared: Declaration) -> doctest.DocTest:
    helpers = {"example": example, "value": value, "labelled": labelled}
    names = {**vars(importlib.import_module(declared.function.__module__)), **helpers}
    text = cleandoc(declared.function.__doc__ or "")
    return doctest.DocTestParser().get_doctest(text, names, declared.key, declared.function.__module__, 0)


@pytest.mark.parametrize("key", OURS)
def test_its_example_gives_what_it_says(key: str) -> None:
    test = doctest_of(OURS[key])
    assert test.examples, f"{key} has no example in its docstring: >>> value({key!r}, example(...))"
    report: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=report.append).failed == 0, "".join(report)


def test_the_example_is_not_part_of_the_description() -> None:
    assert [key for key, declared in OURS.items() if ">>>" in declared.description] == []


def test_examples_of_the_helpers_themselves() -> None:
    assert doctest.testmod(examples).failed == 0


def test_a_sound_has_a_start_and_an_end() -> None:
    conversation = example("0-1.5 user: Hello?", "2 assistant: Hello.")
    spoken, typed = conversation.utterances
    assert [(one.start, one.end) for one in spoken.segments] == [(0.0, 1.5)]
    assert (typed.segments, typed.time.at if typed.time else None) == ((), 2.0)


def test_what_is_no_line_is_refused() -> None:
    with pytest.raises(Exception, match="'hello' is not a line of an example"):
        example("hello")


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(Exception, match=r"unknown metric 'tools\.sucess'"):
        value("tools.sucess", example("user: Hello?"))
