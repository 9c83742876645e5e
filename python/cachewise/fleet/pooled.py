"""A record of many hosts in place of one: each host is a round.

The tuner's own rules then decide from it (`cachewise tune --from`), and its intervals are those between
hosts: what does not hold on most of them is not shown. Times are made so that their ratio to the
reference is the host's own, which was paired round by round there.
"""

import json
import math
import statistics
from collections.abc import Iterable
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .records import CELL, RECORD_SCHEMA

PARTS = ("operation_ns", "reader_ns", "bystander_ns")


def lines(header: dict[str, Any], hosts: int, figures: Iterable[tuple[Any, ...]], note: str) -> list[str]:
    """The lines of the record of so many hosts; `figures` is what `Store.figures` gives."""
    rows = [
        row
        for key, candidates in groupby(figures, key=lambda figure: figure[: len(CELL)])
        for row in _rows(dict(zip(CELL, key, strict=True)), [one[len(CELL) :] for one in candidates], hosts)
    ]
    head = {**header, "schema": RECORD_SCHEMA, "command": ["cachewise.fleet", "merge"]}
    head["settings"] = {"experiment": "tune", "hosts": hosts}
    entries = [{"type": "header", **head}, *rows, {"type": "note", "text": note}]
    entries.append({"type": "end", "rows": len(rows), "interrupted": False, "seconds": 0.0})
    return [json.dumps(entry, separators=(",", ":"), allow_nan=False) for entry in entries]


def _rows(cell: dict[str, Any], candidates: list[tuple[Any, ...]], hosts: int) -> list[dict[str, Any]]:
    """The rows of a cell: for each candidate its name, the reference's, and what each host has."""
    first, reference = candidates[0][:2]
    if first != reference:
        return []
    result: list[dict[str, Any]] = []
    base = np.empty(0)
    # No host has a reader's time for an operation without a reader.
    here = [0, *(at for at, name in enumerate(PARTS) if at and cell[name.removesuffix("_ns")] is not None)]
    for candidate, _, numbers, *parts, ratio in candidates:
        times = np.array([_by_host(numbers, parts[at], hosts) for at in here])
        total = np.nansum(times, axis=0)
        ratios = _by_host(numbers, ratio, hosts)
        if not result:
            # In every round the reference was there.
            rounds = total > 0
            base = total[rounds]
        times, total, ratios = times[:, rounds], total[rounds], ratios[rounds]
        if result:
            with np.errstate(all="ignore"):
                times = times * (ratios * base / total)
        row: dict[str, Any] = {"type": "row", "experiment": cell["experiment"], "cell": _cell(cell)}
        row |= {"candidate": candidate, "reference": reference, "calls": 1}
        for at, part in zip(here, times, strict=True):
            row[PARTS[at]] = [_five(value) if math.isfinite(value) else None for value in part.tolist()]
        known = ratios[np.isfinite(times[0])].tolist()
        if result and known:
            row["total_ratio"] = _between(known)
        result.append(row)
    return result


def _by_host(numbers: list[int], values: list[float | None], hosts: int) -> NDArray[np.float64]:
    found = np.full(hosts, np.nan)
    found[numbers] = values
    return found


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    names = ("operation", "size", "destination", "state", "reader", "bystander")
    entry = {name: cell[name] for name in names if cell[name] is not None}
    if cell["unequal"]:
        entry["axes"] = {"unequal": 1.0}
    return entry


def _between(ratios: list[float]) -> dict[str, float]:
    """The median, and the order statistics between which it lies 95 times in 100."""
    ordered = sorted(ratios)
    number = len(ordered)
    low = max(0, math.floor(number / 2 - 0.98 * math.sqrt(number)))
    return {
        "median": _five(statistics.median(ordered)),
        "low": _five(ordered[low]),
        "high": _five(ordered[number - 1 - low]),
        "rounds": number,
    }


def _five(value: float) -> float:
    """Five significant digits, as records have them."""
    return float(f"{value:.5g}")
