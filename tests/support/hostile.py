"""Names that want to be more than names, and a run full of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hypothesis import strategies as st

from convoscope.conversation import Conversation
from convoscope.metrics import CONVERSATION, HIGHER, LOWER, Observation, Target, measured, metric
from convoscope.metrics.declaration import Metric
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.chats import agent, chat, user

NAMES = (
    "plain",
    "a|b|c",
    "back\\|slash\\",
    "`one` ``two`` ```three",
    "`",
    "two\nlines\n\n# and a title",
    "- list\r\n| a | b |\r\n|---|---|",
    "<script>alert(1)</script>",
    "</details></code><img src=x onerror=alert(1)>",
    "<!-- comment",
    "@everyone and @org/team",
    "![image](https://example.invalid/x.png)",
    "[link](javascript:alert(1))",
    "https://example.invalid/ www.example.invalid someone@example.invalid",
    "&lt;b&gt; &#64;user &amp;",
    "**bold** _it_ ~~gone~~ #123 GH-1",
    "]]> <![CDATA[ x",
    '" onclick="x',
    "nul\x00 bell\x07 esc\x1b[31m del\x7f c1\x85\x9b",
    "\ufffe\uffff \u202eright-to-left\u2028line",
    "x" * 5_000,
    "    indented",
    " ",
    "🦉" * 300,
)

hostile_names = st.lists(
    st.one_of(st.sampled_from(NAMES), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)),
    min_size=2,
    max_size=5,
    unique=True,
)


def hostile_run(folder: Path, names: Sequence[str], targets: Sequence[str] = ()) -> Run:
    """A run in which ids, dimensions, judges and what is raised are hostile. It has no page."""

    @metric("test.judged", version=1, observes=CONVERSATION, unit=f"points {names[0]}", better=HIGHER)
    def judged(conversation: Conversation) -> Iterator[Observation]:
        """What do the judges say?"""
        for place, name in enumerate(names[:3]):
            yield measured(conversation, len(conversation.id) + place, judge=f"j{name}")

    @metric("test.raises", version=1, observes=CONVERSATION, unit="share", better=LOWER, target=Target("<", 0.5))
    def raises(conversation: Conversation) -> Observation:
        """What does it raise?"""
        raise RuntimeError(names[-1])

    # A dimension whose name SQL cannot be asked for is another matter than how it is shown.
    odd = "odd" if set('\\"\0') & set(names[0]) else names[0]
    conversations = [
        chat(
            user(f"hi {place}", 1),
            agent("yes", 2),
            id=name,
            dimensions={"flow": name, "agent": names[place % 2], odd: name},
        )
        for place, name in enumerate([*names, *names])
    ]
    metrics: list[str | Metric] = [judged, raises, "turns", "f1", "response_latency"]
    by = [["flow"], ["flow", "agent"], [odd]]
    return score(conversations, metrics=metrics, out=folder, workers=1, by=by, targets=targets)
