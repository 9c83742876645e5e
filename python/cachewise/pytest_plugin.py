"""A pytest plugin: a test fails where it takes more page faults than its mark allows.

pytest finds it by its entry point once the package is installed::

    @pytest.mark.limit_page_faults(1000)
    def test_a_request_reuses_its_buffers():
        ...

Counted are the faults of the whole process while the test's body runs, fixtures left out.
"""

import resource
from collections.abc import Generator

import pytest

MARK = "limit_page_faults"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(most): fail where the test takes more page faults than that")


def _faults() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return (yield)
    if len(mark.args) != 1 or mark.kwargs or not isinstance(mark.args[0], int) or mark.args[0] < 0:
        raise pytest.UsageError(f"{item.nodeid}: {MARK}: found {mark.args}, accepted one number, 0 or more")
    before = _faults()
    result = yield
    taken = _faults() - before
    if taken > mark.args[0]:
        pytest.fail(f"{taken} page faults, {MARK} allows {mark.args[0]}", pytrace=False)
    return result
