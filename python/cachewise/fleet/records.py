"""A host's tuning as a Parquet file.

One file is one host, one row: who it is, what was decided, its figures, and their mean by kernel and size
(its curve, of which a merge needs all). The columns are described in docs/guide/fleets.md. A file that
holds several rows is read just as well.
"""

import hashlib
import json
import math
import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .._core import log_ratio
from . import files
from .errors import FleetError

# Raised when a column changes its meaning, goes away, or is needed that was not there. 2: `curve`.
SCHEMA = 2
# The newest version of a record (docs/schema/record.md) that is understood.
RECORD_SCHEMA = 2

# The sizes at which hosts are compared, 256 B to 64 MiB: those at which two tunings of a machine are.
SIZES = [1 << octave for octave in range(8, 27)]

# How Parquet files are written.
LAYOUT: dict[str, Any] = {"compression": "zstd", "row_group_size": 16}

FIGURE = pa.struct(
    [
        ("experiment", pa.string()),
        ("operation", pa.string()),
        ("size", pa.int64()),
        ("destination", pa.string()),
        ("state", pa.string()),
        ("reader", pa.float32()),
        ("bystander", pa.int64()),
        ("unequal", pa.bool_()),
        ("candidate", pa.string()),
        ("reference", pa.string()),
        ("rounds", pa.int32()),
        ("operation_ns", pa.float32()),
        ("reader_ns", pa.float32()),
        ("bystander_ns", pa.float32()),
        ("ratio", pa.float32()),
        ("error", pa.float32()),
    ]
)
# Identifies a row of a record, but for the candidate.
CELL = tuple(field.name for field in FIGURE)[: FIGURE.get_field_index("candidate")]
# One kernel at one size: the logarithm of its time over libc's, in the mean over the states in which it was
# measured, and that mean's standard error.
POINT = pa.struct(
    [
        ("operation", pa.string()),
        ("kernel", pa.string()),
        ("size", pa.int64()),
        ("log", pa.float32()),
        ("error", pa.float32()),
    ]
)
DECISION = pa.struct(
    [
        ("operation", pa.string()),
        ("reuse", pa.string()),
        ("from", pa.uint64()),
        ("to", pa.uint64()),
        ("kernel", pa.string()),
    ]
)
COLUMNS = pa.schema(
    [
        ("host", pa.string()),
        ("host_key", pa.string()),
        ("cpu", pa.string()),
        ("cpu_name", pa.string()),
        ("microcode", pa.string()),
        ("kernel", pa.string()),
        ("libc", pa.string()),
        ("hypervisor", pa.string()),
        ("logical_cpus", pa.int32()),
        ("memory_bytes", pa.int64()),
        ("started", pa.string()),
        ("seconds", pa.float64()),
        ("busy", pa.float64()),
        ("tool", pa.string()),
        ("warnings", pa.list_(pa.string())),
        ("header", pa.string()),
        ("profile", pa.string()),
        ("decisions", pa.list_(DECISION)),
        ("curve", pa.list_(POINT)),
        ("figures", pa.list_(FIGURE)),
    ],
    metadata={"cachewise-fleet-schema": str(SCHEMA)},
)


class RefusedError(FleetError):
    """What a host sent is no record of a finished tuning."""


@dataclass(frozen=True)
class Tuning:
    """What a host sends back."""

    host: str
    # By which it is known again: the same after a restart of its workers.
    host_key: str
    profile: str
    # The record, JSON lines.
    record: str
    seconds: float
    # Part of the CPUs' time that others used just before.
    busy: float


def row(tuning: Tuning) -> dict[str, Any]:
    """A tuning's row.

    Raises `RefusedError` where its record is not a whole one of a version that is understood.
    """
    header, decisions, figures, ended = None, [], [], False
    # The reference's times, round by round; its row is the first of its cell.
    reference: Rounds = {}
    for number, line in enumerate(tuning.record.splitlines(), 1):
        try:
            entry = json.loads(line)
            kind = entry["type"]
            if kind == "header":
                header = entry
                if entry["schema"] > RECORD_SCHEMA:
                    text = f"found schema {entry['schema']}, accepted at most {RECORD_SCHEMA}"
                    raise RefusedError(f"{tuning.host}: record: {text}")
            elif kind == "row":
                figures.append(_figure(entry, reference))
            elif kind == "decisions":
                decisions += entry.get("kernels", [])
            elif kind == "end":
                ended = not entry["interrupted"]
        except (ValueError, KeyError, TypeError) as error:
            text = f"record: line {number}: not what a record holds: {error!r}"
            raise RefusedError(f"{tuning.host}: {text}") from error
    if header is None or not ended or not decisions:
        raise RefusedError(f"{tuning.host}: the record was never finished")
    machine = header["machine"]
    cpu, libc = machine["cpu"], machine["libc"]
    return {
        "host": tuning.host,
        "host_key": tuning.host_key,
        "cpu": f"{cpu['vendor']}-{cpu['family']}-{cpu['model']}-{cpu['stepping']}",
        "cpu_name": cpu["model_name"],
        "microcode": cpu.get("microcode") or "",
        "kernel": machine["kernel"],
        "libc": f"{libc['name']} {libc['version']}",
        "hypervisor": machine.get("hypervisor") or "",
        "logical_cpus": machine["logical_cpus"],
        "memory_bytes": machine["memory_bytes"],
        "started": header["started"],
        "seconds": tuning.seconds,
        "busy": tuning.busy,
        "tool": header["tool"],
        "warnings": [warning["id"] for warning in header["warnings"]],
        "header": json.dumps(header, separators=(",", ":")),
        "profile": tuning.profile,
        "decisions": [{**decision, "to": decision.get("to")} for decision in decisions],
        "curve": curve(figures),
        "figures": figures,
    }


def curve(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points of a host's figures."""
    states: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for figure in figures:
        raced = figure["experiment"] == "tune" and figure["candidate"] != figure["reference"]
        if raced and figure["ratio"] is not None and figure["size"] in SIZES:
            key = (figure["operation"], figure["candidate"], figure["size"])
            states.setdefault(key, []).append(figure)
    return [
        {
            "operation": operation,
            "kernel": kernel,
            "size": size,
            "log": statistics.fmean(math.log(state["ratio"]) for state in seen),
            "error": math.hypot(*(state["error"] for state in seen)) / len(seen),
        }
        for (operation, kernel, size), seen in states.items()
    ]


Rounds = dict[str, list[float]]


def _figure(entry: dict[str, Any], reference: Rounds) -> dict[str, Any]:
    cell = entry["cell"]
    parts = [entry.get(name) or [] for name in ("operation_ns", "reader_ns", "bystander_ns")]
    totals = [
        sum(math.nan if time is None else time for time in round_)
        for round_ in zip(*(part for part in parts if part), strict=True)
    ]
    if entry["candidate"] == entry["reference"]:
        reference.clear()
        reference[json.dumps([entry["experiment"], cell])] = totals
    ratio, error = _paired(totals, reference.get(json.dumps([entry["experiment"], cell]), []))
    return {
        "experiment": entry["experiment"],
        "operation": cell["operation"],
        "size": cell["size"],
        "destination": cell.get("destination"),
        "state": cell["state"],
        "reader": cell.get("reader"),
        "bystander": cell.get("bystander"),
        "unequal": "unequal" in (cell.get("axes") or {}),
        "candidate": entry["candidate"],
        "reference": entry["reference"],
        "rounds": sum(math.isfinite(total) for total in totals),
        "operation_ns": _median(parts[0]),
        "reader_ns": _median(parts[1]),
        "bystander_ns": _median(parts[2]),
        "ratio": ratio,
        "error": error,
    }


def _paired(totals: list[float], reference: list[float]) -> tuple[float | None, float | None]:
    """Median of the ratios of the rounds that have both, and the standard error of its logarithm.

    Not the ratio that the row has: that is missing where a candidate took part in every other round only.
    """
    found = log_ratio(totals, reference)
    return (None, None) if found is None else (math.exp(found[0]), found[1])


def _median(times: list[float | None]) -> float | None:
    finite = [time for time in times if time is not None and math.isfinite(time)]
    return statistics.median(finite) if finite else None


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as they are stored."""
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def write_table(path: Path, content: pa.Table) -> None:
    """Writes rows so that the name holds all of them or what it held before."""
    files.write(path, lambda file: pq.write_table(content, file, **LAYOUT))


def file_of(directory: Path, cpu: str, host_key: str) -> Path:
    """Where a host's row belongs."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", host_key)[:80]
    digest = hashlib.sha256(host_key.encode()).hexdigest()[:12]
    return directory / "records" / f"schema={SCHEMA}" / f"cpu={cpu}" / f"{plain}-{digest}.parquet"


def write(directory: Path, tuning: Tuning) -> Path:
    """Stores a host's tuning; an earlier one of the same host gives way to it."""
    one = row(tuning)
    path = file_of(directory, one["cpu"], one["host_key"])
    write_table(path, table([one]))
    return path


def listing(directory: Path) -> list[Path]:
    """The files of this version, in order; those of other versions are not touched."""
    return sorted((directory / "records" / f"schema={SCHEMA}").glob("cpu=*/[!.]*.parquet"))


def other_versions(directory: Path) -> list[str]:
    """Versions of the schema beside this one that the directory has files of."""
    found = sorted((directory / "records").glob("schema=*"))
    names = [path.name.removeprefix("schema=") for path in found if any(path.glob("*/*.parquet"))]
    return [name for name in names if name != str(SCHEMA)]


def check(path: Path) -> str | None:
    """What is wrong with a file; `None` where it is whole and of this version."""
    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        return f"not a whole Parquet file: {str(error).splitlines()[0]}"
    stored = (metadata.metadata or {}).get(b"cachewise-fleet-schema", b"none").decode()
    if stored != str(SCHEMA):
        return f"schema: found {stored}, accepted {SCHEMA}"
    return None


def done(directory: Path) -> tuple[set[str], list[tuple[Path, str]]]:
    """Keys of the hosts that need no measuring again, and the files that are damaged."""
    keys: set[str] = set()
    damaged: list[tuple[Path, str]] = []
    for path in listing(directory):
        wrong = check(path)
        if wrong is None:
            try:
                keys.update(pq.read_table(path, columns=["host_key"])["host_key"].to_pylist())
            except (pa.ArrowException, OSError) as error:
                wrong = str(error).splitlines()[0]
        if wrong is not None:
            damaged.append((path, wrong))
    return keys, damaged
