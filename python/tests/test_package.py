"""What was installed: the command, the stubs, and examples that do what they say."""

import importlib.metadata
import inspect
import mmap
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import cachewise
import pytest

MODULES = ["cachewise", "cachewise._core", "cachewise._records", "cachewise._sizes"]


def public():
    for name in cachewise.__all__:
        yield name, getattr(cachewise, name)


RUN_EXAMPLES = """
import doctest, importlib, inspect, sys
module = importlib.import_module(sys.argv[1])
finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
found = finder.find(module, module.__name__)
# doctest does not look into functions of machine code.
for name, function in inspect.getmembers(module, inspect.isbuiltin):
    found += finder.find(function, f"{module.__name__}.{name}", module=False)
for test in found:
    runner.run(test)
failed, tried = runner.summarize()
sys.exit(failed > 0 or tried < int(sys.argv[2]))
"""


@pytest.mark.parametrize("module", MODULES)
def test_examples(in_new_process, module):
    least = 3 if module in ("cachewise", "cachewise._core") else 0
    in_new_process(RUN_EXAMPLES, module, str(least))


RUN_GUIDE = """
import doctest, re, sys
text = open("docs/guide/python.md", encoding="utf-8").read()
# A block's closing fence would be taken for what its last line prints.
text = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
test = doctest.DocTestParser().get_doctest(text, {}, "python.md", "docs/guide/python.md", 0)
failed, tried = doctest.DocTestRunner().run(test)
sys.exit(failed > 0 or tried < 10)
"""


def test_the_guide(in_new_process, monkeypatch):
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    in_new_process(RUN_GUIDE)


def test_everything_public_is_documented():
    for name, item in public():
        assert inspect.getdoc(item), name
        for member, method in inspect.getmembers(item, inspect.isroutine) if inspect.isclass(item) else []:
            if not member.startswith("_") and member in vars(item):
                assert inspect.getdoc(method), f"{name}.{member}"


def test_help_shows_what_this_package_adds():
    for module in [cachewise, importlib.import_module("cachewise.cuda")]:
        said = pydoc.render_doc(module, renderer=pydoc.plaintext)
        assert "inherited from builtins" not in said and "inherited from mmap" not in said
        assert "with_traceback" not in said and "madvise" not in said
    # All is there still.
    assert "with_traceback" in dir(cachewise.LeaseError("why")) and cachewise.LeaseError(5, "why").errno == 5
    assert pickle.loads(pickle.dumps(cachewise.RecordError("why"))).args == ("why",)
    assert issubclass(cachewise.Lease, mmap.mmap)


def test_the_command():
    assert cachewise.__version__ == importlib.metadata.version("cachewise")
    for way in ([sys.executable, "-m", "cachewise"], ["cachewise"]):
        said = subprocess.run([*way, "--version"], capture_output=True, text=True, check=True).stdout
        assert said == f"cachewise {importlib.metadata.version('cachewise')}\n"
        refused = subprocess.run([*way, "run", "no-experiment"], capture_output=True, text=True)
        assert refused.returncode == 2 and "no-experiment" in refused.stderr


def test_programs_run_on_the_library_inside_the_command(tmp_path):
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    run = [sys.executable, "-m", "cachewise", "exec", "--", "/bin/cat", "/proc/self/maps"]
    said = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    assert "libcachewise_preload.so" in said


def test_the_example_of_the_readme_prints_the_same_each_time():
    script = Path(__file__).resolve().parents[1] / "examples" / "columns.py"
    said = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    assert said == "1.590965987e+08\n"
