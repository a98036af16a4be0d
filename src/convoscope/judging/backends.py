"""Where an answer comes from: the OpenAI and Anthropic wire formats by their official SDKs, or a Python function."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import inspect
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from convoscope.errors import ConvoscopeError, UsageError
from convoscope.judging.names import JudgeName
from convoscope.scores.judges import FUNCTION, VERSION_MARK

MAX_ANSWER_TOKENS = 4096
SCORES, YES_NO = "scores", "yesno"
"""The forms of a question: an answer of a given shape, or the probabilities of yes and no as its first word."""
FORMS = (SCORES, YES_NO)
CANDIDATES = 20
"""First words that a server is asked for; most give no more."""
WEIGHTED = "weighted"
"""In a schema: the property whose probabilities are asked for, where the server gives them."""
PROBABILITIES = "measured_probabilities"
"""In an answer: how likely each value of that property was, by the log-probabilities that came with it."""
_AROUND = " \t\n\"'*_.,:`▁Ġ"
"""What a first word may have around it: blanks as tokens show them, quotation marks, Markdown."""
SECONDS = 120.0
"""How long one request may take."""


class ModelAnswer(NamedTuple):
    """What a model wrote, and what it took."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0
    """From the question to the answer, without waiting for its turn."""


class JudgeFailed(ConvoscopeError):
    """The judge gave no answer at all. `wait` is what it asked for, in seconds; `is_final` means: do not ask again."""

    def __init__(self, message: str, *, wait: float | None = None, is_final: bool = False, throttled: bool = False):
        super().__init__(message)
        self.wait = wait
        self.is_final = is_final
        self.throttled = throttled


class BudgetSpent(JudgeFailed):
    """The budget of the run does not allow another question."""


class Backend(Protocol):
    """Sends one question, once, and gives back what was written."""

    name: str
    """`provider/model`."""
    address: str
    """Where questions are sent, for a person."""
    has_own_address: bool
    """It is not the provider's own: prices are unknown."""
    parameters: Mapping[str, Any]
    """All that an answer depends on beside the model and the question."""
    is_local: bool
    takes_sound: bool
    """Its wire format has a part for sound."""
    is_lasting: bool
    """Its name and parameters say what its answers depend on, so that they may be kept."""

    async def complete(self, prompt: str, schema: Mapping[str, Any], wave: bytes = b"") -> ModelAnswer:
        """The answer of the model to a prompt, about a WAV file where there is one. Raises `JudgeFailed`."""

    async def aclose(self) -> None:
        """No question will follow."""


def backend_for(
    name: JudgeName,
    *,
    temperature: float = 0.0,
    seconds: float = SECONDS,
    form: str = SCORES,
    max_tokens: int = MAX_ANSWER_TOKENS,
) -> Backend:
    """The client of a named judge. The SDK is imported only here."""
    if form == YES_NO and name.provider != "openai":
        raise UsageError(
            f"{name}: the yes/no form needs log-probabilities, which {name.provider} does not give",
            hint="openai:MODEL@http://HOST:PORT/v1 can, or --judge-form scores",
        )
    try:
        if name.provider == "openai" and form == YES_NO:
            return YesNoBackend(name, temperature, seconds)
        if name.provider == "openai":
            return OpenAIBackend(name, temperature, seconds, max_tokens)
        return AnthropicBackend(name, temperature, seconds, max_tokens)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--judge {name} needs the package {error.name}", hint="pip install 'convoscope[judge]'"
        ) from None


def _http_options(name: JudgeName, seconds: float) -> dict[str, Any]:
    """How a client connects. What is sent to an address is not sent on to where its server points.

    The proxy of the environment is used, but not for a judge on this machine: what is not redacted stays on it.
    """
    return {"timeout": seconds, "follow_redirects": False, "trust_env": not name.is_local}


class OpenAIBackend:
    """OpenAI chat completions: OpenAI, vLLM, Ollama, llama.cpp, Gemini's compatible endpoint."""

    takes_sound = True
    is_lasting = True

    def __init__(self, name: JudgeName, temperature: float, seconds: float, max_tokens: int) -> None:
        import openai

        self._api = openai
        self._model = name.model
        self._client: Any = openai.AsyncOpenAI(
            api_key=name.key(),
            base_url=name.url,
            timeout=seconds,
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(**_http_options(name, seconds)),
        )
        self.name = f"openai/{name.model}"
        self.address = name.shown_url
        self.has_own_address = name.has_own_address
        self.parameters: Mapping[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
        self.is_local = name.is_local
        self._has_schemas = True
        """The server takes a JSON Schema, until it refuses one."""
        self._has_weights = True
        """The server gives log-probabilities, until it refuses to."""
        self._options: dict[str, Any] = {"temperature": temperature, "max_completion_tokens": max_tokens}

    async def complete(self, prompt: str, schema: Mapping[str, Any], wave: bytes = b"") -> ModelAnswer:
        plain = {name: value for name, value in schema.items() if name != WEIGHTED}
        content = _with_sound(prompt, wave) if wave else prompt
        try:
            response = await self._create(content, plain, has_weights=WEIGHTED in schema and self._has_weights)
            text = self._text(response.choices[0])
            if WEIGHTED in schema:
                text = _with_probabilities(text, schema[WEIGHTED], response.choices[0].logprobs)
        except JudgeFailed:
            raise
        except Exception as error:  # what a server sends can break the SDK in any way
            if wave and getattr(error, "status_code", None) in _NOT_TAKEN:
                message = f"the judge refuses a question with sound, with HTTP status {error.status_code}"  # type: ignore[attr-defined]
                raise JudgeFailed(message, is_final=True) from None
            raise _failure(self._api, error) from None
        usage = response.usage
        return ModelAnswer(text, _tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens"))

    def _text(self, choice: Any) -> str:
        content = choice.message.content
        return content if isinstance(content, str) else ""

    async def _create(self, content: Any, schema: Mapping[str, Any], *, has_weights: bool = False) -> Any:
        """Ask with a schema and the newest parameters; a server that refuses one of them is asked without it."""
        while True:
            options = dict(self._options)
            if has_weights and self._has_weights:
                options |= {"logprobs": True, "top_logprobs": CANDIDATES}
            if self._has_schemas:
                options["response_format"] = {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": dict(schema)},
                }
            messages = [{"role": "user", "content": content}]
            try:
                # As they are: the SDK walks a schema that it takes as a parameter, a third of the cost of a question.
                return await self._client.chat.completions.create(
                    model=self._model, messages=messages, extra_body=options
                )
            except self._api.BadRequestError as error:
                if not self._does_without(str(error)):
                    raise

    def _does_without(self, complaint: str) -> bool:
        """Drop the parameter that a server complains about; False where it complains about something else."""
        if self._has_weights and "logprobs" in complaint:
            self._has_weights = False
            return True
        if self._has_schemas and any(word in complaint for word in ("response_format", "json_schema", "schema")):
            self._has_schemas = False
            return True
        if "max_completion_tokens" in complaint and "max_completion_tokens" in self._options:
            self._options["max_tokens"] = self._options.pop("max_completion_tokens")
            return True
        if "temperature" in complaint and "temperature" in self._options:
            del self._options["temperature"]
            return True
        return False

    async def aclose(self) -> None:
        await self._client.close()


def _with_sound(prompt: str, wave: bytes) -> list[dict[str, Any]]:
    """A prompt and a WAV file as the parts of one message."""
    data = base64.b64encode(wave).decode("ascii")
    return [
        {"type": "text", "text": prompt},
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
    ]


_NOT_TAKEN = (400, 404, 413, 415, 422)
"""What servers answer to a part of a message that they do not take, or that is too large for them."""


class YesNoBackend(OpenAIBackend):
    """The same wire: how likely yes and no are as the first word, by the log-probabilities that come with it."""

    takes_sound = False

    def __init__(self, name: JudgeName, temperature: float, seconds: float) -> None:
        super().__init__(name, temperature, seconds, max_tokens=1)
        self._has_schemas = False
        self._options |= {"logprobs": True, "top_logprobs": CANDIDATES}
        self.parameters = {**self.parameters, "form": YES_NO, "candidates": CANDIDATES}

    def _text(self, choice: Any) -> str:
        first = choice.logprobs.content[:1] if choice.logprobs and choice.logprobs.content else []
        if not first or not first[0].top_logprobs:
            raise JudgeFailed(_NO_PROBABILITIES, is_final=True)
        words, candidates = {"yes": 0.0, "no": 0.0}, defaultdict[str, float](float)
        for candidate in first[0].top_logprobs:
            chance = math.exp(candidate.logprob)
            candidates[candidate.token] += chance
            if (word := candidate.token.strip(_AROUND).casefold()) in words:
                words[word] += chance
        # What is above 1 by rounding is 1; what is above it by more is no probability, and the schema refuses it.
        words = {word: min(chance, 1.0) if chance < 1.001 else chance for word, chance in words.items()}
        return json.dumps({**words, "candidates": candidates}, ensure_ascii=False)

    def _does_without(self, complaint: str) -> bool:
        if "logprobs" in complaint:
            raise JudgeFailed(_NO_PROBABILITIES, is_final=True)
        return super()._does_without(complaint)


_NO_PROBABILITIES = "the judge gives no log-probabilities, which the yes/no form needs; --judge-form scores does not"


def _with_probabilities(text: str, name: str, logprobs: Any) -> str:
    """An answer with how likely each value was instead of the one that was written for this property.

    Only where the value is one token: of "10" in two tokens, neither says how likely ten was.
    """
    unclaimed = _without_claims(text)
    values = list(re.finditer(rf'"{re.escape(name)}"\s*:\s*"?(\d+)"?\s*[,}}]', text))
    tokens = list(logprobs.content or ()) if logprobs else []
    if not values or not tokens or "".join(token.token for token in tokens) != text:
        return unclaimed
    start, end, at = *values[-1].span(1), 0
    for token in tokens:
        if at <= start and at + len(token.token) >= end and token.token.strip(_AROUND) == text[start:end]:
            chances: dict[str, float] = defaultdict(float)
            for candidate in token.top_logprobs or ():
                if (value := candidate.token.strip(_AROUND)).isdecimal():
                    chances[value] += math.exp(candidate.logprob)
            more = f', "{PROBABILITIES}": {json.dumps(chances)}}}'
            return unclaimed[: unclaimed.rindex("}")] + more if chances else unclaimed
        at += len(token.token)
    return unclaimed


def _without_claims(text: str) -> str:
    """An answer in which what a model itself writes about probabilities has another name: it has not measured them."""
    return text.replace(f'"{PROBABILITIES}"', f'"said_{PROBABILITIES}"')


class AnthropicBackend:
    """Anthropic messages. The schema is given to the model as a tool that it has to use."""

    _TOOL = "answer"
    takes_sound = False
    is_lasting = True

    def __init__(self, name: JudgeName, temperature: float, seconds: float, max_tokens: int) -> None:
        import anthropic

        self._api = anthropic
        self._model = name.model
        self._body: dict[str, Any] = {"temperature": temperature}
        """What the SDK has no parameter for. A model that refuses it is asked without it."""
        self._client: Any = anthropic.AsyncAnthropic(
            api_key=name.key(),
            base_url=name.url,
            timeout=seconds,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(
                # This client looks at the environment whatever `trust_env` says; what is mounted goes first.
                mounts=dict.fromkeys(("http://", "https://", "all://")) if name.is_local else {},
                **_http_options(name, seconds),
            ),
        )
        self.name = f"anthropic/{name.model}"
        self.address = name.shown_url
        self.has_own_address = name.has_own_address
        self.parameters: Mapping[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
        self.is_local = name.is_local

    async def complete(self, prompt: str, schema: Mapping[str, Any], wave: bytes = b"") -> ModelAnswer:
        del wave  # this wire has no part for it
        plain = {name: value for name, value in schema.items() if name != WEIGHTED}
        tool = {"name": self._TOOL, "description": "Give the answer.", "input_schema": plain}
        try:
            response = await self._create(prompt, tool)
            blocks = list(response.content)
        except Exception as error:
            raise _failure(self._api, error) from None
        given = next((block.input for block in blocks if block.type == "tool_use"), None)
        written = "".join(block.text for block in blocks if block.type == "text")
        usage = response.usage
        text = written if given is None else json.dumps(given, ensure_ascii=False)
        return ModelAnswer(
            _without_claims(text) if WEIGHTED in schema else text,
            _tokens(usage, "input_tokens"),
            _tokens(usage, "output_tokens"),
        )

    async def _create(self, prompt: str, tool: Mapping[str, Any]) -> Any:
        while True:
            try:
                return await self._client.messages.create(
                    model=self._model,
                    max_tokens=self.parameters["max_tokens"],
                    messages=[{"role": "user", "content": prompt}],
                    extra_body={
                        "tools": [tool],
                        "tool_choice": {"type": "tool", "name": self._TOOL},
                        **self._body,
                    },
                )
            except self._api.BadRequestError as error:
                if "temperature" not in str(error) or not self._body:
                    raise
                self._body = {}

    async def aclose(self) -> None:
        await self._client.close()


def _tokens(usage: Any, name: str) -> int | None:
    """What a server says that it counted; None where that is no count. Some servers leave it out."""
    count = getattr(usage, name, None)
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**31 else None


def _failure(api: Any, error: Exception) -> JudgeFailed:
    """What an SDK raised, as one error. Its text may hold the question, so only its kind and status are kept."""
    status = getattr(error, "status_code", None)
    if isinstance(error, api.APITimeoutError) and not _is_refused(error):
        # A server that works off one question after the other gets fewer at a time.
        return JudgeFailed("the judge did not answer in time", throttled=True)
    if isinstance(error, api.APIConnectionError):
        return JudgeFailed("the judge cannot be reached")
    if status is None:
        return JudgeFailed(f"the judge's answer cannot be read ({type(error).__name__})")
    throttled = status in (408, 409, 429, 529) or status >= 500
    wait = _seconds(error.response.headers) if throttled else None  # type: ignore[attr-defined]
    return JudgeFailed(
        f"the judge answered with HTTP status {status}", wait=wait, is_final=not throttled, throttled=throttled
    )


def _is_refused(error: BaseException | None) -> bool:
    """Nothing listens there. One of the transports calls that a timeout."""
    while error is not None:
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            return True
        error = error.__cause__
    return False


def _seconds(headers: Mapping[str, str]) -> float | None:
    """How long a server asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        when = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return max(0.0, (when.astimezone(UTC) - datetime.now(UTC)).total_seconds())


Answering = Callable[[str, Mapping[str, Any]], Any]


def function_name(function: Any) -> str:
    """The name of a judge that is a function in Python, with the version that it states."""
    name = f"{FUNCTION}{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    version = getattr(function, "version", None)
    return name if version is None else f"{name}{VERSION_MARK}{version}"


class FunctionBackend:
    """A Python function of a prompt and a schema, plain or async, that returns a dictionary or a text.

    Its source does not say all that its answers depend on: the functions that it calls, the model that it asks. Only
    one that states its `version` is the same judge in the next process.
    """

    address = "a function in this process"
    has_own_address = True
    is_local = True
    takes_sound = False

    def __init__(self, function: Answering) -> None:
        self._function = function
        self.name = function_name(function)
        self.is_lasting = getattr(function, "version", None) is not None
        self.parameters: Mapping[str, Any] = {} if self.is_lasting else {"source": _source(function)}

    async def complete(self, prompt: str, schema: Mapping[str, Any], wave: bytes = b"") -> ModelAnswer:
        del wave  # a function takes none
        try:
            answer = self._function(prompt, schema)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # whatever the user's function raises
            raise JudgeFailed(f"{self.name} raised {type(error).__name__}: {error}") from error
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)
        return ModelAnswer(_without_claims(text) if WEIGHTED in schema else text)

    async def aclose(self) -> None:
        """Nothing is open."""


def _source(function: Any) -> str:
    """A hash of the code of a function, or of the class of a callable object; of no code where Python has none."""
    written = getattr(function, "func", function)  # of a partial
    try:
        code = inspect.getsource(written if inspect.isroutine(written) else type(written))
    except (OSError, TypeError):
        code = ""
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
