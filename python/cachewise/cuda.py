"""Pinned host memory that is there at once: leased from ``cachewise scrubd``, or touched by all CPUs.

`pinned` registers memory with the NVIDIA driver, which is loaded when it is first called. Memory that a
driver allocates itself is pinned page by page by one CPU; a lease is resident, in huge pages, and only has
to be registered.
"""

import atexit
import ctypes
import mmap
import os
import threading
import weakref
from typing import Any

from ._lease import LeaseError, Memory, patience, take
from ._shown import Shown
from ._sizes import parse_size

__all__ = ["CudaError", "Pinned", "pinned"]

_PORTABLE = 1
_MADV_POPULATE_WRITE = 23
# One registration of 512 GiB or more is refused.
_PIECE = 256 << 30
_HUGE = 2 << 20


class CudaError(OSError, metaclass=Shown):
    """There is no driver or no device, or the driver refused."""


class _Driver:
    """The driver's functions, in the primary context of a device."""

    def __init__(self, device: int) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"no NVIDIA driver: {error}") from error
        number, self._context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(number), ctypes.c_int(device))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), number)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(code, ctypes.byref(text))
            said = (text.value or b"unknown").decode(errors="replace")
            raise CudaError(f"{name}: {said} (error {code})")

    def _in_context(self, name: str, *arguments: Any) -> None:
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            self._call(name, *arguments)
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def register(self, address: int, size: int) -> None:
        flags = ctypes.c_uint(_PORTABLE)
        self._in_context(
            "cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(size), flags
        )

    def unregister(self, address: int) -> None:
        self._in_context("cuMemHostUnregister", ctypes.c_void_p(address))


_drivers: dict[int, _Driver] = {}
_lock = threading.Lock()


def _driver(device: int) -> _Driver:
    with _lock:
        if device not in _drivers:
            _drivers[device] = _Driver(device)
        return _drivers[device]


class Pinned(Memory):
    """Pinned memory. It is unregistered before it is unmapped: when this object and all arrays and tensors of
    it are gone, with `close`, or when the interpreter ends."""

    leased: bool = False
    """Whether it is a lease."""
    why_not: str = ""
    """Why it is not."""
    _pieces: "list[int]"
    _by: "_Driver | None" = None

    def _register(self, driver: _Driver) -> None:
        self._pieces, self._by = [], driver
        start, size = self.address(), len(self)
        for offset in range(0, size, _PIECE):
            driver.register(start + offset, min(_PIECE, size - offset))
            self._pieces.append(start + offset)
        _alive.add(self)

    def _unregister(self) -> None:
        driver, self._by = self._by, None
        while driver is not None and self._pieces:
            try:
                driver.unregister(self._pieces.pop())
            except CudaError:
                # The device is lost, and with it what it knew.
                pass

    def torch(self, dtype: Any = None) -> Any:
        """All of it as a PyTorch tensor of one dimension, of bytes unless a type is named; it makes PyTorch's CUDA ready,
        without which ``is_pinned()`` is false for all memory."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.init()
        return super().torch(dtype)

    def close(self) -> None:
        """Unregisters and unmaps it. `BufferError` while arrays of it are left."""
        driver = self._by
        self._unregister()
        try:
            super().close()
        except BufferError:
            if driver is not None:
                self._register(driver)
            raise

    def __del__(self) -> None:
        self._unregister()


_alive: "weakref.WeakSet[Pinned]" = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    # The driver goes before the memory does: whoever still has an array has ordinary memory from here on.
    for memory in list(_alive):
        memory._unregister()


def _populate(memory: Pinned) -> None:
    """Has all CPUs that this process may use make it resident, in huge pages where there are any."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    start, size = memory.address(), len(memory)
    count = max(1, min(len(os.sched_getaffinity(0)), size // _HUGE))
    share = -(-size // count // _HUGE) * _HUGE
    failed: list[int] = []

    def part(offset: int) -> None:
        length = ctypes.c_size_t(min(share, size - offset))
        if libc.madvise(ctypes.c_void_p(start + offset), length, _MADV_POPULATE_WRITE):
            failed.append(ctypes.get_errno())

    threads = [threading.Thread(target=part, args=(offset,)) for offset in range(0, size, share)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Linux before 5.14 refuses the advice: registering makes it resident then.
    if any(number != 22 for number in failed):
        raise MemoryError(f"no memory for {size} bytes of pinned memory")


def pinned(size: "int | str", *, path: "str | None" = None, device: int = 0) -> Pinned:
    """Pinned host memory of that size, rounded up to whole huge pages, for `device` and all others.

    It comes from the server at the socket `path` (``cachewise scrubd``); if there is no lease in 1 s, and 1 s
    more for each GiB, it is private memory in huge pages, touched by all CPUs, and `why_not` says why. `CudaError` where there is no driver.
    ``pinned("32G").numpy()`` is an array, ``pinned("32G").torch()`` a tensor whose ``is_pinned()`` is true.
    """
    driver = _driver(device)
    why_not = ""
    try:
        memory = take(size, path, patience(parse_size(size)), Pinned)
        assert isinstance(memory, Pinned)
    except LeaseError as error:
        why_not = str(error)
        length = -(-parse_size(size) // _HUGE) * _HUGE
        memory = Pinned(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        _populate(memory)
    memory.leased, memory.why_not = not why_not, why_not
    memory._register(driver)
    return memory
