"""The pytest plugin, by pytest's own tools: each case in a process of its own."""

import sys

import pytest

from cachewise import _command

pytest_plugins = ["pytester"]

TOUCHES = """
    import mmap
    import pytest

    def touch(pages):
        memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            memory[page * mmap.PAGESIZE] = 1

    @pytest.fixture
    def touched():
        touch(4096)

    @pytest.mark.limit_page_faults({limit})
    def test_it(touched):
        touch({pages})
"""

# The fixture copies too: that is not the test's.
COPIES = """
    import pytest

    @pytest.fixture
    def source():
        return bytes(bytearray(8 << 20))

    @pytest.mark.limit_copied({limit})
    def test_it(source):
        assert len(bytearray(source)) == {length}
"""


@pytest.mark.parametrize("pages, limit, passed", [(4096, 1000, False), (16, 4000, True), (4096, 8192, True)])
def test_a_test_fails_by_its_page_faults_alone(pytester, pages, limit, passed):
    pytester.makepyfile(TOUCHES.format(pages=pages, limit=limit))
    done = pytester.runpytest_subprocess("--strict-markers")
    done.assert_outcomes(passed=int(passed), failed=int(not passed))
    if not passed:
        done.stdout.fnmatch_lines([f"*page faults, limit_page_faults allows {limit}"])


@pytest.mark.parametrize("arguments", ["", "-1", "'many'", "1, 2"])
def test_a_mark_that_says_no_number_is_refused(pytester, arguments):
    pytester.makepyfile(TOUCHES.format(pages=1, limit=arguments))
    done = pytester.runpytest_subprocess()
    assert done.ret != 0
    done.stdout.fnmatch_lines(["*limit_page_faults: expected one number, 0 or more, found (*)*"])


@pytest.mark.parametrize("limit, passed", [("4 << 20", False), ("'12 MiB'", True)])
def test_a_test_fails_by_the_bytes_that_it_copies(pytester, limit, passed):
    pytester.makepyfile(COPIES.format(limit=limit, length=8 << 20))
    exec_under = [_command.path(), "exec", "--stats", "--"]
    done = pytester.run(*exec_under, sys.executable, "-m", "pytest", "--strict-markers")
    done.assert_outcomes(passed=int(passed), failed=int(not passed))
    if not passed:
        done.stdout.fnmatch_lines(["* bytes copied, limit_copied allows 4194304"])


@pytest.mark.parametrize("length, outcome", [(8 << 20, "skipped"), (1, "failed")])
def test_where_nothing_counts_a_test_runs_and_says_so(pytester, length, outcome):
    pytester.makepyfile(COPIES.format(limit=1, length=length))
    done = pytester.runpytest_subprocess("-ra")
    done.assert_outcomes(**{outcome: 1})
    if outcome == "skipped":
        done.stdout.fnmatch_lines(["*nothing counts copies: cachewise exec --stats -- python -m pytest"])


def test_a_size_that_is_none_is_refused(pytester):
    pytester.makepyfile(COPIES.format(limit="'much'", length=0))
    done = pytester.runpytest_subprocess()
    assert done.ret != 0
    done.stdout.fnmatch_lines(["*limit_copied: size: expected bytes with K, M, G or T behind them, found 'much'*"])
