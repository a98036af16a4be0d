"""One small real model for all tests of judges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.model_server import ModelServer, model_server
from support.weights import weights_file

MODEL = "smollm2-135m"


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    """Loaded in half a second: each worker of the tests has its own."""
    if not weights_file(MODEL).exists():
        pytest.skip(f"no weights of {MODEL}: `make test` fetches them")
    with model_server(weights_file(MODEL), context=4096) as server:
        yield server
