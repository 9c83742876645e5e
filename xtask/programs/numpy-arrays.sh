# NumPy: one operation on arrays of 64 MB, over and over.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import numpy" "numpy not installed"
    ;;
run)
    OPENBLAS_NUM_THREADS=1 "$(cat "$PREPARED/python")" - "$2" "$(part 24)" <<'PYTHON'
import hashlib, sys
import numpy as np

n = 8_000_000
a = np.arange(n, dtype=np.float64)
b = np.ones(n)

def zeros():
    z = np.zeros(n)
    z[::512] = 1.0  # one line of each 4 KiB page
    return z

work = {"expression": lambda: (a + b) * a - b, "zeros": zeros}[sys.argv[1]]
for _ in range(int(sys.argv[2])):
    result = None
    result = work()
print(sys.argv[1], result.shape, hashlib.sha256(result.tobytes()).hexdigest())
PYTHON
    ;;
esac
