"""Whether a text may be what a person or an agent said, and not an id, an address, a name or data."""

from __future__ import annotations

import re

_WORDS = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,40}(?:['’.,;:!?…)\"-]{0,5}\s{1,5}[('\"¿¡-]{0,5}[^\W\d_]{1,40})+")
"""Two words or more."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2}")
"""Scripts that put no blanks between words."""
_NO_SPEECH = re.compile(
    r"(?:[\w.+-]+@[\w-]+\.[\w.-]+"  # an e-mail address
    r"|[a-z]+://\S+"
    r"|(?=[\w-]*\d)[\w-]{8,}"  # an id
    r"|_*[^\W_]+[_./:]\w[\w./:]*|[a-z]+[A-Z]\w*"  # the name of something
    r"|[\d\s.,:/+TZ-]+|\{.*|\[\s*[\[{\"].*)",
    re.DOTALL,
)


def is_speech(text: str) -> bool:
    """Whether a person or an agent could have said this."""
    return any(map(str.isalpha, text)) and _NO_SPEECH.fullmatch(text[:300].strip()) is None


def is_language(text: str) -> bool:
    """Whether it is surely language: two words, or a script that puts no blanks between them."""
    head = text[:300]
    return is_speech(head) and (_WORDS.search(head) is not None or _UNSPACED.search(head) is not None)
