"""An evaluation item as a question: what a rubric shows of it, and the numbers of what is to be rated in it.

Rubrics that show the same fields can be asked together: then the item is sent once, and each question is answered by
itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.conversation import ASSISTANT, USER
from convoscope.conversation.events import AnyEvent, ToolCall, ToolResult, Utterance
from convoscope.judging.questions import GIVEN, Question, ShownTexts, answer_shape
from convoscope.judging.quotes import LEAST_WORDS, letters, without_label
from convoscope.judging.rubrics import EARLIER_TURNS, PARTS_OF_TALK, TURNS_BEFORE, USER_TURNS, Rubric
from convoscope.views.items import Case
from convoscope.views.languages import languages_of

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData

ANCHORS = (
    "9 and 10: fully. 7 and 8: with minor gaps. 5 and 6: about half. 3 and 4: little. "
    "1 and 2: not at all, or the opposite."
)
GIVEN_FIELDS = ("agent_role", "system_prompt")
"""What the agent was given before: of a long text only the lines that address the judge are left out."""
_FIELD = 0
"""Instead of a turn: a field of the item. Turns are counted from 1."""
_MOST_EARLIER = 5
"""So many turns before an answer say what it follows from."""
GIVEN_BEFORE = "given_before"
"""Of the turns before an answer: what users said and tools returned. The agent's own words are not in it."""


class ItemQuestion(NamedTuple):
    """What a judge is sent about one item."""

    question: Question
    replies: tuple[int, ...]
    """The turns of the agent that have words, by number."""
    chunks: tuple[tuple[int, ...], ...]
    """The numbers of the chunks that each query retrieved."""
    blank: tuple[int, ...]
    """The chunks without words, which the judge is not shown: none of them can be of use."""
    calls: tuple[int, ...]
    """The numbers of the tool calls."""
    hidden: tuple[str, ...]
    """Fields of which the judge does not see something, since it addresses the judge; turns are in `withheld`."""
    texts: Mapping[str, tuple[str, ...]]
    """What the judge sees of each field, to find its quotes in."""

    def has_quote(self, quote: str, fields: Sequence[str] = (), turn: int | None = None) -> bool:
        """Whether the words are in what the judge saw; in one of these fields, or in a turn of the agent."""
        texts = tuple(text for field in fields for text in self.texts.get(field, ())) if fields else self.question.texts
        return self.question._replace(texts=texts).has_quote(quote, turn)

    def of_chunk(self, number: int) -> ItemQuestion:
        """The question with the words of one chunk as all that was retrieved."""
        shown = [one for query in self.chunks for one in query if one not in self.blank]
        chunks = dict(zip(shown, self.texts.get("retrieved_context", ()), strict=True))
        return self._replace(texts={**self.texts, "retrieved_context": (chunks[number],)})

    def has_words(self, quote: str, fields: Sequence[str], *, or_begins: bool = False) -> bool:
        """Whether these fields have the words, and so many that they show something, or all that is said.

        With `or_begins`, few will do if a text begins with them: `Yes, it is.`
        """
        wanted = letters(without_label(quote))
        texts = [letters(text) for field in fields for text in self.texts.get(field, ())]
        is_whole = wanted in texts or (or_begins and any(text.startswith(wanted) for text in texts))
        is_enough = len(wanted.encode()) >= LEAST_WORDS or is_whole
        return bool(wanted) and is_enough and self.has_quote(quote, fields)


def item_question(
    rubrics: Sequence[Rubric], case: Case, data: StandardData, has: Callable[[str], bool], **words: str
) -> ItemQuestion:
    """The question of rubrics that show the same fields, about an item that has all that they require.

    `has` says whether the item has a field, and `words` are for placeholders of a rubric that no field fills.
    """
    first = rubrics[0]
    item = _Item(case, data)
    present = [name for name in (*first.required, *first.optional) if has(PARTS_OF_TALK.get(name, name))]
    lines = [*item.language(), *(line for name in present for line in item.lines(name))]
    filling = {"item": item.shown.fenced(iter(lines)) or "(nothing)", "anchors": ANCHORS, **words}
    filled = [rubric.filled({**filling, **rubric.marks}) for rubric in rubrics]
    data_text = filled[0][1]
    if len(rubrics) == 1:
        asks, schema = filled[0][0], first.schema
    else:
        asks = "Answer each of these questions by itself, as if it were the only one.\n\n" + "\n".join(
            f"# {rubric.measures}\n{instructions}" for rubric, (instructions, _) in zip(rubrics, filled, strict=True)
        )
        schema = joint_schema(rubrics)
    question = Question(
        prompt=f"{asks}{data_text}\n## Your answer\n{answer_shape(schema)}\n",
        schema=schema,
        absent=tuple(name for name in first.optional if name not in present),
        withheld=tuple(sorted(GIVEN if turn == _FIELD else turn for turn in item.shown.withheld)),
        texts=tuple(item.shown.texts),
        data=data_text,
        rated=(),
        agent_texts={turn: "\n".join(texts) for turn, texts in item.shown.agent_texts.items()},
        has_calls=bool(item.calls),
    )
    return ItemQuestion(
        question,
        tuple(item.replies),
        tuple(item.chunks),
        tuple(item.blank),
        tuple(item.calls),
        tuple(item.hidden),
        item.texts,
    )


def joint_schema(rubrics: Sequence[Rubric]) -> dict[str, Any]:
    """The schema of several answers, each under the name of its metric."""
    properties = {rubric.measures: dict(rubric.schema) for rubric in rubrics}
    return {"type": "object", "required": list(properties), "properties": properties}


def joint_hash(rubrics: Sequence[Rubric]) -> str:
    """Of several rubrics that are asked at once: who answers them is another judge than who answers one of them."""
    if len(rubrics) == 1:
        return rubrics[0].hash
    return hashlib.sha256("\n".join(rubric.hash for rubric in rubrics).encode()).hexdigest()[:12]


class _Item:
    """Collects what a judge is shown of an item."""

    def __init__(self, case: Case, data: StandardData) -> None:
        self._case, self._data = case, data
        self.shown = ShownTexts(case.conversation)
        self.replies: list[int] = []
        self.chunks: list[tuple[int, ...]] = []
        self.blank: list[int] = []
        self.calls: list[int] = []
        self.hidden: list[str] = []
        self.texts: dict[str, tuple[str, ...]] = {}

    def language(self) -> Iterator[str]:
        """The language of the texts, where it is known."""
        if language := languages_of(self._case.conversation).of_all():
            yield f"language: {self.shown.text(language)}"

    def lines(self, field: str) -> list[str]:
        before, first = set(self.shown.withheld), len(self.shown.texts)
        self.shown.withheld.discard(_FIELD)
        lines = list(_LINES.get(field, _Item._plain)(self, field))
        if _FIELD in self.shown.withheld:
            self.hidden.append(field)
        self.shown.withheld |= before
        self.texts[field] = tuple(self.shown.texts[first:])
        return lines

    def _text(self, value: Any, turn: int = _FIELD) -> str:
        return self.shown.text(value, turn)

    def _plain(self, field: str) -> Iterator[str]:
        yield f"{field}: {self._text(_json(getattr(self._data, field)))}"

    def _given(self, field: str) -> Iterator[str]:
        line = self._text(getattr(self._data, field), GIVEN)
        self.shown.quotable(line)
        yield f"{field}: {line}"

    def _retrieved(self, field: str) -> Iterator[str]:
        retrieved = getattr(self._data, field) or []
        queries = self._data.retrieval_query or []
        number = 0
        for index, chunks in enumerate(retrieved):
            numbers = tuple(range(number + 1, number + 1 + len(chunks)))
            self.chunks.append(numbers)
            self.blank += [number for number, chunk in zip(numbers, chunks, strict=True) if not chunk.strip()]
            query = f" for {self._not_quotable(queries[index])}" if index < len(queries) else ""
            for number, chunk in zip(numbers, chunks, strict=True):
                if chunk.strip():
                    yield f"[chunk {number}]{query} {self._text(chunk)}"
            number = numbers[-1] if numbers else number
        if number == len(self.blank):
            yield "retrieved: nothing"

    def _not_quotable(self, value: Any) -> str:
        """What is shown, and is not among the words of its field."""
        shown = len(self.shown.texts)
        line = self._text(value)
        del self.shown.texts[shown:]
        return line

    def _queries(self, field: str) -> Iterator[str]:
        """With the chunks, where these are shown."""
        if "retrieved_context" not in self._data.model_fields_set:
            yield from self._plain(field)

    def _talk(self, field: str) -> Iterator[str]:
        """What was said, with the tool calls between, a number for each text."""
        events = talk_of(self._case)
        if field == EARLIER_TURNS:
            events = earlier_turns(self._case)
        elif field == TURNS_BEFORE:
            events = [event for event in events if self._answered is None or event.seq < self._answered]
        number = 0
        for event in events:
            first = len(self.shown.texts)
            if isinstance(event, Utterance):
                number += 1
                role = self._case.conversation.roles[event.speaker]
                if field != USER_TURNS or role == USER:
                    yield self._turn(number, role, self._case.conversation.text(event))
                    if role == USER:
                        self._also(USER_TURNS, first)
                    if role != ASSISTANT and field == TURNS_BEFORE and not self._is_question(event):
                        self._also(GIVEN_BEFORE, first)
            elif field == USER_TURNS:
                continue
            elif isinstance(event, ToolCall):
                yield f"agent calls {self.shown.joined(event.name, 'with', event.arguments, number)}"
            elif isinstance(event, ToolResult):
                result = event.error or event.result
                name, first = self._text(event.name or "the tool", number), len(self.shown.texts)
                yield f"{name} returns {self._text(result, number)}"
                if field == TURNS_BEFORE and result is not None:
                    self._also(GIVEN_BEFORE, first)

    def _also(self, part: str, first: int) -> None:
        """What was shown last is also a part of a field, to find quotes in that part alone."""
        self.texts[part] = (*self.texts.get(part, ()), *self.shown.texts[first:])

    def _is_question(self, event: Utterance) -> bool:
        return self._case.conversation.text(event) == self._case.question

    @property
    def _answered(self) -> int | None:
        return None if self._case.item is None else self._case.item.answered

    def _turn(self, number: int, role: str, text: str) -> str:
        line = self._text(text, number)
        if role == ASSISTANT and text.strip():
            self.replies.append(number)
            self.shown.agent_texts[number] = [line]
        who = {ASSISTANT: "agent", USER: "user"}.get(role) or self._text(role, number)
        return f"[turn {number}] {who}: {line}"

    def _called(self, field: str) -> Iterator[str]:
        calls = getattr(self._data, field) or []
        for number, call in enumerate(calls, 1):
            self.calls.append(number)
            yield f"[call {number}] {self.shown.joined(call.tool_name, 'with', _json(call.parameters), _FIELD)}"
        if not calls:
            yield "tool_calls: none was made"

    def _steps(self, field: str) -> Iterator[str]:
        for number, step in enumerate(getattr(self._data, field) or [], 1):
            yield f"[step {number}] {self._text(_json(step))}"


_LINES: Mapping[str, Callable[[_Item, str], Iterator[str]]] = {
    **dict.fromkeys(GIVEN_FIELDS, _Item._given),
    "retrieval_query": _Item._queries,
    "retrieved_context": _Item._retrieved,
    **dict.fromkeys(("conversation_context", *PARTS_OF_TALK), _Item._talk),
    "tool_calls": _Item._called,
    "trace": _Item._steps,
}


def talk_of(case: Case) -> Sequence[AnyEvent]:
    """What was said and called for a case: its history, its question, what happened, and its answer."""
    timeline = case.conversation.timeline
    if case.item is None:
        return timeline
    history = case.extras.get("conversation_context")
    turns = history.get("turns") if isinstance(history, dict) else None
    history_seqs = {seq for seq in turns if isinstance(seq, int)} if isinstance(turns, list) else set()
    seqs = {*history_seqs, case.item.asked, case.item.answered, *(event.seq for event in case.events)}
    return [event for event in timeline if event.seq in seqs]


def earlier_turns(case: Case) -> Sequence[Utterance]:
    """The last turns before the answer of an item."""
    answered = None if case.item is None else case.item.answered
    spoken = [event for event in talk_of(case) if isinstance(event, Utterance)]
    at = next((index for index, event in enumerate(spoken) if event.seq == answered), len(spoken))
    return spoken[max(0, at - _MOST_EARLIER) : at]


def _json(value: Any) -> Any:
    """A value of the item as plain JSON."""
    if isinstance(value, list | tuple):
        return [_json(member) for member in value]
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(exclude_none=True)
