"""Every command and program in the documentation prints what the documentation shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.blocks import DOCUMENTS, ROOT, replay, rewrite


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_outputs_are_what_is_printed(document: Path) -> None:
    wrong = [done.told(document) for done in replay(document) if not done.as_shown]
    assert not wrong, "`make docs` puts these right, but for outputs with a line …\n\n" + "\n\n".join(wrong)


GUIDE = """
`lines.jsonl`:

```json
{"a": 1}
{"b": 2}
```

```console
$ cat lines.jsonl
{"a": 1}
…
$ (exit 3)
$ echo $?
0
$ echo 2026-01-02T03:04:05Z
2020-01-01T00:00:00Z
$ echo "one
two"
…
three
```

```python
print("said")
```

```text
unsaid
```

<!-- not run: there is no such command -->

```console
$ fly
```
"""


def test_outputs_are_put_right_where_that_is_safe(tmp_path: Path) -> None:
    document = tmp_path / "guide.md"
    document.write_text(GUIDE)
    left = rewrite(document)
    # `…` and another time are as good as before; `three` is for the author, since nobody can know what `…` was to hide.
    assert document.read_text() == GUIDE.replace("$ echo $?\n0", "$ echo $?\n3").replace("unsaid", "said")
    assert [told.splitlines()[0].partition(": ")[2] for told in left] == [
        '$ echo "one',
    ]
    assert left[0].splitlines()[-2:] == ["+one", "+two"]


def test_a_program_that_breaks_is_never_shown(tmp_path: Path) -> None:
    document = tmp_path / "guide.md"
    document.write_text("```python\n1 / 0\n```\n\n```text\n```\n")
    (told,) = rewrite(document)
    assert "ZeroDivisionError" in told
    assert "ZeroDivisionError" not in document.read_text()
