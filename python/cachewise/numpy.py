"""NumPy's arrays in memory that is resident and known to be zero.

`enable` has NumPy take the data of arrays of 128 KiB to 256 MiB from a pool of prezeroed pages: neither
page faults nor zeroing when they are made. Smaller and larger ones, and what the pool cannot serve, are
NumPy's own as before. It is NumPy's interface for that (NEP 49): the setting is one of a context
(`contextvars`), and each array remembers where its memory is from, so it may outlive `disable`.

>>> import numpy as np
>>> import cachewise.numpy
>>> with cachewise.numpy.enable(pool="64M"):
...     grid = np.zeros((512, 512)) + 1
>>> float(grid.sum())
262144.0
"""

import contextlib
import functools
import importlib
import threading
import types
from collections.abc import Iterator
from typing import Any, TypedDict, cast

import numpy

from . import _core
from ._sizes import parse_size

__all__ = ["Enabled", "Stats", "disable", "enable", "is_enabled", "stats"]


class Stats(TypedDict):
    """What the pool did in this process. Counts of arrays; bytes and nanoseconds where the name says so."""

    served: int
    """Arrays that were given memory of the pool."""
    full: int
    """Arrays that were not, as no free memory of the pool was left for them."""
    too_large: int
    """Arrays that were not, as they had more than 256 MiB."""
    other: int
    """Arrays that were not for another reason: another thread was in the pool, the system had no memory."""
    found_zeroed: int
    """Arrays of zeros that found memory that was zeroed before."""
    not_zeroed: int
    """Arrays of zeros whose memory was zeroed or faulted in when they were made."""
    zeroed_in_background_bytes: int
    zeroed_in_background_ns: int
    """Time of a CPU that it took."""
    zeroed_at_hand_out_bytes: int
    faulted_at_hand_out_bytes: int
    given_back_bytes: int
    """Bytes that went back to the system."""
    in_use_bytes: int
    most_in_use_bytes: int
    resident_bytes: int
    capacity_bytes: int
    load_rests: int
    """Number of times that zeroing in the background rested, as no CPU was idle."""
    has_thread: int
    """1 where the thread that zeroes in the background runs: it starts when memory is first freed."""


def _array_api() -> tuple[object, str]:
    """NumPy's table of C functions, of a version whose interface is known."""
    version = numpy.__version__
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < (1, 26) or major > 2:
        raise ImportError(f"NumPy {version}: found an unknown version, accepted 1.26 and 2.x")
    core = "numpy.core" if major == 1 else "numpy._core"
    return importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API, version


class Enabled(contextlib.AbstractContextManager["Enabled", None]):
    """What `enable` returns. As a context manager it brings back, at the end, the handler of before."""

    def __init__(self, before: object) -> None:
        self._before: object | None = before

    def __exit__(self, *_exception: object) -> None:
        if self._before is not None:
            _core.handler_use(_array_api()[0], self._before)
            self._before = None

    def __repr__(self) -> str:
        return f"<cachewise.numpy: {'enabled' if is_enabled() else 'not enabled'} in this context>"


def enable(pool: "int | str" = "1G", *, smallest: "int | str | None" = None) -> Enabled:
    """Has NumPy take large arrays' memory from the pool, in this context and those copied from it.

    Threads of `threading` (and so of `concurrent.futures`) take over the setting of the thread that
    starts them, as tasks of `asyncio` do anyway; other threads call `enable` themselves. Children by
    ``fork`` have a pool of their own, a copy.

    Parameters
    ----------
    pool : int or str
        Bytes at most, as a number or like ``"512M"``, ``"1G"``. It is address space: memory is taken as
        arrays need it, and goes back when it was idle for two seconds. There is one pool in a process, made by
        the first call; a later one names the same size.
    smallest : int or str, optional
        Bytes of the smallest array that is the pool's, ``"128K"`` by default. The pool hands out whole
        pages, and smaller blocks gain little. It holds for all contexts.

    Returns
    -------
    Enabled
        For ``with``; may be dropped otherwise.

    Raises
    ------
    ImportError
        NumPy of a version that is not 1.26 or 2.x.
    ValueError
        A size that is none, or more than the memory this process may use.
    RuntimeError
        There is a pool of another size.

    Examples
    --------
    >>> import numpy as np, cachewise.numpy
    >>> with cachewise.numpy.enable(pool="64M"):
    ...     table = np.zeros(100_000)
    >>> table[0] = 1  # from the pool, for as long as it lives
    """
    api, version = _array_api()
    least = None if smallest is None else parse_size(smallest)
    _core.pool_make(api, version, parse_size(pool), least)
    before = _core.pool_use(api)
    _inherit_in_threads()
    return Enabled(before)


def disable() -> None:
    """Has NumPy take memory from its own handler again, in this context. Arrays of the pool stay good."""
    _core.handler_use(_array_api()[0], None)


def is_enabled() -> bool:
    """Whether arrays made in this context are given memory of the pool."""
    return _core.pool_is_used(_array_api()[0])


def stats() -> "Stats | None":
    """What the pool did in this process so far; None before the first `enable`.

    >>> import cachewise.numpy
    >>> with cachewise.numpy.enable(pool="64M"):
    ...     cachewise.numpy.stats()["capacity_bytes"]
    67108864
    """
    return cast("Stats | None", _core.pool_stats())


def _inherit_in_threads() -> None:
    """From now on a thread begins with its starter's setting: a new thread has an empty context."""
    start: Any = threading.Thread.start
    if hasattr(start, "_cachewise"):
        return

    @functools.wraps(start)
    def start_inheriting(self: threading.Thread, *arguments: Any, **named: Any) -> Any:
        if not is_enabled():
            return start(self, *arguments, **named)
        with _run_enabled(self):
            return start(self, *arguments, **named)

    vars(start_inheriting)["_cachewise"] = True
    setattr(threading.Thread, "start", start_inheriting)  # noqa: B010, a type checker refuses the plain form


@contextlib.contextmanager
def _run_enabled(thread: threading.Thread) -> Iterator[None]:
    """Has the thread enable the pool before its `run`; where it could not be started, it is as it was.

    Other packages replace `run` in the same way, and call what they found as a method, as its function, with
    any arguments: so this is a method, and hands on what it is called with.
    """
    of_its_own = vars(thread)
    missing = object()
    own, found = of_its_own.get("run", missing), thread.run

    def restore() -> None:
        if of_its_own.get("run") is not ours:
            return
        if own is missing:
            del of_its_own["run"]
        else:
            of_its_own["run"] = own

    def run(_thread: threading.Thread, *arguments: Any, **named: Any) -> Any:
        restore()
        _core.pool_use(_array_api()[0])
        return found(*arguments, **named)

    ours = of_its_own["run"] = types.MethodType(run, thread)
    try:
        yield
    except BaseException:
        restore()
        raise
