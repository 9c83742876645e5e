# pandas: columns made, filtered, grouped and joined.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import pandas" "pandas not installed"
    ;;
run)
    export OPENBLAS_NUM_THREADS=1
    repeated_work "$(part 8)" <<'PYTHON'
import numpy as np
import pandas as pd

n = 1_000_000
random = np.random.default_rng(1)
frame = pd.DataFrame({"key": random.integers(0, 1000, n), "a": random.random(n), "b": random.random(n)})
names = pd.DataFrame({"key": np.arange(1000), "weight": np.arange(1000) / 7.0})

def work():
    some = frame[frame.a > 0.25].copy()
    some["c"] = some.a * 2.0 + some.b
    joined = some.merge(names, on="key")
    joined["d"] = joined.c * joined.weight
    return joined.groupby("key")[["c", "d"]].sum()

def report(result):
    print(result.round(6).sum().to_dict(), len(result))
PYTHON
    ;;
esac
