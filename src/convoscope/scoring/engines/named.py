"""The engine that a user names: `dask://HOST:8786`, `ray://local`."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from typing import NamedTuple

from convoscope.errors import UsageError
from convoscope.scoring.engines.engine import Engine, checked_workers
from convoscope.scoring.engines.local import LocalEngine

LOCAL = "local"
_PACKAGES = {"dask": "distributed", "ray": "ray"}
_PORTS = {"dask": 8786, "ray": 10001}
_HINT = "there is dask://HOST:8786, ray://HOST:10001, dask://local and ray://local"
_SECONDS = 10.0


class Address(NamedTuple):
    """Where a cluster is; without a host, one is started on this machine."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{f'{self.host}:{self.port}' if self.host else LOCAL}"

    def check(self) -> None:
        """Refuse an address at which nothing listens, before a client waits for it."""
        if self.host:
            try:
                socket.create_connection((self.host, self.port), _SECONDS).close()
            except OSError as error:
                hint = f"is the cluster running, and can this machine reach it? {self.scheme}://local starts one here"
                raise UsageError(f"--engine {self} cannot be reached: {error.strerror or error}", hint=hint) from None


def parse_address(text: str) -> Address:
    """The address that a user writes."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _PACKAGES:
        raise UsageError(f"--engine {text}: unknown engine", hint=_HINT)
    if rest.rstrip("/") == LOCAL:
        return Address(scheme, "", 0)
    host, colon, port = rest.rstrip("/").rpartition(":")
    if not colon:
        host, port = port, str(_PORTS[scheme])
    if not host or "/" in host or not (port.isascii() and port.isdecimal() and 0 < int(port) < 65_536):
        raise UsageError(f"--engine {text}: no address of a cluster", hint=_HINT)
    return Address(scheme, host.strip("[]"), int(port))


def engine_for(engine: Engine | str | None, workers: int | None = None) -> Engine:
    """The engine that is meant; nothing is started or connected yet."""
    if engine is None:
        return LocalEngine(workers)
    if not isinstance(engine, str):
        return engine
    address = parse_address(engine)
    checked_workers(workers)
    if find_spec(_PACKAGES[address.scheme]) is None:
        package = _PACKAGES[address.scheme]
        raise UsageError(
            f"--engine {engine} needs the package {package}", hint=f"pip install 'convoscope[{address.scheme}]'"
        )
    if address.scheme == "dask":
        from convoscope.scoring.engines.dask import DaskEngine

        return DaskEngine(address, workers)
    from convoscope.scoring.engines.ray import RayEngine

    return RayEngine(address, workers)
