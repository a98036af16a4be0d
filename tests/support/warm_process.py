"""Commands in processes of their own, without the second that Python's imports take in each of them.

One process imports the package once and then only forks: each command runs in a fresh copy of it, with the folder, the
environment and the streams of whoever asked, and ends as any process does. This file is the server, run as
`warm_process.py serve ADDRESS`, the command that stands for `convoscope` and `python` in a shell, run as
`warm_process.py ask ADDRESS NAME ARGUMENT...`, and what the tests call.
"""

from __future__ import annotations

import json
import os
import socket
import sys

# Each call of a command imports this file: what only the server or the tests need is imported where it is used.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    import subprocess
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import NoReturn

SECONDS = 120
_STREAMS = 3
Request = tuple[str, list[str], str, dict[str, str]]


def run(
    name: str, arguments: Sequence[object], *, cwd: str | Path, env: Mapping[str, str], streams: Sequence[int]
) -> int:
    """Run `convoscope ARGUMENTS` or `python FILE ARGUMENTS` on three open streams; returns the exit code."""
    return _ask(_server(), name, arguments, cwd, env, streams, SECONDS)


def commands() -> str:
    """A folder for PATH in which `convoscope` and `python FILE` run here."""
    folder = os.path.join(os.path.dirname(_server()), "bin")
    os.makedirs(folder, exist_ok=True)
    for name in ("convoscope", "python"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            continue  # a script that is being written cannot be run
        with open(path, "w") as script:
            script.write(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{__file__}" ask "{_server()}" {name} "$@"\n')
        os.chmod(path, 0o755)
    return folder


_started: list[str] = []


def _server() -> str:
    """The address of the server of this process, started when it is first needed; it ends when this process does."""
    if not _started:
        import atexit
        import subprocess
        import tempfile

        folder = tempfile.mkdtemp(prefix="warm-")
        address = os.path.join(folder, "socket")
        # Nothing that changes what libraries print may be left in the environment when they are imported.
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        server = subprocess.Popen(
            [sys.executable, "-P", __file__, "serve", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**kept, "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        atexit.register(_stop, server, folder)
        if not server.stdout or server.stdout.readline() != b"ready\n":
            raise RuntimeError("the server of warm processes did not start")
        _started.append(address)
    return _started[0]


def _stop(server: subprocess.Popen[bytes], folder: str) -> None:
    import shutil

    server.communicate()
    shutil.rmtree(folder, ignore_errors=True)


def _ask(
    address: str,
    name: str,
    arguments: Sequence[object],
    cwd: str | Path,
    env: Mapping[str, str],
    streams: Sequence[int],
    seconds: float,
) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(address)
        socket.send_fds(connection, [b"."], streams)
        connection.sendall(json.dumps([name, [str(one) for one in arguments], str(cwd), dict(env)]).encode())
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile()
        pid = int(answer.readline())
        try:
            return int(answer.readline())
        except TimeoutError:
            os.kill(pid, 9)
            raise


def _serve(address: str) -> Request:
    """Wait for commands. Returns in the process that is to run one of them."""
    import gc
    import select

    _import_all()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    gc.collect()
    gc.freeze()
    while sys.stdin not in (ready := select.select([listener, sys.stdin], [], [])[0]):
        for _ in ready:
            connection = listener.accept()[0]
            if os.fork() == 0:
                listener.close()
                return _answer(connection)
            connection.close()
            _forget_the_ended()
    os._exit(0)


def _forget_the_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _answer(connection: socket.socket) -> Request:
    """Fork once more: the one runs the command and ends, the other tells the caller how."""
    streams = socket.recv_fds(connection, 1, _STREAMS)[1]
    request = json.load(connection.makefile())
    pid = os.fork()
    if pid:
        for one in streams:
            os.close(one)
        connection.sendall(f"{pid}\n".encode())
        status = os.waitpid(pid, 0)[1]
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    for place, one in enumerate(streams):
        os.dup2(one, place)
        os.close(one)
    return request


def _import_all() -> None:
    """Import the package, what it imports at first use, and what a module looks up once or compiles at first use.

    Nothing more: a process with threads, such as those of the database, cannot be forked.
    """
    import importlib
    import inspect
    import pkgutil

    import convoscope

    for name in ("duckdb", "numpy.ma", "rich.console", "rich.progress", "rich.table"):
        importlib.import_module(name)
    for found in pkgutil.walk_packages(convoscope.__path__, "convoscope."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for one in vars(module).values():
            if hasattr(one, "cache_info") and not inspect.signature(one).parameters:
                one()
    # Lexicons and patterns are compiled when a metric first needs them.
    from convoscope.metrics.registry import installed
    from convoscope.scoring.evaluate import evaluate

    chats = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "openai-chat")
    for conversation in convoscope.read(chats):
        for _ in evaluate(conversation, installed().resolve()):
            pass


def _become(name: str, arguments: list[str], cwd: str, env: dict[str, str]) -> None:
    """Be the process that was asked for."""
    import io
    import time

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout = sys.__stdout__ = _writer(1, "strict")
    sys.stderr = sys.__stderr__ = _writer(2, "backslashreplace")
    sys.argv = [name, *arguments] if name == "convoscope" else list(arguments)
    if name == "convoscope":
        from convoscope.cli.main import main

        main()
    else:
        import runpy

        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")


def _end(function: Callable[..., None], *arguments: object) -> NoReturn:
    """Call a function and end as Python ends, but for taking everything apart that was imported."""
    import atexit
    import threading
    import traceback

    code: object = 0
    try:
        function(*arguments)
    except SystemExit as error:
        code = error.code
        if not isinstance(code, int | None):
            sys.stderr.write(f"{code}\n")
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        os.write(2, f"Exception ignored: {error!r}\n".encode())
        code = 120
    os._exit(int(code or 0))  # type: ignore[call-overload]


def _writer(number: int, errors: str) -> io.TextIOWrapper:
    import io

    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    file = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(
        file if unbuffered else io.BufferedWriter(file),  # type: ignore[type-var]
        encoding="utf-8",
        errors=errors,
        line_buffering=number == 2 or os.isatty(number),
        write_through=unbuffered,
    )


def _in_a_shell(address: str, name: str, arguments: Sequence[str]) -> int:
    if name == "python" and not (arguments and arguments[0].endswith(".py")):
        os.execv(sys.executable, [sys.executable, *arguments])
    code = _ask(address, name, arguments, os.getcwd(), os.environ, (0, 1, 2), SECONDS)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        sys.exit(_in_a_shell(sys.argv[2], sys.argv[3], sys.argv[4:]))
    _end(_become, *_serve(sys.argv[2]))
