"""A chat of three questions with a model over HTTP, traced by a real instrumentation; the spans go to a file.

Run as a program: the instrumentation changes the OpenAI client of its process for good.
"""

from __future__ import annotations

import sys
from pathlib import Path

QUESTIONS = ("Is the library open?", "Until when?", "Thank you, and is it open?")


def main(instrumentation: str, address: str, out: str) -> None:
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
    client = openai.OpenAI(api_key="none", base_url=address, max_retries=0)
    history: list[dict[str, str]] = [{"role": "system", "content": "You are the desk of a library."}]
    with provider.get_tracer("desk").start_as_current_span("visit"):
        for question in QUESTIONS:
            history.append({"role": "user", "content": question})
            answer = client.chat.completions.create(model="tiny", messages=history)  # type: ignore[arg-type]
            history.append({"role": "assistant", "content": answer.choices[0].message.content or ""})
    sys.stdout.write("\n".join(message["content"] for message in history[1:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
