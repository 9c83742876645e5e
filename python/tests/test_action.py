"""The composite action's last step, as a runner runs it, with a command of the test's own."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ACTION = Path(__file__).resolve().parents[2] / "packaging/action/action.yml"

COMMAND = """#!/bin/sh
echo "$@" >> "$RUNNER_TEMP/called"
[ "$1" = run ] || exit $STATUS
"""


@pytest.mark.parametrize("status, ends_with", [(0, 0), (1, 1), (3, 3), (4, 0)])
def test_a_regression_fails_and_not_told_apart_does_not(tmp_path, status, ends_with):
    action = yaml.safe_load(ACTION.read_text())
    step = action["runs"]["steps"][-1]
    # A name that nobody holds in a registry is no default.
    assert action["inputs"]["wheel"] == {"description": "What pip installs, a file or a name", "required": True}
    named = {name: str(action["inputs"][name].get("default", f"the {name}")) for name in action["inputs"]}
    assert set(step["env"].values()) <= {f"${{{{ inputs.{name} }}}}" for name in named}
    command = tmp_path / "cachewise"
    command.write_text(COMMAND)
    command.chmod(0o755)
    values = {name: named[value.split(".")[1].split()[0]] for name, value in step["env"].items()}
    environment = os.environ | values | {"RUNNER_TEMP": str(tmp_path), "STATUS": str(status)}
    environment["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-e", "-c", step["run"]], env=environment, capture_output=True, text=True)
    assert done.returncode == ends_with, done.stderr
    assert ("::warning::" in done.stdout) == (status == 4)
    new = tmp_path / "cachewise.jsonl"
    assert (tmp_path / "called").read_text().splitlines() == [
        f"run the experiment --quick --launches 12 --json {new}", f"compare the kept {new}",
    ]  # fmt: skip
