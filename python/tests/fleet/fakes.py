"""Hosts that are made up of simulated tunings, and the command that plays `cachewise tune` on them."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from cachewise.fleet import records

ROOT = Path(__file__).resolve().parents[3]

COMMAND = '''#!{python}
"""Plays `cachewise tune`: leaves what the simulated tuner left for the host of this name."""
import os, shutil, sys, time
from pathlib import Path

words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
host = os.environ["CACHEWISE_FLEET_HOST"]
there = Path({directory!r})
(there / ("by-" + host)).write_text(str(os.getppid()))
with open(there / "runs", "a") as runs:
    runs.write(host + "\\n")
inside = there / ("inside-" + host)
inside.mkdir()  # Two at once on one host: refused.
time.sleep(float((there / "seconds").read_text()))
inside.rmdir()
if host.startswith("broken"):
    sys.exit("cachewise: this CPU does not do that")
if host.startswith("garbage"):
    Path(value("--record")).write_text("{{}}\\n")
    Path(value("--output")).write_text("")
    sys.exit(0)
stem = (there / "of" / host).read_text()
shutil.copy(Path({source!r}) / (stem + ".profile"), value("--output"))
shutil.copy(Path({source!r}) / (stem + ".record.jsonl"), value("--record"))
'''


def command(directory: Path, source: Path, hosts: dict[str, str], seconds: float = 0.0) -> Path:
    """Writes the command; `hosts` says which simulated tuning each host has."""
    (directory / "of").mkdir(parents=True)
    (directory / "seconds").write_text(str(seconds))
    (directory / "runs").write_text("")
    for host, stem in hosts.items():
        (directory / "of" / host).write_text(stem)
    path = directory / "cachewise"
    text = COMMAND.format(python=sys.executable, directory=str(directory), source=str(source))
    path.write_text(text)
    path.chmod(0o755)
    return path


def runs(directory: Path) -> list[str]:
    """The hosts that the command ran on, in order."""
    return (directory / "runs").read_text().split()


def runner(directory: Path, host: str) -> int:
    """The process that started the command on that host."""
    return int((directory / f"by-{host}").read_text())


def simulated(source: Path, stem: str, host: str) -> records.Tuning:
    """A simulated tuning as a host of that name sends it."""
    profile = (source / f"{stem}.profile").read_text()
    record = (source / f"{stem}.record.jsonl").read_text()
    return records.Tuning(host, host, profile, record, 60.0, 0.0)


def fleet(source: Path, model: str, conditions: Iterable[tuple[str, int]], directory: Path) -> list[str]:
    """Stores hosts of a model: so many of each condition. Returns their names."""
    names = []
    for condition, many in conditions:
        stems = sorted(
            path.name.removesuffix(".profile") for path in source.glob(f"{model}-{condition}-*.profile")
        )
        assert len(stems) >= many, f"{source}: {len(stems)} of {many} of {model}-{condition}"
        for stem in stems[:many]:
            names.append(stem)
            records.write(directory, simulated(source, stem, stem))
    return names


def simulate(directory: Path, seeds: int) -> None:
    """Has the simulated tuner leave its tunings."""
    # With the features that a whole build has: what it compiled is not compiled again.
    words = ["cargo", "test", "--locked", "-q", "--workspace", "--test", "machines", "fleet"]
    words += ["--", "--include-ignored"]
    environment = {**os.environ, "CACHEWISE_FLEET": str(directory), "SEEDS": str(seeds)}
    subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True)
