"""The plan on a Dask scheduler: one tuning on each host, kept as it comes in."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import logging
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
from distributed import Client, Future
from distributed.comm.core import CommClosedError

from . import errors, files, host, records
from .errors import FleetError
from .plan import Plan

# Time that a tuning takes beyond its budget: the look at the load, the start, the way back.
BESIDE = 5.0
# Beyond which a worker ends a tuning, and beyond which the plan no longer waits for the worker.
LATE, LOST = 60.0, 30.0
# Hosts that were not tuned, and why.
UNTUNED = "untuned.json"
LOCK = ".lock"
TICK = 0.25


@dataclass(frozen=True)
class Settings:
    """What `fleet tune` was told."""

    scheduler: str
    directory: Path
    # Seconds, for each host.
    budget: float
    # A host whose CPUs are used more than this is busy.
    load: float
    # Seconds.
    patience: float
    # Seconds that the first worker is waited for.
    wait: float
    command: str | None


def tune(settings: Settings, tell: Callable[[str], None]) -> int:
    """Tunes what the scheduler's workers run on. Returns the exit status."""
    with _directory_lock(settings.directory):
        files.clear_rests(settings.directory)
        done, damaged = records.done(settings.directory)
        for path, wrong in damaged:
            tell(f"{path}: {wrong}; its host is measured again")
        with _interruptible(), _client(settings.scheduler) as client:
            run = _Run(settings, client, done, tell)
            try:
                return run.all()
            except KeyboardInterrupt:
                tell(f"interrupted; {run.kept} hosts kept in {settings.directory}")
                return errors.INTERRUPTED
            except FleetError as error:
                raise FleetError(f"{error}; {run.kept} hosts kept", error.status) from error
            except (OSError, CommClosedError) as error:
                why = str(error) or type(error).__name__
                text = f"{settings.scheduler}: the scheduler went away ({why.splitlines()[0]})"
                raise FleetError(f"{text}; {run.kept} hosts kept") from error
            finally:
                run.release()


class _Run:
    def __init__(
        self, settings: Settings, client: Client, done: set[str], tell: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._client = client
        self._done = done
        self._tell = tell
        self._plan = Plan(settings.budget + BESIDE, settings.patience)
        self._limit = settings.budget * 1.25 + LATE
        self._asked: dict[str, Future[Any]] = {}
        self._tunings: dict[str, Future[Any]] = {}
        self._known: set[str] = set()
        self._before: set[str] = set()
        # Workers that did not say where they are.
        self._silent = 0
        self._progress = _Progress()
        self.kept = 0

    def all(self) -> int:
        begun = time.monotonic()
        while True:
            now = time.monotonic()
            self._workers(now)
            self._answers()
            self._results(now)
            for machine, worker in self._plan.start(now):
                self._begin(machine, worker)
            self._progress.show(self._plan, len(self._before), now)
            if not self._known and now - begun >= self._settings.wait:
                where = self._settings.scheduler
                raise FleetError(f"{where}: no worker joined in {self._settings.wait:.0f} s")
            if self._known and not self._asked and self._plan.over:
                return self._end()
            time.sleep(TICK)

    def release(self) -> None:
        """Takes back what has not begun."""
        self._progress.clear()
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
            self._drop(self._asked.pop(worker, None))
            for machine in self._plan.leave(worker, now):
                self._drop(self._tunings.pop(machine, None))
                self._tell(f"{self._plan.hosts[machine].name}: {self._plan.hosts[machine].why}")
        self._known = here

    def _submit(self, what: str, run: Any, worker: str, *values: Any) -> Future[Any]:
        return self._client.submit(
            _ByValue(run),
            *values,
            key=f"cachewise-{what}-{uuid.uuid4().hex}",
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )

    def _drop(self, future: Future[Any] | None) -> None:
        if future is not None:
            with contextlib.suppress(Exception):
                future.cancel()

    def _answers(self) -> None:
        for worker, future in list(self._asked.items()):
            if not future.done():
                continue
            del self._asked[worker]
            if future.status != "finished":
                why = str(future.exception() if future.status == "error" else future.status)
                self._tell(f"{worker}: does not say which host it is on: {why.splitlines()[0]}")
                self._silent += 1
                continue
            who = future.result()
            if who["key"] in self._done:
                self._before.add(who["machine"])
            else:
                self._plan.join(worker, who["machine"], who["host"], who["key"])

    def _begin(self, machine: str, worker: str) -> None:
        one = self._settings
        values = (one.command, one.budget, one.load, self._limit)
        self._tunings[machine] = self._submit("tune", host.tune, worker, *values)

    def _results(self, now: float) -> None:
        for machine, future in list(self._tunings.items()):
            if future.done():
                del self._tunings[machine]
                self._take(machine, future, now)
        for machine in self._plan.late(now, self._limit + LOST):
            self._drop(self._tunings.pop(machine, None))
            self._plan.failed(machine, "its worker does not answer", now)
            self._report(machine)

    def _take(self, machine: str, future: Future[Any], now: float) -> None:
        one = self._plan.hosts[machine]
        if future.status != "finished":
            error = future.exception() if future.status == "error" else future.status
            self._plan.failed(machine, f"its worker failed: {error!s}".splitlines()[0], now)
            self._report(machine)
            return
        found = future.result()
        match found["outcome"]:
            case "tuned":
                text = gzip.decompress(found["record"]).decode()
                tuning = records.Tuning(
                    one.name, one.key, found["profile"], text, found["seconds"], found["busy"]
                )
                try:
                    records.write(self._settings.directory, tuning)
                except records.RefusedError as error:
                    self._plan.failed(machine, str(error), now)
                    self._report(machine)
                    return
                self.kept += 1
                self._plan.tuned(machine)
            case "loaded":
                share = 100 * found["busy"]
                self._plan.busy(machine, f"under load: {share:.0f} % of its CPUs' time", now)
                self._report(machine)
            case "locked":
                self._plan.busy(machine, "another tuning is running there", now)
                self._report(machine)
            case _:
                self._plan.failed(machine, found["why"], now)
                self._report(machine)

    def _report(self, machine: str) -> None:
        one = self._plan.hosts[machine]
        wait = one.not_before - time.monotonic()
        then = "given up" if one.given_up else f"again in {max(wait, 0):.0f} s"
        self._progress.clear()
        self._tell(f"{one.name}: {one.why}; {then}")

    def _end(self) -> int:
        self._progress.clear()
        untuned = [one for one in self._plan.hosts.values() if one.given_up]
        listed = [{"host": one.name, "why": one.why} for one in untuned]
        text = json.dumps(listed, indent=1)
        files.write_bytes(self._settings.directory / UNTUNED, text.encode())
        before = f", {len(self._before)} were there before" if self._before else ""
        self._tell(f"{self.kept} hosts tuned{before}, {len(untuned)} not")
        for one in untuned:
            self._tell(f"  {one.name}: {one.why}")
        return errors.INCONCLUSIVE if untuned or self._silent else errors.OK


class _ByValue:
    """A function that is sent as it stands: the worker need not have its module."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def __call__(self, *values: Any) -> Any:
        return self._run(*values)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes]]:
        # Dask would name the module of what it can.
        return cloudpickle.loads, (cloudpickle.dumps(self._run),)


class _Progress:
    """One line on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self._line = sys.stderr.isatty()
        self._last = 0.0
        self._shown = False

    def show(self, plan: Plan, before: int, now: float) -> None:
        count = plan.count()
        if not count["hosts"] or now - self._last < (1.0 if self._line else 30.0):
            return
        self._last = now
        text = (
            f"{count['tuned'] + before} of {count['hosts'] + before} hosts tuned,"
            f" {count['running']} running, {count['waiting']} waiting, {count['given up']} given up;"
            f" about {_duration(plan.left(now))} left"
        )
        end = "" if self._line else "\n"
        print(f"\r\x1b[K{text}" if self._line else text, end=end, file=sys.stderr, flush=True)
        self._shown = self._line

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False


def _duration(seconds: float) -> str:
    whole = round(max(seconds, 0))
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[Client]:
    # This command prints errors itself, in one line.
    logging.disable(logging.ERROR)
    cloudpickle.register_pickle_by_value(host)
    try:
        client = Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
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
        number = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise FleetError(f"{directory}: cannot be written to: {error.strerror}") from error
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise FleetError(f"{directory}: another `fleet tune` is writing to it") from error
    finally:
        os.close(number)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Makes a request to end a Ctrl-C."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
