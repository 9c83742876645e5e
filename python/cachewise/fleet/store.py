"""The Parquet files of a fleet, asked with DuckDB."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import records
from .agreement import UNKNOWN
from .errors import FleetError

# Files whose figures are looked at together: bounds the memory, whatever the size of the fleet.
BATCH = 500
MEMORY = "1GB"
LIBC = "libc"
# The sizes at which decisions are compared, 256 B to 64 MiB: those of a machine's own comparison.
SIZES = [1 << octave for octave in range(8, 27)]


@dataclass(frozen=True)
class Host:
    """Who a row is of."""

    number: int
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


class Store:
    """A fleet's directory, opened for reading."""

    def __init__(self, directory: Path) -> None:
        files = records.listing(directory)
        self.damaged: list[tuple[Path, str]] = []
        whole = []
        for path in files:
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
        self._files = whole
        self._database = duckdb.connect()
        self._database.execute(f"SET memory_limit='{MEMORY}'")
        self._database.execute("SET enable_progress_bar=false")
        self._database.execute("SET preserve_insertion_order=false")
        self.hosts = self._read_hosts()
        # Operation and kernel; each has a column for every one of `SIZES`.
        self.kernels: dict[tuple[str, str], int] = {}

    def _read_hosts(self) -> list[Host]:
        # Of two rows of one host the later counts.
        query = """
            SELECT host, host_key, cpu, cpu_name, microcode, kernel, libc, started, busy, filename
            FROM read_parquet(?, filename=true, hive_partitioning=false)
            QUALIFY row_number() OVER (PARTITION BY host_key ORDER BY started DESC, filename) = 1
            ORDER BY host_key
        """
        rows = self._ask(query, [self._files]).fetchall()
        return [Host(number, *row) for number, row in enumerate(rows)]

    def _ask(self, query: str, values: list[Any]) -> duckdb.DuckDBPyConnection:
        try:
            return self._database.execute(query, values)
        except duckdb.Error as error:
            raise FleetError(f"records: {str(error).splitlines()[0]}") from error

    def column(self, operation: str, kernel: str, size: int) -> int:
        """The column of a kernel's figures at a size; `UNKNOWN` for a kernel that nobody has seen."""
        number = self.kernels.get((operation, kernel))
        return UNKNOWN if number is None else number * len(SIZES) + SIZES.index(size)

    def named(self, column: int) -> tuple[str, int]:
        """The kernel and the size of a column."""
        return list(self.kernels)[column // len(SIZES)][1], SIZES[column % len(SIZES)]

    def _learn(self, found: list[tuple[str, str]]) -> None:
        for name in sorted(found):
            self.kernels.setdefault(name, len(self.kernels))
        columns = {
            "operation": [name[0] for name in self.kernels],
            "kernel": [name[1] for name in self.kernels],
            "first": [number * len(SIZES) for number in self.kernels.values()],
        }
        types = pa.schema([("operation", pa.string()), ("kernel", pa.string()), ("first", pa.int32())])
        self._database.register("kernels", pa.table(columns, schema=types))

    def choices(self, hosts: list[Host], cells: list[tuple[str, str, int]]) -> NDArray[np.int32]:
        """The column of what each host decided in each cell; -1 for libc, `UNKNOWN` for nothing."""
        self._select(hosts, 0)
        columns = {
            "cell": range(len(cells)),
            "operation": [cell[0] for cell in cells],
            "reuse": [cell[1] for cell in cells],
            "size": [cell[2] for cell in cells],
            "step": [SIZES.index(cell[2]) for cell in cells],
        }
        self._database.register("cells", pa.table(columns))
        query = """
            CREATE OR REPLACE TEMP TABLE part AS
            WITH one AS (
                SELECT rows.number, unnest(read.decisions) AS d
                FROM read_parquet(?, hive_partitioning=false) AS read
                JOIN rows USING (host_key, started))
            SELECT number, d.operation AS operation, d.reuse AS reuse, d.kernel AS kernel,
                d."from" AS first, d."to" AS last
            FROM one
        """
        self._ask(query, [sorted({host.file for host in hosts})])
        names = "SELECT DISTINCT operation, kernel FROM part WHERE kernel <> ?"
        self._learn(self._ask(names, [LIBC]).fetchall())
        query = """
            SELECT number, cell,
                CASE WHEN part.kernel = ? THEN -1 ELSE kernels.first + step END AS chosen
            FROM part
            JOIN cells ON part.operation = cells.operation AND part.reuse = cells.reuse
                AND size >= part.first AND (last IS NULL OR size <= last)
            LEFT JOIN kernels
                ON kernels.operation = part.operation AND kernels.kernel = part.kernel
        """
        found = self._ask(query, [LIBC]).fetchnumpy()
        result = np.full((len(hosts), len(cells)), UNKNOWN, np.int32)
        result[found["number"], found["cell"]] = found["chosen"]
        return result

    def curves(self, hosts: list[Host]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logarithms of times over libc's, and their standard errors.

        A row for each host, `SIZES` columns for each of `kernels`; NaN where a host has no figure. The mean
        over the states in which a call was measured.
        """
        query = """
            CREATE OR REPLACE TEMP TABLE part AS
            WITH one AS (
                SELECT rows.number, unnest(read.figures) AS f
                FROM read_parquet(?, hive_partitioning=false) AS read
                JOIN rows USING (host_key, started))
            SELECT number, f.operation AS operation, f.candidate AS kernel, f.size AS size,
                avg(ln(f.ratio))::FLOAT AS log,
                (sqrt(sum(pow(f.error, 2))) / count(*))::FLOAT AS error
            FROM one
            WHERE f.experiment = 'tune' AND f.candidate <> f.reference AND f.ratio > 0
                AND f.size IN (SELECT unnest(?))
            GROUP BY ALL
        """
        parts = []
        for first in range(0, len(hosts), BATCH):
            batch = hosts[first : first + BATCH]
            self._select(batch, first)
            self._ask(query, [sorted({host.file for host in batch}), SIZES])
            self._learn(self._ask("SELECT DISTINCT operation, kernel FROM part", []).fetchall())
            joined = """
                SELECT number, kernels.first + log2(size)::INTEGER - ? AS "column", log, error
                FROM part JOIN kernels USING (operation, kernel)
            """
            parts.append(self._ask(joined, [SIZES[0].bit_length() - 1]).fetchnumpy())
        logs = np.full((len(hosts), len(self.kernels) * len(SIZES)), np.nan, np.float32)
        errors = logs.copy()
        for part in parts:
            logs[part["number"], part["column"]] = part["log"]
            errors[part["number"], part["column"]] = part["error"]
        return logs, errors

    def whole(self, hosts: list[Host]) -> Iterator[tuple[Host, dict[str, Any], list[dict[str, Any]]]]:
        """Each host with its record's header and all its figures."""
        for host in hosts:
            self._select([host], 0)
            query = """
                SELECT header, figures FROM read_parquet(?, hive_partitioning=false)
                JOIN rows USING (host_key, started)
            """
            header, figures = self._ask(query, [[host.file]]).fetchall()[0]
            yield host, json.loads(header), figures

    def _select(self, hosts: list[Host], first: int) -> None:
        self._database.register(
            "rows",
            pa.table(
                {
                    "number": range(first, first + len(hosts)),
                    "host_key": [host.host_key for host in hosts],
                    "started": [host.started for host in hosts],
                }
            ),
        )
