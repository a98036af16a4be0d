"""Text out of a log before it meets a person: it steers no terminal, forges no line, and commands no CI server.

Everything that is printed or written as a report goes through here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

MAX_LINE = 200
_MARK = "\ufffd"
"""Stands for what was taken out, and breaks what would be a command."""
_BREAKS = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# What CI servers take for a command: `::name::` where a line begins, `##[name]` and its like anywhere.
_COMMANDS = re.compile(r"^([^\S\n]*:)(?=:.*::)|(#)(?=#(?:vso|teamcity)?\[)", re.MULTILINE)
_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]|#(?=#(?:vso|teamcity)?\\[)")


def clean(text: str) -> str:
    """Without characters that control a terminal or the direction of text, and without commands. It keeps its lines."""
    if not text.isprintable():
        text = "".join(one if one == "\n" or unicodedata.category(one)[0] != "C" else _MARK for one in text)
    return _COMMANDS.sub(rf"\g<0>{_MARK}", text) if "::" in text or "##" in text else text


def one_line(text: str, limit: int | None = MAX_LINE) -> str:
    """The same as part of one line: without line breaks, and not endless."""
    line = clean(_BREAKS.sub(" ", text if limit is None else text[: limit + 1]))
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def clean_json(text: str) -> str:
    """JSON that says the same. It escapes the controls below the blank; here are the others."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def toml_text(value: str) -> str:
    """A text of TOML that says the same and steers nothing; a log may hold anything."""
    harmless = json.dumps(value.encode("utf-8", "replace").decode(), ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in harmless).replace("##", "#\\u0023")


def is_utf8(path: Path) -> bool:
    """Whether a path is text. Any bytes may be a name on a disk, and not everybody can be given them."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
