"""What a page says, for tests that need no browser: its facts are packed into the file."""

import base64
import gzip
import re
from pathlib import Path


def page_facts(page: Path, block: str = "facts") -> str:
    """The JSON of all that the page shows beside its conversations; `story-0` is the first of these."""
    packed = re.search(rf'id="{block}">([^<]+)<', page.read_text(encoding="utf-8"))
    assert packed is not None
    return gzip.decompress(base64.b64decode(packed[1])).decode()
