"""``python -m cachewise`` and the script ``cachewise``: the command, which lies in the package."""

import os
import sys

from cachewise import _command


def main() -> int:
    """Becomes the command, with this process's arguments."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"] and any(word.startswith("--pool") or word.endswith(".py") for word in arguments):
        told = "accepted an experiment; python -m cachewise.run --pool SIZE runs a Python program"
        print(f"cachewise: run: found a Python program, {told}", file=sys.stderr)
        return 2
    try:
        command = _command.path()
    except FileNotFoundError as error:
        print(f"cachewise: {error}", file=sys.stderr)
        return 1
    os.execv(command, [command, *arguments])


if __name__ == "__main__":
    sys.exit(main())
