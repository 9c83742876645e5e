"""The Parquet files of a fleet, asked with DuckDB."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import records
from .errors import FleetError
from .records import SIZES

# Files that are looked at together: bounds the memory, whatever the size of the fleet.
BATCH = 1000
MEMORY = "1GB"
# In place of a kernel's column: libc, and a kernel that nobody has figures of.
LIBC, UNKNOWN = -1, -2
# libc's name in decisions.
LIBC_NAME = "libc"

# Columns of tables of ours that are text; all others are numbers.
TEXT = {"operation", "reuse", "kernel", "host_key", "started"}

Cell = tuple[str, str, int]


@dataclass(frozen=True)
class Host:
    """Who a row is of."""

    host: str
    host_key: str
    cpu: str
    cpu_name: str
    microcode: str
    kernel: str
    libc: str
    started: str
    busy: float
    file: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Hosts that could share a profile."""
        return (self.cpu, self.microcode, self.kernel, self.libc)


@dataclass(frozen=True)
class Measured:
    """What hosts have measured and decided, a row for each host.

    `logs` and `errors` are logarithms of times over libc's and their standard errors, `SIZES` columns for each
    kernel, NaN where a host has no figure. `chosen` has the column of what it decided in each cell, `LIBC`, or
    `UNKNOWN` where it decided nothing.
    """

    logs: NDArray[np.float32]
    errors: NDArray[np.float32]
    chosen: NDArray[np.int32]

    def of(self, hosts: NDArray[np.int64]) -> "Measured":
        """The same of those hosts alone."""
        return Measured(self.logs[hosts], self.errors[hosts], self.chosen[hosts])


class Store:
    """A fleet's directory, opened for reading."""

    def __init__(self, directory: Path) -> None:
        self.damaged: list[tuple[Path, str]] = []
        whole = []
        for path in records.listing(directory):
            wrong = records.check(path)
            if wrong is None:
                whole.append(str(path))
            else:
                self.damaged.append((path, wrong))
        self.other_versions = records.other_versions(directory)
        if not whole:
            versions = f" (there are of schema {', '.join(self.other_versions)})"
            raise FleetError(
                f"{directory}: no records of schema {records.SCHEMA}"
                + (versions if self.other_versions else "")
                + "; accepted: a directory that `fleet tune` has written"
            )
        self._database = duckdb.connect()
        self._database.execute(f"SET memory_limit='{MEMORY}'")
        self._database.execute("SET enable_progress_bar=false")
        self._database.execute("SET preserve_insertion_order=false")
        self.hosts = self._read_hosts(whole)
        # Operation and kernel; each has a column for every one of `SIZES`.
        self.kernels: dict[tuple[str, str], int] = {}

    def _read_hosts(self, files: list[str]) -> list[Host]:
        # The later of two rows of one host counts.
        query = """
            SELECT host, host_key, cpu, cpu_name, microcode, kernel, libc, started, busy, filename
            FROM read_parquet(?, filename=true, hive_partitioning=false)
            QUALIFY row_number() OVER (PARTITION BY host_key ORDER BY started DESC, filename) = 1
            ORDER BY host_key
        """
        return [Host(*row) for row in self._of_files(query, files).fetchall()]

    def _ask(self, query: str, values: list[Any]) -> duckdb.DuckDBPyConnection:
        try:
            return self._database.execute(query, values)
        except duckdb.Error as error:
            raise FleetError(f"records: {str(error).splitlines()[0]}") from error

    def column(self, operation: str, kernel: str, size: int) -> int:
        """The column of a kernel's figures at a size; `UNKNOWN` for a kernel that nobody has seen."""
        if kernel == LIBC_NAME:
            return LIBC
        number = self.kernels.get((operation, kernel))
        return UNKNOWN if number is None else number * len(SIZES) + SIZES.index(size)

    def named(self, column: int) -> tuple[str, int]:
        """The kernel and the size of a column."""
        return list(self.kernels)[column // len(SIZES)][1], SIZES[column % len(SIZES)]

    def measured(self, hosts: list[Host], cells: list[Cell]) -> Measured:
        """What those hosts have measured, and what they decided in each cell."""
        step = {size: number for number, size in enumerate(SIZES)}
        self._register("steps", size=SIZES, step=range(len(SIZES)))
        operations, reuses, sizes = zip(*cells, strict=True)
        steps = [step[size] for size in sizes]
        numbers = range(len(cells))
        self._register("cells", cell=numbers, operation=operations, reuse=reuses, size=sizes, step=steps)
        points, decided = [], []
        for first in range(0, len(hosts), BATCH):
            self._read("part", "read.decisions, read.curve", hosts[first : first + BATCH], first)
            self._learn()
            query = """
                SELECT number, kernels.first + step AS "column", log, error
                FROM (SELECT number, unnest(curve, recursive := true) FROM part)
                JOIN kernels USING (operation, kernel) JOIN steps USING (size)
            """
            points.append(self._ask(query, []).fetchnumpy())
            query = """
                SELECT number, cell, CASE WHEN kernel = ? THEN ? ELSE kernels.first + step END AS chosen
                FROM (SELECT number, unnest(decisions, recursive := true) FROM part)
                JOIN cells USING (operation, reuse)
                LEFT JOIN kernels USING (operation, kernel)
                WHERE size >= "from" AND ("to" IS NULL OR size <= "to")
            """
            decided.append(self._ask(query, [LIBC_NAME, LIBC]).fetchnumpy())
        logs = np.full((len(hosts), len(self.kernels) * len(SIZES)), np.nan, np.float32)
        errors = logs.copy()
        for part in points:
            logs[part["number"], part["column"]] = part["log"]
            errors[part["number"], part["column"]] = part["error"]
        chosen = np.full((len(hosts), len(cells)), UNKNOWN, np.int32)
        for part in decided:
            chosen[part["number"], part["cell"]] = part["chosen"]
        return Measured(logs, errors, chosen)

    def _learn(self) -> None:
        """Gives columns to kernels that no host before had."""
        query = """
            SELECT operation, kernel FROM (SELECT unnest(curve, recursive := true) FROM part)
            UNION SELECT operation, kernel FROM (SELECT unnest(decisions, recursive := true) FROM part)
            WHERE kernel <> ? ORDER BY ALL
        """
        for name in self._ask(query, [LIBC_NAME]).fetchall():
            self.kernels.setdefault(name, len(self.kernels))
        operations, kernels = zip(*self.kernels, strict=True) if self.kernels else ((), ())
        first = [number * len(SIZES) for number in self.kernels.values()]
        self._register("kernels", operation=operations, kernel=kernels, first=first)

    def header(self, host: Host) -> dict[str, Any]:
        """The header of a host's record."""
        self._read("part", "read.header", [host], 0)
        [(text,)] = self._ask("SELECT header FROM part", []).fetchall()
        header: dict[str, Any] = json.loads(text)
        return header

    def figures(self, hosts: list[Host], least: int) -> list[tuple[Any, ...]]:
        """The figures that at least so many of the hosts have, one row for each cell and candidate.

        Its columns: those of `records.CELL`, the candidate, the reference, and lists of the hosts' numbers,
        the three times and the ratio. The reference is the first of its cell.
        """
        self._read("part", "read.figures", hosts, 0)
        cell = ", ".join(records.CELL)
        query = f"""
            SELECT {cell}, candidate, any_value(reference) AS reference, list(number),
                list(operation_ns), list(reader_ns), list(bystander_ns), list(ratio)
            FROM (SELECT number, unnest(figures, recursive := true) FROM part)
            WHERE operation_ns IS NOT NULL
            GROUP BY {cell}, candidate HAVING count(*) >= ?
            ORDER BY {cell}, candidate <> any_value(reference), candidate
        """
        return self._ask(query, [least]).fetchall()

    def _read(self, name: str, columns: str, hosts: list[Host], first: int) -> None:
        """Puts columns of the hosts' rows into a table, the hosts numbered from `first` on."""
        numbers = range(first, first + len(hosts))
        keys, started = [host.host_key for host in hosts], [host.started for host in hosts]
        self._register("rows", number=numbers, host_key=keys, started=started)
        query = f"""
            CREATE OR REPLACE TEMP TABLE {name} AS SELECT rows.number, {columns}
            FROM read_parquet(?, hive_partitioning=false) AS read JOIN rows USING (host_key, started)
        """
        self._of_files(query, sorted({host.file for host in hosts}))

    def _of_files(self, query: str, files: list[str]) -> duckdb.DuckDBPyConnection:
        """Asks something of files; where that fails, the error names the file."""
        try:
            return self._database.execute(query, [files])
        except duckdb.Error as error:
            for file in files:
                try:
                    self._database.execute(query, [[file]])
                except duckdb.Error as own:
                    wrong = f"damaged ({str(own).splitlines()[0]})"
                    text = f"{file}: {wrong}; delete it, and `fleet tune` measures its host anew"
                    raise FleetError(text) from error
            raise FleetError(f"records: {str(error).splitlines()[0]}") from error

    def _register(self, name: str, **columns: Iterable[Any]) -> None:
        schema = [(column, pa.string() if column in TEXT else pa.int64()) for column in columns]
        content = {column: list(values) for column, values in columns.items()}
        self._database.register(name, pa.table(content, schema=pa.schema(schema)))
