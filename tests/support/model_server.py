"""A real small language model on loopback, in a process of its own: OpenAI's and Anthropic's wire formats.

`python tests/support/model_server.py FILE` prints its address and serves until its input ends.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class ModelServer(NamedTuple):
    """A running server."""

    address: str
    model: str

    @property
    def openai(self) -> str:
        return f"openai:{self.model}@{self.address}/v1"

    @property
    def anthropic(self) -> str:
        return f"anthropic:{self.model}@{self.address}"


@contextmanager
def model_server(weights: Path, *, context: int = 4096, threads: int = 1) -> Iterator[ModelServer]:
    """A server that ends with the block, or with the process that started it."""
    command = [sys.executable, __file__, str(weights), str(context), str(threads)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"{weights} cannot be served: xllamacpp ended with {process.wait()}")
        try:
            yield ModelServer(address, weights.stem)
        finally:
            process.kill()


def _serve(file: str, context: int, threads: int) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = file
    parameters.n_ctx = context
    # One question at a time: a second slot would have half of the context, and the cores are few.
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.cache_ram_mib = 512
    parameters.warmup = False
    parameters.verbosity = -1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
