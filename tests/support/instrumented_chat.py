"""A chat of three questions with a model over HTTP, traced by a real instrumentation; the spans go to a file.

Run as a program: the instrumentation changes the OpenAI client of its process for good. The second answer is streamed.
It prints what was said and which tokens were counted, as the client saw them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

INSTRUCTIONS = "You are the desk of a library."
QUESTIONS = ("Is the library open?", "Until when?", "Is the library open?")
STREAMED = 1


def main(instrumentation: str, address: str, model: str, out: str) -> None:
    import openai
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    if instrumentation == "openinference":
        from openinference.instrumentation.openai import OpenAIInstrumentor
    else:
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    class Lines(SpanExporter):
        def export(self, spans):  # type: ignore[no-untyped-def]
            with Path(out).open("a", encoding="utf-8") as stream:
                stream.writelines(span.to_json(indent=None) + "\n" for span in spans)
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Lines()))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    client: Any = openai.OpenAI(api_key="none", base_url=address, max_retries=0)
    history = [{"role": "system", "content": INSTRUCTIONS}]
    tokens: list[tuple[int, int]] = []
    with provider.get_tracer("desk").start_as_current_span("visit"):
        for number, question in enumerate(QUESTIONS):
            history.append({"role": "user", "content": question})
            answer, usage = _ask(client, model, history, is_streamed=number == STREAMED)
            history.append({"role": "assistant", "content": answer})
            tokens.append((usage.prompt_tokens, usage.completion_tokens))
    sys.stdout.write(json.dumps({"said": [[one["role"], one["content"]] for one in history[1:]], "tokens": tokens}))


def _ask(client: Any, model: str, history: list[dict[str, str]], *, is_streamed: bool) -> tuple[str, Any]:
    settings: dict[str, Any] = {"model": model, "messages": history, "max_tokens": 12, "temperature": 0}
    if not is_streamed:
        whole = client.chat.completions.create(**settings)
        return whole.choices[0].message.content, whole.usage
    chunks = list(client.chat.completions.create(**settings, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return text, chunks[-1].usage


if __name__ == "__main__":
    main(*sys.argv[1:])
