"""Files of a fleet: a record for each host, and versions of profiles. A file is whole under its name, or not there.

``DIR/records/CPU/DIGEST.jsonl.gz`` is the record of a host, ``DIR/profiles/VERSION/CPU.profile`` a merged profile.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import _records

RECORDS, PROFILES = "records", "profiles"
_BEGIN = ".cachewise-"


class FleetError(Exception):
    """Told in one line; ends the command with status 1."""


def write(path: Path, content: bytes) -> None:
    """Writes a file beside `path`, syncs it, and gives it the name. On an error nothing of it is left."""
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(prefix=_BEGIN, suffix=".new", dir=path.parent)
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FleetError(f"{path}: not written: {error.strerror or error}") from error
        raise


def digest(key: str) -> str:
    """The name of a host's file."""
    return hashlib.sha256(key.encode()).hexdigest()[:24]


def keep(directory: Path, key: str, packed: bytes) -> None:
    """Keeps the packed record of a host; `RecordError` where it is no record of a tuning."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "sent.jsonl.gz"
        file.write_bytes(packed)
        cpu = signature(header(file))
    write(directory / RECORDS / cpu / f"{digest(key)}.jsonl.gz", packed)


def header(file: Path) -> dict[str, Any]:
    """The header of a whole record of one tuning."""
    [first, *rows], *others = _records.read(file)
    if others or not any(row.get("experiment") == "tune" for row in rows):
        raise _records.RecordError(f"{file}: found no rows of a tuning")
    return first


def signature(header: dict[str, Any]) -> str:
    """The CPU model as the names of profiles have it."""
    cpu = header["machine"]["cpu"]
    return f"{cpu['vendor']}-{cpu['family']}-{cpu['model']}-{cpu['stepping']}"


def files(directory: Path) -> list[Path]:
    """The files of hosts, whatever is in them."""
    return sorted((directory / RECORDS).glob("*/*.jsonl.gz"))


def read(directory: Path) -> Iterator[tuple[Path, "dict[str, Any] | _records.RecordError"]]:
    """Every file with the header of its record, or why it is none."""
    for file in files(directory):
        try:
            yield file, header(file)
        except _records.RecordError as error:
            yield file, error


def damaged(directory: Path) -> list[tuple[Path, _records.RecordError]]:
    """Files that are no records of a tuning, and why."""
    return [(file, found) for file, found in read(directory) if isinstance(found, _records.RecordError)]


def clear_rests(directory: Path) -> None:
    """Takes away what a writer left who was killed."""
    for rest in directory.rglob(f"{_BEGIN}*.new"):
        rest.unlink(missing_ok=True)
