# PostgreSQL: rows of megabytes written, joined, sorted and copied out; the servers run as another user
# where the tool runs as root.
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true)
case $1 in
prepare)
    [ -n "$bin" ] && [ -x "$bin/initdb" ] && [ -x "$bin/pgbench" ] ||
        { echo "PostgreSQL or pgbench not installed"; exit 77; }
    if [ "$(id -u)" = 0 ]; then
        id postgres >/dev/null 2>&1 || { echo "no user postgres to run it as"; exit 77; }
        command -v setpriv >/dev/null || { echo "setpriv not installed"; exit 77; }
    fi
    ;;
run)
    if [ "$(id -u)" = 0 ]; then
        chown postgres .
        exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$SCRIPT" run
    fi
    export LC_ALL=C
    "$bin/initdb" -D data -A trust -U bench --no-sync -E UTF8 --locale=C >told 2>&1
    "$bin/pg_ctl" -D data -l server.log -w -s start -o "-c listen_addresses= -k $PWD -c fsync=off \
        -c shared_buffers=128MB -c autovacuum=off -c jit=off" >>told 2>&1
    trap '"$bin/pg_ctl" -D data -w -s -m immediate stop >/dev/null 2>&1 || true' EXIT
    cat >work.sql <<'SQL'
select length(string_agg(repeat(g::text, 400000), ',')) from generate_series(1, 8) g;
SQL
    "$bin/psql" -h "$PWD" -U bench -At postgres <<'SQL'
create table wide(i int primary key, t text);
alter table wide alter t set storage external;
insert into wide select g, repeat(md5(g::text), 40000) from generate_series(1, 40) g;
update wide set t = t || i where i % 2 = 0;
select count(*), sum(length(t)), md5(string_agg(left(t, 1000), '' order by i)) from wide;
select length(string_agg(t, '' order by i)) from wide;
select sum(length(a.t || b.t)) from wide a join wide b on b.i = a.i + 1;
select sum(length(upper(t))), sum(position('zz' in t)) from wide;
SQL
    "$bin/pgbench" -h "$PWD" -U bench -n -c 1 -t 60 -f work.sql postgres >>told 2>&1
    "$bin/psql" -h "$PWD" -U bench -At -c 'copy wide to stdout' postgres | cksum
    ;;
esac
