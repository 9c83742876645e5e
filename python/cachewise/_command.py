"""The command that lies in the package."""

import os
import subprocess
from pathlib import Path

from ._shown import Shown

COMMAND = Path(__file__).resolve().parent / "bin" / "cachewise"


class CommandError(RuntimeError, metaclass=Shown):
    """The command failed. `status` is its exit status, the message what it said."""

    def __init__(self, status: int, said: str):
        super().__init__(said)
        self.status = status


def path() -> str:
    """The command's file, which is there."""
    if not os.access(COMMAND, os.X_OK):
        raise FileNotFoundError(f"{COMMAND}: expected the package as pip installs it, found no program")
    return os.fspath(COMMAND)


def output(*arguments: str, show_progress: bool = False) -> str:
    """What the command prints. Its progress is shown on this process's stderr, or else kept for errors."""
    stderr = None if show_progress else subprocess.PIPE
    done = subprocess.run(
        [path(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8"
    )
    if done.returncode == 0:
        return done.stdout
    said = (done.stderr or "").strip() or f"cachewise {' '.join(arguments)}: status {done.returncode}, see above"
    raise CommandError(done.returncode, said)
