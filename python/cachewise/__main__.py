"""``python -m cachewise`` and the script ``cachewise``: the command, which lies in the package."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cachewise import _command


def main() -> int:
    """Becomes the command, with this process's arguments, where programs are found as the user's shell finds them."""
    try:
        command = _command.path()
    except FileNotFoundError as error:
        print(f"cachewise: {error}", file=sys.stderr)
        return 1
    os.execve(command, [command, *sys.argv[1:]], users_environment(Path(sys.prefix), os.environ, Path.cwd()))


def users_environment(prefix: Path, environment: Mapping[str, str], here: Path) -> dict[str, str]:
    """The environment in which ``python`` is the user's own, for a command that lies in the environment `prefix`.

    A tool's environment (of uvx, ``uv run --with``, ``uv tool install``, pipx) leaves PATH, where its own interpreter
    would be found first; then come ``VIRTUAL_ENV``, and the nearest ``.venv`` from the folder `here` upwards. Any other
    environment is one that the user has chosen.
    """
    found = dict(environment)
    if not _is_tools(prefix):
        return found
    own = os.path.realpath(prefix / "bin")
    path = [place for place in found.get("PATH", os.defpath).split(os.pathsep) if os.path.realpath(place) != own]
    active = found.get("VIRTUAL_ENV")
    if active and os.path.realpath(active) == os.path.realpath(prefix):
        active = found.pop("VIRTUAL_ENV") and None
    if not active:
        near = (folder / ".venv" for folder in (here, *here.parents))
        active = next((str(venv) for venv in near if (venv / "bin" / "python").exists()), None)
    if active:
        path.insert(0, os.path.join(active, "bin"))
    found["PATH"] = os.pathsep.join(path)
    return found


def _is_tools(prefix: Path) -> bool:
    """True for a tool's environment: by the files that uv and pipx leave in it, or since it lies in uv's cache.

    Others tag their folders as caches, too: those of tox and of Cargo may hold environments that a user has chosen.
    """
    receipts = (prefix / name for name in ("uv-receipt.toml", "pipx_metadata.json"))
    tagged = (folder for folder in prefix.resolve().parents if (folder / "CACHEDIR.TAG").is_file())
    return any(file.is_file() for file in receipts) or any(any(folder.glob("archive-v*")) for folder in tagged)


if __name__ == "__main__":
    sys.exit(main())
