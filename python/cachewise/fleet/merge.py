"""One profile for each class of hosts that agree.

Hosts are first put together by what a profile may depend on: CPU model, microcode, kernel and libc. Within
such a group hosts that behave otherwise are split off (`classes`). Each class is decided from the figures
of its hosts by the tuner's own rules (`pooled`, `cachewise tune --from`), and then its hosts are asked how
well they are served by that (`agreement`).
"""

import hashlib
import json
import re
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import command, files, pooled
from .agreement import LIBC as LIBC_COLUMN
from .agreement import TOLERANCE, UNKNOWN, agreement, nearest
from .classes import Classes, classify
from .store import LIBC, SIZES, Host, Store

# A class whose hosts are served at fewer of the sizes than this gets no profile.
AGREEMENT = 0.90
# Hosts whose figures are pooled; drawn by lot from a class that has more.
POOLED = 48
OPERATIONS = ("copy", "move", "fill", "zero", "compare", "equal")
# Where hosts are asked whether they agree: without a hint. With one, what decides is these kernels and one
# size more, which the merged record decides.
CELLS = [(name, "unknown", size) for name in OPERATIONS for size in SIZES]
# The merged result beside the records.
RESULT = "merged"
INDEX = "merged.json"


@dataclass
class Outlier:
    """A host that is like no class."""

    host: str
    # Times as far from its neighbours as hosts usually are.
    times: float
    why: str


@dataclass
class Class:
    """Hosts that behave alike, and what became of them."""

    cpu: str
    cpu_name: str
    microcode: str
    kernel: str
    libc: str
    # a, b, ... where the group has several.
    letter: str
    hosts: int
    names: list[str]
    # Share of the sizes at which hosts are served, in the mean, and the tenth part that is served worst.
    agreement: float = 0.0
    agreement_p10: float = 0.0
    # Share of the sizes at which hosts had decided for the same.
    same: float = 0.0
    least: list[tuple[str, float]] = field(default_factory=list)
    # libc's time over the profile's, less 1, by operation, in the geometric mean over the sizes.
    gain: dict[str, float] = field(default_factory=dict)
    # By operation: size, kernel, its ratio to libc's time in the hosts' middle and at both tenths, share
    # of hosts that agree.
    rows: list[dict[str, Any]] = field(default_factory=list)
    # Relative to the index; none where there is a reason.
    profile: str | None = None
    sha256: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Figures:
    """What the hosts of a class have measured and decided, as `agreement` wants it."""

    curves: NDArray[np.float32]
    errors: NDArray[np.float32]
    middle: NDArray[np.float32]
    chosen: NDArray[np.int32]


@dataclass
class Merged:
    """What came of a fleet."""

    schema: int
    hosts: int
    classes: list[Class]
    outliers: list[dict[str, Any]]
    damaged: list[dict[str, str]]
    other_versions: list[str]


def merge(directory: Path, tool: str, least_hosts: int, tell: Any) -> Merged:
    """Merges a fleet's records; writes profiles and index below `directory`/merged."""
    store = Store(directory)
    for path, wrong in store.damaged:
        tell(f"{path}: {wrong}; left out")
    for version in store.other_versions:
        tell(f"{directory}: records of schema {version} are left as they are")
    groups: dict[tuple[str, str, str, str], list[Host]] = {}
    for host in store.hosts:
        groups.setdefault(host.group, []).append(host)
    merged = Merged(1, len(store.hosts), [], [], [], store.other_versions)
    merged.damaged = [{"file": str(path), "why": wrong} for path, wrong in store.damaged]
    kept: set[Path] = set()
    place = directory / RESULT
    for key in sorted(groups):
        hosts = groups[key]
        chosen = store.choices(hosts, CELLS)
        curves, errors_of = store.curves(hosts)
        found = classify(curves)
        middle_of: dict[int, NDArray[np.float32]] = {}
        for number in range(found.count):
            members = found.members(number)
            mine = [hosts[index] for index in members]
            middle_of[number] = _middle(curves[members])
            one = _class(mine, _letter(number, found.count))
            if len(mine) < least_hosts:
                one.reason = f"{len(mine)} of at least {least_hosts} hosts"
            else:
                figures = Figures(curves[members], errors_of[members], middle_of[number], chosen[members])
                kept |= _decide(store, place, tool, one, mine, figures)
            merged.classes.append(one)
        merged.outliers += [
            {"cpu": host.cpu, **asdict(one)}
            for host, one in _outliers(store, hosts, curves, found, middle_of)
        ]
    text = json.dumps(asdict(merged), indent=1)
    files.write_bytes(place / INDEX, text.encode())
    for path in sorted(place.rglob("*")):
        if path.is_file() and path not in kept and path.name != INDEX:
            path.unlink()
    return merged


def _letter(number: int, count: int) -> str:
    return "" if count == 1 else chr(ord("a") + number) if number < 26 else f"z{number}"


def _class(hosts: list[Host], letter: str) -> Class:
    first = hosts[0]
    names = [host.host for host in hosts]
    return Class(
        first.cpu,
        first.cpu_name,
        first.microcode,
        first.kernel,
        first.libc,
        letter,
        len(hosts),
        names,
    )


def _middle(curves: NDArray[np.float32]) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        few = (~np.isnan(curves)).sum(axis=0) * 2 < len(curves)
        filled = np.where(np.isnan(curves).all(axis=0), np.float32(0), curves)
        middle = np.nanmedian(filled, axis=0).astype(np.float32)
    middle[few] = np.nan
    return middle


def _decide(store: Store, place: Path, tool: str, one: Class, hosts: list[Host], of: Figures) -> set[Path]:
    """Decides a class, and says how well its hosts agree. Returns the files that it wrote."""
    drawn = np.random.default_rng(0).permutation(len(hosts))[:POOLED]
    header: dict[str, Any] = {}
    pool = []
    # The machine that is described is the first of the class by name.
    for _, head, mine in store.whole([hosts[index] for index in sorted(drawn)]):
        header = header or head
        pool.append(mine)
    if not any(_raced(figure) for mine in pool for figure in mine):
        one.reason = "its hosts have measured too little: tune them with a larger --budget"
        return set()
    note = f"pooled from {len(pool)} of {one.hosts} hosts: {one.microcode or 'microcode unknown'}"
    text = "\n".join(pooled.lines(header, pool, f"{note}, {one.kernel}, {one.libc}")) + "\n"
    folder = place / one.cpu / _slug(one)
    with tempfile.TemporaryDirectory() as scratch:
        stem = one.cpu
        record, profile = Path(scratch) / f"{stem}.record.jsonl", Path(scratch) / f"{stem}.profile"
        record.write_text(text)
        command.decide(tool, record, profile)
        decided = profile.read_bytes()
        _judge(store, one, decisions(decided.decode()), hosts, of)
        if one.agreement < AGREEMENT:
            one.reason = (
                f"it would serve its hosts at {100 * one.agreement:.1f} % of the sizes,"
                f" accepted from {100 * AGREEMENT:.0f} %"
            )
            return set()
        files.write_bytes(folder / record.name, text.encode())
        files.write_bytes(folder / profile.name, decided)
    one.profile = str((folder / profile.name).relative_to(place))
    one.sha256 = hashlib.sha256(decided).hexdigest()
    return {folder / record.name, folder / profile.name}


def _raced(figure: dict[str, Any]) -> bool:
    return figure["experiment"] == "tune" and figure["ratio"] is not None


def _slug(one: Class) -> str:
    words = [
        one.microcode or "unknown",
        one.kernel,
        one.libc,
        *([one.letter] if one.letter else []),
    ]
    return "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", word) for word in words)


def decisions(profile: str) -> list[tuple[str, str, int, int, str]]:
    """Operation, hint, smallest and largest size and kernel of a profile's lines."""
    found = []
    for line in profile.splitlines():
        words = line.split(" ")
        if words[0] == "decide":
            last = 1 << 64 if words[4] == "max" else int(words[4])
            found.append((words[1], words[2], int(words[3]), last, words[5]))
    return found


def _judge(
    store: Store,
    one: Class,
    decided: list[tuple[str, str, int, int, str]],
    hosts: list[Host],
    of: Figures,
) -> None:
    """Says how well the hosts of a class agree with what was decided for it."""
    ours = np.full(len(CELLS), UNKNOWN, np.int32)
    kernels = [LIBC] * len(CELLS)
    for cell, (operation, reuse, size) in enumerate(CELLS):
        for name, hint, first, last, kernel in decided:
            if (name, hint) == (operation, reuse) and first <= size <= last:
                kernels[cell] = kernel
                ours[cell] = LIBC_COLUMN if kernel == LIBC else store.column(operation, kernel, size)
    found = agreement(of.curves, of.errors, of.middle, of.chosen, ours, len(SIZES))
    by_host = found.served.mean(axis=1)
    one.agreement = float(by_host.mean())
    one.agreement_p10 = float(np.quantile(by_host, 0.1))
    one.same = float(found.same.mean())
    order = np.argsort(by_host, kind="stable")[:5]
    one.least = [(hosts[index].host, float(by_host[index])) for index in order]
    filled = nearest(of.curves, len(SIZES))
    logs: dict[str, list[float]] = {operation: [] for operation in OPERATIONS}
    for cell, (operation, _, size) in enumerate(CELLS):
        low, middle, high = 0.0, 0.0, 0.0
        if ours[cell] >= 0 and not np.isnan(filled[:, ours[cell]]).all():
            known = filled[:, ours[cell]]
            known = known[~np.isnan(known)]
            low, middle, high = (float(part) for part in np.quantile(known, [0.1, 0.5, 0.9]))
        logs[operation].append(middle)
        row = {"operation": operation, "size": size, "kernel": kernels[cell]}
        row |= {"ratio": np.exp(middle), "low": np.exp(low), "high": np.exp(high)}
        row |= {"agree": float(found.served[:, cell].mean())}
        one.rows.append(row)
    one.gain = {name: float(np.expm1(-np.mean(values))) for name, values in logs.items()}


def _outliers(
    store: Store,
    hosts: list[Host],
    curves: NDArray[np.float32],
    found: Classes,
    middle_of: dict[int, NDArray[np.float32]],
) -> list[tuple[Host, Outlier]]:
    usual = float(np.median(found.apart)) or 1.0
    result = []
    for index in np.flatnonzero(found.of < 0):
        off = {number: np.abs(curves[index] - middle) for number, middle in middle_of.items()}
        why = "no class to compare it with"
        if off:
            nearest = min(off, key=lambda number: float(np.nanmean(np.minimum(off[number], 0.25))))
            differs = off[nearest]
            share = float(np.nanmean(differs > np.log1p(TOLERANCE)))
            most = int(np.nanargmax(differs))
            kernel, size = store.named(most)
            log = float(curves[index][most] - middle_of[nearest][most])
            ratio = "over 10 times" if log > 2.3 else f"{np.exp(log):.2f} of"
            why = (
                f"{100 * share:.0f} % of its figures differ by over 3 %;"
                f" {kernel} at {_bytes(size)} takes {ratio} the class's time over libc's"
            )
        times = float(found.apart[index] / usual)
        result.append((hosts[index], Outlier(hosts[index].host, times, why)))
    result.sort(key=lambda pair: -pair[1].times)
    return result


def _bytes(size: int) -> str:
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"
