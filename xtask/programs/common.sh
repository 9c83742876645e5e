# What several scripts need: . "$COMMON" (a file beside the script; see xtask/src/whole/script.rs).

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

# This script and what it starts stay on one CPU, the last that they may use. A program of one thread,
# or of two that wait for each other, then takes what it takes, not what moving from CPU to CPU and
# waking the other one cost this time: Redis' runs spread a quarter as far, NumPy's a third.
on_one_cpu() {
    command -v taskset >/dev/null || return 0
    cpu=$(taskset -cp $$ 2>/dev/null | sed 's/.*[ ,-]//')
    taskset -cp "$cpu" $$ >/dev/null 2>&1 || true
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

# timed_work TIMES: runs the Python program on standard input, which defines work() and report(result).
# work() is called once, and then TIMES times, timed.
timed_work() {
    {
        cat
        cat <<'PYTHON'

import os, sys, time
result = work()
seconds = 0.0
for _ in range(int(sys.argv[1])):
    begun = time.perf_counter()
    result = work()
    seconds += time.perf_counter() - begun
with open(os.environ["SECONDS_FILE"], "w") as file:
    file.write(repr(seconds))
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

need_redis() {
    need redis-server redis-benchmark
}

# start_redis OPTION...: a server on the socket `socket`, ended with the script.
start_redis() {
    redis-server --port 0 --unixsocket "$PWD/socket" --dir "$PWD" --save '' --appendonly no "$@" \
        --daemonize no >server.log 2>&1 &
    server=$!
    trap 'kill $server 2>/dev/null || true' EXIT
}

# Waits for it. Apart from its start: the library may be the server's alone.
await_redis() {
    tries=0
    until ask ping >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 1000 ] || { echo "no answer"; cat server.log; exit 1; }
        sleep 0.01
    done
}

ask() {
    redis-cli -s socket "$@"
}

# What the small and the long values of redis-benchmark left in the server; then its end.
redis_contents() {
    ask dbsize
    ask strlen key:__rand_int__
    ask llen mylist
    ask get counter:__rand_int__
    ask eval 'local t = {} for i = 1, 20000 do t[i] = i .. string.rep("x", i % 50) end
        redis.call("set", "joined", table.concat(t)) return redis.sha1hex(redis.call("get", "joined"))' 0
    stop_redis
}

stop_redis() {
    ask shutdown nosave >/dev/null 2>&1 || true
    wait $server
}

# The directory of PostgreSQL's programs, if there is one.
postgres_programs() {
    ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true
}

# need_postgres DIRECTORY: its programs, and a user to run them as, which root may not do.
need_postgres() {
    [ -n "$1" ] && [ -x "$1/initdb" ] && [ -x "$1/pgbench" ] ||
        { echo "PostgreSQL or pgbench not installed"; exit 77; }
    if [ "$(id -u)" = 0 ]; then
        id postgres >/dev/null 2>&1 || { echo "no user postgres to run it as"; exit 77; }
        need setpriv
    fi
}

# as_postgres STEP: goes on with that step of the script; root as the user postgres, whom this
# directory is given.
as_postgres() {
    [ "$(id -u)" = 0 ] || return 0
    chown postgres .
    exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$SCRIPT" "$1"
}

# start_postgres BIN OPTIONS: a server of the directory `data`, on a socket here, ended with the
# script.
start_postgres() {
    bin=$1
    "$bin/pg_ctl" -D data -l server.log -w -s start -o "-c listen_addresses= -k $PWD -c fsync=off \
        -c shared_buffers=128MB -c autovacuum=off $2" >>told 2>&1
    trap '"$bin/pg_ctl" -D data -w -s -m immediate stop >/dev/null 2>&1 || true' EXIT
}

# new_postgres BIN: the directory `data`.
new_postgres() {
    "$1/initdb" -D data -A trust -U bench --no-sync -E UTF8 --locale=C >told 2>&1
}

# The step `prepare`: a server's directory in `made`, by the step `make`.
prepare_postgres() {
    need_postgres "$1"
    mkdir made
    cd made
    as_postgres make
    exec sh "$SCRIPT" make
}
