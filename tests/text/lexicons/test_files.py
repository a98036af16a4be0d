"""A language is a file: what is wrong with it is said, and a new one is read without a line of code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import convoscope
from convoscope.errors import UsageError
from convoscope.text import lexicon as module
from convoscope.text.lexicon import PURPOSES, folded_phrases, lexicon, lexicon_languages, lexicons

FINNISH = """
name = "Finnish"
blanks = true
common = ["ja on ei se tämä mitä oli olen sen"]
[objection]
phrases = ["ei ole sitä mitä (kysyin|pyysin)"]
[thanks]
phrases = ["kiitos"]
[refusal]
phrases = ["valitettavasti"]
[hand_over]
phrases = ["yhdistän (teidät|sinut)"]
[goodbye]
phrases = ["näkemiin"]
[request]
phrases = ["haluan"]
[agreement]
phrases = ["^ kyllä"]
[murmur]
phrases = ["joo"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    lexicon.cache_clear()
    lexicons.cache_clear()
    yield tmp_path
    lexicon.cache_clear()
    lexicons.cache_clear()


def test_six_languages_have_all_lists() -> None:
    assert lexicon_languages() == ("de", "en", "es", "fr", "ja", "pt")
    for known in lexicons():
        assert all(known.phrases[purpose] for purpose in PURPOSES), known.language


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('name = "Finnish"', "", "name must be a text"),
        ("blanks = true", 'blanks = "yes"', "blanks true or false"),
        ("[thanks]", "[thank]", r"\[thanks\] is missing"),
        ('phrases = ["kiitos"]', 'phrases = "kiitos"', "thanks.phrases must be a list of texts"),
        ('phrases = ["kiitos"]', 'phrases = ["(kiitos"]', "thanks.phrases: .*bracket is not closed"),
        ('phrases = ["kiitos"]', 'phrases = ["kiitos)"]', "thanks.phrases: "),
        ('phrases = ["kiitos"]', 'phrases = ["(kiitos|)"]', "thanks.phrases: .*choice is empty"),
        ('phrases = ["kiitos"]', 'phrases = ["n\' kiitos"]', "thanks.phrases: .*no whole word"),
        ('phrases = ["kiitos"]', 'phrases = ["kiitos"]\nwords = []', "unknown field thanks.words"),
        ('name = "Finnish"', 'nam = "Finnish"', "unknown field nam"),
        ('name = "Finnish"', "name = ", "is not TOML"),
    ],
)
def test_a_mistake_names_the_file_and_the_field(folder: Path, before: str, after: str, message: str) -> None:
    assert before in FINNISH
    (folder / "fi.toml").write_text(FINNISH.replace(before, after), encoding="utf-8")
    with pytest.raises(UsageError, match=message) as error:
        lexicon("fi")
    assert "fi.toml" in str(error.value)


def test_a_language_without_a_file_has_no_lexicon(folder: Path) -> None:
    assert lexicon("fi") is None
    assert lexicon("../fi") is None


def test_a_dropped_file_is_a_language_that_metrics_read(tmp_path: Path) -> None:
    package = Path(convoscope.__file__).parent
    shutil.copytree(package, tmp_path / "convoscope", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "convoscope/text/lexicons/fi.toml").write_text(FINNISH, encoding="utf-8")
    # The first turn has no reply before it; the second has "ei ole sitä mitä kysyin": 1.
    program = """
from convoscope.conversation import Conversation, Participant, Text, Utterance
from convoscope.metrics.user import pushback
said = ["Missä tilaukseni on, sen piti tulla eilen?", "Tilauksesi on matkalla.", "Tämä ei ole sitä mitä kysyin."]
people = (Participant("u", "user"), Participant("a", "assistant"))
events = [Utterance(seq=n, speaker="ua"[n % 2], intended=Text(text)) for n, text in enumerate(said)]
conversation = Conversation(id="c", participants=people, timeline=tuple(events))
print(pushback.languages, [one.value for one in pushback(conversation)])
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "('de', 'en', 'es', 'fi', 'fr', 'ja', 'pt') [None, 1.0]"


def test_accents_apostrophes_commas_and_case_do_not_count() -> None:
    assert folded_phrases("Ça, c’est TRÈS bien!") == folded_phrases("ca c'est tres bien.")


@given(st.text(max_size=300))
def test_any_text_can_be_looked_at(text: str) -> None:
    folded = folded_phrases(text)
    for known in lexicons():
        for purpose in PURPOSES:
            assert isinstance(known.find(purpose, folded), str)


def test_the_time_does_not_grow_with_a_hostile_text() -> None:
    # A text is cut to 4,000 characters, and RE2 takes linear time: a megabyte takes no longer than a page.
    started = time.process_time()
    for known in lexicons():
        for purpose in PURPOSES:
            known.find(purpose, folded_phrases("i already i already (" * 50_000))
    assert time.process_time() - started < 5
