#!/bin/sh
# The record of an NVIDIA GPU as zeroing engine, and of pinned memory: one command, five minutes at most.
#
#   sh xtask/gpu/run.sh CACHEWISE FOLDER [SIZE [PYTHON]]
#
# CACHEWISE is the program (cargo build --release -p cachewise-cli); FOLDER gets what is found; SIZE is how much is
# pinned (8G); PYTHON has the package, and without it pinned memory is left out. Nothing else need be installed.
set -u
[ $# -ge 2 ] || { sed -n '4,7s/^# *//p' "$0" >&2; exit 2; }
program=$1 folder=$2 size=${3:-8G} python=${4:-}
here=$(dirname "$0")
mkdir -p "$folder" || exit 1
cpu=$(uname -m)
"$program" doctor --json >"$folder/doctor.json"
if grep -q 'no GPU: ' "$folder/doctor.json"; then
    grep -o 'no GPU: [^)]*)*' "$folder/doctor.json" >&2
    exit 1
fi
{ nvidia-smi; lscpu; uname -r; grep . /sys/kernel/mm/transparent_hugepage/*enabled; } >"$folder/host.txt" 2>&1
record=$folder/$(date +%F)-zeroing-engines-$cpu.jsonl
timeout 200 "$program" run zeroing-engines --quick --launches 6 --json "$record" >"$folder/zeroing-engines.txt" 2>&1
status=$?
if [ -z "$python" ]; then
    echo "left out pinned memory: no PYTHON with the package" >&2
    exit $status
fi
socket=$folder/socket
timeout 140 "$program" scrubd --size "$size" --segment "$size" --socket "$socket" 2>"$folder/scrubd.txt" &
server=$!
while [ ! -S "$socket" ]; do
    kill -0 $server 2>/dev/null || { cat "$folder/scrubd.txt" >&2; exit 1; }
    sleep 0.1
done
timeout 120 "$python" "$here/../../python/examples/pinned.py" --size "$size" --rounds 3 --socket "$socket" \
    >"$folder/pinned.jsonl" || status=1
kill $server
wait $server
exit $status
