"""The build backend (PEP 517): cargo makes the command, then maturin makes the wheel.

A wheel of maturin has programs or an extension module. This one has both: the module is maturin's, and
the command lies in the package as `cachewise/bin/cachewise`, where `cachewise/__main__.py` finds it.
"""

import os
import shutil
import subprocess
from pathlib import Path

import maturin

HERE = Path(__file__).resolve().parent
COMMAND = HERE / "cachewise" / "bin" / "cachewise"


def _build_command():
    cargo = os.environ.get("CARGO", "cargo")
    arguments = [cargo, "build", "--release", "--locked", "--package", "cachewise-cli"]
    subprocess.run(arguments, cwd=HERE.parent, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    built = HERE.parent / target / "release" / "cachewise"
    COMMAND.parent.mkdir(exist_ok=True)
    # A new file in its place: the old one may be running.
    fresh = COMMAND.with_suffix(".new")
    shutil.copyfile(built, fresh)
    fresh.chmod(0o755)
    # Without what only a debugger reads.
    if strip := shutil.which("strip"):
        subprocess.run([strip, "--strip-debug", fresh], check=True)
    fresh.replace(COMMAND)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _build_command()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _build_command()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit(
        "cachewise: there is no source package of the Python part alone; build from the repository, "
        "which has the command and the libraries too: pip install ./python"
    )


get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
