"""Eight ways to start the command, with real uv and pipx: `python` is the interpreter that it means to the user."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cachewise.__main__ import users_environment

# The wheel under test, as `xtask python` made it.
WHEEL = os.environ.get("CACHEWISE_TEST_WHEEL", "")
PRINTS = ["exec", "--", "python", "-c", "import sys; print(sys.prefix)"]
BEYOND = "/usr/local/bin:/usr/bin:/bin"


class User:
    """Somebody with a home, a project and the tools uv and pipx."""

    def __init__(self, home: Path) -> None:
        self.home, self.project = home, home / "project"
        (self.project / "below").mkdir(parents=True)
        self.venv = self.project / ".venv"
        # Programs named as the user types them, without the test's own Python beside them.
        (home / "bin").mkdir()
        for tool in ("uv", "uvx", "pipx"):
            (home / "bin" / tool).symlink_to(Path(sys.executable).parent / tool)
        self.environment = {
            "HOME": str(home), "PATH": f"{home}/bin:{home}/.local/bin:{BEYOND}", "UV_PYTHON": sys.executable,
            "UV_NO_PROGRESS": "1", "PIPX_DEFAULT_PYTHON": sys.executable, "TMPDIR": str(home),
        }  # fmt: skip

    def run(self, *words: "str | Path", folder: "Path | None" = None, **more: str) -> str:
        """Runs it in the project; its last line."""
        done = subprocess.run(
            list(map(str, words)), cwd=folder or self.project, env=self.environment | more,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return (done.stdout.strip().splitlines() or [""])[-1]

    def make(self, venv: Path) -> Path:
        """Makes an environment with `python` in it."""
        self.run("uv", "venv", "--quiet", "--python", sys.executable, venv)
        return venv


@pytest.fixture
def user(tmp_path):
    if not WHEEL or shutil.which("uv", path=Path(sys.executable).parent) is None:
        pytest.fail("CACHEWISE_TEST_WHEEL, uv and pipx are needed: cargo run -p xtask -- python")
    return User(tmp_path)


def test_uvx_with_an_active_environment(user):
    venv = user.make(user.home / "active")
    found = user.run("uvx", "--from", WHEEL, "cachewise", *PRINTS, VIRTUAL_ENV=str(venv))
    assert found == str(venv)


def test_uvx_in_a_project_with_an_idle_environment(user):
    venv = user.make(user.venv)
    assert user.run("uvx", "--from", WHEEL, "cachewise", *PRINTS, folder=user.project / "below") == str(venv)


def test_uv_run_with(user):
    (user.project / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "0"\nrequires-python = ">=3.11"\n')
    assert user.run("uv", "run", "--with", WHEEL, "cachewise", *PRINTS) == str(user.venv)


@pytest.mark.parametrize("tool", ["uv tool install --quiet", "pipx install --quiet"])
def test_an_installed_tool(user, tool):
    user.run(*tool.split(), WHEEL)
    venv = user.make(user.venv)
    assert user.run("cachewise", *PRINTS) == str(venv)
    active = user.make(user.home / "active")
    path = f"{active}/bin:{user.environment['PATH']}"
    assert user.run("cachewise", *PRINTS, VIRTUAL_ENV=str(active), PATH=path) == str(active)


def test_an_active_environment_of_its_own(user):
    venv = user.make(user.home / "own")
    user.make(user.venv)
    user.run("uv", "pip", "install", "--quiet", "--no-deps", "--python", venv / "bin/python", WHEEL)
    path = f"{venv}/bin:{user.environment['PATH']}"
    assert user.run("cachewise", *PRINTS, VIRTUAL_ENV=str(venv), PATH=path) == str(venv)


def test_a_conda_like_prefix_and_the_systems_python_and_tox_are_left_alone(user):
    """None of them is a tool's environment, whatever lies in the folder."""
    user.make(user.venv)
    tox = user.make(user.project / ".tox" / "py3")
    (tox.parent / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    for prefix in (user.home / "conda", Path("/usr"), tox):
        environment = {"PATH": f"{prefix}/bin:/bin", "CONDA_PREFIX": str(prefix)}
        assert users_environment(prefix, environment, user.project) == environment


def test_a_tool_finds_the_systems_python_where_there_is_no_other(user):
    (user.home / "system").mkdir()
    (user.home / "system" / "python").symlink_to(sys.executable)
    path = f"{user.home}/system:{user.environment['PATH']}"
    found = user.run("uvx", "--from", WHEEL, "cachewise", "exec", "--", "sh", "-c", "command -v python", PATH=path)
    assert found == f"{user.home}/system/python"
