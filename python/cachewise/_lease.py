"""Memory of ``cachewise scrubd``: resident and zero when it comes, kept by that server beyond this process."""

import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._shown import Shown
from ._sizes import parse_size

if TYPE_CHECKING:
    import numpy

__all__ = ["Lease", "LeaseError", "lease"]

_MESSAGE = 16384


class LeaseError(OSError, metaclass=Shown):
    """There was no lease: no server, no answer in time, or the server's reason."""


class Memory(mmap.mmap, metaclass=Shown):
    """Memory with the buffer protocol; NumPy arrays and PyTorch tensors of it keep it."""

    def numpy(self, dtype: Any = "uint8") -> "numpy.ndarray[Any, Any]":
        """All of it as a NumPy array of one dimension."""
        import numpy

        return numpy.frombuffer(self, dtype=dtype)

    def torch(self, dtype: Any = None) -> Any:
        """All of it as a PyTorch tensor of one dimension, of bytes unless a type is named."""
        import torch

        return torch.frombuffer(self, dtype=dtype or torch.uint8)

    def resize(self, newsize: int, /) -> None:
        """Refused: the memory has the size that it was taken with."""
        raise TypeError(f"resize: this memory keeps its {len(self)} bytes: expected none, found {newsize}")

    def address(self) -> int:
        """Address of its first byte."""
        # Gone before this returns, so that it keeps nothing.
        return ctypes.addressof(ctypes.c_char.from_buffer(self))


class Lease(Memory):
    """A lease as memory. It ends with the last use of it: when this object, every array of it and every
    forked child that has it are gone, or with `close`.

    It is a file mapped shared, so a child made by ``fork`` shares it: what one writes the other reads."""


def patience(count: int) -> float:
    """Seconds that a program waits which has other memory to use: 1, and 1 more for each GiB."""
    return 1 + count / (1 << 30)


def default_socket() -> str:
    """The path in ``CACHEWISE_SCRUBD``, else ``cachewise/scrubd.sock`` in ``XDG_RUNTIME_DIR`` or ``/run``."""
    if named := os.environ.get("CACHEWISE_SCRUBD"):
        return named
    if user := os.environ.get("XDG_RUNTIME_DIR"):
        path = os.path.join(user, "cachewise/scrubd.sock")
        if os.path.exists(path):
            return path
    return "/run/cachewise/scrubd.sock"


def take(
    size: "int | str", path: "str | None", timeout: "float | None", kind: Callable[[int, int], Memory]
) -> Memory:
    """A lease, as memory of that kind; `timeout` is in seconds, 10 and 10 more for each GiB if none is named."""
    place, count = path or default_socket(), parse_size(size)
    seconds = 10 * patience(count) if timeout is None else timeout
    if not 0 < seconds < 1e9:
        raise ValueError(f"timeout: expected seconds above 0, found {timeout}")
    limit = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6) or 1)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            # Python's own time limit would have `connect` fail at once where the server accepts nobody.
            for option in socket.SO_SNDTIMEO, socket.SO_RCVTIMEO:
                connection.setsockopt(socket.SOL_SOCKET, option, limit)
            connection.connect(place)
            connection.send(f"lease {count}".encode())
            answer, files, _, _ = socket.recv_fds(connection, _MESSAGE, 1)
    except BlockingIOError as error:
        raise LeaseError(
            f"{place}: no answer in {seconds:g} s: expected the socket of a `cachewise scrubd` that answers"
        ) from error
    except OSError as error:
        raise LeaseError(
            f"{place}: {error}: expected the socket of a running `cachewise scrubd`"
        ) from error
    text = answer.decode(errors="replace")
    try:
        if text.startswith("refused "):
            raise LeaseError(f"scrubd refused: {text.removeprefix('refused ')}")
        if not files or not text.startswith("lease "):
            raise LeaseError(f"{place}: expected an answer of `cachewise scrubd`, found {text!r}")
        return kind(files[0], int(text.removeprefix("lease ")))
    finally:
        for file in files:
            os.close(file)


def lease(size: "int | str", *, path: "str | None" = None, timeout: "float | None" = None) -> Lease:
    """Memory of that size, rounded up to whole huge pages, from the server at the socket `path`.

    It is a buffer: ``memoryview(lease("8G"))``, ``lease("8G").numpy()``. `LeaseError` says why there is none: also
    after `timeout` seconds, which are 10 and 10 more for each GiB if none are named.
    """
    memory = take(size, path, timeout, Lease)
    assert isinstance(memory, Lease)
    return memory
