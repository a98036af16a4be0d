"""How far a fingerprint reaches: whatever a metric computes with, and nothing of the process that computes it."""

import importlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from convoscope.conversation import Conversation
from convoscope.metrics import CONVERSATION, NEITHER, Observation, measured, metric
from convoscope.metrics import conversation as family
from convoscope.metrics.signatures import computed as signature

HEAD = """
import functools
from convoscope.metrics import CONVERSATION, NEITHER, Need, measured, metric

declared = functools.partial(metric, version=1, observes=CONVERSATION, unit="x", better=NEITHER)
"""

# A package whose metric is `mine`; `§` stands for what is changed.
CLOSURE = """
def made(limit):
    @declared("reach.mine")
    def mine(conversation):
        "What is it?"
        return measured(conversation, limit)
    return mine

mine = made(§)
"""

METRIC = """
@declared("reach.mine", needs=NEEDS)
def mine(conversation):
    "What is it?"
    return measured(conversation, {body})
"""


def reads(above: str, body: str, needs: str = "()") -> str:
    """A metric that computes the body, with something above it in the module."""
    return f"{above}\nNEEDS = {needs}\n{METRIC.format(body=body)}"


NEED = """Need(
    code='{}',
    field='f',
    unlock='u',
    present=lambda conversation: {},
    status_if_missing='{}',
)"""

CHANGES = {
    "a closure value": (CLOSURE, "1", "2"),
    "a set": (reads("KNOWN = {'a', 'b', §}", "'a' in KNOWN"), "'c'", "'d'"),
    "a frozen set": (reads("KNOWN = frozenset({'a', 'b', §})", "'a' in KNOWN"), "'c'", "'d'"),
    "a function in a tuple": (reads("def one(): return §\nALL = (one,)", "ALL[0]()"), "1", "2"),
    "a function in a dict": (reads("def one(): return §\nALL = {'a': one}", "ALL['a']()"), "1", "2"),
    "a function in a list in a dict": (reads("def one(): return §\nALL = {'a': [one]}", "ALL['a'][0]()"), "1", "2"),
    "a function that is a default": (reads("def one(): return §\ndef two(of=one): return of()", "two()"), "1", "2"),
    "a helper under functools.cache": (reads("@functools.cache\ndef one(): return §", "one()"), "1", "2"),
    "a helper under lru_cache": (reads("@functools.lru_cache(maxsize=9)\ndef one(): return §", "one()"), "1", "2"),
    "a class": (reads("class One:\n    def value(self): return §", "One().value()"), "1", "2"),
    "what a class reads": (reads("N = §\nclass One:\n    def value(self): return N", "One().value()"), "1", "2"),
    "the base of a class": (
        reads("class Base:\n    def value(self): return §\nclass One(Base): pass", "One().value()"),
        "1",
        "2",
    ),
    "a called metric": (
        reads("@declared('reach.other')\ndef other(c):\n    'What?'\n    return measured(c, §)", "other(conversation)"),
        "1",
        "2",
    ),
    "what an unmet need comes to": (
        reads("", "1", "(" + NEED.format("no_x", "True", "§") + ",)"),
        "unmeasured",
        "not_applicable",
    ),
    "the second lambda": (
        reads(
            f"A = {NEED.format('no_a', 'True', 'unmeasured')}\nB = {NEED.format('no_b', '§', 'unmeasured')}",
            "1",
            "(A, B)",
        ),
        "True",
        "False",
    ),
    "the second lambda of a line": (reads("A, B = lambda: 1, lambda: §", "A() + B()"), "1", "2"),
    "the second lambda of a list": (
        reads("ALL = [\n    (lambda:\n        1),\n    (lambda:\n        §),\n]", "ALL[1]()"),
        "1",
        "2",
    ),
}

HELPER_CHANGES = {
    "a function": ("def one(): return §", "helper.one()"),
    "a constant": ("one = §", "helper.one"),
    "a cached function": ("import functools\n@functools.cache\ndef one(): return §", "helper.one()"),
    "a class": ("class One:\n    def value(self): return §", "helper.One().value()"),
    "what a function there calls": ("def two(): return §\ndef one(): return two()", "helper.one()"),
}

Sign = Callable[..., str]
NAME = "reached"


def test_it_changes_with_the_view_that_is_asked_for(sign: Callable[..., str]) -> None:
    plain = ANNOTATED.replace("§", "").replace("¶", "")
    assert sign(plain.replace("(conversation)", "(conversation: 'MetricContext')")) != sign(plain)


@pytest.fixture
def sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sign]:
    """Writes a package, imports it and signs its metric."""
    copies = itertools.count()

    def signed(package: str, helper: str = "") -> str:
        folder = write(tmp_path / str(next(copies)), package, helper)
        forget()
        monkeypatch.syspath_prepend(folder)
        module = importlib.import_module(NAME)
        assert module.__file__ == str(folder / NAME / "__init__.py")
        return signature(module.mine)

    yield signed
    forget()


def write(folder: Path, package: str, helper: str = "") -> Path:
    (folder / NAME).mkdir(parents=True, exist_ok=True)
    (folder / NAME / "__init__.py").write_text(HEAD + package)
    (folder / NAME / "helper.py").write_text(helper)
    return folder


def forget() -> None:
    for name in (NAME, f"{NAME}.helper"):
        sys.modules.pop(name, None)


class TestItChangesWith:
    @pytest.mark.parametrize(("package", "old", "new"), CHANGES.values(), ids=CHANGES)
    def test_what_it_reads_and_calls(self, sign: Sign, package: str, old: str, new: str) -> None:
        before = sign(package.replace("§", old))
        assert sign(package.replace("§", old)) == before
        assert sign(package.replace("§", new)) != before

    @pytest.mark.parametrize(("helper", "body"), HELPER_CHANGES.values(), ids=HELPER_CHANGES)
    @pytest.mark.parametrize("how", [f"from {NAME} import helper", f"import {NAME}.helper as helper"])
    def test_what_it_reaches_through_a_module(self, sign: Sign, how: str, helper: str, body: str) -> None:
        package = reads(how, body)
        before = sign(package, helper.replace("§", "1"))
        assert sign(package, helper.replace("§", "1")) == before
        assert sign(package, helper.replace("§", "2")) != before

    def test_the_table_beside_the_module(self, sign: Sign, tmp_path: Path) -> None:
        bare = sign(READS_TABLE)
        table = tmp_path / "1" / NAME / "__init__.toml"
        table.parent.mkdir(parents=True)
        table.write_text("limit = 1")
        assert sign(READS_TABLE) != bare


ANNOTATED = """
def one(value§):
    return value

@declared("reach.mine")
def mine(conversation)¶:
    "What is it?"
    return measured(conversation, one(1))
"""

DOCUMENTED = """
class Two:
    "§"
    def value(self):
        "§"
        return 2

@declared("reach.mine")
def mine(conversation):
    "What is it? §"
    def one():
        "§"
        return 1
    return measured(conversation, one() + Two().value())
"""


READS_TABLE = """
from pathlib import Path

@declared("reach.mine")
def mine(conversation):
    "What is it?"
    return measured(conversation, len(Path(__file__).with_suffix(".toml").read_text()))
"""


class TestItDoesNotChangeWith:
    def test_the_folder_that_the_package_is_in(self, sign: Sign) -> None:
        # Each call of `sign` writes the package to a folder of its own.
        assert sign(READS_TABLE) == sign(READS_TABLE)

    @pytest.mark.parametrize(("given", "back"), [(": int", " -> int"), (": 'str | None' ", ""), ("", " -> 'float'")])
    def test_annotations_of_what_is_given_and_given_back(self, sign: Sign, given: str, back: str) -> None:
        plain = ANNOTATED.replace("§", "").replace("¶", "")
        assert sign(ANNOTATED.replace("§", given).replace("¶", back)) == sign(plain)

    def test_the_conversation_said_or_not(self, sign: Sign) -> None:
        plain = ANNOTATED.replace("§", "").replace("¶", "")
        assert sign(plain.replace("(conversation)", "(conversation: 'Conversation')")) == sign(plain)

    def test_docstrings_of_functions_and_classes(self, sign: Sign) -> None:
        assert sign(DOCUMENTED.replace("§", "One.")) == sign(DOCUMENTED.replace("§", "Another."))

    @pytest.mark.parametrize(
        ("home", "counts"),
        [
            ("convoscope.conversation.turns", False),
            ("convoscope.scores.observation", False),
            ("convoscope.metrics.declaration", False),
            ("convoscope.scores.reducers", False),
            ("convoscope.text.comparison", True),
            ("convoscope.metrics.needs", True),
        ],
    )
    def test_the_frame_that_every_metric_stands_in(
        self, monkeypatch: pytest.MonkeyPatch, home: str, counts: bool
    ) -> None:
        def status_if_missing(conversation: Conversation, value: float) -> Observation:
            return measured(conversation, value + 1)

        importlib.import_module(home)
        before = signature(family.turns)
        status_if_missing.__module__ = home
        monkeypatch.setattr(family, "measured", status_if_missing)
        assert (signature(family.turns) != before) == counts


PROCESS = """
def one(): return 1
def two(): return 2

BY_NAME = {"one": one, "two": two, "three": [one, two]}
KNOWN = {"a", "b", "c", "d", "e", "f"}

@declared("reach.mine")
def mine(conversation):
    "What is it?"
    return measured(conversation, BY_NAME["one"]() + (conversation.id in KNOWN) + ("x" in {"x", "y", "z"}))

exec('''
def unreadable(conversation):
    "What is it?"
    return measured(conversation, sum(one() for one in BY_NAME["three"]) + (lambda: 3)())
''')
hidden = declared("reach.hidden")(unreadable)

class Measure:
    "What is it?"
    def __call__(self, conversation):
        return measured(conversation, 1)

called = declared("reach.called")(Measure())
"""

SIGN = f"""
import inspect, {NAME}
from convoscope.metrics.signatures import computed as signature
try:
    inspect.getsource({NAME}.unreadable)
except OSError:
    print(*(signature(one) for one in ({NAME}.mine, {NAME}.hidden, {NAME}.called)))
"""


def test_it_is_the_same_in_every_process(tmp_path: Path) -> None:
    folder = write(tmp_path / "package", PROCESS)

    def sign(seed: str) -> list[str]:
        path = os.pathsep.join([str(folder), *sys.path])
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", SIGN], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return done.stdout.split()

    once = sign("1")
    assert len(set(once)) == 3  # a dict of functions, a metric without source, a callable object
    assert sign("2") == once


class Measure:
    """What is it?"""

    def __call__(self, conversation: Conversation) -> Observation:
        return measured(conversation, 1)


def test_a_callable_object_is_signed_like_a_function() -> None:
    declared = metric("reach.object", version=1, observes=CONVERSATION, unit="x", better=NEITHER)(Measure())
    assert signature(declared).startswith("sha256:")
