"""``python -m cachewise`` and the script ``cachewise``: the command, which lies in the package."""

import os
import sys
from pathlib import Path

COMMAND = Path(__file__).resolve().parent / "bin" / "cachewise"


def main() -> int:
    """Becomes the command, with this process's arguments."""
    if not COMMAND.exists():
        print(f"cachewise: {COMMAND}: not there; install the package anew", file=sys.stderr)
        return 1
    os.execv(COMMAND, [os.fspath(COMMAND), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
