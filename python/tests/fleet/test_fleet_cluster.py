"""`fleet tune` on a real scheduler and real workers, each a process of its own; then `merge` and `install`."""

import gzip
import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import fakes
import pytest
from cachewise.fleet import store


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def kept(directory: Path) -> list[Path]:
    return store.files(directory)


@pytest.fixture
def words(cluster, tmp_path):
    """`fleet tune` with the command that plays the tuner."""

    def of(*more: str) -> list[str]:
        command = str(tmp_path / "fake" / "cachewise")
        found = ["tune", "--scheduler", cluster.address, "--budget", "10s", "--load", "100"]
        return [*found, "-o", str(tmp_path / "out"), "--cachewise", command, *more]

    return of


def test_a_fleet_from_nothing_to_installed_profiles(cluster, fleet, words, tmp_path):
    """Two workers on one host, one killed in the middle, a host that breaks, one that sends rubbish."""
    fakes.command(tmp_path / "fake", seconds=2.0)
    hosts = [f"node{number}" for number in range(4)]
    for host in [*hosts, "small", "broken", "garbage"]:
        cluster.worker(f"{host}-a", host)
    cluster.worker("node0-b", "node0")
    process = fleet.start(*words())
    # Node0's turn: whoever of its workers is at it is killed. What it started goes on, with the host's lock.
    wait_for(lambda: "node0" in fakes.runs(tmp_path / "fake"))
    runner = fakes.runner(tmp_path / "fake", "node0")
    [victim] = [name for name, worker in cluster.processes.items() if worker.pid == runner]
    assert victim in ("node0-a", "node0-b")
    cluster.kill(victim)
    cluster.worker("node0-c", "node0")
    _, err = process.communicate(timeout=100)
    assert process.returncode == 4, err
    assert "5 hosts tuned, 2 not" in err and "this CPU does not do that" in err
    assert len(kept(tmp_path / "out")) == 5 and not store.damaged(tmp_path / "out")

    # Kept hosts are not measured again.
    before = fakes.runs(tmp_path / "fake")
    for name in ("broken-a", "garbage-a"):
        cluster.kill(name)
    status, _, err = fleet(*words())
    assert status == 0 and "0 hosts tuned, 5 were there before" in err
    assert fakes.runs(tmp_path / "fake") == before

    # One profile of the four alike, which the host with other caches is not in: that is told.
    status, out, err = fleet("merge", str(tmp_path / "out"))
    assert status == 4, (out, err)
    assert "4 of 5 hosts" in out and "1 of 5 hosts" in out
    profile = tmp_path / "out" / "profiles" / "1" / f"{fakes.CPU}.profile"
    assert profile.read_text().startswith("cachewise-profile")
    record = [json.loads(line) for line in profile.with_suffix(".record.jsonl").read_text().splitlines()]
    assert record[0]["settings"]["hosts"] == 4
    assert all(len(row["operation_ns"]) == 4 for row in record if row["type"] == "row")

    # Versions stay, and an earlier one can be installed again.
    assert fleet("merge", str(tmp_path / "out"))[0] == 4
    for version in ([], ["--version", "1"]):
        status, out, err = fleet("install", str(tmp_path / "out"), "--to", str(tmp_path / "etc"), *version)
        assert (status, out) == (0, f"{tmp_path}/etc/{fakes.CPU}.profile\n"), err
    assert (tmp_path / "etc" / profile.name).read_bytes() == profile.read_bytes()
    assert fleet("install", str(tmp_path / "out"), "--version", "3")[0] == 1


def test_the_guide_step_by_step(cluster, tmp_path):
    """Its lines as they are, but for the scheduler's address, and for the command that plays the tuner."""
    fakes.command(tmp_path / "fake")
    for number in range(3):
        cluster.worker(f"node{number}", f"node{number}")
    guide = (fakes.ROOT / "docs" / "guide" / "fleets.md").read_text()
    install, *lines = guide.split("```\n", 2)[1].strip().splitlines()
    assert install.startswith("pip install") and len(lines) == 3
    for line in lines:
        python, *given = line.replace("tcp://head:8786", cluster.address).split()
        assert python == "python"
        given += ["--load", "100", "--cachewise", str(tmp_path / "fake" / "cachewise")] if "tune" in given else []
        run = [sys.executable, "-P", *given]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert (tmp_path / "image/etc/cachewise" / f"{fakes.CPU}.profile").exists()


def test_an_interrupted_run_keeps_what_it_has(cluster, fleet, words, tmp_path):
    fakes.command(tmp_path / "fake")
    cluster.worker("quick-a", "quick")
    assert fleet(*words("--wait", "60s"))[0] == 0
    (tmp_path / "fake" / "seconds").write_text("20")
    cluster.worker("slow-a", "slow")
    process = fleet.start(*words())
    wait_for(lambda: "slow" in fakes.runs(tmp_path / "fake"))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err
    assert len(kept(tmp_path / "out")) == 1
    assert not list((tmp_path / "out").rglob(".cachewise-*"))


def test_a_damaged_record_is_measured_again(cluster, fleet, words, tmp_path):
    fakes.command(tmp_path / "fake")
    cluster.worker("one-a", "one")
    assert fleet(*words())[0] == 0
    [file] = kept(tmp_path / "out")
    file.write_bytes(gzip.compress(b"{}"))
    status, _, err = fleet(*words())
    assert status == 0 and str(file) in err
    assert fakes.runs(tmp_path / "fake") == ["one", "one"] and not store.damaged(tmp_path / "out")


def test_a_host_under_load_is_named(cluster, fleet, words, tmp_path):
    fakes.command(tmp_path / "fake")
    cluster.worker("busy-a", "busy")
    # The scheduler, the worker and this test use more than nothing.
    status, _, err = fleet(*words("--load", "0", "--patience", "1s"))
    assert status == 4 and "busy: under load:" in err and "0 hosts tuned, 1 not" in err
    assert not fakes.runs(tmp_path / "fake")


def test_the_scheduler_goes_away(cluster, fleet, words, tmp_path):
    fakes.command(tmp_path / "fake", seconds=5.0)
    cluster.worker("one-a", "one")
    process = fleet.start(*words())
    wait_for(lambda: "one" in fakes.runs(tmp_path / "fake"))
    cluster.kill("scheduler")
    _, err = process.communicate(timeout=100)
    assert process.returncode == 1 and "Traceback" not in err
    assert "0 hosts kept" in err.strip().splitlines()[-1], err


def test_a_full_disk(cluster, words, tmp_path):
    """A limit on the size of files stands for it: the system refuses to write all the same."""
    fakes.command(tmp_path / "fake")
    cluster.worker("one-a", "one")
    process = subprocess.run(
        [sys.executable, "-m", "cachewise.fleet", *words()],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=lambda: (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        ),
    )
    assert process.returncode == 1, process.stderr
    assert "Traceback" not in process.stderr and not kept(tmp_path / "out")


@pytest.mark.parametrize("with_scheduler", [False, True])
def test_no_scheduler_and_no_worker(cluster, fleet, tmp_path, with_scheduler):
    address = cluster.address if with_scheduler else "tcp://127.0.0.1:1"
    status, _, err = fleet("tune", "--scheduler", address, "-o", str(tmp_path / "out"), "--wait", "1s")
    assert status == 1 and len(err.strip().splitlines()) == 1, err


def test_the_command_itself(cluster, fleet, tmp_path):
    """Seconds of the real tuner on the machine that this runs on."""
    cluster.worker("here-a", "here")
    out = str(tmp_path / "out")
    status, _, err = fleet("tune", "--scheduler", cluster.address, "--budget", "15s", "--load", "100", "-o", out)
    assert status == 0, err
    assert fleet("merge", out)[0] == 4
    status, said, err = fleet("merge", out, "--hosts", "1")
    assert status == 0 and len(list((tmp_path / "out" / "profiles").rglob("*.profile"))) == 1, (said, err)


@pytest.mark.parametrize(
    "words",
    [
        ["tune", "--scheduler", "x", "-o", "y", "--budget", "soon"],
        ["tune", "--scheduler", "x", "-o", "y", "--load", "101"],
        ["merge", "x", "--hosts", "0"],
        [],
    ],
)
def test_usage(fleet, words):
    assert fleet(*words)[0] == 2
