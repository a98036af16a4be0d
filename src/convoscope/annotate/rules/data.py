"""The lexicons and patterns of the rules, read once, and the hash of all that can change what they find."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

VERSION = "3"
_FOLDER = Path(__file__).parent
_NAME = re.compile(r"\{([a-z_]+)\}")


@cache
def table(name: str) -> dict[str, Any]:
    """One of the data files: topics, risks, actions, words, languages."""
    return tomllib.loads((_FOLDER / "data" / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def rules_hash() -> str:
    """`sha256:` over the data files and the programs that read them, by name."""
    whole = hashlib.sha256()
    for path in sorted((*_FOLDER.glob("data/*.toml"), *_FOLDER.glob("*.py"))):
        content = path.read_text(encoding="utf-8").replace("\r\n", "\n")
        whole.update(f"{path.name} {hashlib.sha256(content.encode()).hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def expanded(text: str, **more: str) -> str:
    """A pattern with each `{name}` replaced by what words.toml calls so; names may stand for names."""
    words = {**table("words"), **more}
    while (whole := _NAME.sub(lambda name: words[name[1]], text)) != text:
        text = whole
    return text


def pattern(text: str, *, cased: bool = False) -> re.Pattern[str]:
    """A pattern of the data: it stands between words. Sentences have single blanks."""
    return re.compile(rf"(?<![\w'-])(?:{expanded(text)})(?!\w)", 0 if cased else re.IGNORECASE)


def any_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    """One pattern for several; None for none."""
    joined = "|".join(f"(?:{text})" for text in texts)
    return pattern(joined) if joined else None
