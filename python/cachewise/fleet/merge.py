"""One profile for each CPU model: `cachewise tune --from` decides from the records of its hosts, each of them a round."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .. import _command
from .store import PROFILES, FleetError, read, signature, write


@dataclass
class Merged:
    """Hosts of one CPU with the same caches, and what became of them."""

    cpu: str
    # L1d, L2 and LLC: the library follows no profile of other ones.
    caches: str
    # Hosts that are in it, and all of the CPU.
    hosts: int
    all: int
    profile: Path | None = None
    reason: str = ""


def merge(directory: Path, least: int) -> list[Merged]:
    """Decides for every CPU that has so many hosts; profiles become a new version, earlier ones stay."""
    groups: dict[tuple[str, str], list[Path]] = {}
    for file, header in read(directory):
        if not isinstance(header, dict):
            continue
        caches = header["machine"]["caches"]
        sizes = " ".join(str((caches.get(level) or {}).get("bytes", 0)) for level in ("l1d", "l2", "llc"))
        groups.setdefault((signature(header), sizes), []).append(file)
    if not groups:
        raise FleetError(f"{directory}: expected records of hosts, of `fleet tune`, found none")
    cpus = {cpu: [files for key, files in groups.items() if key[0] == cpu] for cpu, _ in groups}
    place = directory / PROFILES / str(max(versions(directory), default=0) + 1)
    merged = []
    for (cpu, caches), files in sorted(groups.items()):
        one = Merged(cpu, caches, len(files), sum(map(len, cpus[cpu])))
        merged.append(one)
        if one.hosts < least:
            one.reason = f"expected {least} hosts at least, found {one.hosts}"
        elif one.hosts < max(map(len, cpus[cpu])) or (place / f"{cpu}.profile").exists():
            one.reason = "more hosts of this CPU have other caches"
        else:
            _decide(one, files, place)
    return merged


def _decide(one: Merged, files: list[Path], place: Path) -> None:
    # No profile that happens to be in force here may be preferred.
    with tempfile.TemporaryDirectory() as scratch:
        profile = Path(scratch) / f"{one.cpu}.profile"
        words = [_command.path(), "tune", "--output", os.fspath(profile), "--from", *map(os.fspath, files)]
        environment = {**os.environ, "XDG_CONFIG_HOME": scratch}
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            one.reason = (ended.stderr.strip().splitlines() or ["cachewise tune --from failed"])[0]
            return
        for file in sorted(Path(scratch).glob(f"{one.cpu}.*")):
            write(place / file.name, file.read_bytes())
    one.profile = place / profile.name


def versions(directory: Path) -> list[int]:
    """Numbers of the merges that left profiles."""
    return [int(path.name) for path in (directory / PROFILES).glob("*") if path.name.isdecimal()]


def install(directory: Path, to: Path, version: int | None) -> list[Path]:
    """Installs the profiles of a version, each whole; returns where."""
    known = versions(directory)
    if not known or version is not None and version not in known:
        raise FleetError(f"{directory}: expected version {version or 'of `fleet merge`'}, found {known}")
    installed = []
    for profile in sorted((directory / PROFILES / str(version or max(known))).glob("*.profile")):
        # The record first: a profile names the one beside it.
        for file in (profile.with_suffix(".record.jsonl"), profile):
            write(to / file.name, file.read_bytes())
        installed.append(to / profile.name)
    return installed
