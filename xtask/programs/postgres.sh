# pgbench, and long text; the servers run as another user where the tool runs as root.
set -eu
. "$COMMON"
bin=$(postgres_programs)
case $1 in
prepare)
    prepare_postgres "$bin"
    ;;
make)
    new_postgres "$bin"
    ;;
run)
    as_postgres run
    cp -a "$PREPARED/made/data" data
    start_postgres "$bin" ""
    begun=$(date +%s.%N)
    "$bin/pgbench" -h "$PWD" -U bench -i -s 2 -q postgres >>told 2>&1
    "$bin/pgbench" -h "$PWD" -U bench -n -c 1 -t "$(part 1000)" --random-seed=7 postgres >>told 2>&1
    "$bin/pgbench" -h "$PWD" -U bench -n -S -c 2 -t "$(part 2000)" --random-seed=7 postgres >>told 2>&1
    "$bin/psql" -h "$PWD" -U bench -At postgres <<SQL
select count(*), sum(abalance), md5(string_agg(abalance::text, ',' order by aid)) from pgbench_accounts;
select count(*), sum(delta) from pgbench_history;
select md5(string_agg(repeat(g::text, 1000), '|')) from generate_series(1, $(part 5000)) g;
select count(distinct md5(repeat(aid::text, 40))) from pgbench_accounts where aid < $(part 100000);
SQL
    # The work's own time, without the server's start and end.
    echo "$begun $(date +%s.%N)" | awk '{print $2 - $1}' >"${SECONDS_FILE:-/dev/null}"
    ;;
esac
