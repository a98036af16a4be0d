"""An object store for tests: moto's server, which imitates S3, on loopback."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

BUCKET = "logs"


@contextmanager
def object_store() -> Iterator[Any]:
    """A server with an empty bucket, and the environment that leads clients to it; gives the file system of fsspec."""
    import s3fs
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    try:
        with mock.patch.dict(os.environ, environment):
            s3fs.S3FileSystem.clear_instance_cache()
            store = s3fs.S3FileSystem()
            if not store.exists(BUCKET):  # what one server of a process holds, the next one has
                store.mkdir(BUCKET)
            store.server = _Stoppable(server)
            yield store
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


class _Stoppable:
    """The server, to be stopped and started again at its port, with what it holds."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def stop(self) -> None:
        self._server._server.shutdown()
        self._server._server.server_close()
        self._server._thread.join()

    def start(self) -> None:
        # Set since the first start: `start` would not wait until it listens.
        self._server._server_ready_event.clear()
        self._server._port = int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])
        self._server.start()


def upload(store: Any, folder: Path, prefix: str) -> None:
    """The files of a folder, below a prefix of the bucket."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            store.pipe_file(f"{BUCKET}/{prefix}/{file.relative_to(folder).as_posix()}", file.read_bytes())
