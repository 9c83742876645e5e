"""`fleet tune` on a real scheduler and real workers, each a process of its own."""

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import fakes
import pytest
from cachewise.fleet import records
from cachewise.fleet.merge import INDEX, RESULT, decisions


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def started(path: Path) -> list[str]:
    return fakes.runs(path)


@pytest.fixture
def words(cluster, tmp_path):
    """`fleet tune` with the command that plays the tuner."""

    def of(*more: str) -> list[str]:
        command = str(tmp_path / "fake" / "cachewise")
        found = ["tune", "--scheduler", cluster.address, "--budget", "10s", "--load", "100"]
        return [*found, "-o", str(tmp_path / "out"), "--cachewise", command, *more]

    return of


def test_a_fleet_from_nothing_to_installed_profiles(cluster, fleet, words, tunings, cachewise, tmp_path):
    """Two workers on one host, one killed in the middle, a host that breaks, one that sends rubbish."""
    stems = {f"node{seed}": f"zen3-sound-{100 + seed}" for seed in range(4)}
    fakes.command(tmp_path / "fake", tunings, stems, seconds=2.0)
    for host in stems:
        cluster.worker(f"{host}-a", host)
    cluster.worker("node0-b", "node0")
    cluster.worker("broken-a", "broken")
    cluster.worker("garbage-a", "garbage")
    process = fleet.start(*words())
    # Node0's turn: whoever of its workers is at it is killed. What it started goes on, with the host's lock.
    wait_for(lambda: "node0" in started(tmp_path / "fake"))
    runner = fakes.runner(tmp_path / "fake", "node0")
    [victim] = [name for name, worker in cluster.processes.items() if worker.pid == runner]
    assert victim in ("node0-a", "node0-b")
    cluster.kill(victim)
    cluster.worker("node0-c", "node0")
    out, err = process.communicate(timeout=100)
    assert process.returncode == 4, err
    assert "node0: its worker died" in err
    assert "4 hosts tuned, 2 not" in err
    assert "broken: cachewise: this CPU does not do that" in err
    assert "garbage: " in err and "record" in err
    files = records.listing(tmp_path / "out")
    assert len(files) == 4 and all(records.check(path) is None for path in files)

    # Stored rows are not measured again.
    before = started(tmp_path / "fake")
    for name in ("broken-a", "garbage-a"):
        cluster.kill(name)
    status, out, err = fleet(*words())
    assert status == 0, err
    assert "0 hosts tuned, 4 were there before" in err
    assert started(tmp_path / "fake") == before

    # The merged profile is the one that the simulated machine is known to have.
    status, out, err = fleet("merge", str(tmp_path / "out"), "--cachewise", cachewise)
    assert status == 0, (out, err)
    [profile] = (tmp_path / "out" / RESULT).rglob("*.profile")
    around = {(line[0], line[4]) for line in decisions(profile.read_text()) if line[2] >= 1 << 23}
    assert any(kernel != "libc" for operation, kernel in around if operation == "copy")
    status, out, err = fleet(
        "install", str(tmp_path / "out"), "--to", str(tmp_path / "etc"), "--cachewise", cachewise
    )
    assert status == 0, err
    [installed] = (tmp_path / "etc").iterdir()
    assert installed.name == "AuthenticAMD-25-1-1.profile"
    assert installed.read_bytes() == profile.read_bytes()
    status, out, err = fleet("report", str(tmp_path / "out"))
    assert status == 0 and "<svg" in Path(out.strip()).read_text()
    assert (tmp_path / "out" / RESULT / INDEX).exists()


def test_the_guide_step_by_step(cluster, tunings, cachewise, tmp_path):
    """Its lines as they are, but for the scheduler's address, and for the command that plays the tuner."""
    hosts = {f"node{seed}": f"zen3-sound-{100 + seed}" for seed in range(3)}
    fakes.command(tmp_path / "fake", tunings, hosts)
    for host in hosts:
        cluster.worker(host, host)
    guide = (fakes.ROOT / "docs" / "guide" / "fleets.md").read_text()
    install, *lines = guide.split("```\n", 2)[1].strip().splitlines()
    assert install.startswith("pip install -v './python[fleet]'") and len(lines) == 4
    for line in lines:
        python, *given = line.replace("tcp://head:8786", cluster.address).split()
        assert python == "python"
        if "tune" in given:
            given += ["--load", "100", "--cachewise", str(tmp_path / "fake" / "cachewise")]
        else:
            given += [] if "report" in given else ["--cachewise", cachewise]
        run = [sys.executable, "-P", *given]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    [installed] = (tmp_path / "image/etc/cachewise").iterdir()
    assert installed.name == "AuthenticAMD-25-1-1.profile"


def test_an_interrupted_run_keeps_what_it_has(cluster, fleet, words, tunings, tmp_path):
    stems = {"quick": "zen3-sound-100", "slow": "zen3-sound-101"}
    fakes.command(tmp_path / "fake", tunings, stems)
    cluster.worker("quick-a", "quick")
    process = fleet.start(*words("--wait", "60s"))
    wait_for(lambda: len(records.listing(tmp_path / "out")) == 1 or process.poll() is not None)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    (tmp_path / "fake" / "seconds").write_text("20")
    cluster.worker("slow-a", "slow")
    process = fleet.start(*words())
    wait_for(lambda: "slow" in started(tmp_path / "fake"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; 0 hosts kept" in err and "Traceback" not in err
    assert len(records.listing(tmp_path / "out")) == 1
    assert not list((tmp_path / "out").rglob(".cachewise-*"))


def test_a_host_under_load_is_named(cluster, fleet, words, tunings, tmp_path):
    fakes.command(tmp_path / "fake", tunings, {"busy": "zen3-sound-100"})
    cluster.worker("busy-a", "busy")
    # The scheduler, the worker and this test use more than nothing.
    status, _, err = fleet(*words("--load", "0", "--patience", "1s"))
    assert status == 4
    assert "busy: under load:" in err and "0 hosts tuned, 1 not" in err
    assert not started(tmp_path / "fake")


def test_the_scheduler_goes_away(cluster, fleet, words, tunings, tmp_path):
    fakes.command(tmp_path / "fake", tunings, {"one": "zen3-sound-100"}, seconds=5.0)
    cluster.worker("one-a", "one")
    process = fleet.start(*words())
    wait_for(lambda: "one" in started(tmp_path / "fake"))
    cluster.kill("scheduler")
    out, err = process.communicate(timeout=100)
    assert process.returncode == 1
    last = err.strip().splitlines()[-1]
    assert "the scheduler went away" in last and "0 hosts kept" in last, err
    assert "Traceback" not in err


def test_a_full_disk(cluster, fleet, words, tunings, tmp_path, monkeypatch):
    """A limit on the size of files stands for it: the system refuses to write all the same."""
    fakes.command(tmp_path / "fake", tunings, {"one": "zen3-sound-100"})
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
    assert "not written:" in process.stderr and "Traceback" not in process.stderr
    assert not records.listing(tmp_path / "out")
    assert not [path for path in (tmp_path / "out").rglob("*.parquet")]


def test_no_scheduler(fleet, tmp_path):
    status, out, err = fleet(
        "tune", "--scheduler", "tcp://127.0.0.1:1", "-o", str(tmp_path / "out"), "--wait", "1s"
    )
    assert status == 1
    assert len(err.strip().splitlines()) == 1 and "no scheduler answers" in err, err


def test_no_worker(cluster, fleet, tmp_path):
    status, out, err = fleet(
        "tune", "--scheduler", cluster.address, "-o", str(tmp_path / "out"), "--wait", "1s"
    )
    assert status == 1 and "no worker joined in 1 s" in err


def test_the_command_itself(cluster, fleet, cachewise, tmp_path):
    """Seconds of the real tuner on the machine that this runs on."""
    cluster.worker("here-a", "here")
    status, out, err = fleet(
        "tune", "--scheduler", cluster.address, "--budget", "15s", "--load", "100",
        "-o", str(tmp_path / "out"), "--cachewise", cachewise,
    )  # fmt: skip
    assert status == 0, err
    words = ("merge", str(tmp_path / "out"), "--cachewise", cachewise)
    status, out, err = fleet(*words)
    assert status == 4 and "1 of at least 3 hosts" in out
    status, out, err = fleet(*words, "--hosts", "1")
    profiles = list((tmp_path / "out" / RESULT).rglob("*.profile"))
    # If others take the machine's time, so little may be too little for a profile; then it is said why.
    assert (status, len(profiles)) in ((0, 1), (4, 0)), (out, err)
    assert ("no profile: " in out) == (status == 4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tune", "--scheduler", "x", "-o", "y", "--budget", "soon"], "accepted 90s, 10min, 1h"),
        (["tune", "--scheduler", "x", "-o", "y", "--load", "101"], "accepted 0 to 100"),
        (["merge", "x", "--hosts", "0"], "accepted a whole number from 1 on"),
        ([], "required"),
    ],
)
def test_usage(fleet, words, said):
    status, out, err = fleet(*words)
    assert status == 2 and said in err
