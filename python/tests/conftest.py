"""What several files of tests need."""

import subprocess
import sys
import textwrap

import pytest

@pytest.fixture
def in_new_process():
    """Runs a program in an interpreter of its own and returns what it printed."""

    def run(program, *arguments, status=0, within=120):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), *arguments],
            capture_output=True, text=True, timeout=within,
        )  # fmt: skip
        assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return run
