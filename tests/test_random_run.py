"""A run of random queries that is stopped or killed leaves its report and no processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.random.run import Outcome, Run, run
from tests.random.stopping import stop_request

_STARTED = "TQP_TEST_STARTED"


def wait_until_stopped(seed: int, groups: Collection[int], fuse: str, seen: Counter[str]) -> Outcome:
    """In the place of `run_chunk`: three queries, of which the last ends when the run is stopped."""
    Path(os.environ[_STARTED]).touch()
    while not stop_request.is_made:
        time.sleep(0.01)
    return Outcome(Counter(equal=3), seen=seen)


def test_a_stopped_run_reports_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = tmp_path / "started"
    monkeypatch.setenv(_STARTED, str(started))
    monkeypatch.setattr("tests.random.run.run_chunk", wait_until_stopped)
    monkeypatch.setattr(stop_request, "is_made", False)

    def stop() -> None:
        while not started.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    stopping = threading.Thread(target=stop)
    stopping.start()
    whole = Run(7, {}, None)
    with stop_request.by_signals():
        whole.go(1, 100, None)
    stopping.join()
    whole.report(1.0)
    assert "seed 7: 3 queries" in capsys.readouterr().out


def test_a_worker_stops_between_two_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_request, "is_made", True)
    assert run(1, range(1)).total == 0


_KILLED = """
import os, signal, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from tests.random.stopping import begin_worker

if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("spawn"), begin_worker) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 60)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(_KILLED)
    root = Path(__file__).parent.parent
    command = [sys.executable, str(script)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    # The end of its output, which the worker shares, is the end of the worker: later than this without a watch.
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=30, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert int(done.stdout) > 0
