"""Dask, for real: a scheduler and two workers in processes of their own."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from convoscope.errors import InputError, UsageError
from convoscope.ingest.discover import LOCK, find_inputs
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import cut
from convoscope.runs.part_files import RunFiles
from convoscope.scoring.engines import WorkerDied
from convoscope.scoring.engines.remote import do_partition, forget_work, sent_work
from convoscope.scoring.partition import PartitionTask
from support.engine_checks import (
    EVERYTHING,
    check_bytes,
    check_judges,
    check_lost_worker,
    check_resumed,
    score_talks,
    stop_driver,
    wait_for_end,
    write_talks,
)
from support.generated import write_lines


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster that runs already, as a user has one."""
    from convoscope.scoring.engines.dask import _local_cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVOSCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        cluster = _local_cluster(2)
        yield cluster.scheduler_address.replace("tcp://", "dask://")
        cluster.close(timeout=5)


def test_parts_and_bytes_are_those_of_this_machine(address: str, tmp_path: Path) -> None:
    check_bytes(tmp_path, address)


def test_your_own_code_reaches_workers_and_a_lost_worker_is_a_partition_done_again(
    address: str, tmp_path: Path
) -> None:
    run = check_lost_worker(tmp_path, write_talks(tmp_path, "lost_dask"), address)
    assert len(run.receipt.parts) == 6


@EVERYTHING
def test_a_partition_that_kills_every_worker_ends_the_run(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_talks(tmp_path, "deadly_dask")
    (tmp_path / "kill-always").touch()
    with pytest.raises(WorkerDied, match=rf"{address}: every worker that took partition 3 died"):
        score_talks(tmp_path, source, address)
    (tmp_path / "kill-always").unlink()
    assert score_talks(tmp_path, source, address).summary.conversations == 6


def test_code_that_changed_is_loaded_again(address: str, tmp_path: Path) -> None:
    source = write_talks(tmp_path, "changed_dask")
    first = score_talks(tmp_path, source, address, "first")
    source.write_text(source.read_text().replace(".isupper()", ".islower()").replace("version=1", "version=2"))
    second = score_talks(tmp_path, source, address, "second")
    # No utterance is all in small letters.
    assert [run.summary.metrics[0].value for run in (first, second)] == [pytest.approx(2 / 6), 0.0]


def test_judges_share_one_budget_and_one_limit(address: str, tmp_path: Path) -> None:
    assert len(check_judges(tmp_path, address).receipt.parts) > 3


def test_money_is_counted_over_all_workers(address: str, tmp_path: Path) -> None:
    from distributed import Client

    from convoscope.judging.limits import Budget
    from convoscope.scoring.engines.dask import _counted
    from convoscope.scoring.engines.remote import SharedCounter

    def spend(ask: Any) -> int:
        from convoscope.judging.backends import BudgetSpent
        from convoscope.judging.limits import SharedBudget

        budget, questions = SharedBudget(ask(None)), 0
        try:
            while True:
                budget.reserve(0.03)
                questions += 1
                if questions == 1:
                    budget.charge(0.03, 0.01)
        except BudgetSpent:
            return questions

    ledger = tmp_path / "spent.sqlite"
    before = Budget(ledger, None, 0.50)
    before.reserve(0.10)
    with Client(address.replace("dask", "tcp"), set_as_default=False) as client:
        with _counted(client, SharedCounter(str(ledger), None, 0.50), "convoscope-money") as ask:
            questions = sum(client.gather([client.submit(spend, ask, key=f"spend-{one}") for one in range(4)]))
        assert "convoscope_money" not in client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.handlers))
    # 10 cents are spent before, 40 are left. Each task whose first question is allowed gets 2 of its 3 cents back.
    asked, dollars = before.spent()
    assert asked == 1 + questions
    assert dollars <= 0.50 + 1e-9  # a sum of floats
    assert dollars > 0.50 - 0.03  # another question would have been too much
    before.close()


def test_a_worker_that_sees_another_folder_or_no_logs_refuses(tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", range(3))
    (tmp_path / LOCK).write_text("this very folder")
    work = PartitionTask(metrics=(), writer=RunFiles(tmp_path))
    sent = sent_work(work)
    (tmp_path / LOCK).write_text("another one, at the same path of another machine")
    partition = next(cut(find_inputs([logs]).inputs, ReadReport(), tmp_path / "scratch"))
    with pytest.raises(UsageError, match=rf"a worker on .* has another state of: {tmp_path}"):
        do_partition(sent, None, partition)
    (tmp_path / LOCK).write_text("this very folder")
    logs.unlink()
    with pytest.raises(InputError, match=r"chats\.jsonl: a worker on .* cannot open it"):
        do_partition(sent, None, partition)
    forget_work(sent.key)


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=EVERYTHING)])
def test_a_driver_that_is_stopped_is_continued(how: signal.Signals, tmp_path: Path) -> None:
    logs, code, started = stop_driver(tmp_path, "dask://local", how)
    assert code != 0
    assert len(started) >= 2
    assert wait_for_end(started) == []
    check_resumed(tmp_path, logs)


def test_a_worker_without_convoscope_says_so() -> None:
    import cloudpickle

    from convoscope.scoring.engines.remote import do_partition, entry_point, explained

    code = (
        "import pickle, sys; sys.modules['convoscope'] = None\n"
        "function, content = pickle.load(sys.stdin.buffer)\n"
        "try: function(content)\n"
        "except Exception as error: pickle.dump(error, sys.stdout.buffer)"
    )
    sent = cloudpickle.dumps((entry_point(), pickle.dumps((do_partition,))))
    done = subprocess.run([sys.executable, "-c", code], input=sent, stdout=subprocess.PIPE, check=True)
    error = explained(pickle.loads(done.stdout), "dask://cluster:8786")
    assert isinstance(error, UsageError)
    assert error.message == "a worker of dask://cluster:8786 cannot import Convoscope"
