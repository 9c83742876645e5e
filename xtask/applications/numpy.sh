# NumPy: one operation on arrays of 64 MB, over and over; the operation alone is timed.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import numpy" "numpy not installed"
    ;;
run)
    OPENBLAS_NUM_THREADS=1 "$(cat "$PREPARED/python")" - "$2" "$(part 12)" <<'PYTHON'
import hashlib, os, sys, time
import numpy as np

n = 8_000_000
a = np.arange(n, dtype=np.float64)
b = np.ones(n)

def zeros():
    z = np.zeros(n)
    z[::512] = 1.0  # one line of each 4 KiB page
    return z

work = {"expression": lambda: (a + b) * a - b, "zeros": zeros}[sys.argv[1]]
for _ in range(2):
    result = work()
seconds = 0.0
for _ in range(int(sys.argv[2])):
    result = None
    begun = time.perf_counter()
    result = work()
    seconds += time.perf_counter() - begun
    time.sleep(0.01)  # a program does something else between
with open(os.environ["SECONDS_FILE"], "w") as file:
    file.write(repr(seconds))
print(sys.argv[1], result.shape, hashlib.sha256(result.tobytes()).hexdigest())
PYTHON
    ;;
esac
