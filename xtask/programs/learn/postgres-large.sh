# PostgreSQL: rows of megabytes written, joined, sorted and copied out; the servers run as another user
# where the tool runs as root.
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
    start_postgres "$bin" "-c jit=off"
    cat >work.sql <<'SQL'
select length(string_agg(repeat(g::text, 400000), ',')) from generate_series(1, 8) g;
SQL
    "$bin/psql" -h "$PWD" -U bench -At postgres <<SQL
create table wide(i int primary key, t text);
alter table wide alter t set storage external;
insert into wide select g, repeat(md5(g::text), 40000) from generate_series(1, $(part 40)) g;
update wide set t = t || i where i % 2 = 0;
select count(*), sum(length(t)), md5(string_agg(left(t, 1000), '' order by i)) from wide;
select length(string_agg(t, '' order by i)) from wide;
select sum(length(a.t || b.t)) from wide a join wide b on b.i = a.i + 1;
select sum(length(upper(t))), sum(position('zz' in t)) from wide;
SQL
    "$bin/pgbench" -h "$PWD" -U bench -n -c 1 -t "$(part 60)" -f work.sql postgres >>told 2>&1
    "$bin/psql" -h "$PWD" -U bench -At -c 'copy wide to stdout' postgres | cksum
    ;;
esac
