"""Records as tables, and a tuning's result."""

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import cachewise
import pytest

RECORDS = Path(__file__).resolve().parents[2] / "record"
TUNING = max(RECORDS.glob("*-tune-*.jsonl.gz"))


def lines_of(path):
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def test_every_record_of_the_project_has_all_its_rows():
    files = sorted(RECORDS.glob("*.jsonl.gz"))
    assert len(files) > 10
    rows = cachewise.records(RECORDS / "*.jsonl.gz", form="rows")
    counted = {}
    for row in rows:
        counted[row["record"]] = counted.get(row["record"], 0) + 1
    ends = {file: [item["rows"] for item in lines_of(file) if item["type"] == "end"] for file in files}
    assert counted == {str(file): sum(rows) for file, rows in ends.items()}
    assert max(map(len, ends.values())) > 20, "a file with a record of each experiment"
    assert all(row["cpu"] and row["libc"] and row["candidate"] and row["operation_ns"] > 0 for row in rows)


def test_pandas_and_arrow_have_the_same_figures():
    import pandas
    import pyarrow

    frame, table = cachewise.records(TUNING), cachewise.records([TUNING], form="arrow")
    assert isinstance(frame, pandas.DataFrame) and isinstance(table, pyarrow.Table)
    assert list(frame.columns) == table.column_names and len(frame) == table.num_rows > 0
    assert frame["operation_ns"].sum() == pytest.approx(sum(table["operation_ns"].to_pylist()))
    assert frame["size"].dtype == "Int64" and str(table.schema.field("size").type) == "int64"
    first = next(item for item in lines_of(TUNING) if item["type"] == "row")
    assert frame["calls"][0] == first["calls"] and frame["rounds"][0] == len(first["operation_ns"])


HEADER = {
    "type": "header", "schema": 2, "tool": "cachewise 0.0.1", "started": "2024-01-01T00:00:00Z",
    "machine": {"cpu": {"model_name": "A CPU", "vendor": "V", "family": 25, "model": 17}, "libc": {"name": "glibc", "version": "2.36"}, "kernel": "Linux"},
}  # fmt: skip
ROW = {
    "type": "row", "experiment": "grid", "candidate": "x", "reference": "libc", "calls": 3,
    "cell": {"operation": "copy", "size": 64, "state": "warm", "axes": {"b": 2, "a": 1}},
    "operation_ns": [10.0, 30.0, 20.0], "reader_ns": [1.0, 2.0, 30.0],
    "ratio": {"median": 0.5, "low": 0.4, "high": 0.6, "rounds": 3}, "verdict": "faster",
}  # fmt: skip


def written(path, *objects):
    path.write_text("".join(json.dumps(item) + "\n" for item in objects))
    return path


def test_one_row_by_hand(tmp_path):
    file = written(tmp_path / "one.jsonl", HEADER, ROW, {"type": "note", "text": ""}, {"type": "end", "rows": 1})
    [row] = cachewise.records(file, form="rows")
    assert (row["candidate"], row["state"], row["axes"]) == ("x", "warm", '{"a": 1, "b": 2}')
    # The sum of each round, then their median: 11, 32, 50.
    assert (row["operation_ns"], row["reader_ns"], row["total_ns"]) == (20, 2, 32)
    assert (row["ratio"], row["ratio_low"], row["ratio_high"], row["total_ratio"]) == (0.5, 0.4, 0.6, None)
    assert row["bystander_ns"] is None and row["cpu"] == "A CPU" and row["libc"] == "glibc 2.36"
    assert (row["cpu_vendor"], row["cpu_family"], row["cpu_model"]) == ("V", 25, 17)


def test_json_csv_and_records_agree(tmp_path):
    """By one name and with one meaning; read as a plain script would."""
    file = max(RECORDS.glob("*-peers-*.jsonl.gz"))
    command = [sys.executable, "-m", "cachewise", "report", str(file), "--csv", "-"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    of_csv = list(csv.DictReader(io.StringIO(said)))
    of_json = [item for item in lines_of(file) if item["type"] == "row"]
    rows = cachewise.records(file, form="rows")
    assert len(of_csv) == len(of_json) == len(rows) > 50
    assert {row["verdict"] for row in rows} > {"faster", "slower", "same"}
    for line, item, row in zip(of_csv, of_json, rows, strict=True):
        for name in ("cpu_vendor", "cpu_family", "cpu_model", "operation", "size", "candidate", "verdict"):
            assert line[name] == ("" if row[name] is None else str(row[name])), (name, line)
        assert row["size"] == item["cell"]["size"]
        for name in ("ratio", "total_ratio"):
            found = item.get(name) or {}
            assert row[name] == found.get("median") and row[f"{name}_low"] == found.get("low")
            assert (float(line[name]) if line[name] else None) == pytest.approx(row[name], abs=1e-4)
            assert (float(line[f"{name}_high"]) if line[f"{name}_high"] else None) == pytest.approx(
                row[f"{name}_high"], abs=1e-4
            )


@pytest.mark.parametrize("objects, sentence", [
    ([], "found no header in line 1"),
    ([ROW], "found no header in line 1"),
    ([HEADER, ROW], "it was never finished"),
    ([HEADER, ROW, {"type": "end", "rows": 2}], "no end that counts its 1 rows"),
    ([HEADER | {"schema": 3}, {"type": "end", "rows": 0}], "expected schema 2, found 3"),
    ([HEADER, [], {"type": "end", "rows": 0}], "line 2: found no object"),
    ([HEADER | {"schema": 1}, {"type": "end", "rows": 0}], "expected schema 2, found 1"),
    ([HEADER, {"type": "row"}, {"type": "end", "rows": 1}], "a row without 'cell'"),
])  # fmt: skip
def test_what_is_no_record_is_refused_by_name(tmp_path, objects, sentence):
    file = written(tmp_path / "bad.jsonl", *objects)
    with pytest.raises(cachewise.RecordError) as refused:
        cachewise.records(file, form="rows")
    assert str(refused.value).startswith(str(file)) and sentence in str(refused.value)


def test_a_truncated_or_foreign_file_is_refused_by_name(tmp_path):
    whole = TUNING.read_bytes()
    cut = tmp_path / "cut.jsonl.gz"
    for bytes_left in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        cut.write_bytes(whole[:bytes_left])
        with pytest.raises(cachewise.RecordError, match="cut.jsonl.gz"):
            cachewise.records(cut, form="rows")
    cut.write_bytes(b"no gzip at all")
    with pytest.raises(cachewise.RecordError, match="cut.jsonl.gz"):
        cachewise.records(cut, form="rows")
    with pytest.raises(FileNotFoundError, match="absent"):
        cachewise.records(tmp_path / "absent*.jsonl")
    with pytest.raises(ValueError, match="form: expected 'pandas', 'arrow', 'rows', found 'polars'"):
        cachewise.records(TUNING, form="polars")
