"""The pytest plugin, by pytest's own tools: each case in a process of its own."""

import pytest

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
    done.stdout.fnmatch_lines(["*limit_page_faults: found (*), accepted one number, 0 or more*"])
