"""A worker of Dask as a process of its own on this machine. It is imported only where Dask is."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from distributed.deploy.subprocess import Subprocess


class WorkerProcess(Subprocess):  # type: ignore[misc]
    """A nanny, which starts its worker again when that dies. It ends when the scheduler does.

    It is in a session of its own: Ctrl-C is for the process that works with it.
    """

    def __init__(self, scheduler: str, name: Any = None, worker_kwargs: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._spec = json.dumps({"cls": "distributed.Nanny", "opts": {"name": name, **(worker_kwargs or {})}})
        self._scheduler = scheduler

    async def _start(self) -> None:
        command = [sys.executable, "-m", "dask", "spec", self._scheduler, "--spec", self._spec]
        self.process = await asyncio.create_subprocess_exec(
            *command, start_new_session=True, stderr=asyncio.subprocess.DEVNULL
        )
