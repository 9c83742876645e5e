"""A made-up fleet as large as wanted, of simulated tunings.

    CACHEWISE_FLEET=$PWD/tunings SEEDS=40 cargo test -p cachewise-tune --test machines fleet -- --include-ignored
    python python/tests/fleet/made_up.py tunings fleet --hosts 10000
    python -m cachewise.fleet merge fleet

A third of the hosts for each of three CPUs; 2 % of them broken in one of three ways, and of Zen 3 3.3 % of the
fleet with another cache. A host is one of the tunings with every figure drawn anew within its own error, and with
sizes of its own between those of the race, where the referee looks at a size that it draws by lot. Plain copies would
make what the referee of one tuning saw once look as if several hosts had seen it.
"""

import argparse
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

import fakes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cachewise.fleet import records

MODELS = ("zen3", "zen5", "cascade-lake")
BROKEN = ("noisy", "crowded", "throttled")


class Template:
    """A tuning that hosts are made of."""

    def __init__(self, tuning: records.Tuning) -> None:
        row = records.row(tuning)
        self.cpu = row["cpu"]
        self._table = records.table([row])
        figures, points = row["figures"], row["curve"]
        self._figures = pa.array(figures, records.FIGURE)
        self._points = pa.array(points, records.POINT)
        # The reference is what the others are measured by.
        alone = [figure["candidate"] == figure["reference"] or figure["error"] is None for figure in figures]
        errors = [0.0 if one else figure["error"] for one, figure in zip(alone, figures, strict=True)]
        self._errors = np.array(errors)
        raced_sizes = [figure["size"] for figure in figures if figure["experiment"] == "tune"]
        self._sizes = np.array([figure["size"] for figure in figures])
        self._drawn = ~np.isin(self._sizes, raced_sizes)
        # The point of each figure; for none, one behind the last.
        number = {(point["operation"], point["kernel"], point["size"]): at for at, point in enumerate(points)}
        keys = [(figure["operation"], figure["candidate"], figure["size"]) for figure in figures]
        raced = [figure["experiment"] == "tune" for figure in figures]
        of = [number.get(key, len(points)) if race else len(points) for key, race in zip(keys, raced, strict=True)]
        self._of = np.array(of)
        self._many = np.maximum(np.bincount(self._of, minlength=len(points) + 1), 1)

    def host(self, name: str, random: np.random.Generator) -> pa.Table:
        """The row of another host of the kind."""
        off = self._errors * random.standard_normal(len(self._errors))
        figures = _scaled(self._figures, ("operation_ns", "reader_ns", "bystander_ns", "ratio"), np.exp(off))
        sizes = np.where(self._drawn, (self._sizes * random.uniform(1, 1.02)).astype(np.int64), self._sizes)
        figures = _with(figures, {"size": pa.array(sizes)})
        mean = np.bincount(self._of, weights=off, minlength=len(self._many)) / self._many
        log = self._points.field("log").to_numpy() + mean[:-1]
        points = _with(self._points, {"log": log.astype(np.float32)})
        table = self._table
        for column, values in {"curve": points, "figures": figures}.items():
            one = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
            table = table.set_column(table.schema.get_field_index(column), records.COLUMNS.field(column), one)
        for column in ("host", "host_key"):
            table = table.set_column(table.schema.get_field_index(column), column, pa.array([name]))
        return table.cast(records.COLUMNS)


def _scaled(array: pa.StructArray, names: tuple[str, ...], factor: np.ndarray) -> pa.StructArray:
    columns = {}
    for name in names:
        values = array.field(name)
        scaled = values.to_numpy(zero_copy_only=False) * factor
        columns[name] = pa.array(scaled.astype(np.float32), mask=np.asarray(values.is_null()))
    return _with(array, columns)


def _with(array: pa.StructArray, columns: dict[str, pa.Array]) -> pa.StructArray:
    fields = list(array.type)
    arrays = [columns.get(field.name, array.field(field.name)) for field in fields]
    return pa.StructArray.from_arrays([pa.array(one) for one in arrays], fields=fields)


def plan(hosts: int) -> Iterator[tuple[str, str, int]]:
    """Model, condition, how many."""
    for nth, model in enumerate(MODELS):
        many = (hosts + nth) // len(MODELS)
        broken = round(0.02 * many)
        other = round(hosts / 30) if model == "zen3" else 0
        yield model, "sound", many - broken - other
        if other:
            yield model, "other", other
        for number, condition in enumerate(BROKEN):
            yield model, condition, (broken + number) // len(BROKEN)


def _make(job: tuple[Path, str, str, list[int], Path]) -> None:
    source, stem, kind, numbers, directory = job
    template = Template(fakes.simulated(source, stem, stem))
    for number in numbers:
        name = f"{kind}-{number:05d}"
        table = template.host(name, np.random.default_rng(number))
        path = records.file_of(directory, template.cpu, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not as `records.write`: nobody needs these after a power cut.
        pq.write_table(table, path, **records.LAYOUT)


def make(source: Path, directory: Path, hosts: int, processes: int) -> None:
    """Makes a fleet of the tunings in `source`."""
    jobs = []
    for model, condition, many in plan(hosts):
        stems = sorted(path.name.removesuffix(".profile") for path in source.glob(f"{model}-{condition}-*.profile"))
        for nth, stem in enumerate(stems):
            numbers = list(range(nth, many, len(stems)))
            if numbers:
                jobs.append((source, stem, f"{model}-{condition}", numbers, directory))
    with multiprocessing.Pool(processes) as pool:
        pool.map(_make, jobs, chunksize=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tunings", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--hosts", type=int, default=10_000)
    options = parser.parse_args()
    make(options.tunings, options.directory, options.hosts, os.cpu_count() or 1)
