"""The plan on a Dask scheduler: one tuning on each host, kept as it comes in."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
from distributed import Client, Future
from distributed.comm.core import CommClosedError

from .. import _records
from . import host, store
from .plan import Plan
from .store import FleetError

# Beyond which a worker ends a tuning, and beyond which the plan no longer waits for the worker.
LATE, LOST = 60.0, 30.0
TICK = 0.25
# Seconds between two lines of progress.
SHOWN = 30.0


@dataclass(frozen=True)
class Settings:
    """Options of `fleet tune`; times are in seconds."""

    scheduler: str
    directory: Path
    budget: float
    # A host whose CPUs are used more than this is busy.
    load: float
    patience: float
    # How long the first worker is waited for.
    wait: float
    command: str | None


def tune(settings: Settings, tell: Callable[[str], None]) -> int:
    """Tunes what the scheduler's workers run on. Returns the exit status."""
    with _directory_lock(settings.directory):
        store.clear_rests(settings.directory)
        for path, error in store.damaged(settings.directory):
            tell(f"{error}; its host is measured again")
            path.unlink()
        # A request to end is a Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with _client(settings.scheduler) as client:
            run = _Run(settings, client, tell)
            try:
                return run.all()
            except KeyboardInterrupt:
                tell(f"interrupted; {run.kept} hosts kept in {settings.directory}")
                return 130
            except FleetError as error:
                raise FleetError(f"{error}; {run.kept} hosts kept") from error
            except (OSError, CommClosedError) as error:
                text = f"{settings.scheduler}: the scheduler went away ({error!r})".splitlines()[0]
                raise FleetError(f"{text}; {run.kept} hosts kept") from error
            finally:
                run.cancel()


class _Run:
    def __init__(self, settings: Settings, client: Client, tell: Callable[[str], None]) -> None:
        self._settings, self._client, self._tell = settings, client, tell
        self._done = {path.name.removesuffix(".jsonl.gz") for path in store.files(settings.directory)}
        self._plan = Plan(settings.patience)
        self._limit = settings.budget * 1.25 + LATE
        self._asked: dict[str, Future[Any]] = {}
        self._tunings: dict[str, Future[Any]] = {}
        self._known: set[str] = set()
        self._before: set[str] = set()
        # Workers that did not say where they are.
        self._silent = 0
        self.kept = 0

    def all(self) -> int:
        begun = shown = time.monotonic()
        while True:
            now = time.monotonic()
            self._workers(now)
            self._answers()
            self._results(now)
            for machine, worker in self._plan.start(now):
                one = self._settings
                values = (one.command, one.budget, one.load, self._limit)
                self._tunings[machine] = self._submit("tune", host.tune, worker, *values)
            if now - shown >= SHOWN:
                shown = now
                self._tell(self._plan.progress())
            if not self._known and now - begun >= self._settings.wait:
                raise FleetError(f"{self._settings.scheduler}: no worker joined in {self._settings.wait:.0f} s")
            if self._known and not self._asked and self._plan.over:
                return self._end()
            time.sleep(TICK)

    def cancel(self) -> None:
        with contextlib.suppress(Exception):
            self._client.cancel([*self._asked.values(), *self._tunings.values()])

    def _workers(self, now: float) -> None:
        if self._client.status == "closed":
            raise OSError("no answer")
        found = self._client.scheduler_info(n_workers=-1)
        if "workers" not in found:
            # The connection is lost; the client tries it again for a while, and closes if that fails.
            return
        here = set(found["workers"])
        for worker in here - self._known:
            self._asked[worker] = self._submit("identity", host.identity, worker)
        for worker in self._known - here:
            _drop(self._asked.pop(worker, None))
            for machine in self._plan.leave(worker, now):
                _drop(self._tunings.pop(machine, None))
                self._tell(f"{self._plan.hosts[machine].name}: {self._plan.hosts[machine].why}")
        self._known = here

    def _submit(self, what: str, run: Any, worker: str, *values: Any) -> Future[Any]:
        key = f"cachewise-{what}-{uuid.uuid4().hex}"
        return self._client.submit(
            _ByValue(run), *values, key=key, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    def _answers(self) -> None:
        for worker, future in list(self._asked.items()):
            if not future.done():
                continue
            del self._asked[worker]
            if future.status != "finished":
                self._tell(f"{worker}: does not say which host it is on: {_why(future)}")
                self._silent += 1
                continue
            who = future.result()
            if store.digest(who["key"]) in self._done:
                self._before.add(who["machine"])
            else:
                self._plan.join(worker, who["machine"], who["host"], who["key"])

    def _results(self, now: float) -> None:
        for machine, future in list(self._tunings.items()):
            if future.done():
                del self._tunings[machine]
                self._take(machine, future, now)
        for machine in self._plan.late(now, self._limit + LOST):
            _drop(self._tunings.pop(machine, None))
            self._plan.failed(machine, "its worker does not answer", now)
            self._report(machine)

    def _take(self, machine: str, future: Future[Any], now: float) -> None:
        if future.status != "finished":
            found: dict[str, Any] = {"outcome": "failed", "why": f"its worker failed: {_why(future)}"}
        else:
            found = future.result()
        if found["outcome"] == "tuned":
            try:
                store.keep(self._settings.directory, self._plan.hosts[machine].key, found["record"])
            except (_records.RecordError, KeyError) as error:
                found = {"outcome": "failed", "why": f"no record of a tuning came: {error}"}
            else:
                self.kept += 1
                self._plan.tuned(machine)
                return
        if found["outcome"] == "busy":
            self._plan.busy(machine, found["why"], now)
        else:
            self._plan.failed(machine, found["why"], now)
        self._report(machine)

    def _report(self, machine: str) -> None:
        one = self._plan.hosts[machine]
        wait = max(one.not_before - time.monotonic(), 0)
        self._tell(f"{one.name}: {one.why}; {'given up' if one.given_up else f'again in {wait:.0f} s'}")

    def _end(self) -> int:
        untuned = [one for one in self._plan.hosts.values() if one.given_up]
        before = f", {len(self._before)} were there before" if self._before else ""
        self._tell(f"{self.kept} hosts tuned{before}, {len(untuned)} not")
        for one in untuned:
            self._tell(f"  {one.name}: {one.why}")
        return 4 if untuned or self._silent else 0


@dataclass
class _ByValue:
    """A function that is sent as it stands: the worker need not have its module."""

    run: Callable[..., Any]

    def __call__(self, *values: Any) -> Any:
        return self.run(*values)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes]]:
        # Dask would name the module of what it can.
        return cloudpickle.loads, (cloudpickle.dumps(self.run),)


def _why(future: Future[Any]) -> str:
    error = future.exception() if future.status == "error" else future.status
    return (str(error).splitlines() or [type(error).__name__])[0]


def _drop(future: Future[Any] | None) -> None:
    if future is not None:
        with contextlib.suppress(Exception):
            future.cancel()


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[Client]:
    # This command prints errors itself, in one line.
    logging.disable(logging.ERROR)
    cloudpickle.register_pickle_by_value(host)
    try:
        client = Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise FleetError(f"{scheduler}: no scheduler answers ({text})") from error
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=2)


@contextlib.contextmanager
def _directory_lock(directory: Path) -> Iterator[None]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        number = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise FleetError(f"{directory}: cannot be written to: {error.strerror}") from error
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise FleetError(f"{directory}: another `fleet tune` is writing to it") from error
    finally:
        os.close(number)
