"""Answers about chats in several languages: what is not read is not perfect, and courtesy is no objection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.scenarios import Scenario, chat, check, each

SIX = "English, French, German, Japanese, Portuguese or Spanish"
ANGRY = {
    "en": [
        "Where is my order, it should have arrived yesterday?",
        "Your order is on its way and will arrive soon.",
        "That is not what I asked, this is ridiculous.",
        "Let me check that for you right away.",
    ],
    "de": [
        "Wo ist meine Bestellung, sie sollte gestern ankommen?",
        "Ihre Bestellung ist unterwegs und kommt bald an.",
        "Das habe ich nicht gefragt, das ist lächerlich.",
        "Ich prüfe das sofort für Sie.",
    ],
    "es": [
        "donde esta mi pedido, tenia que llegar ayer",
        "su pedido esta en camino y llegara pronto",
        "eso no es lo que pregunte, es ridiculo",
        "lo reviso ahora mismo",
    ],
    "fr": [
        "Où est ma commande, elle devait arriver hier ?",
        "Votre commande est en route et arrivera bientôt.",
        "Ce n’est pas ce que j’ai demandé, c’est ridicule.",
        "Je vérifie cela tout de suite.",
    ],
    "pt": [
        "Onde está o meu pedido, devia ter chegado ontem?",
        "O seu pedido está a caminho e chega em breve.",
        "Isso não é o que eu perguntei, é ridículo.",
        "Vou verificar isso agora mesmo.",
    ],
    "ja": [
        "注文した商品はどこにありますか、昨日届くはずでした。",
        "ご注文の商品は配送中で、まもなく届きます。",
        "違います、それは聞いていません。いい加減にしてください。",
        "すぐに確認いたします。",
    ],
    "ar": [
        "أين طلبي؟ كان يجب أن يصل أمس",
        "طلبك في الطريق وسيصل قريبا",
        "هذا ليس ما سألت عنه، هذا سخيف",
        "سأتحقق من ذلك الآن",
    ],
    "fi": [
        "Missä tilaukseni on, sen piti saapua eilen?",
        "Tilauksesi on matkalla ja saapuu pian.",
        "Tämä ei ole sitä mitä kysyin, tämä on naurettavaa.",
        "Tarkistan asian heti.",
    ],
}


def chats(*languages: str, count: int = 6, **fields: Any) -> dict[str, Sequence[Mapping[str, Any]]]:
    """So many chats, of each of the languages in turn."""
    texts = [ANGRY[languages[n % len(languages)]] for n in range(count)]
    return {"chats.jsonl": [chat(*text, id=f"c{n}", **fields) for n, text in enumerate(texts)]}


def repeated(*texts: str, count: int = 3) -> dict[str, Sequence[Mapping[str, Any]]]:
    return {"chats.jsonl": [chat(*texts, id=f"c{n}") for n in range(count)]}


# In each angry chat the first turn has no reply before it, and the second is an objection: 1 of 1 that count.
READ = [
    Scenario(
        f"an angry user in {language}",
        "Every user objects.",
        chats(language),
        never=[r"figures? (?:does|do) not read them"] if language != "ja" else [r"not in English"],
        figures={"user.pushback": 1.0, "agent.declined": 0.0},
        counts={"user.pushback": 6},
    )
    for language in ("en", "de", "es", "fr", "pt", "ja")
]
UNREAD = [
    Scenario(
        f"an angry user in {language}, which no rule reads",
        "Whether the users object cannot be said.",
        chats(language),
        says=[rf"6 of 6 chats are not in {SIX}: 2 figures do not read them"],
        never=[r"objects or asks again 0\.0 %", "handed over or declined 0"],
        figures={"user.pushback": None, "agent.declined": None},
    )
    for language in ("ar", "fi")
]
SCENARIOS = [
    *READ,
    *UNREAD,
    Scenario(
        "half English, half Finnish",
        "Of the half that can be read, every user objects.",
        chats("en", "fi", count=10),
        options=["--full"],
        says=[r"user\.pushback 100\.0 % \S+ to \S+ 5 50 %"],
        figures={"user.pushback": 1.0},
        counts={"user.pushback": 5},
    ),
    Scenario(
        "half English, half Finnish, in the answer",
        "5 of the 10 chats are not read.",
        chats("en", "fi", count=10),
        says=[rf"5 of 10 chats are not in {SIX}: 2 figures do not read them"],
    ),
    Scenario(
        "a German user of an English agent",
        "The user objects, in German.",
        repeated(ANGRY["de"][0], ANGRY["en"][1], ANGRY["de"][2], ANGRY["en"][3]),
        figures={"user.pushback": 1.0, "agent.declined": 0.0},
    ),
    Scenario(
        "a user who goes from English to Finnish",
        "The user's English objection counts, the Finnish turn cannot be read.",
        repeated(*ANGRY["en"][:3], ANGRY["en"][3], ANGRY["fi"][2], ANGRY["en"][1]),
        # three turns: none to object to, objects, not read
        figures={"user.pushback": 1.0},
        counts={"user.pushback": 3},
    ),
    Scenario(
        "nothing but ok",
        "There is no language, and no objection that anyone could see.",
        repeated("ok", "ok", "ok", "ok"),
        says=["the language of 3 chats is not known"],
        figures={"user.pushback": None},
    ),
    Scenario(
        "emojis alone",
        "Nothing is said in words.",
        repeated("😀", "👍", "😡😡😡", "🙏"),
        figures={"user.pushback": None},
    ),
    Scenario(
        "JSON for words",
        "Data has no language.",
        repeated('{"order": 17, "status": "lost"}', '{"reply": 1}', '{"order": 17, "status": "lost"}', '{"reply": 1}'),
        figures={"user.pushback": None},
    ),
    Scenario(
        "the log says that it is Finnish",
        "The log says its language, which no rule reads.",
        chats("en", language="fi"),
        says=[rf"6 of 6 chats are not in {SIX}"],
        figures={"user.pushback": None},
    ),
    Scenario(
        "the log says English of German chats",
        "The users object, in German, whatever a default says.",
        chats("de", language="en-US"),
        figures={"user.pushback": 1.0},
    ),
    Scenario(
        "answers, quotations and an offer turned down",
        "The user answers, quotes and declines an offer; they object once, to a refusal.",
        repeated(
            "My router has no connection, can you help me?",
            "Have you tried to restart it?",
            "Yes, I already tried that.",
            "Does it work now?",
            'No, it still doesn\'t work, the screen shows "that is wrong".',
            "I can send you a new one for 20 euros.",
            "I appreciate the offer, but I would like the old one to be repaired.",
            "I am unable to repair it. Is there anything else I can do?",
            "I understand, but I pay for that every month.",
            "I will ask the team.",
        ),
        # five turns: none to object to, two answers, an offer turned down, an objection: 1 of 4
        figures={"user.pushback": 0.25},
        counts={"user.pushback": 12},
    ),
    Scenario(
        "the opening describes what does not work",
        "No user objects to anything that the agent said.",
        repeated(
            "Hello, our login doesn't work for us any more.",
            "I am sorry to hear that. What does it say?",
            "It says that the password is wrong.",
            "I have sent you a link to set another one.",
        ),
        figures={"user.pushback": 0.0},
        counts={"user.pushback": 3},
    ),
    Scenario(
        "the agent greets first",
        "What the user wants is no objection, though the agent spoke before.",
        repeated(
            "",
            "Hello, this is the help desk. How can I help you?",
            "My internet did not work yesterday and it does not work now.",
            "I will send a technician tomorrow.",
        ),
        figures={"user.pushback": 0.0},
    ),
    Scenario(
        "thanks and compliments again and again",
        "The users are content.",
        repeated(
            "Please book a table for two people tonight.",
            "Your table is booked for eight o'clock.",
            "Thank you so much for your great help today!",
            "You are welcome. Anything else?",
            "No. Thank you so much for your great help today!",
            "Goodbye.",
        ),
        figures={"user.pushback": 0.0},
    ),
    Scenario(
        "a number given twice because the agent asks twice",
        "The agent asks again, not the user.",
        repeated(
            "Where is my parcel with the blue tea pot?",
            "What is your order number?",
            "My order number is 4711 for the tea pot.",
            "Could you give me your order number again?",
            "My order number is 4711 for the tea pot.",
            "It arrives tomorrow morning.",
        ),
        figures={"user.pushback": 0.0},
    ),
    Scenario(
        "a question that is never answered",
        "The user asks for the same thing again.",
        repeated(
            "How much does the annual plan cost for ten seats?",
            "We have many happy customers all over the world.",
            "How much does the annual plan cost for ten seats?",
            "Our product was made for teams like yours.",
        ),
        # two turns, of which the first has no reply before it
        figures={"user.pushback": 1.0},
        counts={"user.pushback": 3},
    ),
    Scenario(
        "the agent declines in German",
        "The agent declines in each chat.",
        repeated("Bitte erstatten Sie mir mein Geld zurück.", "Leider kann ich Ihnen dabei nicht helfen."),
        figures={"agent.declined": 1.0},
    ),
    Scenario(
        "the agent declines in Finnish",
        "Whether the agent declines cannot be said.",
        repeated("Haluan rahani takaisin tästä tilauksesta.", "Valitettavasti en voi auttaa sinua tässä asiassa."),
        figures={"agent.declined": None},
    ),
    Scenario(
        "how many words there are in Japanese",
        "There are no blanks to count words by.",
        chats("ja"),
        says=["6 of 6 chats are written without blanks between words: 2 figures do not read them"],
        figures={"user.effort": None, "agent.words_per_turn": None},
    ),
]


@each(SCENARIOS)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)
