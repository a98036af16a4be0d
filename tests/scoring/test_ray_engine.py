"""Ray, for real: a cluster on loopback. `make test-engines` runs it: Ray is large, and takes seconds to start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from convoscope.errors import UsageError
from convoscope.scoring.engines import engine_for
from support.engine_checks import (
    EVERYTHING,
    check_bytes,
    check_judges,
    check_lost_worker,
    check_resumed,
    descendants,
    stop_driver,
    wait_for_end,
    write_talks,
)

pytestmark = [
    EVERYTHING,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: make test-engines"),
    pytest.mark.filterwarnings("default"),
]
LOCAL = "ray://local"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cluster in this process that the runs below find, as in a program that uses Ray already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVOSCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        engine = engine_for(LOCAL, 2)
        assert engine.workers == 2
        yield
        import ray  # not before: what it listens on is decided when it is imported

        ray.shutdown()


@pytest.mark.usefixtures("cluster")
class TestOnOneCluster:
    def test_nothing_listens_but_on_loopback(self) -> None:
        found = [pid for pid in descendants(os.getpid()) if listening(pid)]
        assert found
        assert {address for pid in found for address in listening(pid)} == {"127.0.0.1"}

    def test_parts_and_bytes_are_those_of_this_machine(self, tmp_path: Path) -> None:
        check_bytes(tmp_path, LOCAL)

    def test_your_own_code_reaches_workers_and_a_lost_worker_is_a_partition_done_again(self, tmp_path: Path) -> None:
        check_lost_worker(tmp_path, write_talks(tmp_path, "lost_ray"), LOCAL)

    def test_judges_share_one_budget_and_one_limit(self, tmp_path: Path) -> None:
        check_judges(tmp_path, LOCAL)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_driver_that_is_stopped_is_continued(how: signal.Signals, tmp_path: Path) -> None:
    logs, code, started = stop_driver(tmp_path, LOCAL, how)
    assert code != 0
    assert len(started) >= 2
    # Two agents of Ray end a minute after a kill; they work on nothing.
    agents = [pid for pid in started if b"Agent" in command_of(pid)]
    try:
        assert wait_for_end([pid for pid in started if pid not in agents]) == []
        check_resumed(tmp_path, logs)
    finally:
        for pid in agents:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_cluster_with_a_client_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ray start --head`, and a driver that is not part of the cluster."""
    port, client_port = free_ports(2)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    head = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2"]
    options = ["--include-dashboard=false", "--node-ip-address=127.0.0.1", "--object-store-memory=80000000"]
    ports = [f"--port={port}", f"--ray-client-server-port={client_port}"]
    ports += ["--min-worker-port=21000", "--max-worker-port=21100"]
    process = subprocess.Popen([*head, *options, *ports], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                probe.settimeout(0.2)
                if probe.connect_ex(("127.0.0.1", client_port)) == 0:
                    break
            try:
                assert process.wait(0.1) is None
            except subprocess.TimeoutExpired:
                continue
        check_bytes(tmp_path, f"ray://127.0.0.1:{client_port}")
    finally:
        process.terminate()
        process.wait()


def test_an_address_without_a_client_server(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    with pytest.raises(UsageError, match=rf"--engine ray://127\.0\.0\.1:{port} cannot be reached: Connection refused"):
        _ = engine_for(f"ray://127.0.0.1:{port}").workers


def command_of(pid: int) -> bytes:
    """The command of a process; empty where it ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def free_ports(count: int) -> list[int]:
    """Ports of loopback at which nothing listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def listening(pid: int) -> set[str]:
    """The addresses at which a process listens."""
    import psutil

    try:
        found = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return set()
    return {one.laddr.ip.removeprefix("::ffff:") for one in found if one.status == psutil.CONN_LISTEN}
