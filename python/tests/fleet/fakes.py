"""The command that plays `cachewise tune` on hosts: it leaves a kept record, its times a little off on each host."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "record" / "2026-11-27-tune-quick-zen4-guest.jsonl.gz"
CPU = "AuthenticAMD-25-17-1"

COMMAND = '''#!{python}
"""Plays `cachewise tune`."""
import gzip, json, os, random, sys, time
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
Path(value("--output")).write_text("")
if host.startswith("garbage"):
    Path(value("--record")).write_text("{{}}\\n")
    sys.exit(0)
random.seed(host)
with gzip.open({record!r}, "rt") as lines, open(value("--record"), "w") as record:
    for line in lines:
        item = json.loads(line)
        if item["type"] == "header" and host.startswith("small"):
            item["machine"]["caches"]["llc"]["bytes"] //= 4
        if item["type"] == "row":
            off = 1 + random.uniform(-0.005, 0.005)
            item["operation_ns"] = [time and time * off for time in item["operation_ns"]]
        record.write(json.dumps(item) + "\\n")
'''


def command(directory: Path, seconds: float = 0.0) -> Path:
    """Writes the command."""
    directory.mkdir(parents=True)
    (directory / "seconds").write_text(str(seconds))
    (directory / "runs").write_text("")
    path = directory / "cachewise"
    path.write_text(COMMAND.format(python=sys.executable, directory=str(directory), record=str(RECORD)))
    path.chmod(0o755)
    return path


def runs(directory: Path) -> list[str]:
    """The hosts that the command ran on, in order."""
    return (directory / "runs").read_text().split()


def runner(directory: Path, host: str) -> int:
    """The process that started the command on that host."""
    return int((directory / f"by-{host}").read_text())
