"""The `cachewise` command, which writes and reads profiles for us."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .errors import FleetError


def find(named: str | None) -> str:
    """The command: the one that was named, or the one of this Python, or the one on the PATH."""
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise FleetError(f"{named}: no such command; accepted: a path of cachewise", 2)
        return found
    beside = Path(sys.executable).parent / "cachewise"
    found = str(beside) if beside.is_file() else shutil.which("cachewise")
    if found is None:
        raise FleetError("cachewise: not found on the PATH; name it with --cachewise")
    return found


def decide(command: str, record: Path, profile: Path) -> None:
    """Decides from a record and writes the profile, as `cachewise tune --from` does."""
    # No profile that happens to be in force here may be preferred.
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "XDG_CONFIG_HOME": empty}
        words = [command, "tune", "--from", str(record), "--output", str(profile)]
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = ended.stderr.strip().splitlines()
        raise FleetError(f"{record}: {said[0] if said else 'cachewise tune --from failed'}")


def check(command: str, profile: Path) -> None:
    """Lets the command read a profile."""
    words = [command, "export", "json", "--profile", str(profile)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = ended.stderr.strip().splitlines()
        raise FleetError(said[0] if said else f"{profile}: not read")
