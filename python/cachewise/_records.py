"""Records as tables: a row for each candidate in each cell (docs/schema/record.md)."""

import glob
import gzip
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

from ._core import part_noise, verdict
from ._shown import Shown

Row: TypeAlias = dict[str, Any]
Patterns: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

SCHEMA = 2
_PARTS = ("operation", "reader", "bystander")

# Name and Arrow type of each column.
COLUMNS = {
    "record": "string",
    "started": "string",
    "tool": "string",
    "cpu": "string",
    "cpu_vendor": "string",
    "cpu_family": "int64",
    "cpu_model": "int64",
    "libc": "string",
    "kernel_release": "string",
    "experiment": "string",
    "operation": "string",
    "size": "int64",
    "source": "string",
    "destination": "string",
    "state": "string",
    "reader": "float64",
    "bystander": "int64",
    "axes": "string",
    "candidate": "string",
    "reference": "string",
    "calls": "int64",
    "rounds": "int64",
    "operation_ns": "float64",
    "reader_ns": "float64",
    "bystander_ns": "float64",
    "total_ns": "float64",
    "ratio": "float64",
    "ratio_low": "float64",
    "ratio_high": "float64",
    "verdict": "string",
    "total_ratio": "float64",
    "total_ratio_low": "float64",
    "total_ratio_high": "float64",
    "dropped": "bool",
    "extra": "string",
}


class RecordError(ValueError, metaclass=Shown):
    """A file that is no whole record; the message names it, and the line where there is one."""


def read(path: "str | os.PathLike[str]") -> list[list[Row]]:
    """The objects of each record of a file, header first and end last; refused if one is not whole."""
    path = Path(path)
    opened = gzip.open if path.suffix == ".gz" else open
    found: list[list[Row]] = [[]]
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    item = json.loads(line)
                except ValueError as error:
                    raise RecordError(f"{path}: line {number}: found no JSON ({error})") from None
                if not isinstance(item, dict):
                    raise RecordError(f"{path}: line {number}: found no object")
                if found[-1] and found[-1][-1].get("type") == "end":
                    found.append([])
                found[-1].append(item)
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: {error}: expected a record, .jsonl or .jsonl.gz") from None
    for objects in found:
        _check(path, objects)
    return found


def _check(path: Path, objects: list[Row]) -> None:
    if not objects or objects[0].get("type") != "header":
        raise RecordError(f"{path}: expected a record of cachewise, found no header in line 1")
    schema = objects[0].get("schema")
    if schema != SCHEMA:
        raise RecordError(f"{path}: expected schema {SCHEMA}, found {schema!r}")
    rows = sum(item.get("type") == "row" for item in objects)
    end = objects[-1]
    if end.get("type") != "end" or end.get("rows") != rows:
        raise RecordError(f"{path}: found no end that counts its {rows} rows: it was never finished")


def _rows(path: Path) -> Iterator[Row]:
    for objects in read(path):
        yield from _rows_of(path, objects)


def _rows_of(path: Path, objects: list[Row]) -> Iterator[Row]:
    header, *objects = objects
    machine = header["machine"]
    of_record = {
        "record": os.fspath(path),
        "started": header["started"],
        "tool": header["tool"],
        "cpu": machine["cpu"]["model_name"],
        "cpu_vendor": machine["cpu"]["vendor"],
        "cpu_family": machine["cpu"]["family"],
        "cpu_model": machine["cpu"]["model"],
        "libc": f"{machine['libc']['name']} {machine['libc']['version']}",
        "kernel_release": machine["kernel"],
    }
    for item in objects:
        if item["type"] == "row":
            try:
                yield dict.fromkeys(COLUMNS) | of_record | _row(item)
            except (KeyError, TypeError) as error:
                raise RecordError(f"{path}: a row without {error}") from None


def _row(item: Row) -> Row:
    cell = item["cell"]
    row = {name: cell.get(name) for name in ("operation", "size", "source", "destination", "reader", "bystander")}
    row |= {
        "state": cell["state"],
        "experiment": item["experiment"],
        "axes": _text(cell.get("axes")),
        "candidate": item["candidate"],
        "reference": item["reference"],
        "calls": item["calls"],
        "rounds": len(item["operation_ns"]),
        "dropped": bool(item.get("dropped")),
        "extra": _text(item.get("extra")),
    }
    rounds = [item[f"{part}_ns"] for part in _PARTS if item.get(f"{part}_ns")]
    for part in _PARTS:
        row[f"{part}_ns"] = _median(item.get(f"{part}_ns"))
    sums = [None if None in parts else sum(parts) for parts in zip(*rounds)]
    row["total_ns"] = _median(sums)
    for name in ("ratio", "total_ratio"):
        found = _sound(item.get(name))
        if found:
            row |= {name: found["median"], f"{name}_low": found["low"], f"{name}_high": found["high"]}
    row["verdict"] = _verdict(item, row)
    return row


def _sound(ratio: Row | None) -> Row | None:
    """A ratio of times with an interval around it: records of schema 1 have others."""
    if ratio is None or None in (ratio["low"], ratio["median"], ratio["high"]):
        return None
    return ratio if ratio["median"] > 0 and 0 < ratio["low"] <= ratio["high"] else None


def _verdict(item: Row, row: Row) -> str | None:
    """What the ratio of the whole cost says, as tables print it."""
    found = _sound(item.get("total_ratio")) or _sound(item.get("ratio"))
    withheld = row["candidate"] == row["reference"] or row["dropped"] or item.get("verdict") is None
    if found is None or withheld or not _is_measurable(row):
        return None
    low, middle, high = (found[part] for part in ("low", "median", "high"))
    if not low <= middle <= high:
        return None
    return verdict(middle, low, high, found["rounds"])


def _is_measurable(row: Row) -> bool:
    """Whether its times are times: noise makes reader and bystander a little negative, and no more."""
    operation, *parts = (row[f"{part}_ns"] for part in _PARTS)
    if not operation or operation <= 0 or not row["total_ns"] or row["total_ns"] <= 0:
        return False
    return all(part is None or part >= -part_noise() * operation for part in parts)


def _median(values: list[float | None] | None) -> float | None:
    known = [value for value in values or () if value is not None]
    return median(known) if known else None


def _text(mapping: dict[str, Any] | None) -> str | None:
    return json.dumps(mapping, sort_keys=True) if mapping else None


def _files(patterns: Patterns) -> list[Path]:
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [patterns]
    files = []
    for pattern in patterns:
        pattern = os.fspath(pattern)
        found = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
        if not found:
            raise FileNotFoundError(f"{pattern}: expected a record or a pattern of names, found no such file")
        files += found
    return [Path(file) for file in files]


def records(patterns: Patterns, *, form: Literal["pandas", "arrow", "rows"] = "pandas") -> Any:
    """The rows of records as one table.

    Parameters
    ----------
    patterns : path, or several
        Records (``.jsonl``, ``.jsonl.gz``), or patterns of their names like ``"record/*.jsonl.gz"``.
    form : {"pandas", "arrow", "rows"}
        A `pandas.DataFrame`, a `pyarrow.Table`, or a list of dictionaries (needs neither).

    Returns
    -------
    table
        A row for each candidate in each cell: ``record``, ``cpu``, ``operation``, ``size`` (bytes),
        ``candidate``, ``operation_ns`` and the like (nanoseconds a call, medians of the rounds), ``ratio``
        with ``ratio_low`` and ``ratio_high`` (the operation's time over the reference's, 95 % interval;
        below 1 is faster), ``total_ratio`` (the same of operation, reader and bystander together),
        ``verdict`` (of the total, as tables print it: faster, slower, same, cannot-tell). ``cpu_family`` and
        ``cpu_model`` tell CPUs apart that are of one name. ``axes`` and ``extra`` are JSON objects as text.
        docs/schema/record.md says the rest.

    Raises
    ------
    FileNotFoundError
        A path or pattern without a file.
    cachewise.RecordError
        A file that is no record, was never finished, or is of a newer schema.

    Examples
    --------
    >>> import cachewise
    >>> rows = cachewise.records("record/*.jsonl.gz", form="rows")  # doctest: +SKIP
    """
    if form not in ("pandas", "arrow", "rows"):
        raise ValueError(f"form: expected 'pandas', 'arrow', 'rows', found {form!r}")
    rows = [row for file in _files(patterns) for row in _rows(file)]
    if form == "rows":
        return rows
    if form == "pandas":
        import pandas

        kinds = {"string": "string", "int64": "Int64", "float64": "float64", "bool": "bool"}
        columns = {
            name: pandas.array([row[name] for row in rows], dtype=kinds[kind]) for name, kind in COLUMNS.items()
        }
        return pandas.DataFrame(columns)
    import pyarrow

    schema = pyarrow.schema([(name, kind) for name, kind in COLUMNS.items()])
    return pyarrow.Table.from_pylist(rows, schema=schema)
