# Modules of CPython's own regression tests, 22 of them in full, of types and modules that move bytes.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import test.test_bytes" "no Python with its test package (Debian: libpython3-testsuite)"
    ;;
run)
    # The outcome of each test by name. What tests print, with addresses and times, is no result.
    PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 "$(cat "$PREPARED/python")" - "$(part 22)" 2>told <<'PYTHON'
import contextlib, hashlib, importlib, os, sys, unittest
from test import support

# Nothing from the network, no sound, no gigabytes.
support.use_resources = []
MODULES = """
array binascii bisect bytes codeccallbacks copy csv fractions hmac list lzma memoryio memoryview mmap
pickletools plistlib quopri slice string struct textwrap uu
""".split()[: int(sys.argv[1])]

class Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.all = []

    def addSuccess(self, test):
        self.all.append((test.id(), "ok"))

    def addSkip(self, test, reason):
        self.all.append((test.id(), "skipped"))

    def addFailure(self, test, error):
        self.all.append((test.id(), "failed: " + str(error[0].__name__)))

    addError = addFailure

    def addExpectedFailure(self, test, error):
        self.all.append((test.id(), "failed as expected"))

with open(os.devnull, "w") as nowhere:
    outcomes = Outcomes()
    with contextlib.redirect_stdout(nowhere):
        for name in MODULES:
            try:
                module = importlib.import_module("test.test_" + name)
            except (unittest.SkipTest, ModuleNotFoundError):
                outcomes.all.append((name, "not in this Python"))
                continue
            unittest.TestLoader().loadTestsFromModule(module).run(outcomes)
for name, outcome in outcomes.all:
    if outcome.startswith("failed:"):
        print(name, outcome)
lines = "".join(f"{name} {outcome}\n" for name, outcome in outcomes.all)
print(len(outcomes.all), "tests", hashlib.sha256(lines.encode()).hexdigest())
PYTHON
    ;;
esac
