"""Recordings written down by a recogniser, as a command or a program asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, cast

from convoscope.audio.recognise import kept, named_recogniser
from convoscope.audio.resource import Recordings
from convoscope.audio.transcript import has_no_words, transcribed
from convoscope.resources.registry import Resource, made
from convoscope.resources.sound import Recording, RecordingError

if TYPE_CHECKING:
    from convoscope.audio.recognise import RecogniserLike
    from convoscope.conversation import Conversation


class Transcription(NamedTuple):
    """Conversations with words, and what could not be written down."""

    conversations: list[Conversation]
    not_transcribed: dict[str, str]
    """Why, by the id of the conversation."""


def transcribe(
    conversations: Iterable[Conversation], recogniser: RecogniserLike, *, cache: bool = True
) -> Transcription:
    """Write down the recordings of conversations without words; others keep the words that they have.

    `conversations` is what `convoscope.read` gives. `recogniser` is a name, such as `faster-whisper:tiny.en`, or a
    `convoscope.Recogniser`. With `cache`, what was heard of a clip is kept, and no clip is heard twice.
    """
    import asyncio

    resource = kept(named_recogniser(recogniser), use_cache=cache)
    # In a notebook a loop runs in this thread already.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(_written_down(conversations, resource))).result()


async def _written_down(conversations: Iterable[Conversation], resource: Resource) -> Transcription:
    result = Transcription([], {})
    recording = cast(Recording, Recordings())
    async with made(resource) as recogniser:
        for conversation in conversations:
            try:
                is_open = has_no_words(conversation)
                written = await transcribed(conversation, recording, recogniser) if is_open else conversation
                result.conversations.append(written)
            except RecordingError as error:
                result.not_transcribed[conversation.id] = error.detail or error.reason
    return result


__all__ = ["Transcription", "transcribe"]
