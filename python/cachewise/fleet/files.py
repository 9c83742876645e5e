"""Files that appear under their name whole and durable, or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from .errors import FleetError

# Temporary names begin so; no reader takes them for results.
BEGIN = ".cachewise-"


def write(path: Path, fill: Callable[[BinaryIO], object], mode: int = 0o644) -> None:
    """Lets `fill` write a file beside `path`, syncs it, and gives it the name.

    On an error what was there is there still and nothing of the new file is left.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(prefix=BEGIN, suffix=".new", dir=path.parent)
    except OSError as error:
        raise FleetError(f"{path}: not written: {error.strerror}") from error
    try:
        with os.fdopen(number, "wb") as file:
            fill(file)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FleetError(f"{path}: not written: {error.strerror or error}") from error
        raise
    sync_directory(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """`write` of bytes that are there already."""
    write(path, lambda file: file.write(content))


def sync_directory(path: Path) -> None:
    """Makes names durable, where the file system can."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    except OSError:
        pass  # The file is there; such a file system cannot promise more.
    finally:
        os.close(number)


def clear_rests(directory: Path) -> None:
    """Takes away what a writer left who was killed."""
    for rest in directory.rglob(f"{BEGIN}*.new"):
        rest.unlink(missing_ok=True)
