# Arrays copied, shifted, joined, sorted and compared.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import numpy" "numpy not installed"
    ;;
run)
    OPENBLAS_NUM_THREADS=1 "$(cat "$PREPARED/python")" - "$(part 100)" <<'PYTHON'
import hashlib, sys
import numpy as np

def show(name, array):
    print(name, array.shape, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest())

random = np.random.RandomState(1)
percent = int(sys.argv[1])
for n in (100, 3000, 100_000, 3_000_000):
    a = random.randint(0, 1 << 30, n)
    rounds = max(1, max(3, 3_000_000 // n // 10) * percent // 100)
    for _ in range(rounds):
        b = a.copy()
        b[1:] = b[:-1]
        c = np.concatenate([a, b, a[::-1]])
        z = np.zeros_like(c)
        z[: len(a)] = a
        same = np.array_equal(a, b)
    show("copied", c)
    show("zeroed", z)
    show("sorted", np.sort(c, kind="stable"))
    show("bytes", np.frombuffer(c.tobytes()[::-1], dtype=np.uint8))
    print(same, a.tobytes() == a.copy().tobytes(), a.tobytes() < b.tobytes())
m = random.rand(1200, 700)
show("transposed", np.ascontiguousarray(m.T))
show("stacked", np.vstack([m, m[::-1]]))
show("rolled", np.roll(m, 12345))
PYTHON
    ;;
esac
