# NumPy: large arrays copied and read at once, copied and left, joined, filled.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import numpy" "numpy not installed"
    ;;
run)
    on_one_cpu
    OPENBLAS_NUM_THREADS=1 "$(cat "$PREPARED/python")" - "$(part 1200)" <<'PYTHON'
import sys
import numpy as np

random = np.random.RandomState(1)
frames = random.randint(0, 1 << 30, (24, 1 << 19))
total = 0
kept = np.empty((8, 1 << 19), dtype=frames.dtype)
for n in range(int(sys.argv[1])):
    frame = frames[n % 24].copy()          # read at once
    total += int(frame.sum()) & 0xFFFF
    kept[n % 8] = frames[(n * 7) % 24]     # kept for later
    if n % 100 == 0:
        total += int(kept[:, ::4096].sum()) & 0xFFFF
    joined = np.concatenate([frame[: 1 << 18], frames[n % 5][: 1 << 18]])
    total += int(joined[::512].sum()) & 0xFFFF
print(total)
PYTHON
    ;;
esac
