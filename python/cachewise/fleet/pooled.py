"""A record of many hosts in place of one: each host is a round.

The tuner's own rules then decide from it (`cachewise tune --from`), and its intervals are those between
hosts: what does not hold on most of them is not shown. Times are made so that their ratio to the
reference is the host's own, which was paired round by round there.
"""

import json
import math
import statistics
from typing import Any

from .records import RECORD_SCHEMA

Figure = dict[str, Any]
# What tells one row of a record from another.
KEY = (
    "experiment",
    "operation",
    "size",
    "destination",
    "state",
    "reader",
    "bystander",
    "unequal",
)


def lines(header: dict[str, Any], hosts: list[list[Figure]], note: str) -> list[str]:
    """The lines of the record. `hosts` has the figures of each."""
    cells: dict[tuple[Any, ...], dict[int, dict[str, Figure]]] = {}
    for number, figures in enumerate(hosts):
        for figure in figures:
            cell = cells.setdefault(tuple(figure[name] for name in KEY), {})
            cell.setdefault(number, {})[figure["candidate"]] = figure
    rows = [row for key, by_host in cells.items() for row in _rows(key, by_host)]
    head = {**header, "schema": RECORD_SCHEMA, "command": ["cachewise.fleet", "merge"]}
    head["settings"] = {"experiment": "tune", "hosts": len(hosts)}
    entries = [{"type": "header", **head}, *rows, {"type": "note", "text": note}]
    entries.append({"type": "end", "rows": len(rows), "interrupted": False, "seconds": 0.0})
    return [json.dumps(entry, separators=(",", ":"), allow_nan=False) for entry in entries]


def _rows(key: tuple[Any, ...], by_host: dict[int, dict[str, Figure]]) -> list[dict[str, Any]]:
    reference = next(iter(next(iter(by_host.values())).values()))["reference"]
    # In every round the reference was there.
    rounds = [seen for seen in by_host.values() if _total(seen.get(reference)) is not None]
    if not rounds:
        return []
    others = dict.fromkeys(name for seen in rounds for name in seen if name != reference)
    cell = dict(zip(KEY, key, strict=True))
    result = []
    for candidate in [reference, *others]:
        parts: list[tuple[float | None, float | None, float | None]] = []
        ratios = []
        for seen in rounds:
            figure, base = seen.get(candidate), _total(seen[reference])
            factor = 1.0
            if candidate != reference:
                total, ratio = _total(figure), figure["ratio"] if figure else None
                if total is None or base is None or ratio is None or not math.isfinite(ratio):
                    parts.append((None, None, None))
                    continue
                factor = ratio * base / total
                ratios.append(ratio)
            assert figure is not None
            parts.append(
                tuple(
                    None if figure[part] is None else _five(figure[part] * factor)
                    for part in ("operation_ns", "reader_ns", "bystander_ns")
                )
            )
        row: dict[str, Any] = {"type": "row", "experiment": cell["experiment"]}
        row["cell"] = _cell(cell)
        row |= {"candidate": candidate, "reference": reference, "calls": 1}
        row["operation_ns"] = [part[0] for part in parts]
        if cell["reader"] is not None:
            row["reader_ns"] = [part[1] for part in parts]
        if cell["bystander"] is not None:
            row["bystander_ns"] = [part[2] for part in parts]
        if ratios:
            row["total_ratio"] = _between(ratios)
        result.append(row)
    return result


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    names = ("operation", "size", "destination", "state", "reader", "bystander")
    entry = {name: cell[name] for name in names if cell[name] is not None}
    if cell["unequal"]:
        entry["axes"] = {"unequal": 1.0}
    return entry


def _total(figure: Figure | None) -> float | None:
    if figure is None or figure["operation_ns"] is None:
        return None
    parts = (figure[name] or 0.0 for name in ("operation_ns", "reader_ns", "bystander_ns"))
    total = sum(parts)
    return total if total > 0 else None


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
