"""A pytest plugin: a test fails where it takes more page faults, or copies more, than its mark allows.

pytest finds it by its entry point once the package is installed::

    @pytest.mark.limit_page_faults(1000)
    @pytest.mark.limit_copied("64 MiB")
    def test_a_request_reuses_its_buffers():
        ...

Counted is the whole process while the test's body runs, fixtures left out. Bytes of ``memcpy`` and ``memmove`` are
counted under ``cachewise exec --stats -- python -m pytest``; elsewhere a test with that mark runs and is then skipped.
"""

# pytest loads this unasked, whatever its version: nothing here is newer than pytest 6, annotations are not evaluated,
# and no hook is a wrapper, of which pluggy has had two kinds.
from __future__ import annotations

import ctypes
import functools
import resource
from collections.abc import Callable

import pytest

from cachewise._sizes import parse_size


def _faults() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


def _copied() -> int | None:
    counted = getattr(ctypes.CDLL(None), "cw_copied_bytes", None)
    if counted is None:
        return None
    counted.restype = ctypes.c_uint64
    taken = int(counted())
    # All ones: the library is there, and nobody asked it to count.
    return None if taken == (1 << 64) - 1 else taken


# Counters by mark; a size may be text.
_LIMITS: dict[str, tuple[Callable[[], int | None], str]] = {
    "limit_page_faults": (_faults, "page faults"),
    "limit_copied": (_copied, "bytes copied"),
}


def pytest_configure(config: pytest.Config) -> None:
    for mark, (_, unit) in _LIMITS.items():
        config.addinivalue_line("markers", f"{mark}(most): fail where the test has more {unit} than that")


def _most(item: pytest.Item, mark: pytest.Mark) -> int:
    most = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
    if isinstance(most, str) and mark.name == "limit_copied":
        try:
            return parse_size(most)
        except ValueError as error:
            raise pytest.UsageError(f"{item.nodeid}: {mark.name}: {error}") from None
    if not isinstance(most, int) or most < 0:
        raise pytest.UsageError(f"{item.nodeid}: {mark.name}: expected one number, 0 or more, found {mark.args}")
    return most


def pytest_runtest_setup(item: pytest.Item) -> None:
    marks = [mark for mark in map(item.get_closest_marker, _LIMITS) if mark is not None]
    # Set up again by a plugin that repeats tests: limited already.
    if marks and not hasattr(item.runtest, "limited_by_cachewise"):
        item.runtest = _limited(item.runtest, {mark.name: _most(item, mark) for mark in marks})  # type: ignore[method-assign]


def _limited(run: Callable[[], None], most: dict[str, int]) -> Callable[[], None]:
    """The body of a test, and then the comparison with what it may use."""

    @functools.wraps(run)
    def limited() -> None:
        before = {name: _LIMITS[name][0]() for name in most}
        run()
        after = {name: _LIMITS[name][0]() for name in most}
        uncounted = False
        for name, allowed in most.items():
            first, last = before[name], after[name]
            if first is None or last is None:
                uncounted = True
            elif last - first > allowed:
                pytest.fail(f"{last - first} {_LIMITS[name][1]}, {name} allows {allowed}", pytrace=False)
        if uncounted:
            pytest.skip("passed, but nothing counts copies: cachewise exec --stats -- python -m pytest")

    setattr(limited, "limited_by_cachewise", True)  # noqa: B010, a type checker refuses the plain form
    return limited
