"""What runs on a host, in this process."""

import tempfile

import pytest
from cachewise.fleet import host

TOOL = """#!/bin/sh
echo profile > "$5"
echo record > "$7"
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """A command that leaves a profile and a record; temporary files are this test's own."""
    monkeypatch.setenv(host.NAME, "node")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "tool"
    path.write_text(TOOL)
    path.chmod(0o755)
    return str(path)


def test_what_a_killed_worker_left_is_taken_away(tool, tmp_path):
    prefix = host._prefix("node")
    (tmp_path / f"{prefix}-killed").mkdir()
    (tmp_path / f"{prefix}-killed" / "host.record.jsonl").write_text("half")
    other = tmp_path / (host._prefix("other") + "-runs")
    other.mkdir()
    assert host.tune(tool, 1.0, 1.0, 10.0)["outcome"] == "tuned"
    assert not list(tmp_path.glob(f"{prefix}-*")) and other.exists()


def test_one_at_a_time(tool, tmp_path):
    lock = host._lock(host._prefix("node"))
    (tmp_path / f"{host._prefix('node')}-in-use").mkdir()
    assert host.tune(tool, 1.0, 1.0, 10.0)["outcome"] == "busy"
    assert list(tmp_path.glob(f"{host._prefix('node')}-in-use"))
    assert lock is not None


def test_a_command_that_does_not_end(tool, tmp_path):
    (tmp_path / "tool").write_text("#!/bin/sh\nsleep 60\n")
    found = host.tune(tool, 1.0, 1.0, 0.2)
    assert found["outcome"] == "failed" and "took over 0 s" in found["why"]
    assert host._lock(host._prefix("node")) is not None
