"""What an object store costs: the items of `items.py` from a bucket into a bucket, beside the same on disk.

The server is moto's, in this process: it imitates S3, without the network. Each command is a process of its own, and
CPU time is that of the command.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import process_time, sleep
from typing import Any

import msgspec

from benchmarks.items import METRICS, items
from convoscope.ingest.split import PART_BYTES

_BUCKET = "bench"
_IN_ONE = 200
"""Items in one of many small logs."""


class Cost(msgspec.Struct):
    """What a command took, and what it asked of the store."""

    seconds: float
    asked: dict[str, int]
    logs: int
    """Bytes of logs that were fetched."""
    fetched: int
    put: int

    def __str__(self) -> str:
        asked = ", ".join(f"{name} {count}" for name, count in sorted(self.asked.items(), key=lambda one: -one[1]))
        return (
            f"{self.seconds:.1f} s; {self.logs / 1e6:.1f} MB of logs and {self.fetched / 1e6:.1f} MB of the run "
            f"fetched, {self.put / 1e6:.1f} MB put\n    {sum(self.asked.values())} requests: {asked}"
        )


def run(folder: Path, count: int) -> None:
    """Print what one large log and many small ones cost, an addition, and a command that finds nothing new."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "bench"}
    os.environ |= {"AWS_SECRET_ACCESS_KEY": "bench", "AWS_MAX_ATTEMPTS": "2"}
    try:
        _measure(folder / f"stored-{count}", count)
        _stop_half_way(folder / f"stored-{count}", count, server)
    finally:
        server.stop()


def _measure(folder: Path, count: int) -> None:
    import s3fs

    store: Any = s3fs.S3FileSystem()
    store.mkdir(_BUCKET)
    records = items(count + _IN_ONE)
    whole = list(_lines(records, count))
    (folder / "one").mkdir(parents=True)
    (folder / "many").mkdir()
    (folder / "one" / "items.jsonl").write_bytes(b"".join(whole))
    for at in range(0, count, _IN_ONE):
        (folder / "many" / f"{at:07d}.jsonl").write_bytes(b"".join(whole[at : at + _IN_ONE]))
    more = b"".join(_lines(records, _IN_ONE))
    for kind in ("one", "many"):
        store.put(str(folder / kind), f"{_BUCKET}/{kind}", recursive=True)
        logs = list((folder / kind).iterdir())
        size = sum(path.stat().st_size for path in logs)
        print(f"{count:,} items in {len(logs):,} file{'s' if len(logs) > 1 else ''}, {size / 1e6:.0f} MB, one worker")
        on_disk = _command(folder / kind, folder / f"{kind}-run")
        first = _command(f"s3://{_BUCKET}/{kind}", f"s3://{_BUCKET}/runs/{kind}")
        print(f"  on disk {on_disk.seconds:.1f} s of CPU time; from and into a store {first}")
        _compare(store, folder, kind)
        store.pipe_file(f"{_BUCKET}/{kind}/more.jsonl", more)
        (folder / kind / "more.jsonl").write_bytes(more)
        print(f"  {_IN_ONE} items more  {_command(f's3://{_BUCKET}/{kind}', f's3://{_BUCKET}/runs/{kind}')}")
        _command(folder / kind, folder / f"{kind}-run")
        _compare(store, folder, kind)
        print(f"  nothing new  {_command(f's3://{_BUCKET}/{kind}', f's3://{_BUCKET}/runs/{kind}')}")


def _stop_half_way(folder: Path, count: int, server: Any) -> None:
    """The store is stopped when half of the parts are kept, and comes back; the same command goes on."""
    import s3fs

    out, port = f"{_BUCKET}/runs/stopped", int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])
    size = (folder / "one" / "items.jsonl").stat().st_size
    part_bytes = size // 16
    command = [sys.executable, "-m", "benchmarks.stores", f"s3://{_BUCKET}/one", f"s3://{out}", str(part_bytes)]
    store: Any = s3fs.S3FileSystem(use_listings_cache=False)
    with tempfile.TemporaryFile() as said:
        writer = subprocess.Popen(command, stdout=said, stderr=said)
        while writer.poll() is None and _kept(store, out) < 8:
            sleep(0.05)
        kept = _kept(store, out)
        server._server.shutdown()
        server._server.server_close()
        server._thread.join()
        code = writer.wait()
    server._port = port
    server.start()
    cost = _command(f"s3://{_BUCKET}/one", f"s3://{out}", part_bytes)
    import convoscope

    run = convoscope.Run.open(f"s3://{out}")
    ids = [row["conversation"] for row in run.conversations_table().to_list()]
    expected, found = count + _IN_ONE, Counter(ids)
    ended = "ended with an error" if code else "was done"
    print(f"the store stopped when {kept} of 16 parts were kept, the command {ended}; the same command goes on:")
    print(f"  {cost.seconds:.1f} s; {expected - len(found)} lost, {len(ids) - len(found)} doubled of {expected:,}\n")


def _kept(store: Any, out: str) -> int:
    return sum("/journal/" in name for name in store.find(f"{out}.partial"))


def _compare(store: Any, folder: Path, kind: str) -> None:
    here = (folder / f"{kind}-run" / "summary.json").read_bytes()
    store.invalidate_cache()
    same = store.cat_file(f"{_BUCKET}/runs/{kind}/summary.json") == here
    print(f"  the summaries are {'the same' if same else 'NOT THE SAME'}")


def _lines(records: Iterator[dict[str, object]], count: int) -> Iterator[bytes]:
    return (msgspec.json.encode(record) + b"\n" for record in islice(records, count))


def _command(source: str | Path, out: str | Path, part_bytes: int = PART_BYTES) -> Cost:
    """Score in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.stores", str(source), str(out), str(part_bytes)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return msgspec.json.decode(ended.stdout.strip().rpartition("\n")[2], type=Cost)


def _count(source: str, out: str, part_bytes: int) -> None:
    """Score, and print what it took."""
    import s3fs

    import convoscope

    asked: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    call = s3fs.S3FileSystem._call_s3
    logs = source.removeprefix(f"s3://{_BUCKET}/") + "/"

    async def counted(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        answer = await call(self, method, *args, **kwargs)
        asked[method] += 1
        if method == "get_object":
            sent["logs" if kwargs["Key"].startswith(logs) else "fetched"] += answer["ContentLength"]
        elif method in ("put_object", "upload_part"):
            sent["put"] += len(kwargs.get("Body", b""))
        return answer

    s3fs.S3FileSystem._call_s3 = counted
    began = process_time()
    convoscope.score(source, metrics=METRICS, out=out, workers=1, part_bytes=part_bytes)
    cost = Cost(process_time() - began, dict(asked), sent["logs"], sent["fetched"], sent["put"])
    print(json.dumps(msgspec.to_builtins(cost)))


if __name__ == "__main__":
    _count(sys.argv[1], sys.argv[2], int(sys.argv[3]))
