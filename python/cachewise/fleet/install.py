"""Merged profiles to where the library looks for a machine's: DIRECTORY/<CPU>.profile, each atomically."""

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from . import command, files
from .errors import FleetError, counted
from .merge import INDEX, INDEX_SCHEMA, RESULT


def index(directory: Path) -> dict[str, Any]:
    """What `merge` has left."""
    path = directory / RESULT / INDEX
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise FleetError(f"{path}: {error.strerror}; `fleet merge` makes it") from error
    except ValueError as error:
        raise FleetError(f"{path}: not what `fleet merge` writes: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != INDEX_SCHEMA:
        text = f"schema: found another, accepted {INDEX_SCHEMA}"
        raise FleetError(f"{path}: {text}; `fleet merge` writes it anew")
    return found


def install(directory: Path, to: Path, tool: str) -> list[str]:
    """Installs a profile for every CPU that has one. Returns what was done, a line for each.

    The library tells CPUs apart, not kernels: of several classes of a CPU this machine's kernel's is
    taken, and of those the one with the most hosts.
    """
    here = f"{platform.system()} {platform.release()} {platform.machine()}"
    by_cpu: dict[str, list[dict[str, Any]]] = {}
    for one in index(directory)["classes"]:
        if one["profile"]:
            by_cpu.setdefault(one["cpu"], []).append(one)
    if not by_cpu:
        raise FleetError(f"{directory}: no class of hosts has a profile; `fleet report` says why")
    ready = []
    # All are looked at before any is written.
    for cpu, classes in sorted(by_cpu.items()):
        one = max(classes, key=lambda entry: (entry["kernel"] == here, entry["hosts"]))
        path = directory / RESULT / one["profile"]
        try:
            content = path.read_bytes()
        except OSError as error:
            raise FleetError(f"{path}: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != one["sha256"]:
            raise FleetError(f"{path}: not the profile that was merged; merge again")
        command.check(tool, path)
        ready.append((cpu, one, content, len(classes)))
    lines = []
    for cpu, one, content, number in ready:
        target = to / f"{cpu}.profile"
        files.write_bytes(target, content)
        of = f", of {number} classes" if number > 1 else ""
        lines.append(f"{target}: {counted(one['hosts'], 'host')}, {one['kernel']}, {one['libc']}{of}")
    return lines
