"""How a judge is named: `openai:MODEL`, `anthropic:MODEL@http://localhost:8080`."""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from convoscope.errors import UsageError

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""The environment variable that holds the key of each provider."""
_MODELS = {"gpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude-": "anthropic"}
"""How the names of models begin that are known by their provider."""
ADDRESSES = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
ADDRESS_VARIABLES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}


class JudgeName(NamedTuple):
    """Which model answers, over which wire format, at which address."""

    provider: str
    model: str
    address: str = ""
    """Empty for the provider's own."""
    is_asked: bool = True
    """In a dry run it is not: nothing is sent, so no key is needed."""

    def __str__(self) -> str:
        # A password in an address is for its server only.
        return f"{self.provider}:{self.model}" + (f"@{self.shown_url}" if self.address else "")

    @property
    def url(self) -> str:
        """The address that questions are sent to."""
        return self.address or os.environ.get(ADDRESS_VARIABLES[self.provider]) or ADDRESSES[self.provider]

    @property
    def has_own_address(self) -> bool:
        """It is not the provider's, by its name or by the environment: prices are unknown, and it may need no key."""
        return self.url.rstrip("/") != ADDRESSES[self.provider]

    @property
    def priced_as(self) -> str:
        """Its name in the list of prices; empty for an address of its own."""
        return "" if self.has_own_address else f"{self.provider}/{self.model}"

    @property
    def shown_url(self) -> str:
        """The address without the password or key that it may hold."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    @property
    def is_local(self) -> bool:
        """Questions do not leave this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    @property
    def says_audio(self) -> bool:
        """The name of the model says that it takes sound: `gpt-audio`, `gpt-4o-audio-preview`, `Qwen2-Audio-7B`."""
        return "audio" in re.split(r"[^a-z0-9]+", self.model.casefold())

    def key(self) -> str:
        """The key of the provider. A judge at an address of its own may need none."""
        key = os.environ.get(KEYS[self.provider], "").strip()
        if not self.is_asked or (not key and self.has_own_address):
            return "none"
        if not key:
            raise UsageError(
                f"{self} needs {KEYS[self.provider]}; it is not set",
                hint=f"export {KEYS[self.provider]}=…; nothing was sent",
            )
        return key


def judge_name(text: str) -> JudgeName:
    """Read the name of a judge: the provider ends at the first colon, an address begins at the last `@http`."""
    provider, colon, rest = text.strip().partition(":")
    if not colon or provider not in KEYS:
        what = f"unknown provider {provider!r}" if colon else "no provider is named"
        meant = suggested_name(text)
        instead = f"did you mean {meant}? " if meant else ""
        raise UsageError(
            f"--judge {text}: {what}",
            hint=f"{instead}write PROVIDER:MODEL or PROVIDER:MODEL@http://HOST:PORT; providers: {', '.join(KEYS)}",
        )
    index = max(rest.rfind("@http://"), rest.rfind("@https://"))
    model, address = (rest, "") if index < 0 else (rest[:index], rest[index + 1 :])
    if not model or model != model.strip():
        raise UsageError(f"--judge {text} names no model", hint=f"write {provider}:MODEL")
    name = JudgeName(provider, model, address.rstrip("/"))
    if not _is_address(name.url):
        raise UsageError(
            f"--judge {provider}:{model}: its address is not one", hint="for example http://localhost:8080/v1"
        )
    return name


def suggested_name(text: str) -> str:
    """The judge that a name with a missing or misspelt provider may mean; empty where it is not clear.

    >>> suggested_name("gpt-4o"), suggested_name("opnai:x"), suggested_name("claude-x"), suggested_name("mistral")
    ('openai:gpt-4o', 'openai:x', 'anthropic:claude-x', '')
    """
    provider, colon, rest = text.strip().partition(":")
    if colon:
        close = difflib.get_close_matches(provider.casefold(), KEYS, n=1)
        return f"{close[0]}:{rest}" if close and rest else ""
    named = next((of for start, of in _MODELS.items() if provider.startswith(start)), "")
    return f"{named}:{provider}" if named else ""


def language_model(text: str) -> str:
    """The judge that a name of a model means: `openai:MODEL`, or `claude-…` alone; empty where it means none.

    >>> language_model("claude-x"), language_model("openai:x"), language_model("rules")
    ('anthropic:claude-x', 'openai:x', '')
    """
    if text.startswith("claude-"):
        return f"anthropic:{text}"
    return text if text.partition(":")[0] in KEYS and ":" in text else ""


def _is_address(url: str) -> bool:
    """Whether a URL means one host to every reader of URLs: others read a backslash or a blank in other ways."""
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        return has_host and _PLAIN(url) is not None
    except ValueError:
        return False


_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+").fullmatch
"""The characters of a URL: no blank, control character, backslash, quotation mark or letter outside ASCII."""
