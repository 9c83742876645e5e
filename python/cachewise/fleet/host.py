"""What runs on a host. It is sent there as it stands, so nothing of this package is imported."""

import contextlib
import fcntl
import gzip
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# The host's name where a container hides it.
NAME = "CACHEWISE_FLEET_HOST"


def identity() -> dict[str, str]:
    """Which host this worker is on.

    `machine` is the same for all workers of a running host, `key` from run to run; `host` is for people.
    """
    named = os.environ.get(NAME)
    if named:
        return {"host": named, "key": named, "machine": named}
    name = socket.gethostname()
    # Images are cloned with their machine-id, so the name belongs to it.
    key = f"{name} {_read('/etc/machine-id')}".strip()
    return {"host": name, "key": key, "machine": _read("/proc/sys/kernel/random/boot_id") or key}


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def busy(stat: str = "/proc/stat", seconds: float = 1.0) -> float:
    """Part of all CPUs' time that is used, from 0 to 1, looked at for so long."""

    def times() -> list[int]:
        return [int(word) for word in Path(stat).read_text().splitlines()[0].split()[1:9]]

    before = times()
    time.sleep(seconds)
    passed = [after - earlier for after, earlier in zip(times(), before, strict=True)]
    # Idle, and waiting for a device.
    return 1 - (passed[3] + passed[4]) / sum(passed) if sum(passed) > 0 else 0.0


def find(command: str | None) -> str | None:
    """The command on this host."""
    beside = Path(sys.executable).parent / "cachewise"
    if command is None and beside.is_file():
        return str(beside)
    return shutil.which(command or "cachewise")


def tune(command: str | None, budget: float, load: float, limit: float) -> dict[str, Any]:
    """Tunes this host, unless it is busy or somebody is at it.

    `outcome` is one of `tuned` (with the packed `record`), `busy` and `failed` (with `why`).
    """
    program = find(command)
    if program is None:
        return {"outcome": "failed", "why": f"{command or 'cachewise'}: not found there"}
    prefix = _prefix(identity()["machine"])
    lock = _lock(prefix)
    if lock is None:
        return {"outcome": "busy", "why": "another tuning is running there"}
    try:
        # Under the lock nobody uses them: they are of workers that were killed.
        for rest in Path(tempfile.gettempdir()).glob(f"{prefix}-*"):
            shutil.rmtree(rest, ignore_errors=True)
        used = busy()
        if used > load:
            return {"outcome": "busy", "why": f"under load: {100 * used:.0f} % of its CPUs' time"}
        with tempfile.TemporaryDirectory(prefix=f"{prefix}-") as scratch:
            return _measure(program, budget, limit, Path(scratch), lock)
    finally:
        os.close(lock)


def _prefix(machine: str) -> str:
    """How the names of this host's temporary files begin."""
    return f"cachewise-fleet-{hashlib.sha256(machine.encode()).hexdigest()[:16]}"


def _lock(prefix: str) -> int | None:
    """Takes the host's lock. It is the open file's: who inherits that holds it too."""
    path = Path(tempfile.gettempdir()) / f"{prefix}.lock"
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        # Another user's may be opened here, but where the system protects such files, not made.
        number = os.open(path, flags)
    except FileNotFoundError:
        number = os.open(path, flags | os.O_CREAT, 0o644)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    return number


def _measure(program: str, budget: float, limit: float, scratch: Path, lock: int) -> dict[str, Any]:
    profile, record = scratch / "host.profile", scratch / "host.record.jsonl"
    words = [program, "tune", "--budget", f"{budget:g}s", "--output", str(profile), "--record", str(record)]
    # If this worker is killed, the command goes on and keeps the lock: no other measures beside it.
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(
        words, stdin=null, stdout=null, stderr=pipe, start_new_session=True, pass_fds=(lock,)
    ) as child:
        try:
            _, said = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return {"outcome": "failed", "why": f"the tuning took over {limit:.0f} s"}
    if child.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines()
        why = next((line for line in lines if line.startswith("cachewise:")), None)
        why = why or (lines[-1] if lines else f"exit status {child.returncode}")
        return {"outcome": "failed", "why": why}
    try:
        return {"outcome": "tuned", "record": gzip.compress(record.read_bytes(), 6)}
    except OSError as error:
        return {"outcome": "failed", "why": f"no result: {error}"}
