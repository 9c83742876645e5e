"""One profile for each class of hosts that agree.

Hosts are first put together by what a profile may depend on: CPU model, microcode, kernel and libc. Within
such a group hosts that behave otherwise are split off (`classes`). Each class is decided from the figures
of its hosts by the tuner's own rules (`pooled`, `cachewise tune --from`). Its hosts are asked how well they
agree with each other, and how well that profile serves them (`agreement`): both have to be so.
"""

import hashlib
import json
import math
import re
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import command, files, pooled
from .agreement import TOLERANCE, Choices, middle
from .classes import CLIP, Classes, classify
from .records import SIZES
from .store import LIBC_NAME, UNKNOWN, Host, Measured, Store

# A class whose hosts agree, or are served, at fewer of the sizes than this gets no profile.
AGREEMENT = 0.90
# Hosts whose figures are pooled; drawn by lot from a class that has more.
POOLED = 48
# The tuner takes fewer rounds than this for nothing; here a host is a round.
LEAST_ROUNDS = 3
OPERATIONS = ("copy", "move", "fill", "zero", "compare", "equal")
# Hosts are asked whether they agree about calls without a hint. With one, what decides is these kernels and one
# size more, which the merged record decides.
CELLS = [(name, "unknown", size) for name in OPERATIONS for size in SIZES]
# The merged result beside the records.
RESULT = "merged"
INDEX = "merged.json"
INDEX_SCHEMA = 2


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
    # Share of the sizes at which hosts agree with others, in the mean, and what a tenth of them is below.
    agreement: float = 0.0
    agreement_p10: float = 0.0
    # The same of the sizes at which the profile serves them.
    served: float = 0.0
    served_p10: float = 0.0
    # The hosts that agree least.
    least: list[tuple[str, float]] = field(default_factory=list)
    # libc's time over the profile's, less 1, by operation, in the geometric mean over the sizes.
    gain: dict[str, float] = field(default_factory=dict)
    # By operation: size, kernel, its ratio to libc's time in the hosts' middle and at both tenths, share
    # of pairs of hosts that agree, and of hosts that are served.
    rows: list[dict[str, Any]] = field(default_factory=list)
    # Relative to the index; none where there is a reason.
    profile: str | None = None
    sha256: str | None = None
    reason: str | None = None


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
    merged = Merged(INDEX_SCHEMA, len(store.hosts), [], [], [], store.other_versions)
    merged.damaged = [{"file": str(path), "why": wrong} for path, wrong in store.damaged]
    kept: set[Path] = set()
    place = directory / RESULT
    for key in sorted(groups):
        hosts = groups[key]
        measured = store.measured(hosts, CELLS)
        found = classify(measured.logs)
        middles: list[NDArray[np.float32]] = []
        for number in range(found.count):
            members = found.members(number)
            mine, of_mine = [hosts[index] for index in members], measured.of(members)
            middles.append(middle(of_mine.logs))
            one = _class(mine, _letter(number, found.count))
            if len(mine) < least_hosts:
                one.reason = f"{len(mine)} of at least {least_hosts} hosts"
                if len(mine) == 1:
                    one.reason += "; a single host has a profile of its own (`cachewise tune`)"
            else:
                kept |= _decide(store, place, tool, one, mine, of_mine)
            merged.classes.append(one)
        merged.outliers += [
            {"cpu": host.cpu, **asdict(one)}
            for host, one in _outliers(store, hosts, measured.logs, found, middles)
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


def _decide(store: Store, place: Path, tool: str, one: Class, hosts: list[Host], of: Measured) -> set[Path]:
    """Decides a class, and says how well its hosts agree. Returns the files that it wrote."""
    drawn = np.random.default_rng(0).permutation(len(hosts))[:POOLED]
    pool = [hosts[index] for index in sorted(drawn)]
    figures = store.figures(pool, min(LEAST_ROUNDS, len(pool)))
    if not any(figure[0] == "tune" for figure in figures):
        one.reason = "its hosts have measured too little: tune them with a larger --budget"
        return set()
    note = f"pooled from {len(pool)} of {one.hosts} hosts: {one.microcode or 'microcode unknown'}"
    # The machine that is described is the first of the pool by name.
    head = store.header(pool[0])
    text = "\n".join(pooled.lines(head, len(pool), figures, f"{note}, {one.kernel}, {one.libc}")) + "\n"
    folder = place / one.cpu / _slug(one)
    with tempfile.TemporaryDirectory() as scratch:
        stem = one.cpu
        record, profile = Path(scratch) / f"{stem}.record.jsonl", Path(scratch) / f"{stem}.profile"
        record.write_text(text)
        command.decide(tool, record, profile)
        decided = profile.read_bytes()
    _judge(store, one, decisions(decided.decode()), hosts, of)
    one.reason = _refusal(one)
    if one.reason is not None:
        return set()
    files.write_bytes(folder / record.name, text.encode())
    files.write_bytes(folder / profile.name, decided)
    one.profile = str((folder / profile.name).relative_to(place))
    one.sha256 = hashlib.sha256(decided).hexdigest()
    return {folder / record.name, folder / profile.name}


def _refusal(one: Class) -> str | None:
    """Why a class gets no profile though there is one."""
    if all(row["kernel"] == LIBC_NAME for row in one.rows):
        # It would take the place of the profile that comes with the library for this CPU.
        return "nothing was shown to be faster than libc: tune with a larger --budget"
    least = f"accepted from {100 * AGREEMENT:.0f} %"
    if one.agreement < AGREEMENT:
        return f"its hosts agree at {100 * one.agreement:.1f} % of the sizes, {least}"
    if one.served < AGREEMENT:
        return f"it would serve its hosts at {100 * one.served:.1f} % of the sizes, {least}"
    return None


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
    of: Measured,
) -> None:
    """Says how well the hosts of a class agree, and how well they are served by what was decided for it."""
    kernels = [LIBC_NAME] * len(CELLS)
    ours = np.full(len(CELLS), UNKNOWN, np.int32)
    for cell, (operation, reuse, size) in enumerate(CELLS):
        for name, hint, first, last, kernel in decided:
            if (name, hint) == (operation, reuse) and first <= size <= last:
                kernels[cell], ours[cell] = kernel, store.column(operation, kernel, size)
    choices = Choices(of, len(SIZES))
    agree, served = choices.agreement(), choices.served(ours)
    by_host = agree.mean(axis=1)
    one.agreement, one.agreement_p10 = float(by_host.mean()), float(np.quantile(by_host, 0.1))
    one.served, one.served_p10 = float(served.mean()), float(np.quantile(served.mean(axis=1), 0.1))
    order = np.argsort(by_host, kind="stable")[:5]
    one.least = [(hosts[index].host, float(by_host[index])) for index in order]
    logs: dict[str, list[float]] = {operation: [] for operation in OPERATIONS}
    for cell, (operation, _, size) in enumerate(CELLS):
        known = choices.known(ours[cell])
        quantiles = np.quantile(known, [0.1, 0.5, 0.9]) if len(known) else np.zeros(3)
        low, middle_, high = (float(part) for part in quantiles)
        logs[operation].append(middle_)
        row = {"operation": operation, "size": size, "kernel": kernels[cell]}
        row |= {"ratio": math.exp(middle_), "low": math.exp(low), "high": math.exp(high)}
        row |= {"agree": float(agree[:, cell].mean()), "served": float(served[:, cell].mean())}
        one.rows.append(row)
    one.gain = {name: float(np.expm1(-np.mean(values))) for name, values in logs.items()}


def _outliers(
    store: Store,
    hosts: list[Host],
    curves: NDArray[np.float32],
    found: Classes,
    middles: list[NDArray[np.float32]],
) -> list[tuple[Host, Outlier]]:
    usual = float(np.median(found.apart)) or 1.0
    result = []
    for index in np.flatnonzero(found.of < 0):
        off = [np.abs(curves[index] - other) for other in middles]
        why = "no class to compare it with"
        if off:
            near = min(range(len(off)), key=lambda number: float(np.nanmean(np.minimum(off[number], CLIP))))
            differs = off[near]
            share = float(np.nanmean(differs > np.log1p(TOLERANCE)))
            most = int(np.nanargmax(differs))
            kernel, size = store.named(most)
            log = float(curves[index][most] - middles[near][most])
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
