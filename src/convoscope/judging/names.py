"""How a judge is named: `openai:MODEL`, `anthropic:MODEL@http://localhost:8080`."""

from __future__ import annotations

import ipaddress
import os
from typing import NamedTuple
from urllib.parse import urlsplit

from convoscope.errors import UsageError

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""The environment variable that holds the key of each provider."""
ADDRESSES = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
ADDRESS_VARIABLES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}


class JudgeName(NamedTuple):
    """Which model answers, over which wire format, at which address."""

    provider: str
    model: str
    address: str = ""
    """Empty for the provider's own."""

    def __str__(self) -> str:
        # A password in an address is for its server only.
        return f"{self.provider}:{self.model}" + (f"@{self.shown_url}" if self.address else "")

    @property
    def url(self) -> str:
        """The address that questions are sent to."""
        return self.address or os.environ.get(ADDRESS_VARIABLES[self.provider]) or ADDRESSES[self.provider]

    @property
    def shown_url(self) -> str:
        """The address without the password that it may hold."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @property
    def is_local(self) -> bool:
        """Questions do not leave this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    def key(self) -> str:
        """The key of the provider. A judge at an address of its own may need none."""
        key = os.environ.get(KEYS[self.provider], "")
        if not key and self.address:
            return "none"
        if not key:
            raise UsageError(
                f"{self} needs {KEYS[self.provider]}; it is not set",
                hint=f"export {KEYS[self.provider]}=…; nothing was sent",
            )
        return key


def judge_name(text: str) -> JudgeName:
    """Read the name of a judge: the provider ends at the first colon, an address begins at the last `@http`."""
    provider, colon, rest = text.partition(":")
    if not colon or provider not in KEYS:
        raise UsageError(
            f"--judge {text}: unknown provider {provider!r}",
            hint=f"write PROVIDER:MODEL or PROVIDER:MODEL@http://HOST:PORT; providers: {', '.join(KEYS)}",
        )
    index = rest.rfind("@http")
    model, address = (rest, "") if index < 0 else (rest[:index], rest[index + 1 :])
    if not model:
        raise UsageError(f"--judge {text} names no model", hint=f"write {provider}:MODEL")
    if address and (urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname):
        raise UsageError(f"--judge {text}: {address!r} is not an address", hint="for example http://localhost:8080/v1")
    return JudgeName(provider, model, address.rstrip("/"))
