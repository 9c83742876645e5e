# pgbench, and long text; the servers run as another user where the tool runs as root.
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true)
case $1 in
prepare)
    [ -n "$bin" ] && [ -x "$bin/initdb" ] && [ -x "$bin/pgbench" ] ||
        { echo "PostgreSQL or pgbench not installed"; exit 77; }
    if [ "$(id -u)" = 0 ]; then
        id postgres >/dev/null 2>&1 || { echo "no user postgres to run it as"; exit 77; }
        command -v setpriv >/dev/null || { echo "setpriv not installed"; exit 77; }
        mkdir made
        chown postgres made
        cd made
        exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$SCRIPT" make
    fi
    mkdir made
    cd made
    exec sh "$SCRIPT" make
    ;;
make)
    export LC_ALL=C
    "$bin/initdb" -D data -A trust -U bench --no-sync -E UTF8 --locale=C >told 2>&1
    ;;
run)
    if [ "$(id -u)" = 0 ]; then
        chown postgres .
        exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$SCRIPT" run
    fi
    export LC_ALL=C
    cp -a "$PREPARED/made/data" data
    "$bin/pg_ctl" -D data -l server.log -w -s start -o "-c listen_addresses= -k $PWD -c fsync=off \
        -c shared_buffers=128MB -c autovacuum=off" >>told 2>&1
    trap '"$bin/pg_ctl" -D data -w -s -m immediate stop >/dev/null 2>&1 || true' EXIT
    begun=$(date +%s.%N)
    "$bin/pgbench" -h "$PWD" -U bench -i -s 2 -q postgres >>told 2>&1
    "$bin/pgbench" -h "$PWD" -U bench -n -c 1 -t 1000 --random-seed=7 postgres >>told 2>&1
    "$bin/pgbench" -h "$PWD" -U bench -n -S -c 2 -t 2000 --random-seed=7 postgres >>told 2>&1
    "$bin/psql" -h "$PWD" -U bench -At postgres <<'SQL'
select count(*), sum(abalance), md5(string_agg(abalance::text, ',' order by aid)) from pgbench_accounts;
select count(*), sum(delta) from pgbench_history;
select md5(string_agg(repeat(g::text, 1000), '|')) from generate_series(1, 5000) g;
select count(distinct md5(repeat(aid::text, 40))) from pgbench_accounts where aid < 100000;
SQL
    # The work's own time, without the server's start and end.
    echo "$begun $(date +%s.%N)" | awk '{print $2 - $1}' >"${SECONDS_FILE:-/dev/null}"
    ;;
esac
