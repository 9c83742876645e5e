"""What the fleet's tests share: a cluster of real processes, and the command under test."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._file = directory / "scheduler.json"
        self._start("scheduler", ["scheduler", "--port", "0", "--scheduler-file", str(self._file)])
        # The scheduler makes the file before it fills it.
        self._wait(lambda: self._file.exists() and self._file.stat().st_size > 0)
        self.address: str = json.loads(self._file.read_text())["address"]

    def worker(self, name: str, host: str) -> None:
        """A worker that says it is on the host of that name."""
        words = ["worker", self.address, "--name", name, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        words += ["--local-directory", str(self._directory)]
        self._start(name, words, CACHEWISE_FLEET_HOST=host)

    def kill(self, name: str) -> None:
        """As the machine would, without a word."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def _start(self, name: str, words: list[str], **environment: str) -> None:
        # Neither the package nor its path: a host needs Dask and the command only.
        plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        log = (self._directory / f"{name}.log").open("wb")
        extra = ["--no-dashboard"] if name == "scheduler" else []
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:], *extra],
            env={**plain, **environment},
            cwd=self._directory,
            stdout=log,
            stderr=log,
        )
        log.close()

    def _wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, "the cluster does not start"
            time.sleep(0.1)

    def close(self) -> None:
        """Ends all of it."""
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
        for process in self.processes.values():
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler without workers yet."""
    directory = tmp_path / "cluster"
    directory.mkdir()
    one = Cluster(directory)
    try:
        yield one
    finally:
        one.close()


class Fleet:
    """The command under test, as a process."""

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts it."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "cachewise.fleet", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Runs it: status, stdout, stderr."""
        process = self.start(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture
def fleet() -> Fleet:
    """Runs `python -m cachewise.fleet`."""
    return Fleet()
