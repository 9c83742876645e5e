# What several scripts need: . "$COMMON" (a file beside the script; see xtask/src/programs.rs).

# Ends `prepare` where a program is missing.
need() {
    for program in "$@"; do
        command -v "$program" >/dev/null || { echo "$program not installed"; exit 77; }
    done
}

# A number of things, or as many as a smaller input has: PERCENT of them, 1 at the least.
part() {
    echo $((($1 * ${PERCENT:-100} + 99) / 100))
}

# need_python STATEMENTS MISSING: the Python that can do so is named in the file `python`. The
# interpreter itself: what is found first may be a script that looks for it each time.
need_python() {
    for python in ${PYTHON:-} python3 /usr/bin/python3; do
        if "$python" -c "$1; import sys; print(sys.executable)" >python 2>/dev/null; then
            return
        fi
    done
    echo "$2"
    exit 77
}

# repeated_work TIMES: runs the Python program on standard input, which defines work() and report(result).
# work() is called once, and then TIMES times.
repeated_work() {
    {
        cat
        cat <<'PYTHON'

import sys
result = work()
for _ in range(int(sys.argv[1])):
    result = work()
report(result)
PYTHON
    } >program.py
    "$(cat "$PREPARED/python")" program.py "$1"
}

# material BYTES FILE...: so much of these files, in the file `material`.
material() {
    bytes=$1
    shift
    cat "$@" 2>/dev/null | head -c "$bytes" >material
}
