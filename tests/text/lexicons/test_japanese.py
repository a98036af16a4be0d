"""Japanese: what each list finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from support.lexicons import finds, objects


@pytest.mark.parametrize(
    "text",
    [
        "違います。",
        "それは違うと思います",
        "さっき言いました。",
        "もう何度も説明しました",
        "話を聞いていますか？",
        "私の質問に答えていません。",
        "本当ですか？",
        "役に立ちません",
        "納得できません",
        "意味がわからない",
        "いい加減にしてください",
        "まだ解決していません",
    ],
)
def test_objection(text: str) -> None:
    assert objects("ja", text)


@pytest.mark.parametrize(
    "text",
    [
        "プリンターが動きません。",
        "注文はどこですか？",
        "ありがとうございました。",
        "荷物が届いていません。",
        "はい、お願いします。",
        "間違いありません。",
        "いいえ、大丈夫です。",
        "違う色はありますか？",
        "サイズが違いました。",
        "カードが使えないのですが",
    ],
)
def test_no_objection(text: str) -> None:
    assert not objects("ja", text)


@pytest.mark.parametrize(
    "text",
    [
        "ありがとうございます",
        "助かりました",
        "どうもありがとう",
    ],
)
def test_thanks(text: str) -> None:
    assert finds("ja", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "キャンセルしたいです",
        "まだ届きません",
    ],
)
def test_no_thanks(text: str) -> None:
    assert not finds("ja", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "申し訳ございませんが、できません。",
        "残念ながら対応できません",
        "お答えいたしかねます",
    ],
)
def test_refusal(text: str) -> None:
    assert finds("ja", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "はい、できます。",
        "確認いたします。",
        "残念ながら青い椅子は売り切れですが、赤い椅子をご用意しました。",
        "あいにくの雨ですね。",
        "恐れ入りますが、お名前をお願いします。",
        "ログインできない場合はお知らせください。",
    ],
)
def test_no_refusal(text: str) -> None:
    assert not finds("ja", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "担当者におつなぎします。",
        "オペレーターに転送いたします",
        "お電話を担当部署に転送します",
    ],
)
def test_hand_over(text: str) -> None:
    assert finds("ja", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "担当者におつなぎしましょうか？",
        "少々お待ちください",
    ],
)
def test_no_hand_over(text: str) -> None:
    assert not finds("ja", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "さようなら",
        "失礼いたします",
        "以上です。",
    ],
)
def test_goodbye(text: str) -> None:
    assert finds("ja", "goodbye", text)


@pytest.mark.parametrize(
    "text",
    [
        "以上ですか？",
        "明日までに必要です",
    ],
)
def test_no_goodbye(text: str) -> None:
    assert not finds("ja", "goodbye", text)
