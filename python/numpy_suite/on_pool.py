"""A plugin of pytest: NumPy's own tests, with every array's data from the pool, however small.

    PYTHONPATH=python/numpy_suite pytest --pyargs numpy -p on_pool -n 2 -m "not slow"
"""

import cachewise.numpy
import pytest

# Files and folders that cannot apply, and why.
LEFT_OUT = {
    "f2py": "compiles Fortran with meson, and makes no arrays otherwise than the rest",
    "test_mem_policy.py": "sets memory handlers of its own, and expects NumPy's default one before and after",
}


def on_pool():
    cachewise.numpy.enable("2G", smallest=1)


def pytest_configure(config):
    on_pool()


def pytest_ignore_collect(collection_path):
    return True if LEFT_OUT.keys() & set(collection_path.parts) else None


@pytest.fixture(autouse=True)
def every_test_is_on_the_pool():
    """A test that ended without setting the handler back would leave the next ones without."""
    if not cachewise.numpy.is_enabled():
        on_pool()


def pytest_sessionfinish(session):
    # The process that only hands tests out to others makes no arrays itself.
    hands_out = getattr(session.config.option, "dist", "no") != "no" and not hasattr(session.config, "workerinput")
    if session.testscollected and not hands_out and not cachewise.numpy.stats()["served"]:
        raise RuntimeError("on_pool: no array had memory of the pool")
